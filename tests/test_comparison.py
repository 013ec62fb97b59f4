"""Methods on the same data and seeds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.tree import DecisionTreeClassifier

from noisytransition import (
    ComparisonData,
    CrossEntropyClassifier,
    GLCClassifier,
    TransitionClassifierCV,
    compare,
    sampling_limit,
    transition_error,
)
from noisytransition.methods import METHODS

TWO = {"cross-entropy": CrossEntropyClassifier(max_epochs=2), "GLC": GLCClassifier(max_epochs=2)}


@pytest.fixture
def data(blobs, true_labels):
    X, y, X_clean, y_clean, X_test, y_test, T = blobs
    return ComparisonData(X, y, X_clean, y_clean, X_test, y_test, T, true_labels)


def test_a_row_is_a_fit_by_hand(data):
    tree = TransitionClassifierCV(DecisionTreeClassifier(max_depth=3))
    table = compare(data, TWO | {"tree": tree}, seeds=[3]).set_index("method")
    T = data.transition_matrix
    assert list(table.index) == ["identity", "sampling limit", *TWO, "tree"]
    assert table.loc["identity", "transition_error"] == transition_error(T, np.eye(3))
    assert table.loc["sampling limit", "transition_error"] == sampling_limit(T, np.bincount(data.y_true))
    by_hand = GLCClassifier(max_epochs=2, random_state=3).fit(data.X, data.y, meta=(data.X_clean, data.y_clean))
    assert table.loc["GLC", "accuracy"] == by_hand.score(data.X_test, data.y_test)
    assert table.loc["GLC", "transition_error"] == transition_error(T, by_hand.transition_matrix_)
    assert table.loc["GLC", "steps"] == sum(len(h) * h[0]["train_batch_count"] for h in by_hand.histories_.values())
    assert np.isnan(table.loc["cross-entropy", "transition_error"])
    assert np.isnan(table.loc["tree", "steps"])
    assert table.loc["tree", ["accuracy", "transition_error"]].notna().all()


def test_every_seed_has_its_own_data_and_all_methods_the_same(data):
    def give(seed):
        order = np.random.default_rng(seed).permutation(len(data.X))[:200]
        return data._replace(X=data.X[order], y=data.y[order], y_true=data.y_true[order])

    found = compare(give, TWO, seeds=[3, 5]).set_index(["method", "seed"])["accuracy"]
    for seed in (3, 5):
        own = give(seed)
        for name, clf in TWO.items():
            by_hand = type(clf)(max_epochs=2, random_state=seed).fit(own.X, own.y, meta=(own.X_clean, own.y_clean))
            assert found[name, seed] == by_hand.score(data.X_test, data.y_test)


@pytest.mark.slow
def test_the_nine_published_methods_are_the_default(data, monkeypatch):
    for cls in METHODS.values():
        if cls._PUBLISHED is not None:
            monkeypatch.setattr(cls, "_PUBLISHED", cls._PUBLISHED | {"max_epochs": 3})
    few = data._replace(X=data.X[:60], y=data.y[:60], transition_matrix=None, y_true=None)
    table = compare(few, seeds=[0])
    assert table["method"].tolist() == [name for name in METHODS if name != "EM"]
    assert table["accuracy"].notna().all()
    clf = METHODS["MW-Net"].as_published(random_state=0).fit(few.X, few.y, meta=(few.X_clean, few.y_clean))
    assert table.set_index("method").loc["MW-Net", "accuracy"] == clf.score(few.X_test, few.y_test)


def test_methods_that_need_no_clean_samples_are_compared_without_them(data):
    """A class without noisy samples has no sampling limit."""
    alone = data._replace(X_clean=None, y_clean=None)
    some = data.y < 2
    less = data._replace(X=data.X[some], y=data.y[some], y_true=data.y[some])
    methods = {"CE": TWO["cross-entropy"]}
    assert compare(alone, methods, seeds=[0])["method"].tolist() == ["identity", "sampling limit", "CE"]
    assert compare(less, methods, seeds=[0])["method"].tolist() == ["identity", "CE"]


def test_a_fit_that_fails_has_an_empty_row(data):
    methods = TWO | {"diverges": GLCClassifier(lr=1e30, optimizer="sgd", max_epochs=2)}
    with pytest.warns(FitFailedWarning, match="diverges"):
        table = compare(data, methods, seeds=[0]).set_index("method")
    assert np.isnan(table.loc["diverges", "accuracy"])
    assert table.loc["GLC", "accuracy"] > 0.5
    with pytest.raises(ValueError, match="all fits failed"):
        compare(data, {"diverges": methods["diverges"]}, seeds=[0])


def test_a_frame_of_T_is_read_by_name_if_labels_are_these_names(data):
    names = np.array(["cat", "ant", "bee"])  # of the classes 0, 1, 2
    T = np.asarray(data.transition_matrix)
    labels = {k: names[v] for k, v in data._asdict().items() if k.startswith("y") and v is not None}
    named = data._replace(transition_matrix=pd.DataFrame(T, index=names, columns=names), **labels)
    order = np.argsort(names)
    plain = named._replace(transition_matrix=T[np.ix_(order, order)])
    found, expected = (compare(d, {"GLC": TWO["GLC"]}, seeds=[0])["transition_error"] for d in (named, plain))
    pd.testing.assert_series_equal(found, expected)
