"""Methods for the tangent ``u = J_W z . (rate * g)``, with g the gradient of the clean loss at W_hat.

They differ in cost and in supported modules. Except for "difference", results agree up to rounding errors (1e-10 in
float64, see tests/meta_gradient/test_look_ahead.py).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import get_total_norm

from ._forward_pass import PRECISIONS, called_with, first_part, has_parts, logits_of, places_of


class Point:
    """A network at W and its logits on the noisy batch `x`; `rates` as in `look_ahead`.

    Only the forward pass of the constructor updates the module's buffers; other passes use copies.
    """

    def __init__(self, module: nn.Module, x: Any, rates: Mapping[str, float], precision: str = "float32") -> None:
        weights: dict[str, Tensor] = dict(module.named_parameters())
        self.module, self.x, self.precision = module, x, precision
        some = first_part(x)
        self.names = list(rates)
        self.rates = list(rates.values())
        self.weights = [weights[name] for name in self.names]
        self._devices = [some.device] if some.is_cuda else []
        buffers = dict(module.named_buffers())
        self._places = places_of(module, weights | buffers)
        self._buffers = {name: buffer.clone() for name, buffer in buffers.items()}
        self._before = self._generator_states()
        self.logits = logits_of(module, x, precision)
        self.after = self._generator_states()  # after the shared pass

    def __call__(self, weights: Sequence[Tensor], x: Any) -> Tensor:
        """Compute logits at other weights, with the buffers before the shared pass; the module is unchanged."""
        tensors = {name: buffer.clone() for name, buffer in self._buffers.items()}
        tensors |= dict(zip(self.names, weights, strict=True))
        return logits_of(partial(called_with, self.module, self._places, tensors), x, self.precision)

    def scaled(self, gradient: Sequence[Tensor]) -> list[Tensor]:
        """Return rate * gradient for each weight."""
        return list(torch._foreach_mul([g.detach() for g in gradient], self.rates))

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Reuse the random numbers (dropout masks) of the shared forward pass, then restore the generators."""
        with torch.random.fork_rng(devices=self._devices):
            self.set_generators(self._before)
            yield

    def _generator_states(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(d) for d in self._devices)]

    def set_generators(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for device, state in zip(self._devices, states[1:], strict=True):
            torch.cuda.set_rng_state(state, device)


# ---------------------------------------------------------------------------- tangents
@cache
def _load_forward_rules() -> None:
    """Import torch's forward-mode rules without the FutureWarning of their first use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        from torch._decomp import decompositions_for_jvp  # noqa: F401


def dual_tangent(point: Point, direction: Sequence[Tensor]) -> Tensor:
    """Run one forward-mode pass, under ``no_grad`` so that autograd does not record the tangents.

    Fused attention kernels have no forward-mode rule.
    """
    _load_forward_rules()
    with point.replayed(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH), forward_ad.dual_level():
        weights = [forward_ad.make_dual(w.detach(), d) for w, d in zip(point.weights, direction, strict=True)]
        tangent = forward_ad.unpack_dual(point(weights, point.x)).tangent
    return torch.zeros_like(point.logits) if tangent is None else tangent


def difference_tangent(point: Point, direction: Sequence[Tensor]) -> Tensor:
    """Approximate the tangent by a forward difference, for modules without second derivatives in autograd."""
    length = get_total_norm(direction)
    eps = torch.finfo(PRECISIONS[point.precision] or point.logits.dtype).eps
    step = eps**0.5 / length.clamp_min(torch.finfo(length.dtype).tiny)  # no division by zero
    with point.replayed(), torch.no_grad():
        moved = torch._foreach_add(point.weights, torch._foreach_mul(list(direction), step))
        return (point(moved, point.x) - point.logits) / step


def reverse_tangent(gradient: Sequence[Tensor], cotangent: Tensor, direction: Sequence[Tensor]) -> Tensor:
    """Apply reverse mode twice: the gradient is linear in the cotangent, and this map's transpose gives the tangent."""
    pairs = [(a, b) for a, b in zip(gradient, direction, strict=True) if a.requires_grad]
    (u,) = torch.autograd.grad([a for a, _ in pairs], cotangent, [b for _, b in pairs], retain_graph=True)
    return u


def _by_autograd(
    point: Point, method: str, cotangent: Callable[[Tensor], Tensor], meta: tuple[Any, Tensor]
) -> tuple[Tensor, Tensor]:
    """Compute the tangent of the noisy logits and the clean loss at W_hat."""
    is_reverse = method == "double-vjp"
    of_logits = cotangent(point.logits.detach()).detach().requires_grad_(is_reverse)
    gradient = torch.autograd.grad(
        point.logits,
        point.weights,
        of_logits,
        retain_graph=True,
        create_graph=is_reverse,
        allow_unused=True,
        materialize_grads=True,
    )
    with torch.no_grad():  # W_hat as new leaves: a plain SGD step, as in the paper
        moved = torch._foreach_add(point.weights, point.scaled(gradient), alpha=-1)
    weights = [weight.requires_grad_() for weight in moved]
    loss = F.cross_entropy(point(weights, meta[0]), meta[1])
    direction = point.scaled(torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True))
    if is_reverse:
        tangent = reverse_tangent(gradient, of_logits, direction)
    else:
        tangent = {"dual": dual_tangent, "difference": difference_tangent}[method](point, direction)
    return tangent, loss.detach()


def candidate_methods(module: nn.Module) -> tuple[str, ...]:
    """Return the methods to try for a module, the fastest first; the next is used if autograd lacks a rule.

    The order is fixed instead of timed, since methods differ by rounding errors. Forward mode is first for 2D
    convolutions and batch normalisation, which are slow to differentiate twice in reverse mode (cost.md).
    """
    if any(isinstance(m, nn.Conv2d | nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        return ("dual", "double-vjp", "difference")
    return ("factored", "double-vjp", "dual", "difference")


# ---------------------------------------------------------------------------- MLP with ReLU, without autograd
def relu_mlp(module: nn.Module) -> tuple[nn.Module, dict[str, nn.Linear]] | None:
    """Flatten (or the identity) and the linear layers of a plain ``Sequential(Flatten, Linear, ReLU, Linear, ...)``.

    None for other modules, and for those with hooks, parametrizations, shared weights or half-precision weights.
    """
    layers: dict[str, Any] = dict(module._modules)  # `children` omits repeated layers
    if type(module).forward is not nn.Sequential.forward or any(map(_is_hooked, (module, *layers.values()))):
        return None
    flatten: nn.Module = nn.Identity()
    first = next(iter(layers), "")
    if isinstance(layers.get(first), nn.Flatten) and not list(layers[first].parameters()):
        flatten = layers.pop(first)
    if [type(layer) for layer in layers.values()] != [nn.Linear, nn.ReLU] * (len(layers) // 2) + [nn.Linear]:
        return None
    weights = [w for layer in layers.values() for w in layer._parameters.values() if w is not None]
    is_shared = len({id(w) for w in weights}) < len(weights)
    if is_shared or any(w.dtype not in (torch.float32, torch.float64) or w._backward_hooks for w in weights):
        return None
    return flatten, {name: layer for name, layer in layers.items() if isinstance(layer, nn.Linear)}


def _is_hooked(module: Any) -> bool:
    """Whether a module has hooks, or an instance attribute ``forward``."""
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(hooks) or "forward" in vars(module)


def factored_look_ahead(
    module: nn.Module,
    x: Any,
    cotangent: Callable[[Tensor], Tensor],
    meta: tuple[Any, Tensor],
    rates: Mapping[str, float],
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return logits, tangent and clean loss as in `look_ahead`; None if this method does not support the module."""
    found = None if has_parts(x) else relu_mlp(module)
    if found is None:
        return None
    flatten, linear = found
    x = flatten(x)
    inputs: list[Tensor] = []
    logits = x
    for layer in linear.values():
        x = torch.relu(logits) if inputs else x
        logits = F.linear(x, layer.weight, layer.bias)
        inputs.append(x.detach())
    of_layers = [(rates.get(f"{name}.weight", 0.0), rates.get(f"{name}.bias", 0.0)) for name in linear]  # 0: fixed
    layers = list(linear.values())
    return logits, *_tangent(layers, of_layers, inputs, cotangent(logits.detach()), flatten(meta[0]), meta[1])


@torch.no_grad()
def _tangent(
    layers: list[nn.Linear],
    rates: list[tuple[float, float]],
    noisy: list[Tensor],
    of_logits: Tensor,
    x: Tensor,
    y: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute the tangent of the noisy logits and the clean loss at W_hat.

    `noisy` are the noisy inputs of each layer, `of_logits` cotangents of the noisy logits, `x` and `y` the clean batch.
    """
    clean: list[Tensor] = []
    moved: list[Tensor] = []
    of_outputs = _cotangents(of_logits, [layer.weight for layer in layers], noisy)
    for layer, (rate, bias_rate), inputs, d in zip(layers, rates, noisy, of_outputs, strict=True):
        clean.append(x.relu_() if clean else x)
        moved.append(torch.addmm(layer.weight, d.T, inputs, alpha=-rate))
        bias = None if layer.bias is None else torch.sub(layer.bias, d.sum(0), alpha=bias_rate)
        x = F.linear(clean[-1], moved[-1], bias)
    log_proba = torch.log_softmax(x, 1)
    of_clean = log_proba.exp().div_(len(x))
    of_clean.scatter_add_(1, y[:, None], x.new_full((len(x), 1), -1 / len(x)))
    tangent = torch.zeros(())
    of_outputs = _cotangents(of_clean, moved, clean)
    for layer, (rate, bias_rate), inputs, x, d in zip(layers, rates, noisy, clean, of_outputs, strict=True):
        own = torch.addmm(bias_rate * d.sum(0), inputs, x.T @ d, alpha=rate)
        is_first = layer is layers[0]
        tangent = own if is_first else own.addmm_(_through_relu(tangent, inputs), layer.weight.T)
    return tangent, F.nll_loss(log_proba, y)


def _cotangents(of_logits: Tensor, weights: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """Cotangents of the outputs of each layer, from those of the logits."""
    found = [of_logits]
    for weight, activations in zip(weights[:0:-1], inputs[:0:-1], strict=True):
        found.insert(0, _through_relu(found[0] @ weight, activations))
    return found


def _through_relu(values: Tensor, activations: Tensor) -> Tensor:
    """Set values to 0 where the activation is not positive, as autograd's rule, in one pass."""
    return torch.ops.aten.threshold_backward(values, activations, 0)


# ---------------------------------------------------------------------------- the look-ahead
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
        Methods to try in order: "factored", "dual", "double-vjp" (exact), "difference" (approximate).
        Default: chosen by the type of the module.
    precision : {"float32", "bf16"}, default="float32"
        Precision of the forward passes; "factored" requires "float32". In fp16, gradients would underflow.

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
    for method in (name for name in methods if name != "factored"):
        try:
            tangent, loss = _by_autograd(point, method, cotangent, meta)
        except RuntimeError as error:  # includes NotImplementedError
            if not _rule_is_missing(error):
                raise
            point.set_generators(point.after)  # the next method must draw the same dropout masks
        else:
            return LookAhead(point.logits, tangent, loss, method)
    fact = f"none of the methods {methods} can differentiate {type(module).__name__}"
    raise NotImplementedError(f"{fact}. Use the default methods, or layers that autograd can differentiate.")


def _rule_is_missing(error: RuntimeError) -> bool:
    """Whether autograd lacks a differentiation rule; other errors (memory, shapes) are raised."""
    text = str(error)
    return isinstance(error, NotImplementedError) or "not implemented" in text or "out= function" in text
