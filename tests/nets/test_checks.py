"""Errors for modules that cannot be trained and for NaN, with a remedy; half precision raises none.

Outputs of the wrong form are in the table of attacks, tests/attacks/of_parameters.py.
"""

import numpy as np
import pytest
import torch
from estimators import small
from torch import nn
from training import On, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier
from noisytransition.nets import MLP


# ---------------------------------------------------------------------------- before the training
def test_a_lazy_module_gets_its_sizes_from_the_first_samples(blobs):
    module = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.Linear(5, 3))
    clf = fit(MetaTransitionClassifier, blobs, module=module)
    assert clf.score(blobs[4], blobs[5]) > 0.5
    assert clf.history_[-1, "train_loss"] < clf.history_[0, "train_loss"]


# ---------------------------------------------------------------------------- losses, weights, probabilities
def test_weights_that_the_last_step_has_made_infinite(blobs):
    """The loss is computed before the step, so it is finite for one batch in one epoch."""
    X, y = blobs[:2]
    clf = small(CrossEntropyClassifier, module=MLP(4, 3), max_epochs=1, batch_size=-1, lr=1e38)
    with pytest.raises(ValueError, match="weights are not finite after epoch 1"):
        clf.fit(X * 1e10, y)
    assert not hasattr(clf, "net_")


def test_a_logit_may_be_minus_infinity(blobs):
    """A class with probability 0 that no sample has."""

    class Impossible(MLP):
        def forward(self, x):
            return super().forward(x) + torch.tensor([0.0, 0.0, -torch.inf])

    X, y, X_clean, y_clean, *_ = blobs
    own = y < 2
    with pytest.warns(UserWarning, match="no noisy label has"):
        clf = small(CrossEntropyClassifier, module=Impossible(4, 3)).fit(X[own], y[own], meta=(X_clean, y_clean))
    assert (clf.predict_proba(X)[:, 2] == 0).all()


@pytest.mark.parametrize("cls", [CrossEntropyClassifier, MetaTransitionClassifier])
def test_a_loss_of_any_batch(cls, blobs):
    """A bad batch in the middle of an epoch; the network continues afterwards."""

    class Once(MLP):
        calls = 0

        def forward(self, x):
            logits = super().forward(x)
            if self.training and torch.is_grad_enabled() and len(x) > 30:
                type(self).calls += 1
                if type(self).calls == 2:
                    return logits + torch.full_like(logits, np.inf).detach()
            return logits

    def mend(net, **kwargs):
        for weight in net.module_.parameters():
            weight.data.nan_to_num_(0.1)

    with pytest.raises(ValueError, match="the training loss is nan in epoch 1"):
        fit(cls, blobs, module=Once, module__n_in=4, module__n_out=3, callbacks=[On(batch_end=mend)])


def test_parameters_of_the_loss(blobs):
    def spoil(net, **kwargs):
        for logits in net.criterion_.parameters():
            logits[0, 0] = np.nan

    given = {"callbacks": [On(train_end=spoil)], "transition_init": "diagonal", "refit": False}
    with pytest.raises(ValueError, match=r"not finite after epoch 3, in \[.transition_logits"):
        fit(MetaTransitionClassifier, blobs, **given)


# ---------------------------------------------------------------------------- half precision
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cls", [EMTransitionClassifier, MetaTransitionClassifier])
def test_half_precision_gives_probabilities_in_float32(cls, dtype, blobs):
    clf = fit(cls, blobs, module=MLP(4, 3).to(dtype))
    proba = clf.predict_proba(blobs[0])
    assert proba.dtype == np.float32
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-6)
    assert clf.score(blobs[4], blobs[5]) > 0.3


def test_samples_of_another_shape_are_named_in_predictions():
    X = np.random.default_rng(0).normal(size=(30, 4, 3)).astype(np.float32)
    clf = CrossEntropyClassifier(max_epochs=1).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match=r"\(4, 2\) have 8 values, but those of fit have 12"):
        clf.predict(X[:, :, :2])
