"""The reader of labels: a table of inputs and records, and a slow reference. Errors are in tests/attacks/of_data.py."""

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from noisytransition.labels._columns import split_columns
from noisytransition.labels._read import SeparateLabels, read_labels

NAMES = np.array(["ant", "bee", "cat"])


def read(given, verified=None, n=None, **more):
    return read_labels(split_columns(given, verified), len(given) if n is None else n, **more)


class Polars(dict):
    columns = property(list)


class Arrow(dict):
    columns, column_names = property(lambda self: list(self.values())), property(list)


NAN = float("nan")
COLUMNS = {"label": np.array([0, 1, 1]), "verified": np.array([NAN, 2, NAN])}
SOURCES = {"ann": np.array([0, 1, 1])} | COLUMNS
# given and verified labels, and the classes and codes of the record
TABLE = {
    "integers": ([5, 7, 5], [None, 5, None], [5, 7], [0, 1, 0], [-1, 0, -1]),
    "names": (NAMES[[0, 1, 1]], [None, "cat", None], NAMES.tolist(), [0, 1, 1], [-1, 2, -1]),
    "objects": (NAMES[[0, 1, 1]].astype(object), [NAN, "cat", pd.NA], NAMES.tolist(), [0, 1, 1], [-1, 2, -1]),
    "truth values": ([True, False, True], [None, True, None], [False, True], [1, 0, 1], [-1, 1, -1]),
    "objects with truth values": (np.array([True, False], dtype=object), [None, True], [False, True], [1, 0], [-1, 1]),
    "nullable truth values": (pd.array([True, False], "boolean"), [None, True], [False, True], [1, 0], [-1, 1]),
    "objects with numbers": (np.array([0.0, 1.0], dtype=object), [None, 1.0], [0.0, 1.0], [0, 1], [-1, 1]),
    "large integers": ([2**60, 2**60 + 1], [None, 2**60], [2**60, 2**60 + 1], [0, 1], [-1, 0]),
    "integers and NaN": ([0, 1, 1], [NAN, 2.0, NAN], [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "nullable integers": ([0, 1, 1], pd.array([None, 2, None], "Int64"), [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "categories": ([0, 1, 1], pd.Categorical([None, 2, None]), [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "strings": (NAMES[[0, 1]], pd.array([None, "ant"], "string"), ["ant", "bee"], [0, 1], [-1, 0]),
    "dates": (pd.to_datetime(["2020", "2021"]), pd.to_datetime([None, "2020"]), None, [0, 1], [-1, 0]),
    "-1 is missing": ([0, 1, 1], [-1, 0, -1], [0, 1], [0, 1, 1], [-1, 0, -1]),
    "-1.0 is missing": ([0, 1, 1], [-1.0, 0.0, -1.0], [0, 1], [0, 1, 1], [-1, 0, -1]),
    "-1 is a label": ([-1, 1, 1], [NAN, -1, NAN], [-1, 1], [0, 1, 1], [-1, 0, -1]),
    "blank text": (np.array(["a", "b", "", " "]), ["", "a", " ", "b"], ["a", "b"], [0, 1, -1, -1], [-1, 0, -1, 1]),
    "letters of both cases": (np.array(["a", "A", "b"]), ["A", None, None], ["A", "a", "b"], [1, 0, 2], [0, -1, -1]),
    "no given label": (np.array([NAN, 1, 0]), np.array([1, NAN, NAN]), [0, 1], [-1, 1, 0], [1, -1, -1]),
    "one column": (pd.DataFrame({"label": [0, 1, 1]}), [None, 2, None], [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "a table": (pd.DataFrame(COLUMNS, index=[3, 2, 1]), None, [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "sources of polars": (Polars(SOURCES), None, [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
    "sources of arrow": (Arrow(SOURCES), None, [0, 1, 2], [0, 1, 1], [-1, 2, -1]),
}


@pytest.mark.parametrize("name", TABLE)
def test_labels_of_any_kind_are_codes(name):
    y, verified, classes, given, true = TABLE[name]
    found = read(y, verified, n=len(given))
    assert found.given.tolist() == given
    assert found.true.tolist() == true
    assert (found.by_source is not None) == name.startswith("sources")
    if classes is not None:
        assert found.classes.tolist() == classes
        assert {type(label) for label in found.classes.tolist()} == {type(label) for label in classes}
        assert found.classes.dtype != object or isinstance(classes[0], str)


@pytest.mark.parametrize(
    ("given", "verified"),
    [
        (["caf\u00e9", "tea"], ["cafe\u0301", None]),  # as in file names of macOS
        (["green tea", "tea"], ["green\u00a0tea", None]),
        (["tea ", "tea"], None),
        (["Yes", "No", "No"], [None, "no", None]),
    ],
    ids=["Unicode form", "no-break space", "trailing space", "case"],
)
def test_two_spellings_of_a_label_are_an_error(given, verified):
    with pytest.raises(ValueError, match="equal but for case, spaces or Unicode form"):
        read(np.array(given), verified)


def test_classes_and_labels_of_separate_samples():
    clean = SeparateLabels(2, ["cat", "ant"], [None, "bee"])
    found = read(NAMES[[0, 1, 1]], separate=clean, classes=NAMES[::-1])
    assert found.given.tolist() == [2, 1, 1, -1, 1]
    assert found.true.tolist() == [-1, -1, -1, 0, 2]
    assert [of.tolist() for of in found.positions] == [[0, 1, 2], [-1, -1]]
    moved = found.of_classes(np.array([*NAMES, "dog"]))
    assert moved.given.tolist() == [0, 1, 1, -1, 1]
    with pytest.raises(ValueError, match="y_clean has the label 'cat'"):
        read(NAMES[[0, 1, 1]], separate=clean, classes=NAMES[:2])


def test_minus_one_of_a_fit_is_a_label():
    assert read([0, 1], [-1, 0], minus_one_is_label=True).true.tolist() == [0, 1]
    assert read([0, 1], [-1, 0], classes=np.array([-1, 0, 1])).true.tolist() == [0, 1]


CELLS = st.sampled_from([0, 1, 2, None])
KINDS = [list, lambda y: pd.Series(y, dtype="Int64"), lambda y: np.array(y, float), lambda y: np.array(y, object)]


@hypothesis.given(st.lists(st.tuples(CELLS, CELLS, st.booleans()), min_size=2), st.sampled_from(KINDS))
def test_every_sample_is_noisy_or_clean(samples, kind):
    """Slow reference: one sample after another."""
    given, verified, ignored = zip(*samples, strict=True)
    table = pd.DataFrame({"verified": kind(verified), "label": kind(given)})
    noisy, clean, pairs = [], [], []
    for label, true, is_ignored in samples:
        if true is not None:
            clean.append(true)
            pairs.append(label)
        elif not is_ignored:
            noisy.append(label)  # possibly none
    hypothesis.assume({*noisy, *clean} - {None} and not all(ignored))
    found = read(table, sample_weight=np.where(ignored, 0, 2))
    assert found.classes.tolist() == sorted({*noisy, *clean, *pairs} - {None})
    names = np.append(found.classes.astype(object), None)
    assert names[found.noisy].tolist() == noisy
    assert names[found.clean].tolist() == clean
    assert names[found.noisy_of_clean].tolist() == pairs
    at = np.concatenate(found.positions)
    assert len(set(at.tolist())) == len(at) == len(noisy) + len(clean)
