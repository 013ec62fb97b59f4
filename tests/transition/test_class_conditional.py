"""The test of class-conditional noise: against full enumeration, its size and power, its invariances."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from noise_rows import draw, rows_by_difficulty
from scipy import stats
from strategies import labels

from noisytransition.transition import _class_conditional_permutations as permutations_module
from noisytransition.transition import _class_conditional_scores as scores_module
from noisytransition.transition import (
    class_conditional_test,
    count_transition_matrix,
    flip_labels,
    pair_noise,
    symmetric_noise,
)
from noisytransition.transition._class_conditional_permutations import PermutedLabels

pytestmark = pytest.mark.filterwarnings("error")


# ---------------------------------------------------------------------------- against a slow reference
def slow_scores(kind, values, rows):
    """Scores of the rows of a class, one column after the other."""
    columns = []
    if kind == "groups":
        for group in sorted(set(values.tolist())):
            share = np.mean(values == group)
            columns.append([float(values[n] == group) / share**0.5 for n in rows])
        return np.array(columns).T - np.mean(columns, axis=1)
    for column in values[rows].T:
        ranks = (2 * stats.rankdata(column) - 1) / len(rows) - 1
        for polynomial in (ranks, 1.5 * ranks**2 - 0.5):
            spread = polynomial.std()
            columns.append((polynomial - polynomial.mean()) / spread if spread > 1e-8 else 0 * polynomial)
    return np.array(columns).T


def slow_statistics(y, s, given):
    """Statistics of one labelling, row by row."""
    found = {}
    for kind, values in given.items():
        name, rate, labels, direction = {"proba": "posteriors"}.get(kind, kind), 0, 0, 0
        for i in set(y.tolist()):
            rows = np.flatnonzero(y == i)
            scores = slow_scores(kind, np.log(values) if kind == "proba" else values, rows)
            rate = rate + sum(z * (s[n] != i) for z, n in zip(scores, rows, strict=True))
            for j in set(s.tolist()):
                total = sum(z * (s[n] == j) for z, n in zip(scores, rows, strict=True))
                labels += (total**2).sum() / len(rows)
            direction += sum(np.log(values[n, s[n]]) for n in rows) if kind == "proba" else 0
        found |= {f"{name}: direction": direction} if kind == "proba" else {f"{name}: rate": np.cbrt((rate**2).sum())}
        found[f"{name}: labels"] = np.cbrt(labels)
    return found


def every_labelling(y, s):
    """The noisy labels and all that permuting them within the true classes makes of them, each once."""
    classes = [np.flatnonzero(y == i) for i in np.unique(y)]
    for parts in itertools.product(*(dict.fromkeys(itertools.permutations(s[rows])) for rows in classes)):
        labelling = s.copy()
        for rows, part in zip(classes, parts, strict=True):
            labelling[rows] = part
        yield labelling


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("names", [["groups"], ["features"], ["proba"], ["proba", "features"]])
def test_agrees_with_all_permutations(seed, names, monkeypatch):
    """Two classes of four rows: 576 permutations make 24 labellings, each 24 times."""
    monkeypatch.setattr(permutations_module, "_FEW_ROWS", 500 * seed)  # both ways to draw
    _, _, given = draw(seed, n=8, c=2)
    y = np.repeat([0, 1], 4)
    s = np.array([0, 0, 1, 1, 0, 1, 1, 1])
    given = {name: given[name] for name in names}
    given |= {"groups": np.array([0, 1, 0, 1, 1, 1, 0, 0])} if "groups" in names else {}
    table = pd.DataFrame([slow_statistics(y, labelling, given) for labelling in every_labelling(y, s)])
    standardised = (table - table.mean()) / table.std(ddof=0)
    largest = standardised.max(axis=1)
    found = class_conditional_test(y, s, n_permutations=20_000, random_state=seed, **given)
    assert list(found.pvalues) == list(table)
    for name, p in found.pvalues.items():
        assert p == pytest.approx((largest >= standardised[name][0] - 1e-6).mean(), abs=0.02)


def test_blocks_of_permutations_make_no_difference(monkeypatch):
    y, s, given = draw(0)
    whole = class_conditional_test(y, s, random_state=0, **given)
    monkeypatch.setattr(permutations_module, "_BLOCK_SIZE", 700)
    assert class_conditional_test(y, s, random_state=0, **given).pvalues == whole.pvalues


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40).filter(lambda labels: len(set(labels)) > 1))
@pytest.mark.parametrize("few", [0, 500])
def test_sums_of_permutations_are_those_of_whole_labellings(few, labels):
    labels, scores = np.array(labels), np.random.default_rng(1).normal(size=(len(labels), 3))
    scores -= scores.mean(axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permutations_module, "_FEW_ROWS", few)
        permuted = PermutedLabels(labels, 20, np.random.default_rng(0))
    names, counts = np.unique(labels, return_counts=True)
    np.testing.assert_array_equal(permuted.names, names)
    (block, sums), *_ = permuted.sums(scores)
    assert (block, len(permuted)) == (slice(0, 21), 21)
    drawn = np.delete(np.arange(len(names)), counts.argmax())
    for i, rows in enumerate(permuted._rows):
        labelling = np.full(len(labels), names[counts.argmax()])
        labelling[rows] = np.repeat(names[drawn], counts[drawn])
        assert sorted(labelling) == sorted(labels)
        assert i > 0 or labelling.tolist() == labels.tolist()
        expected = [
            sum((z for z, label in zip(scores, labelling, strict=True) if label == j), np.zeros(3)) for j in names
        ]
        np.testing.assert_allclose(sums[i], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("few", [0, 500])
def test_every_labelling_is_drawn_as_often(few, monkeypatch):
    monkeypatch.setattr(permutations_module, "_FEW_ROWS", few)
    permuted = PermutedLabels(np.array([2, 0, 1, 0, 0]), 6000, np.random.default_rng(0))
    counts = np.unique(permuted._rows[1:], axis=0, return_counts=True)[1]  # rows of labels 1 and 2
    assert len(counts) == 20
    assert stats.chisquare(counts).pvalue > 0.01


# ---------------------------------------------------------------------------- size
@pytest.mark.parametrize("names", [["groups"], ["features"], ["proba"], ["proba", "features", "groups"]])
def test_pvalues_are_uniform_where_one_T_holds(names):
    found = []
    for seed in range(200):
        y, s, given = draw(seed, n=240 if names == ["groups"] else 80)  # few counts tie often: p is too large then
        given = {name: given[name] for name in names}
        found.append(class_conditional_test(y, s, n_permutations=99, random_state=seed, **given))
    p = np.array([test.pvalue for test in found])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert (p <= 0.05).mean() < 0.09
    of_classes = np.nanmin([test.class_pvalues for test in found], axis=1)
    assert (of_classes <= 0.05).mean() < 0.09


def test_posteriors_that_know_the_true_labels_and_the_counts_keep_the_size():
    """Label posteriors made with the counted T, then confidence that repeats the true label."""
    p = []
    for seed in range(200):
        y, s, given = draw(seed, n=80)
        proba = given["proba"] @ count_transition_matrix(y, s) * (0.2 + np.eye(3)[y])
        proba /= proba.sum(axis=1, keepdims=True)
        p.append(class_conditional_test(y, s, proba=proba, n_permutations=99, random_state=seed).pvalue)
    assert stats.kstest(p, "uniform").pvalue > 0.01


# ---------------------------------------------------------------------------- power
def test_a_rate_that_differs_between_groups_is_found():
    y, group = np.arange(600) % 3, np.arange(600) // 300
    s = [flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4)]
    found = class_conditional_test(y, np.choose(group, s), groups=group, random_state=0)
    assert found.pvalue == 0.001
    assert found.pvalues["groups: rate"] == 0.001


def test_wrong_labels_that_differ_at_the_same_rate_are_found():
    y, group = np.arange(600) % 3, np.arange(600) // 300
    s = [flip_labels(y, T, random_state=0) for T in (pair_noise(3, 0.4), pair_noise(3, 0.4).T)]
    found = class_conditional_test(y, np.choose(group, s), groups=group, random_state=0)
    assert found.pvalues["groups: labels"] == 0.001
    assert found.pvalues["groups: rate"] > 0.05


def test_labels_that_follow_the_classifier_are_found():
    y, s, proba = rows_by_difficulty(0)
    found = class_conditional_test(y, s, proba=proba, random_state=0)
    assert found.pvalues["posteriors: direction"] == 0.001
    assert found.noise["harder half"].observed > found.noise["harder half"].expected


def test_the_direction_has_one_side():
    """Labels that disagree with the classifier are found by the other statistic."""
    y, _, proba = rows_by_difficulty(0)
    least = proba.argmin(axis=1)
    s = np.where(least == y, y, np.where(np.random.default_rng(0).random(len(y)) < 0.4, least, y))
    found = class_conditional_test(y, s, proba=proba, random_state=0)
    assert found.pvalues["posteriors: direction"] > 0.9
    assert found.pvalue == found.pvalues["posteriors: labels"] == 0.001


def test_noise_in_both_tails_of_a_feature_is_found():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=800), rng.integers(2, size=800)
    s = np.where(rng.random(800) < np.where(abs(x) > 1, 0.5, 0.2), 1 - y, y)
    assert class_conditional_test(y, s, features=x, random_state=0).pvalue == 0.001


def test_the_class_that_differs_is_named():
    y, group = np.arange(900) % 3, np.arange(900) // 450
    s = flip_labels(y, symmetric_noise(3, 0.2), random_state=0)
    s = np.where((y == 1) & (group == 1), flip_labels(y, symmetric_noise(3, 0.6), random_state=1), s)
    found = class_conditional_test(y, s, groups=group, random_state=0)
    assert found.class_pvalues[1] <= 0.01
    assert found.class_pvalues[[0, 2]].min() > 0.05


# ---------------------------------------------------------------------------- invariances
@st.composite
def rows_to_permute(draw_from, max_rows=40):
    """True and noisy labels, of which two rows of class 0 differ, features with ties, and two groups."""
    n = draw_from(st.integers(1, max_rows))
    y, s, groups = (np.append(draw_from(labels(n, c)), last) for c, last in ((3, [0, 0]), (3, [0, 1]), (2, [0, 1])))
    X = draw_from(hnp.arrays(np.int64, (n + 2, 2), elements=st.integers(-8, 8)))
    return y, s, X / 4, groups


@given(rows_to_permute())
@settings(max_examples=50)
def test_monotone_changes_of_a_feature_change_nothing(rows):
    y, s, X, _ = rows
    first, second = (
        class_conditional_test(y, s, features=features, n_permutations=99, random_state=0)
        for features in (X, np.exp(3 * X[:, ::-1] + 5))
    )
    assert first.pvalues == second.pvalues


@given(rows_to_permute())
@settings(max_examples=50)
def test_names_of_groups_change_nothing(rows):
    y, s, _, groups = rows
    named = np.array(["z", "a"], dtype=object)[groups]
    first, second, third = (
        class_conditional_test(y, s, groups=names, n_permutations=99, random_state=0)
        for names in (groups, named, pd.Series(named, index=np.arange(len(y))[::-1], dtype="category"))
    )
    assert first.pvalues == second.pvalues == third.pvalues
    assert second.noise["z"] == first.noise["0"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_classes_changes_the_draws_alone(seed):
    y, s, given_ = draw(seed, rate=0.6)
    rng = np.random.default_rng(seed)
    rows, classes = rng.permutation(60), rng.permutation(3)
    names = np.argsort(classes)  # the new index of each class
    first = class_conditional_test(y, s, n_permutations=4000, random_state=0, **given_)
    moved = {name: values[rows] for name, values in given_.items()}
    moved["proba"] = moved["proba"][:, classes]
    second = class_conditional_test(names[y][rows], names[s][rows], n_permutations=4000, random_state=1, **moved)
    assert second.pvalues == pytest.approx(first.pvalues, abs=0.05)
    np.testing.assert_allclose(second.class_pvalues, first.class_pvalues[classes], atol=0.05)
    assert second.noise.keys() == first.noise.keys()


def test_a_temperature_does_not_change_the_direction():
    y, s, proba = rows_by_difficulty(0, n=90)
    powered = proba**0.3 / (proba**0.3).sum(axis=1, keepdims=True)
    sharp, flat = (
        class_conditional_test(y, s, proba=p, features=np.zeros(90), random_state=0) for p in (proba, powered)
    )
    assert flat.pvalues["posteriors: direction"] == pytest.approx(sharp.pvalues["posteriors: direction"], abs=0.02)


@given(rows_to_permute())
@settings(max_examples=50)
def test_classes_without_anything_to_permute_change_nothing(rows):
    """One row of class 3, and three of class 4 with one noisy label."""
    y, s, X, _ = rows
    first = class_conditional_test(y, s, features=X, n_permutations=99, random_state=0)
    more = class_conditional_test(
        np.append(y, [3, 4, 4, 4]),
        np.append(s, [0, 1, 1, 1]),
        features=np.vstack([X, np.zeros((4, 2))]),
        n_permutations=99,
        random_state=0,
    )
    assert more.pvalues == first.pvalues
    tested = [len(set(s[y == i].tolist())) > 1 for i in range(3)]
    assert more.n_rows == first.n_rows == sum(np.bincount(y, minlength=3)[tested])
    np.testing.assert_array_equal(~np.isnan(more.class_pvalues), [*tested, False, False])
    np.testing.assert_array_equal(more.class_pvalues[: len(first.class_pvalues)], first.class_pvalues)
    assert more.minimum_detectable_difference == pytest.approx(first.minimum_detectable_difference)


def test_a_constant_feature_has_a_pvalue_of_1():
    y, s, _ = draw(0)
    assert class_conditional_test(y, s, features=np.ones((60, 2)), random_state=0).pvalue == 1


def rounding_error_of_posteriors(n, seed):
    """Labels 0 and 1 have equal posteriors, so that "direction" is the same in all permutations."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.05, 0.45, size=n)
    return np.zeros(n, dtype=int), rng.permutation(np.arange(n) % 2), np.stack([a, a, 1 - 2 * a], axis=1)


def test_a_statistic_that_is_constant_up_to_rounding_errors_does_not_count():
    a = np.array([0.4, 0.2, 0.1, 0.1, 0.3])
    proba = np.stack([a, a, 1 - 2 * a], axis=1)
    found = class_conditional_test([0] * 5, [0, 0, 1, 1, 0], proba=proba, random_state=0)
    assert found.pvalues["posteriors: direction"] == 1
    assert found.pvalues["posteriors: labels"] < 1


@pytest.mark.parametrize("n", [7, 60, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_do_not_count_for_any_number_of_rows(n, seed):
    y, s, proba = rounding_error_of_posteriors(n, seed)
    found = class_conditional_test(y, s, proba=proba, n_permutations=99, random_state=0)
    assert found.pvalues["posteriors: direction"] == 1


def test_almost_uniform_posteriors_have_the_same_pvalue():
    """The direction is tested at any scale of the log-posteriors above rounding errors."""
    y, s, proba = rows_by_difficulty(0, n=90)
    powered = proba**1e-4 / (proba**1e-4).sum(axis=1, keepdims=True)
    found = class_conditional_test(y, s, proba=powered, random_state=0)
    assert found.pvalues["posteriors: direction"] < 0.1


def test_ranks_of_ties_are_their_mean():
    """-1 to 1 in steps of 2 / n, and their second Legendre polynomial: the figures of a rank by hand."""
    found = scores_module._rank_polynomials(np.array([[3.0], [1.0], [1.0], [9.0]]))
    ranks = np.array([0.25, -0.5, -0.5, 0.75])
    squares = 3 * ranks**2 - 1
    np.testing.assert_allclose(found[:, 0], (ranks - ranks.mean()) / ranks.std())
    np.testing.assert_allclose(found[:, 1], (squares - squares.mean()) / squares.std())


def test_ties_count_as_at_least_as_large():
    """Of one class with two rows either order is as large: p is 1 whatever is drawn."""
    found = class_conditional_test([0, 0], [0, 1], features=[[0.0], [1.0]], n_permutations=50, random_state=0)
    assert found.pvalue == 1


def test_the_smallest_pvalue_is_never_zero():
    y, s, proba = rows_by_difficulty(0)
    assert class_conditional_test(y, s, proba=proba, n_permutations=19, random_state=0).pvalue == 1 / 20


def test_the_seed_repeats_the_result_and_inputs_stay():
    y, s, given_ = draw(0)
    copies = {name: values.copy() for name, values in given_.items()}
    makers = (lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3))
    for make in makers:
        first, second = (class_conditional_test(y, s, random_state=make(), **given_) for _ in range(2))
        assert first.pvalues == second.pvalues
    for name, values in copies.items():
        np.testing.assert_array_equal(given_[name], values)
    np.random.seed(0)  # noqa: NPY002
    class_conditional_test(y, s, **given_)
    assert np.random.random() == pytest.approx(0.5488135)  # noqa: NPY002


# ---------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": None}, r"pass groups=, features= or proba="),
        ({"y_noisy": [0, 1]}, "y_noisy has 2 entries for 6 rows"),
        ({"y_true": ["a"] * 6}, "one has text labels and the other has none"),
        ({"y_true": [0, 1, 2, 3, 4, 5]}, "nothing can be permuted"),
        ({"y_noisy": [0, 0, 0, 1, 1, 1]}, "nothing can be permuted"),
        ({"y_true": [], "y_noisy": [], "features": np.ones((0, 1))}, "nothing can be permuted"),
        ({"features": np.ones((5, 1))}, r"features has shape \(5, 1\) for 6 rows"),
        ({"features": np.ones((6, 0))}, r"features has shape \(6, 0\)"),
        ({"features": np.ones((6, 2, 2))}, "For images or sequences give proba="),
        ({"features": [["a"]] * 6}, "features is not an array of numbers"),
        ({"features": np.full(6, np.nan)}, "features has NaN"),
        ({"proba": np.ones((6, 2))}, "sums to 2"),
        ({"proba": np.ones((6, 1))}, "y_true holds 0..1; valid class indices are 0..0"),
        ({"proba": np.eye(2)}, "y_true has 6 entries for 2 rows"),
        ({"groups": [1, 2]}, r"groups has shape \(2,\) for 6 rows"),
        ({"groups": ["a"] * 6}, "all rows are of one group"),
        ({"groups": list("abcdef")}, "give numbers as features="),
        ({"groups": ["a", None, "b", "b", "b", "a"]}, "groups is missing in 1 of 6 rows"),
        ({"groups": [0, float("nan"), 1, 1, 1, float("nan")]}, "missing in 2 of 6 rows"),
        ({"groups": pd.Series(["a", pd.NA, "b", "b", "b", "b"])}, "missing in 1 of 6 rows"),
        ({"n_permutations": 0}, "n_permutations=0"),
        ({"n_permutations": 9.5}, "n_permutations=9.5"),
    ],
)
def test_errors_say_what_is_wrong(change, message):
    valid = {"y_true": [0, 0, 0, 1, 1, 1], "y_noisy": [0, 1, 0, 1, 0, 1], "features": np.arange(6)}
    class_conditional_test(**valid)
    with pytest.raises(ValueError, match=message):
        class_conditional_test(**(valid | change))
