"""Ctrl-C and the signals of schedulers. Once: finish the calls under way, then end. Twice: end now."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from codechat.cli.terminal import err
from codechat.models.calls import Brake
from codechat.run.running.sessions import GRACE_S

# Schedulers announce an end by SIGTERM, SIGUSR1 or SIGUSR2.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# SLURM sends SIGTERM to a job's processes and its shell, which passes it on: two of them are one wish.
ONE_WISH_S = 1.0


@contextlib.contextmanager
def on_signal(brake: Brake) -> Iterator[None]:
    """Within a coroutine: the first signal pulls the brake; a second one, or a time limit, cancels the task."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    first = 0.0

    def react(number: int) -> None:
        nonlocal first
        if not brake.interrupted:
            first = time.monotonic()
            err.print(f"\ninterrupted: calls under way are finished ({GRACE_S:.0f} s at most); once more ends now")
            brake.pull("interrupted", interrupted=True)
            loop.call_later(GRACE_S, task.cancel)
        elif number == signal.SIGINT or time.monotonic() > first + ONE_WISH_S:
            task.cancel()

    before = _handlers()
    for number in SIGNALS:
        loop.add_signal_handler(number, react, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """The signals raise `KeyboardInterrupt`, as Ctrl-C does, while no coroutine handles them."""
    with _handle_by(signal.default_int_handler):
        yield


@contextlib.contextmanager
def pass_on(stop: Callable[[], None]) -> Iterator[None]:
    """The first two signals call `stop`, which asks other processes to end; the third raises `KeyboardInterrupt`."""
    wishes = 0

    def react(number: int, frame: FrameType | None) -> None:
        nonlocal wishes
        wishes += 1
        if wishes > 2:
            raise KeyboardInterrupt
        stop()
        if wishes == 1:
            err.print(f"\ninterrupted: calls under way are finished ({GRACE_S:.0f} s at most); once more ends now")

    with _handle_by(react):
        yield


@contextlib.contextmanager
def _handle_by(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handlers()
    for number in SIGNALS:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _handlers() -> dict[signal.Signals, Any]:
    """The handler of each signal. One that is not Python's cannot be put back: the default stands for it."""
    return {number: signal.getsignal(number) or signal.SIG_DFL for number in SIGNALS}
