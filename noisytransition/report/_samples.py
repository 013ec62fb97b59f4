"""Samples as a report shows them: a picture, or short text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._png import as_image, data_uri
from ._text import LONGEST_TEXT, plain, short

# values of a table's row that are shown, and characters of each; choices, not measured
_MOST_VALUES, _LONGEST_VALUE = 8, 60
# texts of values that are missing
_MISSING = ("nan", "None", "NaT", "<NA>")


def sample_facts(source: Any, positions: Sequence[int], columns: Sequence | None = None) -> list[dict[str, str]]:
    """Samples at some positions as JSON takes them.

    Parameters
    ----------
    source : array-like, sparse matrix, data frame, sequence of texts or images, or torch Dataset
        Arrays of two dimensions, or of three with 1, 3 or 4 channels first or last, are pictures, and so are PIL's
        images and tensors of these shapes.
    positions : sequence of int
        Which of the rows to show.
    columns : sequence, optional
        Names of the columns of a table without names.

    Returns
    -------
    list of dict of str to str
        ``{"image": PNG as a data URI}`` or ``{"text": ...}``.
    """
    source = source.tocsr() if hasattr(source, "tocsr") else source
    return [_sample(_at(source, i), columns) for i in positions]


def _at(source: Any, i: int) -> Any:
    """One sample; of one with its label, as Datasets give them, the sample alone."""
    if hasattr(source, "iloc"):
        row = source.iloc[i]
        return dict(zip(source.columns, row, strict=True)) if getattr(source, "ndim", 1) == 2 else row
    if hasattr(source, "tocsr"):
        row = source[[i]].tocoo()
        return dict(zip(row.col.tolist(), row.data.tolist(), strict=True))
    sample = source[i]
    with_label = isinstance(sample, tuple | list) and not isinstance(source, tuple | list)
    return sample[0] if with_label else sample


def _sample(value: Any, columns: Sequence | None) -> dict[str, str]:
    if isinstance(value, str):
        return {"text": short(value, LONGEST_TEXT)}
    if isinstance(value, Mapping):
        names = {} if columns is None else dict(enumerate(columns))
        return {"text": _row({names.get(name, name): entry for name, entry in value.items()})}
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if (image := as_image(array)) is not None:
        return {"image": data_uri(image)}
    if array.ndim == 1:
        named = zip(range(len(array)) if columns is None else columns, array.tolist(), strict=False)
        return {"text": _row(dict(named))}
    return {
        "text": short(array.tolist() if array.size < LONGEST_TEXT else f"array of shape {array.shape}", LONGEST_TEXT)
    }


def _row(values: Mapping) -> str:
    """First values of a table's row, with the names of their columns."""
    shown = [f"{short(name, _LONGEST_VALUE)}: {_value(value)}" for name, value in list(values.items())[:_MOST_VALUES]]
    more = len(values) - len(shown)
    return short(", ".join(shown), 2 * LONGEST_TEXT) + (f", and {more} more" if more else "")


def _value(value: Any) -> str:
    if not isinstance(value, str) and str(value) in _MISSING:
        return "missing"
    value = plain(value, _LONGEST_VALUE)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
