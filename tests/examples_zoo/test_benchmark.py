"""The open benchmark: what a classifier gets, what is measured, and its table."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

from examples.benchmarks.shared import add_row
from examples.benchmarks.zoo import __main__ as benchmark
from examples.benchmarks.zoo.catalogue import named

PROBLEM = "100 patients, symmetric 0.2"


class OnTable(ClassifierMixin, BaseEstimator):
    """Predict the last verified label; it knows T, the wrong labels and the class shares."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, labels):
        assert list(labels) == ["label", "verified"]
        self.last_ = labels["verified"].dropna().iloc[-1]
        self.transition_matrix_ = np.array([[0.8, 0.2], [0.2, 0.8]])
        return self

    def predict(self, X):
        return np.full(len(X), self.last_)

    def label_quality(self, X, labels):
        data = named(PROBLEM).make(self.random_state)
        return np.concatenate([data.y == data.y_true, np.ones(len(data.y_clean))])

    def class_shares(self):
        return pd.DataFrame({"share": [1.0, 0.0]})


class Broken(DummyClassifier):
    def fit(self, X, y):
        raise ValueError("no fit")


@pytest.fixture(autouse=True)
def module(monkeypatch):
    """A module with the classifiers, under the name `mine`."""
    mine = ModuleType("mine")
    mine.OnTable, mine.Broken, mine.Dummy = OnTable, Broken, DummyClassifier
    monkeypatch.setitem(sys.modules, "mine", mine)


def test_a_plain_classifier_gets_true_labels_where_they_are_verified():
    data = named(PROBLEM).make(0)
    X, labels = benchmark.training_data(data)
    clf = DummyClassifier()
    fitted = []
    clf.fit = lambda X, y: fitted.append(y)
    benchmark.fit(clf, X, labels)
    np.testing.assert_array_equal(fitted[0], np.concatenate([data.y, data.y_clean]))
    assert (fitted[0] != labels["label"]).any()


def test_what_a_classifier_has_is_measured_and_an_error_is_a_result():
    rows, _ = benchmark.run(PROBLEM, 1, ["mine:OnTable", "mine:Dummy", "mine:Broken"], None)
    on_table, plain, broken = rows
    data = named(PROBLEM).make(1)
    assert on_table["accuracy"] == (data.y_test == data.y_clean[-1]).mean()
    assert on_table["error of T"] == pytest.approx(0)
    assert on_table["wrong labels found"] == 1
    assert on_table["error of shares"] == pytest.approx(np.mean([*data.y_true, *data.y_clean]))
    assert "accuracy" in plain
    assert not {"error of T", "wrong labels found", "error of shares"} & plain.keys()
    assert broken["error"] == "ValueError: no fit"
    assert all(row["seconds of logistic regression"] > 0 for row in rows)


def test_the_table_has_paired_differences_and_counts_errors(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    scores = {benchmark.OURS: [0.8, 0.9], benchmark.LINEAR: [0.6, 0.7], "mine:Dummy": [0.5, 0.6]}
    for problem in (PROBLEM, "digits, hard rows 0.3, memorising"):
        for method, of_seeds in scores.items():
            for seed, accuracy in enumerate(of_seeds):
                row = {"problem": problem, "seed": seed, "method": method, "accuracy": accuracy, "seconds": 2.0}
                add_row(path, row | {"seconds of logistic regression": 0.5})
    row = {"problem": PROBLEM, "seed": 2, "method": "mine:Dummy", "error": "no"}
    add_row(path, row | {"seconds of logistic regression": 0.5})
    benchmark.report(path, "small")
    text = path.with_suffix(".md").read_text()
    assert text == capsys.readouterr().out[:-1]
    (line,) = [line for line in pd.read_csv(path.with_suffix(".csv")).to_dict("records") if line["method"] == "Dummy"]
    assert line["accuracy"].startswith("55.0 [")
    assert line["difference to EM"] == "-30.0 [-30.0, -30.0]"
    assert line["time"] == 4.0
    assert line["failed"] == 1
    assert "* Dummy, 100 patients, symmetric 0.2: no" in text
