import copy
from functools import partial

import numpy as np
import pytest
import torch
from estimators import small
from reference import meta_weight_net as twin
from torch import nn
from training import fit as fit_blobs

from noisytransition import CrossEntropyClassifier, MWNetClassifier, flip_labels
from noisytransition.transition import symmetric_noise

PUBLISHED_SECOND = partial(torch.optim.SGD, momentum=0.9, nesterov=True, weight_decay=5e-4)

fit = partial(fit_blobs, MWNetClassifier)


class Frozen(torch.optim.SGD):
    """Leaves V as it is, but for its first step: there V becomes the constant 1."""

    @torch.no_grad()
    def step(self, closure=None):
        weight, bias = self.param_groups[0]["params"][2:]
        weight.zero_()
        bias.fill_(100.0)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["mlp", "batch-norm"])
@pytest.mark.parametrize("optimizer_of_V", [torch.optim.Adam, PUBLISHED_SECOND], ids=["Adam", "SGD"])
def test_a_fit_on_whole_batches_is_algorithm_1(blobs, normalize, kind, optimizer_of_V):
    X, y, X_meta, y_meta, *_ = blobs
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8) if kind == "batch-norm" else nn.Identity()
    module = nn.Sequential(nn.Linear(4, 8), norm, nn.Tanh(), nn.Linear(8, 3))
    started = []

    def remembered(parameters, **kwargs):
        parameters = list(parameters)
        started.append([p.detach().clone() for p in parameters])
        return optimizer_of_V(parameters, **kwargs)

    clf = fit(
        blobs,
        module=module,
        batch_size=-1,
        max_epochs=5,
        weight_lr=0.05,
        weight_optimizer=remembered,
        normalize_weights=normalize,
        optimizer__weight_decay=0.01,
    )
    theirs = copy.deepcopy(module)
    V = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1), nn.Sigmoid())
    for parameter, value in zip(V.parameters(), started[0], strict=True):
        parameter.data.copy_(value)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    weight_optimizer = optimizer_of_V(V.parameters(), lr=0.05)
    noisy, meta = ((torch.tensor(a), torch.tensor(b)) for a, b in ((X, y), (X_meta, y_meta)))
    for _ in range(5):
        twin.iteration(theirs, optimizer, V, weight_optimizer, noisy, meta, normalize)
    for ours, expected in zip(clf.net_.criterion_.parameters(), V.parameters(), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-11)
    for name, value in clf.net_.module_.named_parameters():
        torch.testing.assert_close(value, dict(theirs.named_parameters())[name], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("normalize", [False, True])
def test_weights_frozen_at_one_give_cross_entropy(blobs, normalize):
    X, y = blobs[:2]
    params = {"batch_size": -1, "max_epochs": 5}
    clf = fit(blobs, weight_optimizer=Frozen, normalize_weights=normalize, **params)
    plain = small(CrossEntropyClassifier, **params).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(clf.sample_weights(X, y), 1)


@pytest.mark.parametrize("normalize", [False, True])
def test_flipped_rows_end_with_smaller_weights(normalize):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = rng.normal(size=(900, 2)) + 5 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    noisy = flip_labels(y, symmetric_noise(3, 0.4), random_state=0)
    clf = MWNetClassifier(normalize_weights=normalize, weight_lr=1e-2, max_epochs=10, random_state=0)
    clf.fit(X[100:], noisy[100:], meta=(X[:100], y[:100]))
    weights, flipped = clf.sample_weights(X[100:], noisy[100:]), noisy[100:] != y[100:]
    assert weights[flipped].mean() < 0.5 * weights[~flipped].mean()
    assert clf.score(X, y) > 0.95


def test_the_network_s_optimiser_does_not_see_the_weights(blobs):
    clf = fit(blobs, weight_lr=0.0, optimizer__weight_decay=0.5, weight_optimizer=torch.optim.SGD)
    moved = fit(blobs, weight_lr=0.1, weight_optimizer=torch.optim.SGD)
    ours = {id(p) for p in clf.net_.criterion_.parameters()}
    assert not ours & {id(p) for group in clf.net_.optimizer_.param_groups for p in group["params"]}
    again = fit(blobs, weight_lr=0.0, weight_optimizer=torch.optim.SGD)
    for a, b in zip(clf.net_.criterion_.parameters(), again.net_.criterion_.parameters(), strict=True):
        assert torch.equal(a, b)  # neither stepped nor decayed
    assert not torch.equal(next(moved.net_.criterion_.parameters()), next(clf.net_.criterion_.parameters()))


def test_weights_that_vanish_are_warned_of(blobs):
    class Kill(Frozen):
        @torch.no_grad()
        def step(self, closure=None):
            super().step()
            self.param_groups[0]["params"][3].fill_(-100.0)

    with pytest.warns(UserWarning, match="went to zero"):
        fit(blobs, weight_optimizer=Kill)


def test_looking_ahead_every_other_step(blobs):
    calls = []

    class Counted(torch.optim.SGD):
        def step(self, closure=None):
            calls.append(1)
            return super().step(closure)

    fit(blobs, weight_optimizer=Counted, weight_every=2, max_epochs=4)
    assert len(calls) == 10  # 300 rows in batches of 64, 4 epochs


def test_any_module_does(blobs):
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    assert fit(blobs, module=module).meta_gradient_method_ == "dual"
    assert fit(blobs).meta_gradient_method_ == "factored"


def test_unknown_labels_are_refused(blobs):
    with pytest.raises(ValueError, match="not among classes_"):
        fit(blobs).sample_weights(blobs[0][:1], [7])


def test_one_label_per_row(blobs):
    with pytest.raises(ValueError, match="2 labels for 1 rows"):
        fit(blobs).sample_weights(blobs[0][:1], [0, 1])
