"""Labels by name, and results with the index of a Series: the same as those of class indices."""

import numpy as np
import pandas as pd
import pytest

from noisytransition.noise_model import LabelNoiseModel
from noisytransition.transition import class_conditional_test, denoise_proba, flip_labels, label_posterior, pair_noise
from noisytransition.transition._checks import check_probabilities, check_transition_matrix

T = pair_noise(3, 0.4)
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(3, 0.4), size=60)
    return proba, flip_labels(proba.argmax(axis=1), T, random_state=0)


@pytest.mark.parametrize(
    "kind", [np.asarray, list, lambda y: y.astype(object), pd.Series, lambda y: pd.Series(y, dtype="category")]
)
def test_text_labels_are_those_of_the_sorted_classes(kind, rows):
    proba, y = rows
    np.testing.assert_array_equal(label_posterior(proba, kind(NAMES[y]), T), label_posterior(proba, y, T))


@pytest.mark.parametrize("names", [np.array(["dog", "cat", "ant"]), np.array([7, -1, 30]), np.array([0.5, 0.1, 2.0])])
def test_classes_may_be_in_any_order_and_of_any_kind(names, rows):
    proba, y = rows
    named, plain = (LabelNoiseModel.from_transition_matrix(T, classes) for classes in (names, None))
    for some in (y < 3, y < 2):  # not all classes have a row
        given, given_names = (proba[some], y[some]), (proba[some], names[y[some]])
        np.testing.assert_array_equal(label_posterior(*given_names, T, classes=names), label_posterior(*given, T))
        np.testing.assert_array_equal(named.relabel(*given_names), names[plain.relabel(*given)])
        found, expected = (model.find_label_issues(*of) for model, of in ((named, given_names), (plain, given)))
        labels = ["given_label", "suggested_label"]
        pd.testing.assert_frame_equal(found.drop(columns=labels), expected.drop(columns=labels))
        np.testing.assert_array_equal(found[labels], names[expected[labels]])


def test_a_frame_says_how_labels_flip():
    y, order = NAMES[np.repeat(np.arange(3), 20)], [2, 0, 1]
    frame = pd.DataFrame(T, index=NAMES, columns=NAMES).iloc[order, [1, 2, 0]]
    expected = flip_labels(y, T, random_state=0)
    assert flip_labels(y, frame, random_state=0).tolist() == expected.tolist()
    assert sorted(flip_labels(y, frame, random_state=0, classes=NAMES[order])) != sorted(y)
    moved = flip_labels(y, T[np.ix_(order, order)], random_state=0, classes=NAMES[order])
    assert flip_labels(y, frame, random_state=0, classes=NAMES[order]).tolist() == moved.tolist()


def test_one_T_is_tested_with_labels_by_name(rows):
    proba, y = rows
    true = proba.argmax(axis=1)
    shared = {"groups": np.arange(60) % 2, "n_permutations": 99, "random_state": 0}
    for given in ({}, {"proba": proba}):
        by_index = class_conditional_test(true, y, **given, **shared)
        by_name = class_conditional_test(NAMES[true], pd.Series(NAMES[y], index=np.arange(60) + 7), **given, **shared)
        by_class = class_conditional_test(NAMES[true], NAMES[y], classes=NAMES, **given, **shared)
        by_object = class_conditional_test(true.astype(object), y, **given, **shared)
        for found in (by_name, by_class, by_object):
            assert found.pvalues == by_index.pvalues
    frame = pd.DataFrame(proba, columns=NAMES).iloc[:, [2, 0, 1]]
    assert class_conditional_test(NAMES[true], NAMES[y], proba=frame, **shared).pvalues == by_index.pvalues
    with pytest.raises(ValueError, match=r"y_noisy has labels of another kind.*number instead of text"):
        class_conditional_test(NAMES[true], y, **shared)
    with pytest.raises(ValueError, match="2 different labels"):
        class_conditional_test(NAMES[true % 2], NAMES[y % 2], proba=proba, **shared)


def test_true_labels_come_from_shares_by_name():
    frame, order = pd.DataFrame(T, index=NAMES, columns=NAMES), [2, 0, 1]
    shares = pd.DataFrame([[0.5, 0.3, 0.2]], columns=NAMES)
    plain = denoise_proba(shares.to_numpy(), T, n_iter=100)
    np.testing.assert_allclose(denoise_proba(shares.iloc[:, order], frame, n_iter=100), plain[:, order])
    np.testing.assert_allclose(denoise_proba(shares, frame.iloc[order, [1, 0, 2]], n_iter=100), plain)


def test_rows_may_be_off_by_rounding_only():
    for check, slack in ((check_transition_matrix, 1e-6), (check_probabilities, 1e-3)):
        check([[0.5, 0.5 + 0.9 * slack], [0, 1]])
        with pytest.raises(ValueError, match="row 1 of"):
            check([[0.5, 0.5], [0, 1 - 1.1 * slack]])
