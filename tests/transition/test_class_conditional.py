"""The test of class-conditional noise: against full enumeration, its size and power, its invariances."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from posteriors import labels_of
from scipy import stats
from scipy.special import softmax
from strategies import labels

from noisytransition.transition import class_conditional_test, flip_labels, pair_noise, symmetric_noise

pytestmark = pytest.mark.filterwarnings("error")


def draw(seed, n=60, c=3, rate=0.4):
    """Rows of one T: true and noisy labels, and features, posteriors and groups that go with the true label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    s = flip_labels(y, symmetric_noise(c, rate), random_state=rng)
    X = rng.normal(size=(n, 2)) + y[:, None]
    proba = softmax(rng.normal(size=(n, c)) + 2 * np.eye(c)[y], axis=1)
    return y, s, {"features": X, "proba": proba, "groups": (X[:, 0] + rng.normal(size=n) > 1).astype(int)}


def rows_by_difficulty(seed, n=1500, c=3):
    """Labels that are wrong more often, and towards the likelier class, where the posterior is less sure."""
    rng = np.random.default_rng(seed)
    proba = softmax(1.5 * rng.normal(size=(n, c)), axis=1)
    return labels_of(proba, rng), labels_of(proba, rng), proba


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
        name, rate, of_labels, direction = {"proba": "posteriors"}.get(kind, kind), 0, 0, 0
        for i in set(y.tolist()):
            rows = np.flatnonzero(y == i)
            scores = slow_scores(kind, np.log(values) if kind == "proba" else values, rows)
            rate = rate + sum(z * (s[n] != i) for z, n in zip(scores, rows, strict=True))
            for j in set(s.tolist()):
                total = sum(z * (s[n] == j) for z, n in zip(scores, rows, strict=True))
                of_labels += (total**2).sum() / len(rows)
            direction += sum(np.log(values[n, s[n]]) for n in rows) if kind == "proba" else 0
        found |= {f"{name}: direction": direction} if kind == "proba" else {f"{name}: rate": np.cbrt((rate**2).sum())}
        found[f"{name}: labels"] = np.cbrt(of_labels)
    return found


def every_labelling(y, s):
    """The noisy labels and all that permuting them within the true classes makes of them, each once."""
    classes = [np.flatnonzero(y == i) for i in np.unique(y)]
    for parts in itertools.product(*(dict.fromkeys(itertools.permutations(s[rows])) for rows in classes)):
        labelling = s.copy()
        for rows, part in zip(classes, parts, strict=True):
            labelling[rows] = part
        yield labelling


@pytest.mark.parametrize("names", [["groups"], ["features", "proba"]])
def test_agrees_with_all_permutations(names):
    """Two classes of four rows: 576 permutations make 24 labellings, each 24 times."""
    order = np.random.default_rng(0).permutation(8)
    given = {name: values[order] for name, values in draw(0, n=8, c=2)[2].items() if name in names}
    y, s = np.repeat([0, 1], 4)[order], np.array([0, 0, 1, 1, 0, 1, 1, 1])[order]
    given |= {"groups": np.array([0, 1, 0, 1, 1, 1, 0, 0])[order]} if "groups" in names else {}
    table = pd.DataFrame([slow_statistics(y, labelling, given) for labelling in every_labelling(y, s)])
    standardised = (table - table.mean()) / table.std(ddof=0)
    observed = (pd.Series(slow_statistics(y, s, given)) - table.mean()) / table.std(ddof=0)
    largest = standardised.max(axis=1)
    found = class_conditional_test(y, s, n_permutations=4_000, random_state=0, **given)
    assert set(found.pvalues) == set(table)
    for name, p in found.pvalues.items():
        assert p == pytest.approx((largest >= observed[name] - 1e-6).mean(), abs=0.025)


# ---------------------------------------------------------------------------- size and power
@pytest.mark.parametrize("names", [["groups"], ["proba", "features", "groups"]], ids=["groups", "all"])
def test_pvalues_are_uniform_where_one_T_holds(names):
    p = []
    for seed in range(80):
        y, s, given = draw(seed, n=240 if names == ["groups"] else 80)  # few counts tie often: p is too large then
        given = {name: given[name] for name in names}
        p.append(class_conditional_test(y, s, n_permutations=39, random_state=seed, **given).pvalue)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_a_rate_that_differs_between_groups_is_found():
    y, group = np.arange(600) % 3, np.arange(600) // 300
    s = [flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4)]
    found = class_conditional_test(y, np.choose(group, s), groups=group, random_state=0)
    assert found.pvalue == found.pvalues["groups: rate"] == 0.001
    shares = [(s[k] != y)[group == k].mean() for k in range(2)]
    assert [found.noise[name][0] for name in "01"] == pytest.approx(shares)
    assert found.noise["0"][1] == pytest.approx(np.mean(shares), abs=0.01)

    s = [flip_labels(y, T, random_state=0) for T in (pair_noise(3, 0.4), pair_noise(3, 0.4).T)]  # at the same rate
    found = class_conditional_test(y, np.choose(group, s), groups=group, random_state=0)
    assert found.pvalues["groups: labels"] == 0.001
    assert found.pvalues["groups: rate"] > 0.05


def test_labels_that_follow_the_classifier_are_found_and_by_the_other_statistic_those_that_disagree():
    y, s, proba = rows_by_difficulty(0)
    assert class_conditional_test(y, s, proba=proba, random_state=0).pvalues["posteriors: direction"] == 0.001
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


# ---------------------------------------------------------------------------- invariances
@st.composite
def rows_to_permute(draw_from, max_samples=40):
    """True and noisy labels, of which two rows of class 0 differ, features with ties, and two groups."""
    n = draw_from(st.integers(1, max_samples))
    y, s, groups = (np.append(draw_from(labels(n, c)), last) for c, last in ((3, [0, 0]), (3, [0, 1]), (2, [0, 1])))
    X = draw_from(hnp.arrays(np.int64, (n + 2, 2), elements=st.integers(-8, 8)))
    return y, s, X / 4, groups


@given(rows_to_permute())
def test_only_the_order_of_features_and_the_partition_into_groups_count(rows):
    """One row of class 3, and three of class 4 with one noisy label, change nothing: they cannot be permuted."""
    y, s, X, groups = rows
    named = pd.Series(np.array(["z", "a"], dtype=object)[groups], index=np.arange(len(y))[::-1], dtype="category")
    first, second = (
        class_conditional_test(y, s, features=features, groups=names, n_permutations=29, random_state=0)
        for features, names in ((X, groups), (np.exp(3 * X[:, ::-1] + 5), named))
    )
    assert first.pvalues == second.pvalues
    assert second.noise["z"] == first.noise["0"]
    first = class_conditional_test(y, s, features=X, n_permutations=29, random_state=0)
    y, s, X = np.append(y, [3, 4, 4, 4]), np.append(s, [0, 1, 1, 1]), np.vstack([X, np.zeros((4, 2))])
    assert class_conditional_test(y, s, features=X, n_permutations=29, random_state=0).pvalues == first.pvalues


def test_a_constant_feature_and_ties_have_a_pvalue_of_1():
    """For one class with two samples both orders have the same statistic."""
    y, s, _ = draw(0)
    assert class_conditional_test(y, s, features=np.ones((60, 2)), random_state=0).pvalue == 1
    assert class_conditional_test([0, 0], [0, 1], features=[[0.0], [1.0]], n_permutations=50).pvalue == 1


@pytest.mark.parametrize("n", [7, 60, 1000])
def test_rounding_errors_do_not_count_for_any_number_of_rows(n):
    """Labels 0 and 1 have equal posteriors, so that "direction" is the same in all permutations."""
    rng = np.random.default_rng(n)
    a = rng.uniform(0.05, 0.45, size=n)
    y, s, proba = np.zeros(n, dtype=int), rng.permutation(np.arange(n) % 2), np.stack([a, a, 1 - 2 * a], axis=1)
    found = class_conditional_test(y, s, proba=proba, n_permutations=99, random_state=0)
    assert found.pvalues["posteriors: direction"] == 1


def test_almost_uniform_posteriors_have_the_same_direction():
    y, s, proba = rows_by_difficulty(0, n=90)
    powered = proba**1e-4 / (proba**1e-4).sum(axis=1, keepdims=True)
    sharp, flat = (class_conditional_test(y, s, proba=p, random_state=0).pvalues for p in (proba, powered))
    assert flat["posteriors: direction"] == pytest.approx(sharp["posteriors: direction"], abs=0.02)


def test_the_seed_repeats_the_result_and_inputs_stay():
    y, s, given_ = draw(0)
    copies = [values.copy() for values in (y, s, *given_.values())]
    first, second = (class_conditional_test(y, s, random_state=np.random.default_rng(3), **given_) for _ in range(2))
    assert first == second
    for values, copied in zip((y, s, *given_.values()), copies, strict=True):
        np.testing.assert_array_equal(values, copied)
