"""Samples of arrays, sparse matrices and Datasets; their batches, with the same draws as in torch's loader."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from noisytransition.nets import CleanBatches, DatasetRows, NoisyLabelNet, Rows
from noisytransition.nets._rows import Batch, BatchLoader, ProportionalSampler, noisy_and_clean, rows_at_once


def rows(n, form=np.asarray):
    return Rows(form(np.arange(3.0 * n).reshape(n, 3)), np.arange(n) % 2, group=np.arange(n) % 5)


class Squares(Dataset):
    """Dataset that simulates data on disk."""

    def __init__(self, n, as_pair=False):
        self.n, self.as_pair = n, as_pair

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = torch.tensor([float(i) ** 2])
        return (x, 99) if self.as_pair else x


# ---------------------------------------------------------------------------- columns
def test_a_torch_dataset_gives_inputs_and_the_columns_stay_beside_it():
    data = DatasetRows(Squares(5, as_pair=True), np.array([4, 3, 2, 1, 0]), group=np.arange(5))
    ((x, y),) = BatchLoader(data, batch_size=5)
    assert x.tolist() == [[0.0], [1.0], [4.0], [9.0], [16.0]]
    assert y.tolist() == [4, 3, 2, 1, 0]
    assert data[2][1] == 2
    part = data.take([4, 1]).take([1, 0])
    assert part.inputs().tolist() == [[1.0], [16.0]]
    assert part.label.tolist() == [3, 0]
    assert part.columns["group"].tolist() == [1, 4]


def test_two_sets_together_keep_the_columns_that_both_have():
    both = noisy_and_clean(rows(3).with_columns(index=np.arange(3)), rows(2))
    assert sorted(both.columns) == ["group", "is_clean", "label"]
    assert both.columns["is_clean"].tolist() == [False] * 3 + [True] * 2
    assert both.label.tolist() == [0, 1, 0, 0, 1]
    weighted = rows(1).with_columns(sample_weight=3.0)
    assert noisy_and_clean(rows(2), weighted).columns["sample_weight"].tolist() == [1, 1, 3]
    assert noisy_and_clean(weighted, rows(2)).columns["sample_weight"].tolist() == [3, 1, 1]
    squares = DatasetRows(Squares(2), [1, 0], group=[7, 8])
    for first, second in ((squares, Rows(np.ones((1, 1)), [1], group=[9])), (squares, squares)):
        ((x, _),) = BatchLoader(both := noisy_and_clean(first, second), batch_size=9)
        assert x.tolist() == [*first.inputs().tolist(), *second.inputs().tolist()]
        assert both.columns["group"].tolist() == [7, 8, *second.columns["group"]]


FORMS = {"array": np.asarray, "float32": np.float32, "sparse": csr_array}


@given(st.data(), st.sampled_from(list(FORMS)), st.sampled_from(list(FORMS)))
def test_two_sets_are_read_as_one_array(data, first, second):
    values = [np.arange(float(3 * n)).reshape(n, 3) + 100 * n for n in (4, 6)]
    sets = [Rows(FORMS[form](X)) for form, X in zip((first, second), values, strict=True)]
    picked = [data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1)) for X in values]
    both = noisy_and_clean(*(part.take(indices) for part, indices in zip(sets, picked, strict=True)))
    expected = np.concatenate(
        [FORMS[f](X[i]).astype(float) @ np.eye(3) for f, X, i in zip((first, second), values, picked, strict=True)]
    )
    np.testing.assert_array_equal(both.inputs(), expected)
    assert both.source.dtype == both.inputs().numpy().dtype == np.result_type(*(part.source.dtype for part in sets))
    indices = data.draw(st.lists(st.integers(-len(expected), len(expected) - 1)))
    np.testing.assert_array_equal(
        both.take(np.array(indices, dtype=int)).inputs(), expected[np.array(indices, dtype=int)]
    )


@pytest.mark.parametrize("form", [*FORMS.values(), lambda X: Squares(10)])
def test_two_sets_of_one_source_are_positions_in_it(form):
    """Inputs are not copied."""
    X = form(np.arange(30.0).reshape(10, 3))
    whole = (DatasetRows if isinstance(X, Dataset) else Rows)(X)
    both = noisy_and_clean(whole.take([7, 2]), whole.take([5]).take([0]))
    assert both.source is whole.source
    assert both.index.tolist() == [7, 2, 5]
    assert both.columns["is_clean"].tolist() == [False, False, True]
    assert torch.equal(both.inputs(), whole.take([7, 2, 5]).inputs())


# ---------------------------------------------------------------------------- batches
@given(st.integers(1, 40), st.integers(1, 12), st.booleans(), st.booleans())
def test_every_row_once_and_no_batch_of_one_after_another(n, batch_size, shuffle, drop_last):
    loader = BatchLoader(rows(n), batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
    batches = [x[:, 0].tolist() for x, _ in loader]
    assert len(batches) == len(loader)
    sizes = [len(b) for b in batches]
    seen = [x for batch in batches for x in batch]
    assert len(set(seen)) == len(seen)
    if not drop_last:
        assert sorted(seen) == [3.0 * i for i in range(n)]
        assert sizes == [n] or batch_size == 1 or min(sizes) > 1
    assert all(size in (batch_size, batch_size + 1) for size in sizes[:-1])


def test_torch_s_arguments_are_taken():
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    batches = list(BatchLoader(data, batch_size=3, collate_fn=lambda samples: (len(samples), torch.zeros(3))))
    assert [x for x, _ in batches] == [3, 3]


@pytest.mark.parametrize(("size", "drawn"), [(4, 4), (6, 6), (60, 6), (-1, 6)])
def test_clean_batches_repeat_no_row(size, drawn):
    net = NoisyLabelNet(nn.Linear(3, 2), classes=[0, 1]).initialize()
    clean = CleanBatches(rows(6), size)
    x, y = clean.draw(net)
    assert len(np.unique(x.numpy(), axis=0)) == len(y) == drawn


@pytest.mark.parametrize("size", [2, 8])
def test_clean_batches_have_rows_by_their_weights(size):
    torch.manual_seed(0)
    weighted = rows(8).with_columns(sample_weight=[4.0] + [1.0] * 4 + [0.5] * 3, label=range(8))
    net, clean = NoisyLabelNet(nn.Linear(3, 8), classes=range(8)).initialize(), CleanBatches(weighted, size)
    drawn = np.bincount(np.concatenate([clean.draw(net)[1].numpy() for _ in range(800)]), minlength=8)
    np.testing.assert_allclose(drawn / drawn.sum() * 9.5, weighted.columns["sample_weight"], atol=0.3)
    assert drawn.sum() == 800 * size


@pytest.mark.parametrize(
    ("X", "batch_size", "expected"),
    [
        (np.zeros((1, 64), dtype=np.float32), 32, 4096),
        (np.zeros((1, 32, 32, 3), dtype=np.uint8), 32, 170),
        (np.zeros((1, 10), dtype=np.int64), 32, 32),  # may be indices of an embedding
    ],
)
def test_more_rows_at_once_without_training_where_they_are_small(X, batch_size, expected):
    assert rows_at_once(Rows(X), batch_size) == expected


def test_predictions_do_not_depend_on_how_many_rows_come_at_once():
    X = np.random.default_rng(0).normal(size=(600, 64)).astype(np.float32)
    module = nn.Linear(64, 3)
    expected = torch.softmax(module(torch.tensor(X)), 1).detach()
    for given_, n_batches in (({}, 1), ({"iterator_valid__batch_size": 250}, 3)):
        net = NoisyLabelNet(module, batch_size=16, **given_).initialize()
        assert len(list(net.get_iterator(Rows(X)))) == n_batches
        np.testing.assert_allclose(net.predict_proba(Rows(X)), expected, atol=1e-6)


# ---------------------------------------------------------------------------- torch's loader
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
    st.sampled_from([np.asarray, csr_array]),
    st.sampled_from([None, torch.Generator()]),
)
def test_batches_and_draws_are_those_of_torch_s_loader(n, batch_size, shuffle, drop_last, parts, form, generator):
    data = subsets(rows(n, form), parts)
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


# ---------------------------------------------------------------------------- draws in proportion to weights
def counts(sampler):
    return np.bincount(list(sampler), minlength=len(sampler))


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30), st.integers(0, 100))
def test_each_row_comes_as_often_as_its_share_rounded_down_or_up(weights, seed):
    torch.manual_seed(seed)
    drawn, share = counts(ProportionalSampler(weights)), len(weights) * np.array(weights) / sum(weights)
    assert drawn.sum() == len(weights)
    assert ((drawn >= np.floor(share - 1e-9)) & (drawn <= np.ceil(share + 1e-9))).all()


def test_the_mean_over_epochs_is_the_share_and_the_order_differs():
    torch.manual_seed(0)
    assert len({tuple(ProportionalSampler(np.ones(20))) for _ in range(5)}) == 5
    sampler = ProportionalSampler([0.3, 1.2, 2.5, 1.0])
    mean = np.mean([counts(sampler) for _ in range(1000)], axis=0)
    np.testing.assert_allclose(mean, 4 * sampler.weights / sampler.weights.sum(), atol=0.06)


@pytest.mark.parametrize("how", [{"num_workers": 1}, {"collate_fn": default_collate}])
def test_the_loader_draws_alike_with_workers_and_with_a_function_of_samples(how):
    part = Subset(rows(40), np.arange(5, 35))
    plain, other = (BatchLoader(part, batch_size=8, shuffle=True, **given) for given in ({}, how))
    torch.testing.assert_close(epoch(lambda: plain), epoch(lambda: other), rtol=0, atol=0)
