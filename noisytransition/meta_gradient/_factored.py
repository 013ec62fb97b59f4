"""Look-ahead of an MLP with ReLU activations, without autograd, from the layers' inputs in the shared forward pass.

The gradient of a Linear layer is ``d^T a``, with a the inputs of the layer and d the cotangents of its outputs. The
weights after the step act on other inputs b through the small matrix ``b a^T``, without forming the gradient. This is
cheaper for small batches and wide layers. Each layer uses the variant with fewer multiplications.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._forward_pass import has_parts

_Flatten = Callable[[Tensor], Tensor]


class _Layer(NamedTuple):
    """A Linear layer, its learning rates (0 for fixed parameters), and its inputs in the noisy batch."""

    weight: Tensor
    bias: Tensor | None
    weight_rate: float
    bias_rate: float
    inputs: Tensor


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


def _split(module: nn.Module) -> tuple[_Flatten, list[nn.Module]]:
    """Return Flatten (or the identity) and the other layers."""
    layers = [layer for layer in module._modules.values() if layer is not None]  # `children` omits repeated layers
    flattens = bool(layers) and isinstance(layers[0], nn.Flatten) and not list(layers[0].parameters())
    return (layers[0], layers[1:]) if flattens else (lambda x: x, layers)


class FactoredPoint:
    """An MLP at W, its logits on the noisy batch `x` of shape (n_samples, n_features), and the inputs of its layers.

    `flatten` reshapes a batch to two axes; `rates` are the learning rates of the virtual step by parameter name.
    """

    def __init__(self, module: nn.Module, flatten: _Flatten, x: Tensor, rates: Mapping[str, float]) -> None:
        self.flatten = flatten
        self.layers: list[_Layer] = []
        self.logits: Tensor = x
        for name, layer in module._modules.items():
            if isinstance(layer, nn.Linear):
                x = torch.relu(self.logits) if self.layers else x
                self.logits = F.linear(x, layer.weight, layer.bias)
                moves = (rates.get(f"{name}.weight", 0.0), rates.get(f"{name}.bias", 0.0))
                self.layers.append(_Layer(layer.weight, layer.bias, *moves, x.detach()))

    @torch.no_grad()
    def tangent(self, cotangent: Tensor, meta: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Compute the clean loss at W_hat and the tangent of the noisy logits."""
        d = cotangent
        steps: list[_Step] = []
        for i in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[i]
            steps.insert(0, _Step(layer, d, len(meta[0]), is_first=i == 0))
            d = _through_relu(d @ layer.weight, layer.inputs) if i else d
        x = self.flatten(meta[0])
        for i, step in enumerate(steps):
            x = step.forward(x.relu_() if i else x)
        log_proba = torch.log_softmax(x, 1)
        d = log_proba.exp().div_(len(x))
        d.scatter_add_(1, meta[1][:, None], d.new_full((len(d), 1), -1 / len(d)))
        for i in range(len(steps) - 1, -1, -1):
            d = steps[i].backward(d, is_first=i == 0)
        tangent = None
        for step in steps:
            tangent = step.tangent(tangent)
        assert tangent is not None, "an MLP has at least one layer"
        return F.nll_loss(log_proba, meta[1]), tangent


class _Step:
    """A layer at W_hat = W - rate * d^T a, with a its inputs and d the cotangents of its outputs on the noisy batch."""

    clean: Tensor
    clean_cotangents: Tensor
    products: Tensor

    def __init__(self, layer: _Layer, cotangents: Tensor, n_clean: int, *, is_first: bool) -> None:
        self.layer, self.cotangents = layer, cotangents
        n, n_in = layer.inputs.shape
        n_out = cotangents.shape[1]
        thin = n_clean * n * ((1 if is_first else 2) * n_in + (2 if is_first else 3) * n_out)
        self.is_thin = thin < (2 * n + n_clean) * n_in * n_out
        if not self.is_thin:
            self.weight = torch.addmm(layer.weight, cotangents.T, layer.inputs, alpha=-layer.weight_rate)
        self.bias = None if layer.bias is None else torch.sub(layer.bias, cotangents.sum(0), alpha=layer.bias_rate)

    def forward(self, clean: Tensor) -> Tensor:
        """Compute the outputs for clean inputs."""
        self.clean = clean
        if not self.is_thin:
            return F.linear(clean, self.weight, self.bias)
        self.products = clean @ self.layer.inputs.T
        moved = F.linear(clean, self.layer.weight, self.bias)
        return moved.addmm_(self.products, self.cotangents, alpha=-self.layer.weight_rate)

    def backward(self, cotangents: Tensor, *, is_first: bool) -> Tensor:
        """Map cotangents of the clean outputs to cotangents of the previous layer's outputs."""
        self.clean_cotangents = cotangents
        if is_first:
            return cotangents
        if not self.is_thin:
            return _through_relu(cotangents @ self.weight, self.clean)
        products = cotangents @ self.cotangents.T
        moved = (cotangents @ self.layer.weight).addmm_(products, self.layer.inputs, alpha=-self.layer.weight_rate)
        return _through_relu(moved, self.clean)

    def tangent(self, before: Tensor | None) -> Tensor:
        """Compute the tangent of the noisy outputs along rate * g, with g the gradient of the clean loss at W_hat."""
        layer = self.layer
        moved = layer.bias_rate * self.clean_cotangents.sum(0)
        if self.is_thin:
            moved = torch.addmm(moved, self.products.T, self.clean_cotangents, alpha=layer.weight_rate)
        else:
            gradient = self.clean.T @ self.clean_cotangents
            moved = torch.addmm(moved, layer.inputs, gradient, alpha=layer.weight_rate)
        return moved if before is None else moved.addmm_(_through_relu(before, layer.inputs), layer.weight.T)


def _through_relu(values: Tensor, activations: Tensor) -> Tensor:
    """Set values to 0 where the activation is not positive, as autograd's rule, in one pass."""
    return torch.ops.aten.threshold_backward(values, activations, 0)


def factored_point(module: nn.Module, x: Tensor, rates: Mapping[str, float]) -> FactoredPoint | None:
    """Return the point if the factored method supports the module and the batch, else None."""
    if has_parts(x) or not is_relu_mlp(module):
        return None
    flatten, _ = _split(module)
    x = flatten(x)
    return FactoredPoint(module, flatten, x, rates) if x.ndim == 2 else None
