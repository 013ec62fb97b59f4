"""Noisy and clean rows in one step: against a loop by hand; posteriors of rows held out."""

import numpy as np
import pytest
import torch
from skorch.callbacks import EarlyStopping
from torch import nn
from torch.nn import functional as F

from noisytransition.losses import EMLoss, ForwardLoss
from noisytransition.nets import CleanBatches, HeldOut, JointNet, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise

RNG = np.random.default_rng(0)
NOISY = Rows(RNG.normal(size=(20, 4)), RNG.integers(3, size=20))
CLEAN = Rows(RNG.normal(size=(6, 4)), RNG.integers(3, size=6))
T = pair_noise(3, 0.3) * 0.85 + 0.05


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def train(net=JointNet, **params):
    shared = {"lr": 0.3, "max_epochs": 4, "batch_size": -1, "classes": np.arange(3), "verbose": 0}
    built = net(module(), **(shared | {"criterion": ForwardLoss, "criterion__transition_matrix": T} | params))
    return built.initialize().partial_fit(NOISY, NOISY.y)


@pytest.mark.parametrize("weight", [0.0, 0.4, 2.0])
def test_a_step_is_that_of_both_losses(weight):
    """Whole sets as batches: what is drawn does not matter."""
    trained = train(clean_batches=CleanBatches(CLEAN, -1), meta_weight=weight)
    twin = module()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.3)
    (x, y), (x_clean, y_clean) = (rows.batch(np.arange(len(rows))) for rows in (NOISY, CLEAN))
    for _ in range(4):
        optimizer.zero_grad()
        through = (torch.softmax(twin(x), 1) @ torch.as_tensor(T))[torch.arange(20), y]
        loss = -through.log().mean() + weight * F.cross_entropy(twin(x_clean), y_clean)
        loss.backward()
        optimizer.step()
    for ours, theirs in zip(trained.module_.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)  # T is held in single precision


def test_lbfgs_sees_the_same_clean_rows_in_all_its_evaluations():
    drawn = []

    class Counting(CleanBatches):
        def draw(self, net):
            drawn.append(1)
            return super().draw(net)

    net = train(
        clean_batches=Counting(CLEAN, 3),
        optimizer=torch.optim.LBFGS,
        max_epochs=2,
        criterion=EMLoss,
        criterion__rate=0.1,
    )
    assert len(drawn) == 2
    assert net.criterion_.n_batches == 2  # nor does T count a batch again


@pytest.mark.parametrize(("size", "drawn"), [(4, 4), (6, 6), (60, 6), (-1, 6)])
def test_clean_batches_repeat_no_row(size, drawn):
    net = NoisyLabelNet(module(), classes=[0, 1, 2]).initialize()
    x, y = CleanBatches(CLEAN, size).draw(net)
    assert len(np.unique(x.numpy(), axis=0)) == len(y) == drawn


def test_held_out_posteriors_are_those_after_each_epoch():
    held_out = HeldOut([NOISY, CLEAN], [1, 3])
    train(clean_batches=CleanBatches(CLEAN, -1), callbacks=[("held_out", held_out)])
    assert sorted(held_out.posteriors_) == [1, 3, 4]
    for epochs in (1, 3):
        other = train(clean_batches=CleanBatches(CLEAN, -1), max_epochs=epochs)
        for found, rows in zip(held_out.at(epochs), (NOISY, CLEAN), strict=True):
            np.testing.assert_allclose(found, other.predict_proba(rows), rtol=1e-6)
    assert held_out.at(9) is held_out.posteriors_[4]


def test_a_training_that_stops_early_gives_its_last_posteriors():
    held_out = HeldOut([CLEAN], [3, 4])
    stop = EarlyStopping("train_loss", patience=1, threshold=1e9, threshold_mode="abs")
    train(clean_batches=CleanBatches(CLEAN, -1), callbacks=[("stop", stop), ("held_out", held_out)])
    assert held_out.at(4)[0] is held_out.at(3)[0]
