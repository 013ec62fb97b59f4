"""Methods of a classifier with T that find and replace wrong labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..data._read import Samples, label_codes, validate_rows
from ..transition import find_label_issues, label_posterior, label_quality, relabel
from ..transition._checks import check_rate
from ..transition._labels import as_positions, like_series


class LabelIssuesMixin:
    """Methods of a classifier with T that combine its posterior of a row with the row's noisy label."""

    classes_: NDArray
    transition_matrix_: NDArray[np.float64]

    def label_posterior(self, X: Samples, y_noisy: ArrayLike) -> NDArray[np.float64]:
        """P(true class | x, noisy label), by Bayes' rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows whose labels are to be judged.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.
        """
        return label_posterior(*self._arguments(X, y_noisy))

    def label_quality(self, X: Samples, y_noisy: ArrayLike) -> Any:
        """P(true class = noisy label | x, noisy label): the probability that each label is right.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows whose labels are to be judged.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples,), or Series
            A pandas Series with the same index if `y_noisy` is one.
        """
        return like_series(label_quality(*self._arguments(X, y_noisy)), y_noisy, "label_quality")

    def find_label_issues(self, X: Samples, y_noisy: ArrayLike, *, threshold: float = 0.5) -> Any:
        """Find rows whose label is probably wrong, the most probably wrong first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows whose labels are to be judged.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.
        threshold : float in [0, 1], default=0.5
            Rows with a `label_quality` below this are returned; 0.5: labels that are more probably wrong than right.

        Returns
        -------
        ndarray of int, shape (n_issues,), or Series
            Positions of rows, in ascending order of `label_quality`. If `y_noisy` is a pandas Series, a Series of these
            positions that has the index of these rows: ``X.iloc[issues]`` is ``X.loc[issues.index]``.
        """
        check_rate(threshold, "threshold")
        return as_positions(find_label_issues(*self._arguments(X, y_noisy), threshold=threshold), y_noisy)

    def relabel(self, X: Samples, y_noisy: ArrayLike, *, threshold: float = 0.9) -> Any:
        """Replace labels whose true class is nearly certain.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows whose labels are to be judged.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.
        threshold : float in [0, 1], default=0.9
            A row gets its most probable true class if `label_posterior` of that class is at least this.

        Returns
        -------
        ndarray of shape (n_samples,), or Series
            Labels of the kind of `classes_`; rows below the threshold keep theirs. A pandas Series with the same index
            and name if `y_noisy` is one.
        """
        check_rate(threshold, "threshold")
        codes = relabel(*self._arguments(X, y_noisy), threshold=threshold)
        return like_series(self.classes_[codes], y_noisy, getattr(y_noisy, "name", None))

    def _arguments(self: Any, X: Samples, y_noisy: ArrayLike) -> tuple[NDArray, NDArray[np.intp], NDArray[np.float64]]:
        """Posteriors of the classifier, labels as indices, and T; labels are validated first."""
        check_is_fitted(self, "transition_matrix_")
        rows = validate_rows(self, X, reset=False)
        codes = label_codes(y_noisy, self.classes_, len(rows))
        return self.predict_proba(X), codes, self.transition_matrix_
