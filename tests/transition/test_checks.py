import numpy as np
import pytest

from noisytransition.transition._checks import (
    check_label_indices,
    check_mask,
    check_probabilities,
    check_transition_matrix,
)


@pytest.mark.parametrize(
    ("T", "message"),
    [
        ([[1, 0]], r"shape \(1, 2\); give a square"),
        ([1, 0], r"shape \(2,\)"),
        ([["a", "b"], ["c", "d"]], "not an array of numbers"),
        ([[1, 0], [0]], "not an array of numbers"),
        ([[1, np.nan], [0, 1]], r"\[0, 1\] = nan is NaN or infinite"),
        ([[1.5, -0.5], [0, 1]], "negative"),
        ([[0.5, 0.4], [0, 1]], "row 0 of T sums to 0.9.*divide every row by its sum"),
        ([[0.9, 0.3], [0.1, 0.7]], "pass the transpose"),
        (np.eye(3), "3 rows and columns, but there are 2 classes"),
    ],
)
def test_what_is_no_transition_matrix(T, message):
    with pytest.raises(ValueError, match=message):
        check_transition_matrix(T, 2, "T")


def test_a_copy_comes_back():
    T = np.eye(2)
    checked = check_transition_matrix(T)
    checked[0, 0] = 5
    assert T[0, 0] == 1
    assert check_transition_matrix([[1, 0], [0, 1]]).dtype == np.float64


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\); give a 2-d array"),
        ([[2.0, -1.0]], "negative.*softmax"),
        ([[2.0, 1.0]], "row 0 of proba sums to 3.*softmax"),
        ([[np.inf, 0]], "infinite"),
        ([[0.2, 0.3, 0.5]], "3 columns, but there are 2 classes"),
    ],
)
def test_what_is_no_probability(proba, message):
    with pytest.raises(ValueError, match=message):
        check_probabilities(proba, 2)


@pytest.mark.parametrize(
    ("mask", "advice"),
    [
        ([True, None, False], r"missing values, to be replaced first \(fillna\(False\)\)"),
        ([1.0, np.nan, 0.0], "missing values"),
        ([1.0, 0.0, 0.0], r"convert it by astype\(bool\)"),
        ([0, 2, 1], "from indices make one"),
        ([True, False], r"shape \(2,\) and dtype bool\.$"),
    ],
)
def test_what_is_no_mask(mask, advice):
    with pytest.raises(ValueError, match=advice):
        check_mask(mask, 3, "trusted")


# ---------------------------------------------------------------------------- shapes, rounding, labels
@pytest.mark.parametrize("check", [check_transition_matrix, check_probabilities])
@pytest.mark.parametrize("array", [np.empty((0, 0)), np.eye(2)[None], 3.0])
def test_arrays_of_the_wrong_shape(check, array):
    with pytest.raises(ValueError, match="has shape"):
        check(array)


def test_rows_may_be_off_by_rounding_only():
    for check, slack in ((check_transition_matrix, 1e-6), (check_probabilities, 1e-3)):
        check([[0.5, 0.5 + 0.9 * slack], [0, 1]])
        with pytest.raises(ValueError, match="row 1 of"):
            check([[0.5, 0.5], [0, 1 - 1.1 * slack]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0]], r"y has shape \(1, 1\); give a 1-d array"),
        ([True], "y has dtype bool; give integer class indices"),
        ([1.0], r"for example np.searchsorted\(classes, y\)"),
        ([-1], r"y holds -1..-1; valid class indices are 0, 1, 2, ...: encode the labels"),
    ],
)
def test_what_is_no_label_index(y, message):
    with pytest.raises(ValueError, match=message):
        check_label_indices(y)


def test_label_indices_come_back_as_machine_integers():
    for y in (np.array([0, 200], dtype=np.uint8), [], (0, 1)):
        indices = check_label_indices(y)
        assert indices.dtype == np.intp
        assert indices.tolist() == list(y)
