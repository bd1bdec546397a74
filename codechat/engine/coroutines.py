"""Run a coroutine from synchronous code, inside a notebook too."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from codechat.calls import Brake

T = TypeVar("T")


def run_coroutine(start: Callable[[], Coroutine[Any, Any, T]], brake: Brake) -> T:
    """Run a coroutine to its end; in a thread of its own if this thread runs an event loop, as in a notebook.

    A `KeyboardInterrupt` meanwhile pulls the brake and waits for the calls under way.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(asyncio.run(start()))
        except BaseException as error:  # noqa: BLE001  raised again below, in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=work, name="codechat")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        brake.pull("interrupted", interrupted=True)
        thread.join()
    if failure:
        raise failure[0]
    return result[0]
