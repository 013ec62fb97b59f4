"""Noise reports of classifiers; the summary of T, and its error bars."""

import numpy as np
import pandas as pd
import pytest
from estimators import WITH_TRANSITION, small

from noisytransition import EMTransitionClassifier, GLCClassifier, LabelNoiseModel, class_conditional_test, flip_labels

NAMES = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_every_classifier_with_T_has_it(cls, blobs, plain):
    X, y, _, _, X_test, y_test, T = blobs
    clf = plain(cls)
    noisy = flip_labels(y_test, T, random_state=1)
    facts = clf.noise_report(X, y, X_test, y_test, noisy).facts
    issues = clf.find_label_issues(X, y)
    rows, listed = facts["label_issues"], pd.DataFrame(facts["label_issues"]["listed"])
    columns = {"row": "position", "given": "given_label", "suggested": "suggested_label"}
    for column, of in (columns | {"given_probability": "label_quality"}).items():
        assert listed[column].tolist() == issues[of].tolist()
    np.testing.assert_allclose(listed["suggested_probability"], clf.label_posterior(X, y).max(axis=1)[issues.position])
    few = clf.noise_report(X, y, max_samples=5).facts["label_issues"]
    assert (few["listed"], few["n_issues"]) == (rows["listed"][:5], len(issues))
    assert rows["n_expected"] == pytest.approx((1 - clf.label_quality(X, y)).sum())
    assert facts["calibration"]["accuracy"] == clf.score(X_test, y_test)
    assert facts["transition"]["matrix"] == clf.transition_matrix_.tolist()
    assert (facts["transition"]["low"] is not None) == hasattr(clf, "transition_std_")


def test_what_em_knows_is_there(plain, blobs):
    em = plain(EMTransitionClassifier)
    X, y, _, _, X_test, y_test, T = blobs
    noisy = flip_labels(y_test, T, random_state=1)
    facts = em.noise_report(X, y, X_test, y_test, noisy, level=0.8).facts
    low, high = em.transition_interval(0.8)
    assert (facts["transition"]["low"], facts["transition"]["high"]) == (low.tolist(), high.tolist())
    *lines, caveat = em.transition_summary(0.8, least=0).splitlines()
    assert "assume the model" in caveat
    assert lines == [
        f"{f['true']} -> {f['noisy']} {f['probability']:.2f} [{f['low']:.2f}, {f['high']:.2f}]" for f in facts["flips"]
    ]
    highest = max(f["high"] for f in facts["flips"])
    assert em.transition_summary(0.8, least=1).startswith(f"6 other flips: each below 1, at most {highest:.2f}\n")
    test = class_conditional_test(y_test, noisy, proba=em.predict_proba(X_test), random_state=0)
    assert facts["one_transition_matrix"]["pvalue"] == test.pvalue
    assert facts["noise"]["verified"]["rate"] == pytest.approx((noisy != y_test).mean())
    assert facts["diagnostics"] == em.diagnostics_
    shares = facts["views"]  # what the classifier learned from
    assert set(shares) == set(em.posterior_weights_)
    assert sum(shares.values()) == pytest.approx(1)
    proba = em.predict_proba(X)  # of samples of the fit, out-of-fold probabilities are the default
    given = em.noise_report(X, y, proba=proba).facts["label_issues"]
    assert facts["label_issues"]["agreement"] == (em.oof_proba_.argmax(axis=1) == y).mean()
    assert given["agreement"] == (proba.argmax(axis=1) == y).mean()
    assert facts["label_issues"]["n_issues"] != given["n_issues"]


# ---------------------------------------------------------------------------- forms of data
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_samples_have_the_names_of_their_index_and_columns(blobs, plain):
    X, y, X_clean, y_clean, *_ = blobs
    frame, labels = pd.DataFrame(X, columns=list("pqrs")), pd.Series(NAMES[y])
    meta = pd.DataFrame(X_clean, columns=list("pqrs")), NAMES[y_clean]
    named = small(GLCClassifier).fit(frame, labels, meta=meta)
    positions = named.find_label_issues(frame, labels, as_frame=False)
    index = pd.Index([f"p{i}" for i in range(300)])
    for rows, given, name in (
        (frame.set_axis(index), labels, lambda i: f"p{i}"),
        (frame.to_numpy(), labels.set_axis(index), lambda i: f"p{i}"),
        (frame.set_axis(pd.MultiIndex.from_product([["a"], range(300)])), labels, lambda i: f"('a', {i})"),
        (frame, labels.tolist(), int),
    ):
        listed = named.noise_report(rows, given).facts["label_issues"]["listed"]
        assert [row["row"] for row in listed] == [name(i) for i in positions]
        assert {row["given"] for row in listed} <= set(NAMES)
    values = ", ".join(f"{k}: {value:.4g}" for k, value in zip("pqrs", X[positions[0]], strict=True))
    assert listed[0]["sample"] == {"text": values}
    for shown, kind in (([f"text {i}" for i in range(300)], "text"), (np.zeros((300, 5, 5)), "image")):
        report = named.noise_report(frame, labels, display_samples=shown)
        assert list(report.facts["label_issues"]["listed"][0]["sample"]) == [kind]


def test_clean_samples_without_noisy_labels_or_without_noise(plain, blobs):
    glc = plain(GLCClassifier)
    X, y, _, _, X_test, y_test, _ = blobs
    for noisy in (None, y_test):
        report = glc.noise_report(X, y, X_test, y_test, noisy)
        assert report.facts["calibration"]["n_rows"] == len(y_test)
        assert report.facts["one_transition_matrix"] is None
        assert "Not tested" in report.to_html()


# ---------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 1}, "level"),
        ({"max_samples": -1}, "max_samples"),
        ({"y_clean": [0, 1]}, "together"),
        ({"X_clean": np.zeros((2, 4)), "y_clean": [0, 9]}, "y_clean"),
        ({"X_clean": np.zeros((2, 4)), "y_clean": [0, 1], "y_clean_noisy": [0]}, "y_clean_noisy"),
        ({"proba": np.full((299, 3), 1 / 3)}, "299"),
        ({"display_samples": ["a", "b"]}, "display_samples"),
    ],
)
def test_bad_input_is_refused(plain, blobs, given, message):
    with pytest.raises(ValueError, match=message):
        plain(GLCClassifier).noise_report(**{"X": blobs[0], "y_noisy": blobs[1]} | given)


# ---------------------------------------------------------------------------- summary of T, and its error bars
@pytest.mark.parametrize("cls", [cls for cls in WITH_TRANSITION if cls is not EMTransitionClassifier])
def test_methods_without_error_bars_say_so(cls, plain):
    clf = plain(cls)
    assert len(clf.transition_summary(least=0, top=6).splitlines()) == 6
    with pytest.raises(ValueError, match="error bars"):
        clf.transition_interval()
    assert not hasattr(clf, "transition_std_")
    with pytest.raises(AttributeError, match="error bars"):
        _ = clf.transition_std_


def test_flips_are_listed_by_falling_probability_and_the_rest_is_one_line():
    T = np.array([[0.6, 0.3, 0.1], [0.2, 0.795, 0.005], [0, 0, 1]])
    model = LabelNoiseModel.from_transition_matrix(T, NAMES)
    largest = ["ant -> bee 0.30", "bee -> ant 0.20", "ant -> cat 0.10"]
    assert model.transition_summary().splitlines() == [*largest, "3 other flips: each below 0.01"]
    assert model.transition_summary(top=1).splitlines()[1:] == ["5 other flips: each 0.20 or less"]
    assert model.transition_summary(least=1) == "6 other flips: each below 1"
    for bad in ({"top": -1}, {"least": 2}, {"least": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.transition_summary(**bad)
