"""Plots of T. They require matplotlib: ``pip install noisytransition[plot]``."""

from __future__ import annotations
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .labels._pandas import in_class_order
from .model_selection import classifier_with_transition
from .transition._checks import check_transition_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    Panels = Axes | Sequence[Axes] | NDArray

__all__ = ["TransitionMatrixDisplay"]

# largest numbers of classes with legible numbers, and with a label at each tick; not measured
_MOST_NUMBERS, _MOST_TICKS = 15, 25
# smallest colour range of the difference, so that rounding errors are not in full colour; not measured
_MIN_RANGE = 0.01


class TransitionMatrixDisplay:
    """Heat map of a noise transition matrix, with the true matrix if it is known.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Noise transition matrix T: entry (i, j) is P(noisy = j | true = i).
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        True T. If given, there are three panels: true, learned, and learned - true. A data frame with class names can
        have them in any order.
    display_labels : array-like of shape (n_classes,), default=None
        Class names for the ticks. None: 0 to n_classes - 1.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, and ndarray of shape (1,) or (3,) of Axes
        Figure and its panels.
    ax_, im_ : matplotlib Axes and AxesImage
        Panel and image of the learned T.
    text_ : ndarray of shape (n_classes, n_classes) or None
        Numbers in the panel of the learned T. None if they are not drawn.

    Examples
    --------
    >>> from noisytransition import TransitionMatrixDisplay
    >>> display = TransitionMatrixDisplay([[0.8, 0.2], [0.1, 0.9]], display_labels=["cat", "dog"]).plot()
    >>> display.text_[0, 1].get_text()
    '0.20'
    """

    def __init__(
        self,
        transition_matrix: ArrayLike,
        *,
        true_matrix: ArrayLike | None = None,
        display_labels: Iterable | None = None,
    ):
        self.transition_matrix = check_transition_matrix(transition_matrix)
        n_classes = len(self.transition_matrix)
        names = list(range(n_classes) if display_labels is None else display_labels)
        self.display_labels = [str(name) for name in names]
        self.true_matrix: NDArray[np.float64] | None = None
        if true_matrix is not None:
            self.true_matrix = check_transition_matrix(in_class_order(true_matrix, names), n_classes, "true_matrix")

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        true_matrix: ArrayLike | None = None,
        display_labels: Iterable | None = None,
        **plot_params: Any,
    ) -> TransitionMatrixDisplay:
        """Plot the transition matrix of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier with ``transition_matrix_``, or a Pipeline or search of such a classifier.
        true_matrix, display_labels : array-like, default=None
            As in the class. Default labels: the classifier's ``classes_``.
        **plot_params
            Passed to :meth:`plot`.

        Returns
        -------
        TransitionMatrixDisplay

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> fitted = SimpleNamespace(transition_matrix_=[[0.8, 0.2], [0.1, 0.9]], classes_=["cat", "dog"])
        >>> TransitionMatrixDisplay.from_estimator(fitted).display_labels
        ['cat', 'dog']
        """
        fitted = classifier_with_transition(estimator)
        labels = getattr(fitted, "classes_", None) if display_labels is None else display_labels
        return cls(fitted.transition_matrix_, true_matrix=true_matrix, display_labels=labels).plot(**plot_params)

    def plot(
        self,
        *,
        include_values: bool | Literal["auto"] = "auto",
        cmap: str | Colormap = "Blues",
        values_format: str = ".2f",
        ax: Panels | None = None,
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
    ) -> TransitionMatrixDisplay:
        """Plot the panels.

        Parameters
        ----------
        include_values : bool or "auto", default="auto"
            Whether to write numbers that do not round to zero into the cells. "auto": up to 15 classes.
        cmap : str or matplotlib Colormap, default="Blues"
            Colormap of T from 0 to 1. The difference has a diverging colormap centred at zero.
        values_format : str, default=".2f"
            Format specification of the numbers.
        ax : matplotlib Axes, or three Axes with ``true_matrix``, default=None
            Axes to plot in. None: a new figure.
        colorbar : bool, default=True
            Whether to add colour bars.
        im_kw : dict, default=None
            Arguments of ``imshow`` for T (true and learned), which take precedence over ``cmap`` and the scale 0 to 1.

        Returns
        -------
        TransitionMatrixDisplay

        """
        panels = self._panels({"cmap": cmap, **(im_kw or {})})
        learned = len(panels) // 2
        if include_values == "auto":
            include_values = len(self.transition_matrix) <= _MOST_NUMBERS
        self.axes_ = self._axes(len(panels), ax)
        self.ax_ = self.axes_[learned]
        self.figure_ = self.ax_.figure
        self.axes_[0].set_ylabel("true label")
        images = [self._draw(axes, *panel) for axes, panel in zip(self.axes_, panels, strict=True)]
        texts = [_write(image, values_format) if include_values else None for image in images]
        self.im_ = images[learned]
        self.text_ = texts[learned]
        if colorbar:
            for image in images[learned:]:  # the true and the learned panel have one scale
                self.figure_.colorbar(image, cax=image.axes.inset_axes((1.04, 0, 0.05, 1)))
        return self

    def _panels(self, kw: dict[str, Any]) -> list[tuple[str, np.ndarray, dict[str, Any]]]:
        """Title, matrix and ``imshow`` keywords of each panel."""
        if "norm" not in kw:
            kw = {"vmin": 0.0, "vmax": 1.0, **kw}
        if self.true_matrix is None:
            return [("", self.transition_matrix, kw)]
        difference = self.transition_matrix - self.true_matrix
        limit = max(np.abs(difference).max(), _MIN_RANGE)
        return [
            ("true", self.true_matrix, kw),
            ("learned", self.transition_matrix, kw),
            ("learned - true", difference, {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}),
        ]

    def _axes(self, n_panels: int, given: Panels | None) -> np.ndarray:
        """One Axes per panel, in a new figure unless given."""
        if given is None:
            from matplotlib import pyplot as plt

            side = np.clip(0.45 * len(self.transition_matrix), 2.5, 0.45 * _MOST_NUMBERS)
            size = (n_panels * (side + 0.8) + 0.8, side + 1.2)
            return plt.subplots(1, n_panels, sharey=True, figsize=size, layout="compressed", squeeze=False)[1][0]
        axes = np.ravel(np.asarray(given, dtype=object))
        if len(axes) != n_panels:
            raise ValueError(f"ax has {len(axes)} Axes for {n_panels} panels; pass one Axes per panel.")
        return axes

    def _draw(self, axes: Any, title: str, matrix: np.ndarray, kw: dict[str, Any]) -> Any:
        """Draw a panel; label every k-th row and column, and rotate long names of columns."""
        image = axes.imshow(matrix, **kw)
        axes.set(title=title, xlabel="noisy label")
        axes.grid(visible=False)
        step = -(-len(matrix) // _MOST_TICKS)
        shown = self.display_labels[::step]
        rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, shown)) > 3 else {}
        # class names can have dollar signs
        axes.set_yticks(range(0, len(matrix), step), labels=shown, parse_math=False)
        axes.set_xticks(range(0, len(matrix), step), labels=shown, parse_math=False, **rotated)
        return image


def _write(image: Any, values_format: str) -> np.ndarray:
    """Write the numbers that do not round to zero, black on light cells and white on dark cells."""
    matrix = np.asarray(image.get_array())
    light = image.to_rgba(matrix)[..., :3] @ [0.299, 0.587, 0.114] > 0.5
    texts = np.empty(light.shape, dtype=object)
    for i, j in np.ndindex(light.shape):
        number = format(matrix[i, j], values_format)
        if number in (format(0.0, values_format), format(-0.0, values_format)):
            number = ""
        color = "black" if light[i, j] else "white"
        texts[i, j] = image.axes.text(j, i, number, color=color, ha="center", va="center", fontsize="small")
    return texts
