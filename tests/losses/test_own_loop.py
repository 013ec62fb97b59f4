"""The losses in a user's own loop: labels to ignore, sequences, half precision, and errors."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import floats, transition_matrices
from torch.nn import functional as F

from noisytransition import LabelNoiseModel
from noisytransition.losses import ForwardLoss, GoldCorrectionLoss, corrected_cross_entropy

pytestmark = pytest.mark.usefixtures("float64")
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
T = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])


def forward(T, **params):
    loss = ForwardLoss(T, **params)
    return lambda z, y, is_clean: loss(z, y)


def gold(T, **params):
    loss = GoldCorrectionLoss(T, 2.0, **params)
    return lambda z, y, is_clean: loss(z, y, is_clean=is_clean)


def corrected(T):
    return lambda z, y, is_clean: corrected_cross_entropy(z, y, torch.tensor(T).log())


LOSSES = pytest.mark.parametrize("loss_of", [forward, gold, corrected])


def twin(loss_of, T, z, y, is_clean, ignored=-100):
    """The mean over the labels that are not ignored, label by label."""
    total, n = torch.zeros(()), 0
    for place in np.ndindex(*y.shape):
        label = int(y[place])
        if label == ignored:
            continue
        p = F.softmax(z[place].double(), 0)
        if loss_of is gold and is_clean[place]:
            total = total - 2.0 * torch.log(p[label])
        else:
            total = total - torch.log((p @ torch.as_tensor(T))[label])
        n += 1
    return total / max(n, 1)


@st.composite
def sequences(draw):
    """Logits, labels (some or all of them -100) and marks of clean labels of some or no sequences, and T."""
    shape = draw(st.tuples(st.integers(0, 4), st.integers(1, 5)))
    z = draw(hnp.arrays(np.float64, (*shape, 3), elements=floats(-8, 8)))
    y = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 1, 2, -100])))
    is_clean = draw(hnp.arrays(bool, shape))
    return torch.tensor(z), torch.tensor(y), torch.tensor(is_clean), draw(transition_matrices(3, least=0.05))


def value_and_gradient(loss, z, y, is_clean):
    leaf = z.clone().requires_grad_()
    value = loss(leaf, y, is_clean)
    (gradient,) = torch.autograd.grad(value, leaf, materialize_grads=True, allow_unused=True)
    return value.detach(), gradient


@LOSSES
@given(sequences())
def test_value_and_gradient_are_those_of_the_labels_one_by_one(loss_of, problem):
    """They are the same for all labels in one row, and without the labels to ignore."""
    z, y, is_clean, T = problem
    value, gradient = value_and_gradient(loss_of(T), z, y, is_clean)
    leaf = z.clone().requires_grad_()
    slow = twin(loss_of, T, leaf, y, is_clean)
    expected = torch.autograd.grad(slow, leaf)[0] if slow.requires_grad else torch.zeros_like(z)
    torch.testing.assert_close((value, gradient), (slow.detach(), expected), **CLOSE)
    flat, flat_gradient = value_and_gradient(loss_of(T), z.flatten(0, 1), y.flatten(), is_clean.flatten())
    assert torch.equal(value, flat)
    assert torch.equal(gradient, flat_gradient.view_as(gradient))
    kept = y != -100
    of_kept = value_and_gradient(loss_of(T), z[kept], y[kept], is_clean[kept])
    torch.testing.assert_close((value, gradient[kept]), of_kept, **CLOSE)
    assert (gradient[~kept] == 0).all()


@given(sequences())
def test_T_is_learned_from_noisy_labels(problem):
    z, y, is_clean, T = problem
    loss = GoldCorrectionLoss(T, 2.0).requires_grad_(True)
    theta = torch.tensor(T).log().requires_grad_()
    loss(z, y, is_clean=is_clean).backward()
    (twin(gold, theta.softmax(1), z, y, is_clean) + 0 * theta.sum()).backward()
    torch.testing.assert_close(loss.transition_logits.grad, theta.grad, **CLOSE)


@LOSSES
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_logits_of_half_precision_have_the_loss_of_float64_up_to_their_digits(loss_of, dtype):
    generator = torch.Generator().manual_seed(0)
    z = (3 * torch.randn(8, 16, 3, generator=generator)).to(dtype)
    y = torch.randint(3, (8, 16), generator=generator).masked_fill(torch.arange(16) > 11, -100)
    is_clean = y == 1
    value, gradient = value_and_gradient(loss_of(T), z, y, is_clean)
    expected = value_and_gradient(loss_of(T), z.double(), y, is_clean)
    assert gradient.dtype is dtype
    close = {"rtol": 0, "atol": 4 * torch.finfo(dtype).eps, "check_dtype": False}
    torch.testing.assert_close((value, gradient), expected, **close)


@pytest.mark.parametrize("loss_of", [forward, gold])
def test_another_label_can_be_ignored_or_none(loss_of):
    z, is_clean = torch.randn(4, 3), torch.tensor([True, False, True, False])
    y = torch.tensor([0, -1, 2, 1])
    expected = twin(loss_of, T, z, y, is_clean, ignored=-1)
    torch.testing.assert_close(loss_of(T, ignore_index=-1)(z, y, is_clean), expected, **CLOSE)
    all_kept = y.clamp_min(0)
    expected = twin(loss_of, T, z, all_kept, is_clean)
    torch.testing.assert_close(loss_of(T, ignore_index=None)(z, all_kept, is_clean), expected, **CLOSE)
    with pytest.raises(ValueError, match=r"labels .* are -1 to 2, but must be integers from 0 to 2"):
        loss_of(T, ignore_index=None)(z, y, is_clean)


@LOSSES
@pytest.mark.parametrize(
    ("shape", "y", "message"),
    [
        ((2, 3), [0, -1], "labels of type torch.int64 are -1 to 0, but must be integers from 0 to 2. Set .* -100"),
        ((2, 3), [0, 3], "are 0 to 3"),
        ((3, 3), [0, 1], r"logits have shape \(3, 3\), but labels of shape \(2,\) .* 3 classes require \(2, 3\)"),
        ((2, 1), [0, 1], r"logits have shape \(2, 1\)"),
        ((2, 3, 4), [[0] * 4] * 2, r"require \(2, 4, 3\). If .* dimension 1, pass logits.movedim\(1, -1\)"),
    ],
)
def test_labels_and_logits_that_do_not_match_raise_an_error(loss_of, shape, y, message):
    y = torch.tensor(y)
    with pytest.raises(ValueError, match=message):
        loss_of(T)(torch.zeros(shape), y, torch.zeros_like(y, dtype=torch.bool))


@given(transition_matrices(3))
def test_T_instead_of_log_T_raises_an_error(matrix):
    z, y = torch.zeros(2, 3), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="must be log T"):
        corrected_cross_entropy(z, y, torch.tensor(matrix))
    corrected_cross_entropy(z, y, torch.tensor(matrix).log())
    corrected_cross_entropy(z, y, F.log_softmax(torch.tensor(matrix), 1))


@pytest.mark.parametrize(
    "given", [LabelNoiseModel(), np.log(T), [0.5, 0.5], np.zeros((2, 2)), [[0.9, 0.8], [0.1, 0.2]]]
)
def test_a_loss_refuses_what_is_not_T(given):
    with pytest.raises(ValueError, match=f"is a {type(given).__name__} that is no matrix of probabilities"):
        ForwardLoss(given)


def test_functions_of_torch_differentiate_the_corrected_cross_entropy():
    z, y, log_T = torch.randn(4, 3), torch.tensor([0, 2, -100, 1]), torch.tensor(T).float().log()
    each = torch.func.vmap(corrected_cross_entropy, in_dims=(0, 0, None))(z, y, log_T)
    torch.testing.assert_close(each.sum() / 3, corrected_cross_entropy(z, y, log_T))
    # forward mode (`torch.func.hessian`) warns of deprecated parts of torch
    jacrev = torch.func.jacrev
    hessian = jacrev(jacrev(corrected_cross_entropy, argnums=2), argnums=2)(z, y, log_T)
    torch.testing.assert_close(
        hessian, torch.autograd.functional.hessian(partial(corrected_cross_entropy, z, y), log_T)
    )
