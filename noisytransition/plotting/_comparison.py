"""Plot of the accuracy and the error of T of several methods."""

from typing import TYPE_CHECKING

import numpy as np

from ._common import PLAIN, panel_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..comparison import Comparison
    from ._common import Panels

# reference rows of a comparison, and the style of their lines
_REFERENCES = {"identity": "--", "sampling limit": ":"}


def plot_comparison(comparison: "Comparison", *, ax: "Panels | None" = None) -> np.ndarray:
    """Plot the result of `compare`: a dot for each seed, a bar at the mean.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare`.
    ax : matplotlib Axes or array of Axes, optional
        One for the accuracy and, if any method has an error of T, one for that.

    Returns
    -------
    ndarray of Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If no method has an accuracy.

    Examples
    --------
    >>> from noisytransition import Comparison, plot_comparison
    >>> rows = [{"method": "GLC", "seed": 0, "accuracy": 0.82, "transition_error": 0.2},
    ...         {"method": "EM", "seed": 0, "accuracy": 0.86, "transition_error": 0.1}]
    >>> panels = plot_comparison(Comparison(rows, ["GLC", "EM"]))
    >>> [axes.get_xlabel() for axes in panels]
    ['test accuracy', 'error of T']
    """
    methods = [name for name in comparison.methods if comparison.values(name, "accuracy")]
    if not methods:
        raise ValueError("no method of the comparison has an accuracy: there is nothing to draw")
    has_T = any(comparison.values(name, "transition_error") for name in methods)
    columns = {"accuracy": "test accuracy"} | ({"transition_error": "error of T"} if has_T else {})
    size = (5.2 * len(columns), 0.36 * len(methods) + 1.1)
    panels = panel_axes(pyplot(), ax, len(columns), size)
    for axes, (column, label) in zip(panels, columns.items(), strict=True):
        _draw(axes, comparison, methods, column)
        axes.set_xlabel(label)
    panels[0].set_yticks(range(len(methods)), methods, **PLAIN)
    for axes in panels[1:]:
        axes.set_yticks(range(len(methods)), [""] * len(methods))
        for name, style in _REFERENCES.items():
            if values := comparison.values(name, "transition_error"):
                axes.axvline(np.mean(list(values.values())), color="0.4", linestyle=style, linewidth=1, label=name)
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
    return panels


def _draw(axes: "Axes", comparison: "Comparison", methods: list[str], column: str) -> None:
    for place, name in enumerate(methods):
        if values := list(comparison.values(name, column).values()):
            axes.plot(values, [place] * len(values), "o", markersize=4, alpha=0.5, color="C0")
            axes.plot([np.mean(values)], [place], "|", markersize=16, markeredgewidth=2, color="C0")
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.grid(axis="x", linewidth=0.4)
