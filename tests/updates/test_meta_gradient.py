import copy
from contextlib import nullcontext
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import torch
from estimators import small
from reference import algorithm_1 as twin
from skorch.callbacks import LRScheduler
from torch import nn
from torch.nn import functional as F
from training import fit as fit_blobs

from noisytransition import MetaTransitionClassifier
from noisytransition.losses import ForwardLoss
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.updates import MetaGradient

T_START = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


def fit(blobs, **params):
    """Fit the algorithm with its last network and T."""
    return fit_blobs(MetaTransitionClassifier, blobs, refit=False, **params)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["mlp", "batch-norm"])
def test_a_fit_on_whole_batches_is_algorithm_1(blobs, kind, normalize):
    X, y, X_clean, y_clean, *_ = blobs
    torch.manual_seed(0)
    between = [nn.BatchNorm1d(8), nn.Tanh()] if kind == "batch-norm" else [nn.ReLU()]
    module = nn.Sequential(nn.Linear(4, 8), *between, nn.Linear(8, 3))
    clf = fit(
        blobs,
        module=module,
        batch_size=-1,
        max_epochs=5,
        transition_init=T_START,
        transition_lr=2.0 if normalize else 20.0,
        normalize=normalize,
        lr=0.3,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        optimizer__weight_decay=0.01,
        callbacks=[LRScheduler("StepLR", step_size=2, gamma=0.1)],
    )
    theirs, theta = copy.deepcopy(module), torch.log(torch.tensor(T_START)).requires_grad_()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.3, momentum=0.9, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    noisy, meta = ((torch.tensor(a), torch.tensor(b)) for a, b in ((X, y), (X_clean, y_clean)))
    for _ in range(5):
        theta = twin.iteration(theirs, optimizer, theta, 2.0 if normalize else 20.0, noisy, meta, normalize)
        schedule.step()
    np.testing.assert_allclose(clf.transition_matrix_, theta.detach().softmax(1).numpy(), rtol=1e-9)
    for name, value in clf.net_.module_.state_dict().items():
        torch.testing.assert_close(value, theirs.state_dict()[name], rtol=1e-9, atol=1e-11)
    assert clf.net_.update.method_ == ("dual" if kind == "batch-norm" else "factored")


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


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_a_step_of_zero_leaves_T_bit_equal(blobs, optimizer):
    decayed = {"optimizer__weight_decay": 0.5, "lr": 0.01}
    clf = fit(blobs, optimizer=optimizer, transition_lr=0.0, **decayed)
    np.testing.assert_array_equal(clf.transition_matrix_, clf.transition_init_)
    moved = fit(blobs, optimizer=optimizer, transition_lr=10.0, **decayed)
    assert not np.array_equal(moved.transition_matrix_, moved.transition_init_)


def test_the_network_is_trained_by_whatever_optimiser_there_is(blobs):
    for optimizer, lr, batch_size in ((torch.optim.Adam, 0.01, 64), (torch.optim.LBFGS, 0.1, -1)):
        clf = fit(blobs, optimizer=optimizer, lr=lr, batch_size=batch_size, max_epochs=5)
        assert clf.history_[-1, "train_loss"] < clf.history_[0, "train_loss"]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("scaled", ["outputs", "inputs", "rate"])
def test_the_normalised_step_does_not_depend_on_the_scale_of_network_inputs_and_rate(blobs, scaled):
    """The network computes the same function; a tiny rate keeps it there."""
    X, y, X_clean, y_clean, *_ = blobs
    torch.manual_seed(0)
    module, factor = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False)), 1.0
    other = copy.deepcopy(module)
    with torch.no_grad():
        if scaled == "outputs":
            other[2].weight.mul_(1 / 50)
            other.append(Times(50.0))
        if scaled == "inputs":
            other[0].weight.mul_(1 / 50)
            factor = 50.0
    for m in (module, other):
        m[0].requires_grad_(scaled == "inputs")
        m[2].requires_grad_(scaled != "inputs")
    given = {"transition_init": T_START, "optimizer": "sgd", "batch_size": 30, "transition_lr": 2.0}
    found = [
        fit((factor_of * X, y, factor_of * X_clean, y_clean), module=m, lr=lr, **given).transition_matrix_
        for m, factor_of, lr in ((module, 1.0, 1e-9), (other, factor, 1e-9 * (20 if scaled == "rate" else 1)))
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
    assert np.abs(found[0] - T_START).max() > 0.01
    raw = [
        fit((f * X, y, f * X_clean, y_clean), module=m, lr=lr, normalize=False, **given).transition_matrix_
        for m, f, lr in ((module, 1.0, 1e-3), (other, factor, 1e-3 * (20 if scaled == "rate" else 1)))
    ]
    assert np.abs(raw[1] - raw[0]).max() > 1e-5


class Times(nn.Module):
    """Multiplication by a number."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def fit_by(method, blobs, **params):
    """A fit whose gradient is computed by this method."""
    tried = "noisytransition.updates._meta_gradient.candidate_methods"
    with nullcontext() if method == "auto" else patch(tried, lambda module: (method,)):
        return fit(blobs, **params)


def test_every_method_learns_the_same_T(blobs):
    methods = ("auto", "factored", "dual", "double-vjp")
    fits = {method: fit_by(method, blobs, transition_lr=10.0) for method in methods}
    for method, clf in fits.items():
        np.testing.assert_allclose(clf.transition_matrix_, fits["auto"].transition_matrix_, atol=1e-4)
        assert clf.net_.update.method_ == ("factored" if method == "auto" else method)


def test_clean_batches_are_drawn_without_repetition(blobs):
    seen = []

    def transform(x):
        seen.append(x)
        return x

    fit(blobs, meta_batch_size=20, batch_size=64, batch_transform=transform, transition_init="diagonal", max_epochs=1)
    clean = [x for x in seen if len(x) == 20]
    assert len(clean) == 5
    assert all(len(x.unique(dim=0)) == 20 for x in clean)
    assert not torch.equal(clean[0], clean[1])


def test_the_meta_loss_is_in_the_history(blobs):
    """With a rate of nearly 0 it is the cross-entropy of the clean samples before the step."""
    whole = {"batch_size": -1, "optimizer": "sgd", "lr": 1e-30}
    found = fit(blobs, max_epochs=1, **whole).history_[0, "meta_loss"]
    proba = torch.tensor(fit(blobs, max_epochs=0, warm_up_epochs=3, **whole).predict_proba(blobs[2]))
    assert found == pytest.approx(F.nll_loss(proba.log(), torch.tensor(blobs[3])).item(), rel=1e-5)


def test_a_module_without_autograd_rules_trains_by_differences(blobs):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    tokens = 3 * y[:, None] + rng.integers(3, size=(120, 5))  # each class has words of its own
    torch.manual_seed(0)
    module = nn.Sequential(nn.EmbeddingBag(9, 8), nn.Linear(8, 3))
    clf = small(MetaTransitionClassifier, module=module, max_epochs=10, lr=0.5)
    clf.fit(tokens, y, meta=(tokens[:30], y[:30]))
    assert clf.score(tokens, y) > 0.9
    assert not np.array_equal(clf.transition_matrix_, clf.transition_init_)


def test_a_compiled_module_looks_ahead_through_the_module_itself(blobs):
    plain = fit(blobs, transition_lr=10.0)
    compiled = fit(blobs, transition_lr=10.0, compile=True, compile__backend="eager")
    np.testing.assert_allclose(compiled.transition_matrix_, plain.transition_matrix_, atol=1e-5)
