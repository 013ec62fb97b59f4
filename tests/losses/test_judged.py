import numpy as np
import pytest
import torch

from noisytransition.losses import ForwardLoss, JudgedLoss, corrected_cross_entropy
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise

T_TRUE = pair_noise(3, 0.4)


def outputs(dtype=torch.float32, n=1000, T=T_TRUE):
    """Sure logits, and labels drawn from T."""
    y = np.arange(n) % 3
    logits = torch.eye(3)[torch.tensor(y)] * 8 + torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    noisy = torch.tensor(flip_labels(y, T, random_state=0))
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


def test_of_a_way_that_is_too_long_a_part_is_kept():
    loss = JudgedLoss(pair_noise(3, 0.1))
    moved_to(loss, pair_noise(3, 0.7))
    loss.judge(outputs())
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(3, 0.4), atol=1e-4)  # half of it


@pytest.mark.parametrize(("n", "kept"), [(20, 0.4), (2000, 0.5)])
def test_a_gain_that_may_be_chance_is_not_enough(n, kept):
    """Every second label is flipped: 0.5 is likelier than 0.4, but 20 rows do not show it."""
    loss = JudgedLoss(pair_noise(2, 0.4))
    moved_to(loss, pair_noise(2, 0.5))
    loss.judge([(20 * torch.eye(2).repeat(n // 2, 1), torch.tensor([0, 1, 1, 0]).repeat(n // 4))])
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(2, kept), atol=1e-6)


def test_one_row_decides_nothing(recwarn):
    loss = JudgedLoss(pair_noise(2, 0.4))
    moved_to(loss, np.eye(2))
    loss.judge([(torch.tensor([[9.0, 0.0]]), torch.tensor([0]))])
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(2, 0.4), atol=1e-6)
    assert not recwarn


def test_a_network_that_is_not_sure_yet_does_not_ask_for_another_T():
    """With its probabilities as they are, a T with less noise is more likely than the true one."""
    true, less = symmetric_noise(3, 0.4), symmetric_noise(3, 0.1)
    unsure = [(logits / 8, y) for logits, y in outputs(T=true)]
    loss = JudgedLoss(true)
    moved_to(loss, less)
    at_less, at_true = (corrected_cross_entropy(*unsure[0], torch.tensor(T).log().float()) for T in (less, true))
    assert at_less < at_true - 0.02
    loss.judge(unsure)
    np.testing.assert_allclose(loss.transition_matrix, true, atol=1e-6)


def test_an_epoch_that_fits_worse_than_the_best_decides_nothing():
    loss = JudgedLoss(pair_noise(3, 0.2))
    moved_to(loss, pair_noise(3, 0.4))
    loss.judge(outputs())
    moved_to(loss, pair_noise(3, 0.3))
    loss.judge([(torch.zeros_like(logits), y) for logits, y in outputs()])  # the network has forgotten all
    np.testing.assert_allclose(loss.transition_matrix, pair_noise(3, 0.4), atol=1e-4)


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
    assert {"transition_logits", "start_logits", "kept_logits", "likelihood"} == set(loss.state_dict())
    assert not list(loss.parameters())  # an optimiser of the network would move them


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_small_moves_are_told_apart_in_any_precision(dtype):
    loss, kept = JudgedLoss(pair_noise(3, 0.2)), 0
    for rate in np.linspace(0.2, 0.35, 41)[1:]:
        moved_to(loss, pair_noise(3, rate))
        loss.judge(outputs(dtype))
        kept += np.isclose(loss.transition_matrix[0, 1], rate, atol=1e-5)
    assert kept == 40
