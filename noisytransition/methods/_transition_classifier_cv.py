"""Noisy labels for any scikit-learn classifier: its probabilities of held-out rows, and a noise model of them."""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..data._read import HOW_TO_PASS, read_labels, separate_rows
from ..fitting._cross_fitting import fold_of_rows
from ..transition._calibration import Calibration
from ..transition._checks import check_probabilities
from ..transition._diagnostics import warn_of_reasons, worse_than_labels
from ..transition._estimation import finite_log
from ..transition._fit import shrunk_gold_start
from ..transition._held_out import Candidate, one_candidate
from ..transition._labels import SourceLabels, in_class_order
from ..transition._noise_model import LabelNoiseModel
from ..transition._shrinkage import Prior, check_prior

# none of five ways to choose the round by verified rows or by the evidence is better than two rounds by 0.1 points of
# accuracy; the choice is there for noise that the noise model does not fit
_MOST_ROUNDS = 2


class TransitionClassifierCV(NoiseModelMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Train any scikit-learn classifier on noisy labels: boosting, a pipeline for text, a random forest.

    Some rows are verified, best rows that keep their noisy label. Clones of the estimator are trained::

        round 0     out-of-fold probabilities of clones that are trained on the noisy labels
        T           that of a `LabelNoiseModel` of these probabilities, noisy labels and verified labels
        round 1, 2  each row gets its most probable true label, P(true | x, noisy label), that probability as its
                    weight; verified rows have their true label. Clones are trained on these labels, and a noise model
                    calibrates their probabilities
        result      a clone trained on all rows with the labels of the last round, and its calibration

    With labels of several sources, round 0 is trained on the most frequent label of each row, and the posterior is that
    of x and all its labels. A round that predicts held-out verified rows worse than the one before, by a standard
    error, is not used and is the last. An estimator that takes no `sample_weight` is trained on the same labels without
    weights.

    Parameters
    ----------
    estimator : classifier
        With `fit` and `predict_proba`. It gets X as it is: text, missing values, data frames.
    cv : int, default=3
        Folds of the noisy rows and of the clean ones.
    transition_prior : "symmetric", array-like or None, default="symmetric"
        What T is shrunk towards: `prior` of `LabelNoiseModel`.
    meta_sampling : {"random", "stratified"}, default="random"
        How the clean rows were drawn, as in `LabelNoiseModel`.
    n_jobs : int, optional
        Folds that are trained at the same time, as in `joblib.Parallel`.
    random_state : int, RandomState instance or None, default=None
        Of the folds. The estimator has its own.

    Attributes
    ----------
    estimator_ : classifier
        The clone that was trained on all rows. Its probabilities are not calibrated.
    calibration_ : Calibration
        Map of its probabilities that `predict_proba` applies.
    round_losses_ : ndarray of shape (n_rounds,)
        Mean log-loss of held-out verified rows in each round.
    noise_model_ : LabelNoiseModel
        T and what it comes from: probabilities of clones that were trained on the noisy labels.
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Out-of-fold P(true class | x), calibrated; of all rows of X but those of weight 0.
    transition_matrix_, class_counts_, diagnostics_, classes_
        As in `EMTransitionClassifier`.
    n_features_in_, feature_names_in_
        Of `estimator_`, if it has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from noisytransition import TransitionClassifierCV, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y_noisy = X / 16, flip_labels(y, pair_noise(10, 0.4), random_state=0)
    >>> checked = np.where(np.arange(1000) % 10 == 0, y[:1000], -1)  # true labels; -1: not verified
    >>> clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
    >>> clf = clf.fit(X[:1000], y_noisy[:1000], y_verified=checked)
    >>> print(f"{clf.score(X[1000:], y[1000:]):.1f}")
    0.9
    """

    calibration_: Calibration

    __metadata_request__fit = dict.fromkeys(("y_verified", "meta", "X_meta", "y_meta", "y_meta_noisy", "sources"), True)
    __metadata_request__score = {"y_verified": True}  # noqa: RUF012

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "meta_sampling": [StrOptions({"random", "stratified"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: int = 3,
        transition_prior: Prior = "symmetric",
        meta_sampling: str = "random",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.transition_prior = transition_prior
        self.meta_sampling = meta_sampling
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Take what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    # ---- fit
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        meta: tuple[Any, ArrayLike] | None = None,
        X_meta: Any = None,
        y_meta: ArrayLike | None = None,
        y_meta_noisy: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> Self:
        """Train on noisy labels, with the help of clean rows: rows of X that were verified, or others.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of n_samples rows
            What the estimator takes.
        y : array-like of shape (n_samples,), or data frame
            Noisy labels of any kind; in a data frame with a column "verified", and one for each source.
        y_verified, meta, X_meta, y_meta, y_meta_noisy, sources
            True labels of verified rows, or other clean rows, and who gave each label, as in
            `EMTransitionClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows of X, which the estimator must take. T counts rows once.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For labels or parameters that cannot be trained on, before any training.
        """
        self._validate_params()
        if not any(hasattr(of, "predict_proba") for of in (self.estimator, type(self.estimator))):
            name = type(self.estimator).__name__
            raise ValueError(f"{name} has no predict_proba; give CalibratedClassifierCV({name}(...)).")
        rows = self._read(X, y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sample_weight, sources)
        first, best, losses = self._rounds(rows)
        self.estimator_ = _trained(self.estimator, rows, best.labels, best.weight)
        self.classes_, self.noise_model_, self.diagnostics_ = rows.classes, first.model, first.model.diagnostics_
        assert best.model.calibration_ is not None  # there are clean rows
        self.calibration_, self.round_losses_ = best.model.calibration_, losses
        of_noisy, of_clean = np.split(best.model.calibrate(best.proba), [rows.n_noisy])
        self.oof_proba_ = best.model.held_out_.in_order(of_noisy, of_clean)
        self.diagnostics_ |= worse_than_labels(of_clean, rows.true, rows.given[rows.n_noisy :])
        for name in {"n_features_in_", "feature_names_in_"} & set(dir(self.estimator_)):
            setattr(self, name, getattr(self.estimator_, name))
        warn_of_reasons(self.diagnostics_, stacklevel=3)
        return self

    def _read(
        self,
        X: Any,
        y: Any,
        y_verified: Any,
        meta: Any,
        X_meta: Any,
        y_meta: Any,
        y_meta_noisy: Any,
        sample_weight: Any,
        sources: Any,
    ) -> "_Rows":
        """Validate all but X, which the estimator judges."""
        y, y_verified, X_meta, y_meta, by_source = separate_rows(
            y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sources
        )
        n, n_meta = _num_samples(X), None if X_meta is None else _num_samples(X_meta)
        beside_X = {"n_meta": n_meta, "sample_weight": sample_weight, "by_source": by_source}
        labels = read_labels(n, y, y_verified, y_meta, y_meta_noisy, **beside_X)
        if labels.clean is None:
            raise ValueError(f"{type(self).__name__} needs clean data and got none. {HOW_TO_PASS}")
        check_prior(self.transition_prior, len(labels.classes), "transition_prior")
        if labels.weights is not None and _weight_name(self.estimator) is None:
            raise ValueError(f"{type(self.estimator).__name__} takes no sample_weight; leave sample_weight out.")
        n_noisy, n_clean = len(labels.noisy), len(labels.clean)
        for found, kind in (n_noisy, "noisy"), (n_clean, "clean"):
            if found < self.cv:
                raise ValueError(f"cv={self.cv} needs at least {self.cv} {kind} rows and got {found}; give fewer folds")
        beside = np.flatnonzero(labels.is_clean) if X_meta is None else n + np.arange(n_clean)
        order = np.concatenate([np.flatnonzero(labels.is_noisy), beside])
        of_clean = np.full(n_clean, -1) if labels.noisy_of_clean is None else labels.noisy_of_clean
        weight = np.ones(n_noisy) if labels.weights is None else labels.weights
        return _Rows(
            _safe_indexing(*indexable(_stacked(X, X_meta)), order),
            (order[:n_noisy], np.where(order < n, order, -1)[n_noisy:]),
            np.concatenate([labels.noisy, of_clean]),
            labels.clean,
            np.concatenate([weight, np.ones(n_clean)]),
            labels.classes,
            labels.by_source,
        )

    def _rounds(self, rows: "_Rows") -> tuple["_Round", "_Round", NDArray[np.float64]]:
        """Clean the labels, round by round: the first round, the best, and the mean losses of all."""
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        noisy = rows.given[: rows.n_noisy]
        folds = np.concatenate([fold_of_rows(labels, self.cv, random) for labels in (noisy, rows.true)])
        labels, weight, rounds = rows.given, rows.weight, []
        for k in range(1 + _MOST_ROUNDS):
            proba = np.empty((len(folds), len(rows.classes)))
            tasks = (delayed(_held_out_proba)(self.estimator, rows, labels, weight, folds == i) for i in range(self.cv))
            for i, of_fold in enumerate(Parallel(self.n_jobs)(tasks)):
                proba[folds == i] = of_fold
            model = self._noise_model(rows, proba)
            of_true = model.calibrate(proba[rows.n_noisy :])[np.arange(len(rows.true)), rows.true]
            rounds.append(_Round(labels, weight, proba, model, -finite_log(of_true)))
            rise = rounds[k].losses - rounds[k - 1].losses  # of round 0 to itself: 0
            if rise.mean() > rise.std() / len(rise) ** 0.5:
                break
            best, posterior = rounds[k], model.posterior_of_fit()
            labels = np.concatenate([posterior.argmax(axis=1), rows.true])
            weight = rows.weight * np.concatenate([posterior.max(axis=1), np.ones(len(rows.true))])
        return rounds[0], best, np.array([r.losses.mean() for r in rounds])

    def _noise_model(self, rows: "_Rows", proba: NDArray) -> LabelNoiseModel:
        """T and a calibration of these probabilities."""
        noisy, of_clean = np.split(rows.given, [rows.n_noisy])
        candidate = Candidate(0, *np.split(proba, [rows.n_noisy]))
        held_out = one_candidate(candidate, noisy, rows.true, of_clean, rows.positions)._replace(sources=rows.sources)
        model = LabelNoiseModel(
            prior=in_class_order(self.transition_prior, rows.classes), meta_sampling=self.meta_sampling
        )
        return model.fit_candidates(held_out, rows.classes, shrunk_gold_start(held_out))

    # ---- predict
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Posterior of the true class, calibrated.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of n_samples rows
            What the estimator takes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.
        """
        check_is_fitted(self, "estimator_")
        return self.calibration_(_proba(self.estimator_, X, self.classes_))

    # of any classifier with predict_proba and classes_
    predict = NoisyLabelClassifier.predict
    score = NoisyLabelClassifier.score


class _Rows(NamedTuple):
    """Noisy rows and then clean ones, with class indices as labels."""

    X: Any
    positions: tuple[NDArray[np.intp], NDArray[np.intp]]  # in X, of noisy rows and of clean ones; -1 beside X
    given: NDArray[np.intp]  # noisy labels of all rows, -1 where that of a clean row is not known
    true: NDArray[np.intp]  # true labels of the clean rows
    weight: NDArray[np.float64]
    classes: NDArray
    sources: SourceLabels | None  # of the rows of X, if there are several sources

    @property
    def n_noisy(self) -> int:
        return len(self.given) - len(self.true)


class _Round(NamedTuple):
    """Labels that clones were trained on, and what follows from their probabilities of held-out rows."""

    labels: NDArray[np.intp]
    weight: NDArray[np.float64]
    proba: NDArray[np.float64]
    model: LabelNoiseModel
    losses: NDArray[np.float64]  # log-losses of the clean rows


def _stacked(X: Any, X_meta: Any) -> Any:
    """Rows of both, as what X is."""
    if X_meta is None:
        return X
    if hasattr(X, "iloc"):
        if list(getattr(X_meta, "columns", ())) != list(getattr(X, "columns", ())) or not hasattr(X_meta, "iloc"):
            raise ValueError("X is a data frame or Series, and X_meta is none with the same columns; give both alike.")
        from pandas import concat

        return concat([X, X_meta], ignore_index=True)
    if sparse.issparse(X):
        return sparse.vstack([X, X_meta], format="csr")
    return [*X, *X_meta] if isinstance(X, list) else np.concatenate([np.asarray(X), np.asarray(X_meta)])


# ---------------------------------------------------------------------------- the estimator
def _held_out_proba(estimator: Any, rows: _Rows, labels: NDArray, weight: NDArray, out: NDArray) -> NDArray[np.float64]:
    """Probabilities of the rows that are held out."""
    trained = _trained(estimator, rows, np.where(out, -1, labels), weight)
    return _proba(trained, _safe_indexing(rows.X, np.flatnonzero(out)), rows.classes)


def _trained(estimator: Any, rows: _Rows, labels: NDArray, weight: NDArray) -> Any:
    """A clone trained on the rows that have a label, with weights if it takes them and they differ."""
    trained, name, used = clone(estimator), _weight_name(estimator), np.flatnonzero(labels >= 0)
    X, y, weight = _safe_indexing(rows.X, used), rows.classes[labels[used]], weight[used]
    if name is None or not np.ptp(weight):
        return trained.fit(X, y)
    with config_context(enable_metadata_routing=False):  # a pipeline would ask all its steps for requests
        return trained.fit(X, y, **{name: weight})


def _weight_name(estimator: Any) -> str | None:
    """Name by which `fit` takes weights of rows; of a pipeline, those of its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        of_last = _weight_name(last)
        return of_last and f"{name}__{of_last}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _proba(fitted: Any, X: Any, classes: NDArray) -> NDArray[np.float64]:
    """Probabilities of all classes, 0 for those that a fitted estimator does not know."""
    found = check_probabilities(fitted.predict_proba(X), len(fitted.classes_))
    proba = np.zeros((len(found), len(classes)))
    proba[:, np.searchsorted(classes, fitted.classes_)] = found
    return proba
