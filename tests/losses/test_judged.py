import numpy as np
import pytest
import torch

from noisytransition.losses import ForwardLoss, JudgedLoss
from noisytransition.transition import flip_labels, pair_noise

T_TRUE = pair_noise(3, 0.4)


def outputs(dtype=torch.float32, n=1000):
    """Sure logits, and labels drawn from T."""
    y = np.arange(n) % 3
    logits = torch.eye(3)[torch.tensor(y)] * 8 + torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    noisy = torch.tensor(flip_labels(y, T_TRUE, random_state=0))
    return list(zip(logits.to(dtype).split(300), noisy.split(300), strict=True))


def moved_to(loss, T):
    loss.transition_logits.copy_(torch.tensor(np.log(np.maximum(T, 1e-6))))


def test_a_better_T_is_kept_and_a_worse_one_is_not():
    loss = JudgedLoss(pair_noise(3, 0.2))
    moved_to(loss, pair_noise(3, 0.35))
    loss.judge(outputs())
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(3, 0.35), atol=1e-4)
    moved_to(loss, pair_noise(3, 0.1))
    loss.judge(outputs())
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(3, 0.35), atol=1e-4)


def test_without_rows_to_judge_by_T_is_kept_as_it_is():
    loss = JudgedLoss(pair_noise(3, 0.4))
    moved_to(loss, np.eye(3))
    loss.judge([])
    np.testing.assert_allclose(loss.transition_matrix, np.eye(3), atol=1e-4)


def test_training_goes_through_the_T_that_moves():
    loss, plain = JudgedLoss(pair_noise(3, 0.2)), ForwardLoss(pair_noise(3, 0.2))
    for each in (loss, plain):
        moved_to(each, pair_noise(3, 0.1))
    (logits, y), *_ = outputs()
    assert loss(logits, y) == plain(logits, y)
    assert {"transition_logits", "kept_logits"} == set(loss.state_dict())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_small_moves_are_told_apart_in_any_precision(dtype):
    loss, kept = JudgedLoss(pair_noise(3, 0.2)), 0
    for rate in np.linspace(0.2, 0.35, 41)[1:]:
        moved_to(loss, pair_noise(3, rate))
        loss.judge(outputs(dtype))
        kept += np.isclose(loss.transition_matrix[0, 1], rate, atol=1e-5)
    assert kept == 40
