"""Tables with the labels of several sources, wide and long: accepted and refused input."""

import warnings
from collections import Counter

import hypothesis
import numpy as np
import pandas as pd
import pytest
from estimators import CLASSIFIERS, small
from hypothesis import strategies as st
from training import refused

from noisytransition import EMTransitionClassifier
from noisytransition.labels._columns import split_columns
from noisytransition.labels._read import labels_of_fit

NAMES = np.array(["ant", "bee", "cat"])


def read(table, y_verified=None, sources=None):
    """Labels as a fit reads them."""
    return labels_of_fit(len(table), table, y_verified, None, sources, None)


def plurality(rows):
    """Slow reference: most frequent label of each sample; at ties the most frequent label of all, then the first."""
    of_all = Counter(label for row in rows for label in row if label is not None)
    return [
        min((label for label in row if label is not None), key=lambda v: (-row.count(v), -of_all[v], v), default=None)
        for row in rows
    ]


def frame(rows, kind=list):
    return pd.DataFrame({f"s{s}": kind(column) for s, column in enumerate(zip(*rows, strict=True))})


CELLS = st.sampled_from(["ant", "bee", "cat", None])
TABLES = st.integers(2, 4).flatmap(lambda s: st.lists(st.tuples(*[CELLS] * s), min_size=1, max_size=12))


@hypothesis.given(TABLES, st.permutations(range(4)))
@hypothesis.settings(max_examples=30)
def test_given_labels_are_the_most_frequent_ones(rows, order):
    y, verified, by_source, *_ = split_columns(frame(rows))
    moved = frame(rows)[[f"s{s}" for s in order if s < len(rows[0])]]
    np.testing.assert_array_equal(split_columns(moved).given, y)
    assert [None if pd.isna(label) else label for label in y] == plurality(rows)
    assert verified is None
    assert by_source.names.tolist() == [f"s{s}" for s in range(len(rows[0]))]
    of_classes = by_source.of_classes(NAMES[::-1])
    found = [[None if j < 0 else NAMES[::-1][j] for j in row] for row in of_classes.codes.tolist()]
    assert found == [list(row) for row in rows]
    np.testing.assert_array_equal(of_classes.at(np.array([-1, 0])), [[-1] * len(rows[0]), of_classes.codes[0]])


@hypothesis.given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from("pqr")), min_size=3, max_size=12)
)
@hypothesis.settings(max_examples=30)
def test_long_form_is_a_table_with_one_label_in_each_row(rows):
    hypothesis.assume(any(label is not None for label, _ in rows))
    labels, sources = zip(*rows, strict=True)
    long = split_columns(np.array(labels, dtype=object), sources=list(sources)).by_source
    columns = sorted(set(sources))
    if len(columns) == 1:
        assert long is None
        return
    wide = {name: [label if of == name else None for label, of in rows] for name in columns}
    y, _, by_source, *_ = split_columns(pd.DataFrame(wide))
    assert y.tolist() == list(labels)
    np.testing.assert_array_equal(long.codes, by_source.codes)
    np.testing.assert_array_equal(long.labels, by_source.labels)


@pytest.mark.parametrize("missing", [-1, np.nan, pd.NA])
def test_missing_labels_of_any_kind(missing):
    rows = [(0, 1, None), (2, None, None), (None, 1, 1), (0, 0, 2)]
    table = frame(rows, lambda column: [missing if v is None else v for v in column])
    found = read(table.assign(verified=[2.0, np.nan, np.nan, np.nan]))
    assert found.classes.tolist() == [0, 1, 2]
    assert found.by_source.codes.tolist() == [[-1 if v is None else v for v in row] for row in rows]
    assert found.noisy.tolist() == [2, 1, 0]
    assert found.noisy_of_clean.tolist() == [0]  # a tie of 0 and 1, both of which are given three times: the first


def test_minus_one_and_one_are_two_classes_and_minus_one_beside_zero_and_one_is_doubtful():
    y, *_ = split_columns(pd.DataFrame({"a": [-1, 1], "b": [-1, 1]}))
    assert y.tolist() == [-1, 1]
    with pytest.warns(UserWarning, match="-1, 0 and 1"):
        y, *_ = split_columns(pd.DataFrame({"a": [-1, 1, 0], "b": [0, 1, -1]}))
    assert y.tolist() == [0, 1, 0]


def test_columns_that_are_no_sources():
    """The index is kept; verified labels may be beside the table; a single column may have any name."""
    table = pd.DataFrame({"a": [0, 1, 0], "b": [0, 1, 1]}, index=[7, 8, 9])
    columns = split_columns(table, [None, 1, None])
    assert columns.index.tolist() == [7, 8, 9]
    assert columns.verified == [None, 1, None]
    for names in (["true"], ["true", "verified"], ["true", "verified_probability"]):
        found = split_columns(table[["a", "b"][: len(names)]].set_axis(names, axis=1))
        pd.testing.assert_series_equal(found.given, table["a"], check_names=False)
        assert found.by_source is None


# ---------------------------------------------------------------------------- bad input
TABLE = pd.DataFrame({"a": [0, 1, 2, 0, 1, 2], "b": [0, 1, 2, 1, 1, 2], "verified": [0, 1, 2, None, None, None]})


def renamed(*names):
    return TABLE.set_axis(names, axis=1)


@pytest.mark.parametrize(
    ("table", "given", "word"),
    [
        (renamed("a", "a", "verified"), {}, "several columns named 'a'"),
        (TABLE[["verified"]], {}, "only the column"),
        (renamed("a", "b", "Verified"), {}, "'verified'"),
        (renamed("a", "true", "verified"), {}, "column 'true'"),
        (TABLE.assign(Verified_Probability=0.5), {}, "'verified_probability'"),
        (TABLE.assign(verified_probability=0.0), {}, "verified_probability"),
        (TABLE, {"y_verified": [0] * 6}, "twice"),
        (TABLE, {"sources": list("pqpqpq")}, "Omit sources="),
        (TABLE.assign(a=None, b=None), {}, "no noisy sample to learn from"),
        (TABLE.assign(c=list("xyxyxy")), {}, "several kinds"),
        (TABLE.assign(c=[100, 101, 102, 103, 104, 105]), {}, "column 'c'"),
        (TABLE.assign(verified=list("abc") + [None] * 3), {}, "same classes"),
        (np.array([0, 1, 2]), {"sources": ["p", None, "q"]}, "sources is missing for 1"),
        (np.array([0, 1, 2]), {"sources": np.array([list("pq")] * 3)}, "shape"),
        (np.arange(60) % 2, {"sources": pd.Series(pd.date_range("2025-01-01", periods=60))}, "such as periods"),
        (np.array([[0, 1], [1, 1]]), {"y_verified": [0, None]}, "one for each source"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(table, given, word):
    with pytest.raises(ValueError, match=word):
        read(table, **given)


def test_a_source_may_have_one_label_or_none_or_always_say_the_same():
    """A label that is nowhere the most frequent one is warned of."""
    with pytest.warns(UserWarning, match=r"some sources give the labels \[7\]"):
        assert read(TABLE.assign(c=[0, 1, 2, 1, 7, 2])).classes.tolist() == [0, 1, 2, 7]
    rare = TABLE.assign(once=[None, 1, None, None, None, None], never=None, always=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(rare)
    assert found.by_source.names.tolist() == ["a", "b", "once", "never", "always"]
    assert (found.by_source.codes >= 0).sum(axis=0).tolist() == [6, 6, 1, 0, 6]


def test_other_methods_say_who_takes_several_sources():
    X = np.arange(12.0).reshape(6, 2)
    for cls in [cls for cls in CLASSIFIERS if cls is not EMTransitionClassifier]:
        with refused("EMTransitionClassifier"):
            small(cls).fit(X, TABLE)
        with refused("EMTransitionClassifier"):
            small(cls).fit(X, TABLE["a"], y_verified=TABLE["verified"], sources=list("pqpqpq"))


def test_a_column_with_a_label_of_its_own_in_each_row_is_refused():
    rows = np.arange(60)
    labels = {"id": rows, "label": rows % 3, "other": (rows + 1) % 3}
    with pytest.raises(ValueError, match="column 'id' of y"):
        split_columns(pd.DataFrame(labels)).by_source.check((rows[:10] % 3).tolist(), "y")
    split_columns(pd.DataFrame(labels).drop(columns="id")).by_source.check((rows[:10] % 3).tolist(), "y")


def test_tuples_are_names_of_sources():
    table = pd.DataFrame({("ann", 1): [0, 1, 1], ("bob", 2): [1, 1, 0]})
    assert split_columns(table).by_source.names.tolist() == ["('ann', 1)", "('bob', 2)"]
    names = np.fromiter([("ann", 1), ("bob", 2), ("ann", 1)], dtype=object, count=3)
    assert split_columns([0, 1, 1], sources=names).by_source.names.tolist() == ["('ann', 1)", "('bob', 2)"]
