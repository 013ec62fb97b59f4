"""Heat map of a transition matrix, alone or beside the true one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._common import PLAIN, check_labels, check_matrices, check_true, matrix_and_labels, panel_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from ._common import Panels

# smallest font size in points with include_values="auto" (a choice, not measured)
_MIN_FONT_SIZE = 5.5
# width of a character relative to its font size: above that of the digits of DejaVu Sans, matplotlib's default (0.636)
_CHARACTER_WIDTH = 0.65
# smallest colour range of the difference, so that rounding errors are not drawn in full colour (a choice, not measured)
_MIN_RANGE = 0.01


class TransitionMatrixDisplay:
    """Heat map of a transition matrix, beside the true one where that is known.

    :meth:`from_estimator` and :meth:`from_matrix` make a display and draw it.

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

    Raises
    ------
    ValueError
        If a matrix is not square and finite, the two differ in shape, or the labels differ in number.

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
        self.transition_matrix = check_matrices(transition_matrix, "transition_matrix", ndim=2)
        n_classes = len(self.transition_matrix)
        names = None if display_labels is None else list(display_labels)
        self.true_matrix = check_true(true_matrix, n_classes, names)
        self.display_labels = check_labels(names, n_classes)

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        true_matrix: ArrayLike | None = None,
        display_labels: Iterable | None = None,
        **plot_params: Any,
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
        T, labels = matrix_and_labels(estimator, "transition_matrix_", display_labels)
        return cls.from_matrix(T, true_matrix=true_matrix, display_labels=labels, **plot_params)

    @classmethod
    def from_matrix(
        cls,
        transition_matrix: ArrayLike,
        *,
        true_matrix: ArrayLike | None = None,
        display_labels: Iterable | None = None,
        **plot_params: Any,
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
        cmap: "str | Colormap" = "Blues",
        values_format: str = ".2f",
        xticks_rotation: float | Literal["auto", "vertical", "horizontal"] = "auto",
        ax: "Panels | None" = None,
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
    ) -> "TransitionMatrixDisplay":
        """Draw the panels.

        Parameters
        ----------
        include_values : bool or "auto", default="auto"
            Whether to write the numbers into the cells (blank if they round to zero); "auto": if they are legible.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours of T from 0 to 1. The difference has a diverging map centred at zero.
        values_format : str, default=".2f"
            Format specification of the numbers.
        xticks_rotation : {"auto", "vertical", "horizontal"} or float, default="auto"
            Rotation of the column labels; "auto": 45 degrees if they do not fit side by side.
        ax : matplotlib Axes, or three of them with ``true_matrix``, default=None
            Where to draw, preferably in a figure with ``layout="compressed"``; None: a new figure.
        colorbar : bool, default=True
            Whether to add colour bars.
        im_kw : dict, default=None
            Keywords for ``imshow`` of T (true and learned); they take precedence over ``cmap`` and the scale 0 to 1.

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
        >>> display = TransitionMatrixDisplay([[0.8, 0.2], [0.1, 0.9]]).plot(cmap="Blues")
        >>> [text.get_text() for text in display.text_.ravel()]
        ['0.80', '0.20', '0.10', '0.90']
        """
        plt = pyplot()
        panels = self._panels({"cmap": cmap, **(im_kw or {})})
        self.axes_ = panel_axes(plt, ax, len(panels), self._figure_size(len(panels)))
        learned = len(panels) // 2
        self.ax_, self.figure_ = self.axes_[learned], self.axes_[learned].figure
        numbers = [_numbers(matrix, values_format) for _, matrix, _ in panels]
        cell = _cell_size(self.axes_, len(self.transition_matrix))
        longest = max(len(text) for panel in numbers for row in panel for text in row)
        font = min(plt.rcParams["font.size"], cell / (_CHARACTER_WIDTH * max(longest, 1)))
        written = font >= _MIN_FONT_SIZE if include_values == "auto" else include_values

        for k, (axes, (title, matrix, kw)) in enumerate(zip(self.axes_, panels, strict=True)):
            image = axes.imshow(matrix, **kw)
            text = _write(axes, image, numbers[k], font) if written else None
            axes.set(title=title, xlabel="noisy label", ylabel="true label")
            axes.grid(visible=False)
            _label_ticks(axes, self.display_labels, cell, xticks_rotation)
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

    def _figure_size(self, n_panels: int) -> tuple[float, float]:
        """Size of a new figure in inches: numbers are legible up to about 12 classes; with space for the labels."""
        side = float(np.clip(0.42 * len(self.transition_matrix), 2.5, 5.0))
        names = 0.08 * max(map(len, self.display_labels))
        return n_panels * (side + 0.4) + names + 0.8, side + 0.7 * names + 0.8


def _cell_size(axes: np.ndarray, n_classes: int) -> float:
    """Side of a matrix cell in points, without space for labels and colour bars."""
    boxes = [ax.get_window_extent() for ax in axes]
    return min(min(box.width, box.height) for box in boxes) * 72 / axes[0].figure.dpi / n_classes


def _numbers(matrix: np.ndarray, values_format: str) -> list[list[str]]:
    """Format the entries; those that round to zero are blank."""
    zeros = format(0.0, values_format), format(-0.0, values_format)
    texts = [[format(value, values_format) for value in row] for row in matrix]
    return [["" if text in zeros else text for text in row] for row in texts]


def _write(axes: "Axes", image: Any, numbers: list[list[str]], font: float) -> np.ndarray:
    """Write the numbers, dark on light cells and light on dark ones."""
    light = image.to_rgba(image.get_array())[..., :3] @ [0.299, 0.587, 0.114] > 0.5
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": font}
    texts = np.empty(light.shape, dtype=object)
    for i, j in np.ndindex(light.shape):
        texts[i, j] = axes.text(j, i, numbers[i][j], color="black" if light[i, j] else "white", **style)
    return texts


def _label_ticks(axes: Any, labels: list[str], cell: float, rotation: float | str) -> None:
    """Label rows and columns: every k-th one if lines of text overlap, rotated if column labels overlap."""
    n_labels = len(labels)
    axes.set_yticks(range(n_labels), labels=labels, **PLAIN)
    font = axes.get_yticklabels()[0].get_fontsize()
    lines = 1.2 * font / cell  # height of a line of text in cells
    least = min(2 * lines, n_labels)
    step = 1 if lines <= 1 else next(k for k in (2, 5, 10, 20, 50, 100, n_labels) if k >= least)
    axes.set_yticks(range(0, n_labels, step), labels=labels[::step], **PLAIN)
    overlap = max(map(len, labels[::step])) * _CHARACTER_WIDTH * font > cell * step
    style: dict[str, Any] = {"rotation": rotation}
    if rotation == "auto":
        rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        style = rotated if overlap else {"rotation": 0}
    axes.set_xticks(range(0, n_labels, step), labels=labels[::step], **PLAIN, **style)
