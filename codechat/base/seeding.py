"""The one source of randomness: a generator per (seed, task, purpose)."""

import hashlib
import random


def generator(seed: int, task_id: str, purpose: str) -> random.Random:
    """A generator that depends only on its arguments, not on order, process or concurrency."""
    digest = hashlib.sha256(f"{seed}\x1f{task_id}\x1f{purpose}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
