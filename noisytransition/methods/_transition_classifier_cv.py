"""Meta-estimator that trains any scikit-learn classifier on noisy labels."""

from __future__ import annotations
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
from ..data._warnings import warn_of_order
from ..fitting._checks import COUNT
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

# five rules that select the round by verified samples or by the evidence gained less than 0.1 points of accuracy over
# two fixed rounds; the early stop is for noise that the noise model does not fit
_MOST_ROUNDS = 2
_NO_PROBA = "{0} has no predict_proba. Pass a classifier or parameters with it, or CalibratedClassifierCV({0}(...))."


class TransitionClassifierCV(NoiseModelMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Train any scikit-learn classifier on noisy labels, such as gradient boosting or a text pipeline.

    Some samples must be verified, and should keep their noisy label. The steps of `fit` are::

        round 0     train clones on the noisy labels; predict out-of-fold probabilities
        T           fit a LabelNoiseModel to these probabilities, the noisy and the verified labels
        round 1, 2  relabel each sample with its most probable true class, weighted by P(true | x, noisy label);
                    verified samples get their true label. Train clones on these labels, and calibrate their
                    out-of-fold probabilities by a noise model
        result      a clone trained on all samples with the labels of the last round, and its calibration

    With several sources, round 0 uses the most frequent label of each sample, and P(true | x, all labels) replaces the
    posterior. A round that increases the out-of-fold log-loss on verified samples by one standard error is discarded,
    and no further round follows. An estimator without `sample_weight` is trained on the same labels without weights.

    Parameters
    ----------
    estimator : classifier
        Classifier with `fit` and `predict_proba`. It gets X unchanged, e.g. text, missing values or data frames.
    cv : int, default=3
        Number of folds of each round.
    transition_prior : "symmetric", array-like or None, default="symmetric"
        Matrix that T is shrunk towards: `prior` of `LabelNoiseModel`.
    meta_sampling : {"random", "stratified"}, default="random"
        How the clean samples were drawn, as in `LabelNoiseModel`.
    n_jobs : int, optional
        Number of folds trained in parallel by `joblib.Parallel`.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. Set the seed of the estimator separately.

    Attributes
    ----------
    estimator_ : classifier
        Clone trained on all samples. Its probabilities are not calibrated.
    calibration_ : Calibration
        Calibration that `predict_proba` applies to them.
    round_losses_ : ndarray of shape (n_rounds,)
        Mean out-of-fold log-loss on verified samples in each round; too low after round 0, since the labels of noisy
        samples then depend on all verified labels.
    noise_model_ : LabelNoiseModel
        Noise model of round 0, with T.
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Calibrated out-of-fold P(true class | x), without samples of weight 0.
    transition_matrix_, class_counts_, diagnostics_, classes_
        As in `EMTransitionClassifier`.
    n_features_in_, feature_names_in_
        Attributes of `estimator_`, if it has them.

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
        "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
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
        """Train on noisy labels, using verified samples of X or separate clean samples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame with n_samples rows
            Any input that the estimator accepts.
        y : array-like of shape (n_samples,), or data frame
            Noisy labels; as a data frame, one column of labels for each source, and a column "verified".
        y_verified, meta, X_meta, y_meta, y_meta_noisy, sources
            True labels of verified samples, separate clean samples, and the source of each label, as in
            `EMTransitionClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; the estimator must accept them. The estimate of T does not use them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels or parameters are not valid; raised before any training.
        """
        self._validate_params()
        if not any(hasattr(of, "predict_proba") for of in (self.estimator, type(self.estimator))):
            raise ValueError(_NO_PROBA.format(type(self.estimator).__name__))
        rows = self._read(X, y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sample_weight, sources)
        first, best, losses = self._rounds(rows)
        self.estimator_ = _trained(self.estimator, rows, best.labels, best.weight)
        self.classes_, self.noise_model_, self.diagnostics_ = rows.classes, first.model, first.model.diagnostics_
        assert best.model.calibration_ is not None  # set by clean samples
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
    ) -> _Rows:
        """Validate all inputs except X, which the estimator validates."""
        warn_of_order(X, y, y_verified)
        of_X, X_meta, y_meta = separate_rows(y, y_verified, meta, X_meta, y_meta, y_meta_noisy, sources)
        n, n_meta = _num_samples(X), None if X_meta is None else _num_samples(X_meta)
        labels = read_labels(n, of_X, y_meta, y_meta_noisy, n_meta=n_meta, sample_weight=sample_weight)
        if labels.clean is None:
            raise ValueError(f"{type(self).__name__} needs clean data, got none. {HOW_TO_PASS}")
        check_prior(self.transition_prior, len(labels.classes), "transition_prior")
        if labels.weights is not None and _weight_name(self.estimator) is None:
            raise ValueError(f"{type(self.estimator).__name__} does not accept sample_weight. Call fit without it.")
        n_noisy, n_clean = len(labels.noisy), len(labels.clean)
        for found, kind in (n_noisy, "noisy"), (n_clean, "clean"):
            if found < self.cv:
                raise ValueError(f"cv={self.cv} needs at least {self.cv} {kind} samples, got {found}. Use fewer folds.")
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
            labels.drawn,
        )

    def _rounds(self, rows: _Rows) -> tuple[_Round, _Round, NDArray[np.float64]]:
        """Relabel in rounds; return the first round, the best round, and the mean loss of each."""
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
            rise = rounds[k].losses - rounds[k - 1].losses  # 0 in round 0
            if rise.mean() > rise.std() / len(rise) ** 0.5:
                break
            best, posterior = rounds[k], model.posterior_of_fit()
            labels = np.concatenate([posterior.argmax(axis=1), rows.true])
            weight = rows.weight * np.concatenate([posterior.max(axis=1), np.ones(len(rows.true))])
        return rounds[0], best, np.array([r.losses.mean() for r in rounds])

    def _noise_model(self, rows: _Rows, proba: NDArray) -> LabelNoiseModel:
        noisy, of_clean = np.split(rows.given, [rows.n_noisy])
        candidate = Candidate(0, *np.split(proba, [rows.n_noisy]))
        held_out = one_candidate(candidate, noisy, rows.true, of_clean, rows.positions)
        held_out = held_out._replace(sources=rows.sources, drawn=rows.drawn)
        prior = in_class_order(self.transition_prior, rows.classes)
        model = LabelNoiseModel(prior=prior, meta_sampling=self.meta_sampling)
        return model.fit_candidates(held_out, rows.classes, shrunk_gold_start(held_out))

    # ---- predict
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict calibrated probabilities of the true class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame with n_samples rows
            Any input that the estimator accepts.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "estimator_")
        return self.calibration_(_proba(self.estimator_, X, self.classes_))

    # they only need predict_proba and classes_
    predict = NoisyLabelClassifier.predict
    score = NoisyLabelClassifier.score


class _Rows(NamedTuple):
    """Noisy samples followed by clean samples, with class indices as labels."""

    X: Any
    positions: tuple[NDArray[np.intp], NDArray[np.intp]]  # rows of X, noisy and clean; -1 if not in X
    given: NDArray[np.intp]  # noisy labels; -1 for clean samples without one
    true: NDArray[np.intp]  # true labels of the clean samples
    weight: NDArray[np.float64]
    classes: NDArray
    sources: SourceLabels | None  # of all rows of X, with several sources
    drawn: NDArray[np.float64] | None  # relative probabilities of the draw of clean samples; None if at random

    @property
    def n_noisy(self) -> int:
        return len(self.given) - len(self.true)


class _Round(NamedTuple):
    """Training labels of a round, out-of-fold probabilities, and their noise model."""

    labels: NDArray[np.intp]
    weight: NDArray[np.float64]
    proba: NDArray[np.float64]
    model: LabelNoiseModel
    losses: NDArray[np.float64]  # out-of-fold log-loss of each clean sample


def _stacked(X: Any, X_meta: Any) -> Any:
    """Concatenate X and X_meta in the format of X."""
    if X_meta is None:
        return X
    if hasattr(X, "iloc"):
        if list(getattr(X_meta, "columns", ())) != list(getattr(X, "columns", ())) or not hasattr(X_meta, "iloc"):
            raise ValueError("X is a data frame or Series. Pass X_meta with the same type and the same columns.")
        from pandas import concat

        return concat([X, X_meta], ignore_index=True)
    if hasattr(X, "shape") and hasattr(X_meta, "shape") and X.shape[1:] != X_meta.shape[1:]:
        raise ValueError(f"X has shape {X.shape}, but X_meta {X_meta.shape}. Pass samples of the same shape.")
    if sparse.issparse(X):
        return sparse.vstack([X, X_meta], format="csr")
    return [*X, *X_meta] if isinstance(X, list) else np.concatenate([np.asarray(X), np.asarray(X_meta)])


# ---------------------------------------------------------------------------- the estimator
def _held_out_proba(estimator: Any, rows: _Rows, labels: NDArray, weight: NDArray, out: NDArray) -> NDArray[np.float64]:
    """Train without the samples in `out` and predict their probabilities."""
    trained = _trained(estimator, rows, np.where(out, -1, labels), weight)
    return _proba(trained, _safe_indexing(rows.X, np.flatnonzero(out)), rows.classes)


def _trained(estimator: Any, rows: _Rows, labels: NDArray, weight: NDArray) -> Any:
    """Train a clone on all labelled samples, weighted if it supports weights and they differ."""
    trained, name, used = clone(estimator), _weight_name(estimator), np.flatnonzero(labels >= 0)
    X, y, weight = _safe_indexing(rows.X, used), rows.classes[labels[used]], weight[used]
    if name is None or not np.ptp(weight):
        return trained.fit(X, y)
    with config_context(enable_metadata_routing=False):  # else a pipeline needs a request of each step
        return trained.fit(X, y, **{name: weight})


def _weight_name(estimator: Any) -> str | None:
    """Name of the sample weights in `fit`; for a pipeline, in its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        of_last = _weight_name(last)
        return of_last and f"{name}__{of_last}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _proba(fitted: Any, X: Any, classes: NDArray) -> NDArray[np.float64]:
    """Predict probabilities of all classes, 0 for classes that the estimator was not fitted on."""
    if not hasattr(fitted, "predict_proba"):  # with some parameters, e.g. SVC(probability=False)
        raise ValueError(_NO_PROBA.format(type(fitted).__name__))
    found = check_probabilities(fitted.predict_proba(X), len(fitted.classes_))
    proba = np.zeros((len(found), len(classes)))
    proba[:, np.searchsorted(classes, fitted.classes_)] = found
    return proba
