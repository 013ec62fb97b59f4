"""The loop behaves as in skorch, and a step waits for a GPU to read its losses; columns, updates, held-out samples."""

from functools import partial

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from skorch.helper import predefined_split
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset
from training import On

from noisytransition.fitting._cross_fitting import HeldOutPosteriors
from noisytransition.losses import ForwardLoss, GoldCorrectionLoss
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise
from noisytransition.updates import MetaGradient, PosteriorCounts, Update

RNG = np.random.default_rng(0)
ROWS = Rows(RNG.normal(size=(20, 4)).astype(np.float32), RNG.integers(3, size=20))


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 3))


def train(built=None, net=NoisyLabelNet, rows=ROWS, **params):
    built = module() if built is None else built
    settings = {"lr": 0.1, "max_epochs": 2, "batch_size": 5, "classes": np.arange(3), "verbose": 0} | params
    torch.manual_seed(1)
    return net(built, **settings).initialize().partial_fit(rows, rows.label)


def noting(seen):
    """Callback that notes its calls, what is in the history of the batch by then, and names of parameters."""

    def note(event, net, named_parameters=(), **kwargs):
        seen.append((event, sorted(net.history[-1, "batches"][-1]), [name for name, _ in named_parameters]))

    return [("noting", On(**{event: partial(note, event) for event in ("batch_begin", "grad_computed", "batch_end")}))]


def test_a_training_is_that_of_skorch_to_the_bit():
    called, expected = [], []
    ours = train(callbacks=noting(called))
    own = {"criterion": nn.CrossEntropyLoss, "train_split": None, "iterator_train__shuffle": True}
    theirs = train(net=NeuralNetClassifier, callbacks=noting(expected), **own)
    assert len(called) == 24
    assert called == expected
    for name, value in ours.module_.state_dict().items():
        assert torch.equal(value, theirs.module_.state_dict()[name]), name
    for mine, other in zip(ours.history, theirs.history, strict=True):
        assert mine["batches"] == other["batches"]
        assert {k: v for k, v in mine.items() if k != "dur"} == {k: v for k, v in other.items() if k != "dur"}


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


def mlp():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


@pytest.mark.parametrize(
    ("network", "method"),
    [
        (mlp, "factored"),
        *((network, name) for network in (mlp, module) for name in (None, "dual", "double-vjp", "difference")),
    ],
)
def test_a_step_waits_for_its_losses_alone(monkeypatch, network, method):
    epoch, waits = NoisyLabelNet.run_single_epoch, []

    def watched(*args, **kwargs):
        with Waiting(waits):
            epoch(*args, **kwargs)

    monkeypatch.setattr(NoisyLabelNet, "run_single_epoch", watched)
    update = PosteriorCounts(0.1) if method is None else MetaGradient(CleanBatches(ROWS, 5), 0.1, method=method)
    net = train(network(), criterion=ForwardLoss(pair_noise(3, 0.2)), update=update)
    losses = [value for epoch in net.history for batch in epoch["batches"] for k, value in batch.items() if "loss" in k]
    assert {type(loss) for loss in losses} == {float}
    assert waits == ["_local_scalar_dense"] * len(losses)


# ---------------------------------------------------------------------------- a step, with columns for the loss
NOISY = Rows(RNG.normal(size=(20, 4)), RNG.integers(3, size=20), is_clean=np.arange(20) < 5)
CLEAN = Rows(RNG.normal(size=(6, 4)), RNG.integers(3, size=6))
T = pair_noise(3, 0.3) * 0.85 + 0.05


def trained(**params):
    torch.manual_seed(0)
    smooth = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    own = {"lr": 0.3, "max_epochs": 4, "batch_size": -1, "criterion": ForwardLoss(T)}
    return train(smooth, rows=NOISY, **own | params)


# ---------------------------------------------------------------------------- columns
def test_a_loss_gets_the_columns_that_it_names_in_training_and_validation():
    net = trained(criterion=GoldCorrectionLoss(T), train_split=predefined_split(NOISY), max_epochs=1, lr=0.0)
    plain = GoldCorrectionLoss(T)
    logits, y = net.module_(NOISY.inputs()).detach(), torch.tensor(NOISY.label)
    expected = plain(logits, y, is_clean=torch.tensor(NOISY.columns["is_clean"])).item()
    assert net.history[0, "train_loss"] == pytest.approx(expected)
    assert net.history[0, "valid_noisy_loss"] == pytest.approx(expected)
    beside = predefined_split(TensorDataset(NOISY.inputs(), y))  # the user's samples are noisy
    net = trained(criterion=GoldCorrectionLoss(T), train_split=beside, max_epochs=1, lr=0.0)
    assert net.history[0, "valid_noisy_loss"] == pytest.approx(ForwardLoss(T)(logits, y).item())


class PlainLoader(DataLoader):
    """A user's loader of pairs of inputs and labels."""

    def __init__(self, dataset, **kwargs):
        super().__init__([dataset[i] for i in range(len(dataset))], **kwargs)


def test_a_loader_of_the_user_s_serves_a_loss_of_labels():
    found, expected = (net.history[:, "train_loss"] for net in (trained(iterator_train=PlainLoader), trained()))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# ---------------------------------------------------------------------------- updates
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.LBFGS])
def test_an_update_is_called_once_before_and_after_each_step(optimizer):
    """LBFGS computes the loss several times in a step."""

    class Noting(Update):
        def on_train_begin(self, net, **kwargs):
            super().on_train_begin(net, **kwargs)
            self.seen_ = []

        def before_step(self, net, batch):
            self.seen_.append(net.module_[0].weight.detach().clone())

        def after_step(self, net, batch, logits):
            assert not logits.requires_grad
            torch.testing.assert_close(len(logits), len(batch.label))
            self.seen_.append(net.module_[0].weight.detach().clone())

    update = Noting()
    trained(update=update, max_epochs=2, optimizer=optimizer)
    first, second, third, fourth = update.seen_
    assert torch.equal(second, third)
    assert not torch.equal(first, second)
    assert not torch.equal(third, fourth)
    assert len(update.transition_history_) == 3


# ---------------------------------------------------------------------------- posteriors of held-out rows
def test_held_out_posteriors_are_those_after_each_epoch():
    held_out = HeldOutPosteriors([NOISY, CLEAN], [1, 3])
    trained(callbacks=[("held_out", held_out)])
    assert sorted(held_out.posteriors_) == [1, 3, 4]
    for epochs in (1, 3):
        other = trained(max_epochs=epochs)
        for found, rows in zip(held_out.after(epochs), (NOISY, CLEAN), strict=True):
            np.testing.assert_allclose(found, other.predict_proba(rows), rtol=1e-6)
    assert held_out.after(9) is held_out.posteriors_[4]


def test_a_training_that_stops_early_gives_its_last_posteriors():
    held_out = HeldOutPosteriors([CLEAN], [3, 4])
    stop = EarlyStopping("train_loss", patience=1, threshold=1e9, threshold_mode="abs")
    trained(callbacks=[("stop", stop), ("held_out", held_out)])
    assert held_out.after(4)[0] is held_out.after(3)[0]
