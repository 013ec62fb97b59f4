import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

from noisytransition.nets import BatchLoader, DatasetRows, Rows


def rows(n):
    return Rows(np.arange(3.0 * n).reshape(n, 3), np.arange(n) % 2)


class Squares(Dataset):
    """Stands for data on disk."""

    def __init__(self, n, as_pair=False):
        self.n, self.as_pair = n, as_pair

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = torch.tensor([float(i) ** 2])
        return (x, 99) if self.as_pair else x


def test_batches_come_in_torch_s_own_order():
    torch.manual_seed(3)
    theirs = [*DataLoader(rows(50), batch_size=8, shuffle=True), torch.rand(1)]
    torch.manual_seed(3)
    ours = [*BatchLoader(rows(50), batch_size=8, shuffle=True), torch.rand(1)]
    for (x, y), (x_, y_) in zip(ours[:-1], theirs[:-1], strict=True):
        assert torch.equal(x, x_)
        assert torch.equal(y, y_)
    assert torch.equal(ours[-1], theirs[-1]), "as many random numbers were drawn"


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


def test_labels_stay_with_their_rows():
    for x, y in BatchLoader(rows(30), batch_size=7, shuffle=True):
        assert torch.equal((x[:, 0] / 3).long() % 2, y)


@pytest.mark.parametrize("as_pair", [False, True])
def test_a_torch_dataset_gives_inputs_and_the_array_gives_labels(as_pair):
    data = DatasetRows(Squares(5, as_pair), np.array([4, 3, 2, 1, 0]))
    ((x, y),) = BatchLoader(data, batch_size=5)
    assert x.tolist() == [[0.0], [1.0], [4.0], [9.0], [16.0]]
    assert y.tolist() == [4, 3, 2, 1, 0]
    assert data[2][1] == 2
    part = data.subset([4, 1])
    assert part.batch([0, 1])[0].tolist() == [[16.0], [1.0]]
    assert part.y.tolist() == [0, 3]


def test_subsets_and_worker_processes():
    part = rows(10).subset(np.array([3, 4]))
    assert part.batch([1])[0].tolist() == [[12.0, 13.0, 14.0]]
    ((x, _),) = BatchLoader(rows(4), batch_size=4, num_workers=1)
    assert torch.equal(x, torch.arange(12.0).reshape(4, 3).double())


def test_torch_s_arguments_are_taken():
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    batches = list(BatchLoader(data, batch_size=3, collate_fn=lambda samples: len(samples)))
    assert batches == [3, 3]
    torch.manual_seed(0)
    sampled = BatchLoader(rows(6), batch_size=20, sampler=RandomSampler(range(6), replacement=True, num_samples=20))
    assert len(next(iter(sampled))[1]) == 20
