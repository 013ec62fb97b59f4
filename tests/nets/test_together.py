"""Nets that are trained at once against single trainings, in double precision."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skorch.callbacks import Callback, EpochScoring, GradientNormClipping
from skorch.dataset import ValidSplit
from torch import nn

from noisytransition.nets import MLP, HeldOutPosteriors, NoisyLabelNet, Rows, Together, is_plain, is_small

ROUNDING = 1e-10


def rows_of(n, seed, shape=(5,)):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return Rows(rng.normal(size=(n, *shape)) + y.reshape(-1, *([1] * len(shape))), y)


def made(make, **params):
    """An initialised net of a module in double precision."""
    params = {"lr": 0.1, "batch_size": 16, "max_epochs": 4, "verbose": 0} | params
    return NoisyLabelNet(make().double(), **params).initialize()


def prepared(make, sizes, shape=(5,), callbacks=lambda: [], **params):
    """Nets with different weights, their rows, and their generators."""
    nets, rows, generators = [], [], []
    for seed, n in enumerate(sizes):
        torch.manual_seed(seed)
        nets.append(made(make, callbacks=callbacks(), **params))
        rows.append(rows_of(n, seed, shape))
        generators.append(torch.get_rng_state())
    return nets, rows, generators


def both_ways(*args, **params):
    """Nets that are trained one by one, and at once."""
    alone, rows, generators = prepared(*args, **params)
    for net, of_net, generator in zip(alone, rows, generators, strict=True):
        torch.set_rng_state(generator)
        net.partial_fit(of_net, of_net.label)
    together, rows, generators = prepared(*args, **params)
    Together(together, rows, generators).train()
    return alone, together


def assert_same(alone, together):
    for one, other in zip(alone, together, strict=True):
        for p, q in zip(one.module_.parameters(), other.module_.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=ROUNDING)
            kept, found = one.optimizer_.state[p], other.optimizer_.state[q]
            assert kept.keys() == found.keys()
            for name, value in kept.items():
                if value is not None:
                    torch.testing.assert_close(value, found[name], rtol=0, atol=ROUNDING)
        assert len(one.history) == len(other.history)
        for name in ("train_loss", "train_batch_count"):
            np.testing.assert_allclose(one.history[:, name], other.history[:, name], rtol=0, atol=ROUNDING)
        for name in ("train_loss", "train_batch_size"):
            for of_one, of_other in zip(*(net.history[:, "batches", :, name] for net in (one, other)), strict=True):
                np.testing.assert_allclose(of_one, of_other, rtol=0, atol=ROUNDING)


def mlp():
    return MLP(5, 3, hidden=(7, 4))


OPTIMIZERS = {
    "SGD": {},
    "momentum": {"optimizer__momentum": 0.9, "optimizer__nesterov": True, "optimizer__weight_decay": 0.1},
    "Adam": {"optimizer": torch.optim.Adam, "lr": 0.01},
    "AdamW": {"optimizer": torch.optim.AdamW, "lr": 0.01},
    "rates": {"optimizer__param_groups": [("3.*", {"lr": 0.5})]},
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimisers(optimizer):
    # 33 rows: the last one joins the batch before; 70: two more batches than the others have
    assert_same(*both_ways(mlp, (33, 40, 70), **OPTIMIZERS[optimizer]))


@pytest.mark.parametrize(
    "params",
    [
        {"criterion__label_smoothing": 0.2},
        {"batch_size": -1},
        {"iterator_train__drop_last": True},
        {"labels": "clean"},
        {"callbacks": lambda: [GradientNormClipping(0.5)]},
    ],
    ids=lambda params: next(iter(params)),
)
def test_settings(params):
    assert_same(*both_ways(mlp, (33, 20, 70), **params))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Linear(5, 3), (5,)),
        (lambda: nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU(), nn.Linear(4, 3)), (5,)),
        (lambda: MLP(6, 3, hidden=4), (2, 3)),
    ],
    ids=["linear", "no bias", "flattened"],
)
def test_modules(make, shape):
    assert is_small(make(), 3)
    assert_same(*both_ways(make, (33, 20, 41), shape))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=4), st.integers(1, 12))
def test_any_numbers_of_rows(sizes, batch_size):
    assert_same(*both_ways(mlp, sizes, batch_size=batch_size, max_epochs=2))


def test_a_net_is_the_same_to_rounding_in_any_company():
    (first, *_), _, _ = trained = prepared(mlp, (33, 40, 70))
    Together(*trained).train()
    alone = prepared(mlp, (33,))
    Together(*alone).train()
    for p, q in zip(first.module_.parameters(), alone[0][0].module_.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=ROUNDING)


def test_each_net_has_weights_of_its_own_afterwards():
    nets, rows, generators = prepared(mlp, (20, 20))
    Together(nets, rows, generators).train()
    weights = [p for net in nets for p in net.module_.parameters()]
    assert all(p.untyped_storage().nbytes() == p.nbytes for p in weights)
    assert all(p.grad is None for p in weights)
    before = copy.deepcopy(nets[1].module_.state_dict())
    nets[0].partial_fit(rows[0], rows[0].label)  # goes on
    for name, value in nets[1].module_.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


class Noted(Callback):
    """Notes all events, and what the net is at each."""

    def __init__(self):
        self.seen = []

    def note(self, event, net):
        weights = torch.cat([p.detach().flatten() for p in net.module_.parameters()])
        self.seen.append((event, len(net.history), float(weights.sum())))

    def on_train_begin(self, net, **kwargs):
        self.note("train begins", net)

    def on_train_end(self, net, **kwargs):
        self.note("train ends", net)

    def on_epoch_begin(self, net, dataset_train=None, **kwargs):
        self.note(f"epoch begins, {len(dataset_train)} rows", net)

    def on_epoch_end(self, net, dataset_train=None, **kwargs):
        self.note(f"epoch ends, {len(dataset_train)} rows", net)

    def on_batch_begin(self, net, batch=None, training=False):
        self.note(f"batch of {len(batch.label)} begins, {training}", net)

    def on_batch_end(self, net, batch=None, training=False, loss=None, y_pred=None):
        self.note(f"batch ends, {tuple(y_pred.shape)}, {loss:.7f}, {y_pred.abs().sum():.7f}", net)

    def on_grad_computed(self, net, named_parameters=None, **kwargs):
        sums = [f"{name} {p.grad.abs().sum():.7f}" for name, p in named_parameters]
        self.note(f"gradients {sums}", net)


def test_callbacks_see_what_they_see_in_a_single_training():
    alone, together = both_ways(mlp, (20, 33), callbacks=lambda: [("noted", Noted())])
    for one, other in zip(alone, together, strict=True):
        seen, expected = (dict(net.callbacks_)["noted"].seen for net in (other, one))
        assert [event for event, *_ in seen] == [event for event, *_ in expected]
        np.testing.assert_allclose([s[1:] for s in seen], [s[1:] for s in expected], rtol=0, atol=ROUNDING)


def test_predictions_between_epochs_draw_as_in_a_single_training():
    sets = [rows_of(12, 7)]
    alone, together = both_ways(mlp, (20, 33), callbacks=lambda: [("held_out", HeldOutPosteriors(sets, (1, 3), (2,)))])
    for one, other in zip(alone, together, strict=True):
        of_one, of_other = (dict(net.callbacks_)["held_out"] for net in (one, other))
        for epochs in (1, 2, 3, 4):
            np.testing.assert_allclose(of_one.after(epochs)[0], of_other.after(epochs)[0], rtol=0, atol=ROUNDING)


class Freeze(Callback):
    """Trains the last layer only, after two epochs."""

    def on_epoch_begin(self, net, **kwargs):
        for name, p in net.module_.named_parameters():
            p.requires_grad_(len(net.history) <= 2 or name.startswith("5"))


class Slower(Callback):
    """Lowers the step of one net."""

    def on_epoch_end(self, net, dataset_train=None, **kwargs):
        for group in net.optimizer_.param_groups:
            group["lr"] = 1 / len(dataset_train)


@pytest.mark.parametrize("callback", [Freeze, Slower])
def test_callbacks_may_change_what_is_trained_and_how_fast(callback):
    assert_same(*both_ways(mlp, (20, 33), callbacks=lambda: [callback()]))


def test_a_step_that_is_too_large_is_an_error():
    nets, rows, generators = prepared(mlp, (20, 33), lr=1e200)
    with pytest.raises(ValueError, match=r"the training loss is (nan|inf) in epoch .*lower lr"):
        Together(nets, rows, generators).train()


# ---------------------------------------------------------------------------- which nets
def frozen():
    module = mlp()
    module[1].weight.requires_grad_(False)
    return module


def hooked():
    module = mlp()
    module[1].register_forward_hook(lambda *args: None)
    return module


@pytest.mark.parametrize(
    "module",
    [
        frozen(),
        hooked(),
        MLP(5, 3, hidden=3000),
        nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 3)),
        nn.utils.parametrizations.weight_norm(nn.Linear(5, 3)),
    ],
    ids=["frozen", "hook", "many weights", "batch normalisation", "dropout", "parametrization"],
)
def test_modules_that_are_trained_alone(module):
    assert not is_small(module, 100)


class OwnStep(NoisyLabelNet):
    """A net with a step of its own."""


class OwnOptimizer(torch.optim.SGD):
    """An optimiser of the user's."""


class OwnLoss(nn.CrossEntropyLoss):
    """A loss of the user's."""


@pytest.mark.parametrize(
    "params",
    [
        {"optimizer": OwnOptimizer},
        {"optimizer": torch.optim.LBFGS},
        {"criterion": OwnLoss},
        {"criterion__weight": torch.ones(3)},
        {"criterion__reduction": "sum"},
        {"train_split": ValidSplit(3)},
        {"batch_transform": torch.neg},
        {"iterator_train__shuffle": False},
        {"iterator_train__num_workers": 1},
        {"iterator_train": torch.utils.data.DataLoader},
        {"precision": "bf16"},
        {"clean_weight": 1.0},
        {"compile": True},
    ],
    ids=lambda params: next(iter(params)),
)
def test_settings_that_are_trained_alone(params):
    net = NoisyLabelNet(MLP, module__n_in=5, module__n_out=3, verbose=0, **params | {"compile": False})
    net.initialize()
    net.compile = params.get("compile", False)  # compiling takes a compiler
    assert not is_plain(net)


def test_settings_that_are_trained_at_once():
    scored = [EpochScoring("accuracy", name="acc")]
    net = NoisyLabelNet(MLP, module__n_in=5, module__n_out=3, max_epochs=2, lr=0.5, verbose=1, callbacks=scored)
    assert is_plain(net.initialize())
    assert not is_plain(OwnStep(nn.Linear(5, 3)).initialize())


def test_losses_are_read_when_the_epoch_ends(monkeypatch):
    step = Together._step

    def watched(*args):
        with monkeypatch.context() as patch:
            for reading in ("tolist", "item", "numpy"):
                patch.setattr(torch.Tensor, reading, None)
            step(*args)

    monkeypatch.setattr(Together, "_step", watched)
    nets, rows, generators = prepared(mlp, [40, 25])
    Together(nets, rows, generators).train()
    assert {
        type(loss) for net in nets for of_epoch in net.history[:, "batches", :, "train_loss"] for loss in of_epoch
    } == {float}
