"""Noise report of a fitted noise model."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._pandas import names_of_rows
from ..labels._read import complete_codes
from ..noise_model import LabelNoiseModel
from ..noise_model._samples import LabelledSamples
from ..transition import class_conditional_test
from ..transition._checks import check_count
from ._facts import Clean, make_facts
from ._report import NoiseReport
from ._samples import sample_facts
from ._text import plain


def noise_report(
    model: LabelNoiseModel,
    proba: ArrayLike | None = None,
    y_noisy: ArrayLike | None = None,
    *,
    y_verified: ArrayLike | None = None,
    proba_clean: ArrayLike | None = None,
    y_clean: ArrayLike | None = None,
    y_clean_noisy: ArrayLike | None = None,
    display_samples: Any = None,
    columns: Sequence[str] | None = None,
    level: float = 0.9,
    max_samples: int = 200,
    title: str = "Noise report",
    calibrated: bool = False,
) -> NoiseReport:
    """Report the noise in words, plots and numbers, for notebooks and as an HTML page.

    The report contains the share of wrong labels, T with error bars, the most probable flips, classes at risk, the
    calibration of the classifier, label issues with suggestions, a test of one T, sources, and the number of
    samples to verify.

    Parameters
    ----------
    model : LabelNoiseModel
        Fitted model, or a model of a given T, with the same labels as classes.
    proba, y_noisy, calibrated
        As in `LabelNoiseModel.label_posterior`.
    y_verified : array-like of shape (n,), optional
        True labels of verified samples, as in `LabelNoiseModel.fit`, used as clean samples. With ``calibrated=True``,
        they only give the share of wrong labels, since the classifier may have been trained on them.
    proba_clean, y_clean : array-like of shape (n_clean, c) and (n_clean,), optional
        Clean samples for the calibration of the classifier, in place of verified samples.
    y_clean_noisy : array-like of shape (n_clean,), optional
        Noisy labels of these samples, for the observed share of wrong labels and the test of one T.
    display_samples : sequence of n samples or data frame, optional
        Text, image or table row to display of each sample. Images require Pillow.
    columns : sequence of str, optional
        Column names of `display_samples`.
    level : float in (0, 1), default=0.9
        Confidence level of all intervals.
    max_samples : int, default=200
        Maximum number of listed samples.
    title : str, default="Noise report"
        Title of the page.

    Returns
    -------
    NoiseReport
        With `save`, `to_html`, `words` and `facts`. Samples are named by the pandas index of `display_samples` or
        `y_noisy`, else by position.

    Examples
    --------
    >>> from noisytransition import LabelNoiseModel
    >>> from noisytransition.report import noise_report
    >>> model = LabelNoiseModel.from_transition_matrix([[0.9, 0.1], [0.3, 0.7]], ["cat", "dog"], [60, 40])
    >>> report = noise_report(model, [[0.9, 0.1], [0.01, 0.99], [0.4, 0.6]], ["cat", "cat", "dog"])
    >>> print(report.words["noise"][0])
    About 18 % of the labels are wrong.
    >>> [(found["row"], found["suggested"]) for found in report.facts["label_issues"]["listed"]]
    [(1, 'dog')]
    """
    samples, y = model._samples(proba, y_noisy, y_verified, calibrated)
    clean = _clean(model, samples, proba_clean, y_clean, y_clean_noisy, calibrated)
    judged = samples.judge(model._channel)
    positions = judged.issues()[: check_count(max_samples, 0, "max_samples")]
    display_samples = [""] * len(judged.noisy) if display_samples is None else display_samples
    shown = _shown(display_samples, y, len(judged.noisy), positions, columns)
    return NoiseReport(make_facts(model, judged, clean, shown, level, title))


def _shown(display_samples: Any, y: Any, n: int, positions: NDArray[np.intp], columns: Any) -> list[dict[str, Any]]:
    """Names and contents of samples."""
    if (length := display_samples.shape[0] if hasattr(display_samples, "shape") else len(display_samples)) != n:
        raise ValueError(f"display_samples has {length} entries for {n} samples; pass one per sample.")
    names = names_of_rows(positions, display_samples, y).tolist()
    samples = sample_facts(display_samples, positions.tolist(), columns)
    return [{"row": plain(name), "sample": sample} for name, sample in zip(names, samples, strict=True)]


def _clean(
    model: LabelNoiseModel, samples: LabelledSamples, proba: Any, y: Any, y_noisy: Any, calibrated: bool
) -> Clean | None:
    """Clean samples of a report, by default the verified samples with a noisy label, and the test of one T."""
    if (proba is None) != (y is None) or (proba is None and y_noisy is not None):
        raise ValueError("proba_clean and y_clean (X_clean and y_clean) go together. Pass both with noisy labels.")
    if proba is not None:
        proba = model._proba(proba, calibrated)
        y = complete_codes(y, model.classes_, len(proba), "y_clean (y_clean)")
        if y_noisy is not None:
            y_noisy = complete_codes(y_noisy, model.classes_, len(proba), "y_clean_noisy (y_clean_noisy)")
    elif samples.is_pair.any():
        y = samples.true[samples.is_pair]
        y_noisy = samples.noisy[samples.is_pair]
        proba = None if calibrated else samples.proba[samples.is_pair]
    else:
        return None
    pvalue = None
    if proba is not None and y_noisy is not None:
        with suppress(ValueError):  # there is no noise
            pvalue = class_conditional_test(y, y_noisy, proba=proba, random_state=0).pvalue
    return Clean(proba, y, y_noisy, pvalue)
