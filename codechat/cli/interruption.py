"""Ctrl-C and SIGTERM. Once: finish the calls under way, then end. Twice: end now."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator

from codechat.calls import Brake
from codechat.cli.terminal import err
from codechat.engine.sessions import GRACE_S

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def on_signal(brake: Brake) -> Iterator[None]:
    """Within a coroutine: the first signal pulls the brake; a second one, or a time limit, cancels the task."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def react() -> None:
        if brake.interrupted:
            task.cancel()
            return
        err.print(f"\ninterrupted: calls under way are finished ({GRACE_S:.0f} s at most); once more ends now")
        brake.pull("interrupted", interrupted=True)
        loop.call_later(GRACE_S, task.cancel)

    for number in SIGNALS:
        loop.add_signal_handler(number, react)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """SIGTERM raises `KeyboardInterrupt`, as Ctrl-C does, while no coroutine handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
