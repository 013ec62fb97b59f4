"""Warnings of data that a classifier cannot learn from, before any training: of scale, and of labels of chance."""

import inspect
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch.utils.data import Dataset, TensorDataset

from ..nets import DatasetRows, Rows
from ..transition import equally_many, says_nothing

# clean rows count as unscaled if their mean differs from that of the noisy rows by more than this many standard
# deviations in the median column; a choice, not measured
_FAR = 5.0

# ratio of the most to the least frequent noisy label above which equally many clean rows of each class bring a warning;
# asymmetric noise of 0.6 gives this ratio to classes of equal frequency
_UNEQUAL = 4.0

# columns of sparse rows that are made dense at once for this: 8 MB for each set. A choice, not measured
_BLOCK = 1000

# root mean square of values above which the default network learns little at its default step: from breast cancer
# (237) and wine (227) one class alone, from iris (4) as much as from standardised columns; of so many rows
_LARGEST_SIZE = 10.0
_SIZED_ROWS = 1000
# the same of other networks, which may be made for their inputs; a choice, not measured
_LARGEST_SIZE_OF_OTHERS = 100.0


def warn_if_unscaled(X: Any, X_meta: Any) -> None:
    """Warn if the clean rows seem unscaled: a Pipeline passes `meta=` to its last step without transforming it."""
    if isinstance(X, Dataset) or isinstance(X_meta, Dataset):
        return
    if _median_distance(X, X_meta) > _FAR:
        warnings.warn(
            "the clean rows lie far from X in most features: were they scaled alike? A Pipeline transforms neither "
            "meta= nor X_meta= by itself; use Pipeline(..., transform_input=['X_meta']) with metadata routing, or "
            "trusted=.",
            UserWarning,
            stacklevel=5,
        )


def warn_of_length(n: int) -> None:
    """Warn that cross-validation would cut clean rows or labels, because they are as long as X."""
    warnings.warn(
        f"X_meta has as many rows as X ({n}): cross-validation and searches cut such an argument down to the training "
        "rows. Inside them give meta=(X_meta, y_meta).",
        UserWarning,
        stacklevel=_level_of_the_caller(),
    )


def names_of_rows(*given: Any) -> Any:
    """Index of the first that is of pandas, or None."""
    return next((rows.index for rows in given if hasattr(rows, "iloc")), None)


def warn_of_order(
    names: Any, given: Any, name: str, rows: str = "X and y", mask: NDArray[np.bool_] | None = None
) -> None:
    """Warn of a Series whose index names the same rows in another order: rows are taken by position.

    With a mask it may have entries of these rows alone.
    """
    if names is not None and mask is not None and len(given) < len(mask):
        names = names[mask]
    if names is None or not hasattr(given, "iloc") or names.equals(given.index):
        return
    if len(names) != len(given.index) or set(names) != set(given.index):
        return
    warnings.warn(
        f"the index of {name} names the rows in another order than {rows} do. Rows are taken by their position, and "
        f"not by their name: bring {name} into the order of {rows} (reindex), or give {name}.to_numpy() if it is in "
        "order.",
        UserWarning,
        stacklevel=_level_of_the_caller(),
    )


def _level_of_the_caller() -> int:
    """Stack level, for the function that asks, of the first call from outside of the library: users look there."""
    package = __name__.partition(".")[0]
    modules = [str(info.frame.f_globals.get("__name__")) for info in inspect.stack(0)[1:]]
    return next((level for level, name in enumerate(modules, 1) if name.partition(".")[0] != package), 1)


def _median_distance(X: Any, X_meta: Any) -> float:
    """Distance of the means of the median column, in standard deviations, of about a thousand rows of each set."""
    samples = [rows[:: rows.shape[0] // 1000 + 1] for rows in (X, X_meta)]
    width = _BLOCK if any(map(issparse, samples)) else X.shape[1]
    blocks = ((rows[:, i : i + width] for rows in samples) for i in range(0, X.shape[1], width))
    return float(np.median(np.concatenate([_distances(*map(_dense, pair)).ravel() for pair in blocks])))


def _dense(rows: Any) -> NDArray[np.float64]:
    return (rows.toarray() if issparse(rows) else rows).astype(np.float64)


def _distances(X: NDArray[np.float64], X_meta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of the means of each column, in standard deviations of X."""
    return np.abs(X_meta.mean(axis=0) - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def warn_of_chance(estimator: object, noisy: Rows, clean: Rows) -> None:
    """Warn if the noisy labels say nothing about the classes; of a Dataset this is not known without loading it."""
    if isinstance(noisy, DatasetRows) or isinstance(clean, DatasetRows):
        return
    X, X_meta = noisy.source, clean.source
    pvalue = says_nothing(X, noisy.label, X_meta, clean.label, rows=noisy.index, rows_meta=clean.index)
    if pvalue is None:
        return
    warnings.warn(
        "the noisy labels say nothing about the classes of the rows, as far as a test can tell (independence of the "
        f"label and of the class of the nearest clean rows: p = {pvalue:.2f}). {type(estimator).__name__} would learn "
        "chance: check that X and y are in the same order, or train on the clean rows alone, by "
        "CrossEntropyClassifier().fit(X_meta, y_meta).",
        UserWarning,
        stacklevel=3,
    )


def warn_of_equal_shares(noisy: NDArray[np.int64], clean: NDArray[np.int64], classes: NDArray) -> None:
    """Warn of clean rows that seem to be drawn class by class, while the classes have unequal shares.

    Parameters
    ----------
    noisy, clean : ndarray of int
        Labels of the noisy and of the clean rows.
    classes : ndarray
    """
    of_noisy, of_clean = (np.bincount(labels, minlength=len(classes)) for labels in (noisy, clean))
    least, most = of_noisy.argmin(), of_noisy.argmax()
    if not equally_many(of_clean) or of_noisy[most] <= _UNEQUAL * of_noisy[least]:
        return
    names = classes.tolist()
    warnings.warn(
        f"there are {of_clean[0]} clean rows of each class, but {of_noisy[most]:,} noisy labels {names[most]!r} and "
        f"{of_noisy[least]:,} {names[least]!r}. If the classes are unequal, clean rows that are drawn class by class "
        "pull T and the probabilities towards equal shares: draw them at random, or take "
        "EMTransitionClassifier(meta_sampling='by_class').",
        UserWarning,
        stacklevel=3,
    )


def warn_of_scale(noisy: Rows, *, default: bool) -> None:
    """Warn of inputs that the network would hardly learn from; of a Dataset but a TensorDataset it is not known.

    Parameters
    ----------
    noisy : Rows
    default : bool
        Whether the network is the default one. Others may be made for large integers (images, tokens), and for values
        that are a little larger.
    """
    rows = _first_rows(noisy)
    if rows is None or rows.dtype.kind not in ("biuf" if default else "f"):
        return
    values = np.asarray(rows.data if issparse(rows) else rows, dtype=np.float64)
    size = float(np.linalg.norm(values) / np.sqrt(np.prod(rows.shape)))
    if size > (_LARGEST_SIZE if default else _LARGEST_SIZE_OF_OTHERS):
        network = "the default network" if default else "a network that does not scale its inputs itself"
        warnings.warn(
            f"values of X are large (root mean square {size:.3g}): {network} may learn one class alone. "
            "Scale X, for example by make_pipeline(StandardScaler(), classifier); images to 0..1.",
            UserWarning,
            stacklevel=3,
        )


def _first_rows(noisy: Rows) -> Any:
    """Some inputs as they are given; of a Dataset those of the first tensor, or None."""
    rows = noisy.take(np.arange(min(len(noisy), _SIZED_ROWS)))
    if not isinstance(noisy, DatasetRows):
        return rows.X
    if not isinstance(noisy.source, TensorDataset):
        return None
    tensor = noisy.source.tensors[0][rows.index]
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy(force=True)
