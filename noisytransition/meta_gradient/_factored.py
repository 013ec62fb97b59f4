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
    weights = [w for layer in layers for w in layer._parameters.values() if w is not None]
    return (
        [type(layer) for layer in layers] == [nn.Linear, nn.ReLU] * (len(layers) // 2) + [nn.Linear]
        and len({id(w) for w in weights}) == len(weights)
        and all(w.dtype in (torch.float32, torch.float64) and not w._backward_hooks for w in weights)
        and not any(map(_is_hooked, module._modules.values()))
    )


def _is_hooked(module: nn.Module | None) -> bool:
    """Whether a module has hooks, or an instance attribute ``forward``."""
    if module is None:
        return False
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(hooks) or "forward" in vars(module)


def _split(module: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """Return Flatten (or the identity) and the other layers."""
    layers = [layer for layer in module._modules.values() if layer is not None]  # `children` omits repeated layers
    flattens = bool(layers) and isinstance(layers[0], nn.Flatten) and not list(layers[0].parameters())
    return (layers[0], layers[1:]) if flattens else (nn.Identity(), layers)


class _Layer:
    """A Linear layer at W and at W_hat, with its inputs in the noisy and in the clean batch."""

    noisy: Tensor
    clean: Tensor
    weight_hat: Tensor
    bias_hat: Tensor | None

    def __init__(self, layer: nn.Linear, weight_rate: float, bias_rate: float) -> None:
        self.weight = layer.weight
        self.bias = layer.bias
        self.weight_rate = weight_rate
        self.bias_rate = bias_rate

    def forward(self, x: Tensor) -> Tensor:
        """Compute the outputs of the noisy batch."""
        self.noisy = x.detach()
        return F.linear(x, self.weight, self.bias)

    def step(self, d: Tensor) -> None:
        """Move to W_hat; d are the cotangents of the noisy outputs."""
        self.weight_hat = torch.addmm(self.weight, d.T, self.noisy, alpha=-self.weight_rate)
        self.bias_hat = None if self.bias is None else torch.sub(self.bias, d.sum(0), alpha=self.bias_rate)

    def clean_forward(self, x: Tensor) -> Tensor:
        """Compute the outputs of the clean batch at W_hat."""
        self.clean = x
        return F.linear(x, self.weight_hat, self.bias_hat)

    def tangent(self, before: Tensor | None, d: Tensor) -> Tensor:
        """Compute the tangent of the noisy outputs along rate * g, from that of the outputs of the layer before.

        d are the cotangents of the clean outputs, and g the gradient of the clean loss.
        """
        moved = torch.addmm(self.bias_rate * d.sum(0), self.noisy, self.clean.T @ d, alpha=self.weight_rate)
        return moved if before is None else moved.addmm_(_through_relu(before, self.noisy), self.weight.T)


class FactoredPoint:
    """An MLP at W and its logits on the noisy batch; `rates` are those of the virtual step by parameter name."""

    def __init__(self, module: nn.Module, x: Tensor, rates: Mapping[str, float]) -> None:
        self.layers: list[_Layer] = []
        self.logits: Tensor = x
        for name, part in module._modules.items():
            if isinstance(part, nn.Linear):
                layer = _Layer(part, rates.get(f"{name}.weight", 0.0), rates.get(f"{name}.bias", 0.0))
                self.logits = layer.forward(torch.relu(self.logits) if self.layers else x)
                self.layers.append(layer)

    @torch.no_grad()
    def tangent(self, cotangent: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the loss of the clean batch at W_hat and the tangent of the noisy logits."""
        layers = self.layers
        noisy = _cotangents([(layer.weight, layer.noisy) for layer in layers], cotangent)
        for layer, d in zip(layers, noisy, strict=True):
            layer.step(d)
        for layer in layers:
            x = layer.clean_forward(x if layer is layers[0] else x.relu_())
        log_proba = torch.log_softmax(x, 1)
        d = log_proba.exp().div_(len(x))
        d.scatter_add_(1, y[:, None], d.new_full((len(d), 1), -1 / len(d)))
        tangent = None
        clean = _cotangents([(layer.weight_hat, layer.clean) for layer in layers], d)
        for layer, d in zip(layers, clean, strict=True):
            tangent = layer.tangent(tangent, d)
        assert tangent is not None, "an MLP has at least one layer"
        return F.nll_loss(log_proba, y), tangent


def _cotangents(layers: list[tuple[Tensor, Tensor]], of_logits: Tensor) -> list[Tensor]:
    """Cotangents of the outputs of layers, given their weights and inputs, from those of the logits."""
    found = [of_logits]
    for weight, inputs in layers[:0:-1]:
        found.insert(0, _through_relu(found[0] @ weight, inputs))
    return found


def _through_relu(values: Tensor, activations: Tensor) -> Tensor:
    """Set values to 0 where the activation is not positive, as autograd's rule, in one pass."""
    return torch.ops.aten.threshold_backward(values, activations, 0)


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
    point = FactoredPoint(module, x, rates)
    loss, tangent = point.tangent(cotangent(point.logits.detach()), flatten(meta[0]), meta[1])
    return point.logits, tangent, loss
