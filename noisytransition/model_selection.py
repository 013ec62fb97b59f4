"""Model selection with noisy labels: cross-validation and scoring on verified samples, and a scorer of T."""

from __future__ import annotations
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples

from .data._read import rows_to_score
from .labels._arrays import in_class_order
from .labels._columns import VERIFIED, split_columns
from .labels._read import read_labels
from .transition import transition_error
from .transition._checks import check_transition_matrix


class VerifiedKFold(BaseCrossValidator):
    """Stratified k-fold cross-validator of the verified samples.

    All other samples are in every training set and in no test set, so that scores are computed on held-out verified
    samples. Pass the verified labels in a data frame,
    ``cross_val_score(clf, X, df[["label", "verified"]], cv=VerifiedKFold(3))``, or as `y_verified` by metadata routing.
    Samples of a group, given as `groups` or as a column "group" of the data frame, are all in the training set, or not.
    `StackingClassifier` and `cross_val_predict` predict all samples: use a shuffled `StratifiedKFold` for them.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. A class with fewer verified samples than folds is missing in some folds; at
        least one class needs as many.
    shuffle : bool, default=False
        Whether to shuffle the verified samples of each class before splitting.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling. Raises an error if ``shuffle=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition import VerifiedKFold
    >>> y, checked = np.array([0, 1, 0, 1, 0, 1]), [0, 1, 0, 0, None, None]
    >>> for train, test in VerifiedKFold(2).split(y[:, None], y, y_verified=checked):
    ...     print(train, test)
    [1 4 3 5] [0 2]
    [0 4 2 5] [1 3]
    """

    # metadata routing passes the argument of `fit` to the splitter
    __metadata_request__split = {"y_verified": True, "groups": True}  # noqa: RUF012

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None, y_verified: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups, y_verified : object
            Ignored.
        """
        return self.n_splits

    def split(
        self,
        X: object,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        y_verified: ArrayLike | None = None,
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield training and test indices of each fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Ignored.
        y : data frame, or array-like of shape (n_samples,)
            Noisy labels, as in `fit`; a data frame has a column "verified".
        groups : array-like of shape (n_samples,), optional
            Group of each sample, as in `fit`.
        y_verified : array-like of shape (n_samples,), optional
            True labels of verified samples, as in `fit`. The folds are stratified by these labels.
        """
        columns = split_columns(y, y_verified, groups=groups)
        if columns.verified is None:
            advice = f"a column {VERIFIED!r} of y, or y_verified after set_config(enable_metadata_routing=True)"
            raise ValueError(f"VerifiedKFold requires verified labels. Pass {advice}.")
        labels = read_labels(columns, _num_samples(columns.verified))
        verified = np.flatnonzero(labels.is_clean)
        kind = StratifiedKFold if labels.groups is None else StratifiedGroupKFold
        folds = kind(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        verified_groups = None if labels.groups is None else labels.groups[verified]
        if verified_groups is not None and (n := len(np.unique(verified_groups))) < self.n_splits:
            raise ValueError(f"n_splits={self.n_splits}, but samples of {n} groups are verified. Pass fewer splits.")
        codes = np.arange(len(labels.true)) if labels.groups is None else labels.groups
        for train, test in folds.split(verified, labels.clean, verified_groups):
            others = np.flatnonzero(~labels.is_clean & ~np.isin(codes, codes[verified[test]]))
            # `learning_curve` takes the first indices, so mix verified and other samples in proportion
            place = np.concatenate([(np.arange(n) + 0.5) / n for n in (len(train), len(others))])
            yield np.concatenate([verified[train], others])[place.argsort(kind="stable")], verified[test]


class _VerifiedScorer:
    """Scorer of verified samples; a class, because worker processes cannot unpickle a closure."""

    def __init__(self, scoring: Any) -> None:
        self.scoring = scoring or "accuracy"

    def __call__(self, estimator: Any, X: Any, y: Any = None, *, y_verified: Any = None) -> float:
        X, labels, weights = rows_to_score(inner_classifier(estimator), X, y, y_verified)
        keywords = {} if weights is None else {"sample_weight": weights}
        try:
            return float(check_scoring(estimator, self.scoring)(estimator, X, labels, **keywords))
        except TypeError as error:
            if weights is not None:
                error.add_note("The verified samples have weights, so the metric must accept sample_weight.")
            raise

    def get_metadata_routing(self) -> MetadataRequest:
        """Request the verified labels."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="y_verified", alias=True)
        return request


def make_verified_scorer(scoring: Any) -> _VerifiedScorer:
    """Make a scorer that evaluates only the verified samples.

    Parameters
    ----------
    scoring : str, callable or None
        Name in `sklearn.metrics.get_scorer_names`, such as "balanced_accuracy", or a scorer. None: "accuracy".

    Returns
    -------
    callable
        ``scorer(estimator, X, y) -> float`` with y as in `fit`. Without verified labels, it evaluates all samples.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> from noisytransition import make_verified_scorer
    >>> X, labels = np.zeros((4, 1)), pd.DataFrame({"label": [1, 1, 1, 1], "verified": [1, 0, 0, None]})
    >>> make_verified_scorer("accuracy")(DummyClassifier().fit(X, labels["label"]), X, labels)
    0.333...
    """
    get_scorer(scoring)  # raises for an unknown name
    return _VerifiedScorer(scoring)


def _transition_score(T_true: Any, estimator: object, X: object = None, y: object = None, **kwargs: Any) -> float:
    fitted = inner_classifier(estimator)
    return -transition_error(in_class_order(T_true, getattr(fitted, "classes_", None)), fitted.transition_matrix_)


def make_transition_scorer(T_true: ArrayLike) -> Callable[..., float]:
    """Make a scorer that returns the negative `transition_error` of a fitted classifier.

    Parameters
    ----------
    T_true : array-like of shape (n_classes, n_classes)
        True noise transition matrix T: entry (i, j) is P(noisy = j | true = i), in the order of `classes_`. A data
        frame with class names can have them in any order.

    Returns
    -------
    callable
        ``scorer(estimator, X, y) -> float`` for a classifier, Pipeline or search.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from noisytransition import make_transition_scorer
    >>> fitted = SimpleNamespace(transition_matrix_=[[1, 0], [0, 1]])
    >>> make_transition_scorer([[0.6, 0.4], [0, 1]])(fitted)
    -0.4
    """
    check_transition_matrix(T_true, name="T_true")
    return partial(_transition_score, T_true)


def inner_classifier(estimator: object) -> Any:
    """Classifier in (nested) Pipelines and searches, or the estimator itself."""
    if hasattr(estimator, "steps"):
        return inner_classifier(estimator.steps[-1][1])
    if hasattr(estimator, "best_estimator_"):
        return inner_classifier(estimator.best_estimator_)
    return estimator
