import numpy as np
import pytest
import torch
from scipy import sparse
from torch.utils.data import TensorDataset

from noisytransition import flip_labels
from noisytransition.datasets import make_noisy_data
from noisytransition.transition import pair_noise

Y = np.arange(300) % 3
X = np.arange(300)[:, None]
Y_TEST = np.arange(30) % 3
X_TEST = -1 - np.arange(30)[:, None]
T = pair_noise(3, 0.4)


def split(**params):
    return make_noisy_data(X, Y, X_TEST, Y_TEST, **{"noise": T, "n_clean": 30, "random_state": 0} | params)


def test_meta_rows_are_training_rows_and_no_longer_noisy_rows():
    data = split()
    assert len(data.rows_clean) == 30
    np.testing.assert_array_equal(np.sort(np.concatenate([data.rows, data.rows_clean])), np.arange(300))
    for rows, inputs, true in ((data.rows, data.X, data.y_true), (data.rows_clean, data.X_clean, data.y_clean)):
        np.testing.assert_array_equal(inputs[:, 0], rows)
        np.testing.assert_array_equal(true, Y[rows])
    np.testing.assert_array_equal(data.X_test, X_TEST)
    np.testing.assert_array_equal(data.y_test, Y_TEST)


def test_noise_is_that_of_flip_labels_for_every_size_of_the_meta_set():
    expected = flip_labels(Y, T, random_state=0)
    for n_clean in (3, 90):
        data = split(n_clean=n_clean)
        np.testing.assert_array_equal(data.y, expected[data.rows])
        np.testing.assert_array_equal(data.y_clean_noisy, expected[data.rows_clean])
        np.testing.assert_array_equal(data.transition_matrix, T)


def test_the_meta_set_is_balanced_or_random():
    skewed = np.r_[np.zeros(250, int), np.ones(40, int), np.full(10, 2)]
    balanced = make_noisy_data(X, skewed, X_TEST, Y_TEST, n_clean=20, random_state=1)
    assert sorted(np.bincount(balanced.y_clean)) == [6, 7, 7]
    random = make_noisy_data(X, skewed, X_TEST, Y_TEST, n_clean=100, balanced=False, random_state=1)
    assert len(random.y_clean) == 100
    assert np.bincount(random.y_clean)[0] > 70


def test_labels_that_are_given_are_used_and_have_no_single_T():
    given = np.where(np.arange(300) < 200, Y, (Y + 1) % 3)
    data = split(noise=given)
    np.testing.assert_array_equal(data.y, given[data.rows])
    assert data.transition_matrix is None
    clean = split(noise=None)
    np.testing.assert_array_equal(clean.y, clean.y_true)
    assert clean.transition_matrix is None


def test_a_frame_of_T_is_read_by_the_names_of_the_classes():
    pd = pytest.importorskip("pandas")
    names, order = ["cat", "dog", "frog"], [2, 0, 1]
    data = split(noise=pd.DataFrame(T, names, names).iloc[order, order], classes=names)
    np.testing.assert_array_equal(data.transition_matrix, T)
    np.testing.assert_array_equal(data.y, split().y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": np.eye(4)}, "3 classes"),
        ({"noise": Y[:-1]}, "299"),
        ({"noise": 0.4}, "square matrix"),
        ({"noise": "asymmetric"}, "noise is not an array of numbers"),
        ({"noise": Y + 1}, "noise"),
        ({"n_clean": 2}, "at least 3"),
        ({"n_clean": 301}, "101 of 100"),
        ({"n_clean": 301, "balanced": False}, "301 of 300"),
        ({"n_clean": 300}, "no noisy sample"),
        ({"n_noisy": 271}, "271 of 270"),
        ({"classes": ["a", "b"]}, "y"),
    ],
)
def test_what_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        split(**params)
    with pytest.raises(ValueError, match="y_test has 29 labels for 30 samples"):
        make_noisy_data(X, Y, X_TEST, Y_TEST[1:])


def test_sparse_rows_stay_sparse_and_rows_of_a_dataset_in_it():
    X, y = sparse.random_array((60, 5), density=0.5, format="coo", random_state=0), np.arange(60) % 3
    data = make_noisy_data(X, y, X, y, n_clean=6, random_state=0)
    assert all(sparse.issparse(rows) for rows in (data.X, data.X_clean, data.X_test))
    np.testing.assert_array_equal(data.X.toarray(), X.toarray()[data.rows])
    in_dataset = make_noisy_data(TensorDataset(torch.arange(60)), y, X, y, n_clean=6, random_state=0)
    assert [int(sample) for (sample,) in in_dataset.X] == in_dataset.rows.tolist()
    assert [int(sample) for (sample,) in in_dataset.X_clean] == in_dataset.rows_clean.tolist()
