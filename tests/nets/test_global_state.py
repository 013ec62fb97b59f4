"""One fit of a process has PyTorch's generators."""

import pytest
import torch

from noisytransition.nets import seed_generators


@pytest.mark.parametrize("has_accelerator", [False, True])
def test_seeded_numbers_are_those_of_torch(monkeypatch, has_accelerator):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: has_accelerator)
    with torch.random.fork_rng(devices=[]):
        seed_generators(5)
        drawn = torch.rand(3)
        torch.manual_seed(5)
        assert torch.equal(drawn, torch.rand(3))


def test_generators_of_accelerators_are_seeded_where_there_are_some(monkeypatch):
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    with torch.random.fork_rng(devices=[]):
        for has_accelerator in (False, True):
            monkeypatch.setattr(torch.accelerator, "is_available", lambda has=has_accelerator: has)
            seed_generators(7)
    assert seeds == [7]
