"""Reasons not to trust T: where there are some, and where there are none; the weight of clean rows behind them."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.special import softmax
from training import refused

from noisytransition import EMTransitionClassifier, MetaTransitionClassifier, count_transition_matrix, load
from noisytransition.classifiers import _em_transition, _estimate
from noisytransition.transition import flip_labels, pair_noise, transition_error

FAST = {
    "max_epochs": 8,
    "batch_size": 64,
    "optimizer": "sgd",
    "lr": 0.1,
    "optimizer__momentum": 0.9,
    "random_state": 0,
    "select_classifier": False,
}
# of the rows whose last column is 1; the others keep their labels
OF_HALF = [[0.1, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]


@cache
def table(n=1500, n_clean=90, *, by_column=False, seed=1):
    """Three classes that overlap, and a column of 0 and 1: rows, true labels and noisy ones, the clean rows first."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n + n_clean)
    X = np.column_stack([rng.normal(size=(len(y), 2)), rng.integers(2, size=len(y))])
    X[:, :2] += 2.2 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    flipped = flip_labels(y, OF_HALF if by_column else pair_noise(3, 0.3), random_state=seed)
    return X, y, np.where((X[:, 2] == 1) | (not by_column), flipped, y), n_clean


def fit(rows, *, pairs=False, clean=slice(None), **params):
    X, y, noisy, n = rows
    X_meta, y_meta, known = (a[:n][clean] for a in (X, y, noisy))
    clf = EMTransitionClassifier(**FAST | params)
    return clf.fit(X[n:], noisy[n:], meta=(X_meta, y_meta), y_meta_noisy=known if pairs else None)


@cache
def guessed_labels(n=3000, n_clean=150, power=0.4):
    """The same, but wrong on rows that look like another class more often: T, and the rows."""
    X, y, _, _ = table(n, n_clean)
    looks = -((X[:, None, :2] - 2.2 * np.array([[0, 0], [0, 1], [1, 0]])) ** 2).sum(axis=2) / 2
    flips = pair_noise(3, 0.4)[y] * softmax(looks, axis=1) ** power
    drawn = np.random.default_rng(0).random((len(y), 1)) * flips.sum(axis=1, keepdims=True)
    noisy = (flips.cumsum(axis=1) < drawn).sum(axis=1)
    return count_transition_matrix(y, noisy, 3), (X, y, noisy, n_clean)


# ---------------------------------------------------------------------------- reasons
def test_noise_that_differs_between_rows_is_found():
    with pytest.warns(UserWarning, match="T may be wrong: .*contradict each other under one T"):
        clf = fit(table(by_column=True), instance_dependent=False)
    assert set(clf.diagnostics_) == {"not_one_T"}
    assert clf.calibration_weight_ > 1
    assert clf.instance_dependence_ == 0


def test_labels_that_depend_on_the_look_of_the_row_are_found():
    truth, rows = guessed_labels()
    with pytest.warns(UserWarning, match="T may be wrong: labels are wrong on rows that look like another class"):
        clf = fit(rows)
    assert clf.instance_dependence_ > 0.1
    one_T = fit(rows, instance_dependent=False)
    assert one_T.instance_dependence_ == 0
    error = transition_error(truth, clf.transition_matrix_)
    assert error < 0.6 * transition_error(truth, one_T.transition_matrix_)
    low, high = clf.transition_interval()
    for T in (clf.transition_matrix_, one_T.transition_matrix_):
        assert ((low <= T) & (high >= T)).all()
    np.testing.assert_allclose(clf.class_counts_.sum(), len(rows[1]) - rows[3], rtol=1e-3)
    assert fit(rows, pairs=True).instance_dependence_ == 0


@cache
def labels_of_a_rule(n=1500, n_clean=90):
    """The same with labels by a rule that looks at one column alone: T, and the rows."""
    X, y, _, _ = table(n, n_clean)
    noisy = np.where(X[:, 0] > 1.1, 2, np.where(X[:, 2] == 1, 1, 0))
    return count_transition_matrix(y, noisy, 3), (X, y, noisy, n_clean)


def test_labels_of_a_rule_are_found():
    truth, rows = labels_of_a_rule()
    X, y, noisy, n = rows
    choose = {"select_classifier": True}
    with pytest.warns(UserWarning, match="T may be wrong: noisy labels follow from how a row looks, whatever it is"):
        clf = fit(rows, **choose)
    assert "not_one_T" in clf.diagnostics_
    assert clf.instance_dependence_ == np.inf
    one_T = fit(rows, instance_dependent=False, **choose)
    assert transition_error(truth, clf.transition_matrix_) < 0.25 < transition_error(truth, one_T.transition_matrix_)
    low, high = clf.transition_interval()
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    np.testing.assert_allclose(clf.class_counts_.sum(), len(y) - n)
    accuracies = [(c.oof_proba_.argmax(axis=1) == y[n:]).mean() for c in (one_T, clf)]
    assert accuracies[1] > accuracies[0] + 0.1
    issues = clf.find_label_issues(X[n:], noisy[n:])
    assert (noisy != y)[n:][issues].mean() > 0.8


@pytest.mark.filterwarnings("ignore:T may be wrong")
def test_labels_of_a_rule_make_no_training_longer(monkeypatch):
    """Posteriors under one T believe the labels."""
    monkeypatch.setattr(_estimate, "last_training", lambda *_: FAST["max_epochs"] + 1)
    _, rows = labels_of_a_rule()
    found = fit(rows, select_classifier=True)
    assert found.n_epochs_ == found.cv_results_["epochs"][found.cv_results_["log_evidence"].argmax()]
    assert fit(rows, instance_dependent=False, select_classifier=True).n_epochs_ == FAST["max_epochs"] + 1


def test_labels_of_a_rule_are_found_for_a_start_too():
    truth, (X, y, noisy, n) = labels_of_a_rule()
    clf = MetaTransitionClassifier(**FAST).fit(X[n:], noisy[n:], meta=(X[:n], y[:n]))
    assert transition_error(truth, clf.transition_matrix_) < 0.25
    np.testing.assert_allclose(clf.transition_matrix_, clf.transition_init_, atol=1e-6)  # whatever is more likely
    assert transition_error(truth, clf.transition_history_[-1]) > 0.3


def test_pairs_are_fitted_to_labels_of_a_rule():
    truth, rows = labels_of_a_rule()
    _, y, _, n = rows
    clf = fit(rows, pairs=True, select_classifier=True)
    one_T = fit(rows, pairs=True, select_classifier=True, instance_dependent=False)
    errors = [transition_error(truth, c.transition_matrix_) for c in (one_T, clf)]
    assert errors[1] < min(errors[0], 0.2)
    accuracies = [(c.oof_proba_.argmax(axis=1) == y[n:]).mean() for c in (one_T, clf)]
    assert accuracies[1] > accuracies[0] + 0.1
    np.testing.assert_allclose(clf.class_counts_.sum(), len(y) - n, rtol=1e-3)
    low, high = clf.transition_interval()
    assert ((low <= truth) & (truth <= high)).mean() > 0.8


@pytest.mark.parametrize("params", [{"instance_dependent": False}, {"select_classifier": False}])
def test_one_T_is_taken_where_rules_are_not_looked_for(params):
    clf = fit(labels_of_a_rule()[1], **{"select_classifier": True} | params)
    assert clf.instance_dependence_ < np.inf


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_one_T_gives_no_warning(seed, choose):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = fit(table(seed=seed), select_classifier=choose)
    assert clf.diagnostics_ == {}
    assert transition_error(pair_noise(3, 0.3), clf.transition_matrix_) < 0.15


def test_pairs_that_contradict_T_are_gone_by():
    _, y, noisy, n = rows = table(n_clean=200, by_column=True, seed=2)
    truth, counted = count_transition_matrix(y, noisy, 3), count_transition_matrix(y[:n], noisy[:n], 3)
    with pytest.warns(UserWarning, match="verified pairs contradict the T"):
        clf = fit(rows, pairs=True)
    plain = fit(rows, instance_dependent=False)
    assert "not_one_T" in clf.diagnostics_
    error = transition_error(truth, clf.transition_matrix_)
    assert error < 0.2 * transition_error(truth, plain.transition_matrix_)
    assert error < transition_error(truth, counted)
    low, high = clf.transition_interval(0.95)
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    np.testing.assert_allclose(clf.class_counts_.sum(), len(y) - n, rtol=1e-3)
    np.testing.assert_array_equal(clf.transition_history_[-1], clf.transition_matrix_)


def test_pairs_that_agree_leave_no_reason():
    clf = fit(table(), pairs=True)
    assert clf.diagnostics_ == {}


def test_a_missing_class_is_named():
    rows = table()
    names = np.array(["ant", "bee", "cat"])
    X, y, noisy, n = rows
    with pytest.warns(UserWarning, match=r"no clean row of class \['cat'\]"):
        clf = fit((X, names[y], names[noisy], n), clean=y[:n] != 2)
    assert "verify some rows of it" in clf.diagnostics_["missing_class"]


@pytest.mark.parametrize("select_epochs", [True, False])
def test_a_network_that_is_trained_too_little_is_found(select_epochs):
    with pytest.warns(UserWarning, match="trained too little.*give more epochs, or a larger lr"):
        clf = fit(table(), lr=1e-4, select_epochs=select_epochs)
    assert "under_trained" in clf.diagnostics_
    assert list(clf.cv_results_["epochs"]) == (list(range(1, 9)) if select_epochs else [8])


@pytest.mark.parametrize("cv", [3, None])
def test_posteriors_for_the_diagnostics_alone_change_nothing(cv, monkeypatch):
    rows, params = table(300, 30), {"select_epochs": False, "select_classifier": True, "cv": cv, "max_epochs": 4}
    clf = fit(rows, **params)
    monkeypatch.setattr(_em_transition, "candidate_epochs", lambda max_epochs: [max_epochs])
    plain = fit(rows, **params)
    for of_fit in (lambda c: c.transition_matrix_, lambda c: c.predict_proba(rows[0])):
        np.testing.assert_array_equal(of_fit(clf), of_fit(plain))
    np.testing.assert_array_equal(clf.transition_interval(), plain.transition_interval())


def test_one_epoch_has_no_earlier_one_to_compare_with():
    clf = fit(table(300, 30), lr=1e-4, max_epochs=1, select_epochs=False)
    assert "under_trained" not in clf.diagnostics_


def test_labels_that_leave_T_open_are_found():
    with pytest.warns(UserWarning, match="error bars are wide; verify more rows"):
        clf = fit(table(60, 12, seed=2))
    low, high = clf.transition_interval(0.9)
    wide = np.flatnonzero(np.diag(high - low) > 0.5)
    assert str(wide.tolist()) in clf.diagnostics_["not_separated"]


# ---------------------------------------------------------------------------- the weight of the clean rows
def test_weights_that_are_given_are_taken():
    rows = table(300, 30, by_column=True)
    by_weight = {w: fit(rows, calibration_weight=w) for w in (1, np.float32(10))}
    assert [clf.calibration_weight_ for clf in by_weight.values()] == [1.0, 10.0]
    np.testing.assert_array_equal(
        fit(rows, calibration_weight=np.int64(10)).transition_matrix_, by_weight[10].transition_matrix_
    )
    assert not np.allclose(by_weight[1].transition_matrix_, by_weight[10].transition_matrix_, atol=1e-3)
    assert all(clf.transition_uncertainty_.others == () for clf in by_weight.values())


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf, "all", None, True, [1]])
def test_bad_weights_are_refused_before_training(weight):
    with refused("calibration_weight=.*give a number above 0, or 'auto'"):
        fit(table(60, 12), calibration_weight=weight)


@pytest.mark.parametrize("by_column", [True, False])
def test_error_bars_reach_over_those_of_the_other_weight(by_column, tmp_path):
    rows = table(by_column=by_column)
    clf = fit(rows, instance_dependent=False)
    equal = (len(rows[0]) - rows[3]) / rows[3]
    assert clf.calibration_weight_ == (pytest.approx(equal) if by_column else 1)
    other = fit(rows, calibration_weight=1.0 if by_column else equal, instance_dependent=False)
    np.testing.assert_array_equal(clf.transition_uncertainty_.others[0].transition_matrix, other.transition_matrix_)
    for mine, bound, of_other in zip(
        clf.transition_interval(), (np.less_equal, np.greater_equal), other.transition_interval(), strict=True
    ):
        assert bound(mine, of_other + (1e-9 if bound is np.less_equal else -1e-9)).all()
    clf.save(tmp_path / "clf")
    again = load(tmp_path / "clf")
    np.testing.assert_array_equal(again.transition_interval(), clf.transition_interval())
    assert again.diagnostics_ == clf.diagnostics_
    assert again.calibration_weight_ == clf.calibration_weight_


@pytest.mark.parametrize(("gains", "power"), [((3, 3, 3), 1), ((1, 3, 3), 0.75), ((1, 1, 3), 0.5), ((1, 1, 1), 0)])
def test_the_largest_weight_that_held_out_rows_prefer_is_taken(gains, power, monkeypatch):
    rows, tried = table(300, 40), []

    def loss(weight):
        """Of 20 rows, together lower than at weight 1 by the gain."""
        tried.append(weight)
        return np.full(20, 1 - (0, *gains)[len(tried) - 1] / 20)

    monkeypatch.setattr(_estimate, "_held_out_loss", lambda *args: loss)
    clf = fit(rows, cv=None, max_epochs=2)
    n_noisy, n_clean = 100, 20  # behind T, without folds
    taken, equal = (n_noisy / n_clean) ** power, n_noisy / n_clean
    assert clf.calibration_weight_ == pytest.approx(taken)
    assert tried == pytest.approx([1, equal, equal**0.75, equal**0.5][: len(tried)])
    plain = {w: fit(rows, cv=None, max_epochs=2, calibration_weight=w).transition_matrix_ for w in {1, taken, equal}}
    np.testing.assert_array_equal(clf.transition_matrix_, plain.pop(taken))
    others = clf.transition_uncertainty_.others
    np.testing.assert_array_equal([bars.transition_matrix for bars in others], [plain[w] for w in sorted(plain)])


def test_a_gain_below_its_standard_error_is_none(monkeypatch):
    of_rows = iter([np.zeros(20)] + 3 * [np.where(np.arange(20) < 11, -10, 10.0)])
    monkeypatch.setattr(_estimate, "_held_out_loss", lambda *args: lambda weight: next(of_rows))
    assert fit(table(300, 40), cv=None, max_epochs=2).calibration_weight_ == 1


def test_error_bars_reach_over_those_of_fine_tuned_networks():
    rows = table(by_column=True)
    plain, clf = (fit(rows, select_classifier=choose, instance_dependent=False) for choose in (False, True))
    np.testing.assert_array_equal(clf.transition_matrix_, plain.transition_matrix_)
    assert [len(c.transition_uncertainty_.others) for c in (plain, clf)] == [1, 2]
    (low, high), (plain_low, plain_high) = clf.transition_interval(), plain.transition_interval()
    assert (low <= plain_low).all()
    assert (high >= plain_high).all()
    fine_tuned_low, fine_tuned_high = clf.transition_uncertainty_.others[1].interval(0.9)
    np.testing.assert_array_equal(low, np.minimum(plain_low, fine_tuned_low))
    np.testing.assert_array_equal(high, np.maximum(plain_high, fine_tuned_high))
    assert (high - low).sum() > (plain_high - plain_low).sum()


def test_with_as_many_clean_rows_as_noisy_ones_all_weights_are_one():
    clf = fit(table(90, 90, by_column=True), select_classifier=True, max_epochs=2)
    at_equal, fine_tuned = clf.transition_uncertainty_.others
    np.testing.assert_array_equal(at_equal.transition_matrix, clf.transition_matrix_)
    assert not np.array_equal(fine_tuned.transition_matrix, clf.transition_matrix_)
    assert "not_one_T" not in clf.diagnostics_


def test_a_choice_without_folds():
    clf = fit(table(by_column=True), cv=None)
    assert "not_one_T" in clf.diagnostics_
    assert clf.calibration_weight_ == pytest.approx(500 / 45)
