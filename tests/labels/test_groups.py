"""Groups of samples that are not independent: their codes, sums and design effect."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisytransition.labels._arrays import names_of_samples
from noisytransition.labels._columns import read_names, split_columns
from noisytransition.labels._draw import design_effect, in_order_of_appearance, read_groups, sums_by_group
from noisytransition.labels._read import labels_of_fit

names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=20)


@given(names)
def test_sums_and_numbers_of_groups_are_those_of_a_loop(groups):
    groups = np.array(groups)
    values = np.random.default_rng(len(groups)).normal(size=(len(groups), 2))
    sums = np.array([values[groups == name].sum(axis=0) for name in sorted(set(groups))])
    np.testing.assert_allclose(sums_by_group(values, groups), sums)
    seen = list(dict.fromkeys(groups.tolist()))
    assert in_order_of_appearance(groups).tolist() == [seen.index(name) for name in groups.tolist()]
    expected = (sums**2).sum() / (values**2).sum()
    assert design_effect(values, groups) == pytest.approx(max(expected, 1))


def test_the_design_effect_is_1_without_groups_and_without_residuals():
    residuals = np.random.default_rng(0).normal(size=(50, 3))
    assert design_effect(residuals, None) == design_effect(np.zeros((4, 2)), np.zeros(4)) == 1


@pytest.mark.parametrize(
    "groups",
    [["p", "q", "p", "q"], [7, 3, 7, 3], [0.5, -1.0, 0.5, -1.0], pd.Categorical(["p", "q"] * 2), [True, False] * 2],
    ids=["text", "numbers", "floats", "categories", "booleans"],
)
def test_groups_of_any_type_are_read_and_separate_samples_are_groups(groups):
    assert read_groups([3, 1, 2, 0], 4, 2) is None  # groups of one sample
    found = read_groups(groups, 4, 2)
    assert found[0] == found[2] != found[1] == found[3]
    assert len(np.unique(found)) == 4


@pytest.mark.filterwarnings("error")
def test_dates_are_named_in_their_own_time_zone():
    days = pd.Series(pd.date_range("2025-01-01", periods=3, tz="Asia/Tokyo")).repeat(10)
    expected = ["2025-01-01", "2025-01-02", "2025-01-03"]
    assert read_names(days, 30, "groups")[0].tolist() == expected
    assert split_columns(np.arange(30) % 2, sources=days).by_source.names.tolist() == expected
    y = pd.DataFrame({day: [0, 1] for day in days.unique()}, index=pd.DatetimeIndex([days.iloc[0], None]))
    columns = split_columns(y)
    assert columns.by_source.names.tolist() == expected
    assert names_of_samples(columns.index).tolist() == ["2025-01-01", "NaT"]


def test_a_column_of_the_table_is_the_argument_and_no_source():
    y, verified, of = [0, 1, 1, 0], [0, None, None, 1], ["p", "q", "p", "q"]
    table = pd.DataFrame({"label": y, "verified": verified, "group": of})
    by_column = labels_of_fit(4, table, None, None, None, None)
    by_argument = labels_of_fit(4, y, verified, None, None, None, of)
    assert by_column.by_source is None
    np.testing.assert_array_equal(by_column.groups, by_argument.groups)
    of_noisy, of_clean = by_column.of_both(by_column.groups)
    assert of_noisy.tolist() == [1, 0]
    assert of_clean.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("groups", "message"), [(["p", None, "p", "q"], "groups is missing for 1 of 4"), (["p"], "1 labels for 4 samples")]
)
def test_missing_groups_are_an_error(groups, message):
    with pytest.raises(ValueError, match=message):
        read_groups(groups, 4)
