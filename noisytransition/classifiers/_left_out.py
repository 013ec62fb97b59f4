"""Rows that are left out of a fit: those that the user says have no label, and those without weight."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_consistent_length
from torch.utils.data import Dataset, Subset

from ..transition import check_mask
from ._data import Samples, are_samples
from ._labels import are_missing, as_column, as_given, is_missing, labels_of

#: arguments of `fit` by name, that may have one entry for each row of X
OfRows = dict[str, Any]


def labelled_rows(unlabeled: Any, X: Samples, y: ArrayLike | None, of_rows: OfRows) -> tuple[Any, Any, OfRows]:
    """Leave out the rows whose entry of y is `unlabeled`, in all arguments of `fit` that have one entry for each row.

    Parameters
    ----------
    unlabeled : label, None or NaN
        NaN stands for all missing values: None, NaN, NaT and pandas' NA.
    X, y
        As in `fit`.
    of_rows : dict
        ``trusted``, ``y_meta``, ``y_meta_noisy`` and others, as in `fit`.

    Returns
    -------
    X, y, of_rows

    Raises
    ------
    ValueError
        If a trusted row has no label.
    """
    y = labels_of(X, "X") if y is None and (isinstance(X, Dataset) or are_samples(X)) else y
    if y is None:
        return X, y, of_rows  # refused later
    without = _marked(y, unlabeled)
    if of_rows["trusted"] is not None:
        mask = check_mask(as_column(of_rows["trusted"]), len(without), "trusted")
        if among := int((mask & without).sum()):
            raise ValueError(
                f"{among} trusted rows have no label in y (unlabeled={unlabeled!r}): leave them out of trusted; or "
                "give all verified rows as meta=(X_meta, y_meta), which needs no noisy labels of them."
            )
    return taken(np.flatnonzero(~without), X, y, of_rows)


def taken(keep: NDArray[np.intp], X: Any, y: Any, of_rows: OfRows) -> tuple[Any, Any, OfRows]:
    """Rows at these positions, and what belongs to them."""
    n, given = len(y), of_rows["trusted"] is not None  # else y_meta is not of rows of X
    if not isinstance(X, Dataset):
        check_consistent_length(X, y)

    def cut(name: str, value: Any) -> Any:
        is_cut = value is not None and len(value) == n and (given or not name.startswith("y_meta"))
        return _safe_indexing(value, keep) if is_cut else value

    X = X.tocsr() if issparse(X) else X  # not every format has rows
    rows = Subset(X, keep.tolist()) if isinstance(X, Dataset) else _safe_indexing(X, keep)
    return rows, _safe_indexing(y, keep), {name: cut(name, value) for name, value in of_rows.items()}


def _marked(y: Any, unlabeled: Any) -> NDArray[np.bool_]:
    """Rows whose label is the mark."""
    if np.ndim(unlabeled):
        raise ValueError(f"unlabeled={unlabeled!r}; give one label, that of the rows which have none.")
    labels = as_given(y, "y").ravel()
    if is_missing(unlabeled):
        return are_missing(labels)
    marked = np.array([type(label == unlabeled) in (bool, np.bool_) and label == unlabeled for label in labels])
    if not marked.any() and (
        alike := sorted({repr(label) for label in labels.tolist() if str(label) == str(unlabeled)})
    ):
        warnings.warn(
            f"unlabeled={unlabeled!r} is no label of y, which has {alike[0]}: it is taken as a class. Give "
            f"unlabeled={alike[0]} to leave its rows out.",
            UserWarning,
            stacklevel=4,
        )
    return marked
