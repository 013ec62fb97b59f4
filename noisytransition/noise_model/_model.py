"""Estimate T, posteriors and label issues from probabilities of any classifier."""

from __future__ import annotations
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import as_floats, check_classes, in_class_order, index_of, warn_of_order
from ..labels._columns import SourceLabels, split_columns
from ..labels._read import read_labels
from ..likelihood._diagnostics import diagnose, warn_of_reasons
from ..likelihood._fit import NoiseFit, fit_noise, gold_start, left_out_of_clean, with_error_bars
from ..likelihood._out_of_fold import DENOISING, OutOfFold, check_columns, denoised, read_out_of_fold, without_features
from ..likelihood._pair_posterior import Channel, OneT, floored
from ..likelihood._pool import Views
from ..likelihood._shrinkage import Prior, check_prior, with_other_labels
from ..likelihood._sources import SourceFit, fit_sources, from_other_sources, log_likelihood
from ..likelihood._uncertainty import MOST_CLASSES, TransitionUncertainty
from ..transition._checks import check_count, check_level, check_rate, check_transition_matrix, checked_probabilities
from ..transition._noise import RandomState
from ..transition._posterior import denoise_proba
from ._samples import LabelledSamples, data_frame, in_series
from ._shares import Estimate, Population
from ._suggest import Plan, plan, reasons_to_verify, samples_of_fit, suggest_samples


@dataclass(kw_only=True, eq=False)
class LabelNoiseModel:
    """Estimate the transition matrix T and P(true | x, label) from out-of-sample probabilities of any classifier.

    `sklearn.model_selection.cross_val_predict` computes such probabilities. Verify some samples, or set `proba_of`. The
    steps of `fit` are::

        calibration   softmax(A log proba + b), fitted to verified and noisy labels
        T             maximum-likelihood estimate from all labels, shrunk by the evidence
        test          test whether all samples share one T. If not, fit a posterior to the pairs of true and
                      noisy labels (without pairs, a model of feature-dependent noise); T is its mean, corrected
                      by the pairs
        posterior     P(true = i | x, noisy = j) ~ proba_i(x) T[i, j], or the fitted posterior

    See :doc:`/methods/maximum_likelihood` for the statistics and :doc:`/trust` for checks of T.

    Parameters
    ----------
    prior : "symmetric", array-like or None, default="symmetric"
        Matrix that T is shrunk towards, as `prior` of `em_transition_matrix`.
    verified_sampling : {"random", "stratified"}, default="random"
        How the verified samples were drawn. "stratified": a fixed number per class; `fit` corrects their class prior.
    proba_of : {"true", "noisy"}, optional
        Label that `proba` predicts; required without verified samples, otherwise ignored. "noisy": the classifier was
        trained on noisy labels, and `fit` denoises the probabilities by anchor points (Patrini et al., 2017).

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Labels in the order of the columns of `proba` and of T.
    labels_ : ndarray of shape (d,)
        `classes_`, followed by noisy labels that are no classes. Their `label_quality` is NaN.
    transition_matrix_ : ndarray of shape (c, d)
        Noise transition matrix T: entry (i, j) is P(noisy = labels_[j] | true = classes_[i]).
    transition_std_ : ndarray of shape (c, d)
        Standard errors of T, if it has error bars; at most 0.5.
    transition_counts_ : ndarray of shape (c, d)
        Expected number of samples of each true (i) and noisy (j) label, including verified pairs.
    noisy_class_counts_ : ndarray of shape (c,)
        Expected number of samples of each true class, without verified samples.
    diagnostics_ : dict of str to str
        Reasons to doubt T, and notes, by name (:doc:`/trust`). `fit` warns of most.
    uncertainty_ : named tuple or None
        Error bars of T, as from `transition_uncertainty`; None with more than 50 classes, or if T was given.
    calibration_ : callable or None
        Map from `proba` to probabilities of the true label, as `calibrate`; None without verified samples.
    anchors_ : ndarray of shape (c, c) or None
        T at anchor points, used with ``proba_of="noisy"``.
    prior_strength_ : float
        Pseudo-counts of the prior per class.
    log_prior_ratio_ : ndarray of shape (c,)
        Log-ratio of the class priors of verified and noisy samples; 0 unless stratified.
    feature_dependence_ : float
        Exponent a of feature-dependent noise (:doc:`/trust`); 0 if all samples share one T.
    out_of_fold_ : named tuple
        Data that T was estimated from: all labels, and the probabilities of the best candidate.
    sources_ : named tuple or None
        ``names``, ``matrices`` (T) and ``weights`` of the sources, if there are several. `transition_matrix_` then
        describes the most frequent label of each sample.
    shares_of_views_ : dict of str to float, or None
        Shares of "features", "label" and "clean" (verified samples alone) in the posteriors that a classifier was
        trained on; None without a classifier.
    log_evidence_, best_candidate_ : ndarray of shape (n_candidates,), int
        Log-evidence of each candidate, and the position of the highest. `fit` has one candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_predict
    >>> from noisytransition import LabelNoiseModel, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> y_noisy = flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> checked = np.where(np.arange(150) % 3 == 0, y, -1)  # -1: not verified
    >>> proba = cross_val_predict(LogisticRegression(max_iter=1000), X, y_noisy, method="predict_proba")
    >>> model = LabelNoiseModel().fit(proba, y_noisy, y_verified=checked)
    >>> model.transition_matrix_.round(1)
    array([[0.7, 0.3, 0. ],
           [0. , 0.5, 0.5],
           [0.3, 0. , 0.7]])
    >>> issues = model.find_label_issues()
    >>> len(issues), float((y_noisy != y)[issues.position].mean())  # share of these labels that are wrong
    (37, 1.0)
    """

    prior: Prior = "symmetric"
    verified_sampling: str = "random"
    proba_of: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "transition_std_":
            return np.minimum(self._error_bars(AttributeError).std, 0.5)  # no larger one between 0 and 1
        hint = "" if "classes_" in vars(self) else " before it is fitted. Call fit first"
        raise AttributeError(f"LabelNoiseModel has no attribute {name!r}{hint}.")

    # ---- fit
    def fit(
        self,
        proba: ArrayLike | None,
        y_noisy: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        proba_clean: ArrayLike | None = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        verified_probability: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate T and its error bars, and check for reasons not to trust T.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Out-of-sample probabilities of the samples, from any classifier. None: there are no features, such as for
            verdicts of a judge; each class is equally probable (:doc:`/judges`).
        y_noisy : array-like of shape (n,) or data frame
            Noisy labels in the order of `proba`. Samples without any label count in shares, with their probabilities.
            In a data frame, the columns "verified", "verified_probability" and "group" replace the arguments below.
            Each other column has the labels of one source, possibly with missing values.
        y_verified : array-like of shape (n,), optional
            True labels of verified samples; missing for all others (None, NaN, NA, or -1 if -1 is not a class).
        proba_clean, y_clean : array-like of shape (n_clean, c) and (n_clean,), optional
            Probabilities and true labels of separate clean samples.
        y_clean_noisy : array-like of shape (n_clean,), optional
            Noisy labels of these samples; missing if unknown.
        classes : array-like of shape (c,) or (d,), optional
            Labels in the order of the columns of `proba`, then d - c noisy labels that are not classes, such as
            "unsure". Default: the columns of a data frame `proba` if they are the labels, else 0..c-1 or the
            sorted labels.
        sources : array-like of shape (n,), optional
            Source of each noisy label, if each sample was labelled by one of several sources. T of periods (dates,
            pandas' periods, or an ordered categorical) changes gradually along time.
        verified_probability : array-like of shape (n,), optional
            Probability with which each verified sample was drawn, relative to a draw at random: ``probability`` of
            `suggest_samples`. Missing or 1: drawn at random. Values of other samples are ignored.
        groups : array-like of shape (n,), or a column "group" of y_noisy, optional
            Group of each sample, such as a patient or document, if samples of a group are not independent. Their
            probabilities must be by a classifier that has seen no sample of the group, e.g. with
            ``cross_val_predict(cv=GroupKFold())``. Error bars and intervals then count groups (:ref:`groups`).
        sample_weight : array-like of shape (n,), optional
            Weights with which the samples represent the population, such as the design weights of a survey: class
            shares, accuracies and the correction of T by verified pairs are those of the weighted population.

        Returns
        -------
        self
        """
        if self.verified_sampling not in ("random", "stratified"):
            raise ValueError(f"verified_sampling={self.verified_sampling!r}; pass 'random' or 'stratified'.")
        if self.proba_of not in (None, "true", "noisy"):
            raise ValueError(f"proba_of={self.proba_of!r}; pass 'true' or 'noisy', or None with verified samples.")
        columns = split_columns(y_noisy, y_verified, "y_noisy", sources, verified_probability, groups)
        clean: Any = proba_clean, y_clean, y_clean_noisy
        if proba is None:
            proba, clean, classes = without_features(columns, clean, classes)
        out_of_fold, labels, c = read_out_of_fold(proba, columns, clean, classes, sample_weight)
        check_prior(self.prior, c)
        if not len(out_of_fold.clean) and self.proba_of is None:
            advice = "Pass y_verified; or proba_of, 'noisy' if the classifier was trained on noisy labels, else 'true'"
            raise ValueError(f"no sample is verified. {advice}.")
        anchors = None
        if self.proba_of == "noisy" and not len(out_of_fold.clean):
            out_of_fold, anchors = denoised(out_of_fold, c)
        self._fit_candidates(out_of_fold, labels, c)
        self.anchors_ = anchors  # after _fit_candidates, which sets None
        warn_of_reasons(self.diagnostics_, stacklevel=3)
        return self

    def _fit_noise(
        self, out_of_fold: OutOfFold, classes: NDArray, start: NDArray | None = None, show: Any = iter
    ) -> NoiseFit:
        """Fit the noise with the parameters of the model; the initial T is that of the clean samples by default."""
        if start is None:
            start = gold_start(*out_of_fold.candidates[0][1:], out_of_fold.clean)
        prior = with_other_labels(in_class_order(self.prior, classes), len(classes), len(start))
        return fit_noise(out_of_fold, start, prior, stratified=self.verified_sampling == "stratified", show=show)

    def _fit_candidates(
        self, out_of_fold: OutOfFold, labels: NDArray, c: int, start: NDArray | None = None, show: Any = iter
    ) -> NoiseFit:
        """Estimate T from the candidate with the highest evidence, and set the fitted attributes.

        The first c labels are classes.
        """
        fit, bars = with_error_bars(self._fit_noise(out_of_fold, labels[:c], start, show))
        out_of_fold = fit.out_of_fold
        self.classes_, self.labels_, self.anchors_ = labels[:c], labels, None
        self.transition_matrix_, self.transition_counts_ = fit.transition_matrix[:c], fit.counts[:c]
        # expected counts also use the features, so they are more precise than counts from T and the noisy labels
        self.noisy_class_counts_ = (fit.counts - out_of_fold.pairs)[:c].sum(axis=1)
        without_label = fit.all_samples.candidates[0].proba[fit.all_samples.noisy < 0]
        self.noisy_class_counts_ += fit.calibrated(without_label)[:, :c].sum(axis=0)
        self._channel: Channel = fit.channel.of_classes(c)
        self.calibration_ = None if fit.calibration is None else fit.calibration.of_classes(c)
        self.uncertainty_ = None if bars is None else bars.of_classes(c)
        self.prior_strength_, self.log_prior_ratio_ = fit.one_T.strength, fit.log_prior_ratio[:c]
        self.feature_dependence_ = fit.power
        self.log_evidence_ = fit.log_evidence
        self.best_candidate_ = int(fit.log_evidence.argmax())
        self.diagnostics_ = diagnose(fit, self.uncertainty_, self.classes_)
        self.out_of_fold_ = fit.all_samples
        self._cross_fitted: Any = None
        # out-of-fold predicted classes of noisy and of clean samples; None for the highest calibrated probabilities
        self._predicted: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self.sources_: SourceFit | None = None
        self.shares_of_views_: dict[str, float] | None = None
        if out_of_fold.sources is not None:
            self._fit_sources(out_of_fold.sources, left_out_of_clean(fit)[:, :c], fit.log_prior_ratio)
        return fit

    def _fit_sources(self, sources: SourceLabels, proba_clean: NDArray, log_prior_ratio: NDArray) -> None:
        """Estimate T and weight of each source from calibrated probabilities, left-out ones of verified samples."""
        samples = self.out_of_fold_
        proba = self.calibrate(samples.candidates[0].proba[:, : len(self.classes_)])
        codes = sources.at(samples.positions)
        true = samples.in_order(np.full(len(proba), -1), samples.clean)
        proba = samples.in_order(proba, proba_clean)
        groups = None if samples.groups is None else samples.in_order(*samples.groups)
        self.sources_ = fit_sources(
            proba, codes, true, sources.names, len(self.labels_), are_periods=sources.are_periods, groups=groups
        )
        self.diagnostics_ |= self.sources_.reasons()
        if not log_prior_ratio.any():
            weights = samples.in_order(np.ones(len(samples.noisy)), samples.weights_of_clean(log_prior_ratio))
            self.diagnostics_ |= from_other_sources(codes, true, sources.names, weights, groups)

    @classmethod
    def from_transition_matrix(
        cls, T: ArrayLike, classes: ArrayLike | None = None, class_counts: ArrayLike | None = None
    ) -> Self:
        """Create a model with a given T, without error bars.

        Its methods expect probabilities of the true label.

        Parameters
        ----------
        T : array-like of shape (c, c)
        classes : array-like of shape (c,), optional
            Labels in the order of T. Default: the columns of a data frame T, else 0..c-1.
        class_counts : array-like of shape (c,), optional
            Number of samples of each true class.

        Returns
        -------
        LabelNoiseModel

        Examples
        --------
        >>> from noisytransition import LabelNoiseModel
        >>> model = LabelNoiseModel.from_transition_matrix([[0.9, 0.1], [0.3, 0.7]], ["cat", "dog"])
        >>> proba, labels = [[0.9, 0.1], [0.01, 0.99], [0.4, 0.6]], ["cat", "cat", "cat"]
        >>> model.label_quality(proba, labels).round(3)
        array([0.964, 0.029, 0.667])
        >>> model.find_label_issues(proba, labels).round(3)
           position given_label suggested_label  label_quality
        1         1         cat             dog          0.029
        >>> model.relabel(proba, labels, threshold=0.9)
        array(['cat', 'dog', 'cat'], dtype='<U3')
        """
        if classes is None:
            columns: Any = getattr(T, "columns", None)
            classes = np.arange(len(check_transition_matrix(T, name="T"))) if columns is None else columns
        names = check_classes(classes, None)
        c = len(names)
        model = cls()
        model.classes_ = model.labels_ = names
        model.transition_matrix_ = check_transition_matrix(in_class_order(T, names), c, "T")
        model._channel = OneT(model.transition_matrix_)
        counts = np.ones(c) if class_counts is None else in_class_order(class_counts, names)
        model.noisy_class_counts_ = as_floats(counts, "class_counts")
        if model.noisy_class_counts_.shape != (c,) or not (model.noisy_class_counts_ >= 0).all():
            raise ValueError(f"class_counts={class_counts!r}; pass {c} numbers of at least 0, one per class.")
        model.calibration_ = model.anchors_ = model.uncertainty_ = model.sources_ = model.shares_of_views_ = None
        model.diagnostics_ = {}
        return model

    # ---- T in words and with error bars
    def transition_interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute confidence intervals for T, with at most 50 classes, in the population that the samples come from.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Confidence level of each interval.

        Returns
        -------
        low, high : ndarray of shape (c, c)
            If `low` is 0, the flip may not occur at all.
        """
        return self._error_bars().interval(level)

    def transition_summary(self, level: float = 0.9, *, least: float = 0.01, top: int = 15) -> str:
        """List the most probable label flips, with error bars if T has them.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Confidence level of the error bars.
        least : float, default=0.01
            Smallest probability of a listed flip.
        top : int, default=15
            Maximum number of listed flips.

        Returns
        -------
        str
            One line per flip, such as ``cat -> dog 0.38 [0.35, 0.42]``, in descending order of probability. A last
            line says if the error bars assume the model of the noise, for lack of pairs of true and noisy label.
        """
        check_rate(least, "least")
        check_count(top, 0, "top")
        T = self.transition_matrix_
        bounds = None if self.uncertainty_ is None else self.transition_interval(level)
        flips = self._flips()
        n = min(int(sum(T[flip] >= least for flip in flips)), top)
        lines = [
            f"{self.classes_[i]} -> {self.labels_[j]} {T[i, j]:.2f}"
            + ("" if bounds is None else f" [{bounds[0][i, j]:.2f}, {bounds[1][i, j]:.2f}]")
            for i, j in flips[:n]
        ]
        if rest := flips[n:]:
            each = f"below {least:g}" if T[rest[0]] < least else f"{T[rest[0]]:.2f} or less"
            at_most = "" if bounds is None else f", at most {max(bounds[1][flip] for flip in rest):.2f}"
            lines.append(f"{len(rest)} other flips: each {each}{at_most}")
        if bounds is not None and not self.out_of_fold_.pairs.any():
            lines.append("error bars assume the model of the noise: no verified sample has a noisy label")
        return "\n".join(lines)

    def _flips(self) -> list[tuple[int, int]]:
        """True class and noisy label of all flips, the most probable first."""
        c, d = self.transition_matrix_.shape
        flips = np.where(np.eye(c, d, dtype=bool), np.inf, -self.transition_matrix_)
        return [divmod(int(at), d) for at in np.argsort(flips, axis=None, kind="stable")[: c * (d - 1)]]

    def transition_frame(self) -> Any:
        """T as a data frame.

        Returns
        -------
        DataFrame of shape (c, d)
            A row for each true class, a column for each noisy label.
        """
        return data_frame(self.transition_matrix_, self.classes_).set_axis(self.labels_, axis=1)

    def source_summary(self, level: float = 0.9) -> Any:
        """Summarise the sources of labels: number of labels, share of correct labels, most probable flip.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Confidence level of the bounds.

        Returns
        -------
        DataFrame
            One row per source, with the columns ``n_labels``, ``n_verified``, ``right`` (share of correct labels),
            ``lower``, ``upper``, ``worst_flip`` and its probability ``flip``, ``weight`` in the posterior, and
            ``log_evidence`` that T of the source differs from the common T. Intervals are by the verified labels of
            a source, whatever its errors; NaN without verified samples, or if they are stratified.
        """
        check_level(level)
        if self.sources_ is None:
            raise ValueError("the model has one source of labels. Fit it to a data frame with a column per source.")
        sources = self.sources_
        _, c, d = sources.matrices.shape
        flips = np.where(np.eye(c, d, dtype=bool), 0.0, sources.matrices).reshape(len(sources.names), -1)
        worst = [divmod(at, d) for at in flips.argmax(axis=1)]
        right = sources.right
        lower = upper = np.full(len(right), np.nan)
        if len(self.out_of_fold_.clean) > 1 and self.verified_sampling == "random":
            found = Population(self).accuracy_by_source()
            right = right if self.out_of_fold_.weights is None else found.share  # the model has no weights
            lower, upper = found.interval(level)
        columns: dict[str, Any] = {
            "n_labels": sources.n_labels,
            "n_verified": sources.n_verified,
            "right": right,
            "lower": np.minimum(lower, right),
            "upper": np.maximum(upper, right),
            "worst_flip": [f"{self.classes_[i]} -> {self.labels_[j]}" for i, j in worst],
            "flip": flips.max(axis=1),
            "weight": sources.weights,
            "log_evidence": sources.log_evidence,
        }
        return data_frame(columns, sources.names)

    def _error_bars(self, error: type[Exception] = ValueError) -> TransitionUncertainty:
        if self.uncertainty_ is None:
            raise error(f"T of {len(self.classes_)} classes has no error bars. Fit samples of at most {MOST_CLASSES}.")
        return self.uncertainty_

    # ---- shares
    def class_shares(
        self, level: float = 0.9, *, by: ArrayLike | None = None, proba: ArrayLike | None = None, y_noisy: Any = None
    ) -> Any:
        """Estimate class priors with intervals, by prediction-powered inference (:doc:`/class_shares`).

        Verified samples must be drawn at random, with known probabilities, or by their given labels.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Confidence level of the intervals.
        by : array-like of shape (n_samples,), optional
            Subgroup of each sample of X, such as its site. Each has its own shares: predictions are those of one fit,
            corrected by the verified samples of the subgroup. Without any, the interval is [0, 1].
        proba, y_noisy : array-like of shape (n_batch, c) and (n_batch,), optional
            Probabilities by the classifier that the model was fitted to and, if known, noisy labels of another batch
            with other class priors, such as data of the next month. T and the distribution of features in each class
            must be the same. Default: the samples of `fit`.

        Returns
        -------
        DataFrame
            One row per class, or with `by` per subgroup and class, with the columns ``share``, ``lower``, ``upper`` and
            ``n_verified``, the number of verified samples of this class. If it is below ten, the interval is wide.
        """
        check_level(level)
        if proba is None and y_noisy is not None:
            raise ValueError("y_noisy was given without proba. Also pass proba, the probabilities of the same batch.")
        if proba is not None and by is not None:
            raise ValueError("by has the subgroups of the samples of fit. Omit proba, or pass it for each subgroup.")

        population = Population(self)

        def frame(estimate: Estimate, used: Any = population.everywhere) -> Any:
            lower, upper = estimate.interval(level)
            share = np.clip(estimate.share / estimate.share.sum(), lower, upper)
            columns = {"share": share, "lower": lower, "upper": upper, "n_verified": population.n_of_class(used)}
            return data_frame(columns, self.classes_)

        if proba is not None:
            return frame(population.shares_of_batch(proba, y_noisy))
        if by is None:
            return frame(population.class_shares(population.everywhere))
        from pandas import concat  # slow to import

        return concat({name: frame(population.class_shares(used), used) for name, used in population.subgroups(by)})

    def accuracy_interval(self, level: float = 0.9, *, of: str = "classifier", by: ArrayLike | None = None) -> Any:
        """Estimate the accuracy of the classifier or of the noisy labels with an interval, as in `class_shares`.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Confidence level of the interval.
        of : {"classifier", "labels"}, default="classifier"
            "classifier": the class with the highest calibrated probability; of `TransitionClassifierCV`, the class
            that it predicts out-of-fold. "labels": the noisy label (of several sources, the most frequent label), which
            some verified samples must have.
        by : array-like of shape (n_samples,), optional
            Subgroup of each sample of X, as in `class_shares`.

        Returns
        -------
        Interval, or DataFrame
            A tuple ``(estimate, lower, upper)``. With `by`, one row per subgroup, with the number of its verified
            samples, ``n_verified``.
        """
        check_level(level)
        if of not in ("classifier", "labels"):
            raise ValueError(f"of={of!r}; pass 'classifier' or 'labels'.")
        population = Population(self)
        if by is None:
            return population.accuracy(of == "labels", population.everywhere).one_interval(level)
        parts = dict(population.subgroups(by))
        rows = [population.accuracy(of == "labels", used).one_interval(level) for used in parts.values()]
        return data_frame(rows, list(parts)).assign(n_verified=[used[1].sum() for used in parts.values()])

    # ---- samples to verify
    def suggest_samples(
        self, n: int, target: str = "shares", *, of: Any = None, random_state: RandomState = None
    ) -> Any:
        """Draw samples to verify next, with known probabilities (:doc:`/which_samples`).

        Half of each probability is uniform. The other half is proportional to a posterior standard deviation: of the
        sample's class (for T and shares), or of the correctness of its prediction (for accuracy). In the next `fit`,
        pass ``probability`` as the `verified_probability` of these samples. Verified samples must not be stratified.

        Parameters
        ----------
        n : int
            Number of samples.
        target : {"transition", "shares", "accuracy", "class"}, default="shares"
            Estimate to improve: T (for which random samples are as good), `class_shares`, or `accuracy_interval` of the
            classifier. "class": find samples of a rare class.
        of : label, optional
            The class to find. The second half of each probability is then proportional to its posterior probability.
        random_state : int, RandomState, Generator or None
            As in `flip_labels`.

        Returns
        -------
        DataFrame
            Columns ``position`` in the samples of `fit` (of a data frame: ``X.iloc[position]``), and ``probability`` of
            the draw, relative to a random draw (``n / n_not_verified``). It is at least 0.5, unless all more probable
            samples are drawn with certainty.
        """
        return suggest_samples(self, n, target, of, random_state)

    def plan_verification(self, target: str = "transition", width: float = 0.05, level: float = 0.9) -> Plan:
        """Compute how many samples to verify for intervals of a given width.

        Parameters
        ----------
        target : {"transition", "shares", "accuracy"}, default="transition"
            As in `suggest_samples`; "transition" refers to the noise rate of each class.
        width : float in (0, 0.5), default=0.05
            Half width of the intervals.
        level : float in (0, 1), default=0.9
            Confidence level of the intervals.

        Returns
        -------
        Plan
            With `table`, `n_samples` and `words` (also by ``str``). ``n_to_verify`` is the number of verified pairs per
            true class (for T), or of samples drawn by `suggest_samples`.
        """
        return plan(self, target, width, level)

    def needs_verification(
        self, proba: ArrayLike, y_noisy: Any = None, *, groups: ArrayLike | None = None, calibrated: bool = False
    ) -> dict[str, str]:
        """Tell whether a new batch differs from the samples of `fit`, so that some of it should be verified.

        Two tests at a level of 0.001 each: frequencies of the predicted classes, and frequencies of labels that agree
        with the prediction, given the predicted class. Differences below 0.03 are no reason.

        Parameters
        ----------
        proba : array-like of shape (n_batch, c)
            Probabilities by the same classifier, of samples that it was not trained on.
        y_noisy : array-like of shape (n_batch,), optional
            Noisy labels; of several sources, a data frame.
        groups : array-like of shape (n_batch,), optional
            Group of each sample, as in `fit`.
        calibrated : bool, default=False
            As in `label_posterior`.

        Returns
        -------
        dict of str to str
            Reasons, "classes" or "labels"; empty if there are none.

        Examples
        --------
        >>> import numpy as np
        >>> from noisytransition import LabelNoiseModel, flip_labels
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(2, size=3000)
        >>> proba = np.where(y[:, None] == [0, 1], 0.95, 0.05)
        >>> labels = flip_labels(y, [[0.9, 0.1], [0.1, 0.9]], random_state=0)
        >>> labels[2000:] = flip_labels(y[2000:], [[0.7, 0.3], [0.3, 0.7]], random_state=0)  # worse ones
        >>> checked = np.where(np.arange(2000) < 100, y[:2000], -1)
        >>> model = LabelNoiseModel().fit(proba[:2000], labels[:2000], y_verified=checked)
        >>> print(model.needs_verification(proba[2000:], labels[2000:])["labels"])
        the classifier agrees with 70% of the labels, weighted by its predictions in fit, and with 89% of those of fit;
        verify samples of the batch, and fit again with them
        """
        return reasons_to_verify(self, self._proba(proba, calibrated), y_noisy, groups, self._samples_of_fit())

    # ---- samples
    def calibrate(self, proba: ArrayLike) -> NDArray:
        """Compute P(true class | x) from probabilities by the classifier that the model was fitted to.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Probabilities, in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n, c)
        """
        proba = np.array(self._proba(proba, calibrated=True), dtype=np.float64)
        if self.calibration_ is not None:
            return self.calibration_(proba)
        return proba if self.anchors_ is None else denoise_proba(proba, self.anchors_, n_iter=DENOISING)

    def label_posterior(
        self, proba: ArrayLike | None = None, y_noisy: Any = None, *, y_verified: Any = None, calibrated: bool = False
    ) -> NDArray[np.float64]:
        """Compute P(true class | x, noisy label) by Bayes' rule.

        Parameters
        ----------
        proba : array-like of shape (n, c), optional
            Probabilities by the classifier that the model was fitted to. Default: those of `fit`.
        y_noisy, y_verified : optional
            Noisy and true labels, as in `fit`. Default: those of `fit`.
        calibrated : bool, default=False
            Whether `proba` are calibrated, or predict the true label. By default, the model calibrates them.

        Returns
        -------
        ndarray of shape (n, c)
            Probabilities, in the order of `classes_`; 0 or 1 for verified samples.
        """
        return self._samples(proba, y_noisy, y_verified, calibrated)[0].posterior(self._channel)

    def label_quality(
        self, proba: ArrayLike | None = None, y_noisy: Any = None, *, y_verified: Any = None, calibrated: bool = False
    ) -> Any:
        """Compute the probability that each label is correct, P(true class = noisy label | x, noisy label).

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrated
            As in `label_posterior`.

        Returns
        -------
        ndarray of shape (n,), or Series
            0 or 1 for verified samples; NaN if the noisy label is missing. A Series if the noisy labels have an index.
        """
        samples, index = self._samples(proba, y_noisy, y_verified, calibrated)
        return in_series(samples.judge(self._channel).quality, index, "label_quality")

    def find_label_issues(
        self,
        proba: ArrayLike | None = None,
        y_noisy: Any = None,
        *,
        y_verified: Any = None,
        threshold: float = 0.5,
        as_frame: bool = True,
        calibrated: bool = False,
    ) -> Any:
        """Find labels that are probably wrong, most probably first, among samples that are not verified.

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrated
            As in `label_posterior`.
        threshold : float in [0, 1], default=0.5
            Samples with a lower `label_quality` are returned. 0.5: labels that are more probably wrong than correct.
        as_frame : bool, default=True
            False: return positions only.

        Returns
        -------
        DataFrame with n_issues rows, or ndarray of int, shape (n_issues,)
            In ascending order of `label_quality`, with the columns ``position``, ``given_label``, ``suggested_label``
            (the most probable true class) and ``label_quality``. The index is the pandas index of the noisy labels or
            of `proba`, else the position.

        References
        ----------
        Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021, rank by
        ``proba[n, y]``, without T.
        """
        check_rate(threshold, "threshold")
        samples, index = self._samples(proba, y_noisy, y_verified, calibrated)
        judged = samples.judge(self._channel)
        issues = judged.issues(threshold)
        if not as_frame:
            return issues
        columns = {
            "position": issues,
            "given_label": self.labels_[judged.noisy[issues]],
            "suggested_label": self.classes_[judged.suggested[issues]],
            "label_quality": judged.quality[issues],
        }
        if index is None:
            index = index_of(proba)
        return data_frame(columns, issues if index is None else index[issues])

    def relabel(
        self,
        proba: ArrayLike | None = None,
        y_noisy: Any = None,
        *,
        y_verified: Any = None,
        threshold: float = 0.9,
        calibrated: bool = False,
    ) -> Any:
        """Replace labels whose true class is verified or nearly certain.

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrated
            As in `label_posterior`. Verified samples get their true label.
        threshold : float in [0, 1], default=0.9
            Minimum posterior of the most probable class to replace the label. A missing label is always replaced.

        Returns
        -------
        ndarray of shape (n,), or Series
            Labels from `labels_`. A Series if the noisy labels have an index.
        """
        check_rate(threshold, "threshold")
        samples, index = self._samples(proba, y_noisy, y_verified, calibrated)
        judged = samples.judge(self._channel)
        is_replaced = (judged.certainty >= threshold) | (judged.noisy < 0)
        codes = np.where(is_replaced, judged.suggested, judged.noisy)
        return in_series(self.labels_[codes], index, getattr(y_noisy, "name", None))

    # ---- inputs
    def _samples(
        self, proba: ArrayLike | None, y: Any, y_verified: Any, calibrated: bool
    ) -> tuple[LabelledSamples, Any]:
        """Samples whose labels are judged, by default those of `fit`, and the pandas index of their noisy labels."""
        probabilities = self._samples_of_fit().proba if proba is None else self._proba(proba, calibrated)
        n = len(probabilities)
        if y is None and y_verified is None:
            rows = samples_of_fit(self).positions
            if len({n, len(rows), int(rows[-1]) + 1}) > 1:
                used = f"{len(rows)} of {rows[-1] + 1} samples of fit have labels and weights above 0"
                raise ValueError(f"{used}, and {n} have probabilities. Pass X or proba of all samples, and y_noisy.")
            return self._samples_of_fit(probabilities), self.out_of_fold_.row_names
        warn_of_order(proba, y, y_verified)
        columns = split_columns(y, y_verified, "y_noisy")
        labels = read_labels(columns, n, classes=self.labels_)
        check_columns(labels, len(self.classes_))
        likelihood = self._by_source(labels.by_source)
        return LabelledSamples(probabilities, labels.given, labels.true, likelihood), columns.index

    def _batch(self, proba: ArrayLike, y_noisy: Any) -> LabelledSamples:
        """Samples of another batch with uncalibrated probabilities; their noisy labels can be unknown."""
        of_classes = self._proba(proba, calibrated=True)
        of_labels = np.pad(of_classes, ((0, 0), (0, len(self.labels_) - of_classes.shape[1])))
        if y_noisy is None:
            none = np.full(len(of_labels), -1)
            return LabelledSamples(of_labels, none, none)
        return self._samples(proba, y_noisy, None, True)[0]._replace(proba=of_labels)

    def _given_labels(self, y_noisy: Any, n: int) -> NDArray[np.intp]:
        """Codes of the noisy labels of n samples, of several sources the most frequent ones; -1 if unknown."""
        return read_labels(split_columns(y_noisy, None, "y_noisy"), n, classes=self.labels_).given

    def _likelihood(self, rows: NDArray[np.integer]) -> NDArray | None:
        """Likelihood of all labels of samples at these positions in `fit`; None with one source."""
        sources = self.out_of_fold_.sources
        return None if sources is None else self._by_source(sources._replace(codes=sources.at(rows)))

    def posterior_of_fit(self) -> NDArray[np.float64]:
        """Compute P(true | x, labels) of the samples of `fit` that are not verified; all are in `label_posterior`."""
        samples = self._samples_of_fit()
        return samples.posterior(self._channel)[samples.true < 0]

    def _views(self, fit: NoiseFit) -> tuple[Views, Views]:
        """What features and labels say about noisy samples, and about clean ones by a calibration without each."""
        of = fit.all_samples
        of_noisy = self._likelihood(of.rows)
        of_clean = self._likelihood(of.rows_of_clean)
        if self.sources_ is None:
            of_label = np.vstack([floored(fit.transition_matrix).T, np.ones(len(self.classes_))])  # -1: the last row
            of_noisy = of_label[of.noisy]
            of_clean = of_label[of.noisy_of_clean]
        return Views(fit.calibrated(of.candidates[0].proba), of_noisy), Views(left_out_of_clean(fit), of_clean)

    def _samples_of_fit(self, proba: NDArray | None = None) -> LabelledSamples:
        """Samples of `fit` in the order of X, with these probabilities, by default its calibrated ones."""
        samples = samples_of_fit(self)
        if proba is None:
            best = samples.candidates[0]
            proba = samples.in_order(best.proba, best.proba_clean)[:, : len(self.classes_)]
            proba = proba if self.calibration_ is None else self.calibration_(proba)  # None: of the true label
        noisy = samples.in_order(samples.noisy, samples.noisy_of_clean)
        true = samples.in_order(np.full(len(samples.noisy), -1), samples.clean)
        return LabelledSamples(proba, noisy, true, self._likelihood(samples.positions))

    def _rows_of_fit(self, noisy: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the samples of `fit` among others; none unless the noisy labels there are those of `fit`."""
        samples = self.out_of_fold_
        rows = samples.positions
        of_fit = samples.in_order(samples.noisy, samples.noisy_of_clean)
        return rows if rows[-1] < len(noisy) and np.array_equal(noisy[rows], of_fit) else rows[:0]

    def _by_source(self, labels: SourceLabels | None) -> NDArray | None:
        """Likelihood of all labels of each sample given each true class, up to a factor; None with one source."""
        sources = self.sources_
        if (labels is None) != (sources is None):
            form = "one column of labels" if sources is None else "several sources: a data frame with a column for each"
            raise ValueError(f"the model was fitted to {form}. Pass labels in this form.")
        if labels is None or sources is None:
            return None
        names = sources.names.tolist()
        if unknown := sorted(set(labels.names.tolist()) - set(names), key=str):
            raise ValueError(f"the model was not fitted to the sources {unknown}. Pass labels of {names} only.")
        order = [names.index(name) for name in labels.names.tolist()]
        codes = labels.of_classes(self.labels_).codes
        log = log_likelihood(codes, sources.matrices[order], sources.weights[order])
        return np.exp(log - log.max(axis=1, keepdims=True))

    def _proba(self, proba: ArrayLike, calibrated: bool) -> NDArray:
        """Probabilities in the order of the classes; of the true label if calibrated."""
        if not calibrated and (self.calibration_ is not None or self.anchors_ is not None):
            return self.calibrate(proba)
        return checked_probabilities(in_class_order(proba, self.classes_, rows=False), len(self.classes_))
