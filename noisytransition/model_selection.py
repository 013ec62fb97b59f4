"""Model selection with noisy labels: cross-validation and scores of verified rows, and a scorer of T."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples

from .data._read import rows_to_score
from .transition import transition_error
from .transition._checks import check_count, check_transition_matrix
from .transition._labels import VERIFIED, given_and_verified, has_minus_one, in_class_order, known_labels


class TrustedKFold(BaseCrossValidator):
    """Stratified folds of the verified rows; other rows are in every training set and in no test set.

    Scores are then those of held-out verified rows. A data frame of labels says which rows are verified,
    ``cross_val_score(clf, X, df[["label", "verified"]], cv=TrustedKFold(3))``, or with metadata routing `y_verified`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. A class with fewer verified rows than this is missing in some folds.
    shuffle : bool, default=False
        Shuffle the verified rows of each class before splitting.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling; with ``shuffle=False`` an error.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition import TrustedKFold
    >>> y, checked = np.array([0, 1, 0, 1, 0, 1]), [0, 1, 0, 0, None, None]
    >>> for train, test in TrustedKFold(2).split(y[:, None], y, y_verified=checked):
    ...     print(train, test)
    [1 4 3 5] [0 2]
    [0 4 2 5] [1 3]
    """

    # with metadata routing the splitter gets what `fit` gets
    __metadata_request__split = {"y_verified": True}  # noqa: RUF012

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: None = None, y_verified: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups, y_verified : object
            Ignored.

        Returns
        -------
        int
        """
        return self.n_splits

    def split(
        self, X: object, y: ArrayLike | None = None, groups: None = None, *, y_verified: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield (train, test) indices.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Ignored.
        y : data frame, or array-like of shape (n_samples,)
            Given labels, of several sources too, and a column "verified", as in `fit`; or given labels alone.
        groups : None
            There are none; part of scikit-learn's interface.
        y_verified : array-like of shape (n_samples,), optional
            True labels of verified rows, as in `fit`; they stratify the folds.

        Raises
        ------
        ValueError
            If nothing says which rows are verified, if there are fewer verified rows than folds, or if `random_state`
            is given without `shuffle`.
        """
        y, y_verified, *_ = given_and_verified(y, y_verified)
        if y_verified is None or groups is not None:
            raise ValueError(
                "TrustedKFold takes no groups=, and needs verified labels: give y as a data frame of given labels and "
                f"a column {VERIFIED!r}, or after sklearn.set_config(enable_metadata_routing=True) y_verified=."
            )
        check_count(self.n_splits, 2, "n_splits")
        n = _num_samples(y_verified)
        _, given = known_labels(y, n, "y", minus_one_is_missing=False)
        is_verified, labels = known_labels(y_verified, n, "y_verified", not has_minus_one(given))
        verified, others = np.flatnonzero(is_verified), np.flatnonzero(~is_verified)
        if len(verified) < self.n_splits:
            raise ValueError(f"{len(verified)} verified rows cannot make n_splits={self.n_splits} folds.")
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for train, test in folds.split(verified, labels):
            # `learning_curve` takes the first rows: verified ones are among them in proportion
            place = np.concatenate([(np.arange(n) + 0.5) / n for n in (len(train), len(others))])
            yield np.concatenate([verified[train], others])[place.argsort(kind="stable")], verified[test]


class _VerifiedScorer:
    """A class and not a closure, since worker processes must unpickle it."""

    def __init__(self, scoring: Any) -> None:
        self.scoring = scoring

    def __call__(self, estimator: Any, X: Any, y: Any = None, *, y_verified: Any = None) -> float:
        X, labels, weights = rows_to_score(inner_classifier(estimator), X, y, y_verified)
        given = {} if weights is None else {"sample_weight": weights}
        return float(get_scorer(self.scoring)(estimator, X, labels, **given))

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask for the verified labels that `fit` gets."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="y_verified", alias=True)
        return request

    def __repr__(self) -> str:
        return f"make_verified_scorer({self.scoring!r})"


def make_verified_scorer(scoring: Any) -> _VerifiedScorer:
    """Make a scorer of verified rows out of one of scikit-learn.

    Parameters
    ----------
    scoring : str or callable
        One of `sklearn.metrics.get_scorer_names`, such as "balanced_accuracy", or a scorer.

    Returns
    -------
    callable
        ``scorer(estimator, X, y) -> float``, picklable; y as in `fit`. Without verified labels, y has the labels of all
        rows.

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


class _TransitionScorer:
    """A class and not a closure, since worker processes must unpickle it."""

    def __init__(self, T_true: Any) -> None:
        self.T_true = T_true

    def __call__(self, estimator: object, X: object = None, y: object = None, **kwargs: Any) -> float:
        fitted = inner_classifier(estimator)
        if not hasattr(fitted, "transition_matrix_"):
            raise ValueError(
                f"{type(fitted).__name__} has no transition_matrix_: score a fitted classifier that learns one, "
                "a Pipeline that ends in one, or a search over one."
            )
        T = in_class_order(self.T_true, getattr(fitted, "classes_", None))
        return -transition_error(T, fitted.transition_matrix_)

    def __repr__(self) -> str:
        return f"make_transition_scorer(<{len(self.T_true)} classes>)"


def make_transition_scorer(T_true: ArrayLike) -> _TransitionScorer:
    """Make a scorer for searches: the negative error of a fitted classifier's T.

    Parameters
    ----------
    T_true : array-like of shape (n_classes, n_classes)
        Row i, column j is P(noisy = j | true = i), in the order of `classes_`. A data frame that names the classes is
        read by name.

    Returns
    -------
    callable
        ``scorer(estimator, X, y) -> float``, picklable; takes a classifier, a Pipeline or a search.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from noisytransition import make_transition_scorer
    >>> fitted = SimpleNamespace(transition_matrix_=[[1, 0], [0, 1]])
    >>> make_transition_scorer([[0.6, 0.4], [0, 1]])(fitted)
    -0.4
    """
    T = check_transition_matrix(T_true, name="T_true")
    return _TransitionScorer(T_true if hasattr(T_true, "columns") else T)


def inner_classifier(estimator: object) -> Any:
    """Last step of a Pipeline, best estimator of a search, however they are nested; else the estimator itself."""
    while True:
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
