"""Classifier and T by joint maximum likelihood: expectation-maximisation anchored by the clean rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..transition import MOST_CLASSES, check_count, check_prior, check_rate
from ._checks import check_batch_size
from ._joint import Found, JointTraining, Setting
from ._run import Run
from ._transition import TransitionClassifier


class EMTransitionClassifier(TransitionClassifier):
    r"""Learn T and the classifier together as the maximum of one likelihood, with no step size for T.

    Noisy rows count by ``sum_i f_i(x) T[i, y]``, clean rows by ``f_y(x)``. While a net trains, T follows the posterior
    counts of its batches (`noisytransition.losses.EMLoss`). This is done in folds: the posteriors of rows that a net
    was not trained on give T (`em_transition_matrix`, calibrated and shrunk), so that memorised labels do not enter it;
    and their evidence chooses the weight of the clean rows and the number of epochs. Then one net learns from all rows,
    with this T and these settings::

        for weight in meta_weight, k in folds:
            train f, T on the rows outside fold k;  keep f's posteriors of fold k at several epochs
        weight, epochs  = those whose held-out posteriors make all labels most likely, T integrated out
        T               = maximum-likelihood T of these posteriors, shrunk by its evidence
        classifier      = net trained through T for so many epochs, clean rows weighing as in the likelihood

    The cost is that of a warm-up, of ``cv`` trainings for each weight, and of the last one: eleven by default. For a
    large network give ``meta_weight`` a number, and perhaps ``cv=None``: a single training after the warm-up, T from
    its own posteriors.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    meta_weight : float, sequence of float or "auto", default="auto"
        Weight of the clean batch's mean loss beside the noisy batch's. Of several, T comes from the one with the best
        held-out evidence; the last training has the weight of the likelihood itself, n_meta / n. "auto": 1, that
        weight, and their geometric mean. One number serves everywhere.
    cv : int or None, default=3
        Folds of noisy and clean rows. None: no folds; posteriors are those of the training rows themselves.
    select_epochs : bool, default=True
        With folds, choose the number of epochs too; `max_epochs` is the highest.
    transition_prior : "symmetric", array-like or None, default="symmetric"
        What T is shrunk towards: `prior` of `em_transition_matrix` (superclasses of shape (n_classes,), or a matrix).
    prior_strength : float or "auto", default="auto"
        `strength` of `em_transition_matrix`: pseudo-rows per class; "auto" goes by the evidence.
    meta_batch_size : int, optional
        Clean rows in a step; default: a quarter of `batch_size`.
    transition_init, transition_floor, warm_up_epochs
        As in `TransitionClassifier`: where T starts in each net.
    lr, max_epochs, batch_size, optimizer, device, dtype, batch_transform, callbacks, random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_steps + 1, n_classes, n_classes)
        The start and the result; without folds T after each epoch between them.
    transition_counts_ : ndarray of shape (n_classes, n_classes)
        Expected number of rows of each true and noisy label, behind T; `y_meta_noisy` is counted among them.
    class_counts_ : ndarray of shape (n_classes,)
        Their sums for each true class.
    prior_strength_ : float
        Pseudo-rows per class that the prior counted for.
    transition_std_ : ndarray of shape (n_classes, n_classes)
        Standard errors of T's entries; with folds, for up to 50 classes.
    transition_uncertainty_ : TransitionUncertainty
        What they and `transition_interval` come from.
    held_out_proba_ : ndarray of shape (n_noisy, n_classes), float32
        P(true class | x) of the noisy rows, in their order, by nets that were not trained on them, calibrated; with
        folds. To find wrong labels where the classifier itself has memorised them.
    calibration_ : Calibration or None
        The map that calibrated them; None without folds.
    meta_weight_ : float
        Weight of the clean rows in the trainings that T comes from.
    n_epochs_ : int
        Their number of epochs, and that of the last training.
    cv_results_ : dict of ndarray
        ``meta_weight``, ``epochs`` and ``log_evidence`` of each setting; empty without folds.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Dempster, Laird, Rubin, "Maximum Likelihood from Incomplete Data via the EM Algorithm", 1977. Dawid, Skene,
    "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979 (counts of labels).
    Chernozhukov et al., "Double/Debiased Machine Learning", 2018 (cross-fitting).

    Examples
    --------
    >>> from noisytransition.transition import flip_labels, pair_noise, transition_error
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> X, T = X / 16, pair_noise(10, 0.4)
    >>> y_noisy = flip_labels(y, T, random_state=0)
    >>> clf = EMTransitionClassifier(meta_weight=0.2, random_state=0)
    >>> clf = clf.fit(X[100:], y_noisy[100:], meta=(X[:100], y[:100]))
    >>> transition_error(T, clf.transition_matrix_) < 0.12
    True
    """

    _needs_clean_data = True

    def __init__(
        self,
        module: Any = None,
        *,
        meta_weight: Any = "auto",
        cv: int | None = 3,
        select_epochs: bool = True,
        transition_prior: Any = "symmetric",
        prior_strength: Any = "auto",
        meta_batch_size: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.meta_weight = meta_weight
        self.cv = cv
        self.select_epochs = select_epochs
        self.transition_prior = transition_prior
        self.prior_strength = prior_strength
        self.meta_batch_size = meta_batch_size

    def _fit(self, run: Run) -> None:
        start = self._start(run)
        joint = JointTraining(
            run,
            start,
            meta_batch_size=self.meta_batch_size,
            prior=self.transition_prior,
            strength=self.prior_strength,
        )
        if self.cv is None:
            self._fit_once(joint)
            return
        weights = None if self._is_auto() else self._weights()
        found = joint.find(weights, cv=self.cv, select_epochs=self.select_epochs)
        weight = weights[0] if weights and len(weights) == 1 else joint.natural_weight
        T = found.transition.transition_matrix
        self.net_ = joint.train("em", weight, T, max_epochs=found.setting.epochs)
        self._keep(found, [start, T])
        if (calibration := found.transition.calibration) is not None:
            self.held_out_proba_ = calibration(found.setting.proba).astype(np.float32)
        if (uncertainty := joint.uncertainty(found)) is not None:
            self.transition_uncertainty_, self.transition_std_ = uncertainty, uncertainty.std

    def _fit_once(self, joint: JointTraining) -> None:
        """Without folds: T of the net that is kept, from its own posteriors."""
        (weight,) = self._weights()
        self.net_ = joint.train_with_transition("em", weight)
        only = Setting(weight, len(self.net_.history), self.net_.predict_proba(joint.noisy))
        found = Found(joint.most_likely(only), only, {})
        self._keep(found, [*self.net_.update.transition_history_, found.transition.transition_matrix])

    def _keep(self, found: Found, history: Sequence[NDArray[np.float64]]) -> None:
        """Set the fitted attributes."""
        T = found.transition
        self.transition_history_, self.transition_matrix_ = np.stack(history), T.transition_matrix
        self.transition_init_ = self.transition_history_[0]
        # from x too: nearer than what T makes of the noisy labels' shares
        self.class_counts_ = T.counts.sum(axis=1)
        self.transition_counts_, self.prior_strength_, self.calibration_ = T.counts, T.strength, T.calibration
        self.meta_weight_, self.n_epochs_ = found.setting.meta_weight, found.setting.epochs
        self.cv_results_ = found.results

    # ---- error bars of T
    def transition_interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of T in the population that the rows come from.

        They hold the chance in the labels and the uncertainty of the classifier, as far as the clean rows tell of it
        (`noisytransition.transition.transition_uncertainty`).

        Parameters
        ----------
        level : float in (0, 1), default=0.9

        Returns
        -------
        low, high : ndarray of shape (n_classes, n_classes)
            Where `low` is 0, the flip may not happen at all, and `high` is an upper bound.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or there are no error bars: after ``cv=None``, or for more than 50
            classes.
        """
        check_is_fitted(self, "transition_matrix_")
        if not hasattr(self, "transition_uncertainty_"):
            if (c := len(self.classes_)) > MOST_CLASSES:
                raise ValueError(f"no error bars of T with {c} classes; they are for up to {MOST_CLASSES}.")
            raise ValueError(f"no error bars of T with cv={self.cv}: they need clean rows held out in folds (cv=3).")
        return self.transition_uncertainty_.interval(level)

    def transition_summary(self, level: float = 0.9, *, least: float = 0.01) -> str:
        """Say what becomes of each class, with error bars.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
        least : float, default=0.01
            Flips that are less probable are not listed one by one.

        Returns
        -------
        str
            A line for each flip, such as ``cat -> dog 0.38 [0.35, 0.42]``, the most probable first.

        Raises
        ------
        ValueError
            As `transition_interval`, or if `least` is no probability.
        """
        check_rate(least, "least")
        low, high = self.transition_interval(level)
        T, names = self.transition_matrix_, self.classes_
        flips = [(i, j) for i, j in np.argwhere(~np.eye(len(T), dtype=bool))]
        listed = sorted((f for f in flips if T[f] >= least), key=lambda f: -T[f])
        lines = [f"{names[i]} -> {names[j]} {T[i, j]:.2f} [{low[i, j]:.2f}, {high[i, j]:.2f}]" for i, j in listed]
        if rest := [f for f in flips if T[f] < least]:
            lines.append(f"{len(rest)} other flips: each below {least:g}, at most {max(high[f] for f in rest):.2f}")
        return "\n".join(lines)

    def _is_auto(self) -> bool:
        return isinstance(self.meta_weight, str) and self.meta_weight == "auto"

    def _weights(self) -> Sequence[float]:
        """Weights as the user gave them."""
        return tuple(np.atleast_1d(self.meta_weight).tolist())

    # ---- checks
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_batch_size(self, "meta_batch_size")
        if self.cv is not None:
            check_count(self.cv, 2, "cv")
        self._check_weights()

    def _check_weights(self) -> None:
        weights = self._weights()
        if not self._is_auto() and not (
            weights and all(isinstance(w, int | float) and 0 <= w < np.inf for w in weights)
        ):
            raise ValueError(f"meta_weight={self.meta_weight!r}; give a number of at least 0, several, or 'auto'.")
        if self.cv is None and (self._is_auto() or len(weights) > 1):
            raise ValueError(
                f"meta_weight={self.meta_weight!r} with cv=None: without folds there is nothing to choose by; give "
                "one number (0.2 is a fair start), or cv=3."
            )

    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        check_prior(self.transition_prior, self.prior_strength, len(run.classes), "transition_prior", "prior_strength")
        if self.cv is not None and self.cv > min(len(run.noisy), len(run.clean)):
            raise ValueError(
                f"cv={self.cv} for {len(run.noisy)} noisy and {len(run.clean)} clean rows: each fold needs one of "
                "both. Give fewer folds, or cv=None and one number for meta_weight."
            )
