"""Runs any program as a user would: in a folder with its files, with an exit status for an answer."""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH103, PTH109, PTH118, PTH120, PTH123

import io
import os
import shutil
import sys
import tarfile
from typing import Any, NoReturn

from codechat.sandbox.inside import wire

PATH = "/usr/local/bin:/usr/bin:/bin"
OF_THE_INTERPRETER = "LD_LIBRARY_PATH"  # where its own libraries are, which are not a tool's
NOT_RUN = 127


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
    """Write what the command brings into the working folder, and go to where it runs."""
    for name, data in job["files"].items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as stream:
            stream.write(data)
        os.chmod(name, 0o755)
    if job["archive"]:
        with tarfile.open(fileobj=io.BytesIO(job["archive"])) as archive:
            archive.extractall(filter="data")
    os.chdir(job["folder"])


def run(job: dict[str, Any], paths: list[str]) -> NoReturn:
    """Become the program."""
    program, *arguments = job["argv"]
    given = job["environment"]
    own = {"TMPDIR": os.getcwd(), **given}
    if program == wire.PYTHON:
        own["PYTHONPATH"] = os.pathsep.join([*filter(None, [given.get("PYTHONPATH")]), *paths])
        os.execve(sys.executable, [sys.executable, "-s", "-B", *arguments], {**os.environ, **own})
    of_the_box = {name: value for name, value in os.environ.items() if name != OF_THE_INTERPRETER}
    try:
        os.execvpe(program, [program, *arguments], {"PATH": PATH, **of_the_box, **own})
    except OSError as error:
        os.write(2, f"{program}: {os.strerror(error.errno or 0)}\n".encode())
        os.write(3, wire.HEADER.pack(wire.MISSING, 0, 0))
        os._exit(NOT_RUN)
