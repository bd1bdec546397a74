"""Commands that are killed again and again, in processes that begin as forks of one that has loaded codechat."""

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

from codechat.cli.app import entry

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    [
        *("numpy", "codechat.cli.app", "codechat.cli.run", "codechat.cli.run", "codechat.run.run"),
        *("codechat.run.construct.run", "codechat.studies.multicodeif.construct", "composed"),
    ]
)


def start(folder: Path, *words: str) -> BaseProcess:
    """`codechat` with these words in the folder. What it prints is not kept."""
    process = _FORKED.Process(target=_command, args=(words, str(folder), dict(os.environ)))
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """The exit status, once there is one."""
    process.join(300)
    return process.exitcode


def _command(words: tuple[str, ...], folder: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.argv[1:] = words
    entry()
