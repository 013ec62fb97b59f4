"""Helpers for tests of training: fits, equal fits, errors before training, interrupted fits."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import torch
from estimators import small
from scipy.special import log_softmax
from skorch.callbacks import Callback

from noisytransition.nets import NoisyLabelNet
from noisytransition.transition._estimation import floor_transition_matrix


def fit(cls, blobs, **params):
    """Fit a small classifier to `blobs`."""
    X, y, X_clean, y_clean, *_ = blobs
    return small(cls, **params).fit(X, y, meta=(X_clean, y_clean))


def fit_noisy(cls, blobs, **params):
    """Fit a small classifier to the noisy samples of `blobs` only."""
    return small(cls, **params).fit(*blobs[:2])


def floored(T):
    """Return an initial T of three classes without zeros, as methods use it."""
    return floor_transition_matrix(T, 1e-3 / 3)


def lowest_loss(proba, y):
    """Return the cross-entropy at the best of many temperatures."""
    powers = np.exp(np.linspace(-3, 3, 601))[:, None, None]
    log_p = log_softmax(powers * np.log(proba.astype(float)), axis=2)
    return -log_p[:, np.arange(len(y)), y].mean(axis=1).max()


# ---------------------------------------------------------------------------- equal fits
def state(clf, X):
    """Return the results that are bitwise equal in two equal fits."""
    return [clf.predict_proba(X), *(p.detach().numpy() for p in clf.net_.module_.parameters())] + (
        [clf.transition_matrix_, clf.transition_history_] if hasattr(clf, "transition_matrix_") else []
    )


def assert_same(a, b, X):
    for one, other in zip(state(a, X), state(b, X), strict=True):
        np.testing.assert_array_equal(one, other)


def _trained(*args, **kwargs):
    pytest.fail("a net was trained")


@contextmanager
def no_training() -> Iterator[None]:
    """Fail if any net is trained."""
    with mock.patch.object(NoisyLabelNet, "fit_loop", _trained):
        yield


@contextmanager
def refused(message, error=ValueError) -> Iterator[None]:
    """Expect an error before any net is trained."""
    with no_training(), pytest.raises(error, match=message):
        yield


# ---------------------------------------------------------------------------- fits that are cut off
class StopAfter(Callback):
    """Callback that interrupts a fit after a number of epochs of all stages; never if it is -1."""

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs
        self.ended = []  # every stage has a shallow copy of the callback: they share the list

    def on_batch_end(self, net, **kwargs):
        if 0 <= self.n_epochs <= len(self.ended):  # several nets may end an epoch at once
            raise KeyboardInterrupt

    def on_epoch_end(self, net, **kwargs):
        self.ended.append(len(net.history))


class On(Callback):
    """Callback made of functions: ``On(epoch_end=lambda net, **kwargs: ...)``."""

    def __init__(self, **functions):
        for event, function in functions.items():
            setattr(self, f"on_{event}", function)


class Stages(Callback):
    """Weights at the beginning of each stage and after its epochs, numbers of samples, and which are held out."""

    def __init__(self):
        self.weights, self.n_samples, self.held_out = [], [], []  # the copies of the stages share them

    @staticmethod
    def of(net):
        return torch.nn.utils.parameters_to_vector(net.module_.parameters()).detach().clone()

    def on_train_begin(self, net, X=None, **kwargs):
        self.weights.append([self.of(net)])
        self.n_samples.append(len(X))

    def on_epoch_end(self, net, dataset_valid=None, **kwargs):
        self.weights[-1].append(self.of(net))
        self.held_out.append(list(getattr(dataset_valid, "indices", ())))


class Batches(Callback):
    """Callback that keeps the histories of batches, which a training drops: a list for each epoch."""

    def __init__(self):
        self.of_epochs = []  # every stage has a shallow copy of the callback: they share the list

    def on_epoch_end(self, net, **kwargs):
        self.of_epochs.append([dict(batch) for batch in net.history[-1, "batches"]])

    def sizes(self, name="train_batch_size"):
        """Number of rows of each epoch."""
        return [sum(batch.get(name, 0) for batch in batches) for batches in self.of_epochs]
