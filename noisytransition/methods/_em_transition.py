"""Joint maximum-likelihood estimation of classifier and T from noisy and clean labels."""

from __future__ import annotations
from functools import partial
from math import ceil
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..data._warnings import warn_of_groups
from ..fitting._cross_fitting import check_folds, cross_fit, predict_from_clean, train_on_both
from ..fitting._parameters import CONSTRAINTS, NUMBER, Module
from ..fitting._run import FitContext, progress_bar
from ..fitting._starts import classes_without_clean_rows, start_of_transition
from ..labels._arrays import in_class_order
from ..likelihood._class_prior import shift_class_prior, weights_of_clean_rows
from ..likelihood._diagnostics import warn_of_reasons, worse_than_labels
from ..likelihood._fit import LARGEST_WEIGHT, NoiseFit
from ..likelihood._out_of_fold import OutOfFold, select_epochs
from ..likelihood._pool import Views, pool_weights, pooled, shares_of_views
from ..likelihood._shrinkage import Prior, check_prior
from ..losses import GoldCorrectionLoss, PosteriorLoss
from ..nets import Rows
from ..noise_model import LabelNoiseModel
from ..transition._estimation import normalise_rows

# fraction of the epochs for the warm-up: T and accuracy are no worse than after all epochs (design half of
# examples/benchmarks/zoo, error of T 0.159 and 0.174, accuracy 0.802 and 0.799)
_WARM_UP = 0.25
# The weight of a clean sample is the root of n_samples / n_clean, which counts at most this number of noisy samples of
# each class. On the zoo's design half (three seeds), accuracy changes by +0.3 +- 0.2 points compared with the fourth
# root. The ratio itself, with 100, is better still there (+0.8 +- 0.3), but overfits ten clean samples of a class
_MOST_OF_CLASS = 200
# pseudo-count of T's row, for classes without remaining samples
_SMALLEST_COUNT = 1e-3


class EMTransitionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    r"""Estimate the noise transition matrix T and the classifier jointly by maximum likelihood.

    This is the recommended method if some samples are verified; :ref:`others-better` says where it is not the best.
    Without, T rests on the network alone, and `fit` warns (:doc:`/no_verified_labels`). The steps of `fit` are::

        start       = T estimated from a warm-up by cross-entropy (transition_init)
        for k in folds:
            train the network f and T outside fold k, by the likelihoods sum_i f_i(x) T[i, y] of noisy labels and
            f_y(x) of clean labels in the same batches;  predict the samples of fold k at several epochs
        T           = maximum-likelihood estimate from the out-of-fold posteriors at the best epoch
                      (LabelNoiseModel)
        q           = P(true | x, label) of each noisy sample: a pool of the out-of-fold predictions, the label
                      through T, and a network that is trained on the clean samples alone; the weights
                      maximise the likelihood of held-out clean samples
        classifier  = network trained on q and on the clean labels

    `fit` trains the network four times after a short warm-up, and four times on the clean samples alone; three times
    with ``cv=2``. T is more precise if the verified samples keep their noisy labels. See
    :doc:`/methods/maximum_likelihood` for the statistics and :doc:`/trust` for checks of T.

    With several sources, T describes the most frequent label of each sample; `noise_model_` has a T for each source,
    and q uses all labels of a sample.

    Parameters
    ----------
    transition_init : array-like or str, default="gold-shrunk"
        Initial T, or its estimator: "gold", "gold-shrunk", "anchor", "confusion", "count" or "diagonal"
        (:ref:`starts`). Without clean samples, "gold-shrunk" is "anchor".
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up, which estimates the initial T. Default: a quarter of
        `max_epochs`.
    clean_weight : float or "auto", default="auto"
        Weight of a clean sample in the training, relative to a noisy one. "auto":
        ``sqrt(min(n_samples, 200 * n_classes) / n_clean)``, at least 1 and at most 4.5.
    cv : int, default=3
        Number of folds.
    prior : "symmetric", array-like or None, default="symmetric"
        Matrix that T is shrunk towards, as `prior` of `em_transition_matrix`.
    verified_sampling : {"random", "stratified"}, default="random"
        How the clean samples were drawn. "stratified": a fixed number per class; `fit` corrects their class prior.
    n_jobs : int, optional
        Number of folds trained in parallel by `joblib.Parallel`. The result is the same.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        Noise transition matrix T: entry (i, j) is P(noisy = classes_[j] | true = classes_[i]).
    noise_model_ : LabelNoiseModel
        Model of the noise: T, its error bars, calibration and diagnostics.
    diagnostics_ : dict of str to str
        Reasons to doubt T, and notes, by name (:doc:`/trust`). `fit` warns of most.
    oof_proba_ : ndarray of shape (n_samples, n_classes), float32
        Calibrated out-of-fold P(true class | x); excludes samples of weight 0 that are not verified.
    noisy_class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy samples of each true class.
    cv_results_ : dict of ndarray
        Candidate numbers of ``epochs`` and their ``log_evidence``. The last training has `n_epochs_` epochs.
    posterior_weights_ : dict of str to float
        Weights of what gives the posteriors of the last training: "features", "label" and, if there are at least two
        clean samples of each class, "clean".
    transition_init_, transition_history_
        Initial T; initial and final T.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm", 1977. Chernozhukov et al.,
    "Double/Debiased Machine Learning", 2018 (cross-fitting).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import EMTransitionClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.4), random_state=0)
    >>> checked = np.where(np.arange(150) % 5 == 0, y, -1)  # true labels; -1: not verified
    >>> clf = EMTransitionClassifier(random_state=0).fit(X, y_noisy, y_verified=checked)
    >>> print(clf.transition_summary(top=3))  # doctest: +NUMBER
    1 -> 2 0.5 [0.4, 0.6]
    0 -> 1 0.5 [0.4, 0.6]
    2 -> 0 0.3 [0.2, 0.4]
    3 other flips: each below 0.01, at most 0.1
    """

    _needs_clean_data = True
    _parameter_constraints: ClassVar = {
        **CONSTRAINTS,
        "clean_weight": [NUMBER, StrOptions({"auto"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold-shrunk",
        warm_up_epochs: int | None = None,
        clean_weight: float | str = "auto",
        cv: int = 3,
        prior: Prior = "symmetric",
        verified_sampling: str = "random",
        n_jobs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.clean_weight = clean_weight
        self.cv = cv
        self.prior = prior
        self.verified_sampling = verified_sampling
        self.n_jobs = n_jobs

    def _fit(self, run: FitContext) -> None:
        start, warm_up = self._start(run)
        weight = self._clean_weight(run)
        loss = partial(GoldCorrectionLoss, start, weight, ignore_index=None)
        out_of_fold, of_alone = cross_fit(run, loss, cv=self.cv, n_jobs=self.n_jobs)
        fit = self._fit_noise_model(run, out_of_fold, start)
        model = self.noise_model_
        out_of_fold = fit.out_of_fold  # without unlabelled samples
        counts = np.maximum(model.transition_counts_ - out_of_fold.pairs, 0)  # without the verified samples
        T = normalise_rows(counts + _SMALLEST_COUNT * model.transition_matrix_)
        chosen = select_epochs(out_of_fold, model.best_candidate_, T)
        self.n_epochs_ = chosen.epochs
        # more epochs may help: continue from the warm-up; other networks would keep labels that it has memorised
        module = warm_up.plain_module_ if warm_up and chosen is out_of_fold.candidates[-1] else None
        clean = run.clean
        if self.verified_sampling == "stratified":  # batches then have the class prior of the noisy samples
            clean = clean.with_columns(sample_weight=weights_of_clean_rows(model.log_prior_ratio_, clean.label))
        of_clean = weight * np.eye(len(run.classes))[clean.label]
        posterior = np.concatenate([self._posterior(run, fit, of_alone, clean), of_clean])
        row = np.split(np.arange(len(posterior)), [len(run.noisy)])
        rows = run.noisy.with_columns(row=row[0]), clean.with_columns(row=row[1])
        last = PosteriorLoss(posterior)
        self.net_ = train_on_both(run, "em", *rows, loss=last, module=module, max_epochs=self.n_epochs_)
        warn_of_reasons(self.diagnostics_, stacklevel=4)

    def _posterior(self, run: FitContext, fit: NoiseFit, of_alone: NDArray | None, clean: Rows) -> NDArray[np.float64]:
        """P(true | x, label) of the noisy samples, from features, label and a network of the clean samples."""
        of_noisy, of_clean = self.noise_model_._views(fit)
        has_label = run.labels.noisy >= 0
        of_noisy = Views(*(of[has_label] for of in of_noisy if of is not None))
        proba = None if of_alone is None else predict_from_clean(run, "clean", clean, run.noisy)
        if of_alone is not None and proba is not None:
            of_noisy = of_noisy._replace(clean=shift_class_prior(proba, -fit.log_prior_ratio))
            of_clean = of_clean._replace(clean=shift_class_prior(of_alone, -fit.log_prior_ratio))
        self.posterior_weights_ = pool_weights(of_clean, fit.out_of_fold.clean, fit.log_prior_ratio)
        self.noise_model_.shares_of_views_ = shares_of_views(of_clean, self.posterior_weights_)
        of_features = pooled(of_clean._replace(label=None), self.posterior_weights_)
        self.diagnostics_ |= worse_than_labels(of_features, fit)
        return pooled(of_noisy, self.posterior_weights_)

    def _start(self, run: FitContext) -> tuple[NDArray[np.float64], Any]:
        """Initial T, and the warm-up that it is estimated from, if any."""
        epochs = self.warm_up_epochs
        if epochs is None:
            epochs = ceil(run.params["max_epochs"] * _WARM_UP)
        init = self.transition_init
        if isinstance(init, str) and init == "gold-shrunk" and not run.n_clean:
            return start_of_transition(run, "anchor", epochs, percentile="auto")
        return start_of_transition(run, init, epochs)

    def _clean_weight(self, run: FitContext) -> Any:
        """Weight of a clean sample in the training, relative to a noisy one."""
        if self.clean_weight != "auto":
            return self.clean_weight
        n_clean = max(run.n_clean, 1)
        most = min(len(run.noisy), _MOST_OF_CLASS * len(run.classes), LARGEST_WEIGHT * n_clean)
        return max(most / n_clean, 1.0) ** 0.5

    def _fit_noise_model(self, run: FitContext, out_of_fold: OutOfFold, start: NDArray) -> NoiseFit:
        """Estimate T and set its fitted attributes."""
        prior = in_class_order(self.prior, run.classes)  # an array, which can be saved
        show = partial(progress_bar, f"{run.bar}, transition matrix") if run.bar else iter
        model = LabelNoiseModel(prior=prior, verified_sampling=self.verified_sampling)
        fit = model._fit_candidates(out_of_fold, run.classes, len(run.classes), start, show)
        self.noise_model_ = model
        self.diagnostics_ = model.diagnostics_
        self.transition_init_ = start
        self.transition_history_ = np.stack([start, model.transition_matrix_])
        epochs = np.array([candidate.epochs for candidate in out_of_fold.candidates])
        self.cv_results_ = {"epochs": epochs, "log_evidence": model.log_evidence_}
        best = fit.all_samples.candidates[0]
        self.oof_proba_ = fit.calibrated(out_of_fold.in_order(best.proba, best.proba_clean)).astype(np.float32)
        return fit

    # ---- checks
    def _check_data(self, run: FitContext) -> None:
        """Raise for too few samples; several sources, no clean samples and stratified ones are valid."""
        check_prior(self.prior, len(run.classes))
        check_folds(run.labels.labelled(), self.cv)
        if run.labels.groups is None:
            warn_of_groups(run.noisy, run.noisy.label)
        missing = classes_without_clean_rows(run)
        if self.verified_sampling == "stratified" and missing:
            raise ValueError(f"verified_sampling='stratified' needs clean samples of each class; {missing} have none.")
