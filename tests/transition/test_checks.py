import numpy as np
import pytest

from noisytransition.transition import check_mask, check_probabilities, check_transition_matrix


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
