"""A model of label noise from probabilities of any classifier: laws, twins, kinds of labels, bad input, diagnoses."""

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posteriors import labels_of, simulated, verified_at
from reference.noise_model import slow_noise_model
from scipy import optimize
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import permutations

from noisytransition import LabelNoiseModel
from noisytransition.likelihood import _fit, em_transition_matrix
from noisytransition.report import noise_report
from noisytransition.transition import (
    count_transition_matrix,
    flip_labels,
    label_posterior,
    pair_noise,
    transition_error,
)

pytestmark = pytest.mark.filterwarnings("ignore:T may be wrong")
T3 = pair_noise(3, 0.3)
NAMES = np.array(["ant", "bee", "cat"])
SEEDS = st.integers(0, 50)


def problem(seed=0, n=240, T=T3, every=4):
    """Exact posteriors, noisy labels, and the true labels of some samples; true labels of all."""
    proba, y, noisy = simulated(seed, T, n=n)
    return proba, noisy, np.where(np.arange(n) % every == 0, y, -1), y


PROBA, NOISY, VERIFIED, TRUE = problem()


def fit(*args, **kwargs):
    """A fitted model, whose parameters are among the arguments."""
    params = {k: kwargs.pop(k) for k in ("prior", "verified_sampling", "proba_of") if k in kwargs}
    return LabelNoiseModel(**params).fit(*args, **kwargs)


@cache
def fitted():
    return LabelNoiseModel().fit(PROBA, NOISY, y_verified=VERIFIED)


# ---------------------------------------------------------------------------- laws
@given(SEEDS, permutations(3), st.randoms(use_true_random=False))
@settings(max_examples=4)
def test_classes_and_samples_are_in_any_order(seed, p, random):
    proba, noisy, verified, _ = problem(seed)
    place = np.append(np.argsort(p), -1)
    model = fit(proba, noisy, y_verified=verified)
    order = np.array(random.sample(range(len(noisy)), len(noisy)))
    shuffled = fit(proba[order], noisy[order], y_verified=verified[order])
    np.testing.assert_allclose(shuffled.transition_matrix_, model.transition_matrix_, atol=1e-3)
    np.testing.assert_allclose(shuffled.transition_std_, model.transition_std_, rtol=1e-2, atol=1e-3)
    moved = fit(proba[:, p], place[noisy], y_verified=place[verified])
    for name in ("transition_matrix_", "transition_std_", "transition_counts_"):
        np.testing.assert_allclose(getattr(moved, name), getattr(model, name)[np.ix_(p, p)], atol=0.01, rtol=0.01)
    np.testing.assert_allclose(moved.noisy_class_counts_, model.noisy_class_counts_[p], rtol=0.01)
    posterior = moved.label_posterior(proba[:, p], place[noisy])
    np.testing.assert_allclose(posterior, model.label_posterior(proba, noisy)[:, p], atol=0.01)
    assert moved.diagnostics_.keys() == model.diagnostics_.keys()


@pytest.mark.slow
def test_the_influence_of_noisy_labels_is_lower_if_they_mislead():
    """Noise depends on the features, and the classifier is uncertain: T at weight 1 is nearly symmetric."""
    c, n, m, gains = 10, 2000, 200, []
    for seed in range(2):
        random = np.random.default_rng(seed)
        z = 1.2 * random.normal(size=(n + m, c))
        exact = softmax(z, axis=1)
        y = labels_of(exact, random)
        similar = np.full((c, c), 0.03) + 0.97 * np.eye(c) + 0.57 * np.roll(np.eye(c), 1, axis=1)
        drawn = similar[y] * exact**0.6
        noisy = labels_of(drawn / drawn.sum(axis=1, keepdims=True), random)
        T = count_transition_matrix(y, noisy)
        proba = softmax(z + 0.8 * random.normal(size=z.shape), axis=1)
        clean = {"y_clean": y[n:], "proba_clean": proba[n:]}
        found = fit(proba[:n], noisy[:n], **clean).transition_matrix_
        at_one = em_transition_matrix(proba[:n], noisy[:n], proba_clean=proba[n:], y_clean=y[n:])
        gains.append(transition_error(T, at_one) - transition_error(T, found))
    assert min(gains) > 0
    assert np.mean(gains) > 0.04


@pytest.mark.parametrize(("c", "n", "m", "pairs"), [(2, 60, 8, False), (3, 40, 15, True)])
def test_it_agrees_with_the_slow_twin(c, n, m, pairs):
    proba, y, noisy = simulated(1, pair_noise(c, 0.3), n=n, spread=1.5)
    new, counts, weight = np.arange(n) >= m, np.zeros((c, c)), (n - m) / m
    if pairs:
        model = fit(proba, noisy, y_verified=np.where(new, -1, y), prior=None)
        np.add.at(counts, (y[~new], noisy[~new]), 1)
        weight = 1.0  # every label counts once
    else:
        model = fit(proba[new], noisy[new], proba_clean=proba[~new], y_clean=y[~new], prior=None)
    data = proba[new], noisy[new], proba[~new], y[~new], counts
    # clean samples have the weight n / n_clean, its root, or 1 (chosen by their leave-one-out scores)
    twins = [slow_noise_model(*data, weight**power) for power in ((0, 0.5, 1) if weight > 1 else (0,))]
    T, calibrate = min(twins, key=lambda twin: np.abs(model.transition_matrix_ - twin[0]).max())
    np.testing.assert_allclose(model.transition_matrix_, T, atol=1e-3)
    np.testing.assert_allclose(model.calibrate(proba[new]), calibrate(proba[new]), atol=1e-3)


@pytest.mark.parametrize("beside", [False, True])
def test_a_fit_takes_few_maximisations(beside, monkeypatch):
    done, whole = [], optimize.minimize
    monkeypatch.setattr(optimize, "minimize", lambda *args, **kw: done.append(1) or whole(*args, **kw))
    proba, noisy, verified, y = problem(n=1000, every=5)
    clean = verified >= 0
    if beside:
        fit(proba[~clean], noisy[~clean], proba_clean=proba[clean], y_clean=y[clean])
    else:
        fit(proba, noisy, y_verified=verified)
    assert 0 < len(done) <= 12


@pytest.mark.slow
def test_one_T_is_maximised_as_far_as_noise_that_depends_on_the_features():
    """Its likelihood rises from another start by more than a Bayes factor of e."""
    proba, y, noisy = simulated(2, pair_noise(10, 0.3), n=20_000)
    model = fit(proba[200:], noisy[200:], proba_clean=proba[:200], y_clean=y[:200])
    assert model.feature_dependence_ == 0
    assert transition_error(pair_noise(10, 0.3), model.transition_matrix_) < 0.15


# ---------------------------------------------------------------------------- what follows for samples
def test_a_report_leaves_verified_samples_out_and_is_about_them():
    pytest.importorskip("jinja2")
    known, model = VERIFIED >= 0, fitted()
    facts = noise_report(model, PROBA, NOISY, y_verified=VERIFIED, max_samples=1000).facts
    issues, expected = facts["label_issues"], model.find_label_issues(PROBA, NOISY, y_verified=VERIFIED)
    assert [of["row"] for of in issues["listed"]] == expected.position.tolist()
    assert (issues["n_rows"], facts["data"]["n_rows"]) == ((~known).sum(), 240)
    assert issues["n_expected"] == pytest.approx((1 - model.label_quality(PROBA, NOISY)[~known]).sum())
    clean = {"proba_clean": PROBA[known], "y_clean": TRUE[known], "y_clean_noisy": NOISY[known]}
    same = noise_report(model, PROBA, NOISY, **clean).facts
    for part in ("calibration", "one_transition_matrix"):
        assert facts[part] == same[part]
    others = {"proba_clean": PROBA[:50], "y_clean": TRUE[:50]}  # these come before verified ones
    assert noise_report(model, PROBA, NOISY, y_verified=VERIFIED, **others).facts["calibration"]["n_rows"] == 50


def test_a_report_weighs_verified_samples_by_their_draw():
    pytest.importorskip("jinja2")
    verified = np.where(np.arange(240) < 120, TRUE, -1)
    drawn = np.where(NOISY == TRUE, 0.5, 2.0)  # wrong labels were verified more often
    model = LabelNoiseModel().fit(PROBA, NOISY, y_verified=verified, verified_probability=drawn)
    weights = 1 / drawn[:120]
    facts = noise_report(model).facts
    assert facts["noise"]["verified"]["rate"] == pytest.approx(np.average((NOISY != TRUE)[:120], weights=weights))
    right = (model.calibrate(PROBA).argmax(axis=1) == TRUE)[:120]
    assert facts["calibration"]["accuracy"] == pytest.approx(np.average(right, weights=weights))
    others = noise_report(model, PROBA, NOISY, y_verified=np.where(np.arange(240) < 180, TRUE, -1)).facts
    assert others["noise"]["verified"]["rate"] == pytest.approx((NOISY != TRUE)[:180].mean())  # not those of the fit


def test_a_model_of_a_given_T_has_no_error_bars():
    model = LabelNoiseModel.from_transition_matrix(T3, NAMES, [80, 80, 80])
    np.testing.assert_array_equal(model.label_posterior(PROBA, NAMES[NOISY]), label_posterior(PROBA, NOISY, T3))
    assert not hasattr(model, "transition_std_")
    with pytest.raises(ValueError, match="error bars"):
        model.transition_interval()
    assert model.transition_summary(top=1).startswith("ant -> bee 0.30\n")
    np.testing.assert_array_equal(model.noisy_class_counts_, [80, 80, 80])
    named = pd.DataFrame(T3, index=NAMES, columns=NAMES).loc[["cat", "ant", "bee"], ["cat", "ant", "bee"]]
    np.testing.assert_array_equal(LabelNoiseModel.from_transition_matrix(named, NAMES).transition_matrix_, T3)
    by_columns = LabelNoiseModel.from_transition_matrix(named)
    assert by_columns.classes_.tolist() == ["cat", "ant", "bee"]
    np.testing.assert_array_equal(by_columns.transition_matrix_, named)
    assert LabelNoiseModel.from_transition_matrix(T3).classes_.tolist() == [0, 1, 2]
    counts = pd.Series({"cat": 3.0, "ant": 1.0, "bee": 2.0})
    assert LabelNoiseModel.from_transition_matrix(T3, NAMES, counts).noisy_class_counts_.tolist() == [1, 2, 3]


def test_a_given_T_is_checked():
    for args, word in (
        ((0.5,), "T has shape"),
        ((T3, ["a", "b"]), "2 classes"),
        ((T3, ["a", "b", "b"]), "different"),
        ((T3, NAMES, [1, 2]), "class_counts"),
        ((T3, NAMES, [1, 2, np.nan]), "class_counts"),
    ):
        with pytest.raises(ValueError, match=word):
            LabelNoiseModel.from_transition_matrix(*args)


# ---------------------------------------------------------------------------- forms of the clean samples
def test_noisy_labels_of_clean_samples_may_have_gaps():
    proba, noisy, verified, y = problem()
    clean = verified >= 0
    known = np.where(np.arange(clean.sum()) % 2 == 0, noisy[clean], -1)
    given = {"proba_clean": proba[clean], "y_clean": y[clean]}
    for noisy_of_clean, n in ((None, 180), (known, 210), (noisy[clean], 240)):
        model = fit(proba[~clean], noisy[~clean], **given, y_clean_noisy=noisy_of_clean)
        assert model.transition_counts_.sum() == pytest.approx(n)
    np.testing.assert_allclose(model.transition_matrix_, fitted().transition_matrix_, atol=1e-9)
    verified, separate = clean & (np.arange(240) % 8 == 0), clean & (np.arange(240) % 8 == 4)
    clean = {"proba_clean": proba[separate], "y_clean": y[separate], "y_clean_noisy": noisy[separate]}
    model = fit(proba[~separate], noisy[~separate], y_verified=np.where(verified, y, -1)[~separate], **clean)
    np.testing.assert_allclose(model.transition_matrix_, fitted().transition_matrix_, atol=1e-3)


# ---------------------------------------------------------------------------- without verified samples
def test_without_verified_samples_the_user_says_what_the_probabilities_are():
    """Verified samples show it."""
    proba, noisy, verified, _ = problem(n=2000)
    with pytest.raises(ValueError, match="proba_of"):
        LabelNoiseModel().fit(proba, noisy)
    of_noisy = proba @ T3
    for how, of_label in (("true", proba), ("noisy", of_noisy)):
        with pytest.warns(UserWarning, match="no sample is verified"):
            model = LabelNoiseModel(proba_of=how).fit(of_label, noisy)
        assert transition_error(T3, model.transition_matrix_) < 0.15
        assert np.abs(model.calibrate(of_label) - proba).mean() < 0.05
        assert list(model.diagnostics_) == ["not_verified"]
        assert transition_error(T3, fit(of_label, noisy, y_verified=verified).transition_matrix_) < 0.1
    fit(proba, noisy, proba_of="true", verified_sampling="stratified")  # nothing to correct


# ---------------------------------------------------------------------------- kinds of labels
def gaps(labels, verified):
    """Labels of the verified samples as a list of Python's own, others None."""
    return [None if v < 0 else label for label, v in zip(labels.tolist(), verified, strict=True)]


def test_classes_and_a_prior_are_in_the_order_that_was_given():
    order, known = [2, 0, 1], {"y_noisy": NAMES[NOISY], "y_verified": gaps(NAMES[TRUE], VERIFIED)}
    model = fit(PROBA[:, order], **known, classes=NAMES[order])
    T = fitted().transition_matrix_[np.ix_(order, order)]
    np.testing.assert_allclose(model.transition_matrix_, T, atol=1e-3)
    prior = pd.DataFrame([[0.5, 0.5, 0], [0, 0.9, 0.1], [0.1, 0, 0.9]], NAMES, NAMES)
    one, other = (fit(PROBA, **known, prior=of) for of in (prior, prior.iloc[order, order]))
    np.testing.assert_array_equal(one.transition_matrix_, other.transition_matrix_)
    pd.testing.assert_frame_equal(one.class_shares(), other.class_shares())  # by fits without a fold


def test_columns_of_data_frames_are_read_by_name():
    clean, labels = VERIFIED >= 0, NAMES[NOISY]
    table = pd.DataFrame(PROBA, columns=NAMES)[["cat", "ant", "bee"]]
    plain = fit(PROBA[~clean], NOISY[~clean], proba_clean=PROBA[clean], y_clean=TRUE[clean])
    separate = {"proba_clean": table.loc[clean, ["bee", "cat", "ant"]], "y_clean": NAMES[TRUE[clean]]}
    for classes in (None, NAMES):
        model = fit(table[~clean], labels[~clean], **separate, classes=classes)
        at = [NAMES.tolist().index(name) for name in model.classes_]
        np.testing.assert_allclose(model.transition_matrix_, plain.transition_matrix_[np.ix_(at, at)], atol=1e-3)
        found = model.label_posterior(table[["bee", "cat", "ant"]], labels)
        np.testing.assert_allclose(found, plain.label_posterior(PROBA, NOISY)[:, at], atol=0.01)


def test_label_issues_have_the_index_of_the_labels_or_else_of_the_probabilities():
    table = pd.DataFrame(PROBA, index=[f"s{i}" for i in range(240)])
    for y, index in ((NOISY, table.index), (pd.Series(NOISY, index=np.arange(240) + 1000), np.arange(240) + 1000)):
        issues = fitted().find_label_issues(table, y)
        assert issues.index.tolist() == index[issues.position].tolist()
    assert fitted().find_label_issues(PROBA, NOISY, threshold=0).shape == (0, 4)
    assert fitted().find_label_issues(np.empty((0, 3)), [], as_frame=False).tolist() == []


def test_methods_take_the_table_that_fit_takes():
    """Given labels beside verified ones; a verified sample may lack the given one."""
    is_verified, lacks = VERIFIED >= 0, np.arange(240) % 8 == 0
    known = {"label": np.where(lacks, None, NAMES[NOISY]), "verified": gaps(NAMES[TRUE], VERIFIED)}
    table = pd.DataFrame(known, index=np.arange(240) + 1000)
    model = fit(PROBA, table)
    assert model.transition_counts_.sum() == pytest.approx(240 - lacks.sum())
    labels = model.relabel(PROBA, table, threshold=1.0)
    assert labels.index.equals(table.index)
    np.testing.assert_array_equal(labels, np.where(is_verified, NAMES[TRUE], NAMES[NOISY]))
    np.testing.assert_array_equal(model.label_quality(PROBA, table).isna(), lacks)
    np.testing.assert_array_equal(model.label_posterior(PROBA, table).argmax(axis=1)[is_verified], TRUE[is_verified])
    issues = model.find_label_issues(PROBA, table)
    assert not is_verified[issues.position].any()
    assert (table.loc[issues.index, "label"] == issues.given_label).all()
    by_features = model.label_posterior(PROBA, table["label"])[lacks]
    np.testing.assert_allclose(by_features, model.calibrate(PROBA)[lacks])
    pytest.importorskip("jinja2")
    facts = noise_report(model, PROBA, table).facts
    assert facts["calibration"]["n_rows"] == (is_verified & ~lacks).sum()
    assert sum(of["n_given"] for of in facts["classes"]["listed"]) == 240 - lacks.sum()


# ---------------------------------------------------------------------------- bad input
AT_FIRST = np.arange(240) == 0
TABLE = pd.DataFrame({"verified": np.where(VERIFIED >= 0, VERIFIED, np.nan), "label": NOISY})


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"proba": 1.1 * PROBA}, "sum"),
        ({"proba": PROBA[:, 0]}, "2-d"),
        ({"proba": PROBA[:, :1] * 0 + 1}, "classes"),
        ({"proba": np.zeros((0, 3)), "y_noisy": [], "y_verified": []}, "no rows"),
        ({"y_noisy": np.where(AT_FIRST, 3, NOISY)}, "classes"),
        ({"y_noisy": pd.to_datetime(pd.Series(NOISY))}, "date labels .* number labels"),
        ({"y_noisy": TABLE}, "twice"),
        ({"y_noisy": TABLE.assign(text="cat"), "y_verified": None}, "columns"),
        ({"y_verified": np.where(AT_FIRST, 7, VERIFIED)}, "verified labels"),
        ({"y_verified": np.where(AT_FIRST, 3, VERIFIED), "classes": range(4)}, "no column for it"),
        ({"y_verified": TRUE}, "count_transition_matrix"),
        ({"y_verified": [None] * 240}, "proba_of"),
        ({"classes": [0, 1, 1]}, "classes"),
        ({"classes": [0, 1, 5]}, "classes"),
        ({"proba_clean": PROBA}, "y_clean"),
        ({"y_clean": TRUE}, "proba_clean"),
        ({"y_clean_noisy": NOISY}, "proba_clean"),
        ({"proba_clean": PROBA[:, :2], "y_clean": TRUE}, "proba_clean"),
        ({"proba_clean": 2 * PROBA, "y_clean": TRUE}, "proba_clean"),
        ({"prior": "none"}, "prior"),
        ({"verified_sampling": "by_class"}, "verified_sampling"),
        ({"proba_of": "both"}, "proba_of"),
    ],
)
def test_bad_input_is_refused(given, word):
    with pytest.raises(ValueError, match=word):
        fit(**{"proba": PROBA, "y_noisy": NOISY, "y_verified": VERIFIED} | given)


def test_bad_samples_are_refused():
    for bad, word in (
        ({"proba": PROBA[:, :2]}, "proba"),
        ({"y_noisy": NOISY[1:]}, "y_noisy"),
        ({"y_noisy": np.where(AT_FIRST, 3, NOISY)}, "y_noisy"),
        ({"y_verified": np.where(AT_FIRST, 3, VERIFIED)}, "y_verified"),
        ({"threshold": 2}, "threshold"),
    ):
        for method in (fitted().find_label_issues, fitted().relabel):
            with pytest.raises(ValueError, match=word):
                method(**{"proba": PROBA, "y_noisy": NOISY} | bad)


def test_labels_in_another_order_than_the_probabilities_are_warned_of():
    proba, noisy = pd.DataFrame(PROBA), pd.Series(NOISY)
    model = fitted()
    for of in (model.label_posterior, model.find_label_issues, partial(fit, y_verified=VERIFIED)):
        with pytest.warns(UserWarning, match="differ in their order"):
            of(proba, noisy[::-1])


def test_corrected_labels_of_verified_samples_are_warned_of():
    """T would underestimate the noise."""
    with pytest.warns(UserWarning, match="equal the true labels") as caught:
        LabelNoiseModel().fit(PROBA, np.where(VERIFIED >= 0, TRUE, NOISY), y_verified=VERIFIED)
    assert caught[0].filename == __file__


# ---------------------------------------------------------------------------- diagnoses
def test_a_class_without_probability_or_verified_sample_is_named():
    without = np.column_stack([PROBA[:, 0], PROBA[:, 1] + PROBA[:, 2], np.zeros(240)])
    with pytest.warns(UserWarning, match=r"class \[2\] has probability 0"):
        model = LabelNoiseModel().fit(without, NOISY, y_verified=VERIFIED)
    assert "no_probability" in model.diagnostics_
    model = fit(PROBA, NOISY, y_verified=np.where(VERIFIED == 2, -1, VERIFIED))
    assert "missing_class" in model.diagnostics_
    four = np.column_stack([PROBA, np.zeros(240)])
    assert len(fit(four, NOISY, y_verified=np.where(AT_FIRST, 3, VERIFIED)).classes_) == 4
    model = fit(four, NOISY, y_verified=VERIFIED, classes=[0, 1, 2, 3])
    assert {"missing_class", "no_probability", "not_separated"} <= model.diagnostics_.keys()


HONEST = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    "forest": RandomForestClassifier(10, random_state=0),
    "neighbours": KNeighborsClassifier(10),
    "bayes": GaussianNB(var_smoothing=1e-2),
}


@pytest.mark.parametrize("beside", [False, True])
def test_memorised_labels_are_noticed(beside):
    """Also if the classifier was not trained on the clean samples."""
    known, of_label = VERIFIED >= 0, 0.05 * PROBA + 0.95 * np.eye(3)[NOISY]
    if beside:
        model = fit(of_label[~known], NOISY[~known], proba_clean=PROBA[known] @ T3, y_clean=TRUE[known])
    else:
        model = fit(of_label, NOISY, y_verified=VERIFIED)
    assert "memorised" in model.diagnostics_


@pytest.mark.parametrize(("load", "seed"), [(load_digits, 0), (load_breast_cancer, 1)])
def test_labels_that_were_not_memorised_give_no_alarm(load, seed):
    """Each classifier meets each rate of noise with one of the seeds."""
    X, y = load(return_X_y=True)
    verified = verified_at(y, np.random.default_rng(seed).permutation(len(y))[:100])
    for i, (name, classifier) in enumerate(HONEST.items()):
        rate = (0.0, 0.2, 0.4)[(i + seed) % 3]
        noisy = flip_labels(y, pair_noise(len(np.unique(y)), rate), random_state=seed)
        proba = cross_val_predict(classifier, X, noisy, cv=3, method="predict_proba")
        assert "memorised" not in fit(proba, noisy, y_verified=verified).diagnostics_, (name, rate)


def test_error_bars_are_for_some_classes_alone(monkeypatch):
    monkeypatch.setattr(_fit, "MOST_CLASSES", 2)
    model = fit(PROBA, NOISY, y_verified=VERIFIED)
    assert not hasattr(model, "transition_std_")
    with pytest.raises(ValueError, match="3 classes"):
        model.transition_interval()
    assert "[" not in model.transition_summary()


# ---------------------------------------------------------------------------- labels that are no classes
ABSTAINING = np.array([[0.63, 0.27, 0, 0.1], [0, 0.49, 0.21, 0.3], [0.12, 0, 0.28, 0.6]])
LABELS = np.array(["ant", "bee", "cat", "unsure"])


def abstaining(seed, n=1500):
    """Exact posteriors, noisy labels of more kinds than there are classes, and some true labels; true labels of all."""
    proba, y, _ = simulated(seed, T3, n=n)
    noisy = labels_of(ABSTAINING[y], np.random.default_rng(seed + 100))
    verified = np.where(np.arange(n) % 10 == 0, NAMES[y].astype(object), None)
    return proba, noisy, verified, y


def test_T_has_a_column_for_each_label_that_is_no_class():
    errors, covered, shares = [], [], []
    for seed in range(4):
        proba, noisy, verified, y = abstaining(seed)
        model = fit(proba, LABELS[noisy], y_verified=verified, classes=LABELS)
        assert model.classes_.tolist() == NAMES.tolist()
        assert model.labels_.tolist() == LABELS.tolist()
        assert model.diagnostics_ == {}
        assert model.transition_std_.shape == model.transition_counts_.shape == (3, 4)
        errors.append(np.abs(model.transition_matrix_ - ABSTAINING).sum() / 3)
        low, high = model.transition_interval(0.9)
        covered.append(((low <= ABSTAINING) & (high >= ABSTAINING))[ABSTAINING > 0].mean())
        share = model.noisy_class_counts_ / model.noisy_class_counts_.sum()
        shares.append(np.abs(share - np.bincount(y) / len(y)).sum())
    assert np.mean(errors) < 0.1
    assert np.mean(covered) > 0.8
    assert np.mean(shares) < 0.05
    assert "cat -> unsure 0.6" in model.transition_summary()


def test_a_label_that_is_no_class_tells_of_the_true_one_by_Bayes_rule_and_is_no_true_label():
    proba, noisy, verified, _ = abstaining(0)
    for classes, true, prior, word in (
        (LABELS, [*LABELS[noisy][:-1], None], "symmetric", "unsure"),
        (NAMES, verified, "symmetric", "unsure"),  # it is to be named
        (LABELS, verified, T3, "prior"),
    ):
        with pytest.raises(ValueError, match=word):
            fit(proba, LABELS[noisy], y_verified=true, classes=classes, prior=prior)
    model = fit(proba, LABELS[noisy], y_verified=verified, classes=LABELS, prior=["a", "a", "b"])
    of_true, T = model.calibrate(proba), model.transition_matrix_
    joint = of_true * T.T[noisy]
    posterior = model.label_posterior(proba, LABELS[noisy])
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True))
    quality = model.label_quality(proba, LABELS[noisy])
    np.testing.assert_array_equal(np.isnan(quality), noisy == 3)
    assert not (noisy[model.find_label_issues(proba, LABELS[noisy], as_frame=False)] == 3).any()
    found = model.relabel(proba, LABELS[noisy], threshold=0.9)
    sure = posterior.max(axis=1) >= 0.9
    np.testing.assert_array_equal(found[sure], NAMES[posterior.argmax(axis=1)[sure]])
    np.testing.assert_array_equal(found[~sure], LABELS[noisy][~sure])
    with pytest.raises(ValueError, match="classes"):
        noise_report(model, proba, LABELS[noisy])
