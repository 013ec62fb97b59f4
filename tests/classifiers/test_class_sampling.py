"""Clean rows that are drawn class by class from unequal classes: all that is fitted is of the noisy rows."""

import warnings
from functools import cache

import numpy as np
import pytest
from training import refused

from noisytransition import EMTransitionClassifier, transition_error
from noisytransition.classifiers import _estimate
from noisytransition.classifiers._run import Run
from noisytransition.transition import flip_labels

T2 = [[0.9, 0.1], [0.3, 0.7]]
FAST = {"max_epochs": 8, "batch_size": 64, "random_state": 0, "optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}


@cache
def problem(per_class=60, *, at_random=False, n=3000, seed=0):
    """Two clouds that overlap, a tenth of the rows in one of them; so many clean rows of each class on average."""
    rng = np.random.default_rng(seed)
    y = (rng.random(4 * n) < 0.1).astype(int)
    X = np.float32(rng.normal(size=(len(y), 2)) + 2.2 * y[:, None])
    of_classes = [np.flatnonzero(y == k)[:per_class] for k in range(2)]
    clean = np.arange(2 * per_class) if at_random else np.concatenate(of_classes)
    rest = np.setdiff1d(np.arange(len(y)), clean)
    train, test = rest[:n], rest[n:]
    noisy = flip_labels(y, T2, random_state=seed + 1)
    return (X[train], noisy[train], X[clean], y[clean], noisy[clean]), (X[test], y[test]), y[train]


@cache
def fit(*, at_random=False, pairs=False, **params):
    (X, noisy, X_meta, y_meta, noisy_meta), *_ = problem(at_random=at_random)
    clf = EMTransitionClassifier(**FAST | params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, noisy, meta=(X_meta, y_meta), y_meta_noisy=noisy_meta if pairs else None)


@pytest.mark.parametrize("pairs", [False, True])
def test_T_and_shares_are_those_of_the_noisy_rows(pairs):
    *_, y = problem()
    clf, share = fit(pairs=pairs), y.mean()
    np.testing.assert_allclose(clf.meta_offset_, np.log([0.5 / (1 - share), 0.5 / share]), atol=0.3)
    assert transition_error(T2, clf.transition_matrix_) < 0.15
    assert clf.class_counts_[1] / clf.class_counts_.sum() == pytest.approx(share, rel=0.25)
    assert not clf.diagnostics_
    low, high = clf.transition_interval(0.95)
    assert ((low <= T2) & (high >= T2)).all()


def test_without_it_they_are_not():
    *_, y = problem()
    plain = fit(meta_sampling="random")
    assert not plain.meta_offset_.any()
    assert transition_error(T2, plain.transition_matrix_) > transition_error(T2, fit().transition_matrix_) + 0.1
    assert plain.class_counts_[1] / plain.class_counts_.sum() > 1.3 * y.mean()


def test_the_classifier_is_as_good_as_with_random_rows():
    _, (X, y), _ = problem()
    by_class, at_random = (fit(at_random=r) for r in (False, True))
    assert by_class.score(X, y) > at_random.score(X, y) - 0.02
    assert by_class.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)


def test_without_folds_the_same_is_found():
    clf = fit(meta_sampling="by_class", cv=None, transition_init="gold")
    np.testing.assert_allclose(clf.meta_offset_, fit().meta_offset_, atol=0.4)
    assert transition_error(T2, clf.transition_matrix_) < 0.2


def test_clean_rows_that_the_user_draws_are_refused():
    (X, noisy, X_meta, y_meta, _), *_ = problem()
    with refused("meta_sampling='by_class' decides how clean rows are drawn, and so do .*shuffle"):
        clf = EMTransitionClassifier(meta_sampling="by_class", iterator_train__shuffle=False)
        clf.fit(X, noisy, meta=(X_meta, y_meta))


def test_rows_that_are_drawn_at_random_are_left_alone():
    assert not fit(at_random=True).meta_offset_.any()


def weights_of(clf, rows, **params):
    """Weights of the clean rows of each class in the last training, None for none; what the fit warns of."""
    (X, noisy, X_meta, y_meta, _), *_ = rows
    seen = {}

    def train(run, stage, *given, **how):
        if stage == "em":
            seen["weights"] = run.clean.columns.get("sample_weight")
        return Run_train(run, stage, *given, **how)

    Run_train, Run.train = Run.train, train
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clf.set_params(**params).fit(X, noisy, meta=(X_meta, y_meta))
    finally:
        Run.train = Run_train
    of = seen["weights"]
    return of if of is None else [of[y_meta == k].mean() for k in range(2)], [str(w.message) for w in caught]


@pytest.mark.parametrize(("evidence", "undecided", "taken"), [(-1.1, 0, 0), (-0.9, 1, 0), (0.9, 1, 0), (1.1, 0, 1)])
def test_fit_asks_where_looks_do_not_tell(evidence, undecided, taken, monkeypatch):
    monkeypatch.setattr(_estimate, "evidence_of_drawing_by_class", lambda *given: evidence)
    clf = EMTransitionClassifier(**FAST | {"select_classifier": False, "max_epochs": 2})
    for how in ("auto", "random", "by_class"):
        weights, told = weights_of(clf, problem(), meta_sampling=how)
        assert (weights is not None) == (how == "by_class" or (how == "auto" and taken))
        assert any("say meta_sampling=" in text for text in told) == (how == "auto" and undecided)
        assert ("unknown_shares" in clf.diagnostics_) == (how == "auto" and undecided)
        assert clf.meta_offset_.any() == (weights is not None)


def test_clean_rows_weigh_as_their_class_among_the_noisy_rows():
    *_, y = rows = problem()
    weights, _ = weights_of(EMTransitionClassifier(**FAST | {"select_classifier": False}), rows)
    np.testing.assert_allclose(weights, np.bincount(y) / len(y) * 2, rtol=0.3)


def test_it_may_be_told():
    """Numbers that differ between classes show nothing; as told, the offset is the same as found."""
    (X, noisy, X_meta, y_meta, _), *_ = problem()
    fewer = np.delete(np.arange(120), 0)
    found = [
        EMTransitionClassifier(**FAST | {"select_classifier": False, "meta_sampling": how})
        .fit(X, noisy, meta=(X_meta[fewer], y_meta[fewer]))
        .meta_offset_
        for how in ("auto", "by_class")
    ]
    assert not found[0].any()
    np.testing.assert_allclose(found[1], fit().meta_offset_, atol=0.2)


@pytest.mark.parametrize("sampling", ["balanced", None, 1])
def test_an_unknown_way_of_drawing_is_refused(sampling):
    (X, noisy, X_meta, y_meta, _), *_ = problem()
    with refused("meta_sampling=.*valid are"):
        EMTransitionClassifier(meta_sampling=sampling).fit(X, noisy, meta=(X_meta, y_meta))


def test_a_class_without_clean_rows_has_no_offset():
    (X, noisy, X_meta, y_meta, _), *_ = problem()
    with refused(r"meta_sampling='by_class' needs clean rows of each class; there are none of \[1\]"):
        EMTransitionClassifier(meta_sampling="by_class").fit(X, noisy, meta=(X_meta[:60], y_meta[:60]))
