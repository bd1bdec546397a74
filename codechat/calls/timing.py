"""The clock and the random waits of calls, replaceable so that tests need not wait."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """`clock` in seconds from anywhere, `sleep` for seconds, `uniform` draws between two bounds.

    The draws only spread calls in time and change no result, so they need no seed.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform


REAL = Timing()
