"""The loop: callbacks, modules and optimisers behave as in skorch, and a step waits for a GPU to read its losses."""

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient._methods import METHODS
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise
from noisytransition.updates import MetaGradient, PosteriorCounts

RNG = np.random.default_rng(0)
ROWS = Rows(RNG.normal(size=(20, 4)).astype(np.float32), RNG.integers(3, size=20))


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 3))


def train(built=None, net=NoisyLabelNet, **params):
    built = module() if built is None else built
    settings = {"lr": 0.1, "max_epochs": 2, "batch_size": 5, "classes": np.arange(3), "verbose": 0} | params
    torch.manual_seed(1)
    return net(built, **settings).initialize().partial_fit(ROWS, ROWS.label)


def test_a_training_is_that_of_skorch_to_the_bit():
    ours = train()
    theirs = train(
        net=NeuralNetClassifier, criterion=nn.CrossEntropyLoss, train_split=None, iterator_train__shuffle=True
    )
    for name, value in ours.module_.state_dict().items():
        assert torch.equal(value, theirs.module_.state_dict()[name]), name
    for mine, other in zip(ours.history, theirs.history, strict=True):
        assert mine["batches"] == other["batches"]
        assert {k: v for k, v in mine.items() if k != "dur"} == {k: v for k, v in other.items() if k != "dur"}


# ---------------------------------------------------------------------------- callbacks
class Noting(Callback):
    def __init__(self, seen):
        self.seen = seen

    def on_batch_begin(self, net, **kwargs):
        self.seen.append("on_batch_begin")

    def on_grad_computed(self, net, named_parameters, **kwargs):
        self.seen.append("on_grad_computed")
        assert [name for name, _ in named_parameters] == [name for name, _ in net.module_.named_parameters()]

    def on_batch_end(self, net, **kwargs):
        self.seen.append("on_batch_end")
        assert net.history[-1, "batches", -1, "train_batch_size"] == 5


def test_a_callback_is_called_at_each_batch():
    seen = []
    train(callbacks=[("noting", Noting(seen))])
    assert seen == ["on_batch_begin", "on_grad_computed", "on_batch_end"] * 8


# ---------------------------------------------------------------------------- what a GPU is waited for
# operators that make a number of what is on a device, or whose output's size depends on it: a GPU is waited for
WAITING = {"_local_scalar_dense", "nonzero", "equal", "masked_select", "_unique2", "repeat_interleave"}


class Waiting(TorchDispatchMode):
    """Record the operators that would wait for a GPU."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        of_device = name != "_local_scalar_dense" or args[0].dtype is not torch.int64  # a loader's seed is an integer
        self.seen += [name] if name in WAITING and of_device else []
        return func(*args, **kwargs or {})


@pytest.fixture
def waits(monkeypatch):
    """Return the operators of epochs that would wait for a GPU."""
    epoch, seen = NoisyLabelNet.run_single_epoch, []

    def watched(*args, **kwargs):
        with Waiting(seen):
            epoch(*args, **kwargs)

    monkeypatch.setattr(NoisyLabelNet, "run_single_epoch", watched)
    return seen


def mlp():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


@pytest.mark.parametrize(
    ("network", "method"),
    [(mlp, "factored"), *((network, name) for network in (mlp, module) for name in (None, *METHODS))],
)
def test_a_step_waits_for_its_losses_alone(waits, network, method):
    update = PosteriorCounts(0.1) if method is None else MetaGradient(CleanBatches(ROWS, 5), 0.1, method=method)
    net = train(network(), criterion=ForwardLoss(pair_noise(3, 0.2)), update=update)
    losses = [value for epoch in net.history for batch in epoch["batches"] for k, value in batch.items() if "loss" in k]
    assert {type(loss) for loss in losses} == {float}
    assert waits == ["_local_scalar_dense"] * len(losses)
