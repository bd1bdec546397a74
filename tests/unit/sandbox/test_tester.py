"""The process that runs the snippets, without the program's: how it ends."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from codechat.sandbox.inside import tester, wire


class Left(BaseException):
    """Raised instead of the end of this process."""


class Channel:
    """What the tester reports, and whether it is on its way."""

    def __init__(self) -> None:
        self.sent, self.flushed = list[bytes](), False

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.sent.append(kind)

    def flush(self) -> None:
        self.flushed = True


class Link:
    """To a program that is gone."""

    def send(self, kind: bytes, payload: bytes) -> None:
        raise BrokenPipeError

    def receive(self) -> tuple[bytes, bytes]:
        raise EOFError


ENDS: dict[str, tuple[Callable[[tester.Tester], Any], int, list[bytes]]] = {
    "sends to nobody": (lambda one: one._send(wire.NAMES, b""), wire.GONE, []),
    "hears from nobody": (lambda one: one._receive(), wire.GONE, []),
    "needs one process": (lambda one: one._inside("object"), 0, [wire.INSIDE]),
    "is sent what no candidate sends": (lambda one: one._garbled("why"), 0, [wire.GARBLED]),
    "has an unknown reason": (lambda one: one._inside("mine"), 0, [wire.GARBLED]),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_a_run_ends_it_before_a_snippet_can_go_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snippet may catch every exception: nothing but the end of the process is one."""

    def leave(status: int) -> None:
        raise Left(status)

    channel: Any = Channel()
    link: Any = Link()
    one = tester.Tester({"entry": "f", "arrays": "none"}, channel, link)
    act, status, sent = ENDS[name]
    with monkeypatch.context() as patched:
        patched.setattr(os, "_exit", leave)
        with pytest.raises(Left) as left:
            act(one)
    assert left.value.args == (status,)
    assert channel.sent == sent and channel.flushed
