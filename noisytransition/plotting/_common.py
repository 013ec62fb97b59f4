"""Helpers of the plots: import of matplotlib on use, and validation of what is drawn."""

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._unwrap import inner_classifier
from ..transition import as_floats, check_transition_matrix, in_class_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    # where the user wants the panels drawn
    Panels = Axes | Sequence[Axes] | NDArray


# names are text as it is, also with a dollar sign
PLAIN = {"parse_math": False}


def pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install noisytransition[plot]") from error
    return plt


def matrix_and_labels(estimator: object, attribute: str, labels: Iterable | None) -> tuple[Any, Any]:
    """Fitted attribute of the classifier inside a Pipeline or a search, and its class names unless given."""
    from sklearn.utils.validation import check_is_fitted

    estimator = inner_classifier(estimator)
    if hasattr(estimator, attribute):
        return getattr(estimator, attribute), getattr(estimator, "classes_", None) if labels is None else labels
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    valid = "a fitted classifier that learns T, a Pipeline that ends in one, or a search with refit=True over one"
    raise ValueError(f"{type(estimator).__name__} has no {attribute}; give {valid}, or the array itself")


def check_matrices(given: ArrayLike, name: str, ndim: int) -> np.ndarray:
    matrices = as_floats(given, name)
    square = matrices.ndim == ndim and matrices.shape[-1] == matrices.shape[-2] and matrices.size > 0
    if not square or not np.isfinite(matrices).all():
        valid = {2: "(n_classes, n_classes)", 3: "(n_epochs + 1, n_classes, n_classes)"}[ndim]
        what = f"{name} has shape {matrices.shape} and {np.sum(~np.isfinite(matrices))} entries that are not finite"
        raise ValueError(f"{what}; give finite probabilities of shape {valid}")
    for T in matrices.reshape(-1, *matrices.shape[-2:]):
        check_transition_matrix(T, name=name)
    return matrices


def check_true(given: ArrayLike | None, n_classes: int, names: Iterable[Any] | None) -> np.ndarray | None:
    """True T; a data frame in the order of these names, if they are its own."""
    if given is None:
        return None
    truth = check_matrices(in_class_order(given, names), "true_matrix", ndim=2)
    if len(truth) != n_classes:
        what = f"true_matrix has {len(truth)} classes but the learned matrix has {n_classes}"
        raise ValueError(f"{what}; give both over the same classes, in sorted order")
    return truth


def check_labels(given: Iterable[Any] | None, n_classes: int) -> list[str]:
    labels = [str(label) for label in (range(n_classes) if given is None else given)]
    if len(labels) != n_classes:
        what = f"display_labels holds {len(labels)} labels but the matrix has {n_classes} classes"
        raise ValueError(f"{what}; give one label per class, in sorted class order")
    return labels


def panel_axes(plt: ModuleType, given: "Panels | None", n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """One Axes per panel, in a new figure unless given."""
    if given is None:
        return plt.subplots(1, n_panels, figsize=size, layout="compressed", squeeze=False)[1][0]
    axes = np.ravel(np.asarray(given, dtype=object))
    if len(axes) != n_panels:
        valid = f"{n_panels} Axes, such as plt.subplots(1, {n_panels})[1], or ax=None for a new figure"
        raise ValueError(f"ax holds {len(axes)} Axes but the panels are {n_panels}; give {valid}")
    return axes
