"""Test of a classifier's assumption that one T holds for all rows."""

from typing import Any

from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted
from torch.utils.data import Dataset

from ..nets import as_rows
from ..transition import ClassConditionalTest, RandomState, class_conditional_test
from ._data import Samples, validate_rows
from ._data_warnings import names_of_rows
from ._labels import label_codes

# columns of a wider table are not tested by default: they would leave little power; a choice, not measured
_MOST_COLUMNS = 50


class ClassConditionalMixin:
    """Method that tests whether one T holds for all rows."""

    def class_conditional_test(
        self: Any,
        X_meta: Samples,
        y_meta: ArrayLike,
        y_meta_noisy: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        features: ArrayLike | None = None,
        n_permutations: int = 999,
        random_state: RandomState = None,
    ) -> ClassConditionalTest:
        """Test whether one T holds for all rows, with rows whose true and noisy labels are both known.

        The default tests whether, given the true label, the noisy labels depend on this classifier's posteriors or, for
        a table of at most 50 columns, on the columns. With `groups` or `features` it tests dependence on these alone.

        The p-value is exact for clean rows that the classifier was trained on, also if `fit` knew their noisy labels
        (`trusted` with `y_meta`, or `y_meta_noisy`), which it uses as counts only. It is not exact if the same rows
        were among the noisy rows of `fit` (the classifier may have memorised their noisy labels), nor for rows chosen
        by their noisy labels.

        Parameters
        ----------
        X_meta : {array-like, sparse matrix} of shape (n_meta, ...) or torch Dataset
            Clean rows, drawn at random.
        y_meta : array-like of shape (n_meta,)
            True labels.
        y_meta_noisy : array-like of shape (n_meta,)
            Noisy labels of the same rows.
        groups : array-like of shape (n_meta,), optional
            Group of each row, such as its source, annotator or batch.
        features : array-like of shape (n_meta, d), optional
            Numbers that T may depend on.
        n_permutations : int, default=999
            How often the labels are permuted; the smallest p-value is 1 / (n_permutations + 1).
        random_state : int, RandomState, Generator or None
            Source of the permutations.

        Returns
        -------
        ClassConditionalTest
            ``print`` shows the result in words, and what follows from it.

        Raises
        ------
        ValueError
            Without `y_meta_noisy`, for labels that are not in `classes_`, or if no class has two rows with different
            noisy labels.

        See Also
        --------
        noisytransition.transition.class_conditional_test : The statistics, and how they are combined.
        """
        check_is_fitted(self, "net_")
        if y_meta_noisy is None:
            raise ValueError(
                "y_meta_noisy is None: the test compares the noisy labels of clean rows with their true ones; pass "
                "class_conditional_test(X_meta, y_meta, y_meta_noisy). Rows with true labels alone cannot say whether "
                "T differs between rows."
            )
        X = validate_rows(self, X_meta, reset=False)
        n, names = len(as_rows(X)), names_of_rows(X_meta, y_meta)
        y, y_noisy = (
            label_codes(labels, self.classes_, n, name, names=names, rows="X_meta")
            for labels, name in ((y_meta, "y_meta"), (y_meta_noisy, "y_meta_noisy"))
        )
        proba = None
        if groups is None and features is None:
            proba = self.predict_proba(X_meta)
            features = _columns(X)
        found = class_conditional_test(
            y,
            y_noisy,
            groups=groups,
            features=features,
            proba=proba,
            n_permutations=n_permutations,
            random_state=random_state,
        )
        return found._replace(classes=tuple(self.classes_.tolist()))


def _columns(X: Any) -> Any:
    """Columns of a table that is not too wide, or None."""
    if isinstance(X, Dataset) or X.ndim > 2 or X.shape[1] > _MOST_COLUMNS:
        return None
    return X.toarray() if issparse(X) else X
