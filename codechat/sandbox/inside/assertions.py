"""Runs a program and then assertions on it in one interpreter, plainly.

What the program does can reach what decides here, so the verdict is marked (`decided: inside`): docs/sandbox.md lists
the attacks that pass. What is left keeps a program from passing by accident: an early exit, a skipped test, an empty
array of NumPy and a function with a builtin's name do not pass.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH109, PTH118, PTH120

import builtins
import mmap
import os
import signal
import socket
import sys
from typing import Any, NoReturn

from codechat.sandbox.inside import wire
from codechat.sandbox.inside.candidate import Channel, cache_snippets, describe, load, prepare
from codechat.sandbox.inside.responder import PROGRAM, write_program
from codechat.sandbox.inside.snippets import RUNNERS, Guarded, compile_snippet


def run(job: dict[str, Any], results: socket.socket, shared: mmap.mmap) -> NoReturn:
    """Load the program from a file, run every snippet after it, and end the process."""
    channel = prepare(results, shared)
    path = os.path.join(os.getcwd(), PROGRAM)
    labels = cache_snippets(job["snippets"])
    try:
        own = _load(job, path, channel)
        if own is not None:
            _run_snippets(job, own, path, list(labels), channel)
            channel.send(wire.DONE, job["token"])
    except BaseException as error:  # noqa: BLE001  anything that program or assertion raises is the program's failure
        channel.send(wire.ERROR, describe(error, {path: "", **labels}))
    finally:
        channel.flush()
        os._exit(0)


def _load(job: dict[str, Any], path: str, channel: Channel) -> dict[str, Any] | None:
    """The program's names after its code ran; None after reporting why there are none."""
    if "commands" in job["needs"]:
        os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), wire.PATH))
    write_program(path, job["program"])
    own = load(job["program"], path, job["load_cpu_s"], channel, lent=job["lent"])
    if own is not None and job["entry"] and job["entry"] not in own:
        channel.send(wire.MISSING)
        return None
    if own is not None:
        channel.send(wire.LOADED)
    return own


def _run_snippets(job: dict[str, Any], own: dict[str, Any], path: str, names: list[str], channel: Channel) -> None:
    space = own if job["shared"] else dict(own)
    space.update(__name__="candidate", __file__=path, __builtins__=builtins, **names(), **RUNNERS)
    hidden = {name: own[name] for name in job["hidden"] if name in own}
    for index, (name, snippet) in enumerate(zip(names, job["snippets"], strict=True)):
        channel.send(wire.AT, wire.INDEX.pack(index))
        signal.setitimer(signal.ITIMER_PROF, job["load_cpu_s"])
        for builtin, value in hidden.items():
            if not job["uses"][index]:
                space.setdefault(builtin, value)
            elif space.get(builtin) is value:
                del space[builtin]
        exec(compile_snippet(snippet, name, job["entry"], job["used"], Guarded()), space)
