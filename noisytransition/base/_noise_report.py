"""Method of a classifier with T that reports what it knows of the noise."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch.utils.data import Dataset

from ..data._read import Samples, label_codes, validate_rows
from ..report import NoiseReport
from ..report._facts import Clean, Judged, make_facts
from ..report._samples import sample_facts
from ..transition._checks import check_count, check_level, check_probabilities
from ..transition._posterior import posterior_blocks


class NoiseReportMixin:
    """Method that reports what a classifier with T knows of the noise."""

    def noise_report(
        self: Any,
        X: Samples,
        y_noisy: ArrayLike,
        X_meta: Samples | None = None,
        y_meta: ArrayLike | None = None,
        y_meta_noisy: ArrayLike | None = None,
        *,
        proba: ArrayLike | None = None,
        display_rows: Any = None,
        level: float = 0.9,
        max_rows: int = 200,
        title: str = "Noise report",
    ) -> NoiseReport:
        """Report the noise in words, pictures and numbers, for notebooks and as an HTML page.

        It has the share of wrong labels, T with its error bars, the most probable flips, classes at risk, the
        calibration of the classifier on clean rows, the labels that are most probably wrong with a proposal for each, a
        test of whether one T is enough, and how many rows to verify.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            The rows whose labels are to be judged, such as those of `fit`.
        y_noisy : array-like of shape (n_samples,)
            Their noisy labels, out of `classes_`.
        X_meta, y_meta : array-like of shape (n_meta, ...) and (n_meta,), optional
            Clean rows for the calibration. It says how good the classifier is only if `fit` has not seen them.
        y_meta_noisy : array-like of shape (n_meta,), optional
            Their noisy labels, for a share of wrong labels that is counted, and the test of one T.
        proba : array-like of shape (n_samples, n_classes), optional
            P(true class | x) of the rows of X from a classifier that was not trained on them, such as `oof_proba_` of
            `EMTransitionClassifier`. Default: `predict_proba`.
        display_rows : sequence of n_samples texts or images, or data frame, optional
            What to show of a row instead of X: the text behind its features, its image, its row of a data base.
        level : float in (0, 1), default=0.9
            Of all intervals.
        max_rows : int, default=200
            Rows that are listed.
        title : str, default="Noise report"
            Heading of the page.

        Returns
        -------
        NoiseReport
            With `save`, `to_html`, `words` and `facts`. Rows have the names of the index of X or y_noisy if that is a
            data frame or Series, else their positions.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from noisytransition import GLCClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y_noisy = X / 10, np.where(np.arange(150) % 5 == 0, 2, y)
        >>> clf = GLCClassifier(transition_init="count", max_epochs=5, random_state=0)
        >>> clf = clf.fit(X, y_noisy, trusted=np.arange(150) % 3 == 0, y_meta=y[::3])
        >>> print(clf.noise_report(X, y_noisy))
        About 17 % of the labels are wrong.
        The most probable flip: 0 is labelled 2 in 24 % of its rows.
        ...
        """
        check_is_fitted(self, "transition_matrix_")
        check_level(level)
        check_count(max_rows, 0, "max_rows")
        n = len(validate_rows(self, X, reset=False))
        given = label_codes(y_noisy, self.classes_, n)
        proba = self.predict_proba(X) if proba is None else check_probabilities(proba, len(self.classes_))
        display_rows = _as_sequence(X if display_rows is None else display_rows)
        for name, rows in ("proba", proba), ("display_rows", display_rows):
            if (length := rows.shape[0] if hasattr(rows, "shape") else len(rows)) != n:
                raise ValueError(f"{name} has {length} entries for {n} rows of X; give one for each row.")
        judged = _judged(proba, given, self.transition_matrix_)
        listed = judged.issues(max_rows)
        samples = sample_facts(display_rows, listed.tolist(), getattr(self, "feature_names_in_", None))
        clean = _clean(self, X_meta, y_meta, y_meta_noisy)
        index = _names(X, y_noisy, listed)
        return NoiseReport(make_facts(self, judged, clean, samples, index, level, str(title)))


def _names(X: Any, y_noisy: Any, listed: NDArray[np.intp]) -> list:
    """Names of the listed rows, by the index of a data frame or Series."""
    names = next((rows.index for rows in (X, y_noisy) if hasattr(rows, "iloc")), None)
    return listed.tolist() if names is None else list(names[listed])


def _as_sequence(rows: Any) -> Any:
    """Samples that can be taken one by one: arrays of what only looks like one."""
    known = isinstance(rows, Dataset | list | tuple | np.ndarray) or hasattr(rows, "iloc") or hasattr(rows, "tocsr")
    return rows if known else np.asarray(rows)


def _judged(proba: NDArray, given: NDArray[np.intp], T: NDArray) -> Judged:
    """Label posteriors of all rows, of which only what is needed is kept."""
    n = len(given)
    quality, proposed, certainty = np.empty(n), np.empty(n, dtype=np.intp), np.empty(n)
    for rows, posterior in posterior_blocks(proba, given, T):
        quality[rows] = posterior[np.arange(len(posterior)), given[rows]]
        proposed[rows], certainty[rows] = posterior.argmax(axis=1), posterior.max(axis=1)
    return Judged(given, quality, proposed, certainty, float((proba.argmax(axis=1) == given).mean()))


def _clean(clf: Any, X_meta: Any, y_meta: Any, y_meta_noisy: Any) -> Clean | None:
    if (X_meta is None) != (y_meta is None) or (X_meta is None and y_meta_noisy is not None):
        raise ValueError("X_meta, y_meta and y_meta_noisy go together: give clean rows with their labels.")
    if X_meta is None:
        return None
    n = len(validate_rows(clf, X_meta, reset=False, name="X_meta"))
    y = label_codes(y_meta, clf.classes_, n, "y_meta")
    noisy = None if y_meta_noisy is None else label_codes(y_meta_noisy, clf.classes_, n, "y_meta_noisy")
    return Clean(clf.predict_proba(X_meta), y, noisy)
