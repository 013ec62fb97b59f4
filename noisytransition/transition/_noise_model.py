"""T and what follows from it, from probabilities of any classifier, noisy labels and verified labels."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import (
    as_floats,
    check_count,
    check_level,
    check_probabilities,
    check_rate,
    check_transition_matrix,
    checked_probabilities,
)
from ._class_conditional import class_conditional_test
from ._diagnostics import diagnose, warn_of_reasons
from ._estimation import anchor_transition_matrix
from ._fit import TransitionFit, cross_fitted, shrunk_gold_start
from ._held_out import HeldOut, read_held_out
from ._instance_dependent import InstanceDependentEstimate
from ._labels import (
    SourceLabels,
    check_classes,
    class_indices,
    given_and_verified,
    in_class_order,
    labels_of_samples,
    like_series,
    names_of_rows,
)
from ._noise import RandomState
from ._posterior import LabelledSamples, denoise_proba
from ._shares import Interval, Population
from ._shrinkage import Prior, check_prior, with_other_labels
from ._sources import SourceFit, fit_sources, log_likelihood
from ._suggest import Plan, plan, suggest_rows
from ._uncertainty import MOST_CLASSES, TransitionUncertainty

if TYPE_CHECKING:
    from ..report import NoiseReport
    from ..report._facts import Clean

# of probabilities of the noisy label, without verified samples: mean error of T over 294 fits of scikit-learn's
# classifiers 0.347 after 5 iterations, 0.320 after 50
_DENOISING = 50


class LabelNoiseModel:
    r"""Estimate the transition matrix T, and P(true | x, label), from probabilities of any classifier.

    The probabilities must be out-of-sample, for example from `sklearn.model_selection.cross_val_predict`. Some samples
    are verified: their true label is known. ::

        calibration   softmax(A log proba + b), fitted to verified samples and noisy labels together
        T             maximises the likelihood of all labels, calibrated; shrunk by the evidence
        test of one T the pairs of true and noisy labels test whether one T holds for all samples; if not, T is the
                      mean of a posterior that is fitted to the pairs (without pairs: of noise that depends on x)
        posterior     P(true = i | x, noisy = j) ~ proba_i(x) T[i, j]

    See :doc:`/methods/maximum_likelihood` for the statistics, and :doc:`/trust` for how far T can be trusted.

    Parameters
    ----------
    prior : "symmetric", array-like or None, default="symmetric"
        What T is shrunk towards, as `prior` of `em_transition_matrix`.
    meta_sampling : {"random", "stratified"}, default="random"
        How the verified samples were drawn: at random, or a number of each class. In the latter case their class prior
        differs from that of the noisy samples; the difference is estimated and corrected for.
    proba_of : {"true", "noisy"}, optional
        Needed without verified samples: the label whose probabilities `proba` are. A classifier that was trained on
        noisy labels predicts the noisy label; its probabilities are denoised by anchor points (Patrini et al., 2017).
        Ignored with verified samples, since the calibration makes either into probabilities of the true label.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Labels in the order of the columns of `proba` and of T.
    labels_ : ndarray of shape (d,)
        `classes_`, and noisy labels that are no classes. Their `label_quality` is NaN.
    transition_matrix_ : ndarray of shape (c, d)
        T: row i, column j is P(noisy = labels_[j] | true = classes_[i]).
    transition_counts_ : ndarray of shape (c, c)
        Expected number of samples of each true (i) and noisy (j) label; verified pairs are counted.
    class_counts_ : ndarray of shape (c,)
        Expected number of samples of each true class, without the verified ones.
    diagnostics_ : dict of str to str
        Reasons not to trust T, of which `fit` warns; empty if none was found. Also "drawn_by_label", without a warning:
        how verified samples were drawn.
    uncertainty_ : TransitionUncertainty or None
        Error bars of T; None with more than 50 classes, or of a T that was given.
    calibration_ : Calibration or None
        Map from `proba` to probabilities of the true label; None without verified samples.
    anchors_ : ndarray of shape (c, c) or None
        T at anchor points, by which probabilities of the noisy label are denoised (``proba_of="noisy"``).
    prior_strength_ : float
        Pseudo-counts per class of the prior.
    class_offset_ : ndarray of shape (c,)
        Log-ratio of the class priors of verified and noisy samples; 0 unless stratified.
    instance_dependence_ : float
        Exponent a of noise that depends on the features (:doc:`/trust`); 0 if one T holds for all samples.
    held_out_ : HeldOut
        Probabilities, of that candidate, and labels that T was estimated from.
    sources_ : SourceFit or None
        T and weight of each source, if there are several (`source_summary`); `transition_matrix_` is then that of the
        most frequent label of each sample.
    log_evidence_, best_candidate_ : ndarray of shape (n_candidates,), int
        Log-evidence of each candidate, and the position of the highest, from which T is; `fit` has one candidate.

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
    >>> issues = model.find_label_issues(proba, y_noisy, y_verified=checked)
    >>> len(issues), float((y_noisy != y)[issues.position].mean())  # share of these labels that are wrong
    (37, 1.0)
    >>> issues.head(2)  # of labels in pandas, the index is theirs
         position  given_label  suggested_label  label_quality
    125       125            0                2   ...
    143       143            0                2   ...
    """

    def __init__(self, *, prior: Prior = "symmetric", meta_sampling: str = "random", proba_of: str | None = None):
        self.prior = prior
        self.meta_sampling = meta_sampling
        self.proba_of = proba_of

    def __repr__(self) -> str:
        return (
            f"LabelNoiseModel(prior={self.prior!r}, meta_sampling={self.meta_sampling!r}, proba_of={self.proba_of!r})"
        )

    # ---- fit
    def fit(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        proba_clean: ArrayLike | None = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        verified_probability: ArrayLike | None = None,
    ) -> Self:
        """Estimate T with its error bars, and look for reasons not to trust it.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Out-of-sample probabilities of the samples, from any classifier.
        y_noisy : array-like of shape (n,) or data frame
            Noisy labels of any kind, in the order of the rows of `proba` (an index is not looked at). A data frame has
            them beside the columns "verified" and "verified_probability", which are the arguments of these names
            (`y_verified`). They may be missing where a sample is verified. Each
            of several other columns has the labels of a source, missing where it said nothing.
        y_verified : array-like of shape (n,), optional
            True labels of the verified samples. Others are missing: None, NaN or NA, or -1 if that is no class.
        proba_clean, y_clean : array-like of shape (n_clean, c) and (n_clean,), optional
            Probabilities and true labels of clean samples that are not among the n samples.
        y_clean_noisy : array-like of shape (n_clean,), optional
            Their noisy labels; missing where they are not known.
        classes : array-like of shape (c,) or (d,), optional
            The labels in the order of the columns of `proba`. Default: the columns of a data frame that are named by
            the labels; else 0..c-1, or the sorted labels. Beyond c: noisy labels that are no classes, such as
            "abstains" or "unsure", which have columns of T and no rows.
        sources : array-like of shape (n,), optional
            Who or what gave each noisy label, where each sample has that of one of several sources.
        verified_probability : array-like of shape (n,), optional
            Column ``probability`` of `suggest_rows`, at the positions of the samples that it suggested: probability
            with which a verified sample was drawn, as a multiple of that in a draw at random. Missing, or 1: drawn at
            random. Values of other samples are not looked at.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an input is not valid, all samples are verified, or none is and `proba_of` is not given.

        Warns
        -----
        UserWarning
            Of reasons not to trust T.
        """
        self._check_parameters()
        held_out, labels, c = read_held_out(
            proba, y_noisy, y_verified, proba_clean, y_clean, y_clean_noisy, classes, sources, verified_probability
        )
        check_prior(self.prior, c)
        if not len(held_out.clean) and self.proba_of is None:
            raise ValueError(
                "no sample is verified: say what proba are. Give proba_of='noisy' for a classifier that was trained on "
                "noisy labels, proba_of='true' for one that predicts the true label."
            )
        anchors = None
        if self.proba_of == "noisy" and not len(held_out.clean):
            given = held_out.candidates[0]
            anchors = anchor_transition_matrix(given.proba[:, :c], percentile="auto")
            denoised = denoise_proba(given.proba[:, :c], anchors, n_iter=_DENOISING)
            denoised = np.pad(denoised, ((0, 0), (0, len(labels) - c)))
            held_out = held_out._replace(candidates=[given._replace(proba=denoised)])
        self.fit_candidates(held_out, labels, shrunk_gold_start(held_out), c)
        self.anchors_ = anchors  # fit_candidates, which takes probabilities of the true label, has set None
        warn_of_reasons(self.diagnostics_, stacklevel=3)
        return self

    def fit_candidates(self, held_out: HeldOut, labels: NDArray, start: NDArray, n_classes: int | None = None) -> Self:
        """Estimate T from the candidate with the highest evidence of all labels.

        Parameters
        ----------
        held_out : HeldOut
            Probabilities of several candidates, such as numbers of epochs, and all labels.
        labels : ndarray of shape (d,)
            Names of the classes in the order of the columns, and of labels that are no classes.
        start : ndarray of shape (d, d)
            T from which the maximisation starts.
        n_classes : int, optional
            Default: all labels are classes.

        Returns
        -------
        self
        """
        c = len(labels) if n_classes is None else n_classes
        prior = with_other_labels(self.prior, c, len(labels))
        fit = TransitionFit(held_out, start, prior, stratified=self.meta_sampling == "stratified")
        self.classes_, self.labels_, self.anchors_ = labels[:c], labels, None
        self.transition_matrix_, self.transition_counts_ = fit.transition_matrix[:c], fit.counts[:c]
        # expected counts use the features too; those from T and the noisy labels alone are less exact
        self.class_counts_ = (fit.counts - fit.pairs)[:c].sum(axis=1) * (held_out.n_noisy / len(held_out.noisy))
        calibration, bars = fit.calibration, fit.error_bars()
        self.calibration_ = None if calibration is None else calibration.of_classes(c)
        self.uncertainty_ = None if bars is None else bars.of_classes(c)
        self.prior_strength_, self.class_offset_ = fit.one_T.strength, fit.offset[:c]
        self.instance_dependence_ = fit.revised.power if isinstance(fit.revised, InstanceDependentEstimate) else 0.0
        self.log_evidence_, self.best_candidate_ = fit.log_evidence, int(fit.log_evidence.argmax())
        self.diagnostics_ = diagnose(fit, self.uncertainty_, self.classes_, labels)
        self.held_out_ = held_out._replace(candidates=[fit.best])
        self.sources_: SourceFit | None = None
        if held_out.sources is not None:
            self._fit_sources(held_out.sources, start, prior)
        return self

    def _fit_sources(self, sources: SourceLabels, start: NDArray, prior: Any) -> None:
        """T and weight of each source, from calibrated probabilities; those of verified samples are out-of-fold."""
        of, c = self.held_out_, len(self.classes_)
        _, of_noisy, of_clean = of.candidates[0]
        proba, crossed = np.split(self.calibrate(np.concatenate([of_noisy, of_clean])[:, :c]), [len(of_noisy)])
        for rows, fit in cross_fitted(of, start, prior, stratified=self.meta_sampling == "stratified"):
            crossed[rows] = fit.calibrated(of_clean[rows])[:, :c]
        codes = sources.at(of.in_order(of.rows, of.rows_of_clean))
        true = of.in_order(np.full(len(proba), -1), of.clean)
        found = fit_sources(of.in_order(proba, crossed), codes, true, sources.names, len(self.labels_))
        self.sources_ = found
        self.diagnostics_ |= found.reasons()

    @classmethod
    def from_transition_matrix(
        cls, T: ArrayLike, classes: ArrayLike | None = None, class_counts: ArrayLike | None = None
    ) -> Self:
        """Make the model of a given T, which has no error bars; probabilities are of the true label.

        Parameters
        ----------
        T : array-like of shape (c, c)
        classes : array-like of shape (c,), optional
            The labels in the order of T, or those of a data frame T in any order. Default: the columns of a data frame;
            else 0..c-1.
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
        model, names = cls(), check_classes(classes, None)
        c = len(names)
        model.classes_ = model.labels_ = names
        model.transition_matrix_ = check_transition_matrix(in_class_order(T, names), c, "T")
        model.class_counts_ = np.ones(c) if class_counts is None else as_floats(class_counts, "class_counts")
        if model.class_counts_.shape != (c,) or not (model.class_counts_ >= 0).all():
            raise ValueError(f"class_counts={class_counts!r}; give {c} numbers of at least 0, one per class.")
        model.calibration_ = model.anchors_ = model.uncertainty_ = model.sources_ = None
        model.diagnostics_ = {}
        return model

    # ---- T in words and with error bars
    @property
    def transition_std_(self) -> NDArray[np.float64]:
        """Standard errors of T's entries, shape (c, c), where there are error bars."""
        return self._error_bars(AttributeError).std

    def transition_interval(self, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of T in the population that the samples come from.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Probability that the population's entry is within its bounds.

        Returns
        -------
        low, high : ndarray of shape (c, c)
            Where `low` is 0, the flip may not happen at all, and `high` is an upper bound.

        Raises
        ------
        ValueError
            If there are no error bars: of a T that was given, or with more than 50 classes.
        """
        return self._error_bars().interval(level)

    def transition_summary(self, level: float = 0.9, *, least: float = 0.01, top: int = 15) -> str:
        """List the flips of T, with their error bars if there are any.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Level of the error bars.
        least : float, default=0.01
            Flips that are less probable are not listed one by one.
        top : int, default=15
            Number of flips that are listed one by one.

        Returns
        -------
        str
            A line for each flip, the most probable first, such as ``cat -> dog 0.38 [0.35, 0.42]``; without error bars
            ``cat -> dog 0.38``.
        """
        check_rate(least, "least")
        check_count(top, 0, "top")
        T, (c, d) = self.transition_matrix_, self.transition_matrix_.shape
        bounds = None if self.uncertainty_ is None else self.transition_interval(level)
        order = np.argsort(np.where(np.eye(c, d, dtype=bool), np.inf, -T), axis=None, kind="stable")[: c * (d - 1)]
        flips = [divmod(int(at), d) for at in order]
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
        return "\n".join(lines)

    def source_summary(self, level: float = 0.9) -> Any:
        """Sources of a table of several labels: how many labels each gave, and how many of them are correct.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Level of the bounds.

        Returns
        -------
        DataFrame
            A row for each source, with the columns ``n_labels``, ``n_verified``, ``right``, ``lower``, ``upper`` (the
            share of correct labels), ``worst_flip`` with its probability ``flip``, ``weight`` in the posterior, and
            ``log_evidence`` that T of the source is not the common one.

        Raises
        ------
        ValueError
            If the model was fitted to one label of each sample.
        """
        from pandas import DataFrame  # slow to import

        check_level(level)
        if self.sources_ is None:
            raise ValueError(
                "the model was fitted to one label of each sample; a table has one column for each source."
            )
        of, (c, d) = self.sources_, self.sources_.common.shape
        worst = np.where(np.eye(c, d, dtype=bool), 0.0, of.matrices).reshape(len(of.names), -1)
        true, given = np.divmod(worst.argmax(axis=1), d)
        lower, upper = of.right_interval(level)
        columns: dict[str, Any] = {
            "n_labels": of.n_labels,
            "n_verified": of.n_verified,
            "right": of.right,
            "lower": lower,
            "upper": upper,
            "worst_flip": [f"{self.classes_[i]} -> {self.labels_[j]}" for i, j in zip(true, given, strict=True)],
            "flip": worst.max(axis=1),
            "weight": of.weights,
            "log_evidence": of.log_evidence,
        }
        return DataFrame(columns, index=of.names)

    def _error_bars(self, error: type[Exception] = ValueError) -> TransitionUncertainty:
        if self.uncertainty_ is None:
            raise error(
                f"T of {len(self.classes_)} classes has no error bars: they need a T that was estimated from "
                f"out-of-sample probabilities, and at most {MOST_CLASSES} classes."
            )
        return self.uncertainty_

    # ---- shares
    def class_shares(self, level: float = 0.9, *, proba: ArrayLike | None = None, y_noisy: Any = None) -> Any:
        """Shares of the true classes with intervals, by prediction-powered inference (:doc:`/class_shares`).

        Predictions are P(true | x, label) of models without the verified samples that they are compared with.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Level of the intervals.
        proba, y_noisy : array-like of shape (n_batch, c) and (n_batch,), optional
            Another batch, such as that of the next month, in which the classes may have other shares: probabilities of
            the same classifier, and noisy labels, if there are any. Classes have to look as they do in the samples of
            `fit`, and T to be the same. Default: all samples of `fit`.

        Returns
        -------
        DataFrame
            A row for each class, with the columns ``share``, ``lower`` and ``upper``.

        Raises
        ------
        ValueError
            If no sample is verified, or if verified samples were drawn by their class or by suspicion.
        """
        from pandas import DataFrame  # slow to import

        check_level(level)
        population = Population(self)
        if proba is not None:
            found = population.shares_of_batch(proba, y_noisy)
        elif y_noisy is None:
            found = population.class_shares()
        else:
            raise ValueError("y_noisy has the labels of another batch; give proba, its probabilities, too.")
        lower, upper = found.interval(level)
        share = np.clip(found.share / found.share.sum(), lower, upper)
        return DataFrame({"share": share, "lower": lower, "upper": upper}, index=self.classes_)

    def accuracy_interval(self, level: float = 0.9, *, of: str = "classifier") -> Interval:
        """Accuracy of the classifier, or of the noisy labels, with an interval, as `class_shares`.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Level of the interval.
        of : {"classifier", "labels"}, default="classifier"
            Whose accuracy: of the most probable classes by the calibrated probabilities, or of the noisy labels (of
            several sources, of the most frequent label).

        Returns
        -------
        Interval
            A tuple ``(estimate, lower, upper)``.

        Raises
        ------
        ValueError
            As `class_shares`; for the labels also if no verified sample has a noisy label.
        """
        check_level(level)
        if of not in ("classifier", "labels"):
            raise ValueError(f"of={of!r}; give 'classifier' or 'labels'.")
        found = Population(self).accuracy(of == "labels")
        (lower,), (upper,) = found.interval(level)
        return Interval(float(found.share[0]), float(lower), float(upper))

    # ---- samples to verify
    def suggest_rows(self, n: int, target: str = "shares", *, random_state: RandomState = None) -> Any:
        """Draw samples to verify next, with known probabilities (:doc:`/which_rows`).

        Half of the probability is the same for all samples; the other half is in proportion to the standard deviation
        of what the target asks of a sample, by P(true | x, label): its class (T and shares) or whether the classifier
        is correct (accuracy). Put ``probability`` at these positions into `verified_probability` of the next `fit`.

        Parameters
        ----------
        n : int
            Number of samples.
        target : {"transition", "shares", "accuracy"}, default="shares"
            What is to be known more exactly: T (random samples are as good), `class_shares`, or `accuracy_interval` of
            the classifier.
        random_state : int, RandomState, Generator or None
            As in `flip_labels`.

        Returns
        -------
        DataFrame
            Columns ``position``, of samples of `fit` that were not verified, and ``probability``, of having been drawn,
            as a multiple of ``n / n_not_verified``, that of a draw at random. It is at least 0.5, unless all samples
            above it are certain to be drawn.

        Raises
        ------
        ValueError
            If there are less than n such samples, verified ones were drawn class by class, or T was given.
        """
        return suggest_rows(self, n, target, random_state)

    def plan(self, target: str = "transition", width: float = 0.05, level: float = 0.9) -> Plan:
        """Number of samples to verify for intervals of a given width.

        Parameters
        ----------
        target : {"transition", "shares", "accuracy"}, default="transition"
            As in `suggest_rows`; of T the noise rate of each class.
        width : float in (0, 0.5), default=0.05
            Half the length of an interval: ± 0.05.
        level : float in (0, 1), default=0.9
            Level of the intervals.

        Returns
        -------
        Plan
            With `table`, `n_rows` and `words`, which are those of ``str``. For T, `n_to_verify` are samples of that
            true class with a noisy label; else samples of any class, drawn by `suggest_rows`.

        Raises
        ------
        ValueError
            As `class_shares`, for shares and accuracy.
        """
        return plan(self, target, width, level)

    # ---- samples
    def calibrate(self, proba: ArrayLike) -> NDArray:
        """P(true class | x) from probabilities of the classifier that the model was fitted to.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Probabilities, columns as in `classes_`.

        Returns
        -------
        ndarray of shape (n, c)
        """
        given = self._checked(proba)
        if self.calibration_ is not None:
            return self.calibration_(given)
        return given if self.anchors_ is None else denoise_proba(given, self.anchors_, n_iter=_DENOISING)

    def posterior(
        self, proba: ArrayLike, y_noisy: ArrayLike, *, y_verified: ArrayLike | None = None, calibrate: bool = True
    ) -> NDArray[np.float64]:
        """P(true class | x, noisy label), by Bayes' rule.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Probabilities of the classifier that the model was fitted to.
        y_noisy, y_verified
            Noisy labels and true ones, as in `fit`. True labels of verified samples are certain. The model does not
            keep them: give them again.
        calibrate : bool, default=True
            Whether to `calibrate` the probabilities. False: they are of the true label as they are.

        Returns
        -------
        ndarray of shape (n, c)
            Columns as in `classes_`; rows sum to 1.
        """
        return self._samples(proba, y_noisy, y_verified, calibrate)[0].posterior(self.transition_matrix_)

    def label_quality(
        self, proba: ArrayLike, y_noisy: ArrayLike, *, y_verified: ArrayLike | None = None, calibrate: bool = True
    ) -> Any:
        """P(true class = noisy label | x, noisy label): the probability that each label is correct.

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrate
            As in `posterior`.

        Returns
        -------
        ndarray of shape (n,), or Series
            0 or 1 of verified samples; NaN where the noisy label is missing. A pandas Series with the same index if the
            noisy labels are one.
        """
        samples, y = self._samples(proba, y_noisy, y_verified, calibrate)
        return like_series(samples.judge(self.transition_matrix_).quality, y, "label_quality")

    def find_label_issues(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        threshold: float = 0.5,
        as_frame: bool = True,
        calibrate: bool = True,
    ) -> Any:
        """Find samples whose label is probably wrong, the most probably wrong first; verified samples are left out.

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrate
            As in `posterior`.
        threshold : float in [0, 1], default=0.5
            Samples with a `label_quality` below this are returned; 0.5: labels that are more probably wrong than
            correct.
        as_frame : bool, default=True
            False: only the positions.

        Returns
        -------
        DataFrame with n_issues rows, or ndarray of int, shape (n_issues,)
            In ascending order of `label_quality`. The columns are ``position``, ``given_label``, ``suggested_label``
            (the most probable true class, given x and the label) and ``label_quality``. The index is that of the noisy
            labels or of `proba` if they are of pandas; else the positions.

        References
        ----------
        Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021, rank by
        ``proba[n, y]`` alone, without the probabilities of the flips.
        """
        check_rate(threshold, "threshold")
        samples, y = self._samples(proba, y_noisy, y_verified, calibrate)
        judged = samples.judge(self.transition_matrix_)
        issues = judged.issues(threshold)
        if not as_frame:
            return issues
        from pandas import DataFrame  # slow to import

        columns = {
            "position": issues,
            "given_label": self.labels_[judged.noisy[issues]],
            "suggested_label": self.classes_[judged.suggested[issues]],
            "label_quality": judged.quality[issues],
        }
        return DataFrame(columns, index=names_of_rows(issues, y, proba))

    def relabel(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        threshold: float = 0.9,
        calibrate: bool = True,
    ) -> Any:
        """Replace labels whose true class is nearly certain, and those of verified samples.

        Parameters
        ----------
        proba, y_noisy, y_verified, calibrate
            As in `posterior`.
        threshold : float in [0, 1], default=0.9
            A sample gets its most probable true class if the posterior of that class is at least this.

        Returns
        -------
        ndarray of shape (n,), or Series
            Labels of the kind of `classes_`; samples below the threshold keep theirs. A pandas Series with the same
            index and name if the noisy labels are one.
        """
        check_rate(threshold, "threshold")
        samples, y = self._samples(proba, y_noisy, y_verified, calibrate)
        judged = samples.judge(self.transition_matrix_)
        codes = np.where(judged.certainty >= threshold, judged.suggested, judged.noisy)
        return like_series(self.labels_[codes], y, getattr(y, "name", None))

    def noise_report(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        y_verified: ArrayLike | None = None,
        proba_clean: ArrayLike | None = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        display_rows: Any = None,
        columns: Sequence[str] | None = None,
        level: float = 0.9,
        max_rows: int = 200,
        title: str = "Noise report",
        calibrate: bool = True,
    ) -> "NoiseReport":
        """Report the noise in words, pictures and numbers, for notebooks and as an HTML page.

        It has the share of wrong labels, T with its error bars, the most probable flips, classes at risk, the
        calibration of the classifier on clean samples, the labels that are most probably wrong with a suggestion for
        each, a test of whether one T is enough, and how many samples to verify.

        Parameters
        ----------
        proba, y_noisy, calibrate
            As in `posterior`.
        y_verified : array-like of shape (n,), optional
            True labels of verified samples, as in `fit`. They are not listed, and used as clean samples; with
            ``calibrate=False`` only for the share of wrong labels, since the classifier may have been trained on them.
        proba_clean, y_clean : array-like of shape (n_clean, c) and (n_clean,), optional
            Clean samples in place of verified ones, for the calibration of the classifier.
        y_clean_noisy : array-like of shape (n_clean,), optional
            Their noisy labels, for a share of wrong labels that is counted, and the test of one T.
        display_rows : sequence of n samples or data frame, optional
            What to show of a sample: its text, image or row of a table. Default: nothing.
        columns : sequence of str, optional
            Names of the columns of `display_rows`, of a table without names.
        level : float in (0, 1), default=0.9
            Of all intervals.
        max_rows : int, default=200
            Samples that are listed.
        title : str, default="Noise report"
            Heading of the page.

        Returns
        -------
        NoiseReport
            With `save`, `to_html`, `words` and `facts`. Samples have the names of the index of `display_rows` or
            `y_noisy` if that is a data frame or Series, else their positions.
        """
        from ..report import NoiseReport  # needs jinja2
        from ..report._facts import make_facts
        from ..report._samples import sample_facts

        check_level(level)
        check_count(max_rows, 0, "max_rows")
        if len(self.labels_) > len(self.classes_):
            raise ValueError(f"a report needs labels that are classes; {self.labels_.tolist()} are not all.")
        samples, y = self._samples(proba, y_noisy, y_verified, calibrate)
        n, judged = len(samples.noisy), samples.judge(self.transition_matrix_)
        shown = [""] * n if display_rows is None else display_rows
        if (length := shown.shape[0] if hasattr(shown, "shape") else len(shown)) != n:
            raise ValueError(f"display_rows has {length} entries for {n} samples; give one for each.")
        clean = self._clean(proba_clean, y_clean, y_clean_noisy, calibrate)
        if clean is None and (pairs := samples.is_pair).any():
            of_true, noisy, true = (of[pairs] for of in samples[:3])
            clean = self._tested(of_true if calibrate else None, noisy, true)
        listed = judged.issues()[:max_rows]
        index = names_of_rows(listed, display_rows, y).tolist()
        facts = sample_facts(shown, listed.tolist(), columns)
        return NoiseReport(make_facts(self, judged, clean, facts, index, level, str(title)))

    # ---- inputs
    def _samples(self, proba: ArrayLike, y: Any, y_verified: Any, calibrate: bool) -> tuple[LabelledSamples, Any]:
        """Samples whose labels are judged, and their noisy labels as given: a column of a table."""
        of_true = self._proba(proba, calibrate)
        n, (y, y_verified, by_source, _) = len(of_true), given_and_verified(y, y_verified, "y_noisy")
        has_noisy, noisy, is_verified, verified = labels_of_samples(y, y_verified, n, "y_noisy", self.labels_)
        codes, true = np.full(n, -1), np.full(n, -1)
        codes[has_noisy] = class_indices(noisy, len(self.labels_), len(noisy), "y_noisy", self.labels_)
        true[is_verified] = self._codes(verified, len(verified), "y_verified")
        return LabelledSamples(of_true, codes, true, self._by_source(by_source)), y

    def _batch(self, proba: ArrayLike, y_noisy: Any) -> LabelledSamples:
        """Other samples, whose noisy labels may not be known: their probabilities are as the classifier gave them."""
        given, d = self._checked(proba), len(self.labels_)
        none, labels = np.full(len(given), -1), None
        if y_noisy is not None:
            labels = self._samples(proba, y_noisy, None, True)[0]
        given = np.pad(given, ((0, 0), (0, d - given.shape[1])))
        return LabelledSamples(given, none, none) if labels is None else labels._replace(proba=given)

    def _likelihood_of_fit(self, rows: NDArray[np.integer]) -> NDArray | None:
        """The same of samples at these positions in the fit, if there are several sources; else None."""
        of = self.held_out_.sources
        return None if of is None else self._by_source(of._replace(codes=of.at(rows)))

    def posterior_of_fit(self) -> NDArray[np.float64]:
        """P(true | x, labels) of the noisy samples that the model was fitted to, of shape (n, c)."""
        of, c = self.held_out_, len(self.classes_)
        proba, none = self.calibrate(of.candidates[0].proba[:, :c]), np.full(len(of.noisy), -1)
        return LabelledSamples(proba, of.noisy, none, self._likelihood_of_fit(of.rows)).posterior(
            self.transition_matrix_
        )

    def _by_source(self, labels: SourceLabels | None) -> NDArray | None:
        """Probability of all labels of each sample, given each true class, up to a factor; None of one source."""
        if labels is None:
            return None
        if self.sources_ is None:
            raise ValueError("the model was fitted to one label of each sample; give one column of labels.")
        known = self.sources_.names.tolist()
        if unknown := sorted(set(labels.names.tolist()) - set(known), key=str):
            raise ValueError(f"the model was not fitted to the sources {unknown}; it has {known}.")
        these = [known.index(name) for name in labels.names.tolist()]
        codes = labels.of_classes(self.labels_).codes
        log = log_likelihood(codes, self.sources_.matrices[these], self.sources_.weights[these])
        return np.exp(log - log.max(axis=1, keepdims=True))

    def _checked(self, proba: ArrayLike) -> NDArray:
        """Probabilities in the order of the classes."""
        return check_probabilities(in_class_order(proba, self.classes_, rows=False), len(self.classes_))

    def _proba(self, proba: ArrayLike, calibrate: bool) -> NDArray:
        """Probabilities of the true label."""
        if calibrate and (self.calibration_ is not None or self.anchors_ is not None):
            return self.calibrate(proba)
        return checked_probabilities(in_class_order(proba, self.classes_, rows=False), len(self.classes_))

    def _codes(self, y: ArrayLike, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
        return class_indices(y, len(self.classes_), n, name, self.classes_)

    def _clean(self, proba: Any, y: Any, y_noisy: Any, calibrate: bool) -> "Clean | None":
        """Clean samples of a report."""
        if (proba is None) != (y is None) or (proba is None and y_noisy is not None):
            raise ValueError("proba_clean, y_clean and y_clean_noisy go together; give proba_clean with y_clean.")
        if proba is None:
            return None
        given = self._proba(proba, calibrate)
        codes = self._codes(y, len(given), "y_clean")
        noisy = None if y_noisy is None else self._codes(y_noisy, len(codes), "y_clean_noisy")
        return self._tested(given, noisy, codes)

    def _tested(self, proba: NDArray | None, y_noisy: NDArray[np.intp] | None, y: NDArray[np.intp]) -> "Clean":
        """Clean samples of a report, with the test of one T."""
        from ..report._facts import Clean

        pvalue = None
        if proba is not None and y_noisy is not None:
            with suppress(ValueError):  # there is no noise
                pvalue = class_conditional_test(y, y_noisy, proba=proba, random_state=0).pvalue
        return Clean(proba, y, y_noisy, pvalue)

    def _check_parameters(self) -> None:
        if self.meta_sampling not in ("random", "stratified"):
            raise ValueError(f"meta_sampling={self.meta_sampling!r}; give 'random' or 'stratified'.")
        if self.proba_of not in (None, "true", "noisy"):
            raise ValueError(f"proba_of={self.proba_of!r}; give 'true' or 'noisy', or None with verified samples.")
