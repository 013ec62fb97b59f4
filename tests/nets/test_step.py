"""Training step of a net, with columns for the loss. Tests of methods compare fits with plain loops."""

import numpy as np
import pytest
import torch
from skorch.callbacks import EarlyStopping
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from noisytransition.fitting._cross_fitting import HeldOutPosteriors
from noisytransition.losses import ForwardLoss, GoldCorrectionLoss
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.transition import pair_noise
from noisytransition.updates import MetaGradient, PosteriorCounts, Update

RNG = np.random.default_rng(0)
NOISY = Rows(RNG.normal(size=(20, 4)), RNG.integers(3, size=20), is_clean=np.arange(20) < 5)
CLEAN = Rows(RNG.normal(size=(6, 4)), RNG.integers(3, size=6))
T = pair_noise(3, 0.3) * 0.85 + 0.05


def train(**params):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    shared = {"lr": 0.3, "max_epochs": 4, "batch_size": -1, "classes": np.arange(3), "verbose": 0}
    net = NoisyLabelNet(module, **(shared | {"criterion": ForwardLoss(T)} | params))
    return net.initialize().partial_fit(NOISY, NOISY.label)


def test_lbfgs_draws_clean_rows_and_counts_a_batch_once():
    drawn = []

    class Counting(CleanBatches):
        def draw(self, net):
            drawn.append(1)
            return super().draw(net)

    lbfgs = {"optimizer": torch.optim.LBFGS, "max_epochs": 2}
    train(update=MetaGradient(Counting(CLEAN, 3), 0.1), **lbfgs)
    assert len(drawn) == 2
    update = PosteriorCounts(0.1)
    train(update=update, **lbfgs)
    assert update.n_batches_ == 2


# ---------------------------------------------------------------------------- columns
def test_a_loss_gets_the_columns_that_it_names_in_training_and_validation():
    net = train(criterion=GoldCorrectionLoss(T), train_split=predefined_split(NOISY), max_epochs=1, lr=0.0)
    plain = GoldCorrectionLoss(T)
    logits, y = net.module_(NOISY.inputs()).detach(), torch.tensor(NOISY.label)
    expected = plain(logits, y, is_clean=torch.tensor(NOISY.columns["is_clean"])).item()
    assert net.history[0, "train_loss"] == pytest.approx(expected)
    assert net.history[0, "valid_noisy_loss"] == pytest.approx(expected)
    beside = predefined_split(TensorDataset(NOISY.inputs(), y))  # the user's samples are noisy
    net = train(criterion=GoldCorrectionLoss(T), train_split=beside, max_epochs=1, lr=0.0)
    assert net.history[0, "valid_noisy_loss"] == pytest.approx(ForwardLoss(T)(logits, y).item())


class PlainLoader(DataLoader):
    """A user's loader of pairs of inputs and labels."""

    def __init__(self, dataset, **kwargs):
        super().__init__([dataset[i] for i in range(len(dataset))], **kwargs)


def test_a_loader_of_the_user_s_serves_a_loss_of_labels():
    np.testing.assert_allclose(
        train(iterator_train=PlainLoader).history[:, "train_loss"], train().history[:, "train_loss"], rtol=1e-6
    )


# ---------------------------------------------------------------------------- updates
def test_an_update_is_called_before_and_after_each_step():
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
    train(update=update, max_epochs=2)
    first, second, third, fourth = update.seen_
    assert torch.equal(second, third)
    assert not torch.equal(first, second)
    assert not torch.equal(third, fourth)
    assert len(update.transition_history_) == 3


# ---------------------------------------------------------------------------- posteriors of held-out rows
def test_held_out_posteriors_are_those_after_each_epoch():
    held_out = HeldOutPosteriors([NOISY, CLEAN], [1, 3])
    train(callbacks=[("held_out", held_out)])
    assert sorted(held_out.posteriors_) == [1, 3, 4]
    for epochs in (1, 3):
        other = train(max_epochs=epochs)
        for found, rows in zip(held_out.after(epochs), (NOISY, CLEAN), strict=True):
            np.testing.assert_allclose(found, other.predict_proba(rows), rtol=1e-6)
    assert held_out.after(9) is held_out.posteriors_[4]


def test_a_training_that_stops_early_gives_its_last_posteriors():
    held_out = HeldOutPosteriors([CLEAN], [3, 4])
    stop = EarlyStopping("train_loss", patience=1, threshold=1e9, threshold_mode="abs")
    train(callbacks=[("stop", stop), ("held_out", held_out)])
    assert held_out.after(4)[0] is held_out.after(3)[0]
