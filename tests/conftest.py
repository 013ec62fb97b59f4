"""Fixtures of problems for many tests."""

import functools
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # numpy too: pytest-xdist has a process for each core

import numpy as np
import pytest
from hypothesis import settings

# torch and the library are imported by the fixtures: the main process of pytest-xdist reads this file and runs no test

# a machine's speed decides no test, and every run tries the same examples; `--hypothesis-profile search` draws others
settings.register_profile("search", deadline=None, print_blob=True)
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None, max_examples=30)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Do not collect examples in docstrings of tests, since this would import each file again."""
    return [collector for collector in (yield) if type(collector) is pytest.Module]


@pytest.fixture(autouse=True)
def _one_thread_and_one_seed():
    """Seed torch, so that networks of tests have the same initial weights in every run and worker."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  (what `random_state=None` of scikit-learn draws from)


@pytest.fixture(scope="module")
def float64():
    """Use double precision in all tests of a file, including property tests."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _labelled_blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    return rng.normal(size=(600, 4)) + 3 * np.array([[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])[y], y


@pytest.fixture(scope="session")
def blobs():
    """Three Gaussian classes with pair noise: X, y_noisy, X_clean, y_clean, X_test, y_test, T."""
    from noisytransition.transition import flip_labels, pair_noise

    X, y = _labelled_blobs()
    T = pair_noise(3, 0.4)
    y_noisy = flip_labels(y, T, random_state=0)
    return X[100:400], y_noisy[100:400], X[:60], y[:60], X[400:], y[400:], T


@pytest.fixture(scope="session")
def true_labels():
    """True labels of the noisy rows of `blobs`."""
    return _labelled_blobs()[1][100:400]


@pytest.fixture(scope="session")
def plain(blobs):
    """Return fits of `blobs`, one for each class, which tests must not change."""
    from training import fit

    return functools.cache(lambda cls: fit(cls, blobs))
