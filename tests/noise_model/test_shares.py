"""Class shares and accuracies with intervals: slow references, properties, coverage, inputs without information."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posteriors import verified_at
from scipy.special import betaincinv
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.noise_model import _model
from noisytransition.noise_model._shares import Estimate, batch_shares, prediction_powered, strata_of_labels
from noisytransition.transition import pair_noise

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def table():
    """True and noisy labels of three classes, and out-of-fold probabilities."""
    X, y = make_classification(1200, n_features=6, n_informative=5, n_redundant=0, n_classes=3, class_sep=1.2,
                               weights=[0.5, 0.35, 0.15], n_clusters_per_class=1, random_state=0)  # fmt: skip
    noisy = flip_labels(y, pair_noise(3, 0.3), random_state=0)
    return y, noisy, cross_val_predict(LogisticRegression(), X, noisy, method="predict_proba")


TRUE, NOISY, PROBA = table()


def fitted(rows, **parameters):
    """Model with these samples verified."""
    return LabelNoiseModel(**parameters).fit(PROBA, NOISY, y_verified=verified_at(TRUE, rows))


@pytest.fixture(scope="module")
def model():
    return fitted(np.arange(150))


def simulated(rng, n=1000, m=100):
    """Probabilities of two properties, and truth drawn by them; the first m are verified."""
    f = rng.beta(1, 1, size=(n, 2))
    return f, (rng.random((n, 2)) < f).astype(float), m


# ---------------------------------------------------------------------------- prediction-powered means
def slow_mean(f, y, m, strata):
    """The estimate stratum by stratum, with the best of 1,001 lambdas."""
    grid, n, k = np.linspace(0, 1, 1_001), len(f), np.unique(strata)
    found = []
    for column in range(f.shape[1]):
        best = None
        for power in grid:
            mean = variance = 0.0
            for s in k:
                of_all = f[strata == s, column]
                own = np.flatnonzero(strata[:m] == s)
                residual = y[own, column] - power * f[own, column]
                size = len(of_all) / n
                mean += size * (power * of_all.mean() + residual.mean())
                verified = len(own) / len(of_all)  # the rest has the variance of the corrections
                both = (1 - verified) * residual.var(ddof=1) + verified * y[own, column].var(ddof=1)
                variance += size**2 * both / len(own)
            if best is None or variance < best[0]:
                best = variance, mean
        found.append(best[1])
    return np.array(found)


@pytest.mark.parametrize("n_strata", [1, 3])
def test_the_mean_is_that_of_a_search_for_lambda(n_strata):
    rng = np.random.default_rng(n_strata)
    f, y, m = simulated(rng, 300, 60)
    strata = rng.integers(n_strata, size=300)
    pairs = [(strata[m:] == s, strata[:m] == s) for s in range(n_strata)]
    found = prediction_powered(f[m:], f[:m], y[:m], pairs)
    np.testing.assert_allclose(found.share, slow_mean(f, y, m, strata), atol=1e-4)


@given(st.integers(0, 10_000), st.integers(5, 60), st.sampled_from([0.0, 0.01, 0.5, 1.0]), st.booleans())
def test_bounds_are_in_order_and_never_wider_than_verified_samples_alone(seed, m, share, weighted):
    rng = np.random.default_rng(seed)
    f = rng.random((300, 2))
    y = (rng.random((300, 2)) < share).astype(float)
    weights = rng.uniform(0.2, 5, size=m) if weighted else None
    found = prediction_powered(f[m:], f[:m], y[:m], (), weights)
    lower, upper = found.interval(0.9)
    assert (lower >= 0).all()
    assert (lower <= found.share).all()
    assert (found.share <= upper).all()
    assert (upper <= 1).all()
    if not weighted:
        assert (found.n_effective >= m).all()  # alone: m
    assert (found.n_effective <= 300).all()


def test_predictions_without_value_give_the_interval_of_verified_samples_alone():
    y = (np.arange(50) < 20)[:, None].astype(float)
    found = prediction_powered(np.zeros((950, 1)), np.zeros((50, 1)), y)
    alone = betaincinv(20.5, 30.5, [0.05, 0.95])
    np.testing.assert_allclose(np.ravel(found.interval(0.9)), alone)


@pytest.mark.parametrize(("how", "n"), [("by label", 1000), ("random", 180)])
def test_coverage_is_nominal(how, n):
    """The estimate is unbiased also if samples are drawn by an informative label, unlike the unstratified mean."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(300):
        f, y, m = simulated(rng, n, 120)
        strata = (f[:, 0] > 0.7).astype(int)
        rows = rng.permutation(n)
        if how == "by label":
            rows = np.concatenate([rng.permutation(np.flatnonzero(strata == s))[: m // 2] for s in (0, 1)])
            rows = np.concatenate([rows, np.setdiff1d(np.arange(n), rows)])
        f, y, strata = f[rows], y[rows], strata[rows]
        pairs = [(strata[m:] == s, strata[:m] == s) for s in (0, 1)]
        lower, upper = prediction_powered(f[m:], f[:m], y[:m], pairs).interval(0.9)
        covered.append((lower <= 0.5) & (upper >= 0.5))
    assert 0.87 < np.mean(covered) < 0.94


@pytest.mark.parametrize(("share", "m", "how"), [(0.005, 100, "random"), (0.01, 300, "by label")])
def test_intervals_of_rare_classes_contain_them(share, m, how):
    """Predictions know half of the positives, and often no positive is among the verified samples."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        y = rng.random(3000) < share
        seen = np.where(rng.random(3000) < 0.5, y, rng.random(3000) < share)
        f = np.where(seen, 0.5, share / 2)[:, None]
        given = np.where(rng.random(3000) < 0.1, ~y, y)
        rows = rng.permutation(3000)
        if how == "by label":
            own = [np.flatnonzero(given == j)[: m // 2] for j in (0, 1)]
            rows = np.concatenate([*own, np.setdiff1d(rows, np.concatenate(own))])
        f, y, given = f[rows], y[rows, None].astype(float), given[rows]
        strata = strata_of_labels(given[m:].astype(int), given[:m].astype(int), 2)
        (lower,), (upper,) = prediction_powered(f[m:], f[:m], y[:m], strata).interval(0.9)
        covered.append(lower <= share <= upper)
    assert np.mean(covered) >= 0.88


def test_a_share_of_nearly_none_reaches_0_and_one_of_all_reaches_1():
    lower, upper = Estimate(np.array([1e-4, 1 - 1e-4]), np.array([100.0, 100.0])).interval(0.9)
    assert lower[0] == 0 < upper[0]
    assert lower[1] < upper[1] == 1
    weights = np.random.default_rng(0).uniform(0.1, 3, size=80)
    found = prediction_powered(np.full((900, 1), 0.99), np.full((80, 1), 0.99), np.ones((80, 1)), (), weights)
    lower, upper = found.interval(0.9)
    assert 0.9 < lower[0] < upper[0] == 1


# ---------------------------------------------------------------------------- of a model
def test_class_shares_and_accuracies_hold_the_truth(model):
    shares = model.class_shares()
    assert list(shares) == ["share", "lower", "upper", "n_verified"]
    np.testing.assert_array_equal(shares.n_verified, np.bincount(model.out_of_fold_.clean))
    assert shares.index.tolist() == [0, 1, 2]
    assert shares.share.sum() == pytest.approx(1, abs=1e-6)
    assert np.abs(shares.share - np.bincount(TRUE) / len(TRUE)).max() < 0.05
    for of, predicted in (("labels", NOISY), ("classifier", model.calibrate(PROBA).argmax(axis=1))):
        found = model.accuracy_interval(0.99, of=of)
        assert found.lower < (predicted == TRUE).mean() < found.upper
        assert found.lower < found.estimate < found.upper


def test_bad_arguments_and_models_that_tell_no_shares_are_refused(model):
    with pytest.raises(ValueError, match="level"):
        model.class_shares(1.5)
    with pytest.raises(ValueError, match="of="):
        model.accuracy_interval(of="people")
    with pytest.raises(ValueError, match="proba"):
        model.class_shares(y_noisy=NOISY)
    with pytest.raises(ValueError, match="label"):
        model.class_shares(proba=PROBA, y_noisy=np.full(len(PROBA), 7))

    with pytest.raises(ValueError, match="verified"):
        LabelNoiseModel.from_transition_matrix(np.eye(3)).class_shares()
    by_class = np.concatenate([np.flatnonzero(k == TRUE)[:40] for k in range(3)])
    with pytest.raises(ValueError, match="stratified"):
        fitted(by_class, verified_sampling="stratified").class_shares()


def test_classes_that_were_not_verified_are_warned_of_unless_they_are_rare():
    """Such a class has a share, but none in a batch."""
    without = np.flatnonzero(TRUE < 2)
    model = fitted(without[:150])
    with pytest.warns(UserWarning, match="although several were expected"):
        assert np.isfinite(model.class_shares().to_numpy()).all()
    with pytest.raises(ValueError, match="each class"):
        model.class_shares(proba=PROBA)
    few = fitted(without[:15])
    with warnings.catch_warnings(action="error"):
        few.class_shares()


def test_labels_of_the_batch_need_verified_samples_with_labels():
    model = LabelNoiseModel().fit(PROBA[100:], NOISY[100:], proba_clean=PROBA[:100], y_clean=TRUE[:100])
    for proba in (None, PROBA):
        assert np.isfinite(model.class_shares(proba=proba).to_numpy()).all()
    with pytest.raises(ValueError, match="noisy label"):
        model.class_shares(proba=PROBA, y_noisy=NOISY)
    with pytest.raises(ValueError, match="noisy label"):
        model.accuracy_interval(of="labels")


# ---------------------------------------------------------------------------- another batch
@given(st.integers(0, 1000))
def test_shares_of_a_batch_are_the_most_likely_ones(seed):
    """No other shares on a grid are more likely."""
    rng = np.random.default_rng(seed)
    proba, prior = rng.dirichlet(np.ones(2) * 0.5, size=200), np.array([0.3, 0.7])
    grid = np.linspace(0.001, 0.999, 999)
    likelihood = [np.log(proba / prior @ np.array([p, 1 - p])).sum() for p in grid]
    assert batch_shares(proba, prior)[0] == pytest.approx(grid[np.argmax(likelihood)], abs=0.003)


@pytest.mark.parametrize("with_labels", [False, True])
def test_shares_of_a_batch_with_other_shares_are_found(model, with_labels):
    rng = np.random.default_rng(0)
    rows = rng.choice(len(TRUE), 800, p=(w := np.array([0.3, 0.6, 2.5])[TRUE]) / w.sum())
    shares = model.class_shares(0.99, proba=PROBA[rows], y_noisy=NOISY[rows] if with_labels else None)
    truth = np.bincount(TRUE[rows]) / 800
    assert ((shares.lower <= truth) & (truth <= shares.upper)).all()
    assert np.abs(truth - np.bincount(TRUE) / len(TRUE)).max() > 0.2  # unlike those of the fit
    assert shares.share.sum() == pytest.approx(1, abs=0.02)
    if not with_labels:
        of_one_class = model.class_shares(proba=PROBA[np.argsort(-PROBA[:, 0])[:50]])
        assert np.isfinite(of_one_class.to_numpy()).all()
        assert of_one_class.share[0] > 0.8


def test_fits_without_folds_are_made_once(monkeypatch):
    calls = []

    def counted(*args, **params):
        calls.append(len(args[0].clean))
        return fit_noise(*args, **params)

    fit_noise = _model.fit_noise
    monkeypatch.setattr(_model, "fit_noise", counted)
    model = fitted(np.arange(100))
    first = model.class_shares()
    assert calls == [100] + [90] * 10
    model.accuracy_interval()
    pd.testing.assert_frame_equal(model.class_shares(), first)
    assert len(calls) == 11
    model.fit(PROBA, NOISY, y_verified=verified_at(TRUE, np.arange(200)))
    assert not model.class_shares().equals(first)
    assert calls[11:] == [200] + [180] * 10


# ---------------------------------------------------------------------------- samples without a label, and weights
def test_samples_without_a_label_are_like_the_verified_ones_of_others():
    """They are in no stratum with verified samples."""
    assert strata_of_labels(np.array([0, 1, -1]), np.array([0, 1]).repeat(5), 2) == []
    has_label = (np.random.default_rng(0).random(1200) < 0.6) | (np.arange(1200) < 150)
    some = LabelNoiseModel().fit(PROBA, np.where(has_label, NOISY, np.nan), y_verified=verified_at(TRUE, range(150)))
    np.testing.assert_allclose(some.class_shares().share, fitted(np.arange(150)).class_shares().share, atol=0.03)


def test_shares_of_a_batch_from_a_fit_with_weights():
    """With weights, one class is much more frequent in the population of the fit."""
    weight = np.where(TRUE == 2, 8.0, 1.0)
    rows = np.random.default_rng(0).choice(1200, 200, replace=False)
    model = LabelNoiseModel().fit(PROBA, NOISY, y_verified=verified_at(TRUE, rows), sample_weight=weight)
    shares = model.class_shares(proba=PROBA)
    np.testing.assert_allclose(shares.share, np.bincount(TRUE) / 1200, atol=0.06)
    alone = fitted(rows).class_shares(proba=PROBA)
    assert (shares.upper - shares.lower < 2 * (alone.upper - alone.lower)).all()


def test_labels_of_a_batch_are_compared_with_labelled_samples_of_the_fit():
    has_label = np.random.default_rng(1).random(1200) < 0.6
    rows = np.random.default_rng(0).choice(1200, 200, replace=False)
    some = LabelNoiseModel().fit(PROBA, np.where(has_label, NOISY, np.nan), y_verified=verified_at(TRUE, rows))
    shares = some.class_shares(proba=PROBA, y_noisy=NOISY)
    np.testing.assert_allclose(shares.share, np.bincount(TRUE) / 1200, atol=0.06)
    labels = np.where(np.arange(1200) < 9, np.nan, NOISY)
    with pytest.raises(ValueError, match="missing for 9"):
        some.class_shares(proba=PROBA, y_noisy=labels)
