"""Meta-estimator that trains any scikit-learn classifier on noisy labels."""

from __future__ import annotations
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from ..base._classifier import REQUESTED, NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..data._read import separate_samples
from ..data._warnings import warn_of_groups
from ..fitting._cross_fitting import check_folds, fold_of_samples, joined
from ..fitting._parameters import CONSTRAINTS
from ..fitting._run import progress_bar
from ..labels._arrays import warn_of_order
from ..labels._read import Labels, SeparateLabels, labels_of_fit
from ..likelihood._calibration import Calibration
from ..likelihood._class_prior import shift_class_prior
from ..likelihood._diagnostics import warn_of_reasons, worse_than_labels
from ..likelihood._fit import NoiseFit
from ..likelihood._out_of_fold import Candidate, OutOfFold, denoised, out_of_fold_of
from ..likelihood._pool import Views, pool_weights, pooled, shares_of_views
from ..likelihood._shrinkage import Prior, check_prior
from ..noise_model._model import LabelNoiseModel
from ..transition._checks import check_probabilities

#: training label of each sample, -1 for none, and weights
_Target = tuple[NDArray[np.intp], NDArray[np.float64]]


class TransitionClassifierCV(NoiseModelMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Train any scikit-learn classifier on noisy labels, such as gradient boosting or a text pipeline.

    Some samples should be verified, and keep their noisy label. On many data sets, `EMTransitionClassifier` is more
    accurate (:doc:`/any_classifier`). The steps of `fit` are::

        features   train clones on the noisy labels; predict out-of-fold probabilities
        T          fit a LabelNoiseModel to these probabilities, the noisy and the verified labels
        clean      train clones on the verified samples only; predict out-of-fold probabilities
        q          P(true | x, label) of each noisy sample: a pool of features, the label through T, and clean; the
                   weights maximise the likelihood of held-out verified samples
        estimator  train clones on the most probable class of each sample, weighted by q, and on the verified labels;
                   from their out-of-fold probabilities, fit T and q again, and train on all samples
        result     pool of this estimator, calibrated, and the one of the verified samples, again with weights that
                   maximise the likelihood of held-out verified samples

    Clones have not seen the samples that they predict, and the calibration of a verified sample leaves it out
    (approximately; Rad and Maleki, 2020). "clean" requires two verified samples of each class, and is omitted if the
    estimator raises a ValueError on so few samples. Without verified samples, anchor points give the probabilities of
    the true label (`denoise_proba`), and `fit` warns (:doc:`/no_verified_labels`). With several sources, "features"
    learns the most frequent label of each sample, and q uses all labels. An estimator without `sample_weight` is
    trained on the same labels without weights.

    Parameters
    ----------
    estimator : classifier
        Classifier with `fit` and `predict_proba`. It gets X unchanged, e.g. text, missing values or data frames.
    cv : int, default=3
        Number of folds of each step.
    prior : "symmetric", array-like or None, default="symmetric"
        Matrix that T is shrunk towards: `prior` of `LabelNoiseModel`.
    verified_sampling : {"random", "stratified"}, default="random"
        How the clean samples were drawn, as in `LabelNoiseModel`.
    n_jobs : int, optional
        Number of folds trained in parallel by `joblib.Parallel`.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. Set the seed of the estimator separately.
    verbose : int, default=0
        1: a progress bar for the trainings of each step, only in a terminal or notebook.

    Attributes
    ----------
    estimator_ : classifier
        Clone trained on the most probable classes. Its probabilities are not calibrated.
    calibration_ : Calibration
        Calibration of `estimator_`.
    clean_estimator_ : classifier or None
        Clone trained on the verified samples only.
    posterior_weights_ : dict of str to float
        Weights of "features", "label" and "clean" in q.
    prediction_weights_ : dict of str to float
        Weights of `estimator_`, "features", and of `clean_estimator_`, "clean", in `predict_proba`.
    noise_model_ : LabelNoiseModel
        Noise model of the first out-of-fold probabilities, with T.
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Out-of-fold P(true class | x) of the result, without samples of weight 0 that are not verified.
    transition_matrix_, noisy_class_counts_, diagnostics_, classes_
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

    calibration_: Calibration | None

    __metadata_request__fit = REQUESTED
    __metadata_request__score = {"y_verified": True}  # noqa: RUF012

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {
        "estimator": [HasMethods("fit")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: int = 3,
        prior: Prior = "symmetric",
        verified_sampling: str = "random",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.prior = prior
        self.verified_sampling = verified_sampling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        X_clean: Any = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train on noisy labels, using verified samples of X or separate clean samples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame with n_samples rows
            Any input that the estimator accepts.
        y : array-like of shape (n_samples,), or data frame
            Noisy labels; as a data frame, one column of labels for each source, and a column "verified". Samples
            without any label are not trained on, but predicted out of fold, and count in class shares.
        y_verified, meta, X_clean, y_clean, y_clean_noisy, sources, groups
            True labels of verified samples, separate clean samples, the source of each label, and groups of samples
            that are not independent, as in `EMTransitionClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; the estimator must accept them. Class shares, accuracies and the correction of T by
            verified pairs are those of the weighted population.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels or parameters are not valid; raised before any training.
        """
        self._forget()
        self._validate_params()
        if not any(hasattr(of, "predict_proba") for of in (self.estimator, type(self.estimator))):
            name = type(self.estimator).__name__
            raise ValueError(f"{name} has no predict_proba. Wrap it, for example in CalibratedClassifierCV.")
        separate = separate_samples(meta, X_clean, y_clean, y_clean_noisy)
        self._train(self._read(X, y, y_verified, separate, sample_weight, sources, groups))
        warn_of_reasons(self.diagnostics_, stacklevel=3)
        return self

    def _read(
        self, X: Any, y: Any, y_verified: Any, separate: Any, sample_weight: Any, sources: Any, groups: Any
    ) -> _Rows:
        """Validate all inputs except X, which the estimator validates."""
        warn_of_order(X, y, y_verified, sample_weight, sources, groups)
        X_clean, *labels_clean = separate
        beside = None if X_clean is None else SeparateLabels(_num_samples(X_clean), *labels_clean)
        labels = labels_of_fit(_num_samples(X), y, y_verified, beside, sources, sample_weight, groups)
        if labels.groups is None:
            warn_of_groups(X, labels.given[: labels.n_X])
        check_prior(self.prior, len(labels.classes))
        if labels.weights is not None and _weight_name(self.estimator) is None:
            raise ValueError(f"{type(self.estimator).__name__} does not accept sample_weight. Call fit without it.")
        check_folds(labels, self.cv)
        order = np.concatenate([np.flatnonzero(labels.is_noisy), np.flatnonzero(labels.is_clean)])
        weights = np.ones(len(labels.true)) if labels.weights is None else labels.weights
        weight = np.append(weights[labels.is_noisy], np.ones(len(labels.clean)))
        return _Rows(_safe_indexing(*indexable(_stacked(X, X_clean)), order), labels, weight)

    def _train(self, rows: _Rows) -> None:
        """Run the steps of `fit`, and set the fitted attributes."""
        labels = rows.labels
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        folds = np.concatenate(fold_of_samples(labels, self.cv, seed))
        given = np.concatenate([labels.noisy, labels.noisy_of_clean]), rows.weight
        predicted = self._predicted(rows, folds, [given] * self.cv)
        if not len(labels.clean):  # no calibration to the true label
            predicted, _ = denoised(predicted, len(labels.classes))
        model = LabelNoiseModel(prior=self.prior, verified_sampling=self.verified_sampling)
        fit = model._fit_candidates(predicted, labels.classes, len(labels.classes))
        self.noise_model_ = model
        alone = self._of_clean(rows, folds)
        targets, _ = self._targets(rows, fit, alone)
        predicted = self._predicted(rows, folds, targets[:-1])
        self._keep(rows, model._fit_noise(predicted, labels.classes), alone)

    def _predicted(self, rows: _Rows, folds: NDArray[np.intp], targets: list[_Target]) -> OutOfFold:
        """Train without each fold, on the labels in its place of `targets`, and predict it."""
        proba = joined(self._without_each(rows, folds, targets), folds)
        return out_of_fold_of(Candidate(0, *np.split(proba, [len(rows.labels.noisy)])), rows.labels)

    def _without_each(
        self, rows: _Rows, folds: NDArray[np.intp], targets: list[_Target], *, of_all: bool = False
    ) -> list[NDArray]:
        """Train without each fold, and predict it; with `of_all`, predict all samples."""
        predict = delayed(_proba_without)
        tasks = (predict(self.estimator, rows, target, folds == i, of_all) for i, target in enumerate(targets))
        if not self.verbose:
            return Parallel(self.n_jobs)(tasks)
        results = Parallel(self.n_jobs, return_as="generator")(tasks)
        return list(progress_bar("training without each fold", results, total=self.cv))

    def _of_clean(self, rows: _Rows, folds: NDArray[np.intp]) -> _OfClean:
        """Train on the verified samples only, if there are at least two of each class."""
        labels = rows.labels
        n = len(labels.noisy)
        nothing = _OfClean(None, [None] * (self.cv + 1), None)
        if np.bincount(labels.clean, minlength=len(labels.classes)).min() < 2:
            return nothing
        with suppress(ValueError):  # such as of an estimator with folds
            proba = np.stack(self._without_each(rows, folds, [rows.verified] * self.cv, of_all=True))
            trained = _trained(self.estimator, rows, rows.verified)
            of_all = _proba(trained, _safe_indexing(rows.X, np.arange(n)), labels.classes)
            shift = -self.noise_model_.log_prior_ratio_
            of_noisy = [shift_class_prior(of, shift) for of in (*proba[:, :n], of_all)]
            return _OfClean(trained, of_noisy, shift_class_prior(proba[folds, np.arange(len(folds))], shift))
        return nothing

    def _targets(self, rows: _Rows, fit: NoiseFit, alone: _OfClean) -> tuple[list[_Target], Views]:
        """Labels and weights for the training without each fold, and for the last; and the views of clean samples.

        Those without a fold do not depend on its verified samples by way of the clones of verified samples.
        """
        of_noisy, of_clean = self.noise_model_._views(fit)
        out_of_fold = None if alone.out_of_fold is None else alone.out_of_fold[len(rows.labels.noisy) :]
        of_clean = of_clean._replace(clean=out_of_fold)
        self.posterior_weights_ = weights = pool_weights(of_clean, rows.labels.clean, fit.log_prior_ratio)
        self.noise_model_.shares_of_views_ = shares_of_views(of_clean, weights)
        targets = [rows.relabelled(pooled(of_noisy._replace(clean=proba), weights)) for proba in alone.of_noisy]
        return targets, of_clean

    def _keep(self, rows: _Rows, fit: NoiseFit, alone: _OfClean) -> None:
        """Train on labels from predictions of the second clones, and set the fitted attributes."""
        labels = rows.labels
        n = len(labels.noisy)
        targets, of_clean = self._targets(rows, fit, alone)
        self.estimator_ = _trained(self.estimator, rows, targets[-1])
        self.clean_estimator_ = alone.estimator
        self.calibration_ = fit.calibration
        self.classes_ = labels.classes
        self.prediction_weights_ = pool_weights(of_clean._replace(label=None), labels.clean, fit.log_prior_ratio)
        features = np.concatenate([fit.calibrated(fit.all_samples.candidates[0].proba), of_clean.features])
        proba = pooled(Views(features, clean=alone.out_of_fold), self.prediction_weights_)
        self.oof_proba_ = fit.all_samples.in_order(*np.split(proba, [n]))
        predicted = proba.argmax(axis=1)
        self.noise_model_._predicted = predicted[:n], predicted[n:]
        self.diagnostics_ = self.noise_model_.diagnostics_
        self.diagnostics_ |= worse_than_labels(proba[n:], fit)
        for name in {"n_features_in_", "feature_names_in_"} & set(dir(self.estimator_)):
            setattr(self, name, getattr(self.estimator_, name))

    # ---- predict
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict calibrated probabilities of the true class, in the order of `classes_`.

        Parameters
        ----------
        X
            As in `fit`.
        """
        check_is_fitted(self, "estimator_")
        proba = _proba(self.estimator_, X, self.classes_)
        views = Views(proba if self.calibration_ is None else self.calibration_(proba))
        if self.clean_estimator_ is not None:
            of_clean = _proba(self.clean_estimator_, X, self.classes_)
            views = views._replace(clean=shift_class_prior(of_clean, -self.noise_model_.log_prior_ratio_))
        return pooled(views, self.prediction_weights_)

    # they only need predict_proba and classes_
    predict = NoisyLabelClassifier.predict
    score = NoisyLabelClassifier.score
    _forget = NoisyLabelClassifier._forget


class _Rows(NamedTuple):
    """Noisy samples followed by clean samples, all labels, and weights."""

    X: Any
    labels: Labels
    weight: NDArray[np.float64]

    @property
    def verified(self) -> _Target:
        """Labels and weights of the clean samples only."""
        return np.concatenate([np.full(len(self.labels.noisy), -1), self.labels.clean]), self.weight

    def relabelled(self, posterior: NDArray) -> _Target:
        """Most probable true class of each noisy sample, weighted by its probability, and the true labels."""
        clean = self.labels.clean
        weight = self.weight * np.concatenate([posterior.max(axis=1), np.ones(len(clean))])
        noisy = np.where(self.labels.noisy >= 0, posterior.argmax(axis=1), -1)  # unlabelled samples teach nothing
        return np.concatenate([noisy, clean]), weight


class _OfClean(NamedTuple):
    """Clone trained on the verified samples only, and probabilities with the class prior of the noisy samples.

    `of_noisy` has those of the noisy samples by clones without each fold, and by the clone of all verified samples;
    `out_of_fold` those of all samples by clones that have not seen them. All None if there are too few samples.
    """

    estimator: Any
    of_noisy: Sequence[NDArray | None]
    out_of_fold: NDArray | None


def _stacked(X: Any, X_clean: Any) -> Any:
    """Concatenate X and X_clean in the format of X."""
    if X_clean is None:
        return X
    if hasattr(X, "iloc"):
        if list(getattr(X_clean, "columns", ())) != list(getattr(X, "columns", ())) or not hasattr(X_clean, "iloc"):
            raise ValueError("X is a data frame or Series. Pass X_clean with the same type and the same columns.")
        from pandas import concat

        return concat([X, X_clean], ignore_index=True)
    if sparse.issparse(X):
        return sparse.vstack([X, X_clean], format="csr")
    return [*X, *X_clean] if isinstance(X, list) else np.concatenate([np.asarray(X), np.asarray(X_clean)])


# ---------------------------------------------------------------------------- the estimator
def _proba_without(
    estimator: Any, rows: _Rows, target: _Target, out: NDArray[np.bool_], of_all: bool
) -> NDArray[np.float64]:
    """Train without the samples in `out`, and predict their probabilities, or those of all samples."""
    labels, weight = target
    trained = _trained(estimator, rows, (np.where(out, -1, labels), weight))
    return _proba(trained, _safe_indexing(rows.X, np.flatnonzero(out | of_all)), rows.labels.classes)


def _trained(estimator: Any, rows: _Rows, target: _Target) -> Any:
    """Train a clone on all labelled samples, weighted if it supports weights and they differ."""
    trained = clone(estimator)
    name = _weight_name(estimator)
    labels, weight = target
    used = np.flatnonzero(labels >= 0)
    X = _safe_indexing(rows.X, used)
    y = rows.labels.classes[labels[used]]
    weight = weight[used]
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
    found = check_probabilities(fitted.predict_proba(X), len(fitted.classes_))
    proba = np.zeros((len(found), len(classes)))
    proba[:, np.searchsorted(classes, fitted.classes_)] = found
    return proba
