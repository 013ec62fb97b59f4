"""Plots of T, and of its entries during training. They require matplotlib: ``pip install noisytransition[plot]``."""

from __future__ import annotations
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .labels._arrays import as_floats
from .labels._pandas import in_class_order
from .model_selection import inner_classifier
from .transition import transition_error
from .transition._checks import check_count, check_transition_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    Panels = Axes | Sequence[Axes] | NDArray

__all__ = ["TransitionMatrixDisplay", "plot_transition_history"]

# largest numbers of classes with legible numbers, and with a label at each tick; not measured
_MOST_NUMBERS, _MOST_TICKS = 15, 25
# smallest colour range of the difference, so that rounding errors are not in full colour; not measured
_MIN_RANGE = 0.01
_PLAIN = {"parse_math": False}  # class names can have dollar signs


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
        n_classes = len(self.transition_matrix)
        learned = len(panels) // 2
        side = float(np.clip(0.45 * n_classes, 2.5, 0.45 * _MOST_NUMBERS))
        self.axes_ = _axes(ax, len(panels), (len(panels) * (side + 0.8) + 0.8, side + 1.2))
        self.ax_ = self.axes_[learned]
        self.figure_ = self.ax_.figure
        if include_values == "auto":
            include_values = n_classes <= _MOST_NUMBERS
        for k, (axes, (title, matrix, kw)) in enumerate(zip(self.axes_, panels, strict=True)):
            image = axes.imshow(matrix, **kw)
            text = _write(axes, image, values_format) if include_values else None
            axes.set(title=title, xlabel="noisy label", ylabel="true label")
            axes.grid(visible=False)
            _label_ticks(axes, self.display_labels)
            if colorbar and k >= learned:  # the true and the learned panel have one scale
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
    """Write the numbers that do not round to zero, black on light cells and white on dark cells."""
    matrix = np.asarray(image.get_array())
    light = image.to_rgba(matrix)[..., :3] @ [0.299, 0.587, 0.114] > 0.5
    zeros = format(0.0, values_format), format(-0.0, values_format)
    texts = np.empty(light.shape, dtype=object)
    for i, j in np.ndindex(light.shape):
        number = format(matrix[i, j], values_format)
        number = "" if number in zeros else number
        color = "black" if light[i, j] else "white"
        texts[i, j] = axes.text(j, i, number, color=color, ha="center", va="center", fontsize="small")
    return texts


def _label_ticks(axes: Any, labels: list[str]) -> None:
    """Label every k-th row and column; rotate long names of columns."""
    step = -(-len(labels) // _MOST_TICKS)
    shown = labels[::step]
    places = range(0, len(labels), step)
    rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, shown)) > 3 else {}
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
    """Plot the largest off-diagonal entries of T over the epochs, or of the initial and final T.

    With ``true_matrix``, dashed lines are the true values, and a panel on the left shows the error of T and of the
    identity matrix (:func:`~noisytransition.transition_error`).

    Parameters
    ----------
    estimator_or_history : estimator or array-like of shape (n_epochs + 1, n_classes, n_classes)
        Fitted classifier with ``transition_history_`` (or a Pipeline or search of such a classifier), or the history:
        the initial T, then T after each epoch.
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        True T. A data frame with class names can have them in any order.
    ax : matplotlib Axes, or two Axes with ``true_matrix``, default=None
        Axes to plot in. None: a new figure.
    top : int, default=8
        Number of entries, ranked by the larger of their final and true values.
    display_labels : array-like of shape (n_classes,), default=None
        Class names. None: the classifier's ``classes_``, or 0 to n_classes - 1.

    Returns
    -------
    matplotlib Axes, or ndarray of shape (2,) of Axes
        Panel of the entries; with ``true_matrix``, the panels of the error and of the entries.

    Examples
    --------
    >>> from noisytransition import plot_transition_history
    >>> history = [[[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]]
    >>> ax = plot_transition_history(history, display_labels=["cat", "dog"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['cat → dog', 'dog → cat']
    """
    given = estimator_or_history
    if hasattr(given, "fit") or hasattr(given, "transition_history_"):
        given, display_labels = _fitted(given, "transition_history_", display_labels)
    names = None if display_labels is None else list(display_labels)
    history = _matrices(given, "transition history", ndim=3)
    labels = _labels(names, history.shape[1])
    truth = _true_matrix(true_matrix, history.shape[1], names)
    entries = _largest_entries(history[-1] if truth is None else np.maximum(history[-1], truth), top)

    panels = _axes(ax, *((1, (6.4, 4.0)) if truth is None else (2, (10.5, 4.0))))
    if truth is not None:
        _draw_error(panels[0], history, truth)
    _draw_entries(panels[-1], history, truth, entries, labels)
    for axes in panels:
        axes.set(xlabel="epoch" if len(history) > 2 else "initial T (0), final T (1)", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
    return panels[0] if truth is None else panels


def _largest_entries(size: np.ndarray, top: int) -> list[Any]:
    """Indices of the largest off-diagonal entries, in descending order."""
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


# ---------------------------------------------------------------------------- inputs
def _fitted(estimator: object, attribute: str, labels: Iterable | None) -> tuple[Any, Any]:
    """Fitted attribute of the classifier in a Pipeline or search, and its class names unless given."""
    from sklearn.utils.validation import check_is_fitted

    estimator = inner_classifier(estimator)
    if hasattr(estimator, attribute):
        return getattr(estimator, attribute), getattr(estimator, "classes_", None) if labels is None else labels
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    valid = "a fitted classifier that estimates T, or a Pipeline or search of it; TransitionMatrixDisplay(T) plots T"
    raise ValueError(f"{type(estimator).__name__} has no {attribute}. Pass {valid}.")


def _matrices(given: ArrayLike, name: str, ndim: int) -> np.ndarray:
    matrices = as_floats(given, name)
    if matrices.ndim != ndim or matrices.shape[-1] != matrices.shape[-2] or not matrices.size:
        valid = {2: "(n_classes, n_classes)", 3: "(n_epochs + 1, n_classes, n_classes)"}[ndim]
        raise ValueError(f"{name} has shape {matrices.shape}. Pass probabilities of shape {valid}.")
    for T in matrices.reshape(-1, *matrices.shape[-2:]):
        check_transition_matrix(T, name=name)
    return matrices


def _true_matrix(given: ArrayLike | None, n_classes: int, names: Iterable[Any] | None) -> np.ndarray | None:
    """True T, with a data frame in the order of the names."""
    if given is None:
        return None
    truth = _matrices(in_class_order(given, names), "true_matrix", ndim=2)
    if len(truth) != n_classes:
        raise ValueError(f"true_matrix has {len(truth)} classes, the learned T {n_classes}. Pass the same classes.")
    return truth


def _labels(given: Iterable[Any] | None, n_classes: int) -> list[str]:
    labels = [str(label) for label in (range(n_classes) if given is None else given)]
    if len(labels) != n_classes:
        raise ValueError(f"display_labels has {len(labels)} labels for {n_classes} classes. Pass one label per class.")
    return labels


def _axes(given: Panels | None, n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """One Axes per panel, in a new figure unless given."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("plots require matplotlib: pip install noisytransition[plot]") from error
    if given is None:
        return plt.subplots(1, n_panels, figsize=size, layout="compressed", squeeze=False)[1][0]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != n_panels:
        raise ValueError(f"ax has {len(axes)} Axes for {n_panels} panels. Pass plt.subplots(1, {n_panels})[1] or None.")
    return axes
