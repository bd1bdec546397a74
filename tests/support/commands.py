"""Commands as a user gives them, in this process: one of their own is for signals, ends and several at once."""

import contextlib
import io
import subprocess
from pathlib import Path

from codechat.cli.app import main


def codechat(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What `codechat` with these words prints in the folder, and its status."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def in_process(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """The same of a whole command line, `python -m codechat …`: what a process takes to load is most of a small cell."""
    return codechat(folder, *words[words.index("codechat") + 1 :])
