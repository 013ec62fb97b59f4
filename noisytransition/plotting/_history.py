"""Plot of a transition matrix over the epochs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..transition import check_count
from ._common import PLAIN, check_labels, check_matrices, check_true, matrix_and_labels, panel_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from ._common import Panels


def plot_transition_history(
    estimator_or_history: "BaseEstimator | ArrayLike",
    *,
    true_matrix: ArrayLike | None = None,
    ax: "Panels | None" = None,
    classes: Iterable[Any] | None = None,
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
    >>> from noisytransition import plot_transition_history
    >>> history = [[[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]]
    >>> ax = plot_transition_history(history, display_labels=["cat", "dog"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['cat → dog', 'dog → cat']
    """
    given, names = estimator_or_history, display_labels
    if hasattr(given, "fit") or hasattr(given, "transition_history_"):
        given, names = matrix_and_labels(given, "transition_history_", names)
    history = check_matrices(given, "transition history", ndim=3)
    labels = check_labels(names, history.shape[1])
    truth = check_true(true_matrix, history.shape[1], names)
    entries = _largest_entries(history[-1], truth, labels, classes, top)

    panels = panel_axes(pyplot(), ax, *((1, (6.4, 4.0)) if truth is None else (2, (10.5, 4.0))))
    if truth is not None:
        _draw_error(panels[0], history, truth)
    _draw_entries(panels[-1], history, truth, entries, labels)
    for axes in panels:
        axes.set(xlabel="epoch", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)
    return panels[0] if truth is None else panels


def _largest_entries(
    last: np.ndarray, truth: np.ndarray | None, labels: list[str], classes: Iterable | None, top: int
) -> list[tuple[int, int]]:
    """Largest off-diagonal entries in the rows of these classes, the largest first."""
    wanted = labels if classes is None else [str(label) for label in classes]
    unknown = [label for label in wanted if label not in labels]
    if unknown or not wanted:
        raise ValueError(f"classes names {unknown or 'no class'}; give one or more of {labels}")
    top = check_count(top, 1, "top")
    size = last if truth is None else np.maximum(last, truth)
    entries = [(labels.index(label), j) for label in wanted for j in range(len(last))]
    return sorted(((i, j) for i, j in entries if i != j), key=lambda entry: -size[entry])[:top]


def _draw_error(axes: "Axes", history: np.ndarray, truth: np.ndarray) -> None:
    from ..transition import transition_error

    axes.plot([transition_error(truth, T) for T in history], label="learned")
    identity = transition_error(truth, np.eye(len(truth)))
    axes.axhline(identity, color="0.4", linestyle="--", linewidth=1, label="identity")
    axes.set_ylabel("error of T")
    axes.legend()


def _draw_entries(
    axes: "Axes", history: np.ndarray, truth: np.ndarray | None, entries: list, labels: list[str]
) -> None:
    for i, j in entries:
        (line,) = axes.plot(history[:, i, j], label=f"{labels[i]} → {labels[j]}")
        if truth is not None:
            axes.axhline(truth[i, j], color=line.get_color(), linestyle="--", linewidth=0.8)
    if truth is not None:
        axes.plot([], [], color="0.4", linestyle="--", linewidth=0.8, label="true value")
    axes.set_ylabel("P(noisy label | true label)")
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, title="true → noisy")
    for text in legend.get_texts():
        text.set(**PLAIN)
