"""Runs a script as a user would: in a file and by an interpreter of its own, with an exit status for an answer."""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH102, PTH109, PTH118, PTH123

import io
import os
import shutil
import sys
import tarfile
from typing import Any, NoReturn

NAME = "script.py"


def own_folder(scratch: list[str], namespaces: bool) -> None:
    """Go where files may be written: the folder that is the program's alone, else one that is made for it."""
    folder = scratch[-1] if scratch else "/tmp"
    if not namespaces:
        folder = _named(folder, os.getpid())
        os.mkdir(folder, 0o700)
    os.chdir(folder)


def clear(scratch: list[str], process: int) -> None:
    """Without namespaces: remove the folder that was made for a process."""
    folder = _named(scratch[-1] if scratch else "/tmp", process)
    if os.path.isdir(folder):  # noqa: PTH112
        shutil.rmtree(folder, ignore_errors=True)


def _named(folder: str, process: int) -> str:
    return os.path.join(folder, f"codechat-{process}")


def make_ready(job: dict[str, Any]) -> None:
    """Write the script and what it brings into the working folder."""
    with open(NAME, "w", encoding="utf-8", errors="surrogatepass", newline="") as stream:
        stream.write(job["script"])
    if job["archive"]:
        with tarfile.open(fileobj=io.BytesIO(job["archive"])) as archive:
            archive.extractall(filter="data")
    os.chdir(job["folder"])


def run(job: dict[str, Any], paths: list[str]) -> NoReturn:
    """Become the interpreter that runs the script; standard error goes to the parent."""
    os.dup2(3, 2)
    places = {"PYTHONPATH": os.pathsep.join([*job["imports"], *paths]), "TMPDIR": os.getcwd()}
    token = {"CODECHAT_TOKEN": job["token"]} if job["token"] else {}
    os.execve(sys.executable, [sys.executable, "-s", "-B", *job["arguments"]], {**os.environ, **places, **token})
