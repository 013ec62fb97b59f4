"""Methods that docs/adding_a_method.rst builds: results, and resumption after an interruption."""

import ast

import numpy as np
import page_methods
import torch
from page_methods import CoTeachingNet, EpochEMClassifier
from torch import nn
from torch.nn import functional as F

from noisytransition.nets._rows import Batch


def test_a_method_takes_forty_lines():
    bodies = [source for source in page_methods.definitions() if isinstance(ast.parse(source).body[0], ast.ClassDef)]
    for name in ("Symmetric", "CoTeaching", "Epoch"):
        own = [body for body in bodies if body.startswith(f"class {name}")]
        assert len(own) == 2
        assert sum(bool(line.strip()) for body in own for line in body.splitlines()) <= 40


# ---------------------------------------------------------------------------- co-teaching
def test_each_network_learns_from_the_samples_of_smallest_loss_of_the_other():
    torch.manual_seed(0)
    net = CoTeachingNet(nn.Linear(2, 3), forget_rate=0.5, n_gradual=2).initialize()
    x, y = torch.randn(8, 2), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    net.history.new_epoch()
    net.train_step_single(Batch(x, {"label": y}))
    for learner, teacher in ((net.module_, net.peer_), (net.peer_, net.module_)):
        losses = [F.cross_entropy(teacher(x[i : i + 1]), y[i : i + 1]).item() for i in range(8)]
        picked = sorted(range(8), key=lambda i: losses[i])[:6]  # a quarter is left out in the first of two epochs
        expected = torch.autograd.grad(F.cross_entropy(learner(x[picked]), y[picked]), list(learner.parameters()))
        for parameter, gradient in zip(learner.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient)


# ---------------------------------------------------------------------------- EM after each epoch
START = np.full((3, 3), 0.1) + 0.7 * np.eye(3)


def test_an_epoch_moves_T_to_the_shrunken_posterior_counts(blobs):
    """Compare sample by sample, with a fixed network."""
    X, y, *_ = blobs
    params = {"max_epochs": 1, "lr": 1e-30, "transition_init": START, "prior_strength": 7.0, "random_state": 0}
    clf = EpochEMClassifier(**params).fit(X, y)
    counts = 7.0 * START
    for proba, label in zip(clf.predict_proba(X), y, strict=True):
        posterior = proba * START[:, label]
        counts[:, label] += posterior / posterior.sum()
    np.testing.assert_allclose(clf.transition_matrix_, counts / counts.sum(1, keepdims=True), rtol=1e-5)
