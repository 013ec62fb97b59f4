"""Model selection with noisy labels: cross-validation on clean rows, and a scorer of T."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from .transition import transition_error
from .transition._checks import as_array, check_count, check_mask, check_transition_matrix
from .transition._labels import in_class_order, of_one_type


class TrustedKFold(BaseCrossValidator):
    """Stratified folds of the trusted rows; untrusted rows are in every training set and in no test set.

    Scores are then those of held-out *clean* rows. `groups` is the mask of trusted rows. With metadata routing,
    ``fit(X, y, trusted=mask)`` is enough; without it, pass ``groups=mask, trusted=mask``.

    Searches score against `y`, which must have the true labels of the trusted rows then; pass their noisy labels as
    `y_meta_noisy`, one for each row. With metadata routing, the accuracy (the default of searches) is also right for
    ``fit(X, y_noisy, trusted=mask, y_meta=labels)`` with a label for each row.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. A class with fewer trusted rows than this is missing in some folds.
    shuffle : bool, default=False
        Shuffle the trusted rows of each class before splitting.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling; with ``shuffle=False`` an error.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition import TrustedKFold
    >>> y, trusted = np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1, 1, 1, 0, 0], dtype=bool)
    >>> for train, test in TrustedKFold(2).split(y[:, None], y, trusted):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 4 5] [2 3]
    """

    # with metadata routing the splitter gets the mask that `fit` gets
    __metadata_request__split = {"groups": "trusted"}  # noqa: RUF012

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
        """
        return self.n_splits

    def split(
        self, X: object, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield (train, test) indices.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Ignored.
        y : array-like of shape (n_samples,)
            Labels; those of trusted rows stratify the folds.
        groups : array-like of shape (n_samples,) of bool
            Marks the trusted rows.

        Raises
        ------
        ValueError
            If the mask is missing or is no mask of the rows of `y`, if there are fewer trusted rows than folds, or if
            `random_state` is given without `shuffle`.
        """
        if groups is None or y is None:
            raise ValueError(
                "TrustedKFold needs y, and the mask of trusted rows as groups=. Where no groups= can be given, as in "
                "CalibratedClassifierCV, sklearn.set_config(enable_metadata_routing=True) makes "
                "fit(X, y, trusted=mask) enough."
            )
        check_count(self.n_splits, 2, "n_splits")
        y = as_array(y, "y")
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}; give one label per row.")
        mask = check_mask(groups, len(y), "groups")
        trusted, untrusted = np.flatnonzero(mask), np.flatnonzero(~mask)
        if len(trusted) < self.n_splits:
            raise ValueError(f"{len(trusted)} trusted rows cannot make n_splits={self.n_splits} folds.")
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for train, test in folds.split(trusted, of_one_type(y[trusted])):
            yield np.sort(np.concatenate([trusted[train], untrusted])), trusted[test]


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
