"""A network at its present weights W, and one forward pass on the noisy batch that all computations share."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .._precision import logits_of
from .._replaced import called_with, places_of

# of a direction: sums of PyTorch's forward rule of batch normalisation over rows and pixels overflow at 1 already
# (images of 32 x 32 pixels, batches of 32 and 128); at 1/32 and 1/256 the tangent is that of float32
_LENGTH_IN_FP16 = 1 / 32


class Point:
    """A network at W and its logits on the noisy batch.

    Only this forward pass updates the module's buffers; all others get copies.

    Parameters
    ----------
    module : nn.Module
        In train or eval mode.
    x : Tensor
        The noisy batch, rows first.
    rates : mapping of str to float
        Look-ahead rate of each parameter to move, by its name in ``module.named_parameters()``.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Of the module's forward passes. In fp16, what goes back through them is scaled: it would be zero.
    """

    def __init__(self, module: nn.Module, x: Tensor, rates: Mapping[str, float], precision: str = "float32") -> None:
        weights: dict[str, Tensor] = dict(module.named_parameters())
        self.module, self.x, self.precision = module, x, precision
        self.scale = float(len(x)) if precision == "fp16" else 1.0  # the cotangents of a mean are at most 1 / n
        self.names = list(rates)
        self.rates = list(rates.values())
        self.weights = [weights[name] for name in self.names]
        self._devices = [x.device] if x.is_cuda else []
        buffers = dict(module.named_buffers())
        self._places = places_of(module, weights | buffers)
        self._buffers = {name: buffer.clone() for name, buffer in buffers.items()}
        self._before = self._generator_states()
        self.logits = logits_of(module, x, precision)
        self._after = self._generator_states()

    def __call__(self, weights: Sequence[Tensor], x: Tensor) -> Tensor:
        """Logits at other weights, with the buffers from before the shared pass; the module is unchanged."""
        tensors = {name: buffer.clone() for name, buffer in self._buffers.items()}
        tensors |= dict(zip(self.names, weights, strict=True))
        return logits_of(lambda x: called_with(self.module, self._places, tensors, x), x, self.precision)

    def gradient(self, cotangent: Tensor, *, create_graph: bool = False) -> tuple[Tensor, ...]:
        """Gradient of <cotangent, logits> for each weight; the graph of the logits is kept."""
        gradient = torch.autograd.grad(
            self.logits,
            self.weights,
            self.up(cotangent),
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            materialize_grads=True,
        )
        return self.down(gradient)

    def up(self, value: Tensor) -> Tensor:
        """Scale what goes back through the module."""
        return value if self.scale == 1 else value * self.scale

    def down(self, gradient: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Undo `up` in a gradient."""
        return gradient if self.scale == 1 else tuple(g / self.scale for g in gradient)

    def normalized(self, direction: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor | float]:
        """Direction of a length that fp16 has digits for, and its own length as a multiple of that."""
        if self.precision != "fp16":
            return direction, 1.0
        length = length_of(direction).clamp_min(1e-30) / _LENGTH_IN_FP16
        return torch._foreach_div(list(direction), length), length

    def stepped(self, gradient: Sequence[Tensor]) -> list[Tensor]:
        """W_hat = W - rate * gradient, as new leaves: a plain SGD step, as in the paper."""
        with torch.no_grad():
            moved = torch._foreach_add(self.weights, self.scaled(gradient), alpha=-1)
        return [weight.requires_grad_() for weight in moved]

    def scaled(self, gradient: Sequence[Tensor]) -> list[Tensor]:
        """Rate * gradient, weight by weight."""
        return list(torch._foreach_mul([g.detach() for g in gradient], self.rates))

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Run a forward pass with the random numbers (dropout masks) of the shared one, then restore the generators."""
        with torch.random.fork_rng(devices=self._devices):
            self._set_generators(self._before)
            yield

    def restore_generators(self) -> None:
        """Set the generators to their state after the shared forward pass."""
        self._set_generators(self._after)

    def _generator_states(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(d) for d in self._devices)]

    def _set_generators(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for device, state in zip(self._devices, states[1:], strict=True):
            torch.cuda.set_rng_state(state, device)


def length_of(direction: Sequence[Tensor]) -> Tensor:
    """Euclidean norm over all weights, a scalar that stays on the device."""
    return torch.stack(torch._foreach_norm(list(direction))).norm()
