"""Which samples to verify next: draws with known probabilities; and how many, for a width."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise_reports import some_model
from posteriors import verified_at
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.noise_model._suggest import TARGETS, draw_sizes, draw_systematically, inclusion_probabilities

pytestmark = pytest.mark.filterwarnings("ignore:T may be wrong")
T = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]])


def samples(seed, n=2000):
    """Probabilities, true labels and noisy ones, of three classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    X = np.random.default_rng(4).normal(size=(3, 5))[y] * 0.7 + rng.normal(size=(n, 5))
    noisy = flip_labels(y, T, random_state=seed + 500)
    return cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba"), y, noisy


def fitted(proba, y, noisy, rows, probability=None):
    return LabelNoiseModel().fit(proba, noisy, y_verified=verified_at(y, rows), verified_probability=probability)


@pytest.fixture(scope="module")
def model():
    return fitted(*samples(0), np.arange(100))


# ---------------------------------------------------------------------------- draws
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.integers(1, 30), st.integers(0, 99))
@settings(max_examples=50)
def test_a_draw_has_its_size_and_probabilities_are_proportional_until_they_are_1(sizes, n, seed):
    sizes, n = np.array(sizes), min(n, len(sizes))
    found = inclusion_probabilities(sizes, n)
    assert found.sum() == pytest.approx(n)
    assert (found <= 1 + 1e-12).all()
    assert (found > 0).all()
    ratio = found / sizes
    assert np.ptp(ratio[found < 1]) <= 1e-9 * ratio.max() if (found < 1).any() else True
    assert (sizes[found == 1].min(initial=np.inf) >= sizes[found < 1].max(initial=0) * (1 - 1e-9)).all()
    chosen = draw_systematically(found, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen.tolist())) == n
    assert set(np.flatnonzero(found == 1)) <= set(chosen.tolist())


@pytest.mark.parametrize("target", ["shares", "accuracy"])
def test_suggested_samples_are_drawn_as_often_as_their_probability_says(model, target):
    n, left, rng = 150, 1900, np.random.default_rng(1)
    expected = inclusion_probabilities(draw_sizes(model, target), n)
    drawn = np.zeros(left)
    rows = model.suggest_samples(n, target, random_state=rng)
    assert rows.position.min() >= 100  # the first hundred are verified
    assert rows.position.is_unique
    np.testing.assert_allclose(rows.probability, expected[rows.position - 100] * left / n)
    for _ in range(400):
        drawn[draw_systematically(expected, rng)] += 1
    errors = (drawn / 400 - expected) / np.sqrt(expected * (1 - expected) / 400)
    assert np.abs(errors).max() < 5
    assert errors.std() < 1.15
    assert expected.min() * left / n > 0.45  # half of the draw is at random
    assert expected.max() * left / n > 1.5


def test_a_draw_follows_from_random_state_and_all_samples_are_drawn_for_certain(model):
    first, again = (model.suggest_samples(20, random_state=3) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(model.suggest_samples(20, random_state=4))
    whole = model.suggest_samples(1900, random_state=0)
    assert sorted(whole.position) == list(range(100, 2000))
    np.testing.assert_allclose(whole.probability, 1)
    proba, _, noisy = samples(0)  # uncertain samples are drawn more often
    doubt = 1 - model.label_posterior(proba, noisy).max(axis=1)
    rows = model.suggest_samples(200, "shares", random_state=0).position
    assert doubt[rows].mean() > 1.3 * doubt[100:].mean()


def test_without_verified_samples_probabilities_are_denoised_once():
    """The doubt about a prediction is that of the denoised probabilities, whose posterior is `label_posterior`."""
    proba, _, noisy = samples(0)
    model = LabelNoiseModel(proba_of="noisy").fit(proba, noisy)
    right = model.label_posterior()[np.arange(2000), model.calibrate(proba).argmax(axis=1)]
    doubt = np.sqrt(right * (1 - right))
    np.testing.assert_allclose(draw_sizes(model, "accuracy"), 0.5 / 2000 + 0.5 * doubt / doubt.sum())
    for target in TARGETS:
        rows = model.suggest_samples(30, target, random_state=0)
        assert np.isfinite(rows.probability).sum() == 30


# ---------------------------------------------------------------------------- plans
@pytest.mark.parametrize("target", ["shares", "accuracy"])
def test_a_plan_of_shares_by_trial(model, target):
    """Slow twin: the smallest number of samples at which the formula gives the width."""
    width, level, z = 0.03, 0.9, 1.6448536
    found = model.plan_verification(target, width, level).table
    assert np.isfinite(found.to_numpy(float)).all()
    variance = model.posterior_of_fit()
    if target == "accuracy":
        proba, _, _ = samples(0)
        variance = variance[np.arange(1900), model.calibrate(proba)[100:].argmax(axis=1)][:, None]
    variance = variance * (1 - variance)
    size = draw_sizes(model, target)
    gain = (variance * size.mean() / size[:, None]).mean(axis=0) / variance.mean(axis=0)
    for of_row, g in zip(found.itertuples(), gain, strict=True):
        least = of_row.estimate * (1 - of_row.estimate) / 2000
        R = max((of_row.half_width / z) ** 2 - least, 0) * 100
        tried = np.arange(1901)
        wide = z * np.sqrt(least + R * (100 + g * tried) / (100 + tried) ** 2)
        expected = tried[wide <= width].min(initial=1900)
        assert abs(of_row.n_to_verify - expected) <= 1


def test_wider_is_cheaper_and_words_say_how_many(model):
    for target in ("transition", "shares"):
        narrow, wide = (model.plan_verification(target, width) for width in (0.025, 0.3))
        assert narrow.n_samples > 0 == wide.n_samples
        assert str(narrow.n_samples) in str(narrow) == narrow.words
        assert "known" in str(wide)
    assert model.plan_verification("transition", 0.001).n_samples == 1900
    plan = model.plan_verification("shares", 0.01)
    assert plan.n_samples == 1900
    assert "if all samples are verified" in str(plan)


def test_a_plan_of_rates_needs_no_samples_but_a_matrix():
    T = np.array([[0.9, 0.1], [0.3, 0.7]])
    given_T = LabelNoiseModel.from_transition_matrix(T, ["a", "b"], class_counts=[500, 50])
    plan = given_T.plan_verification(width=0.05)
    assert plan.table.n_to_verify.tolist() == [98, 228]  # z^2 r (1 - r) / 0.05^2
    assert plan.n_samples == 228 * 11  # drawn at random, 1 of 11 is of class b
    unknown = LabelNoiseModel.from_transition_matrix(T, ["a", "b"])  # of equal classes
    assert unknown.plan_verification(width=0.05).n_samples == 2 * 228
    assert "samples exist of class ['b']" in str(plan)
    half_width = 1.6448536 * np.sqrt(T * (1 - T) / 50)  # 50 samples of each class that were counted already
    known = some_model(["a", "b"], T, bars=(T - half_width, T + half_width)).plan_verification(width=0.05)
    assert known.table.n_to_verify.tolist() == [48, 178]
    for ask in (
        lambda: given_T.plan_verification("shares"),
        lambda: given_T.suggest_samples(5),
        given_T.posterior_of_fit,
    ):
        with pytest.raises(ValueError, match="Call fit"):
            ask()


# ---------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.suggest_samples(0), "n"),
        (lambda m: m.suggest_samples(1901), "1900"),
        (lambda m: m.suggest_samples(5, "T"), "target"),
        (lambda m: m.suggest_samples(5, random_state="seed"), "seed"),
        (lambda m: m.plan_verification("T"), "target"),
        (lambda m: m.plan_verification("shares", 0.5), "width"),
        (lambda m: m.plan_verification("shares", "narrow"), "width"),
        (lambda m: m.plan_verification("shares", 0.05, 1.0), "level"),
        (lambda m: m.suggest_samples(5, "class"), "of"),
        (lambda m: m.suggest_samples(5, "shares", of=1), "of"),
        (lambda m: m.suggest_samples(5, "class", of=9), "of"),
    ],
)
def test_bad_input(model, call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call(model)


# ---------------------------------------------------------------------------- a rare class
def test_samples_of_a_rare_class_are_found_with_known_probabilities():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.02).astype(int)
    X = rng.normal(size=(4000, 3)) + 2 * y[:, None] * (np.arange(3) < 2)
    noisy = np.where(rng.random(4000) < np.where(y == 1, 0.3, 0.02), 1 - y, y)
    proba = cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba")
    first = rng.choice(4000, 200, replace=False)
    model = fitted(proba, y, noisy, first)
    found = model.suggest_samples(200, "class", of=1, random_state=0)
    assert y[found.position].mean() > 5 * y.mean()
    drawn = np.full(4000, np.nan)
    drawn[found.position] = found.probability
    again = fitted(proba, y, noisy, [*first, *found.position], drawn)
    share = again.class_shares().loc[1]
    assert share.lower < 0.02 < share.upper
