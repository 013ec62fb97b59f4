"""The report as an object: shown in notebooks, saved as a page, as Markdown or as JSON."""

import html
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ._facts import SCHEMA_VERSION
from ._markdown import to_markdown
from ._page import to_html
from ._words import in_words

# height of the report in a notebook, in pixels
_HEIGHT = 800


class NoiseReport:
    """What a classifier knows of the noise in labels, in words, pictures and numbers.

    `TransitionClassifier.noise_report` makes it. A notebook shows it by itself.

    Parameters
    ----------
    facts : dict
        As in `facts`, for example read from the JSON file of a report.

    Attributes
    ----------
    facts : dict
        Everything that the report says, as numbers and names that JSON takes. Unknown values are None. Shares and
        probabilities are between 0 and 1.

        * ``schema``, ``schema_version``: "noisytransition.NoiseReport" and 1;
        * ``title``, ``created`` (ISO 8601);
        * ``data``: ``n_rows``, ``n_classes``, ``classifier`` (its class), ``level`` (of all intervals);
        * ``noise``: share of wrong labels, ``rate``, ``low``, ``high``; ``verified``: the same counted among clean
          rows with both labels, with ``n_rows`` and ``n_wrong``, or None;
        * ``transition``: T of the ``classes`` with the most noise, ``matrix``, ``low``, ``high``; what each row has
          beside, ``other_classes``, and the number of classes that are not there, ``n_left_out``;
        * ``flips``: the ten most probable, each with ``true``, ``noisy``, ``probability``, ``low``, ``high`` and the
          expected number of rows, ``n_rows``;
        * ``classes``: ``listed``, the most at risk first, each with ``class``, ``noise``, ``low``, ``high``,
          ``n_rows`` (expected rows of the true class), ``n_given`` (rows with this label), ``n_clean`` and ``risks``;
          ``n_left_out``, ``n_at_risk``;
        * ``calibration``, or None: ``n_rows``, ``accuracy``, ``low``, ``high``, ``confidence``,
          ``expected_calibration_error``, ``bins`` and ``n_judged`` (clean rows that are among the rows of X);
        * ``label_issues``: ``n_issues``, ``n_expected`` (sum of the probabilities that a label is wrong),
          ``agreement`` of predictions and labels, ``right`` (the share by T), ``memorised``, and ``listed`` rows, each
          with ``row``, ``given``, ``proposed``, ``given_probability``, ``proposed_probability`` and ``sample``
          (``text``, or ``image`` as a data URI);
        * ``one_transition_matrix``, or None: ``pvalue``, ``pvalues``, ``n_rows``;
        * ``limits``: ``precision``, ``n_classes`` whose noise rate is not known so well, ``n_of_classes`` (rows of
          these to verify), ``n_at_random``, ``widest``, ``listed`` (``class``, ``half_width``, ``n_more``) and
          ``sampling_limit``;
        * ``diagnostics``: reasons not to trust T by name; ``missing``: why parts are missing, by their name;
          ``settings``: ``parameters`` and ``versions``.

    Raises
    ------
    ValueError
        For facts of another kind or of a later version.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import GLCClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(axis=0)) / X.std(axis=0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> verified = np.arange(150) % 5 < 2
    >>> clf = GLCClassifier(transition_init="count", random_state=0)  # T is counted in the verified rows
    >>> clf = clf.fit(X, y_noisy, trusted=verified, y_meta=y[verified])
    >>> report = clf.noise_report(X, y_noisy)
    >>> print(report.words["noise"][0])
    About 30 % of the labels are wrong.
    >>> [(flip["true"], flip["noisy"], round(flip["probability"], 1)) for flip in report.facts["flips"][:3]]
    [(1, 2, 0.4), (0, 1, 0.3), (2, 0, 0.2)]
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        found = facts.get("schema"), facts.get("schema_version")
        if found != ("noisytransition.NoiseReport", SCHEMA_VERSION):
            raise ValueError(
                f"facts have schema {found[0]!r}, version {found[1]!r}; this version of the library reads "
                f"'noisytransition.NoiseReport', version {SCHEMA_VERSION}, as to_json() writes it."
            )
        self.facts = {name: value for name, value in facts.items() if name != "words"}

    @property
    def words(self) -> dict[str, list[str]]:
        """Sentences of each section."""
        return in_words(self.facts)

    def to_html(self) -> str:
        """One page that needs no other file and no network.

        Returns
        -------
        str
        """
        return to_html(self.facts, self.words)

    def to_markdown(self) -> str:
        """The same without pictures, as Markdown.

        Returns
        -------
        str
        """
        return to_markdown(self.facts, self.words)

    def to_json(self) -> str:
        """`facts` and `words` as JSON; `NoiseReport` makes a report of them again.

        Returns
        -------
        str
        """
        return json.dumps(self.facts | {"words": self.words}, allow_nan=False, ensure_ascii=False, indent=1)

    def save(self, path: str | PathLike) -> None:
        """Save the report in a file.

        Parameters
        ----------
        path : str or Path
            The suffix says how: ``.html``, ``.md`` or ``.json``. A file that is there already is replaced.

        Raises
        ------
        ValueError
            For another suffix.
        """
        path = Path(path)
        writers = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        if path.suffix.lower() not in writers:
            raise ValueError(f"path={str(path)!r} ends in {path.suffix!r}; give one that ends in {', '.join(writers)}.")
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")

    def _repr_html_(self) -> str:
        """In a frame, so that neither page changes the other."""
        return (
            f'<iframe title="{html.escape(self.facts["title"])}" srcdoc="{html.escape(self.to_html())}" '
            f'sandbox="allow-scripts" allow="clipboard-write" loading="lazy" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )

    def __str__(self) -> str:
        return "\n".join(self.words["summary"])

    def __repr__(self) -> str:
        data = self.facts["data"]
        return f"<NoiseReport: {data['n_rows']} rows, {data['n_classes']} classes. {self.words['noise'][0]}>"
