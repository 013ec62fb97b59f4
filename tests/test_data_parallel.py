"""Two processes with half of each batch give the result of one process up to rounding, and are bitwise equal."""

import numpy as np
import pytest
from two_processes import SIZE, TOGETHER, fits, fitted, results, started

from examples.data_parallel import data_parallel
from noisytransition import EMTransitionClassifier

# the two processes are started once
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("two processes")]


@pytest.fixture(scope="module")
def both(tmp_path_factory, float64):
    """Results of each of two processes, and of one process alone."""
    folder = tmp_path_factory.mktemp("two")
    processes = started(folder)
    try:
        alone = {name: fitted(clf) for name, clf in fits().items()}
        return *results(folder, processes), alone
    finally:
        for process in processes.processes:
            process.kill()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", fits())
def test_two_processes_give_the_result_of_one(both, name):
    first, _, alone = (found[name] for found in both)
    assert first.keys() == alone.keys()
    for key, value in alone.items():
        # an optimiser finds EM's T, and stops a little earlier or later
        tolerance = 1e-4 if isinstance(fits()[name], EMTransitionClassifier) else 1e-10
        np.testing.assert_allclose(first[key], value, rtol=tolerance, atol=tolerance, err_msg=key)


@pytest.mark.parametrize("name", [*fits(), *TOGETHER])
def test_both_processes_have_the_same_bits(both, name):
    first, second, _ = (found.get(name) for found in both)
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)


def test_a_fit_that_was_cut_off_goes_on_in_both(both):
    assert all(found["resumed"]["same"].all() for found in both[:SIZE])


@pytest.mark.parametrize("name", ["labels", "lr", "train_split", "SyncBatchNorm"])
def test_what_could_not_be_right_is_refused_in_both(both, name):
    keyword = {"labels": "different", "lr": "different"}.get(name, name)
    assert all(keyword in found["refused"][name] for found in both[:SIZE])


def test_without_a_process_group_the_error_says_how_to_start():
    with pytest.raises(ValueError, match="torchrun"), data_parallel():
        pass
