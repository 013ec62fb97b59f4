"""Ctrl-C during a fit: noted, and raised where nothing is half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from skorch.callbacks import Callback, EarlyStopping

# modules whose functions are not interrupted; while a net is trained, none of them is on the stack
_UNINTERRUPTED = (__name__, f"{__package__}._global_state")
# whether Ctrl-C was pressed in the fit that the main thread is in; signals reach no other thread
_pressed = False


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Note a Ctrl-C, for `raise_interrupt` between two batches or for the end of the block.

    A second one raises at once. Without effect in other threads than the main one, inside another such block, and where
    the program handles SIGINT in its own way.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    raised = False
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    except KeyboardInterrupt:
        raised = True
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if _forget() and not raised:
            raise KeyboardInterrupt


@contextmanager
def interrupts_let_through() -> Iterator[None]:
    """Let Ctrl-C raise at once inside of `interrupts_held`, where the main thread waits for others."""
    if not _in_main_thread() or signal.getsignal(signal.SIGINT) is not _note:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        raise_interrupt()
        yield
    finally:
        signal.signal(signal.SIGINT, _note)


def raise_interrupt() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed."""
    if _pressed and _in_main_thread():
        raise KeyboardInterrupt


def _note(signum: int, frame: FrameType | None) -> Any:
    global _pressed
    if _pressed and not _takes_or_puts_back(frame):
        raise KeyboardInterrupt
    _pressed = True


def _takes_or_puts_back(frame: FrameType | None) -> bool:
    """Whether a fit is taking or putting back what it borrows, which must not be left half done."""
    if frame is not None and _module(frame) == "contextlib":
        return True
    while frame is not None and _module(frame) not in _UNINTERRUPTED:
        frame = frame.f_back
    return frame is not None


def _module(frame: FrameType) -> str | None:
    return frame.f_globals.get("__name__")


def _forget() -> bool:
    global _pressed
    pressed, _pressed = _pressed, False
    return pressed


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def out_of_patience(callback: Callback) -> bool:
    """Whether a KeyboardInterrupt out of a callback is an EarlyStopping's own way to end the stage."""
    return isinstance(callback, EarlyStopping) and callback.misses_ == callback.patience
