"""Method of a classifier with T that reports what it knows of the noise."""

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch.utils.data import Dataset

from ..nets import DatasetRows, Rows, as_rows
from ..report import Clean, Fitted, Judged, NoiseReport, make_facts, sample_facts
from ..transition import (
    ClassConditionalTest,
    RandomState,
    blocks_of_rows,
    check_count,
    check_probabilities,
    class_conditional_test,
    is_number,
    label_posterior,
)
from ._data import Samples, label_codes, validate_rows
from ._describe import versions

# entries of posteriors that are computed at once: 32 MB. A choice, not measured
_BLOCK = 2**22
# longest text of a parameter
_LONGEST = 200


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
        precision: float = 0.05,
        max_rows: int = 200,
        max_classes: int = 50,
        title: str = "Noise report",
        random_state: RandomState = 0,
    ) -> NoiseReport:
        """Report the noise in words, pictures and numbers: a page for notebooks, HTML, Markdown and JSON.

        It has the share of wrong labels, T with its error bars, the most probable flips, classes at risk, the
        calibration of the classifier on clean rows, the labels that are most probably wrong with a proposal for each, a
        test of whether one T is enough, and how many rows to verify. Where something is missing, it says why.

        The interval of the share of wrong labels comes from the intervals of T's diagonal, whose errors are taken as
        independent between the classes. Intervals of counts are those of Clopper and Pearson.

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
        precision : float in (0, 0.5), default=0.05
            Half width of the interval of a class's noise rate that the number of rows to verify is given for.
        max_rows : int, default=200
            Rows that are listed.
        max_classes : int, default=50
            Classes that are listed, and drawn: those with the most noise.
        title : str, default="Noise report"
            Heading of the page.
        random_state : int, RandomState, Generator or None, default=0
            Source of the permutations of `class_conditional_test`.

        Returns
        -------
        NoiseReport
            With `save`, `to_html`, `to_markdown`, `to_json` and `facts`. Rows have the names of the index of X or
            y_noisy if that is a data frame or Series, else their positions.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For labels that are not in `classes_`, arrays that do not fit each other, or an option out of its range.

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
        _check_options(level, precision, max_rows, max_classes)
        _check_forms(X_meta, y_meta, y_meta_noisy)
        rows = as_rows(validate_rows(self, X, reset=False))
        given = label_codes(y_noisy, self.classes_, len(rows))
        if proba is not None:
            proba = _checked_proba(proba, len(rows), len(self.classes_))
        display_rows = _checked_display(X if display_rows is None else display_rows, len(rows))
        judged = _judged(self, X, rows, given, proba)
        listed = judged.issues(max_rows)
        return NoiseReport(
            make_facts(
                _fitted(self, level),
                judged,
                None if X_meta is None else _clean(self, rows, X_meta, y_meta, y_meta_noisy, random_state),
                sample_facts(display_rows, listed.tolist(), getattr(self, "feature_names_in_", None)),
                _index(X, y_noisy, listed),
                level=level,
                precision=precision,
                max_classes=max_classes,
                title=str(title),
                created=datetime.now().astimezone().isoformat(timespec="seconds"),
            )
        )


# ---------------------------------------------------------------------------- what is given
def _check_options(level: float, precision: float, max_rows: int, max_classes: int) -> None:
    for value, name, most in (level, "level", 1), (precision, "precision", 0.5):
        if not is_number(value) or not 0 < value < most:
            raise ValueError(f"{name}={value!r}; give a number between 0 and {most}.")
    check_count(max_rows, 0, "max_rows")
    check_count(max_classes, 1, "max_classes")


def _check_forms(X_meta: object, y_meta: object, y_meta_noisy: object) -> None:
    if (X_meta is None) != (y_meta is None):
        raise ValueError("X_meta and y_meta go together, and one was given alone: pass clean rows and their labels.")
    if X_meta is None and y_meta_noisy is not None:
        raise ValueError(
            "y_meta_noisy has noisy labels of clean rows, but there is no clean row: pass X_meta and y_meta."
        )


def _checked_proba(proba: ArrayLike, n: int, c: int) -> NDArray[np.float64]:
    found = check_probabilities(proba, c, "proba")
    if len(found) != n:
        raise ValueError(
            f"proba has {len(found)} rows and X has {n}; give probabilities of each row of X, in its order. "
            "(oof_proba_ has the rows of fit without the clean ones.)"
        )
    return found


def _checked_display(display_rows: Any, n: int) -> Any:
    """Samples that can be taken one by one: arrays of what only looks like one."""
    known = isinstance(display_rows, Dataset | list | tuple | np.ndarray)
    if not known and not hasattr(display_rows, "iloc") and not hasattr(display_rows, "tocsr"):
        display_rows = np.asarray(display_rows)
    shape = getattr(display_rows, "shape", None)
    if (length := shape[0] if shape else len(display_rows)) != n:
        raise ValueError(f"display_rows has {length} entries for {n} rows of X; give one for each row.")
    return display_rows


def _index(X: Any, y_noisy: Any, listed: NDArray[np.intp]) -> list:
    """Names of the listed rows."""
    named = next((given.index for given in (X, y_noisy) if hasattr(given, "iloc")), None)
    return listed.tolist() if named is None else list(named[listed])


# ---------------------------------------------------------------------------- what the classifier says
def _fitted(clf: Any, level: float) -> Fitted:
    parameters = {name: repr(value)[:_LONGEST] for name, value in sorted(clf.get_params(deep=False).items())}
    return Fitted(
        type(clf).__name__,
        clf.classes_.tolist(),
        clf.transition_matrix_,
        clf.class_counts_,
        _bars(clf, level),
        getattr(clf, "diagnostics_", {}),
        {"parameters": parameters, "versions": versions()},
    )


def _bars(clf: Any, level: float) -> tuple[NDArray, NDArray] | str:
    """Error bars of T, or why there are none."""
    try:
        return clf.transition_interval(level)
    except ValueError as error:
        return f"There are no intervals: {error}"


def _judged(clf: Any, X: Samples, rows: Any, given: NDArray[np.intp], proba: NDArray | None) -> Judged:
    """Posteriors of all rows, of which only what is needed is kept."""
    quality, certainty = np.empty(len(given)), np.empty(len(given))
    proposed, predicted = np.empty(len(given), dtype=np.intp), np.empty(len(given), dtype=np.intp)
    for block in blocks_of_rows(len(given), len(clf.classes_), _BLOCK):
        f = clf.predict_proba(_part(X, rows, block)) if proba is None else proba[block]
        posterior = label_posterior(f, given[block], clf.transition_matrix_)
        predicted[block], proposed[block] = f.argmax(axis=1), posterior.argmax(axis=1)
        quality[block], certainty[block] = posterior[np.arange(len(f)), given[block]], posterior.max(axis=1)
    return Judged(given, quality, proposed, certainty, float((predicted == given).mean()))


def _part(X: Any, rows: Any, block: slice) -> Any:
    """Some rows; those of a data frame with the names of its columns."""
    if block == slice(0, len(rows)):
        return X
    return _safe_indexing(X, block) if hasattr(X, "columns") else rows.take(np.arange(block.start, block.stop)).X


def _clean(clf: Any, rows: Rows, X_meta: Samples, y_meta: Any, y_meta_noisy: Any, random_state: RandomState) -> Clean:
    n = len(clean_rows := as_rows(validate_rows(clf, X_meta, reset=False, name="X_meta")))
    y = label_codes(y_meta, clf.classes_, n, "y_meta")
    noisy = None if y_meta_noisy is None else label_codes(y_meta_noisy, clf.classes_, n, "y_meta_noisy")
    proba = clf.predict_proba(X_meta)
    return Clean(proba, y, noisy, _test(proba, y, noisy, random_state), _n_among(clean_rows, rows))


def _n_among(some: Rows, rows: Rows) -> int:
    """How many rows have the inputs of one of others; of a Dataset it is not known without loading it."""
    if isinstance(some, DatasetRows) or isinstance(rows, DatasetRows):
        return 0
    wanted, found = [row.tobytes() for row in some.dense().astype(np.float64)], set()
    for block in blocks_of_rows(len(rows), int(np.prod(some.source.shape[1:])), _BLOCK):
        inputs = rows.take(np.arange(block.start, block.stop)).dense().astype(np.float64)
        found |= {row.tobytes() for row in inputs}.intersection(wanted)
    return sum(row in found for row in wanted)


def _test(proba: NDArray, y: NDArray, noisy: NDArray | None, random_state: Any) -> ClassConditionalTest | str:
    """Whether one T is enough, or why this cannot be tested."""
    if noisy is None:
        return "Not tested: it needs the noisy labels of the clean rows; pass y_meta_noisy."
    try:
        return class_conditional_test(y, noisy, proba=proba, random_state=random_state)
    except ValueError as error:
        return f"Not tested: {error}"
