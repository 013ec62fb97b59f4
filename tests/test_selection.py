"""Selection of an epoch after a training."""

import numpy as np
import torch
from training import On, lowest_loss

from noisytransition.losses import ForwardLoss
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.selection import BestCleanEpoch, BestEpoch
from noisytransition.transition import pair_noise
from noisytransition.updates import PosteriorCounts


def test_the_best_clean_epoch_has_the_lowest_calibrated_loss_of_the_clean_samples(blobs):
    """T is learned too, and kept with the weights."""
    rows, clean = (Rows(np.float32(X), y) for X, y in (blobs[:2], blobs[2:4]))
    losses, epochs = [], []

    def note(net, **kwargs):
        losses.append(lowest_loss(net.predict_proba(clean), clean.label))
        epochs.append((net.module_.weight.detach().clone(), net.criterion_.transition_matrix))

    torch.manual_seed(0)
    select = BestCleanEpoch(clean)
    parts = {"criterion": ForwardLoss(pair_noise(3, 0.3)), "update": PosteriorCounts(0.5), "select": select}
    params = {"lr": 1.0, "optimizer__momentum": 0.98, "max_epochs": 11, "classes": np.arange(3), "verbose": 0}
    net = NoisyLabelNet(torch.nn.Linear(4, 3), **parts, **params, callbacks=[("epochs", On(epoch_end=note))])
    net.fit(rows, rows.label)
    best = int(np.argmin(losses))
    assert 0 < best < len(losses) - 1
    assert select.best_epoch_ == best + 1
    np.testing.assert_allclose(net.history[:, "calibrated_clean_loss"], losses, rtol=1e-3)
    weight, T = epochs[best]
    torch.testing.assert_close(net.module_.weight.detach(), weight, rtol=0, atol=0)
    np.testing.assert_array_equal(net.criterion_.transition_matrix, T)


def test_the_best_epoch_restores_state_that_is_no_tensor(blobs):
    class Counting(torch.nn.Linear):
        n_calls = 0

        def forward(self, x):
            self.n_calls += self.training
            return super().forward(x)

        def get_extra_state(self):
            return {"n_calls": self.n_calls}

        def set_extra_state(self, state):
            self.n_calls = state["n_calls"]

    rows = Rows(np.float32(blobs[0]), blobs[1])
    select = BestEpoch("epoch")  # the first epoch is the best
    params = {"max_epochs": 3, "batch_size": -1, "classes": np.arange(3), "verbose": 0}
    net = NoisyLabelNet(Counting(4, 3), select=select, **params)
    net.fit(rows, rows.label)
    assert select.best_epoch_ == net.module_.n_calls == 1
