"""What is known of the last batch is used as long as it is true, and no longer."""

import copy

import pytest
import torch

from noisytransition.losses import ForwardLoss, clean_posterior
from noisytransition.transition import pair_noise


@pytest.fixture
def batch():
    return torch.randn(4, 3), torch.tensor([0, 2, 1, 1])


@pytest.fixture
def loss():
    return ForwardLoss(pair_noise(3, 0.3) * 0.9 + 1 / 30)


@pytest.fixture
def computed(monkeypatch):
    """How often posteriors have been computed."""
    calls, softmax = [], torch.softmax
    monkeypatch.setattr(
        "noisytransition.losses._forward.torch.softmax", lambda *a, **k: calls.append(1) or softmax(*a, **k)
    )
    return calls


def expected(loss, z, y):
    return clean_posterior(z.detach(), y, loss.log_transition)


@pytest.mark.parametrize("see", [ForwardLoss.forward, ForwardLoss.posterior, ForwardLoss.cotangent])
def test_a_posterior_is_computed_once(loss, batch, computed, see):
    z, y = batch
    see(loss, z, y)
    n = len(computed)
    torch.testing.assert_close(loss.posterior(z.detach(), y), expected(loss, z, y))
    assert torch.equal(loss.posterior(z.view(4, 3), y), loss.posterior(z, y))
    assert len(computed) == n + 1  # by `expected`


def test_clean_rows_are_left_out_of_it(loss, batch, computed):
    z, y = batch
    loss(torch.cat([z, z]).requires_grad_(), y, y, 0.7)
    both = torch.cat([z, z])
    loss(both, y, y, 0.7)
    torch.testing.assert_close(loss.posterior(both[:4], y), expected(loss, z, y))
    assert len(computed) == 1


def new_T(loss, z, y, posterior):
    with torch.no_grad():
        loss.transition_logits += torch.eye(3)


def counts(loss, z, y, posterior):
    loss.set_counts(torch.tensor([[1.0, 0.5, 0.5], [2.0, 0.5, 0.5], [1.0, 1.0, 1.0]]), torch.tensor([4.0, 2.0, 2.0]))


def new_logits(loss, z, y, posterior):
    z += torch.eye(4)[:, :3]


def new_labels(loss, z, y, posterior):
    y.copy_(y.flip(0))


def spoilt(loss, z, y, posterior):
    posterior.zero_()


@pytest.mark.parametrize("change", [new_T, counts, new_logits, new_labels, spoilt])
def test_what_has_changed_is_noticed(loss, batch, change):
    z, y = batch
    change(loss, z, y, loss.posterior(z, y))
    torch.testing.assert_close(loss.posterior(z, y), expected(loss, z, y))


def test_other_tensors_are_noticed(loss, batch):
    z, y = batch
    loss.posterior(z, y)
    others = [(torch.zeros(4, 3), y), (z, y.flip(0)), (z.flip(1), y), (z[1:], y[1:]), (z.double(), y)]
    for other in others:
        torch.testing.assert_close(loss.posterior(*other), expected(loss, *other).to(other[0].dtype))
        loss.posterior(z, y)
    with pytest.raises(RuntimeError, match="size"):
        loss.posterior(z[:3], y)


def test_the_same_memory_in_another_order_is_noticed(loss):
    z, y = torch.randn(3, 3), torch.tensor([0, 1, 1])
    loss.posterior(z, y)
    torch.testing.assert_close(loss.posterior(z.T, y), expected(loss, z.T, y))


def test_a_tensor_in_the_place_of_one_that_is_gone_is_noticed(loss):
    y = torch.tensor([0, 1])
    for k in range(20):  # memory of the one before would be used again
        z = torch.full((2, 3), float(k)) + torch.eye(2, 3) * k
        torch.testing.assert_close(loss.posterior(z, y), expected(loss, z, y))
        del z


def test_a_gradient_goes_through_a_posterior_that_is_known(loss, batch):
    z, y = batch
    loss.posterior(z, y)
    z.requires_grad_()
    loss.posterior(z, y)[:, 0].sum().backward()
    assert z.grad.abs().sum() > 0


def test_inference_mode(loss, batch):
    with torch.inference_mode():
        z, y = (part.clone() for part in batch)
        loss(z, y)
        torch.testing.assert_close(loss.posterior(z, y), expected(loss, z, y))
    z = batch[0].requires_grad_()
    loss(z, batch[1]).backward()  # of as many rows
    assert z.grad.isfinite().all()


def test_a_copy_knows_nothing(loss, batch):
    loss(*batch)
    copied = copy.deepcopy(loss)
    assert copied._seen is None
    torch.testing.assert_close(copied.posterior(*batch), loss.posterior(*batch))
