"""Labels by name, and results with the index of a Series: the same as those of class indices."""

import numpy as np
import pandas as pd
import pytest

from noisytransition.transition import (
    class_conditional_test,
    denoise_proba,
    find_label_issues,
    flip_labels,
    label_posterior,
    label_quality,
    pair_noise,
    relabel,
)
from noisytransition.transition._checks import check_probabilities, check_transition_matrix

T = pair_noise(3, 0.4)
NAMES = np.array(["ant", "bee", "cat"])
OF_ROWS = [label_posterior, label_quality, find_label_issues, relabel]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(3, 0.4), size=60)
    return proba, flip_labels(proba.argmax(axis=1), T, random_state=0)


def named(function, codes, names):
    """Labels where the function gives labels."""
    return names[codes] if function is relabel else codes


@pytest.mark.parametrize("function", OF_ROWS)
@pytest.mark.parametrize(
    "kind", [np.asarray, list, lambda y: y.astype(object), pd.Series, lambda y: pd.Series(y, dtype="category")]
)
def test_text_labels_are_those_of_the_sorted_classes(function, kind, rows):
    proba, y = rows
    np.testing.assert_array_equal(
        function(proba, kind(NAMES[y]), T), named(function, np.asarray(function(proba, y, T)), NAMES)
    )


@pytest.mark.parametrize("function", OF_ROWS)
@pytest.mark.parametrize("names", [np.array(["dog", "cat", "ant"]), np.array([7, -1, 30]), np.array([0.5, 0.1, 2.0])])
def test_classes_may_be_in_any_order_and_of_any_kind(function, names, rows):
    proba, y = rows
    found = function(proba, names[y], T, classes=names)
    np.testing.assert_array_equal(found, named(function, function(proba, y, T), names))
    some = y < 2  # not all classes have a row
    found = function(proba[some], names[y[some]], T, classes=names)
    np.testing.assert_array_equal(found, named(function, function(proba[some], y[some], T), names))


def test_a_series_keeps_its_index(rows):
    proba, y = rows
    index = pd.Index([f"row {n}" for n in range(60)])
    given = pd.Series(NAMES[y], index=index, name="animal")
    quality, issues, labels = (f(proba, given, T) for f in (label_quality, find_label_issues, relabel))
    assert (quality.name, issues.name, labels.name) == ("label_quality", "position", "animal")
    assert quality.index.equals(index)
    assert labels.index.equals(index)
    assert 0 < len(issues) < 60
    assert issues.index.tolist() == [f"row {n}" for n in issues]
    pd.testing.assert_series_equal(given.iloc[issues], given.loc[issues.index])
    assert (quality[issues.index].diff().dropna() >= 0).all()
    np.testing.assert_array_equal(issues, find_label_issues(proba, y, T))


def test_a_frame_says_how_labels_flip():
    y, order = NAMES[np.repeat(np.arange(3), 20)], [2, 0, 1]
    frame = pd.DataFrame(T, index=NAMES, columns=NAMES).iloc[order, [1, 2, 0]]
    expected = flip_labels(y, T, random_state=0)
    assert flip_labels(y, frame, random_state=0).tolist() == expected.tolist()
    assert sorted(flip_labels(y, frame, random_state=0, classes=NAMES[order])) != sorted(y)
    moved = flip_labels(y, T[np.ix_(order, order)], random_state=0, classes=NAMES[order])
    assert flip_labels(y, frame, random_state=0, classes=NAMES[order]).tolist() == moved.tolist()


# ---------------------------------------------------------------------------- the test of one T
def test_one_T_is_tested_with_labels_by_name(rows):
    proba, y = rows
    true = proba.argmax(axis=1)
    shared = {"groups": np.arange(60) % 2, "n_permutations": 99, "random_state": 0}
    for given in ({}, {"proba": proba}):
        by_index = class_conditional_test(true, y, **given, **shared)
        by_name = class_conditional_test(NAMES[true], pd.Series(NAMES[y], index=np.arange(60) + 7), **given, **shared)
        by_class = class_conditional_test(NAMES[true], NAMES[y], classes=NAMES, **given, **shared)
        for found in (by_name, by_class):
            assert found.pvalues == by_index.pvalues
    with pytest.raises(ValueError, match="one has text labels and the other has none"):
        class_conditional_test(NAMES[true], y, **shared)
    with pytest.raises(ValueError, match="together: 2 different labels for 3 classes"):
        class_conditional_test(NAMES[true % 2], NAMES[y % 2], proba=proba, **shared)


def test_one_T_is_tested_with_probabilities_by_name(rows):
    proba, y = rows
    true, order = NAMES[proba.argmax(axis=1)], [2, 0, 1]
    frame = pd.DataFrame(proba, columns=NAMES)
    plain, moved = (
        class_conditional_test(true, NAMES[y], proba=p, n_permutations=99, random_state=0)
        for p in (proba, frame.iloc[:, order])
    )
    assert moved.pvalues == plain.pvalues


# ---------------------------------------------------------------------------- the order of the classes
def test_true_labels_come_from_shares_by_name():
    frame, order = pd.DataFrame(T, index=NAMES, columns=NAMES), [2, 0, 1]
    shares = pd.DataFrame([[0.5, 0.3, 0.2]], columns=NAMES)
    plain = denoise_proba(shares.to_numpy(), T, n_iter=100)
    np.testing.assert_allclose(denoise_proba(shares.iloc[:, order], frame, n_iter=100), plain[:, order])
    np.testing.assert_allclose(denoise_proba(shares, frame.iloc[order, [1, 0, 2]], n_iter=100), plain)


# ---------------------------------------------------------------------------- labels of dtype object
# ---------------------------------------------------------------------------- checks of arrays
def test_rows_may_be_off_by_rounding_only():
    for check, slack in ((check_transition_matrix, 1e-6), (check_probabilities, 1e-3)):
        check([[0.5, 0.5 + 0.9 * slack], [0, 1]])
        with pytest.raises(ValueError, match="row 1 of"):
            check([[0.5, 0.5], [0, 1 - 1.1 * slack]])
