"""T and what follows from it, from probabilities of any classifier, noisy labels and verified labels."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

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
from ._fit import TransitionFit, start_of_transition
from ._held_out import HeldOut, read_held_out
from ._instance_dependent import InstanceDependentEstimate
from ._labels import (
    as_positions,
    check_classes,
    class_indices,
    given_and_verified,
    in_class_order,
    labels_of_samples,
    like_series,
)
from ._posterior import denoise_proba, posterior_blocks
from ._shrinkage import Prior, check_prior
from ._uncertainty import MOST_CLASSES, TransitionUncertainty

if TYPE_CHECKING:
    from ..report import NoiseReport
    from ..report._facts import Clean, Judged

# of probabilities of the noisy label, without verified samples: mean error of T over 294 fits of scikit-learn's
# classifiers 0.347 after 5 iterations, 0.320 after 50
_DENOISING = 50


class _Samples(NamedTuple):
    """Samples whose labels are judged.

    Attributes
    ----------
    proba : ndarray of shape (n, c)
        Probabilities of the true label, before the noisy label is known.
    y : array-like of shape (n,)
        Noisy labels as given.
    noisy : ndarray of int, shape (n,)
        These as class indices; the true label where they are missing.
    has_noisy : ndarray of bool, shape (n,)
    true : ndarray of int, shape (n,)
        Class indices of the verified samples; else -1.
    is_verified : ndarray of bool, shape (n,)
    """

    proba: NDArray
    y: Any
    noisy: NDArray[np.intp]
    has_noisy: NDArray[np.bool_]
    true: NDArray[np.intp]
    is_verified: NDArray[np.bool_]


class LabelNoiseModel:
    r"""Estimate the transition matrix T, and P(true | x, label), from probabilities of any classifier.

    The probabilities must be out-of-sample, for example from `sklearn.model_selection.cross_val_predict`. Some samples
    are verified: their true label is known. ::

        calibration   softmax(A log proba + b), fitted to verified samples and noisy labels together
        T             maximises the likelihood of all labels under the calibrated probabilities; shrunk by the evidence
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
    transition_matrix_ : ndarray of shape (c, c)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_counts_ : ndarray of shape (c, c)
        Expected number of samples of each true (i) and noisy (j) label; verified pairs are counted.
    class_counts_ : ndarray of shape (c,)
        Expected number of samples of each true class, without the verified ones.
    diagnostics_ : dict of str to str
        Reasons not to trust T, of which `fit` warns; empty if none was found.
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
    >>> len(issues), float((y_noisy != y)[issues].mean())  # share of these labels that are wrong
    (37, 1.0)
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
    ) -> Self:
        """Estimate T with its error bars, and look for reasons not to trust it.

        Parameters
        ----------
        proba : array-like of shape (n, c)
            Out-of-sample probabilities of the samples, from any classifier.
        y_noisy : array-like of shape (n,) or data frame with two columns
            Noisy labels of any kind, in the order of the rows of `proba` (an index is not looked at). A data frame has
            them beside a column "verified", which is `y_verified`. They may be missing where a sample is verified.
        y_verified : array-like of shape (n,), optional
            True labels of the verified samples. Others are missing: None, NaN or NA, or -1 if that is no class.
        proba_clean, y_clean : array-like of shape (n_clean, c) and (n_clean,), optional
            Probabilities and true labels of clean samples that are not among the n samples.
        y_clean_noisy : array-like of shape (n_clean,), optional
            Their noisy labels; missing where they are not known.
        classes : array-like of shape (c,), optional
            The labels in the order of the columns of `proba`. Default: the columns of a data frame that are named by
            the labels; else 0..c-1, or the sorted labels.

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
        held_out, names = read_held_out(proba, y_noisy, y_verified, proba_clean, y_clean, y_clean_noisy, classes)
        check_prior(self.prior, len(names))
        if not len(held_out.clean) and self.proba_of is None:
            raise ValueError(
                "no sample is verified: say what proba are. Give proba_of='noisy' for a classifier that was trained on "
                "noisy labels, proba_of='true' for one that predicts the true label."
            )
        anchors = None
        if self.proba_of == "noisy" and not len(held_out.clean):
            given = held_out.candidates[0]
            anchors = anchor_transition_matrix(given.proba, percentile="auto")
            denoised = denoise_proba(given.proba, anchors, n_iter=_DENOISING)
            held_out = held_out._replace(candidates=[given._replace(proba=denoised)])
        self.fit_candidates(held_out, names, start_of_transition(held_out))
        self.anchors_ = anchors  # fit_candidates, which takes probabilities of the true label, has set None
        warn_of_reasons(self.diagnostics_, stacklevel=3)
        return self

    def fit_candidates(self, held_out: HeldOut, classes: NDArray, start: NDArray) -> Self:
        """Estimate T from the candidate with the highest evidence of all labels.

        Parameters
        ----------
        held_out : HeldOut
            Probabilities of several candidates, such as numbers of epochs, and all labels.
        classes : ndarray of shape (c,)
            Names of the classes, in the order of the columns.
        start : ndarray of shape (c, c)
            T from which the maximisation starts.

        Returns
        -------
        self
        """
        fit = TransitionFit(held_out, start, self.prior, stratified=self.meta_sampling == "stratified")
        self.classes_, self.anchors_ = classes, None
        self.transition_matrix_, self.transition_counts_ = fit.transition_matrix, fit.counts
        # expected counts use the features too; those from T and the noisy labels alone are less exact
        self.class_counts_ = (fit.counts - fit.pairs).sum(axis=1) * (held_out.n_noisy / len(held_out.noisy))
        self.calibration_, self.uncertainty_ = fit.calibration, fit.error_bars()
        self.prior_strength_, self.class_offset_ = fit.one_T.strength, fit.offset
        self.instance_dependence_ = fit.revised.power if isinstance(fit.revised, InstanceDependentEstimate) else 0.0
        self.log_evidence_, self.best_candidate_ = fit.log_evidence, int(fit.log_evidence.argmax())
        self.diagnostics_ = diagnose(fit, self.uncertainty_, classes)
        return self

    @classmethod
    def from_transition_matrix(cls, T: ArrayLike, classes: ArrayLike, class_counts: ArrayLike | None = None) -> Self:
        """Make the model of a given T, which has no error bars.

        Parameters
        ----------
        T : array-like of shape (c, c)
        classes : array-like of shape (c,)
        class_counts : array-like of shape (c,), optional
            Number of samples of each true class.

        Returns
        -------
        LabelNoiseModel
        """
        model, names = cls(), check_classes(classes, None)
        c = len(names)
        model.classes_, model.transition_matrix_ = names, check_transition_matrix(in_class_order(T, names), c, "T")
        model.class_counts_ = np.ones(c) if class_counts is None else as_floats(class_counts, "class_counts")
        if model.class_counts_.shape != (c,) or not (model.class_counts_ >= 0).all():
            raise ValueError(f"class_counts={class_counts!r}; give {c} numbers of at least 0, one per class.")
        model.calibration_ = model.anchors_ = model.uncertainty_ = None
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
        T, c = self.transition_matrix_, len(self.classes_)
        bounds = None if self.uncertainty_ is None else self.transition_interval(level)
        order = np.argsort(np.where(np.eye(c, dtype=bool), np.inf, -T), axis=None, kind="stable")[: c * (c - 1)]
        flips = [divmod(int(at), c) for at in order]
        n = min(int(sum(T[flip] >= least for flip in flips)), top)
        lines = [
            f"{self.classes_[i]} -> {self.classes_[j]} {T[i, j]:.2f}"
            + ("" if bounds is None else f" [{bounds[0][i, j]:.2f}, {bounds[1][i, j]:.2f}]")
            for i, j in flips[:n]
        ]
        if rest := flips[n:]:
            each = f"below {least:g}" if T[rest[0]] < least else f"{T[rest[0]]:.2f} or less"
            at_most = "" if bounds is None else f", at most {max(bounds[1][flip] for flip in rest):.2f}"
            lines.append(f"{len(rest)} other flips: each {each}{at_most}")
        return "\n".join(lines)

    def _error_bars(self, error: type[Exception] = ValueError) -> TransitionUncertainty:
        if self.uncertainty_ is None:
            raise error(
                f"T of {len(self.classes_)} classes has no error bars: they need a T that was estimated from "
                f"out-of-sample probabilities, and at most {MOST_CLASSES} classes."
            )
        return self.uncertainty_

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
        given = check_probabilities(in_class_order(proba, self.classes_, rows=False), len(self.classes_))
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
            Noisy labels and true ones, as in `fit`. True labels of verified samples are certain.
        calibrate : bool, default=True
            Whether to `calibrate` the probabilities. False: they are of the true label as they are.

        Returns
        -------
        ndarray of shape (n, c)
            Columns as in `classes_`; rows sum to 1.
        """
        return self._posterior(self._samples(proba, y_noisy, y_verified, calibrate))

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
            A pandas Series with the same index if `y_noisy` is one. NaN where the noisy label is missing.
        """
        of = self._samples(proba, y_noisy, y_verified, calibrate)
        quality = self._posterior(of)[np.arange(len(of.noisy)), of.noisy]
        return like_series(np.where(of.has_noisy, quality, np.nan), of.y, "label_quality")

    def find_label_issues(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        threshold: float = 0.5,
        y_verified: ArrayLike | None = None,
        calibrate: bool = True,
    ) -> Any:
        """Find samples whose label is probably wrong, the most probably wrong first.

        Parameters
        ----------
        proba, y_noisy, calibrate
            As in `posterior`.
        threshold : float in [0, 1], default=0.5
            Samples with a `label_quality` below this are returned; 0.5: labels that are more probably wrong than
            correct.
        y_verified : array-like of shape (n,), optional
            True labels of verified samples, which are left out.

        Returns
        -------
        ndarray of int, shape (n_issues,), or Series
            Positions of samples, in ascending order of `label_quality`. If `y_noisy` is a pandas Series, a Series of
            these positions that has the index of these samples: ``X.iloc[issues]`` is ``X.loc[issues.index]``.
        """
        check_rate(threshold, "threshold")
        of = self._samples(proba, y_noisy, y_verified, calibrate)
        quality = self._posterior(of)[np.arange(len(of.noisy)), of.noisy]
        order = np.argsort(quality, kind="stable")
        is_issue = (quality < threshold) & ~of.is_verified
        return as_positions(order[is_issue[order]], of.y)

    def relabel(
        self,
        proba: ArrayLike,
        y_noisy: ArrayLike,
        *,
        threshold: float = 0.9,
        y_verified: ArrayLike | None = None,
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
            index and name if `y_noisy` is one.
        """
        check_rate(threshold, "threshold")
        of = self._samples(proba, y_noisy, y_verified, calibrate)
        posterior = self._posterior(of)
        codes = np.where(posterior.max(axis=1) >= threshold, posterior.argmax(axis=1), of.noisy)
        return like_series(self.classes_[codes], of.y, getattr(of.y, "name", None))

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
        calibration of the classifier on clean samples, the labels that are most probably wrong with a proposal for
        each, a test of whether one T is enough, and how many samples to verify.

        Parameters
        ----------
        proba, y_noisy, calibrate
            As in `posterior`.
        y_verified : array-like of shape (n,), optional
            True labels of verified samples, as in `fit`. They are not listed, and used as clean samples.
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
        of = self._samples(proba, y_noisy, y_verified, calibrate)
        n, judged = len(of.noisy), self._judged(of.proba, of.noisy)
        judged.quality[of.is_verified] = 1.0  # nobody needs to look at them again
        listed = judged.issues(max_rows)
        shown = [""] * n if display_rows is None else display_rows
        if (length := shown.shape[0] if hasattr(shown, "shape") else len(shown)) != n:
            raise ValueError(f"display_rows has {length} entries for {n} samples; give one for each.")
        clean, pairs = self._clean(proba_clean, y_clean, y_clean_noisy, calibrate), of.is_verified & of.has_noisy
        if of.is_verified.any() and clean is not None:
            raise ValueError("give clean samples as y_verified or as proba_clean and y_clean, not both.")
        if pairs.any():
            clean = self._tested(of.proba[pairs], of.true[pairs], of.noisy[pairs])
        named: Any = next((table for table in (display_rows, y_noisy) if hasattr(table, "iloc")), None)
        index = listed.tolist() if named is None else list(named.index[listed])
        samples = sample_facts(shown, listed.tolist(), columns)
        return NoiseReport(make_facts(self, judged, clean, samples, index, level, str(title)))

    # ---- inputs
    def _samples(self, proba: ArrayLike, y: Any, y_verified: Any, calibrate: bool) -> _Samples:
        """Samples whose labels are judged."""
        of_true = self._proba(proba, calibrate)
        y, y_verified = given_and_verified(y, y_verified, "y_noisy")
        has_noisy, noisy, is_verified, verified = labels_of_samples(
            y, y_verified, len(of_true), "y_noisy", self.classes_
        )
        true = np.full(len(of_true), -1)
        true[is_verified] = self._codes(verified, len(verified), "y_verified")
        codes = true.copy()
        codes[has_noisy] = self._codes(noisy, len(noisy))
        return _Samples(of_true, y, codes, has_noisy, true, is_verified)

    def _posterior(self, of: _Samples) -> NDArray[np.float64]:
        found = np.empty(of.proba.shape)
        for rows, posterior in posterior_blocks(of.proba, of.noisy, self.transition_matrix_):
            found[rows] = posterior
        found[of.is_verified] = np.eye(len(self.classes_))[of.true[of.is_verified]]
        return found

    def _proba(self, proba: ArrayLike, calibrate: bool) -> NDArray:
        """Probabilities of the true label."""
        given = in_class_order(proba, self.classes_, rows=False)
        return self.calibrate(given) if calibrate else checked_probabilities(given, len(self.classes_))

    def _codes(self, y: ArrayLike, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
        return class_indices(y, len(self.classes_), n, name, self.classes_)

    def _judged(self, proba: NDArray, codes: NDArray[np.intp]) -> "Judged":
        """What the posterior says of each label, of which no table is kept."""
        from ..report._facts import Judged

        n = len(codes)
        quality, proposed, certainty = np.empty(n), np.empty(n, dtype=np.intp), np.empty(n)
        for rows, posterior in posterior_blocks(proba, codes, self.transition_matrix_):
            quality[rows] = posterior[np.arange(len(posterior)), codes[rows]]
            proposed[rows], certainty[rows] = posterior.argmax(axis=1), posterior.max(axis=1)
        return Judged(codes, quality, proposed, certainty, float((proba.argmax(axis=1) == codes).mean()))

    def _clean(self, proba: Any, y: Any, y_noisy: Any, calibrate: bool) -> "Clean | None":
        """Clean samples of a report."""
        if (proba is None) != (y is None) or (proba is None and y_noisy is not None):
            raise ValueError("proba_clean, y_clean and y_clean_noisy go together; give proba_clean with y_clean.")
        if proba is None:
            return None
        given = self._proba(proba, calibrate)
        codes = self._codes(y, len(given), "y_clean")
        noisy = None if y_noisy is None else self._codes(y_noisy, len(codes), "y_clean_noisy")
        return self._tested(given, codes, noisy)

    def _tested(self, proba: NDArray, y: NDArray[np.intp], y_noisy: NDArray[np.intp] | None) -> "Clean":
        """Clean samples of a report, with the test of one T."""
        from ..report._facts import Clean

        pvalue = None
        if y_noisy is not None:
            with suppress(ValueError):  # there is no noise
                pvalue = class_conditional_test(y, y_noisy, proba=proba, random_state=0).pvalue
        return Clean(proba, y, y_noisy, pvalue)

    def _check_parameters(self) -> None:
        if self.meta_sampling not in ("random", "stratified"):
            raise ValueError(f"meta_sampling={self.meta_sampling!r}; give 'random' or 'stratified'.")
        if self.proba_of not in (None, "true", "noisy"):
            raise ValueError(f"proba_of={self.proba_of!r}; give 'true' or 'noisy', or None with verified samples.")
