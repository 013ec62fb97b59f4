"""Generalisation bounds: laws of their growth, the inequalities behind them, and networks that they hold for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisytransition.transition import pair_noise, posterior_error_bound, risk_bound, symmetric_noise
from noisytransition.transition._bounds import _largest_loss

T = symmetric_noise(10, 0.4)
FLOOR = -np.log(T.min())  # the largest loss, of any network


def complexity(**changed):
    """Bound without the term of delta, which has no norms and no depth in it where T has no small entry."""
    given = {"n_samples": 1000, "norms": [3.0, 2.0], "radius": 1.0, "n_classes": 10, "transition_matrix": T} | changed
    at_delta = FLOOR * (np.log(1 / 0.05) / 2 / given["n_samples"]) ** 0.5
    return risk_bound(**given) - at_delta


@pytest.mark.parametrize("factor", [4, 100])
def test_it_falls_with_the_root_of_the_number_of_rows(factor):
    few, many = (risk_bound(n, [2, 3], 1.5, 10, transition_matrix=T) for n in (1000, 1000 * factor))
    assert few / many == pytest.approx(factor**0.5)


def test_it_rises_with_the_product_of_the_norms():
    assert complexity(norms=[30.0, 20.0]) == pytest.approx(100 * complexity())
    assert complexity(norms=[6.0, 1.0]) == pytest.approx(complexity())
    assert complexity(radius=7.0) == pytest.approx(7 * complexity())


def test_it_rises_with_the_root_of_the_depth():
    by_depth = np.array([complexity(norms=[1.0] * d) for d in (1, 4, 16, 10_000)])
    assert np.all(np.diff(by_depth) > 0)
    assert by_depth[-1] / complexity(norms=[1.0] * 2500) == pytest.approx(2, rel=0.02)


def test_it_is_lower_with_less_certainty_and_higher_if_t_is_learned():
    sure, unsure = (risk_bound(1000, [1], 1, 10, delta=delta) for delta in (0.001, 0.5))
    assert sure > unsure
    assert risk_bound(1000, [1], 1, 10, transition_norm=5) > risk_bound(1000, [1], 1, 10, transition_norm=1)


def test_a_network_of_norm_0_has_the_hoeffding_term_alone():
    expected = np.log(10) * (np.log(1 / 0.05) / 2 / 500) ** 0.5
    assert risk_bound(500, [0.0], 1, 10) == pytest.approx(expected)


probabilities = st.integers(2, 5).flatmap(
    lambda c: st.tuples(*[st.lists(st.floats(0.01, 1), min_size=c, max_size=c)] * (c + 2))
)


def as_distributions(rows):
    rows = np.array(rows)
    rows = rows / rows.sum(axis=1, keepdims=True)
    return rows[0], rows[1], rows[2:]


@given(probabilities)
def test_posterior_error_is_at_most_its_bound(rows):
    f, p, T = as_distributions(rows)
    excess = np.sum((p @ T) * (np.log(p @ T) - np.log(f @ T)))
    assert np.sum((f - p) ** 2) <= posterior_error_bound(max(excess, 0.0), T) * (1 + 1e-9) + 1e-12


@given(probabilities, st.floats(0.1, 10))
def test_no_loss_is_above_the_largest(rows, size):
    f, _, T = as_distributions(rows)
    logits = np.log(f) - np.log(f).mean()
    logits *= size / max(np.linalg.norm(logits), 1e-9)
    f = np.exp(logits) / np.exp(logits).sum()
    assert np.all(-np.log(f @ T) <= _largest_loss(size, len(T), T) + 1e-9)
    assert np.all(-np.log(f) <= _largest_loss(size, len(T), None) + 1e-9)


@given(probabilities)
def test_gradients_are_at_most_the_constants(rows):
    f, _, T = as_distributions(rows)
    for y in range(len(f)):
        q = f * T[:, y] / (f @ T[:, y])
        of_logits = np.sum((f - q) ** 2)
        of_transition = np.sum(q**2 * np.sum((np.eye(len(f))[y] - T) ** 2, axis=1))
        assert of_logits <= 2
        assert of_logits + of_transition <= 4


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 1000))
def test_rademacher_complexity_of_a_linear_layer_is_below_that_of_the_bound(seed):
    """Its supremum has a closed form: the Frobenius norm of the signed sum of the rows."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 4))
    radius, signs = np.linalg.norm(X, axis=1).max(), random.choice([-1, 1], size=(400, 10, 50))
    measured = np.linalg.norm(signs @ X, axis=(1, 2)).mean() / 50
    assert 2 * 2**0.5 * 2**0.5 * measured <= complexity(n_samples=50, norms=[1.0], radius=radius)


def test_t_that_cannot_be_inverted_says_nothing():
    assert posterior_error_bound(0.1, np.full((3, 3), 1 / 3)) == np.inf
    assert posterior_error_bound(0.1, np.eye(3)) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_samples": 0}, "n_samples=0; give at least 1"),
        ({"norms": []}, "for one layer or more"),
        ({"norms": [1.0, -1.0]}, "norms=.*at least 0"),
        ({"radius": np.inf}, "radius=.*finite"),
        ({"delta": 1.0}, "delta=1.0; give a probability"),
        ({"transition_norm": 1.0}, "not both"),
        ({"transition_norm": -1.0, "transition_matrix": None}, "transition_norm"),
        ({"n_classes": 3}, "3"),
        ({"transition_matrix": np.eye(10)[[0] * 10]}, "a column of transition_matrix is 0"),
    ],
)
def test_bad_input(changed, message):
    valid = {"n_samples": 10, "norms": [1.0], "radius": 1.0, "n_classes": 10, "transition_matrix": pair_noise(10, 0.4)}
    with pytest.raises(ValueError, match=message):
        risk_bound(**(valid | changed))


def test_a_negative_risk_is_refused():
    with pytest.raises(ValueError, match=r"excess_risk=-1; give"):
        posterior_error_bound(-1, np.eye(2))
