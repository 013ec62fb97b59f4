"""The question whether one T is enough, asked of a classifier."""

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..transition import ClassConditionalTest, class_conditional_test
from ._data import is_dataset, label_codes, validate_rows

# columns of a table that are still worth testing beside the posteriors
_MOST_COLUMNS = 50


class ClassConditionalMixin:
    """Test of one T, for classifiers that assume it."""

    def class_conditional_test(
        self: Any,
        X_meta: Any,
        y_meta: ArrayLike,
        y_meta_noisy: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        features: ArrayLike | None = None,
        n_permutations: int = 999,
        random_state: Any = None,
    ) -> ClassConditionalTest:
        """Test whether one T holds for all rows, by rows whose true and noisy labels are both known.

        By default it is tested against this classifier's posteriors and, for a table of at most 50 columns, against
        the columns too; with `groups` or `features`, against these alone.

        The p-value is exact for rows that the classifier was trained on with their true labels (`y_meta`), with
        `y_meta_noisy` or without: it enters a fit as counts alone. It is not if these rows were among the noisy ones
        as well (their posteriors may then repeat their noisy labels), nor for rows chosen by their noisy labels.

        Parameters
        ----------
        X_meta : array-like of shape (n_meta, ...) or torch Dataset
        y_meta : array-like of shape (n_meta,)
            True labels.
        y_meta_noisy : array-like of shape (n_meta,)
            Noisy labels of the same rows.
        groups : array-like of shape (n_meta,), optional
            Group of each row, of any kind: source, annotator, batch.
        features : array-like of shape (n_meta, d), optional
            Numbers that T may depend on.
        n_permutations : int, default=999
        random_state : int, RandomState, Generator or None
            Source of the permutations.

        Returns
        -------
        ClassConditionalTest
            ``print`` it: it says what was found, and what follows.

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
        y, y_noisy = (
            label_codes(labels, self.classes_, len(X), name)
            for labels, name in ((y_meta, "y_meta"), (y_meta_noisy, "y_meta_noisy"))
        )
        proba = None
        if groups is None and features is None:
            proba = self.predict_proba(X_meta)
            features = None if is_dataset(X) or X.ndim > 2 or X.shape[1] > _MOST_COLUMNS else X
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
