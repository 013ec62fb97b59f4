"""What PyTorch keeps for the whole process, lent to one fit at a time and put back after it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._interrupts import interrupts_held, interrupts_let_through, raise_interrupt

# seconds between two looks whether Ctrl-C was pressed, while a fit waits for that of another thread
_LOOK_EVERY = 0.05
# forward-mode differentiation and the generators are shared by all threads: one fit at a time
_lock = threading.RLock()


class _Held(threading.local):
    """How often a thread holds the lock: more than once in a fit inside a fit, as in a callback."""

    depth = 0


_held = _Held()


def _renew_lock() -> None:
    """Make the lock anew in a forked process, where no thread is left that would release it."""
    global _lock
    _lock, _held.depth = threading.RLock(), 0


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew_lock)


class _State(NamedTuple):
    generator: Tensor
    on_devices: list[Tensor]
    n_threads: int
    gradients: bool

    @classmethod
    def present(cls) -> "_State":
        on_devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return cls(torch.get_rng_state(), on_devices, torch.get_num_threads(), torch.is_grad_enabled())

    def put(self) -> None:
        torch.set_rng_state(self.generator)
        if self.on_devices:
            torch.cuda.set_rng_state_all(self.on_devices)
        if self.n_threads != torch.get_num_threads():
            torch.set_num_threads(self.n_threads)
        torch.set_grad_enabled(self.gradients)


class GlobalState:
    """PyTorch's generators, number of threads and gradient mode, for one fit of a process at a time.

    Fits in several threads wait for each other, so that each has the result that it would have alone.
    """

    def __init__(self) -> None:
        self._outside: _State | None = None

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Wait until no other thread has it; put it back at the end. Ctrl-C is held back meanwhile."""
        with interrupts_held():
            self._take()
            try:
                yield
            finally:
                self._give_back()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have it while this fit waits for trainings that may be in other threads."""
        assert self._outside is not None, "it is not borrowed"
        inside = _State.present()
        self._give_back()
        with _outer_fits_lent(), interrupts_let_through():
            yield
        self._take()  # not after an error, which ends the fit: a thread that goes on may still have it
        inside.put()

    def _take(self) -> None:
        _wait()
        _held.depth += 1
        self._outside = _State.present()

    def _give_back(self) -> None:
        if self._outside is None:
            return
        outside, self._outside = self._outside, None
        try:
            outside.put()
        finally:
            _held.depth -= 1
            _lock.release()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle as one that is not borrowed."""
        return {"_outside": None}


@contextmanager
def _outer_fits_lent() -> Iterator[None]:
    """Release what the fits hold that this fit is inside of, and take it again at the end."""
    depth, _held.depth = _held.depth, 0
    for _ in range(depth):
        _lock.release()
    try:
        yield
    finally:
        for _ in range(depth):
            _lock.acquire()
        _held.depth = depth


def draw_seed() -> int:
    """Draw a seed from PyTorch's global generator, when no fit uses it."""
    _wait()
    try:
        return int(torch.randint(2**31 - 1, ()))
    finally:
        _lock.release()


def seed_generators(seed: int) -> None:
    """Seed PyTorch's global generators; without an accelerator, only the one that there is.

    `torch.manual_seed` keeps the seed, with a printed stack, for each kind of device, even where there is none.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def _wait() -> None:
    """Wait for the lock, but no longer than until Ctrl-C is pressed."""
    while not _lock.acquire(timeout=_LOOK_EVERY):
        raise_interrupt()
