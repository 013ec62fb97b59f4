"""Rows that the user says have no label: they are left out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from torch.utils.data import Dataset, Subset

from ..transition import check_mask
from ._data import Samples
from ._labels import are_missing, as_column, as_given, is_missing, labels_of


def labelled_rows(
    unlabeled: Any,
    X: Samples,
    y: ArrayLike | None,
    trusted: ArrayLike | None,
    y_meta: ArrayLike | None,
    y_meta_noisy: ArrayLike | None,
    groups: ArrayLike | None,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Leave out the rows whose entry of y is `unlabeled`, in all arguments of `fit` that have one entry for each row.

    Parameters
    ----------
    unlabeled : label, None or NaN
        NaN stands for all missing values: None, NaN, NaT and pandas' NA.
    X, y, trusted, y_meta, y_meta_noisy, groups
        As in `fit`.

    Returns
    -------
    X, y, trusted, y_meta, y_meta_noisy, groups

    Raises
    ------
    ValueError
        If a trusted row has no label.
    """
    y = labels_of(X, "X") if isinstance(X, Dataset) and y is None else y
    if y is None:
        return X, y, trusted, y_meta, y_meta_noisy, groups  # refused later
    without = _marked(y, unlabeled)
    keep = np.flatnonzero(~without)

    def cut(of_rows: Any) -> Any:
        return _safe_indexing(of_rows, keep) if of_rows is not None and len(of_rows) == len(without) else of_rows

    if isinstance(X, Dataset):
        rows = Subset(X, keep.tolist())
    else:
        check_consistent_length(X, y)
        rows = _safe_indexing(X, keep)
    if trusted is not None:  # else y_meta is not of rows of X
        trusted, y_meta, y_meta_noisy = _trusted(trusted, without, unlabeled), cut(y_meta), cut(y_meta_noisy)
    return rows, _safe_indexing(y, keep), trusted, y_meta, y_meta_noisy, cut(groups)


def _trusted(trusted: ArrayLike, without: NDArray[np.bool_], unlabeled: Any) -> NDArray[np.bool_]:
    """Mask of the trusted rows among those that have a label."""
    mask = check_mask(as_column(trusted), len(without), "trusted")
    if among := int((mask & without).sum()):
        raise ValueError(
            f"{among} trusted rows have no label in y (unlabeled={unlabeled!r}): leave them out of trusted; or give "
            "all verified rows as meta=(X_meta, y_meta), which needs no noisy labels of them."
        )
    return mask[~without]


def _marked(y: Any, unlabeled: Any) -> NDArray[np.bool_]:
    """Rows whose label is the mark."""
    labels = as_given(y, "y").ravel()
    if is_missing(unlabeled):
        return are_missing(labels)
    return np.array([type(label == unlabeled) in (bool, np.bool_) and label == unlabeled for label in labels])
