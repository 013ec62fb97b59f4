"""Selection of an epoch after a training."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from training import lowest_loss

from noisytransition.losses import ForwardLoss
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.selection import BestCleanEpoch, BestEpoch
from noisytransition.transition import pair_noise
from noisytransition.updates import PosteriorCounts


@pytest.mark.parametrize(
    ("monitor", "lower", "lr"), [("valid_noisy_loss", True, 20.0), ("valid_noisy_acc", False, 2.0)]
)
def test_the_best_epoch_s_weights_and_T_come_back(blobs, monitor, lower, lr):
    X, y, *_ = blobs
    rows, seen = Rows(X.astype(np.float32), y), []

    class States(Callback):
        def on_epoch_end(self, net, **kwargs):
            seen.append((net.module_.weight.detach().clone(), net.criterion_.transition_matrix))

    torch.manual_seed(0)
    net = NoisyLabelNet(
        torch.nn.Linear(4, 3),
        criterion=ForwardLoss(pair_noise(3, 0.3)),
        update=PosteriorCounts(0.5),
        select=BestEpoch(monitor, lower_is_better=lower),
        lr=lr,
        max_epochs=12,
        train_split=ValidSplit(5, stratified=False),
        classes=np.arange(3),
        verbose=0,
        callbacks=[("states", States())],
    ).fit(rows, rows.label)
    scores = np.array(net.history[:, monitor]) * (1 if lower else -1)
    best = int(scores.argmin())
    assert best < 11
    torch.testing.assert_close(net.module_.weight.detach(), seen[best][0], rtol=0, atol=0)
    np.testing.assert_array_equal(net.criterion_.transition_matrix, seen[best][1])
    assert not np.array_equal(seen[best][1], seen[-1][1])


def test_the_best_clean_epoch_has_the_lowest_calibrated_loss_of_the_clean_samples(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    rows, clean, losses, seen = Rows(np.float32(X), y), Rows(np.float32(X_clean), y_clean), [], []

    class Twin(Callback):
        def on_epoch_end(self, net, **kwargs):
            losses.append(lowest_loss(net.predict_proba(clean), y_clean))
            seen.append((net.module_.weight.detach().clone(), net.criterion_.transition_matrix))

    torch.manual_seed(0)
    select = BestCleanEpoch(clean)
    net = NoisyLabelNet(
        torch.nn.Linear(4, 3),
        criterion=ForwardLoss(pair_noise(3, 0.3)),
        update=PosteriorCounts(0.5),
        select=select,
        lr=1.0,
        optimizer__momentum=0.98,
        max_epochs=11,
        classes=np.arange(3),
        verbose=0,
        callbacks=[("twin", Twin())],
    ).fit(rows, rows.label)
    best = int(np.argmin(losses))
    assert 0 < best < len(losses) - 1
    assert select.best_epoch_ == best + 1
    np.testing.assert_allclose(net.history[:, "calibrated_clean_loss"], losses, rtol=1e-3)
    torch.testing.assert_close(net.module_.weight.detach(), seen[best][0], rtol=0, atol=0)
    np.testing.assert_array_equal(net.criterion_.transition_matrix, seen[best][1])
