"""The faster loop has no visible effect: callbacks, modules and optimisers behave as in skorch."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, LRScheduler
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from training import fit

from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient._methods import METHODS
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise
from noisytransition.updates import MetaGradient, PosteriorCounts

RNG = np.random.default_rng(0)
ROWS = Rows(RNG.normal(size=(20, 4)).astype(np.float32), RNG.integers(3, size=20))
EVENTS = ["on_batch_begin", "on_grad_computed", "on_batch_end"]


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


def set_on_instance(seen):
    callback = Callback()
    for name in EVENTS:
        setattr(callback, name, lambda net, name=name, **kwargs: seen.append(name))
    return callback


@pytest.mark.parametrize("make", [Noting, set_on_instance])
def test_a_callback_with_a_method_is_called_at_each_batch(make):
    seen = []
    train(callbacks=[("noting", make(seen))])
    assert [name for name in seen if name in EVENTS] == EVENTS * 8


# ---------------------------------------------------------------------------- losses are read when the epoch ends
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


@pytest.mark.parametrize("method", [None, "factored", *METHODS])
@pytest.mark.parametrize("network", [lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), module])
def test_no_step_waits_for_the_device(waits, network, method):
    update = PosteriorCounts(0.1) if method is None else MetaGradient(CleanBatches(ROWS, 5), 0.1, method=method)
    if method == "factored" and network is module:
        pytest.skip("this method takes Linear layers and ReLU alone")
    net = train(network(), criterion=ForwardLoss(pair_noise(3, 0.2)), update=update)
    assert not waits
    assert {type(batch["train_loss"]) for epoch in net.history for batch in epoch["batches"]} == {float}
    assert net._unread is None


@pytest.mark.parametrize("cls", [cls for cls in CLASSIFIERS if cls.__module__.startswith("noisytransition")])
def test_no_step_of_an_estimator_waits_for_the_device(waits, blobs, cls):
    if cls.__name__ in ("TRevisionClassifier", "MWNetClassifier"):
        pytest.skip("Adam counts its steps on the CPU")
    fit(cls, blobs)
    assert not waits


def kinds(net):
    """Types of the losses of the present epoch's batches."""
    return {type(batch["train_loss"]) for batch in net.history[-1]["batches"] if "train_loss" in batch}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("reads", [True, False])
def test_a_callback_sees_numbers_unless_it_says_that_it_does_not_look(event, reads):
    seen, looking = set(), Callback()
    looking.reads_batches = reads

    def look(net, **kwargs):
        seen.update(kinds(net))

    setattr(looking, event, look)
    train(callbacks=[("looking", looking)])
    assert seen == {float if reads else torch.Tensor}


def test_an_update_of_the_user_s_sees_numbers():
    seen = set()

    class Seeing(PosteriorCounts):
        def before_step(self, net, batch):
            seen.update(kinds(net))

    train(criterion=ForwardLoss(pair_noise(3, 0.2)), update=Seeing(0.1))
    assert seen == {float}


def test_a_net_of_the_user_s_sees_numbers():
    seen = set()

    class Own(NoisyLabelNet):
        def train_step(self, batch, **fit_params):
            seen.update(kinds(self))
            return super().train_step(batch, **fit_params)

    train(net=Own)
    assert seen == {float}


@pytest.mark.parametrize("schedule", ["epoch", "batch"])
def test_a_schedule_by_epochs_does_not_look(waits, schedule):
    train(callbacks=[("schedule", LRScheduler("StepLR", step_size=1, step_every=schedule))])
    assert bool(waits) == (schedule == "batch")


def test_other_values_of_batches_are_kept():
    class Recording(Callback):
        reads_batches = False

        def on_batch_end(self, net, **kwargs):
            net.record_batch("three", torch.arange(3))
            net.record_batch("whole", torch.tensor(2**24 + 1))

    batch = train(callbacks=[("recording", Recording())]).history[-1]["batches"][0]
    assert batch["three"].tolist() == [0, 1, 2]
    assert batch["whole"] == 2**24 + 1


def test_losses_of_an_epoch_that_is_cut_off_are_numbers():
    class Cut(Callback):
        reads_batches = False

        def on_batch_end(self, net, **kwargs):
            if len(net.history) == 2:
                raise RuntimeError

    net = NoisyLabelNet(
        module(), lr=0.1, max_epochs=2, batch_size=5, classes=np.arange(3), callbacks=[Cut()], verbose=0
    )
    with pytest.raises(RuntimeError):
        net.fit(ROWS, ROWS.label)
    assert [[type(batch["train_loss"]) for batch in epoch["batches"]] for epoch in net.history] == [
        [float] * 4,
        [float],
    ]


# ---------------------------------------------------------------------------- optimisers
