"""The loss of rows with the labels of several sources."""

import numpy as np
import torch

from noisytransition.losses import ForwardLoss, SourcesLoss

LOGITS = torch.tensor(np.random.default_rng(0).normal(size=(6, 3)), dtype=torch.float32, requires_grad=True)


def test_it_is_minus_the_log_likelihood_of_all_labels_of_a_row():
    likelihood = np.random.default_rng(1).random((4, 3))
    row, y, is_clean = torch.tensor([2, 0, 0, 3, 0, 0]), torch.tensor([0, 0, 0, 0, 1, 2]), torch.arange(6) > 3
    loss = SourcesLoss(likelihood, 0.7)(LOGITS, y, is_clean=is_clean, row=row)
    f = torch.softmax(LOGITS, 1)
    noisy = torch.log((f[:4] * torch.tensor(likelihood[row[:4]], dtype=torch.float32)).sum(1)).sum()
    twin = -(noisy + 0.7 * torch.log(f[4, 1] * f[5, 2])) / 6
    torch.testing.assert_close(loss, twin)
    torch.testing.assert_close(torch.autograd.grad(loss, LOGITS), torch.autograd.grad(twin, LOGITS))


def test_of_one_source_it_is_the_corrected_cross_entropy():
    T = np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.1, 0.0, 0.9]])
    y = torch.tensor([0, 2, 1, 1, 0, 2])
    several = SourcesLoss(T[:, y].T)(LOGITS, y, is_clean=y < 0, row=torch.arange(6))
    torch.testing.assert_close(several, ForwardLoss(T)(LOGITS, y))
