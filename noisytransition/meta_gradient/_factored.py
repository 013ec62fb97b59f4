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


class _Layer:
    """A Linear layer at W and at W_hat, with its inputs in the noisy and in the clean batch."""

    clean: Tensor
    weight_hat: Tensor

    def __init__(self, layer: nn.Linear, rates: tuple[float, float], noisy: Tensor) -> None:
        self.weight = layer.weight
        self.bias = layer.bias
        self.weight_rate, self.bias_rate = rates
        self.noisy = noisy

    def clean_outputs(self, clean: Tensor, d: Tensor) -> Tensor:
        """Move to W_hat, with d the cotangents of the noisy outputs, and compute the outputs for clean inputs."""
        self.clean = clean
        self.weight_hat = torch.addmm(self.weight, d.T, self.noisy, alpha=-self.weight_rate)
        bias = None if self.bias is None else torch.sub(self.bias, d.sum(0), alpha=self.bias_rate)
        return F.linear(clean, self.weight_hat, bias)

    def tangent(self, d: Tensor) -> Tensor:
        """Compute the tangent of the noisy outputs along rate * g, with d the cotangents of the clean outputs."""
        return torch.addmm(self.bias_rate * d.sum(0), self.noisy, self.clean.T @ d, alpha=self.weight_rate)


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
    layers: list[_Layer] = []
    logits = x
    for name, layer in module._modules.items():
        if isinstance(layer, nn.Linear):
            x = torch.relu(logits) if layers else x
            logits = F.linear(x, layer.weight, layer.bias)
            of_layer = (rates.get(f"{name}.weight", 0.0), rates.get(f"{name}.bias", 0.0))  # 0 for fixed parameters
            layers.append(_Layer(layer, of_layer, x.detach()))
    return logits, *_tangent(layers, cotangent(logits.detach()), flatten(meta[0]), meta[1])


@torch.no_grad()
def _tangent(layers: list[_Layer], of_logits: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the tangent of the noisy logits, given their cotangents, and the clean loss at W_hat."""
    noisy = _cotangents(of_logits, [(layer.weight, layer.noisy) for layer in layers])
    for layer, d in zip(layers, noisy, strict=True):
        x = layer.clean_outputs(x if layer is layers[0] else x.relu_(), d)
    log_proba = torch.log_softmax(x, 1)
    of_clean = log_proba.exp().div_(len(x))
    of_clean.scatter_add_(1, y[:, None], x.new_full((len(x), 1), -1 / len(x)))
    clean = _cotangents(of_clean, [(layer.weight_hat, layer.clean) for layer in layers])
    tangent = layers[0].tangent(clean[0])
    for layer, d in zip(layers[1:], clean[1:], strict=True):
        tangent = layer.tangent(d).addmm_(_through_relu(tangent, layer.noisy), layer.weight.T)
    return tangent, F.nll_loss(log_proba, y)


def _cotangents(of_logits: Tensor, layers: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Cotangents of the outputs of each layer, given its weight and inputs, from those of the logits."""
    found = [of_logits]
    for weight, inputs in layers[:0:-1]:
        found.insert(0, _through_relu(found[0] @ weight, inputs))
    return found


def _through_relu(values: Tensor, activations: Tensor) -> Tensor:
    """Set values to 0 where the activation is not positive, as autograd's rule, in one pass."""
    return torch.ops.aten.threshold_backward(values, activations, 0)
