"""Noise report of a fitted noise model, which notebooks display, and which is saved as HTML or JSON."""

import html
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import ArrayLike, NDArray

from ..labels._read import complete_codes
from ..noise_model import LabelNoiseModel
from ..noise_model._samples import LabelledSamples
from ..transition import class_conditional_test
from ..transition._checks import check_count
from ..transition._estimation import TINY
from ._facts import Clean, Draw, make_facts
from ._samples import plain, sample_facts
from ._words import in_words, percent, percents


class NoiseReport:
    """Report of label noise in words, plots and numbers; made by `noise_report`.

    Notebooks display it as a page, and ``print`` shows the summary.

    Parameters
    ----------
    facts : dict
        As the attribute, for example read from the JSON file of a report.

    Attributes
    ----------
    facts : dict
        Content of the report, as JSON. Unknown values are None. Shares and probabilities are between 0 and 1.

        * ``title``, ``created`` (ISO 8601), ``data`` (numbers of samples and classes, level of all intervals);
        * ``noise``: share of wrong labels; ``verified``: the same from clean samples with both labels;
        * ``transition``: T of the classes with the most noise; ``flips``: the ten most probable flips;
        * ``classes``: ``listed`` by descending risk, with noise rate, numbers of samples and ``risks``;
        * ``calibration`` on clean samples, with expected calibration error and ``bins``, or None;
        * ``views``: shares of features, labels and verified samples alone in the posteriors of the training, or None;
        * ``label_issues``: ``listed`` samples with a suggestion, and their numbers;
        * ``sources``: rows of `LabelNoiseModel.source_summary`, or None with one source;
        * ``one_transition_matrix``: p-value of the test of one T, or None; ``diagnostics``: reasons not to trust T.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import GLCClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(axis=0)) / X.std(axis=0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> checked = np.where(np.arange(150) % 5 < 2, y, -1)  # -1: not verified
    >>> clf = GLCClassifier(transition_init="count", random_state=0)  # T is counted in the verified samples
    >>> clf = clf.fit(X, y_noisy, y_verified=checked)
    >>> report = clf.noise_report(X, y_noisy)
    >>> print(report.words["noise"][0])
    About 30 % of the labels are wrong.
    >>> [(flip["true"], flip["noisy"], round(flip["probability"], 1)) for flip in report.facts["flips"][:3]]
    [(1, 2, 0.4), (0, 1, 0.3), (2, 0, 0.2)]
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)

    @property
    def words(self) -> dict[str, list[str]]:
        """Sentences of each section."""
        return in_words(self.facts)

    def to_html(self) -> str:
        """Return a self-contained HTML page, in which all text is escaped."""
        loader = PackageLoader("noisytransition.report", "page")
        pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
        pages.filters |= {"number": "{:,.0f}".format, "percent": percent, "decimals": "{:.2f}".format}
        pages.globals["percents"] = percents
        return pages.get_template("page.html").render(facts=self.facts, words=self.words)

    def save(self, path: str | PathLike) -> None:
        """Save the report to a file, overwriting an existing file.

        Parameters
        ----------
        path : str or Path
            The suffix is ``.html``, or ``.json`` for the facts.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in (".html", ".json"):
            raise ValueError(f"path={str(path)!r} has the suffix {path.suffix!r}. Pass the suffix .html or .json.")
        text = self.to_html()
        if suffix == ".json":
            text = json.dumps(self.facts, allow_nan=False, ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Return the page in a frame that isolates its styles and scripts."""
        title = html.escape(self.facts["title"])
        page = html.escape(self.to_html())
        frame = 'sandbox="allow-scripts" loading="lazy" style="width: 100%; height: 800px; border: 0"'
        return f'<iframe title="{title}" srcdoc="{page}" {frame}></iframe>'

    def __str__(self) -> str:
        return "\n".join(self.words["summary"])


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
    >>> [(sample["row"], sample["suggested"]) for sample in report.facts["label_issues"]["listed"]]
    [(1, 'dog')]
    """
    samples, index = model._samples(proba, y_noisy, y_verified, calibrated)
    clean = _clean(model, samples, proba_clean, y_clean, y_clean_noisy, calibrated)
    judged = samples.judge(model._channel)
    positions = judged.issues()[: check_count(max_samples, 0, "max_samples")]
    display_samples = [""] * len(judged.noisy) if display_samples is None else display_samples
    shown = _shown(display_samples, index, len(judged.noisy), positions, columns)
    return NoiseReport(make_facts(model, judged, clean, shown, level, title))


def _shown(display_samples: Any, index: Any, n: int, positions: NDArray[np.intp], columns: Any) -> list[dict[str, Any]]:
    """Names and contents of samples."""
    length = display_samples.shape[0] if hasattr(display_samples, "shape") else len(display_samples)
    if length != n:
        raise ValueError(f"display_samples has {length} entries for {n} samples; pass one per sample.")
    if hasattr(display_samples, "iloc"):
        index = display_samples.index
    names = (positions if index is None else index[positions]).tolist()
    samples = sample_facts(display_samples, positions.tolist(), columns)
    return [{"row": plain(name), "sample": sample} for name, sample in zip(names, samples, strict=True)]


def _clean(
    model: LabelNoiseModel, samples: LabelledSamples, proba: Any, y: Any, y_noisy: Any, calibrated: bool
) -> Clean:
    """Clean samples of a report, by default the verified samples with a noisy label, and the test of one T."""
    if (proba is None) != (y is None) or (proba is None and y_noisy is not None):
        raise ValueError("proba_clean and y_clean (X_clean and y_clean) go together. Pass both with noisy labels.")
    if proba is not None:
        proba = model._proba(proba, calibrated)
        y = complete_codes(y, model.classes_, len(proba), "y_clean")
        if y_noisy is not None:
            y_noisy = complete_codes(y_noisy, model.classes_, len(proba), "y_clean_noisy")
        draw = Draw(np.ones(len(y)))
    else:
        is_pair = (samples.noisy >= 0) & (samples.true >= 0)
        if not is_pair.any():
            return Clean()
        y = samples.true[is_pair]
        y_noisy = samples.noisy[is_pair]
        draw = _draw(model, samples).of(is_pair)
        proba = None if calibrated else samples.proba[is_pair]
    pvalue = None
    if proba is not None and y_noisy is not None:
        with suppress(ValueError):  # there is no noise
            pvalue = class_conditional_test(y, y_noisy, proba=proba, random_state=0).pvalue
    return Clean(proba, y, y_noisy, pvalue, draw)


def _draw(model: LabelNoiseModel, samples: LabelledSamples) -> Draw:
    """How verified samples were drawn, which the model knows of those of `fit`; others at random."""
    n = len(samples.noisy)
    draw = Draw(np.ones(n))
    of: Any = getattr(model, "out_of_fold_", None)
    if of is None:
        return draw
    rows = model._rows_of_fit(samples.noisy)
    if not np.array_equal(samples.true[rows], of.in_order(np.full(len(of.noisy), -1), of.clean)):
        return draw
    weights = of.weights_of_clean(model.log_prior_ratio_)
    if of.weights is not None:
        weights = weights * np.maximum(of.weights[1], TINY)  # a bin may only have weights of 0
    draw.weights[rows] = of.in_order(np.ones(len(of.noisy)), weights)
    if of.groups is None:
        return draw
    groups = n + np.arange(n)
    groups[rows] = of.in_order(*of.groups)
    return draw._replace(groups=groups)
