"""Predictions of a fitted classifier, and its network under skorch's names."""

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from sklearn.exceptions import NotFittedError
from torch import nn
from training import fit, fit_noisy

from noisytransition import CrossEntropyClassifier

every = pytest.mark.parametrize("cls", CLASSIFIERS)


@every
def test_logarithms_of_the_probabilities(cls, blobs):
    clf = fit(cls, blobs)
    np.testing.assert_allclose(clf.predict_log_proba(blobs[4]), np.log(clf.predict_proba(blobs[4])), rtol=1e-3)


def test_logarithms_are_finite_where_probabilities_are_not_apart_from_0(blobs):
    clf = fit_noisy(CrossEntropyClassifier, blobs, module=nn.Linear(4, 3))
    X = 1e3 * blobs[4]
    logits = torch.from_numpy(X).float() @ clf.net_.module_.weight.T + clf.net_.module_.bias
    assert (clf.predict_proba(X) == 0).any()
    expected = logits - logits.double().logsumexp(1, keepdim=True)
    np.testing.assert_allclose(clf.predict_log_proba(X), expected.detach(), rtol=1e-4, atol=1e-3)


class NoThird(nn.Linear):
    """Gives the third class no probability."""

    def forward(self, x):
        return super().forward(x).index_fill(1, torch.tensor([2]), float("-inf"))


def test_a_class_may_have_no_probability_but_no_output_may_be_undefined(blobs):
    X, y = blobs[0], blobs[1] % 2
    module = NoThird(4, 3)
    clf = small(CrossEntropyClassifier, module=nn.Linear(4, 3)).fit(X, np.r_[2, y[1:]])
    clf.net_.module_ = module
    assert (clf.predict_log_proba(X)[:, 2] == -np.inf).all()
    with torch.no_grad():
        module.weight.fill_(np.nan)
    with pytest.raises(ValueError, match="weights are not finite"):
        clf.predict_log_proba(X)


@every
def test_there_is_no_prediction_before_fit(cls, blobs):
    with pytest.raises(NotFittedError):
        cls().predict_log_proba(blobs[0])
