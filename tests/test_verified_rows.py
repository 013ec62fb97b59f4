"""Verified rows that keep their noisy label: fit(X, y_noisy, trusted=mask, y_meta=labels)."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimators import CLASSIFIERS, small
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import Pipeline
from training import assert_same, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    TrustedKFold,
)
from noisytransition.data._read import read_rows

every = pytest.mark.parametrize("cls", CLASSIFIERS)
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture
def verified(blobs):
    """Rows, their noisy labels, the mask of verified ones, and true labels of all (of unverified ones made up)."""
    X, y, X_meta, y_meta, *_ = blobs
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X) + len(X_meta))
    mask = order >= len(X)
    noisy_of_clean = np.where(rng.random(len(y_meta)) < 0.4, (y_meta + 1) % 3, y_meta)
    y_noisy, y_true = np.concatenate([y, noisy_of_clean])[order], np.concatenate([y, y_meta])[order]
    return np.concatenate([X, X_meta])[order], y_noisy, mask, y_true


def known(verified):
    """The same rows as two sets."""
    X, y, mask, true = verified
    return (X[~mask], y[~mask]), {"meta": (X[mask], true[mask]), "y_meta_noisy": y[mask]}


# ---------------------------------------------------------------------------- one result
@every
def test_the_form_is_that_of_clean_rows_with_known_noisy_labels_to_the_bit(cls, verified):
    X, y, mask, true = verified
    args, clean = known(verified)
    by_pair = small(cls).fit(*args, **clean)
    assert_same(by_pair, small(cls).fit(X, y, trusted=mask, y_meta=true[mask]), X)
    assert_same(by_pair, small(cls).fit(X, y, trusted=mask, y_meta=np.where(mask, true, np.nan)), X)
    mixed = np.where(mask, true, y)
    for y_meta_noisy in (y[mask], y):
        assert_same(by_pair, small(cls).fit(X, mixed, trusted=mask, y_meta_noisy=y_meta_noisy), X)


@pytest.mark.parametrize("cls", [EMTransitionClassifier, MetaTransitionClassifier])
def test_the_pairs_change_T(cls, verified):
    X, y, mask, true = verified
    start = {"transition_init": "count"} if cls is MetaTransitionClassifier else {}
    with_pairs = small(cls, **start).fit(X, y, trusted=mask, y_meta=true[mask])
    without = small(cls).fit(X[~mask], y[~mask], meta=(X[mask], true[mask]))
    assert not np.allclose(with_pairs.transition_matrix_, without.transition_matrix_)


def as_read(verified, y_meta, y=None, names=None):
    X, noisy, mask, _ = verified
    noisy = noisy if names is None else names[noisy]
    return read_rows(CrossEntropyClassifier(), X, noisy if y is None else y, trusted=mask, y_meta=y_meta)


LABELS = {
    "integers": np.arange(3),
    "names": NAMES,
    "objects": NAMES.astype(object),
    "truth values": np.array([False, True, True]),
    "floats": np.array([0.0, 1.0, 2.0]),
    "large integers": 2**60 + np.arange(3),
}
MISSING = {"None": None, "NaN": float("nan"), "NA": pd.NA, "another kind": "no label"}


def objects(labels):
    return np.array(labels, dtype=object)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("container", [list, tuple, functools.partial(pd.Series, dtype=object), objects])
def test_labels_of_other_rows_are_ignored(verified, kind, missing, container):
    *_, mask, true = verified
    names = LABELS[kind]
    classes, noisy, clean = as_read(verified, names[true][mask], names=names)
    full = container([label if marked else MISSING[missing] for label, marked in zip(names[true], mask, strict=True)])
    other_classes, other_noisy, other_clean = as_read(verified, full, names=names)
    np.testing.assert_array_equal(classes, other_classes)
    assert other_classes.dtype == classes.dtype == names.dtype
    for one, other in ((noisy, other_noisy), (clean, other_clean)):
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])


@pytest.mark.parametrize("dtype", ["Int64", "category", "string", "float64", "boolean"])
def test_columns_of_data_frames_have_gaps_and_any_index(verified, dtype):
    *_, mask, true = verified
    names = {"string": NAMES, "boolean": np.array([False, True, True])}.get(dtype, np.arange(3))
    whole = pd.Series(names[true], dtype=dtype)
    column = whole.where(mask)
    column.index = column.index[::-1]  # positions count
    expected = as_read(verified, names[true][mask], names=names)
    for y_meta in (column, column[mask], column.to_frame(), whole.array):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A column-vector y")
            found = as_read(verified, y_meta, names=names)
        np.testing.assert_array_equal(found[0], expected[0])
        for name in ("label", "noisy_label"):
            np.testing.assert_array_equal(found[2].columns[name], expected[2].columns[name])


def test_a_noisy_label_may_be_among_those_of_verified_rows_alone(verified):
    X, y, mask, true = verified
    y = np.where(mask & (np.cumsum(mask) < 5), 7, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = small(CrossEntropyClassifier).fit(X, y, trusted=mask, y_meta=true[mask])
    assert clf.classes_.tolist() == [0, 1, 2, 7]


# ---------------------------------------------------------------------------- errors and warnings
def test_true_labels_in_place_of_noisy_ones_are_warned_of(verified):
    X, y, mask, true = verified
    mixed = np.where(mask, true, y)
    with pytest.warns(UserWarning, match="leave y_meta out"):
        small(CrossEntropyClassifier).fit(X, mixed, trusted=mask, y_meta=true[mask])
    with pytest.warns(UserWarning, match="y_meta_noisy"):
        small(CrossEntropyClassifier).fit(X, y, trusted=mask, y_meta_noisy=y)
    few = mask & (np.cumsum(mask) <= 19)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(CrossEntropyClassifier).fit(X, mixed, trusted=few, y_meta=true[few])


# ---------------------------------------------------------------------------- pipelines and searches
@pytest.mark.parametrize(("cls", "piped"), [*((cls, False) for cls in CLASSIFIERS), (GLCClassifier, True)])
def test_with_routing_a_search_scores_held_out_rows_by_their_true_labels(cls, piped, verified, routing):
    X, y, mask, true = verified
    clf = Pipeline([("clf", small(cls))]) if piped else small(cls)
    search = GridSearchCV(clf, {"clf__lr" if piped else "lr": [0.05]}, cv=TrustedKFold(2), error_score="raise")
    search.fit(X, y, trusted=mask, y_meta=np.where(mask, true, -1))
    for k, (train, test) in enumerate(TrustedKFold(2).split(X, y, mask)):
        by_hand = small(cls, lr=0.05).fit(X[train], y[train], trusted=mask[train], y_meta=true[train])
        assert search.cv_results_[f"split{k}_test_score"][0] == by_hand.score(X[test], true[test])
    assert_same(
        search.best_estimator_[-1] if piped else search.best_estimator_,
        small(cls, lr=0.05).fit(X, y, trusted=mask, y_meta=true[mask]),
        X,
    )


@pytest.mark.parametrize(("cls", "scoring"), [*((cls, None) for cls in CLASSIFIERS), (GLCClassifier, "neg_log_loss")])
def test_without_routing_true_labels_in_y_are_those_of_the_scores(cls, scoring, verified):
    X, y, mask, true = verified
    mixed = np.where(mask, true, y)
    search = GridSearchCV(small(cls), {"lr": [0.05]}, cv=TrustedKFold(2), scoring=scoring, error_score="raise")
    search.fit(X, mixed, groups=mask, trusted=mask, y_meta_noisy=y)
    for k, (train, test) in enumerate(TrustedKFold(2).split(X, mixed, mask)):
        by_hand = small(cls, lr=0.05).fit(X[train], y[train], trusted=mask[train], y_meta=true[train][mask[train]])
        score = by_hand.score if scoring is None else lambda X, y: sklearn.metrics.get_scorer(scoring)(by_hand, X, y)  # noqa: B023
        assert search.cv_results_[f"split{k}_test_score"][0] == score(X[test], true[test])


@pytest.mark.parametrize("cv", [TrustedKFold(2), StratifiedKFold(2)])
def test_labels_of_verified_rows_alone_fail_in_a_search(cv, verified, routing):
    X, y, mask, true = verified
    with refused("or one for each row of X"):
        cross_val_score(
            small(GLCClassifier),
            X,
            y,
            cv=cv,
            params={"trusted": mask, "y_meta": true[mask]},
            error_score="raise",
        )


def test_a_score_takes_true_labels_of_some_rows(verified):
    X, y, mask, true = verified
    clf = small(GLCClassifier).fit(X, NAMES[y], trusted=mask, y_meta=NAMES[true[mask]])
    expected = clf.score(X, NAMES[np.where(mask, true, y)])
    labels = np.where(mask, NAMES[true], None)
    for y_meta in (labels, labels.tolist(), pd.Series(labels), NAMES[true[mask]]):
        assert clf.score(X, NAMES[y], trusted=mask, y_meta=y_meta) == expected
    assert clf.score(X, NAMES[y], trusted=~mask & mask, y_meta=labels) == clf.score(X, NAMES[y])
    with pytest.raises(ValueError, match="text labels"):
        clf.score(X, NAMES[y], trusted=mask, y_meta=true)


# ---------------------------------------------------------------------------- folds without trusted rows
TOGETHER = np.arange(300) < 60
SHUFFLED = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture
def rows(blobs, true_labels):
    """X, and labels that are true in the first 60 rows."""
    X, y = blobs[:2]
    return X, np.where(TOGETHER, true_labels, y)


@every
def test_a_fold_without_trusted_rows_is_refused_with_what_to_do(cls, rows):
    for tool in (
        lambda: cross_validate(small(cls), *rows, cv=KFold(5), params={"trusted": TOGETHER}, error_score="raise"),
        lambda: CalibratedClassifierCV(small(cls), cv=KFold(5)).fit(*rows, trusted=TOGETHER),
    ):
        with refused("TrustedKFold"):
            tool()


def test_what_the_error_says_helps(rows):
    clf, mask = small(GLCClassifier), {"trusted": TOGETHER}
    for cv, more in ((SHUFFLED, {}), (TrustedKFold(3), {"groups": TOGETHER})):
        assert np.isfinite(cross_validate(clf, *rows, cv=cv, params=mask, **more)["test_score"]).all()
    with refused("groups="):
        CalibratedClassifierCV(clf, cv=TrustedKFold(3)).fit(*rows, **mask)
    with sklearn.config_context(enable_metadata_routing=True):
        CalibratedClassifierCV(clf, cv=TrustedKFold(3)).fit(*rows, **mask)
    assert CalibratedClassifierCV(clf, cv=SHUFFLED).fit(*rows, **mask).predict_proba(rows[0]).shape == (300, 3)
    clean = {"meta": (rows[0][:60], rows[1][:60])}
    assert np.isfinite(learning_curve(clf, *rows, cv=3, params=clean, train_sizes=[0.2])[2]).all()
