"""Processes that train one network together, each with a part of every batch, by `torch.distributed`.

Each process computes the network on its part. The logits of all parts are put together in every process, and what
depends on the whole batch (losses, counts of T, the meta-gradient of T) is computed from them there, alike in each: no
loss and no update knows of processes. What goes back through the network is a sum over the rows, so gradients are added
up, and parts may differ in size.

`DistributedDataParallel` does not fit: it averages over equal parts, and reduces the gradients of its own forward pass
alone, while the look-ahead needs gradients at other weights, and its forward pass is that of the step too.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import get_worker_info

_NOTHING: AbstractContextManager[None] = nullcontext()


class Share(NamedTuple):
    """Which rows of a batch a process has; by default all.

    Attributes
    ----------
    rank : int
        Number of the process, from 0.
    size : int
        Number of processes.
    """

    rank: int = 0
    size: int = 1

    def of(self, n: int) -> slice:
        """Rows of this process, out of n: none where there are fewer rows than processes."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def taken(self, n: int) -> NDArray[np.intp]:
        """Rows that go through the network here: of an empty part the first row, whose result is not used."""
        own = self.of(n)
        return np.arange(own.start, own.stop) if own.stop > own.start else np.arange(min(n, 1))

    def select(self, rows: Any) -> Any:
        """Those of some `Rows`."""
        return rows if self.size == 1 else rows.take(self.taken(len(rows)))


class Processes:
    """The processes of `torch.distributed`'s default group, while they train together; else this process alone.

    Methods that need the other processes wait for them: each must call them in the same order. Of a process alone they
    give back what they are given.
    """

    def __init__(self) -> None:
        self.share, self.device = Share(), torch.device("cpu")
        self._generator: Tensor | None = None
        self._draws_own = False

    @contextmanager
    def at_work(self, device: str | torch.device) -> Iterator[None]:
        """Train together inside of a with-block, with tensors on this device."""
        self.share, self.device = Share(dist.get_rank(), dist.get_world_size()), torch.device(device)
        try:
            yield
        finally:
            self.share = Share()

    @property
    def are_several(self) -> bool:
        """Whether there are other processes."""
        return self.share.size > 1

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy elsewhere, which is alone."""
        return vars(self) | {"share": Share(), "_generator": None}

    # ---- values of all processes
    def gathered(self, part: Tensor, n: int) -> Tensor:
        """Rows of all processes, in order, of which each gives its part; gradients go back to the own part.

        Parameters
        ----------
        part : Tensor of shape (rows taken, ...)
            For the rows that `Share.taken` names.
        n : int
            Number of rows of all processes together.

        Returns
        -------
        Tensor of shape (n, ...)
        """
        if not self.are_several:
            return part
        own = self.share.of(n)
        part = part[: own.stop - own.start]
        whole = torch.zeros((n, *part.shape[1:]), dtype=part.dtype, device=part.device)
        whole[own] = part.detach()
        dist.all_reduce(whole)  # parts of any sizes, with any backend: a sum of zeros and one part is exact
        return torch.cat([whole[: own.start], part, whole[own.stop :]]) if part.requires_grad else whole

    def part(self, whole: Tensor) -> Tensor:
        """Own rows of what all processes have; of an empty part, zeros for the row in its place."""
        if not self.are_several:
            return whole
        own = self.share.of(len(whole))
        return whole[own] if own.stop > own.start else torch.zeros_like(whole[:1])

    def summed(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Sums over the processes, of detached tensors."""
        if not self.are_several or not tensors:
            return tensors
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True)]

    def sum_gradients(self, module: nn.Module) -> None:
        """Replace the gradients of a module by their sums over the processes."""
        if self.are_several:
            gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
            for gradient, total in zip(gradients, self.summed(gradients), strict=True):
                gradient.copy_(total)

    def from_first(self, *parts: nn.Module) -> None:
        """Give modules the state that they have in the first process."""
        for part in parts if self.are_several else ():
            tensors = {k: v.contiguous() for k, v in part.state_dict().items() if isinstance(v, Tensor)}
            for tensor in tensors.values():
                dist.broadcast(tensor, 0)
            part.load_state_dict(tensors, strict=False)

    def object_from_first(self, value: Any) -> Any:
        """Copy of a value of the first process, which must be picklable."""
        values = [value]
        dist.broadcast_object_list(values, 0, device=self.device)
        return values[0]

    def numbers(self, number: int) -> list[int]:
        """Integer of each process."""
        own = torch.tensor([number], device=self.device)
        return self.gathered(own, self.share.size).tolist()

    def agree(self, number: int) -> bool:
        """Whether all processes give the same integer."""
        return len(set(self.numbers(number))) == 1

    # ---- random numbers
    def begin_epoch(self) -> None:
        """Seed what this process draws for its part, from the common generator, which stays as it is."""
        if not self.are_several:
            return
        before = torch.get_rng_state()
        seed = int(torch.randint(2**62, ())) + self.share.rank
        torch.manual_seed(seed)  # of GPUs too, whose generators draw for the own part alone
        self._generator = torch.get_rng_state()
        torch.set_rng_state(before)

    def own_draws(self) -> AbstractContextManager[None]:
        """Draw for the own part inside of a with-block (dropout, augmentation).

        The common generator, which decides the order of the batches, stays the same in all processes: parts differ in
        size, and in how many numbers are drawn for them.
        """
        in_place = not self.are_several or self._draws_own
        if in_place or get_worker_info() is not None:  # a process that loads batches has its own generator
            return _NOTHING
        return self._own_draws()

    @contextmanager
    def _own_draws(self) -> Iterator[None]:
        common, self._draws_own = torch.get_rng_state(), True
        if self._generator is not None:
            torch.set_rng_state(self._generator)
        try:
            yield
        finally:
            self._generator, self._draws_own = torch.get_rng_state(), False
            torch.set_rng_state(common)


#: this process, for what is not trained with others
ALONE = Processes()


def is_worker() -> bool:
    """Whether this process was started by another one, as those of joblib are."""
    return multiprocessing.current_process().name != "MainProcess"
