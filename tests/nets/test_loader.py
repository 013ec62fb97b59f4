"""Batches without torch's loader: the same samples and random draws as with it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch.utils.data import DataLoader, RandomSampler, Subset, WeightedRandomSampler

from noisytransition.nets import Rows, SparseRows
from noisytransition.nets._rows import Batch, BatchLoader


def rows(n, kind=Rows):
    X = np.arange(3.0 * n).reshape(n, 3)
    return kind(csr_array(X) if kind is SparseRows else X, np.arange(n) % 2, group=np.arange(n) % 5)


def subsets(data, parts):
    for part in parts:
        data = Subset(data, [i for i in range(len(data)) if i % part != 1])
    return data


def epoch(batches):
    """Two epochs of batches, and the state of the generator after them."""
    torch.manual_seed(3)
    found = [batch for _ in range(2) for batch in batches()]
    return [[b.x, b.label, b.columns["group"]] for b in found], torch.get_rng_state()


def same_as_torch_s(loader):
    """Compare batches and draws with those of torch's loader."""
    ours, state = epoch(lambda: loader)
    theirs, expected = epoch(lambda: map(Batch.of, DataLoader.__iter__(loader)))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert torch.equal(state, expected)


@given(
    st.integers(2, 30),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(2, 4), max_size=2),
    st.sampled_from([Rows, SparseRows]),
    st.sampled_from([None, torch.Generator()]),
)
def test_batches_and_draws_are_those_of_torch_s_loader(n, batch_size, shuffle, drop_last, parts, kind, generator):
    data = subsets(rows(n, kind), parts)
    given = {"shuffle": shuffle, "drop_last": drop_last, "generator": generator}
    same_as_torch_s(BatchLoader(data, batch_size=batch_size, **given))


@pytest.mark.parametrize(
    "sampler",
    [RandomSampler(range(8), replacement=True, num_samples=20), WeightedRandomSampler(torch.arange(8.0), 12)],
)
def test_a_sampler_of_the_user_s_draws_as_in_torch_s_loader(sampler):
    loader = BatchLoader(rows(8), batch_size=3, sampler=sampler)
    same_as_torch_s(loader)
    assert sum(len(batch.label) for batch in loader) == len(sampler)


@pytest.mark.parametrize("indices", [[2, 0, 2], [-1], [True, False, True, False], range(1, 3)])
def test_rows_of_an_array_are_those_of_indexing(indices):
    X, indices = np.asarray(np.arange(24).reshape(4, 3, 2), order="F"), np.asarray(indices)
    np.testing.assert_array_equal(Rows(X).take(indices).X, X[indices])
