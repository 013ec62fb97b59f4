"""Two processes with half of each batch give the result of one, to rounding, and both the same bits."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from training import fit, refused
from two_processes import SIZE, TOGETHER, data, fits, fitted, results, started

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier
from noisytransition._processes import ALONE, Share

# the two processes are started once
pytestmark = pytest.mark.xdist_group("two processes")
# in double precision
ROUNDING = 1e-10


@pytest.fixture(scope="module")
def both(tmp_path_factory, float64_module):
    """What each of two processes has found, and one alone meanwhile."""
    folder = tmp_path_factory.mktemp("two")
    processes = started(folder)
    try:
        alone = {name: fitted(name) for name in fits()}
        return *results(folder, processes), alone
    finally:
        for process in processes.processes:
            process.kill()


@pytest.mark.parametrize("name", fits())
def test_two_processes_give_the_result_of_one(both, name):
    first, _, alone = (found[name] for found in both)
    assert first.keys() == alone.keys()
    for key, value in alone.items():
        if value.dtype.kind == "f":
            rtol = ROUNDING / 10 if key == "class_counts_" else 0  # numbers of rows, above 1
            np.testing.assert_allclose(first[key], value, rtol=rtol, atol=ROUNDING, err_msg=key)


@pytest.mark.parametrize("name", [*fits(), *TOGETHER])
def test_both_processes_have_the_same_bits(both, name):
    first, second, _ = (found.get(name) for found in both)
    for key in first:
        if key not in ("drawn", "read", "written"):
            np.testing.assert_array_equal(first[key], second[key], err_msg=key)


def test_each_process_draws_for_its_part(both):
    first, second = (found["own_draws"]["drawn"] for found in both[:SIZE])
    assert first != second


def test_each_process_reads_its_part_of_a_dataset(both):
    first, second = (found["reads_its_part"]["read"] for found in both[:SIZE])
    assert first + second < 1.2 * 107 + 20  # all rows once, and few for checks


def test_a_fit_that_was_cut_off_goes_on_in_both_and_one_writes(both):
    first, second = (found["resumed"] for found in both[:SIZE])
    assert first["same"]
    assert first["written"] > 0 == second["written"]


def test_half_precision_with_scaled_gradients(both):
    found = both[0]["in_half_precision"]
    np.testing.assert_allclose(found["proba"], found["one"], atol=1e-2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("data", "have different data or parameters"),
        ("parameters", "have different data or parameters"),
        ("rows held out", "not in step.*train_split a random_state"),
        ("batch normalisation", "'1' of the module is a BatchNorm1d.*SyncBatchNorm.convert_sync_batchnorm"),
        ("look-ahead", "is a SyncBatchNorm.*without a meta-gradient"),
        ("own step", "CoTeachingNet has .*'train_step_single'"),
        ("state of one process", "differs from this one in .*'distributed', 'processes'"),
        ("disk", "read other states of 'cross_entropy'.*a disk that all hosts share"),
    ],
)
def test_what_could_not_be_right_is_refused_in_both(both, name, message):
    for found in both[:SIZE]:
        with pytest.raises(ValueError, match=message):
            raise ValueError(found["refused"][name])


# ---------------------------------------------------------------------------- one process
def test_without_a_process_group_the_error_says_how_to_start(blobs):
    with refused("start the program by 'torchrun.*init_process_group"):
        fit(CrossEntropyClassifier, blobs, distributed=True)
    with refused("distributed=2; give True or False", TypeError):
        fit(CrossEntropyClassifier, blobs, distributed=2)


@pytest.fixture
def group():
    """A process group with this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_group_of_one_gives_the_same_bits(group):
    for name in ("meta-transition", "EM"):
        one, other = fitted(name), fitted(name, distributed=True)
        for key, value in one.items():
            np.testing.assert_array_equal(other[key], value)


@pytest.mark.parametrize(
    ("cls", "params", "message"),
    [
        (EMTransitionClassifier, {"n_jobs": 2}, "n_jobs=2, but every process trains all folds"),
        (
            CrossEntropyClassifier,
            {"iterator_train": torch.utils.data.DataLoader},
            "iterator_train=.*divided by BatchLoader",
        ),
    ],
)
def test_parameters_that_are_for_one_process(group, blobs, cls, params, message):
    with refused(message):
        fit(cls, blobs, distributed=True, **params)


@given(st.integers(0, 50), st.integers(1, 9))
def test_shares_are_all_rows_once_and_no_process_has_none_to_compute(n, size):
    shares = [Share(rank, size) for rank in range(size)]
    assert [i for share in shares for i in range(n)[share.of(n)]] == list(range(n))
    parts = [len(range(n)[share.of(n)]) for share in shares]
    assert max(parts) - min(parts) <= 1
    for share, part in zip(shares, parts, strict=True):
        np.testing.assert_array_equal(share.taken(n)[:part], np.arange(n)[share.of(n)])
        assert len(share.taken(n)) == max(part, min(n, 1))


def test_one_process_alone_gives_back_what_it_is_given():
    x, rows = torch.randn(3, 2), data()
    assert ALONE.gathered(x, 3) is x
    assert ALONE.part(x) is x
    assert ALONE.summed([x])[0] is x
    assert ALONE.share.select(rows) is rows
    before = torch.get_rng_state()
    ALONE.begin_epoch()
    assert torch.equal(before, torch.get_rng_state())
