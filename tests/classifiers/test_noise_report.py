"""The report, asked of classifiers."""

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import WITH_TRANSITION, small
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from torch.utils.data import TensorDataset

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    class_conditional_test,
    flip_labels,
    sampling_limit,
)
from noisytransition.classifiers import _noise_report as module
from noisytransition.transition import pair_noise

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def em(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    return small(EMTransitionClassifier).fit(X, y, meta=(X_meta, y_meta))


@pytest.fixture(scope="module")
def glc(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    return small(GLCClassifier).fit(X, y, meta=(X_meta, y_meta))


@pytest.fixture(scope="module")
def named(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    meta = pd.DataFrame(X_meta, columns=list("pqrs")), NAMES[y_meta]
    return small(GLCClassifier).fit(pd.DataFrame(X, columns=list("pqrs")), NAMES[y], meta=meta)


def without_time(report):
    return {name: value for name, value in report.facts.items() if name != "created"}


@pytest.mark.parametrize("form", [np.asarray, csr_array, pd.DataFrame])
def test_clean_rows_that_are_rows_of_X_are_named_in_the_line_of_the_accuracy(form, glc, blobs, monkeypatch):
    X, y, *_, X_test, y_test, _ = blobs
    monkeypatch.setattr(module, "_BLOCK", 100)  # 25 rows at a time
    some = np.concatenate([X[::2], X_test[:50]])
    labels = np.concatenate([y[::2], y_test[:50]])
    report = glc.noise_report(form(X), y, form(some), labels)
    assert "150 of them are rows of X: if fit was given these, this is too good." in str(report)
    assert report.facts["calibration"]["n_judged"] == 150
    assert "rows of X" not in str(glc.noise_report(form(X), y, form(X_test), y_test))


def test_rows_of_a_dataset_are_not_compared(glc, blobs):
    X, y, *_ = blobs
    report = glc.noise_report(TensorDataset(torch.tensor(X)), y, X, y)
    assert report.facts["calibration"]["n_judged"] == 0


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_every_classifier_with_T_has_it(cls, blobs):
    X, y, X_meta, y_meta, X_test, y_test, T = blobs
    clf = small(cls).fit(X, y, meta=(X_meta, y_meta))
    noisy = flip_labels(y_test, T, random_state=1)
    facts = clf.noise_report(X, y, X_test, y_test, noisy).facts
    issues = clf.find_label_issues(X, y)
    rows = facts["label_issues"]
    assert [row["row"] for row in rows["listed"]] == issues.tolist()
    proposed = clf.label_posterior(X, y)[issues].argmax(axis=1)
    assert [row["proposed"] for row in rows["listed"]] == clf.classes_[proposed].tolist()
    assert rows["n_expected"] == pytest.approx((1 - clf.label_quality(X, y)).sum())
    assert facts["calibration"]["accuracy"] == clf.score(X_test, y_test)
    assert facts["transition"]["matrix"] == clf.transition_matrix_.tolist()
    bounds = clf.transition_interval() if hasattr(clf, "transition_uncertainty_") else (None, None)
    assert [facts["transition"][name] for name in ("low", "high")] == [
        bound if bound is None else bound.tolist() for bound in bounds
    ]
    assert ("intervals" in facts["missing"]) == (bounds[0] is None)
    assert facts["data"] == {"n_rows": 300, "n_classes": 3, "classifier": cls.__name__, "level": 0.9}


def test_a_classifier_without_T_has_none():
    assert not hasattr(CrossEntropyClassifier(), "noise_report")


def test_what_em_knows_is_there(em, blobs):
    X, y, _, _, X_test, y_test, T = blobs
    noisy = flip_labels(y_test, T, random_state=1)
    facts = em.noise_report(X, y, X_test, y_test, noisy, level=0.8).facts
    low, high = em.transition_interval(0.8)
    assert (facts["transition"]["low"], facts["transition"]["high"]) == (low.tolist(), high.tolist())
    lines = em.transition_summary(0.8, least=0).splitlines()
    assert lines == [
        f"{f['true']} -> {f['noisy']} {f['probability']:.2f} [{f['low']:.2f}, {f['high']:.2f}]" for f in facts["flips"]
    ]
    counts = np.maximum(em.class_counts_.round(), 1).astype(int)
    assert facts["limits"]["sampling_limit"] == sampling_limit(em.transition_matrix_, counts)
    test = class_conditional_test(y_test, noisy, proba=em.predict_proba(X_test), random_state=0)
    assert facts["one_transition_matrix"]["pvalues"] == test.pvalues
    assert facts["noise"]["verified"]["n_wrong"] == (noisy != y_test).sum()
    assert facts["diagnostics"] == em.diagnostics_
    assert facts["settings"]["parameters"]["max_epochs"] == "3"
    assert "version of torch" in facts["settings"]["versions"]


def test_posteriors_of_held_out_rows_may_be_given(em, blobs):
    X, y = blobs[:2]
    rows = em.noise_report(X, y, proba=em.oof_proba_).facts["label_issues"]
    assert rows["agreement"] == (em.oof_proba_.argmax(axis=1) == y).mean()
    assert rows["n_issues"] != em.noise_report(X, y).facts["label_issues"]["n_issues"]


def test_blocks_of_rows_give_the_same(glc, named, blobs, monkeypatch):
    X, y = blobs[:2]
    frame, dataset = pd.DataFrame(X, columns=list("pqrs")), TensorDataset(torch.tensor(X))
    asked = [(glc, X, y), (named, frame, NAMES[y]), (glc, csr_array(X), y), (glc, dataset, y)]
    whole = [clf.noise_report(rows, labels).facts["label_issues"] for clf, rows, labels in asked]
    monkeypatch.setattr(module, "_BLOCK", 3 * 70)
    blocks = [clf.noise_report(rows, labels).facts["label_issues"] for clf, rows, labels in asked]
    for one, other in zip(whole, blocks, strict=True):
        assert [row["row"] for row in one["listed"]] == [row["row"] for row in other["listed"]]
        assert one["n_expected"] == pytest.approx(other["n_expected"])
        assert one["n_issues"] == whole[0]["n_issues"]


# ---------------------------------------------------------------------------- forms of data
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_keep_the_names_of_their_index(named, blobs):
    X, y = blobs[:2]
    index = [f"p{i}" for i in range(300)]
    frame, labels = pd.DataFrame(X, columns=list("pqrs")), pd.Series(NAMES[y])
    positions = named.find_label_issues(frame, labels)
    for rows, given, name in (
        (frame.set_axis(index), labels, lambda i: f"p{i}"),
        (frame.to_numpy(), labels.set_axis(index), lambda i: f"p{i}"),
        (
            frame.set_axis(pd.date_range("2026-01-01", periods=300)),
            labels,
            lambda i: f"{pd.Timestamp(2026, 1, 1) + pd.Timedelta(i, 'D')}",
        ),
        (frame.set_axis(pd.MultiIndex.from_product([["a"], range(300)])), labels, lambda i: f"('a', {i})"),
        (frame, labels.tolist(), int),
    ):
        listed = named.noise_report(rows, given).facts["label_issues"]["listed"]
        assert [row["row"] for row in listed] == [name(i) for i in positions]
        assert {row["given"] for row in listed} <= set(NAMES)


def test_what_is_shown_of_a_row(glc, named, blobs):
    X, y = blobs[:2]
    row = int(glc.find_label_issues(X, y)[0])

    def sample(clf=glc, rows=X, labels=y, **given):
        return clf.noise_report(rows, labels, max_rows=1, **given).facts["label_issues"]["listed"][0]["sample"]

    values = X[row].tolist()
    assert sample() == {"text": ", ".join(f"{k}: {value:.4g}" for k, value in enumerate(values))}
    with_names = {"text": ", ".join(f"{k}: {value:.4g}" for k, value in zip("pqrs", values, strict=True))}
    assert sample(named, pd.DataFrame(X, columns=list("pqrs")), NAMES[y]) == with_names
    assert sample(display_rows=[f"text {i}" for i in range(300)]) == {"text": f"text {row}"}
    assert list(sample(display_rows=np.zeros((300, 5, 5)))) == ["image"]
    assert list(sample(display_rows=torch.zeros(300, 3, 5, 5))) == ["image"]


# ---------------------------------------------------------------------------- missing parts
def test_clean_rows_without_noisy_labels(glc, blobs):
    X, y, _, _, X_test, y_test, _ = blobs
    facts = glc.noise_report(X, y, X_test, y_test).facts
    assert facts["calibration"]["n_rows"] == len(y_test)
    assert facts["one_transition_matrix"] is None
    assert facts["noise"]["verified"] is None
    assert facts["missing"]["one_transition_matrix"] == (
        "Not tested: it needs the noisy labels of the clean rows; pass y_meta_noisy."
    )


def test_a_test_that_cannot_be_made_says_why(glc, blobs):
    X, y, _, _, X_test, y_test, _ = blobs
    report = glc.noise_report(X, y, X_test, y_test, y_test)
    assert report.facts["missing"]["one_transition_matrix"].startswith("Not tested: ")
    assert report.facts["noise"]["verified"]["n_wrong"] == 0
    assert "Not tested" in report.to_html()


def test_more_classes_than_error_bars_are_for(em, blobs, monkeypatch):
    monkeypatch.delattr(em, "transition_uncertainty_")
    facts = em.noise_report(*blobs[:2]).facts
    assert facts["missing"]["intervals"].startswith("There are no intervals: no error bars of T of EMTransition")
    assert facts["noise"]["low"] is None


def test_the_same_call_gives_the_same_report(em, blobs):
    X, y, _, _, X_test, y_test, T = blobs
    noisy = flip_labels(y_test, T, random_state=1)
    one, other = (em.noise_report(X, y, X_test, y_test, noisy) for _ in range(2))
    assert without_time(one) == without_time(other)


# ---------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 1}, r"level=1; give a number between 0 and 1"),
        ({"level": "high"}, r"level='high'; give a number"),
        ({"precision": 0.5}, r"precision=0.5; give a number between 0 and 0.5"),
        ({"max_rows": -1}, "max_rows=-1; give at least 0"),
        ({"max_classes": 0}, "max_classes=0; give at least 1"),
        ({"X_meta": np.zeros((2, 4))}, "X_meta and y_meta go together"),
        ({"y_meta": [0, 1]}, "X_meta and y_meta go together"),
        ({"y_meta_noisy": [0, 1]}, "there is no clean row: pass X_meta and y_meta"),
        ({"X_meta": np.zeros((2, 4)), "y_meta": [0, 9]}, r"y_meta has labels \[9\] that are not among classes_"),
        ({"X_meta": np.zeros((2, 4)), "y_meta": [0, 1], "y_meta_noisy": [0]}, "y_meta_noisy has 1 labels for 2 rows"),
        ({"X_meta": np.zeros((2, 3)), "y_meta": [0, 1]}, "features"),
        ({"proba": np.full((299, 3), 1 / 3)}, "proba has 299 rows and X has 300"),
        ({"proba": np.full((300, 2), 1 / 2)}, "proba has 2 columns"),
        ({"display_rows": ["a", "b"]}, "display_rows has 2 entries for 300 rows"),
    ],
)
def test_bad_input_is_refused(glc, blobs, given, message):
    with pytest.raises(ValueError, match=message):
        glc.noise_report(*blobs[:2], **given)


def test_labels_and_fits_that_are_not_there(glc, blobs):
    X, y = blobs[:2]
    with pytest.raises(ValueError, match="not among classes_"):
        glc.noise_report(X, np.where(y == 0, 7, y))
    with pytest.raises(ValueError, match="299 labels for 300 rows"):
        glc.noise_report(X, y[1:])
    with pytest.raises(NotFittedError):
        GLCClassifier().noise_report(X, y)


def test_pair_noise_is_reported_as_what_it_is(blobs):
    """With T known, the words say the truth."""
    X, y, X_meta, y_meta, *_ = blobs
    T = pair_noise(3, 0.4)
    clf = small(GLCClassifier, transition_init=T, max_epochs=10).fit(X, y, meta=(X_meta, y_meta))
    summary = clf.noise_report(X, y).words["summary"]
    assert summary[0].startswith("About 40 % of the labels are wrong")
    assert "is labelled" in summary[1]
    assert "in 40 % of its rows" in summary[1]
