"""The loss of noisy samples with a posterior, and of clean samples."""

import numpy as np
import torch

from noisytransition.losses import PosteriorLoss

LOGITS = torch.tensor(np.random.default_rng(0).normal(size=(6, 3)), dtype=torch.float32, requires_grad=True)
POSTERIOR = np.random.default_rng(1).dirichlet(np.ones(3), 4)


def test_it_is_the_cross_entropy_of_posteriors_and_clean_labels():
    row, y, is_clean = torch.tensor([2, 0, 0, 3, 0, 0]), torch.tensor([0, 0, 0, 0, 1, 2]), torch.arange(6) > 3
    loss = PosteriorLoss(POSTERIOR, 0.7)(LOGITS, y, is_clean=is_clean, row=row)
    log_f = torch.log(torch.softmax(LOGITS, 1))
    noisy = (log_f[:4] * torch.tensor(POSTERIOR[row[:4]], dtype=torch.float32)).sum()
    twin = -(noisy + 0.7 * (log_f[4, 1] + log_f[5, 2])) / 6
    torch.testing.assert_close(loss, twin)
    torch.testing.assert_close(torch.autograd.grad(loss, LOGITS), torch.autograd.grad(twin, LOGITS))
