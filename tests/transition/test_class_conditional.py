"""The test of class-conditional noise: against full enumeration, and its invariances."""

import itertools

import numpy as np
import pandas as pd
import pytest
from posteriors import labels_of
from scipy import stats
from scipy.special import softmax

from noisytransition.transition import class_conditional_test, flip_labels, symmetric_noise

pytestmark = pytest.mark.filterwarnings("error")


def draw(seed, n=60, c=3, rate=0.4):
    """Rows of one T: true and noisy labels, and features, posteriors and groups that go with the true label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    s = flip_labels(y, symmetric_noise(c, rate), random_state=rng)
    X = rng.normal(size=(n, 2)) + y[:, None]
    proba = softmax(rng.normal(size=(n, c)) + 2 * np.eye(c)[y], axis=1)
    return y, s, {"features": X, "proba": proba, "groups": (X[:, 0] + rng.normal(size=n) > 1).astype(int)}


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


def test_a_rate_that_differs_between_groups_is_found():
    y, group = np.arange(600) % 3, np.arange(600) // 300
    s = [flip_labels(y, symmetric_noise(3, rate), random_state=0) for rate in (0.1, 0.4)]
    found = class_conditional_test(y, np.choose(group, s), groups=group, random_state=0)
    assert found.pvalue == found.pvalues["groups: rate"] == 0.001
    shares = [(s[k] != y)[group == k].mean() for k in range(2)]
    assert [found.noise[name][0] for name in "01"] == pytest.approx(shares)
    assert found.noise["0"][1] == pytest.approx(np.mean(shares), abs=0.01)


# ---------------------------------------------------------------------------- invariances
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
    rng = np.random.default_rng(0)
    proba = softmax(1.5 * rng.normal(size=(90, 3)), axis=1)
    y, s = labels_of(proba, rng), labels_of(proba, rng)  # flips are towards likely classes
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
