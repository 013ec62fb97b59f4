import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from estimators import small
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from noisytransition import (
    MetaTransitionClassifier,
    VerifiedKFold,
    make_transition_scorer,
    make_verified_scorer,
    transition_error,
)


@st.composite
def folds_to_make(draw):
    """A number of folds, labels, and a mask with at least so many verified rows of each class."""
    n_splits = draw(st.integers(2, 4))
    counts = st.tuples(st.integers(n_splits, 8), st.integers(0, 4))
    rows = [(i, k < n) for i, (n, m) in enumerate(draw(st.lists(counts, min_size=2, max_size=3))) for k in range(n + m)]
    y, mask = map(np.array, zip(*draw(st.permutations(rows)), strict=True))
    return n_splits, y, mask


def table(y, mask):
    return pd.DataFrame({"label": 0, "verified": pd.Series(y).where(mask)})


@given(folds_to_make(), st.one_of(st.none(), st.integers(0, 100)))
@settings(max_examples=30)
def test_verified_rows_are_each_tested_once_and_others_always_train(given_, seed):
    n_splits, y, mask = given_
    folds = list(VerifiedKFold(n_splits, shuffle=seed is not None, random_state=seed).split(y, table(y, mask)))
    assert len(folds) == n_splits
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.flatnonzero(mask))
    for train, test in folds:
        assert set(np.flatnonzero(~mask)) <= set(train)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        for part in (mask, ~mask):  # in every beginning of the training rows there is the share of the whole
            assert np.abs(np.cumsum(part[train]) - np.arange(1, len(train) + 1) * part[train].mean()).max() <= 1
            assert (np.diff(train[part[train]]) > 0).all()


def test_folds_are_stratified():
    y, mask = np.repeat([0, 1], 20), np.tile([True, False], 20)
    without_y = VerifiedKFold(5).split(y, y_verified=np.where(mask, y, -1).tolist())
    for (_, test), (_, same) in zip(VerifiedKFold(5).split(y, table(y, mask)), without_y, strict=True):
        assert np.bincount(y[test]).tolist() == [2, 2]
        np.testing.assert_array_equal(same, test)
    with pytest.raises(ValueError, match="random_state has no effect"):
        next(VerifiedKFold(2, random_state=0).split(y, table(y, mask)))


def test_the_scorer_is_minus_the_error_on_anything_that_holds_a_T(blobs):
    X, y, X_clean, y_clean, _, _, T = blobs
    clf = small(MetaTransitionClassifier)
    score = make_transition_scorer(T)
    fitted = clf.fit(X, y, meta=(X_clean, y_clean))
    expected = -transition_error(T, fitted.transition_matrix_)
    assert score(fitted, X, y) == pickle.loads(pickle.dumps(score))(fitted) == expected
    pipe = make_pipeline(StandardScaler(), small(MetaTransitionClassifier))
    search = GridSearchCV(pipe, {f"{pipe.steps[-1][0]}__lr": [0.1]}, cv=KFold(2))
    search.fit(X, table(y, np.arange(len(X)) % 5 == 0).assign(label=y))
    inner = search.best_estimator_[-1]
    assert (
        score(search) == score(search.best_estimator_) == score(inner) == -transition_error(T, inner.transition_matrix_)
    )


def test_the_scorer_reads_a_frame_by_name(blobs):
    T = blobs[-1]
    names = np.array(["c", "a", "b"])  # class 0 is called c, and sorts last
    clf = SimpleNamespace(transition_matrix_=np.full((3, 3), 1 / 3), classes_=np.sort(names))
    sorted_T = T[np.ix_([1, 2, 0], [1, 2, 0])]
    frame = pd.DataFrame(T, index=names, columns=names)
    for table in (frame, frame.iloc[::-1], frame.iloc[:, ::-1]):
        score = pickle.loads(pickle.dumps(make_transition_scorer(table)))
        assert score(clf) == make_transition_scorer(sorted_T)(clf)
    codes = SimpleNamespace(transition_matrix_=T, classes_=np.arange(3))  # which no name of the frame is
    assert make_transition_scorer(frame)(codes) == 0
    # classifiers without T are in test_common.py, bad matrices in attacks/of_functions.py
    with pytest.raises(ValueError, match=r"shape|classes"):
        make_transition_scorer(np.eye(4))(codes)


def test_a_metric_without_weights_is_told_that_it_needs_them():
    scorer = make_verified_scorer(make_scorer(lambda true, predicted: np.mean(true == predicted)))
    labels = pd.DataFrame({"label": [0, 0, 1, 1], "verified": [0, 0, 1, None], "verified_probability": [1, 2, 1, None]})
    clf = DummyClassifier().fit(np.zeros((4, 1)), labels["label"])
    with pytest.raises(TypeError, match="sample_weight") as raised:
        scorer(clf, np.zeros((4, 1)), labels)
    assert "must accept sample_weight" in raised.value.__notes__[0]
    assert scorer(clf, np.zeros((4, 1)), labels.drop(columns="verified_probability")) == pytest.approx(2 / 3)
