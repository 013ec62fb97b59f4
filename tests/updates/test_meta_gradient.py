import copy
from functools import partial

import numpy as np
import pytest
import torch
from reference import algorithm_1 as twin
from skorch.callbacks import LRScheduler
from torch import nn
from torch.nn import functional as F
from training import fit as fit_blobs

from noisytransition import MetaTransitionClassifier
from noisytransition.losses import ForwardLoss
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.updates import MetaGradient

pytestmark = pytest.mark.usefixtures("float64")
T_START = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


def fit(blobs, **params):
    """Fit the algorithm with its last network and T."""
    return fit_blobs(MetaTransitionClassifier, blobs, refit=False, **params)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["mlp", "batch-norm"])
def test_a_fit_on_whole_batches_is_algorithm_1(blobs, kind, normalize):
    X, y, X_clean, y_clean, *_ = blobs
    torch.manual_seed(0)
    between = [nn.BatchNorm1d(8), nn.Tanh()] if kind == "batch-norm" else [nn.ReLU()]
    module = nn.Sequential(nn.Linear(4, 8), *between, nn.Linear(8, 3))
    sgd = {"optimizer": torch.optim.SGD, "lr": 0.3, "optimizer__momentum": 0.9, "optimizer__weight_decay": 0.01}
    sgd |= {"callbacks": [LRScheduler("StepLR", step_size=2, gamma=0.1)], "batch_size": -1, "max_epochs": 5}
    rate = 2.0 if normalize else 20.0
    clf = fit(blobs, module=module, transition_init=T_START, transition_lr=rate, normalize=normalize, **sgd)
    theirs, theta = copy.deepcopy(module), torch.log(torch.tensor(T_START)).requires_grad_()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    noisy, meta = ((torch.tensor(a), torch.tensor(b)) for a, b in ((X, y), (X_clean, y_clean)))
    for _ in range(5):
        theta = twin.iteration(theirs, optimizer, theta, rate, noisy, meta, normalize)
        schedule.step()
    np.testing.assert_allclose(clf.transition_matrix_, theta.detach().softmax(1).numpy(), rtol=1e-9)
    for name, value in clf.net_.module_.state_dict().items():
        torch.testing.assert_close(value, theirs.state_dict()[name], rtol=1e-9, atol=1e-11)
    assert clf.net_.update.methods_ == ("dual" if kind == "batch-norm" else "factored",)


def test_a_fused_optimiser_moves_the_T_of_the_loss_too(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    found = []
    for fused in (False, True):
        torch.manual_seed(0)
        clean, loss = CleanBatches(Rows(np.float32(X_clean), y_clean), 16), ForwardLoss(T_START)
        update = MetaGradient(clean, 10.0, optimizer=partial(torch.optim.SGD, fused=fused))
        net = NoisyLabelNet(nn.Linear(4, 3), criterion=loss, update=update, lr=0.3, max_epochs=2, verbose=0)
        found.append(net.fit(np.float32(X), y).criterion_.transition_matrix)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)
    assert np.abs(found[0] - T_START).max() > 0.05


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_of_zero_leaves_T_bit_equal(blobs, optimizer):
    given = {"optimizer": optimizer, "optimizer__weight_decay": 0.5, "lr": 0.01, "transition_init": "diagonal"}
    clf, moved = (fit(blobs, transition_lr=lr, **given) for lr in (0.0, 10.0))
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_init_)
    assert not np.array_equal(moved.transition_matrix_, moved.transition_init_)


def test_the_meta_loss_is_in_the_history(blobs):
    """With a rate of nearly 0 it is the cross-entropy of the clean samples before the step."""
    whole = {"batch_size": -1, "optimizer": "sgd", "lr": 1e-30}
    found = fit(blobs, max_epochs=1, **whole).history_[0, "meta_loss"]
    proba = torch.tensor(fit(blobs, max_epochs=0, warm_up_epochs=3, **whole).predict_proba(blobs[2]))
    assert found == pytest.approx(F.nll_loss(proba.log(), torch.tensor(blobs[3])).item(), rel=1e-5)
