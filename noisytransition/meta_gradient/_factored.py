"""Look-ahead of an MLP with ReLU activations, without autograd, from the layers' inputs in the shared forward pass."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._forward_pass import has_parts


def is_relu_mlp(module: nn.Module) -> bool:
    """Whether a module is a plain ``Sequential(Flatten, Linear, ReLU, Linear, ...)``; Flatten is optional.

    False for modules with hooks, parametrizations, shared weights or half-precision weights.
    """
    if type(module).forward is not nn.Sequential.forward or _is_hooked(module):
        return False
    _, layers = _split(module)
    if [type(layer) for layer in layers] != [nn.Linear, nn.ReLU] * (len(layers) // 2) + [nn.Linear]:
        return False
    weights = [w for layer in layers for w in layer._parameters.values() if w is not None]
    return (
        len({id(w) for w in weights}) == len(weights)
        and all(w.dtype in (torch.float32, torch.float64) and not w._backward_hooks for w in weights)
        and not any(map(_is_hooked, module._modules.values()))
    )


def _is_hooked(module: Any) -> bool:
    """Whether a module has hooks, or an instance attribute ``forward``."""
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(hooks) or "forward" in vars(module)


def _split(module: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """Return Flatten (or the identity) and the other layers."""
    layers: list[Any] = list(module._modules.values())  # `children` omits repeated layers
    flattens = bool(layers) and isinstance(layers[0], nn.Flatten) and not list(layers[0].parameters())
    return (layers[0], layers[1:]) if flattens else (nn.Identity(), layers)


def factored_look_ahead(
    module: nn.Module,
    x: Any,
    cotangent: Callable[[Tensor], Tensor],
    meta: tuple[Any, Tensor],
    rates: Mapping[str, float],
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return logits, tangent and clean loss as in `look_ahead`; None if this method does not support the module."""
    if has_parts(x) or not is_relu_mlp(module):
        return None
    flatten, _ = _split(module)
    x = flatten(x)
    if x.ndim != 2:
        return None
    layers: list[nn.Linear] = []
    inputs: list[Tensor] = []
    of_layers: list[tuple[float, float]] = []
    logits = x
    for name, layer in module._modules.items():
        if isinstance(layer, nn.Linear):
            x = torch.relu(logits) if layers else x
            logits = F.linear(x, layer.weight, layer.bias)
            layers.append(layer)
            inputs.append(x.detach())
            of_layers.append((rates.get(f"{name}.weight", 0.0), rates.get(f"{name}.bias", 0.0)))  # 0: fixed parameters
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
    for layer, (rate, of_bias), inputs, d in zip(layers, rates, noisy, of_outputs, strict=True):
        clean.append(x.relu_() if clean else x)
        moved.append(torch.addmm(layer.weight, d.T, inputs, alpha=-rate))
        bias = None if layer.bias is None else torch.sub(layer.bias, d.sum(0), alpha=of_bias)
        x = F.linear(clean[-1], moved[-1], bias)
    log_proba = torch.log_softmax(x, 1)
    of_clean = log_proba.exp().div_(len(x))
    of_clean.scatter_add_(1, y[:, None], x.new_full((len(x), 1), -1 / len(x)))
    tangent = torch.zeros(())
    of_outputs = _cotangents(of_clean, moved, clean)
    for layer, (rate, of_bias), inputs, x, d in zip(layers, rates, noisy, clean, of_outputs, strict=True):
        own = torch.addmm(of_bias * d.sum(0), inputs, x.T @ d, alpha=rate)
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
