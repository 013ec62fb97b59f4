"""Plots of a transition matrix, and of its values during training.

``T[i, j] = P(noisy label = j | true label = i)``: a row is a true label, a column a noisy one, both in sorted
class order. matplotlib is imported on use: ``pip install noisytransition[plot]``.
"""

from __future__ import annotations
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .model_selection import inner_classifier
from .transition import transition_error
from .transition._checks import as_floats, check_count, check_transition_matrix
from .transition._labels import in_class_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    # where the user wants the panels drawn
    Panels = Axes | Sequence[Axes] | NDArray

__all__ = ["TransitionMatrixDisplay", "plot_transition_history"]

# with more classes, numbers are not legible, and some ticks have no label; choices, not measured
_MOST_NUMBERS, _MOST_TICKS = 15, 25
# smallest colour range of the difference, so that rounding errors are not drawn in full colour; a choice
_MIN_RANGE = 0.01
# names are text as it is, also with a dollar sign
_PLAIN = {"parse_math": False}


class TransitionMatrixDisplay:
    """Heat map of a transition matrix, beside the true one where that is known.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        The learned or given T.
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        The true T. If given, three panels are drawn: true, learned, and learned - true. A data frame that names the
        ``display_labels`` may have them in any order.
    display_labels : array-like of shape (n_classes,), default=None
        Class names for the ticks; None: 0 to n_classes - 1.

    Attributes
    ----------
    figure_, axes_ : matplotlib Figure, and ndarray of shape (1,) or (3,) of Axes
        The figure and its panels: the learned T alone, or true, learned, difference.
    ax_, im_ : matplotlib Axes and AxesImage
        Panel and image of the learned T.
    text_ : ndarray of shape (n_classes, n_classes) or None
        Numbers in the panel of the learned T; None if not drawn.

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
        self.transition_matrix = _matrices(transition_matrix, "transition_matrix", ndim=2)
        n_classes = len(self.transition_matrix)
        names = None if display_labels is None else list(display_labels)
        self.true_matrix = _true_matrix(true_matrix, n_classes, names)
        self.display_labels = _labels(names, n_classes)

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        true_matrix: ArrayLike | None = None,
        display_labels: Iterable | None = None,
        **plot_params: Any,
    ) -> TransitionMatrixDisplay:
        """Draw the transition matrix of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with ``transition_matrix_``, or a fitted Pipeline or search around one.
        true_matrix, display_labels : array-like, default=None
            As in the class; without ``display_labels`` the classifier's ``classes_`` are the names.
        **plot_params
            Passed to :meth:`plot`.

        Returns
        -------
        TransitionMatrixDisplay
            The display, drawn.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> fitted = SimpleNamespace(transition_matrix_=[[0.8, 0.2], [0.1, 0.9]], classes_=["cat", "dog"])
        >>> TransitionMatrixDisplay.from_estimator(fitted).display_labels
        ['cat', 'dog']
        """
        T, labels = _fitted(estimator, "transition_matrix_", display_labels)
        return cls(T, true_matrix=true_matrix, display_labels=labels).plot(**plot_params)

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
        """Draw the panels.

        Parameters
        ----------
        include_values : bool or "auto", default="auto"
            Whether to write the numbers into the cells (blank if they round to zero); "auto": up to 15 classes.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours of T from 0 to 1. The difference has a diverging map centred at zero.
        values_format : str, default=".2f"
            Format specification of the numbers.
        ax : matplotlib Axes, or three of them with ``true_matrix``, default=None
            Where to draw; None: a new figure.
        colorbar : bool, default=True
            Whether to add colour bars.
        im_kw : dict, default=None
            Keywords for ``imshow`` of T (true and learned); they take precedence over ``cmap`` and the scale 0 to 1.

        Returns
        -------
        TransitionMatrixDisplay
            The display itself.

        Examples
        --------
        >>> display = TransitionMatrixDisplay([[0.8, 0.2], [0.1, 0.9]]).plot(cmap="Blues")
        >>> [text.get_text() for text in display.text_.ravel()]
        ['0.80', '0.20', '0.10', '0.90']
        """
        panels = self._panels({"cmap": cmap, **(im_kw or {})})
        n_classes, learned = len(self.transition_matrix), len(panels) // 2
        side = float(np.clip(0.45 * n_classes, 2.5, 0.45 * _MOST_NUMBERS))
        self.axes_ = _axes(ax, len(panels), (len(panels) * (side + 0.8) + 0.8, side + 1.2))
        self.ax_, self.figure_ = self.axes_[learned], self.axes_[learned].figure
        written = n_classes <= _MOST_NUMBERS if include_values == "auto" else include_values
        for k, (axes, (title, matrix, kw)) in enumerate(zip(self.axes_, panels, strict=True)):
            image = axes.imshow(matrix, **kw)
            text = _write(axes, image, values_format) if written else None
            axes.set(title=title, xlabel="noisy label", ylabel="true label")
            axes.grid(visible=False)
            _label_ticks(axes, self.display_labels)
            if colorbar and k >= learned:  # the colour bar of the learned panel is that of the true one too
                self.figure_.colorbar(image, cax=axes.inset_axes((1.04, 0, 0.05, 1)))
            if ax is None:
                axes.label_outer()
            if k == learned:
                self.im_, self.text_ = image, text
        return self

    def _panels(self, kw: dict[str, Any]) -> list[tuple[str, np.ndarray, dict[str, Any]]]:
        """Title, matrix and ``imshow`` keywords of each panel."""
        if "norm" not in kw:
            kw = {"vmin": 0.0, "vmax": 1.0, **kw}
        T, truth = self.transition_matrix, self.true_matrix
        if truth is None:
            return [("", T, kw)]
        limit = max(np.abs(T - truth).max(), _MIN_RANGE)
        difference = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        return [("true", truth, kw), ("learned", T, kw), ("learned - true", T - truth, difference)]


def _write(axes: Axes, image: Any, values_format: str) -> np.ndarray:
    """Write the numbers, dark on light cells and light on dark ones; those that round to zero are blank."""
    matrix = np.asarray(image.get_array())
    light = image.to_rgba(matrix)[..., :3] @ [0.299, 0.587, 0.114] > 0.5
    zeros = format(0.0, values_format), format(-0.0, values_format)
    texts = np.empty(light.shape, dtype=object)
    for i, j in np.ndindex(light.shape):
        number, color = format(matrix[i, j], values_format), "black" if light[i, j] else "white"
        number = "" if number in zeros else number
        texts[i, j] = axes.text(j, i, number, color=color, ha="center", va="center", fontsize="small")
    return texts


def _label_ticks(axes: Any, labels: list[str]) -> None:
    """Label rows and columns, every k-th one of many; long names of columns are rotated."""
    step = -(-len(labels) // _MOST_TICKS)
    shown, places = labels[::step], range(0, len(labels), step)
    long = max(map(len, shown)) > 3
    rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if long else {}
    axes.set_yticks(places, labels=shown, **_PLAIN)
    axes.set_xticks(places, labels=shown, **_PLAIN, **rotated)


def plot_transition_history(
    estimator_or_history: Any,
    *,
    true_matrix: ArrayLike | None = None,
    ax: Panels | None = None,
    top: int = 8,
    display_labels: Iterable[Any] | None = None,
) -> Any:
    """Plot the largest off-diagonal entries of a transition matrix over the epochs.

    With ``true_matrix``, dashed lines mark the entries' true values, and a panel to the left shows the error of T
    beside the error of the identity (:func:`~noisytransition.transition_error`).

    Parameters
    ----------
    estimator_or_history : estimator or array-like of shape (n_epochs + 1, n_classes, n_classes)
        A fitted classifier with ``transition_history_`` (or a Pipeline or search around one), or the history: the
        start, then T after each epoch.
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        The true T. A data frame that names the classes may have them in any order.
    ax : matplotlib Axes, or two of them with ``true_matrix``, default=None
        Where to draw; None: a new figure.
    top : int, default=8
        How many entries to draw: the largest at the end, or in ``true_matrix`` if they are larger there.
    display_labels : array-like of shape (n_classes,), default=None
        Class names; None: the classifier's ``classes_``, or 0 to n_classes - 1.

    Returns
    -------
    matplotlib Axes, or ndarray of shape (2,) of them
        The panel of the entries; with ``true_matrix`` the panels of the error and of the entries.

    Examples
    --------
    >>> from noisytransition import plot_transition_history
    >>> history = [[[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]]
    >>> ax = plot_transition_history(history, display_labels=["cat", "dog"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['cat → dog', 'dog → cat']
    """
    given, names = estimator_or_history, display_labels
    if hasattr(given, "fit") or hasattr(given, "transition_history_"):
        given, names = _fitted(given, "transition_history_", names)
    names = None if names is None else list(names)
    history = _matrices(given, "transition history", ndim=3)
    labels, truth = _labels(names, history.shape[1]), _true_matrix(true_matrix, history.shape[1], names)
    entries = _largest_entries(history[-1] if truth is None else np.maximum(history[-1], truth), top)

    panels = _axes(ax, *((1, (6.4, 4.0)) if truth is None else (2, (10.5, 4.0))))
    if truth is not None:
        _draw_error(panels[0], history, truth)
    _draw_entries(panels[-1], history, truth, entries, labels)
    for axes in panels:
        axes.set(xlabel="epoch", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
    return panels[0] if truth is None else panels


def _largest_entries(size: np.ndarray, top: int) -> list[Any]:
    """Places of the largest off-diagonal entries, the largest first."""
    entries = [(i, j) for i, j in np.ndindex(size.shape) if i != j]
    return sorted(entries, key=lambda entry: -size[entry])[: check_count(top, 1, "top")]


def _draw_error(axes: Axes, history: np.ndarray, truth: np.ndarray) -> None:
    axes.plot([transition_error(truth, T) for T in history], label="learned")
    identity = transition_error(truth, np.eye(len(truth)))
    axes.axhline(identity, color="0.4", linestyle="--", linewidth=1, label="identity")
    axes.set_ylabel("error of T")
    axes.legend()


def _draw_entries(axes: Axes, history: np.ndarray, truth: np.ndarray | None, entries: list, labels: list[str]) -> None:
    for i, j in entries:
        (line,) = axes.plot(history[:, i, j], label=f"{labels[i]} → {labels[j]}")
        if truth is not None:
            axes.axhline(truth[i, j], color=line.get_color(), linestyle="--", linewidth=0.8)
    axes.set_ylabel("P(noisy label | true label)")
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, title="true → noisy")
    for text in legend.get_texts():
        text.set(**_PLAIN)


# ---------------------------------------------------------------------------- what is drawn, and where
def _fitted(estimator: object, attribute: str, labels: Iterable | None) -> tuple[Any, Any]:
    """Fitted attribute of the classifier inside a Pipeline or a search, and its class names unless given."""
    from sklearn.utils.validation import check_is_fitted

    estimator = inner_classifier(estimator)
    if hasattr(estimator, attribute):
        return getattr(estimator, attribute), getattr(estimator, "classes_", None) if labels is None else labels
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    valid = "a fitted classifier that learns T, a Pipeline that ends in one, or a search with refit=True over one"
    raise ValueError(f"{type(estimator).__name__} has no {attribute}; pass {valid}, or the array itself")


def _matrices(given: ArrayLike, name: str, ndim: int) -> np.ndarray:
    matrices = as_floats(given, name)
    if matrices.ndim != ndim or matrices.shape[-1] != matrices.shape[-2] or not matrices.size:
        valid = {2: "(n_classes, n_classes)", 3: "(n_epochs + 1, n_classes, n_classes)"}[ndim]
        raise ValueError(f"{name} has shape {matrices.shape}; pass probabilities of shape {valid}")
    for T in matrices.reshape(-1, *matrices.shape[-2:]):
        check_transition_matrix(T, name=name)
    return matrices


def _true_matrix(given: ArrayLike | None, n_classes: int, names: Iterable[Any] | None) -> np.ndarray | None:
    """True T; a data frame in the order of these names, if they are its own."""
    if given is None:
        return None
    truth = _matrices(in_class_order(given, names), "true_matrix", ndim=2)
    if len(truth) != n_classes:
        what = f"true_matrix has {len(truth)} classes but the learned matrix has {n_classes}"
        raise ValueError(f"{what}; pass both over the same classes, in sorted order")
    return truth


def _labels(given: Iterable[Any] | None, n_classes: int) -> list[str]:
    labels = [str(label) for label in (range(n_classes) if given is None else given)]
    if len(labels) != n_classes:
        what = f"display_labels holds {len(labels)} labels but the matrix has {n_classes} classes"
        raise ValueError(f"{what}; pass one label per class, in sorted class order")
    return labels


def _axes(given: Panels | None, n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """One Axes per panel, in a new figure unless given."""
    plt = _pyplot()
    if given is None:
        return plt.subplots(1, n_panels, figsize=size, layout="compressed", squeeze=False)[1][0]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != n_panels:
        valid = f"{n_panels} Axes, such as plt.subplots(1, {n_panels})[1], or ax=None for a new figure"
        raise ValueError(f"ax holds {len(axes)} Axes but the panels are {n_panels}; pass {valid}")
    return axes


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install noisytransition[plot]") from error
    return plt
