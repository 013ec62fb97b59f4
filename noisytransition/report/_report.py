"""The report as an object: shown in notebooks, saved as a page or as JSON."""

import html
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ._page import to_html
from ._words import in_words

# height of the report in a notebook, in pixels
_HEIGHT = 800


class NoiseReport:
    """What a classifier knows of the noise in labels, in words, pictures and numbers.

    `NoiseModelMixin.noise_report` makes it. A notebook shows it by itself, and ``print`` its summary.

    Parameters
    ----------
    facts : dict
        As in `facts`, for example read from the JSON file of a report.

    Attributes
    ----------
    facts : dict
        Everything that the report says, as numbers and names that JSON takes. Unknown values are None. Shares and
        probabilities are between 0 and 1.

        * ``title``, ``created`` (ISO 8601), ``data`` (numbers of rows and classes, the level of all
          intervals);
        * ``noise``: share of wrong labels, and ``verified``: the same counted among clean rows with both labels;
        * ``transition``: T of the classes with the most noise; ``flips``: the ten most probable;
        * ``classes``: ``listed``, the most at risk first, with noise rate, numbers of rows and ``risks``;
        * ``calibration`` on clean rows, with the expected calibration error and its ``bins``, or None;
        * ``label_issues``: ``listed`` rows that are probably wrong, with a suggestion, and their numbers;
        * ``sources``: rows of `LabelNoiseModel.source_summary`, or None of labels of one source;
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
    >>> clf = GLCClassifier(transition_init="count", random_state=0)  # T is counted in the verified rows
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
        """One page that needs no other file and no network."""
        return to_html(self.facts, self.words)

    def save(self, path: str | PathLike) -> None:
        """Save the report in a file, and replace one that is there.

        Parameters
        ----------
        path : str or Path
            The suffix says how: ``.html`` or ``.json``, the facts.
        """
        path = Path(path)
        if path.suffix.lower() not in (".html", ".json"):
            raise ValueError(f"path={str(path)!r} ends in {path.suffix!r}; give one that ends in .html or .json.")
        is_page = path.suffix.lower() == ".html"
        text = self.to_html() if is_page else json.dumps(self.facts, allow_nan=False, ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        """In a frame, so that neither page changes the other."""
        return (
            f'<iframe title="{html.escape(self.facts["title"])}" srcdoc="{html.escape(self.to_html())}" '
            f'sandbox="allow-scripts" loading="lazy" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )

    def __str__(self) -> str:
        return "\n".join(self.words["summary"])
