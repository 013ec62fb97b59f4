"""Methods of classifiers with a fitted `LabelNoiseModel`."""

from __future__ import annotations
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..data._read import Samples, validate_rows
from ..labels._arrays import index_of, warn_of_order
from ..noise_model._model import LabelNoiseModel
from ..noise_model._suggest import reasons_to_verify
from ..report import NoiseReport, noise_report

P = ParamSpec("P")
Result = TypeVar("Result")


def _of_model(
    method: Callable[Concatenate[LabelNoiseModel, P], Result],
) -> Callable[Concatenate[NoiseModelMixin, P], Result]:
    """Method of a classifier that calls this method of its `noise_model_`."""

    @wraps(method)
    def call(self: NoiseModelMixin, *args: P.args, **kwargs: P.kwargs) -> Result:
        return method(self._model(), *args, **kwargs)

    return call


class NoiseModelMixin:
    """Methods of classifiers with a `noise_model_`.

    Methods that judge labels use `predict_proba(X)`. For the samples of `fit`, they use the out-of-fold probabilities
    `oof_proba_`, if the classifier has them, since a network agrees too often with labels that it was trained on.
    `accuracy_interval` is about out-of-fold predictions, too.

    Attributes
    ----------
    noise_model_ : LabelNoiseModel
        T and its statistics. Its methods accept probabilities of any classifier.
    """

    noise_model_: LabelNoiseModel
    classes_: NDArray
    predict_proba: Any

    @property
    def transition_matrix_(self) -> NDArray[np.float64]:
        """Noise transition matrix T, square: entry (i, j) is P(noisy = classes_[j] | true = classes_[i])."""
        return self._model().transition_matrix_

    @property
    def noisy_class_counts_(self) -> NDArray[np.float64]:
        """Expected number of noisy samples of each true class, of shape (n_classes,)."""
        return self._model().noisy_class_counts_

    # ---- error bars and summary of T; some methods are those of `noise_model_`
    @property
    def transition_std_(self) -> NDArray[np.float64]:
        """Standard errors of T, of shape (n_classes, n_classes), if T has error bars."""
        return self._model().transition_std_

    transition_interval = _of_model(LabelNoiseModel.transition_interval)
    transition_summary = _of_model(LabelNoiseModel.transition_summary)
    transition_frame = _of_model(LabelNoiseModel.transition_frame)
    source_summary = _of_model(LabelNoiseModel.source_summary)

    # ---- shares, and samples to verify
    def class_shares(self, level: float = 0.9, *, by: ArrayLike | None = None) -> Any:
        """Estimate class priors of the samples of `fit` with intervals.

        For another batch of samples, fit a `LabelNoiseModel` to `oof_proba_` (:doc:`/class_shares`).

        Parameters
        ----------
        level, by
            As in `LabelNoiseModel.class_shares`, which also describes the result.
        """
        return self._model().class_shares(level, by=by)

    accuracy_interval = _of_model(LabelNoiseModel.accuracy_interval)
    suggest_samples = _of_model(LabelNoiseModel.suggest_samples)
    plan_verification = _of_model(LabelNoiseModel.plan_verification)

    def needs_verification(self, X: Samples, y_noisy: Any = None, *, groups: ArrayLike | None = None) -> dict[str, str]:
        """Tell whether a new batch differs from the samples of `fit`, so that some of it should be verified.

        It requires a classifier with `oof_proba_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_batch, ...) or torch Dataset
            Samples that `fit` has not seen.
        y_noisy, groups
            As in `LabelNoiseModel.needs_verification`, which also describes the result.
        """
        model = self._model()
        of_fit = getattr(self, "oof_proba_", None)
        if of_fit is None:
            advice = "Use TransitionClassifierCV, EMTransitionClassifier or LabelNoiseModel"
            raise ValueError(f"needs_verification requires oof_proba_, which {type(self).__name__} has not. {advice}.")
        return reasons_to_verify(model, self.predict_proba(X), y_noisy, groups, model._samples_of_fit(of_fit))

    # ---- labels
    def predict_noisy_proba(self, X: Samples) -> NDArray:
        """Predict probabilities of the noisy label, ``predict_proba(X) @ transition_matrix_``.

        `transition_matrix_` is the selected T, which can differ from the T in the training loss.

        Parameters
        ----------
        X
            As in `predict_proba`, which also describes the result.
        """
        return self.predict_proba(X) @ self.transition_matrix_

    def label_posterior(
        self, X: Samples | None = None, y_noisy: Any = None, *, y_verified: Any = None
    ) -> NDArray[np.float64]:
        """Compute P(true class | x, noisy label) by Bayes' rule, 0 or 1 for verified samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset, optional
            Samples. If they have the noisy labels of `fit`, in its order, they are taken as the samples of `fit`.
            Default: the samples and labels of `fit`, if the classifier has `oof_proba_`.
        y_noisy : array-like of shape (n_samples,), or data frame
            Noisy labels; or, as in `fit`, a data frame with labels of one or several sources and a column "verified".
        y_verified : array-like of shape (n_samples,), optional
            True labels of verified samples, as in `fit`. If you pass X, also pass them again.
        """
        return self._apply(LabelNoiseModel.label_posterior, X, y_noisy, y_verified)

    def label_quality(self, X: Samples | None = None, y_noisy: Any = None, *, y_verified: Any = None) -> Any:
        """Compute the probability that each label is correct, P(true class = noisy label | x, noisy label).

        Parameters
        ----------
        X, y_noisy, y_verified
            As in `label_posterior`. The result is that of `LabelNoiseModel.label_quality`.
        """
        return self._apply(LabelNoiseModel.label_quality, X, y_noisy, y_verified)

    def find_label_issues(
        self,
        X: Samples | None = None,
        y_noisy: Any = None,
        *,
        y_verified: Any = None,
        threshold: float = 0.5,
        as_frame: bool = True,
    ) -> Any:
        """Find labels that are probably wrong, most probably first, among samples that are not verified.

        Parameters
        ----------
        X, y_noisy, y_verified, threshold, as_frame
            As in `label_posterior` and `LabelNoiseModel.find_label_issues`, which describes the result. Its index is
            that of `y_noisy` or X.
        """
        options = {"threshold": threshold, "as_frame": as_frame}
        issues = self._apply(LabelNoiseModel.find_label_issues, X, y_noisy, y_verified, **options)
        index = index_of(y_noisy, X)
        return issues.set_axis(index[issues.position]) if as_frame and index is not None else issues

    def relabel(
        self, X: Samples | None = None, y_noisy: Any = None, *, y_verified: Any = None, threshold: float = 0.9
    ) -> Any:
        """Replace labels whose true class is verified or nearly certain.

        Parameters
        ----------
        X, y_noisy, y_verified, threshold
            As in `label_posterior` and `LabelNoiseModel.relabel`, which describes the result.
        """
        return self._apply(LabelNoiseModel.relabel, X, y_noisy, y_verified, threshold=threshold)

    def noise_report(
        self,
        X: Samples | None = None,
        y_noisy: Any = None,
        X_clean: Samples | None = None,
        y_clean: ArrayLike | None = None,
        y_clean_noisy: ArrayLike | None = None,
        *,
        y_verified: Any = None,
        proba: ArrayLike | None = None,
        **options: Any,
    ) -> NoiseReport:
        """Create a report on the label noise with text, plots and tables, for notebooks or as HTML.

        See :ref:`noise-report` for an example.

        Parameters
        ----------
        X, y_noisy, y_verified
            As in `label_posterior`. Verified samples are not listed, but their wrong labels are counted.
        X_clean, y_clean, y_clean_noisy : array-like of n_clean samples, optional
            Clean samples that `fit` has not seen, for the accuracy and a calibration plot; and their noisy labels, to
            count wrong labels and to test whether one T is enough.
        proba : array-like of shape (n_samples, n_classes), optional
            P(true class | x) from a classifier that was not trained on X. Default: as in `label_posterior`.
        **options
            `display_samples`, by default X, and `level`, `max_samples` and `title`, as in `report.noise_report`.
        """
        proba_clean = None if X_clean is None else self.predict_proba(X_clean)
        if options.get("display_samples") is None:  # rows that can be indexed
            options["display_samples"] = validate_rows(self, X, reset=False) if isinstance(X, Mapping) else X
        options |= {"proba_clean": proba_clean, "y_clean": y_clean, "y_clean_noisy": y_clean_noisy}
        columns = getattr(self, "feature_names_in_", None)
        return self._apply(noise_report, X, y_noisy, y_verified, proba, columns=columns, **options)

    def _apply(self, method: Any, X: Any, y_noisy: Any, y_verified: Any, proba: Any = None, **options: Any) -> Any:
        """Apply a method of `LabelNoiseModel` to labels and probabilities of X, by default of the samples of `fit`."""
        warn_of_order(X, y_noisy)
        proba = self._proba_of_true(X, y_noisy) if proba is None else proba
        return method(self._model(), proba, y_noisy, y_verified=y_verified, calibrated=True, **options)

    def _proba_of_true(self, X: Any, y_noisy: Any) -> NDArray:
        """P(true class | x), out-of-fold for the samples of `fit` if the classifier has these probabilities."""
        model = self._model()
        of_fit = getattr(self, "oof_proba_", None)
        if X is None and y_noisy is None and of_fit is not None:
            return of_fit
        if X is None or y_noisy is None:
            raise ValueError("X or y_noisy is None. Pass both; only a classifier with oof_proba_ can do without both.")
        proba = self.predict_proba(X)
        if of_fit is not None:
            rows = model._rows_of_fit(model._given_labels(y_noisy, len(proba)))
            proba[rows] = of_fit[: len(rows)]
        return proba

    def _model(self) -> LabelNoiseModel:
        check_is_fitted(self, "noise_model_")
        return self.noise_model_
