"""Epochs to time for `speed.py`: by the library, plain loops, double backward, `higher` and `torchopt`."""

from importlib.util import find_spec
from itertools import pairwise
from math import ceil

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from noisytransition.losses import ForwardLoss, GoldCorrectionLoss
from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
from noisytransition.nets._rows import noisy_and_clean
from noisytransition.transition import symmetric_noise
from noisytransition.updates import MetaGradient, PosteriorCounts

LR, BETA, MOMENTUM = 1e-4, 1e-4, 0.9


def mlp(*widths):
    """Return a multilayer perceptron."""
    layers = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def cnn(norm):
    """Return a network of three convolutions for images of 3 x 32 x 32, with or without batch normalisation."""
    widths = (3, 16, 32, 64)
    layers = []
    for a, b in pairwise(widths):
        layers += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b) if norm else nn.Identity(), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 10))


def wide_cnn():
    """Return five convolutions with batch normalisation for images of 3 x 32 x 32; 1.1 million parameters."""
    layers = []
    for a, b, stride in ((3, 64, 1), (64, 64, 2), (64, 128, 1), (128, 256, 2), (256, 256, 2)):
        layers += [nn.Conv2d(a, b, 3, stride=stride, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


class Problem:
    """Random noisy and clean samples, and a function that makes the network."""

    def __init__(self, network, shape, batch_size, n_batches=20, n_classes=10):
        rng = np.random.default_rng(0)
        self.network, self.batch_size, self.n_classes = network, batch_size, n_classes
        self.noisy, self.clean = (
            Rows(rng.normal(size=(n, *shape)).astype(np.float32), rng.integers(n_classes, size=n))
            for n in (batch_size * n_batches, batch_size)
        )
        self.T = symmetric_noise(n_classes, 0.4)

    def made(self):
        """Return a network with the same initial weights each time."""
        torch.manual_seed(0)
        return self.network()

    # ---- the library
    def ours(self, rows=None, **params):
        """Return a function that trains a network by the library for an epoch, on the noisy samples by default."""
        rows = self.noisy if rows is None else rows
        net = NoisyLabelNet(
            self.made(),
            classes=np.arange(self.n_classes),
            lr=LR,
            optimizer__momentum=MOMENTUM,
            verbose=0,
            **{"batch_size": self.batch_size} | params,
        ).initialize()
        return lambda: net.partial_fit(rows, rows.label, epochs=1)

    def forward(self):
        """Return an epoch of Forward: training through a fixed T."""
        return self.ours(criterion=ForwardLoss(self.T))

    def em(self):
        """Return an epoch of EM without clean samples: T from posterior counts."""
        return self.ours(criterion=ForwardLoss(self.T), update=PosteriorCounts(0.05))

    def em_with_clean_rows(self, **params):
        """Return an epoch of EM on noisy and clean samples, with as many steps as on the noisy samples."""
        both = noisy_and_clean(self.noisy, self.clean)
        params["batch_size"] = ceil(self.batch_size * len(both) / len(self.noisy))
        return self.ours(both, criterion=GoldCorrectionLoss(self.T), update=PosteriorCounts(0.05), **params)

    def meta(self, **params):
        """Return an epoch of Algorithm 1, with clean batches as large as noisy batches."""
        update = MetaGradient(CleanBatches(self.clean, self.batch_size), BETA)
        return self.ours(criterion=ForwardLoss(self.T), update=update, **params)

    # ---- hand-written loops
    def loop(self, step):
        """Return a function that runs a loop over an epoch of batches."""
        X, y = torch.from_numpy(self.noisy.X), torch.from_numpy(self.noisy.label)
        state = State(self.made(), torch.from_numpy(self.T).float())
        clean = torch.from_numpy(self.clean.X), torch.from_numpy(self.clean.label)

        def epoch():
            order = torch.randperm(len(X))
            for index in order.split(self.batch_size):
                chosen = torch.randperm(len(clean[0]))
                step(state, X[index], y[index], clean[0][chosen], clean[1][chosen])

        return epoch


class State:
    """Network, logits of T and optimiser of a loop."""

    def __init__(self, module, T, **params):
        self.module = module.train()
        self.theta = T.log().requires_grad_()
        self.optimizer = torch.optim.SGD(module.parameters(), lr=LR, momentum=MOMENTUM, **params)

    def loss(self, logits, y):
        """Return the corrected cross-entropy."""
        return -torch.logsumexp(F.log_softmax(logits, 1) + F.log_softmax(self.theta, 1).T[y], 1).mean()

    def step_theta(self, clean_loss):
        """Update T by the gradient of the clean loss."""
        (gradient,) = torch.autograd.grad(clean_loss, self.theta)
        with torch.no_grad():
            self.theta -= BETA * gradient

    def step(self, loss):
        """Update the network."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def plain(state, x, y, x_meta, y_clean):
    """Run a plain step of cross-entropy."""
    state.step(F.cross_entropy(state.module(x), y))


def double_backward(state, x, y, x_meta, y_clean):
    """Run a step of Algorithm 1 by double backward; the real step computes the logits again."""
    look_ahead(state, state.module(x), y, x_meta, y_clean)
    state.step(state.loss(state.module(x), y))


def double_backward_shared(state, x, y, x_meta, y_clean):
    """Run a step of Algorithm 1 by double backward; the real step reuses the logits of the look-ahead."""
    logits = state.module(x)
    look_ahead(state, logits, y, x_meta, y_clean)
    state.step(state.loss(logits, y))


def look_ahead(state, logits, y, x_meta, y_clean):
    """Update T by the clean loss after a virtual step of the network."""
    of = dict(state.module.named_parameters())
    gradients = torch.autograd.grad(state.loss(logits, y), list(of.values()), create_graph=True)
    ahead = {name: w - LR * g for (name, w), g in zip(of.items(), gradients, strict=True)}
    buffers = {name: buffer.clone() for name, buffer in state.module.named_buffers()}
    state.step_theta(F.cross_entropy(functional_call(state.module, ahead | buffers, (x_meta,)), y_clean))


def with_higher(state, x, y, x_meta, y_clean):
    """Run a step of Algorithm 1 by the package higher."""
    import higher

    inner = torch.optim.SGD(state.module.parameters(), lr=LR)
    with higher.innerloop_ctx(state.module, inner) as (module, optimizer):
        optimizer.step(state.loss(module(x), y))
        state.step_theta(F.cross_entropy(module(x_meta), y_clean))
    state.step(state.loss(state.module(x), y))


def with_torchopt(state, x, y, x_meta, y_clean):
    """Run a step of Algorithm 1 by the package torchopt."""
    import torchopt

    inner = torchopt.MetaSGD(state.module, lr=LR)
    before = torchopt.extract_state_dict(state.module, by="reference")
    inner.step(state.loss(state.module(x), y))
    state.step_theta(F.cross_entropy(state.module(x_meta), y_clean))
    torchopt.recover_state_dict(state.module, before)
    state.step(state.loss(state.module(x), y))


#: loops of Algorithm 1 by name; packages that are not installed are skipped
LOOPS = {
    "double backward": double_backward,
    "double backward, one forward": double_backward_shared,
    **({"higher": with_higher} if find_spec("higher") else {}),
    **({"torchopt": with_torchopt} if find_spec("torchopt") else {}),
}
