"""Look-ahead (Algorithm 1, lines 4 and 5): gradient of the clean loss after a virtual SGD step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from ._factored import factored_look_ahead
from ._methods import METHODS, Point, candidate_methods


class LookAhead(NamedTuple):
    """Result of `look_ahead`.

    Attributes
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Logits of the noisy batch at the current weights, with their autograd graph for the actual step.
    tangent : Tensor of shape (n_samples, n_classes)
        ``u = J_W z . (rate * g)``. The meta-gradient of a loss l with parameters phi is ``- d/dphi <dl/dz, u>``.
    meta_loss : Tensor
        Clean loss after the virtual step, a scalar.
    method : str
        Differentiation method that was used.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.meta_gradient import look_ahead
    >>> x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])
    >>> look_ahead(torch.nn.Linear(1, 2), x, lambda z: z.softmax(1) / 2, (x, y), {"weight": 1.0}).logits.shape
    torch.Size([2, 2])
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

    Let r be the cotangent of the noisy loss at the logits z, W_hat = W - rate * J_W z^T r, and g the gradient of the
    clean cross-entropy at W_hat. The tangent is the forward-mode product u = J_W z . (rate * g). Autograd does not
    differentiate through the loss's parameters.

    Parameters
    ----------
    module : nn.Module
        Returns logits of shape (n_samples, n_classes). Its weights are unchanged; only the forward pass on `x` updates
        its buffers. Random generators advance by one forward pass on `x` and one on the clean batch.
    x : Tensor, or mapping or sequence of them
        Noisy batch. A mapping is passed to the module by keyword, a sequence by position.
    cotangent : callable
        Maps logits to the gradient of the mean noisy loss for them, of the same shape.
    meta : tuple of (Tensor, Tensor)
        Clean batch and its labels.
    rates : mapping of str to float
        Learning rate of the virtual step, by parameter name. Other parameters are fixed.
    methods : sequence of str, optional
        Methods to try in order: "factored", "dual", "dual-math", "double-vjp" (exact), "difference" (approximate).
        Default: chosen by the type of the module.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Precision of the forward passes; "factored" requires "float32".

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
    >>> print(f"clean loss after the step: {ahead.meta_loss:.2f}")
    clean loss after the step: 0.64
    >>> (gradient,) = loss.meta_gradients(ahead.logits.detach(), y_noisy, ahead.tangent)  # for the logits of T
    >>> gradient.round(decimals=3)
    tensor([[-0.0250,  0.0250],
            [ 0.0250, -0.0250]])
    """
    methods = tuple(methods or candidate_methods(module))
    is_tried = "factored" in methods and precision == "float32"
    if is_tried and (found := factored_look_ahead(module, x, cotangent, meta, rates)):
        return LookAhead(*found, "factored")
    point = Point(module, x, rates, precision)
    r = cotangent(point.logits.detach())
    for method in (name for name in methods if name != "factored"):
        try:
            loss, tangent = METHODS[method](point, r, meta)
        except RuntimeError as error:  # includes NotImplementedError
            if not _rule_is_missing(error):
                raise
            point.set_generators(point.after)  # the next method must draw the same dropout masks
        else:
            return LookAhead(point.logits, tangent, loss, method)
    raise NotImplementedError(
        f"none of the methods {methods} can differentiate {type(module).__name__}. "
        "Use the default methods, or layers that autograd can differentiate."
    )


def _rule_is_missing(error: RuntimeError) -> bool:
    """Whether autograd lacks a differentiation rule; other errors (memory, shapes) are raised."""
    text = str(error)
    return isinstance(error, NotImplementedError) or "not implemented" in text or "out= function" in text
