"""Classifier and T by joint maximum likelihood: expectation-maximisation anchored by the clean rows."""

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from ..losses import ForwardLoss
from ..transition._labels import in_class_order
from ..transition._shrinkage import Prior, check_prior
from ._checks import ALL_ROWS, COUNT, NUMBER
from ._cross_fitting import (
    Candidate,
    JointTraining,
    candidate_epochs,
    cross_fit,
    n_folds,
    weights_of_clean_batches,
)
from ._diagnostics import diagnose, warn_of_reasons
from ._estimate import Estimate, error_bars, estimate_transition, known_pairs
from ._final import CLEAN_ROWS, CONTINUED, OWN, FinalMixin, Starts, Step, finished
from ._parameters import Module
from ._parts import unsendable
from ._run import Run
from ._sampling import SAMPLINGS, SamplingMixin
from ._starts import OF_WARM_UP
from ._transition import TransitionClassifier

# The own network, unless another one is clearly better on held-out clean rows: with few of them, the best of many is
# often better by chance. Margins are of the design half of examples/benchmarks/zoo (and em_defaults.py: the first one)
_STEPS = (Step((OWN, CLEAN_ROWS), 1.0), Step((CONTINUED,), 1.5))
# trainings on the noisy rows alone, by which candidates are judged
_JUDGED = {OWN: "noisy_rows", CONTINUED: "continued_on_noisy_rows"}


class EMTransitionClassifier(SamplingMixin, FinalMixin, TransitionClassifier):
    r"""Learn T and the classifier together as the maximum of one likelihood, with no step size for T.

    Use it first where some rows are verified, best rows that keep their noisy label. It costs seven or eight trainings
    of the network, and twelve short ones on the clean rows; ``cv=None`` with ``select_classifier=False`` two. Do not
    take it first without clean rows, or for accuracy alone with a network that is too large for this:
    `FineTuningClassifier` trains two networks.

    Noisy rows count by ``sum_i f_i(x) T[i, y]``, clean rows by ``f_y(x)``. While a network trains, T follows the
    posterior counts of its batches (`noisytransition.updates.PosteriorCounts`). T itself comes from posteriors of rows
    that a network was not trained on, so that memorised labels do not enter it::

        for k in folds:
            train f and T on the rows outside fold k;  keep f's posteriors of fold k after several numbers of epochs
        epochs      = that whose posteriors give all labels the highest evidence, T integrated out
        T           = the most likely one of these posteriors, calibrated by the clean rows, shrunk by the evidence
        classifier  = network trained on all rows through this T, for so many epochs (`select_epochs`); or, if held-out
                      clean rows are predicted better, one that starts from the warm-up, either of them fine-tuned on
                      the clean rows, or a new network of the clean rows alone

    Calibration, choice and shrinkage are those of `em_transition_matrix`. The likelihood supposes that one T is true
    for all rows. Two choices by held-out clean rows make up for it where it is not: how much the clean rows count in
    the calibration (`calibration_weight`), and which classifier is the last (`select_classifier`). If the noisy labels
    of the clean rows are known (`trusted`, or `y_meta_noisy`) and contradict one T, T is the mean of a posterior that
    is fitted to them (`docs/trust.rst`); if none are known, all labels may contradict it (`instance_dependent`).
    `diagnostics_` names reasons not to trust T.

    The trainings are a warm-up for T's start, the three folds, the last network, two without clean rows by which the
    last classifier is chosen, and that of the chosen one. The twelve have 50 epochs on two thirds of the clean rows.
    The two of ``cv=None`` with ``select_classifier=False`` are one without a part of the rows, and the last one.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    meta_weight : float or "auto", default="auto"
        Weight of the clean batch's mean loss beside the noisy batch's. "auto": in the folds the geometric mean of 1
        and n_meta / n, at last n_meta / n, the weight of the likelihood.
    cv : int or None, default=3
        Folds of noisy and clean rows. None: one training without a third of the noisy rows and half of the clean ones,
        whose posteriors give T; with fewer rows behind it, T is less exact.
    select_epochs : bool, default=True
        Choose the number of epochs too, `max_epochs` at most. The last network is trained longer than those of T if it
        is then right on more held-out rows, by one standard error: as at a schedule's end. Not with labels of rules.
    transition_prior : "symmetric", array-like or None, default="symmetric"
        What T is shrunk towards: `prior` of `em_transition_matrix` (superclasses of shape (n_classes,), or a matrix).
    prior_strength : float or "auto", default="auto"
        `strength` of `em_transition_matrix`: pseudo-counts per class; "auto" goes by the evidence.
    calibration_weight : float or "auto", default="auto"
        How often a clean row counts in the calibration behind T. 1 is the likelihood. "auto": n / n_meta, at which all
        clean rows count as much as all noisy ones, or this to the power 3/4 or 1/2: the largest that raises the
        log-likelihood of held-out clean rows by more than 2 and by more than one standard error; else 1. With a number,
        T at other weights is not compared for "not_one_T".
    instance_dependent : bool, default=True
        Where no pair of true and noisy label is known: let the probability of a noisy label rise with that of its
        class, ``P(j | i, x) ~ R[i, j] p_j(x)^a``, if all labels are more likely so, and the clean rows not less; T is
        then the mean over all rows. People, for one, err on rows that look like another class. And let labels depend on
        the row alone, ``P(j | i, x) = P(j | x)``, as those of rules and models do, if they tell more of how a row looks
        than true labels do; T is then the mean over the clean rows of each class (with `select_classifier`). False: one
        T is true for all rows. Not with more than 20 classes or with a number as `prior_strength`.
    meta_batch_size : int, optional
        Clean rows in a step; default: a quarter of `batch_size`.
    meta_sampling : {"auto", "random", "by_class"}, default="auto"
        How the clean rows were drawn: at random from rows like the noisy ones, or a number of each class, so that their
        shares of the classes are others (as in case-control samples). These are then allowed for, in T, in the
        trainings and in the choice of the classifier; `predict_proba` has the noisy rows' shares. "auto": "by_class" if
        there are equally many of each class, noisy rows have other shares by a test at 0.1 %, and the clean rows look
        more as if drawn so, by a log Bayes factor above 1; never with more than 20 classes.
    select_classifier : bool, default=True
        Choose the last classifier by the cross-validated log-loss of the clean rows, each classifier at its best
        temperature: the network trained through T, unless this network after 1 to 50 more epochs on the clean rows
        alone, or a new network after so many, is better by a standard error; then that one, unless a network through T
        from the weights of the warm-up, as it is or after so many epochs on the clean rows, is better by 1.5 of them
        (if the start of T has a warm-up). They are judged by networks that are trained on the noisy rows alone, so that
        no clean row is judged by a network that has seen it. False, fewer than 6 clean rows, or a class without any:
        the network trained through T. `predict_proba` has no temperature: after many epochs on few rows it is too
        certain. `train_split`, and callbacks that follow a score or a schedule (EarlyStopping, Checkpoint,
        LRScheduler), take no part in the trainings on the clean rows.
    n_jobs : int, optional
        Folds that are trained at the same time, as in `joblib.Parallel`; ``joblib.parallel_config`` chooses other
        backends. The result is the same to the bit for any `n_jobs`: each fold has its share of PyTorch's threads.
        What callbacks collect in other processes stays there.
    transition_init : str or array-like, default="auto"
        Where T starts in each training, as in `TransitionClassifier`. "auto": "gold-shrunk" with folds. Without folds
        "diagonal", which needs no warm-up and supposes that most labels of each class are right; if they are not, take
        "gold-shrunk".
    warm_up_epochs
        As in `TransitionClassifier`.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, like ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (2, n_classes, n_classes)
        The start and the result.
    transition_counts_ : ndarray of shape (n_classes, n_classes)
        Expected number of held-out rows of each true and noisy label, behind T; clean rows with a known noisy label
        count too.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class.
    prior_strength_ : float
        Pseudo-counts per class of the prior.
    transition_std_ : ndarray of shape (n_classes, n_classes)
        Standard errors of T's entries; for up to 50 classes.
    transition_uncertainty_ : TransitionUncertainty
        What they and `transition_interval` come from.
    oof_proba_ : ndarray of shape (n_noisy, n_classes), float32
        Out-of-fold P(true class | x) of the noisy rows, in their order, calibrated; with folds. They find wrong
        labels that the classifier itself has memorised.
    calibration_ : Calibration
        The map that calibrated them.
    meta_weight_ : float
        Weight of the clean rows in the trainings that T comes from.
    n_epochs_ : int
        Number of epochs of the last training.
    cv_results_ : dict of ndarray
        ``epochs`` and ``log_evidence`` of each number of epochs.
    meta_offset_ : ndarray of shape (n_classes,)
        Logarithm of how much more often each class is among the clean rows than among the noisy ones; 0 where they are
        taken to be drawn at random.
    calibration_weight_ : float
        How often a clean row counted in the calibration.
    instance_dependence_ : float
        The power a of `instance_dependent`: 0 where one T is taken for all rows, infinity where labels depend on the
        row alone.
    final_ : str
        If there was a choice, the classifier: "own", "continued warm-up", "fine-tuned, 10 epochs", ...
    final_scores_ : dict of ndarray
        ``classifier`` and ``log_loss`` of the candidates; clean rows that are drawn class by class have weights.
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
    _parameter_constraints: ClassVar = {
        **TransitionClassifier._parameter_constraints,
        "meta_weight": [NUMBER, StrOptions({"auto"})],
        "calibration_weight": [Interval(Real, 0, np.inf, closed="neither"), StrOptions({"auto"})],
        "meta_batch_size": [COUNT, ALL_ROWS, None],
        "meta_sampling": [StrOptions(set(SAMPLINGS))],
        "cv": [Interval(Integral, 2, None, closed="left"), None],
        "select_epochs": ["boolean"],
        "select_classifier": ["boolean"],
        "instance_dependent": ["boolean"],
        "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "auto",
        meta_weight: float | str = "auto",
        cv: int | None = 3,
        select_epochs: bool = True,
        transition_prior: Prior = "symmetric",
        prior_strength: float | str = "auto",
        calibration_weight: float | str = "auto",
        instance_dependent: bool = True,
        meta_batch_size: int | None = None,
        meta_sampling: str = "auto",
        select_classifier: bool = True,
        n_jobs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, transition_init=transition_init, **net_params)
        self.calibration_weight = calibration_weight
        self.instance_dependent = instance_dependent
        self.select_classifier = select_classifier
        self.meta_weight = meta_weight
        self.cv = cv
        self.select_epochs = select_epochs
        self.transition_prior = transition_prior
        self.prior_strength = prior_strength
        self.meta_batch_size = meta_batch_size
        self.meta_sampling = meta_sampling
        self.n_jobs = n_jobs

    def _fit(self, run: Run) -> None:
        warm_up = self._warm_up(run) if self._start_name() in OF_WARM_UP else None
        start = self._start(run, warm_up)
        in_folds, at_last = weights_of_clean_batches(run, self.meta_weight)
        every = candidate_epochs(run.max_epochs)
        compared = every if self.select_epochs else every[-1:]  # the diagnostics look at the others too
        aside = [n for n in every if n not in compared]
        joint = JointTraining(start, in_folds, self.meta_batch_size)
        choose = self._chooses(run)
        folds = cross_fit(run, joint, cv=self.cv, epochs=compared, aside=aside, n_jobs=self.n_jobs, fine_tune=choose)
        candidates = folds.candidates[-len(compared) :]
        T = estimate_transition(
            candidates,
            run,
            start,
            fine_tuned=folds.fine_tuned,
            prior=in_class_order(self.transition_prior, run.classes),
            strength=self.prior_strength,
            weight=self.calibration_weight,
            depends=self.instance_dependent,
            sampling=self.meta_sampling,
        )
        self._keep(run, start, T, folds.candidates)
        run.weigh_clean(T.offset)
        self.meta_weight_, self.n_epochs_ = in_folds, T.last_training(candidates, run)
        train = partial(joint._replace(weight=at_last).train, run, T=T.transition_matrix, max_epochs=self.n_epochs_)
        self.net_ = train("em")
        if choose:
            modules = {} if warm_up is None else {CONTINUED: warm_up.plain_module_}
            best = self._choose_final(run, self._judged(run, modules), _STEPS)
            if best.start == CONTINUED:
                self.net_ = train("continued", module=modules[CONTINUED])
            self.net_ = finished(run, best, self.net_)

    def _judged(self, run: Run, modules: dict[str, nn.Module]) -> Starts:
        """Networks through T that have seen the noisy rows alone: a new one, and those from these modules."""
        T, epochs = self.transition_matrix_, self.n_epochs_
        return {
            name: run.train(_JUDGED[name], loss=ForwardLoss(T), max_epochs=epochs, module=module)
            for name, module in ({OWN: None} | modules).items()
        }

    def _start_name(self) -> str | None:
        if isinstance(self.transition_init, str) and self.transition_init == "auto":
            return "diagonal" if self.cv is None else "gold-shrunk"
        return super()._start_name()

    def _keep(self, run: Run, start: NDArray, T: Estimate, candidates: list[Candidate]) -> None:
        """Set the fitted attributes of T, and warn of reasons not to trust it."""
        self.transition_init_, self.transition_matrix_ = start, T.transition_matrix
        self.transition_history_ = np.stack([start, T.transition_matrix])
        result, (noisy, _), self.meta_offset_ = T.result, T.candidate.rows, T.offset
        self.transition_counts_, self.prior_strength_ = T.counts, result.strength
        self.instance_dependence_ = getattr(T.revised, "power", 0.0)
        self.calibration_, self.calibration_weight_, self.cv_results_ = T.calibration, T.weight, T.evidence
        # from x too: nearer than what T makes of the noisy labels' shares
        counts = T.counts - (0.0 if (pairs := known_pairs(run)) is None else pairs)
        self.class_counts_ = counts.sum(axis=1) * (len(run.noisy) / len(noisy))
        if self.cv is not None and (proba := T.proba) is not None:
            self.oof_proba_ = proba.astype(np.float32)[np.argsort(noisy)]
        self.__dict__.pop("transition_uncertainty_", None)  # of the start
        if (uncertainty := error_bars(T, run)) is not None:
            self.transition_uncertainty_ = uncertainty
        self.diagnostics_ = diagnose(T, candidates, uncertainty, run)
        warn_of_reasons(self.diagnostics_)

    # ---- checks
    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        self._check_shares(run)
        if refusal := unsendable(run, self.n_jobs):
            raise ValueError(f"n_jobs={self.n_jobs} {refusal}.")
        check_prior(self.transition_prior, self.prior_strength, len(run.classes), "transition_prior", "prior_strength")
        for rows, least, kind in zip((run.noisy, run.clean), n_folds(self.cv), ("noisy", "clean"), strict=True):
            if len(rows) < least:
                raise ValueError(
                    f"cv={self.cv} needs at least {least} {kind} rows and got {len(rows)}. Give more rows"
                    f"{', or fewer folds' if self.cv else ''}."
                )
