"""Noise report that notebooks display, and that is saved as HTML or JSON."""

import html
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ._text import interval, number, percent, percents
from ._words import in_words


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
        * ``noise``: share of wrong labels; ``verified``: the same among clean samples with both labels;
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
        pages.filters |= {"number": number, "percent": percent, "decimals": "{:.2f}".format}
        pages.globals |= {"interval": interval, "percents": percents}
        return pages.get_template("page.html").render(facts=self.facts, words=self.words)

    def save(self, path: str | PathLike) -> None:
        """Save the report to a file, overwriting an existing file.

        Parameters
        ----------
        path : str or Path
            The suffix is ``.html``, or ``.json`` for the facts.
        """
        path = Path(path)
        if path.suffix.lower() not in (".html", ".json"):
            raise ValueError(
                f"path={str(path)!r} has the suffix {path.suffix!r}. Pass a path with the suffix .html or .json."
            )
        is_page = path.suffix.lower() == ".html"
        text = self.to_html() if is_page else json.dumps(self.facts, allow_nan=False, ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Return the page in a frame that isolates its styles and scripts."""
        return (
            f'<iframe title="{html.escape(self.facts["title"])}" srcdoc="{html.escape(self.to_html())}" '
            f'sandbox="allow-scripts" loading="lazy" style="width: 100%; height: 800px; border: 0"></iframe>'
        )

    def __str__(self) -> str:
        return "\n".join(self.words["summary"])
