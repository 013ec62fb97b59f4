"""Pictures of a transition matrix and of its path in training.

``T[i, j] = P(noisy label = j | true label = i)``: a row is a true label, a column a noisy one, both in sorted
class order. matplotlib is imported when something is drawn: ``pip install noisytransition[plot]``.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["TransitionMatrixDisplay", "plot_transition_history"]

_SMALLEST_LEGIBLE = 5.5  # font size in points below which include_values="auto" leaves the numbers out
_CHARACTER = 0.65  # width of a character relative to its font size
_SMALLEST_RANGE = 0.01  # colour range of the difference: smaller ones would paint rounding in full colour


class TransitionMatrixDisplay:
    """Heat map of a transition matrix, beside the true one where that is known.

    :meth:`from_estimator` and :meth:`from_matrix` make a display and draw it.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        The learned or given T.
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        The T that made the noise. With it three panels are drawn: true, learned, and learned - true.
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

    Raises
    ------
    ValueError
        If a matrix is not square and finite, the two differ in shape, or the labels differ in number.

    Examples
    --------
    >>> display = TransitionMatrixDisplay([[0.8, 0.2], [0.1, 0.9]], display_labels=["cat", "dog"]).plot()
    >>> display.text_[0, 1].get_text()
    '0.20'
    """

    def __init__(self, transition_matrix: Any, *, true_matrix: Any = None, display_labels: Any = None):
        self.transition_matrix = _check_matrices(transition_matrix, "transition_matrix", ndim=2)
        n_classes = len(self.transition_matrix)
        self.true_matrix = _check_true(true_matrix, n_classes)
        self.display_labels = _check_labels(display_labels, n_classes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, true_matrix: Any = None, display_labels: Any = None, **plot_params: Any
    ) -> "TransitionMatrixDisplay":
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

        Raises
        ------
        ValueError
            If the estimator is not fitted (NotFittedError) or has no transition matrix, or shapes do not match.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> fitted = SimpleNamespace(transition_matrix_=[[0.8, 0.2], [0.1, 0.9]], classes_=["cat", "dog"])
        >>> TransitionMatrixDisplay.from_estimator(fitted).display_labels
        ['cat', 'dog']
        """
        T, labels = _matrix_and_labels(estimator, "transition_matrix_", display_labels)
        return cls.from_matrix(T, true_matrix=true_matrix, display_labels=labels, **plot_params)

    @classmethod
    def from_matrix(
        cls, transition_matrix: Any, *, true_matrix: Any = None, display_labels: Any = None, **plot_params: Any
    ) -> "TransitionMatrixDisplay":
        """Draw a transition matrix given as an array.

        Parameters
        ----------
        transition_matrix, true_matrix, display_labels : array-like
            As in the class.
        **plot_params
            Passed to :meth:`plot`.

        Returns
        -------
        TransitionMatrixDisplay
            The display, drawn.

        Examples
        --------
        >>> display = TransitionMatrixDisplay.from_matrix([[0.8, 0.2], [0.1, 0.9]], true_matrix=[[1, 0], [0, 1]])
        >>> [ax.get_title() for ax in display.axes_]
        ['true', 'learned', 'learned - true']
        """
        display = cls(transition_matrix, true_matrix=true_matrix, display_labels=display_labels)
        return display.plot(**plot_params)

    def plot(
        self,
        *,
        include_values: bool | Literal["auto"] = "auto",
        cmap: Any = "Blues",
        values_format: str = ".2f",
        xticks_rotation: float | Literal["auto", "vertical", "horizontal"] = "auto",
        ax: Any = None,
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
    ) -> "TransitionMatrixDisplay":
        """Draw the panels.

        Parameters
        ----------
        include_values : bool or "auto", default="auto"
            Write the numbers into the cells, blank where they round to zero; "auto": where they can be read.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours of T from 0 to 1. The difference has a diverging map centred at zero.
        values_format : str, default=".2f"
            Format specification of the numbers.
        xticks_rotation : {"auto", "vertical", "horizontal"} or float, default="auto"
            Rotation of the column labels; "auto": slanted where they would not fit side by side.
        ax : matplotlib Axes, or three of them with ``true_matrix``, default=None
            Where to draw, best in a figure with ``layout="compressed"``; None: a new figure of a fitting size.
        colorbar : bool, default=True
            Whether to add colour bars.
        im_kw : dict, default=None
            Keywords for ``imshow`` of T (true and learned); they win over ``cmap`` and the scale 0 to 1.

        Returns
        -------
        TransitionMatrixDisplay
            The display itself.

        Raises
        ------
        ImportError, ValueError
            If matplotlib is not installed; if ``ax`` does not hold one Axes per panel.

        Examples
        --------
        >>> TransitionMatrixDisplay([[0.8, 0.2], [0.1, 0.9]]).plot(include_values=False).text_ is None
        True
        """
        pyplot = _pyplot()
        panels = self._panels({"cmap": cmap, **(im_kw or {})})
        self.axes_ = _panel_axes(pyplot, ax, len(panels), self._figure_size(len(panels)))
        learned = len(panels) // 2
        self.ax_, self.figure_ = self.axes_[learned], self.axes_[learned].figure
        numbers = [_numbers(matrix, values_format) for _, matrix, _ in panels]
        cell = _cell_size(self.axes_, len(self.transition_matrix))
        longest = max(len(text) for panel in numbers for row in panel for text in row)
        font = min(pyplot.rcParams["font.size"], cell / (_CHARACTER * max(longest, 1)))
        written = font >= _SMALLEST_LEGIBLE if include_values == "auto" else include_values

        for k, (axes, (title, matrix, kw)) in enumerate(zip(self.axes_, panels, strict=True)):
            image = axes.imshow(matrix, **kw)
            text = _write(axes, image, numbers[k], font) if written else None
            axes.set(title=title, xlabel="noisy label", ylabel="true label")
            axes.grid(visible=False)
            _label_ticks(axes, self.display_labels, cell, xticks_rotation)
            if colorbar and k >= learned:  # the true panel shares the bar of the learned one
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
        limit = max(np.abs(T - truth).max(), _SMALLEST_RANGE)
        difference = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        return [("true", truth, kw), ("learned", T, kw), ("learned - true", T - truth, difference)]

    def _figure_size(self, n_panels: int) -> tuple[float, float]:
        """Inches of a new figure: cells that hold a number up to about 12 classes, and room for the names."""
        side = float(np.clip(0.42 * len(self.transition_matrix), 2.5, 5.0))
        names = 0.08 * max(map(len, self.display_labels))
        return n_panels * (side + 0.4) + names + 0.8, side + 0.7 * names + 0.8


def plot_transition_history(
    estimator_or_history: Any,
    *,
    true_matrix: ArrayLike | None = None,
    ax: Any = None,
    classes: Iterable[Any] | None = None,
    top: int = 8,
    display_labels: Iterable[Any] | None = None,
) -> Any:
    """Draw the path of a transition matrix over the epochs: its largest off-diagonal entries.

    With ``true_matrix``, dashed lines mark the entries' true values, and a panel to the left shows the error of T
    beside the error of the identity (:func:`~noisytransition.transition_error`).

    Parameters
    ----------
    estimator_or_history : estimator or array-like of shape (n_epochs + 1, n_classes, n_classes)
        A fitted classifier with ``transition_history_`` (or a Pipeline or search around one), or the history: the
        start, then T after each epoch.
    true_matrix : array-like of shape (n_classes, n_classes), default=None
        The T that made the noise.
    ax : matplotlib Axes, or two of them with ``true_matrix``, default=None
        Where to draw; None: a new figure.
    classes : iterable of labels, default=None
        Draw only entries in the rows of these true classes; None: all.
    top : int, default=8
        How many entries to draw: the largest at the end, or in ``true_matrix`` if they are larger there.
    display_labels : array-like of shape (n_classes,), default=None
        Class names; None: the classifier's ``classes_``, or 0 to n_classes - 1.

    Returns
    -------
    matplotlib Axes, or ndarray of shape (2,) of them
        The panel of the entries; with ``true_matrix`` the panels of the error and of the entries.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the estimator is not fitted (NotFittedError) or has no history, or another argument is not valid.

    Examples
    --------
    >>> history = [[[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]]
    >>> ax = plot_transition_history(history, display_labels=["cat", "dog"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['cat → dog', 'dog → cat']
    """
    given, names = estimator_or_history, display_labels
    if hasattr(given, "fit") or hasattr(given, "transition_history_"):
        given, names = _matrix_and_labels(given, "transition_history_", names)
    history = _check_matrices(given, "transition history", ndim=3)
    labels = _check_labels(names, history.shape[1])
    truth = _check_true(true_matrix, history.shape[1])
    entries = _largest_entries(history[-1], truth, labels, classes, top)

    panels = _panel_axes(_pyplot(), ax, *((1, (6.4, 4.0)) if truth is None else (2, (10.5, 4.0))))
    if truth is not None:
        _draw_error(panels[0], history, truth)
    _draw_entries(panels[-1], history, truth, entries, labels)
    for axes in panels:
        axes.set(xlabel="epoch", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
    return panels[0] if truth is None else panels


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install noisytransition[plot]") from error
    return pyplot


def _matrix_and_labels(estimator: Any, attribute: str, labels: Any) -> tuple[Any, Any]:
    """Fitted attribute of the classifier inside a Pipeline or a search, and its class names unless given."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    while (is_pipeline := isinstance(estimator, Pipeline)) or hasattr(estimator, "best_estimator_"):
        estimator = estimator.steps[-1][1] if is_pipeline else estimator.best_estimator_
    if hasattr(estimator, attribute):
        return getattr(estimator, attribute), getattr(estimator, "classes_", None) if labels is None else labels
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    valid = "a fitted classifier that learns T, a Pipeline that ends in one, or a search with refit=True over one"
    raise ValueError(f"{type(estimator).__name__} has no {attribute}; give {valid}, or the array itself")


def _check_matrices(given: Any, name: str, ndim: int) -> np.ndarray:
    matrices = np.asarray(given, dtype=np.float64)
    square = matrices.ndim == ndim and matrices.shape[-1] == matrices.shape[-2] and matrices.size > 0
    if not square or not np.isfinite(matrices).all():
        valid = {2: "(n_classes, n_classes)", 3: "(n_epochs + 1, n_classes, n_classes)"}[ndim]
        what = f"{name} has shape {matrices.shape} and {np.sum(~np.isfinite(matrices))} entries that are not finite"
        raise ValueError(f"{what}; give finite probabilities of shape {valid}")
    return matrices


def _check_true(given: Any, n_classes: int) -> np.ndarray | None:
    truth = None if given is None else _check_matrices(given, "true_matrix", ndim=2)
    if truth is not None and len(truth) != n_classes:
        what = f"true_matrix has {len(truth)} classes but the learned matrix has {n_classes}"
        raise ValueError(f"{what}; give both over the same classes, in sorted order")
    return truth


def _check_labels(given: Iterable[Any] | None, n_classes: int) -> list[str]:
    labels = [str(label) for label in (range(n_classes) if given is None else given)]
    if len(labels) != n_classes:
        what = f"display_labels holds {len(labels)} labels but the matrix has {n_classes} classes"
        raise ValueError(f"{what}; give one label per class, in sorted class order")
    return labels


def _panel_axes(pyplot: ModuleType, given: Any, n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """One Axes per panel, in a new figure unless given."""
    if given is None:
        return pyplot.subplots(1, n_panels, figsize=size, layout="compressed", squeeze=False)[1][0]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != n_panels:
        valid = f"{n_panels} Axes, such as plt.subplots(1, {n_panels})[1], or ax=None for a new figure"
        raise ValueError(f"ax holds {len(axes)} Axes but the panels are {n_panels}; give {valid}")
    return axes


def _cell_size(axes: np.ndarray, n_classes: int) -> float:
    """Side of a matrix cell in points, before labels and colour bars take their room."""
    boxes = [ax.get_window_extent() for ax in axes]
    return min(min(box.width, box.height) for box in boxes) * 72 / axes[0].figure.dpi / n_classes


def _numbers(matrix: np.ndarray, values_format: str) -> list[list[str]]:
    """Format the entries; those that round to zero are blank."""
    zeros = format(0.0, values_format), format(-0.0, values_format)
    texts = [[format(value, values_format) for value in row] for row in matrix]
    return [["" if text in zeros else text for text in row] for row in texts]


def _write(axes: Any, image: Any, numbers: list[list[str]], font: float) -> np.ndarray:
    """Write the numbers, dark on light cells and light on dark ones."""
    light = image.to_rgba(image.get_array())[..., :3] @ [0.299, 0.587, 0.114] > 0.5
    style = {"ha": "center", "va": "center", "fontsize": font}
    texts = np.empty(light.shape, dtype=object)
    for i, j in np.ndindex(light.shape):
        texts[i, j] = axes.text(j, i, numbers[i][j], color="black" if light[i, j] else "white", **style)
    return texts


def _label_ticks(axes: Any, labels: list[str], cell: float, rotation: float | str) -> None:
    """Name rows and columns: fewer where lines of text would overlap, slanted where names side by side would."""
    n_labels = len(labels)
    axes.set_yticks(range(n_labels), labels=labels)
    font = axes.get_yticklabels()[0].get_fontsize()
    lines = 1.2 * font / cell  # height of a line of text in cells
    airy = min(2 * lines, n_labels)
    step = 1 if lines <= 1 else next(k for k in (2, 5, 10, 20, 50, 100, n_labels) if k >= airy)
    axes.set_yticks(range(0, n_labels, step), labels=labels[::step])
    crowded = max(map(len, labels[::step])) * _CHARACTER * font > cell * step
    style: dict[str, Any] = {"rotation": rotation}
    if rotation == "auto":
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        style = slanted if crowded else {"rotation": 0}
    axes.set_xticks(range(0, n_labels, step), labels=labels[::step], **style)


def _largest_entries(
    last: np.ndarray, truth: np.ndarray | None, labels: list[str], classes: Any, top: int
) -> list[tuple[int, int]]:
    """Largest off-diagonal entries in the rows of these classes, the largest first."""
    wanted = labels if classes is None else [str(label) for label in classes]
    unknown = [label for label in wanted if label not in labels]
    if unknown or not wanted:
        raise ValueError(f"classes names {unknown or 'no class'}; give one or more of {labels}")
    if top < 1:
        raise ValueError(f"top={top}; give the number of entries to draw, 1 or more")
    size = last if truth is None else np.maximum(last, truth)
    entries = [(labels.index(label), j) for label in wanted for j in range(len(last))]
    return sorted(((i, j) for i, j in entries if i != j), key=lambda entry: -size[entry])[:top]


def _draw_error(axes: Any, history: np.ndarray, truth: np.ndarray) -> None:
    from .transition import transition_error

    axes.plot([transition_error(truth, T) for T in history], label="learned")
    identity = transition_error(truth, np.eye(len(truth)))
    axes.axhline(identity, color="0.4", linestyle="--", linewidth=1, label="identity")
    axes.set_ylabel("error of T")
    axes.legend()


def _draw_entries(axes: Any, history: np.ndarray, truth: Any, entries: list, labels: list[str]) -> None:
    for i, j in entries:
        (line,) = axes.plot(history[:, i, j], label=f"{labels[i]} → {labels[j]}")
        if truth is not None:
            axes.axhline(truth[i, j], color=line.get_color(), linestyle="--", linewidth=0.8)
    if truth is not None:
        axes.plot([], [], color="0.4", linestyle="--", linewidth=0.8, label="true value")
    axes.set_ylabel("P(noisy label | true label)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, title="true → noisy")
