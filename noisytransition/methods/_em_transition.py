"""Classifier and T by joint maximum likelihood: expectation-maximisation anchored by the clean rows."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from ..base._transition import TransitionClassifier
from ..data._read import DRAWS
from ..fitting._checks import COUNT, NUMBER
from ..fitting._cross_fitting import JointTraining, cross_fit, fine_tune, n_folds
from ..fitting._parameters import Module
from ..fitting._parts import unsendable
from ..fitting._run import Run
from ..fitting._starts import OF_WARM_UP, classes_without_clean_rows
from ..nets import Rows
from ..transition import LabelNoiseModel
from ..transition._class_offset import weights_of_clean_rows
from ..transition._diagnostics import warn_of_reasons
from ..transition._held_out import HeldOut, fine_tuning_helps, last_training
from ..transition._labels import in_class_order
from ..transition._shrinkage import Prior, check_prior

# with fewer clean rows there is no choice by them: a network would be judged by one or two rows
_LEAST_CLEAN_ROWS = 6


class EMTransitionClassifier(TransitionClassifier):
    r"""Learn T and the classifier together as the maximum of one likelihood, with no step size for T.

    Use it first where some rows are verified, best rows that keep their noisy label. It costs five trainings of the
    network, and at most four short ones on the clean rows; ``cv=None`` with ``fine_tune=False`` three. Do not take it
    first without clean rows, or for accuracy alone with a network that is too large for this: `FineTuningClassifier`
    trains two networks.

    Noisy rows count by ``sum_i f_i(x) T[i, y]``, clean rows by ``f_y(x)``. While a network trains, T follows the
    posterior counts of its batches (`noisytransition.updates.PosteriorCounts`). T itself comes from posteriors of rows
    that a network was not trained on, so that memorised labels do not enter it::

        start       = T of a warm-up by cross-entropy (`transition_init`)
        for k in folds:
            train f and T on the rows outside fold k;  keep f's posteriors of fold k after several numbers of epochs
        epochs      = that whose posteriors give all labels the highest evidence, T integrated out
        T           = the most likely one of these posteriors, calibrated by the clean rows, shrunk by the evidence
        classifier  = network trained on all rows through this T, for so many epochs or more (from the weights of the
                      warm-up, if the networks of the folds are trained too little); fine-tuned on the clean rows if
                      the networks of the folds predict held-out clean rows better after it (`fine_tune`)

    Calibration, evidence and shrinkage are those of `em_transition_matrix`. The likelihood supposes that one T is true
    for all rows. If the noisy labels of the clean rows are known (`trusted`, or `y_meta_noisy`) and contradict that, T
    is the mean of a posterior that is fitted to them. If none are known, the probability of a noisy label may rise with
    that of its class: people err on rows that look like another class. `docs/trust.rst` has both, and
    `diagnostics_` names reasons not to trust T.

    Parameters
    ----------
    meta_weight : float or "auto", default="auto"
        Weight of the clean batch's mean loss beside the noisy batch's. "auto": the square root of n_meta / n, between
        the weight of the likelihood, n_meta / n, and 1, at which both sets count alike.
    cv : int or None, default=3
        Folds of noisy and clean rows. None: one training without a third of the noisy rows and half of the clean ones,
        whose posteriors give T; with fewer rows behind it, T is less exact.
    transition_prior : "symmetric", array-like or None, default="symmetric"
        What T is shrunk towards: `prior` of `em_transition_matrix` (superclasses of shape (n_classes,), or a matrix).
    meta_sampling : {"random", "stratified"}, default="random"
        How the clean rows were drawn: at random from rows like the noisy ones, or a number of each class, so that their
        shares of the classes are others (as in case-control samples). These are then allowed for, and `predict_proba`
        has the noisy rows' shares.
    fine_tune : bool, default=True
        Train the network on with the clean rows alone, for 50 epochs, if held-out clean rows are predicted better by a
        standard error after it, in log-loss at the best temperature. Not with fewer than 6 clean rows, or a class
        without any. `train_split`, and callbacks that follow a score or a schedule (EarlyStopping, Checkpoint,
        LRScheduler), take no part in it. `predict_proba` has no temperature: after it, it is too certain.
    n_jobs : int, optional
        Folds that are trained at the same time, as in `joblib.Parallel`. The result is the same to the bit for any
        `n_jobs`. What callbacks collect in other processes stays there.
    transition_init : str or array-like, default="gold-shrunk"
        Where T starts in each training, as in `TransitionClassifier`.
    **params
        As in `TransitionClassifier`: `warm_up_epochs`, `module`, `lr`, `max_epochs`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (2, n_classes, n_classes)
        The start and the result.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class.
    noise_model_ : LabelNoiseModel
        T with all that it comes from: counts, error bars, calibration of the networks of the folds, prior.
    oof_proba_ : ndarray of shape (n_noisy, n_classes), float32
        Out-of-fold P(true class | x) of the noisy rows, calibrated; with folds. They find wrong labels that the
        classifier itself has memorised.
    n_epochs_ : int
        Number of epochs of the last training.
    cv_results_ : dict of ndarray
        ``epochs`` and ``log_evidence`` of each number of epochs.
    final_ : str
        If there was a choice, the classifier: "own" or "fine-tuned".
    final_scores_ : dict of str to float
        Log-loss of held-out clean rows, before and after the fine-tuning.
    diagnostics_ : dict of str to str
        Reasons not to trust T, of which `fit` warns too: "missing_class", "unknown_shares" (clean rows that may have
        been drawn class by class: `meta_sampling`), "not_one_T" (noise that one T does not explain), "under_trained"
        (never with ``max_epochs=1``: there is no earlier epoch to compare with), "not_separated" (labels that leave T
        open). Empty if none was found.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    * Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm", 1977.
    * Dawid, Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979 (counts
      of labels).
    * Chernozhukov et al., "Double/Debiased Machine Learning", 2018 (cross-fitting).
    * Guo et al., "On Calibration of Modern Neural Networks", ICML 2017; Kull et al., "Beyond Temperature
      Scaling", NeurIPS 2019 (calibration).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import EMTransitionClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.4), random_state=0)
    >>> verified = np.arange(150) % 5 == 0  # of these rows both labels are known
    >>> clf = EMTransitionClassifier(random_state=0).fit(X, y_noisy, trusted=verified, y_meta=y[verified])
    >>> print(clf.transition_summary(top=3))
    1 -> 2 0.5... [0.3..., 0.6...]
    0 -> 1 0.4... [0.3..., 0.6...]
    2 -> 0 0.3... [0.2..., 0.4...]
    3 other flips: each below 0.01, ...
    >>> issues = clf.find_label_issues(X, y_noisy)
    >>> print(f"{(y_noisy != y)[issues].mean():.0%} of {len(issues)} found labels are wrong")
    9...% of 6... found labels are wrong
    """

    _needs_clean_data = True
    _allows_for_shares = True
    _parameter_constraints: ClassVar = {
        **TransitionClassifier._parameter_constraints,
        "meta_weight": [NUMBER, StrOptions({"auto"})],
        "meta_sampling": [StrOptions({"random", "stratified"})],
        "cv": [Interval(Integral, 2, None, closed="left"), None],
        "fine_tune": ["boolean"],
        "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold-shrunk",
        meta_weight: float | str = "auto",
        cv: int | None = 3,
        transition_prior: Prior = "symmetric",
        meta_sampling: str = "random",
        fine_tune: bool = True,
        n_jobs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, transition_init=transition_init, **net_params)
        self.meta_weight = meta_weight
        self.cv = cv
        self.transition_prior = transition_prior
        self.meta_sampling = meta_sampling
        self.fine_tune = fine_tune
        self.n_jobs = n_jobs

    def _fit(self, run: Run) -> None:
        has_warm_up = isinstance(self.transition_init, str) and self.transition_init in OF_WARM_UP
        warm_up = self._warm_up(run) if has_warm_up else None
        start = self._start(run, warm_up)
        joint = JointTraining(start, self._weight(run))
        held_out, fine_tuned = cross_fit(
            run, joint, cv=self.cv, n_jobs=self.n_jobs, fine_tuning=self._may_fine_tune(run)
        )
        model = LabelNoiseModel(
            prior=in_class_order(self.transition_prior, run.classes), meta_sampling=self.meta_sampling
        ).fit_candidates(held_out, run.classes, start)
        self._keep(model, held_out, start)
        last = last_training(held_out, model.best_candidate_, model.transition_matrix_)
        # a network that is trained too little goes on from the warm-up; one that memorises would keep what that has
        module = warm_up.plain_module_ if warm_up and "under_trained" in model.diagnostics_ else None
        self.n_epochs_, clean = last.epochs, self._drawn(run, model)
        self.net_ = joint.train(run, "em", model.transition_matrix_, clean, module=module, max_epochs=last.epochs)
        if fine_tuned is not None:
            own, y, offset = last.proba_meta, held_out.clean, model.class_offset_
            helps, self.final_scores_ = fine_tuning_helps(own, fine_tuned, y, offset)
            self.final_ = "fine-tuned" if helps else "own"
            self.net_ = fine_tune(run, "fine_tuned", self.net_, clean) if helps else self.net_

    def _drawn(self, run: Run, model: LabelNoiseModel) -> Rows:
        """Clean rows, drawn in the class prior of the noisy rows if they are stratified."""
        if self.meta_sampling != "stratified":
            return run.clean
        return run.clean.with_columns(sample_weight=weights_of_clean_rows(model.class_offset_, run.clean.label))

    def _weight(self, run: Run) -> float:
        """Weight of the clean batch's mean loss."""
        if isinstance(self.meta_weight, str):
            return float((len(run.clean) / len(run.noisy)) ** 0.5)
        return self.meta_weight

    def _may_fine_tune(self, run: Run) -> bool:
        """Whether it is wished, and there are clean rows of each class: a network would unlearn one that has none."""
        return self.fine_tune and len(run.clean) >= _LEAST_CLEAN_ROWS and not classes_without_clean_rows(run)

    def _keep(self, model: LabelNoiseModel, held_out: HeldOut, start: NDArray) -> None:
        """Set the fitted attributes of T, and warn of reasons not to trust it."""
        self.noise_model_, self.diagnostics_ = model, model.diagnostics_
        self.transition_init_, self.transition_matrix_ = start, model.transition_matrix_
        self.transition_history_ = np.stack([start, model.transition_matrix_])
        self.class_counts_ = model.class_counts_
        epochs = np.array([candidate.epochs for candidate in held_out.candidates])
        self.cv_results_ = {"epochs": epochs, "log_evidence": model.log_evidence_}
        if self.cv is not None:
            best = held_out.candidates[model.best_candidate_]
            self.oof_proba_ = model.calibrate(best.proba).astype(np.float32)
        warn_of_reasons(self.diagnostics_, stacklevel=5)

    # ---- checks
    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        if refusal := unsendable(run, self.n_jobs):
            raise ValueError(f"n_jobs={self.n_jobs} {refusal}.")
        check_prior(self.transition_prior, len(run.classes), "transition_prior")
        for rows, least, kind in zip((run.noisy, run.clean), n_folds(self.cv), ("noisy", "clean"), strict=True):
            if len(rows) < least:
                raise ValueError(
                    f"cv={self.cv} needs at least {least} {kind} rows and got {len(rows)}. Give more rows"
                    f"{', or fewer folds' if self.cv else ''}."
                )
        if self.meta_sampling == "stratified":
            self._check_stratified(run)

    def _check_stratified(self, run: Run) -> None:
        if own := sorted(name for name in DRAWS if name in self._net_params):
            raise ValueError(f"meta_sampling='stratified' decides how clean rows are drawn, and so do {own}; give one.")
        if missing := classes_without_clean_rows(run):
            raise ValueError(f"meta_sampling='stratified' needs clean rows of each class; there are none of {missing}.")
