"""Small networks of one shape, trained at once on rows of their own: each layer is one batched product.

A step of a small network takes longer to prepare than to compute, so that one of several takes hardly longer.
"""

import copy
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, zip_longest
from typing import Any

import torch
from skorch.utils import TeeGenerator
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.rnn import pad_sequence
from torch.optim import Optimizer

from ..meta_gradient import is_relu_mlp
from ._finite import check_losses, check_weights
from ._net import NoisyLabelNet
from ._rows import Batch, Rows

# weights of all networks: with more, computing takes longer than preparing; a choice, not measured
_MOST_WEIGHTS = 2**21
# label of what fills up the smaller batches
_NO_LABEL = -100
# parameters of a net that may have any value: what they do is done here too, or has no effect on a step
_ANY = {"module", "optimizer", "lr", "max_epochs", "batch_size", "verbose", "labels", "dtype", "predict_nonlinearity"}
_ANY |= {"criterion", "callbacks", "update", "select", "processes", "classes", "iterator_valid"}
_ANY |= {"iterator_train__drop_last"}
_ANY_OF = ("module__", "optimizer__", "iterator_valid__", "callbacks__", "_")


def is_small(module: nn.Module, n: int) -> bool:
    """Whether n networks like this module can be trained at once: few weights, Linear layers with ReLU between them."""
    weights = list(module.parameters())
    if any(map(is_lazy, weights)):  # which a single training refuses
        return False
    few = n * sum(weight.numel() for weight in weights) <= _MOST_WEIGHTS
    layers = nn.Sequential(module) if type(module) is nn.Linear else module
    return few and is_relu_mlp(layers) and all(weight.requires_grad for weight in weights)


def is_plain(net: NoisyLabelNet) -> bool:
    """Whether a net is trained by cross-entropy and one of torch's optimisers, with nothing between the steps."""
    default, loss, optimizer = NoisyLabelNet(nn.Linear).get_params(deep=False), net.criterion_, type(net.optimizer_)
    others = {k: v for k, v in net.get_params(deep=False).items() if k not in _ANY and not k.startswith(_ANY_OF)}
    return (
        type(net) is NoisyLabelNet
        and all(type(default.get(k)) is type(v) and default[k] == v for k, v in others.items())
        and type(loss) is nn.CrossEntropyLoss
        and (loss.weight, loss.ignore_index, loss.reduction) == (None, _NO_LABEL, "mean")
        and optimizer.__module__.startswith("torch.optim.")
        and optimizer is not torch.optim.LBFGS
    )


class Together:
    """Nets that are trained at once; the result is that of single trainings, to rounding.

    Parameters
    ----------
    nets : sequence of NoisyLabelNet
        Initialised, alike but for their weights; each `is_plain`, and its module `is_small`.
    rows : sequence of Rows
        Of each net.
    generators : sequence of Tensor
        State of torch's generator at the start of each training: each net draws its own batches.
    """

    def __init__(self, nets: Sequence[NoisyLabelNet], rows: Sequence[Rows], generators: Sequence[Tensor]) -> None:
        self.nets, self.rows, self.generators = nets, rows, list(generators)

    def train(self) -> None:
        """Train all nets, as `partial_fit` does with one."""
        loaders = []
        for net, rows in self._each(self.rows):
            net._is_trained_now = True
            net.notify("on_train_begin", X=rows, y=rows.label)
            loaders.append(net.get_iterator(rows, training=True))
        optimizer = _joined([net.optimizer_ for net in self.nets])
        layers = [_Layer(linears) for linears in zip(*map(_linears, self.nets), strict=True)]
        for _ in range(self.nets[0].max_epochs):
            self._epoch(loaders, layers, optimizer)
        for layer in layers:
            layer.part()
        for net, rows in self._each(self.rows):
            net.optimizer_.state.update((p, optimizer.state[p]) for p in net.plain_module_.parameters())
            net.notify("on_train_end", X=rows, y=rows.label)
            net._is_trained_now = False
            check_weights(net)

    def _each(self, items: Iterable) -> Iterator[tuple[NoisyLabelNet, ...]]:
        """Each net, and what belongs to it, with its generator while it is its turn."""
        for k, pair in enumerate(zip(self.nets, items, strict=True)):
            with self._draws_of(k):
                yield pair

    @contextmanager
    def _draws_of(self, k: int) -> Iterator[None]:
        torch.set_rng_state(self.generators[k])
        yield
        self.generators[k] = torch.get_rng_state()

    def _epoch(self, loaders: Sequence[Any], layers: "Sequence[_Layer]", optimizer: Optimizer) -> None:
        """Run an epoch of all nets."""
        batches = []
        for net, (rows, loader) in self._each(zip(self.rows, loaders, strict=True)):
            net.notify("on_epoch_begin", dataset_train=rows, dataset_valid=None)
            of_net = iter(loader)
            batches.append(chain([next(of_net)], of_net))  # the first batch draws the order
        with ExitStack() as stack:
            for net in self.nets:
                stack.enter_context(net.reading_at_end())
            for of_nets in zip_longest(*batches):
                self._step({k: batch for k, batch in enumerate(of_nets) if batch is not None}, layers, optimizer)
        for net, (rows, loader) in self._each(zip(self.rows, loaders, strict=True)):
            net.history.record("train_batch_count", len(loader))
            check_losses(net)
            net.notify("on_epoch_end", dataset_train=rows, dataset_valid=None)

    def _step(self, batches: dict[int, Batch], layers: "Sequence[_Layer]", optimizer: Optimizer) -> None:
        """Take a step of each net that has a batch left."""
        for k, batch in batches.items():
            self.nets[k].notify("on_batch_begin", batch=batch, training=True)
        x = self._padded({k: self.nets[k].prepare(batch.x) for k, batch in batches.items()}).flatten(2)
        labels = self._padded({k: batch.label for k, batch in batches.items()}, _NO_LABEL)
        logits, losses = self._backward(x, labels, layers, batches)
        for k, batch in batches.items():
            named = TeeGenerator(self.nets[k].get_all_learnable_params())
            self.nets[k].notify("on_grad_computed", named_parameters=named, batch=batch, training=True)
        optimizer.step()
        of_each = losses.unbind()
        for k, batch in batches.items():
            net, of_rows = self.nets[k], logits[k, : len(batch.label)]
            net.record_batch("train_loss", of_each[k])
            net.record_batch("train_batch_size", len(batch.label))
            net.notify("on_batch_end", batch=batch, training=True, loss=of_each[k], y_pred=of_rows)

    def _padded(self, parts: dict[int, Tensor], value: float = 0) -> Tensor:
        """Rows of each net, filled up to equally many; shape (n_nets, n, ...)."""
        none = next(iter(parts.values()))[:0]
        return pad_sequence([parts.get(k, none) for k in range(len(self.nets))], True, value)

    @torch.no_grad()
    def _backward(
        self, x: Tensor, labels: Tensor, layers: "Sequence[_Layer]", having: Container[int]
    ) -> tuple[Tensor, Tensor]:
        """Logits, and each net's mean loss; sets the gradients, by hand: autograd takes as long again."""
        inputs = [x]
        for layer in layers[:-1]:
            inputs.append(torch.relu(layer.forward(inputs[-1])))
        logits = layers[-1].forward(inputs[-1])
        losses, d = self._losses(logits, labels)
        for i in range(len(layers) - 1, -1, -1):
            layers[i].give_gradients(d, inputs[i], having)
            d = d @ layers[i].joined[0] * (inputs[i] > 0) if i else d
        return logits, losses

    def _losses(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Mean loss of each net's batch, and the gradients of their sum by the logits."""
        smoothing, has_label = self.nets[0].criterion_.label_smoothing, (labels != _NO_LABEL).to(logits)
        share = (has_label / has_label.sum(dim=1, keepdim=True).clamp(min=1))[..., None]
        target = torch.full_like(logits, smoothing / logits.shape[2]) * share
        target.scatter_add_(2, labels.clamp(min=0)[..., None], (1 - smoothing) * share)
        log_proba = torch.log_softmax(logits, 2)
        return -(target * log_proba).sum((1, 2)), log_proba.exp() * share - target


class _Layer:
    """One Linear layer of all nets; while they are trained, their weights are parts of its own."""

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        self.parameters = list(zip(*(linear.parameters() for linear in linears), strict=True))
        self.joined = [torch.stack([p.detach() for p in of_nets]) for of_nets in self.parameters]
        for of_nets, joined in zip(self.parameters, self.joined, strict=True):
            for p, part in zip(of_nets, joined, strict=True):
                p.data = part

    def forward(self, x: Tensor) -> Tensor:
        """Outputs, shape (n_nets, n, n_out)."""
        weight, *bias = self.joined
        return torch.baddbmm(bias[0][:, None], x, weight.mT) if bias else x @ weight.mT

    def give_gradients(self, d: Tensor, x: Tensor, having: Container[int]) -> None:
        """Set the gradients of the nets that have a batch, from inputs and the gradients of outputs."""
        for of_nets, joined in zip(self.parameters, (d.mT @ x, d.sum(1)), strict=False):
            for k, (p, gradient) in enumerate(zip(of_nets, joined.unbind(), strict=True)):
                p.grad = gradient if k in having and p.requires_grad else None

    def part(self) -> None:
        """Give each net weights of its own again."""
        for p in chain(*self.parameters):
            p.data, p.grad = p.data.clone(), None


def _linears(net: NoisyLabelNet) -> list[nn.Linear]:
    return [layer for layer in net.plain_module_.modules() if isinstance(layer, nn.Linear)]


def _joined(optimizers: Sequence[Optimizer]) -> Optimizer:
    """One optimiser for the weights of several of the same kind; the groups, with their rates, are theirs."""
    joined = copy.copy(optimizers[0])
    joined.state = defaultdict(dict)
    joined.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    return joined
