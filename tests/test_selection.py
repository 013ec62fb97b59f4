"""Selection of an epoch after a training."""

import numpy as np
import torch
from skorch.callbacks import Callback
from training import lowest_loss

from noisytransition.losses import ForwardLoss
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.selection import BestCleanEpoch
from noisytransition.transition import pair_noise
from noisytransition.updates import PosteriorCounts


def trained(blobs, select, score, **params):
    """A net that kept an epoch, the scores of all epochs (lower is better), and the weights and T after each."""
    rows, scores, seen = Rows(np.float32(blobs[0]), blobs[1]), [], []

    class States(Callback):
        def on_epoch_end(self, net, **kwargs):
            scores.append(score(net))
            seen.append((net.module_.weight.detach().clone(), net.criterion_.transition_matrix))

    torch.manual_seed(0)
    loss, update = ForwardLoss(pair_noise(3, 0.3)), PosteriorCounts(0.5)
    params |= {"classes": np.arange(3), "verbose": 0, "callbacks": [("states", States())]}
    net = NoisyLabelNet(torch.nn.Linear(4, 3), criterion=loss, update=update, select=select, **params)
    return net.fit(rows, rows.label), scores, seen


def assert_kept(net, epoch):
    torch.testing.assert_close(net.module_.weight.detach(), epoch[0], rtol=0, atol=0)
    np.testing.assert_array_equal(net.criterion_.transition_matrix, epoch[1])


def test_the_best_clean_epoch_has_the_lowest_calibrated_loss_of_the_clean_samples(blobs):
    clean = Rows(np.float32(blobs[2]), blobs[3])

    def score(net):
        return lowest_loss(net.predict_proba(clean), clean.label)

    select = BestCleanEpoch(clean)
    net, losses, seen = trained(blobs, select, score, lr=1.0, optimizer__momentum=0.98, max_epochs=11)
    best = int(np.argmin(losses))
    assert 0 < best < len(losses) - 1
    assert select.best_epoch_ == best + 1
    np.testing.assert_allclose(net.history[:, "calibrated_clean_loss"], losses, rtol=1e-3)
    assert_kept(net, seen[best])
