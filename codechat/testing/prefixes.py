"""The cache of prefixes of a test server, as inference servers keep one: in blocks, over all conversations."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping

BLOCK = 16
"""Words of a block: only whole ones are kept."""


class Prefixes:
    """What was read and written before; nothing is ever dropped."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def served(self, messages: Iterable[Mapping[str, str]]) -> int:
        """The words at the beginning of a conversation that are known already."""
        return BLOCK * sum(1 for _ in itertools.takewhile(self._known.__contains__, _blocks(messages)))

    def keep(self, messages: Iterable[Mapping[str, str]], reply: str) -> None:
        """Keep a conversation with its reply."""
        self._known.update(_blocks([*messages, {"role": "assistant", "content": reply}]))


def _blocks(messages: Iterable[Mapping[str, str]]) -> Iterator[bytes]:
    """The hash of every whole block, and of all that is before it. Roles belong to the first word of a message."""
    words = [
        word if number else f"{message['role']} {word}"
        for message in messages
        for number, word in enumerate((message["content"] or "").split())
    ]
    so_far = hashlib.sha256()
    for start in range(0, len(words) - BLOCK + 1, BLOCK):
        so_far.update("\0".join(words[start : start + BLOCK]).encode() + b"\1")
        yield so_far.digest()
