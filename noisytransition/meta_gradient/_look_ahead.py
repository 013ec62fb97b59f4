"""Look-ahead of Algorithm 1, lines 4 and 5: gradient of the clean loss after a virtual SGD step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from ._factored import factored_point
from ._methods import METHODS, Point, candidate_methods


class LookAhead(NamedTuple):
    """Result of `look_ahead`.

    Attributes
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Of the noisy batch at the present weights, with their autograd graph, for the actual step.
    tangent : Tensor of shape (n_samples, n_classes)
        ``u = J_W z . (rate * g)``: for a loss l with parameters phi, the meta-gradient is
        ``- d/dphi <dl/dz, u>``.
    meta_loss : Tensor
        Clean loss after the look-ahead, a scalar.
    method : str
        The method used.

    Examples
    --------
    >>> import torch
    >>> from torch.nn import functional as F
    >>> from noisytransition.meta_gradient import look_ahead
    >>> module = torch.nn.Linear(1, 2, bias=False)
    >>> _ = torch.nn.init.constant_(module.weight, 0.0)
    >>> x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])
    >>> ahead = look_ahead(module, x, lambda z: (z.softmax(1) - F.one_hot(y)) / len(y), (x, y), {"weight": 1.0})
    >>> print(f"{F.cross_entropy(ahead.logits, y):.2f} now, {ahead.meta_loss:.2f} after a step")
    0.69 now, 0.31 after a step
    >>> ahead.tangent.round(decimals=2)  # by how much a step along the clean gradient changes the logits
    tensor([[-0.2700,  0.2700],
            [ 0.2700, -0.2700]])
    """

    logits: Tensor
    tangent: Tensor
    meta_loss: Tensor
    method: str


def look_ahead(
    module: nn.Module,
    x: Any,
    cotangent: Callable[[Tensor], Tensor],
    meta: tuple[Any, Tensor],
    rates: Mapping[str, float],
    *,
    methods: Sequence[str] | None = None,
    precision: str = "float32",
) -> LookAhead:
    """Take a virtual SGD step on the noisy batch and compute the tangent along the clean gradient after it.

    With W_hat = W - rate * J_W z^T r, r the cotangent of the noisy loss at the logits z, and g the gradient of
    the clean cross-entropy at W_hat, the tangent is the forward-mode product u = J_W z . (rate * g). Autograd
    does not differentiate through the loss's parameters.

    Parameters
    ----------
    module : nn.Module
        Returns logits of shape (n_samples, n_classes). Its buffers are updated by the forward pass on `x` only, and its
        weights are unchanged. Random generators advance as by that pass and one on the clean batch.
    x : Tensor, or mapping or sequence of them
        The noisy batch; the module takes parts of a mapping by name, of a sequence in their order.
    cotangent : callable
        Logits -> d mean noisy loss / d logits, of the same shape.
    meta : tuple of (Tensor, Tensor)
        The clean batch and its labels.
    rates : mapping of str to float
        Look-ahead rate for each parameter to move, by name; the others stay where they are.
    methods : sequence of str, optional
        "factored", "dual", "dual-math", "double-vjp", "difference": which to try in turn. Default: what suits the
        module.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Of the forward passes; "factored" computes in the type of the weights.

    Returns
    -------
    LookAhead

    Raises
    ------
    NotImplementedError
        If no method can differentiate the module.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020,
    Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import ForwardLoss
    >>> from noisytransition.meta_gradient import look_ahead
    >>> module, loss = torch.nn.Linear(1, 2, bias=False), ForwardLoss([[0.7, 0.3], [0.3, 0.7]])
    >>> _ = torch.nn.init.constant_(module.weight, 0.0)
    >>> x, y_noisy = torch.tensor([[-1.0], [-1.0], [1.0], [1.0]]), torch.tensor([0, 1, 1, 1])
    >>> clean = torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])
    >>> ahead = look_ahead(module, x, lambda z: loss.cotangent(z, y_noisy), clean, {"weight": 0.5})
    >>> print(f"loss of the clean rows after the step: {ahead.meta_loss:.2f}")
    loss of the clean rows after the step: 0.64
    >>> (gradient,) = loss.meta_gradients(ahead.logits.detach(), y_noisy, ahead.tangent)  # for the logits of T
    >>> gradient.round(decimals=3)
    tensor([[-0.0250,  0.0250],
            [ 0.0250, -0.0250]])
    """
    methods = tuple(methods or candidate_methods(module))
    if "factored" in methods and (own := factored_point(module, x, rates)) is not None:
        loss, tangent = own.tangent(cotangent(own.logits.detach()), meta)
        return LookAhead(own.logits, tangent, loss, "factored")
    point = Point(module, x, rates, precision)
    r = cotangent(point.logits.detach())
    for method in (name for name in methods if name != "factored"):
        try:
            loss, tangent = METHODS[method](point, r, meta)
        except RuntimeError as error:  # NotImplementedError is one of them
            if not _rule_is_missing(error):
                raise
            point.restore_generators()  # the next method must draw the same dropout masks
        else:
            return LookAhead(point.logits, tangent, loss, method)
    raise NotImplementedError(f"none of the methods {methods} can differentiate {type(module).__name__}.")


def _rule_is_missing(error: RuntimeError) -> bool:
    """Whether the error is of a missing differentiation rule; any other (memory, shapes) is raised."""
    text = str(error)
    return isinstance(error, NotImplementedError) or "not implemented" in text or "out= function" in text
