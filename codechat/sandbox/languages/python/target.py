"""The interpreter that programs run on, if it is of another version than codechat's: its grammar says what is Python.

A resident process of it (`reader`) extracts code from replies then, within bounds of time and memory. It parses hostile
text and runs nothing of it. Analyses that only this interpreter's syntax tree allows stay undecided on newer syntax.
"""

import contextlib
import json
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from codechat.base.domain import Extraction
from codechat.base.errors import InfrastructureError
from codechat.sandbox.languages.python.syntax import parse

READER = Path(__file__).with_name("reader.py")
FOLDER = Path(__file__).resolve().parents[3]
LONGEST_S = 60.0  # by the clock, for an answer: far more than a reply takes on a busy machine
_target: ContextVar["Target | None"] = ContextVar("target", default=None)


class Target:
    """An interpreter of another version. `program` is its path; the process starts at the first question."""

    def __init__(self, program: str, version: str) -> None:
        self._argv = [program, "-I", "-S", "-B", str(READER), str(FOLDER)]
        self._environment = {"LD_LIBRARY_PATH": str(Path(program).parent.parent / "lib")}
        self.version = version
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def extract(self, reply: str, entry_point: str) -> Extraction:
        """The code of a reply, as `extraction.extract` with this interpreter. Raises `InfrastructureError`."""
        answer = self._ask([reply, entry_point])
        if answer is None:
            return Extraction(None, None, "no_code", f"Python {self.version} ends when it reads the reply")
        return Extraction(*answer)

    def parses(self, program: str) -> bool:
        """Whether it is a program for this interpreter. Raises `InfrastructureError`."""
        return bool(self._ask([program]) == "")

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(self, question: list[str]) -> Any:
        """The answer; None if the text ends two processes."""
        with self._lock:
            for _ in range(2):
                with contextlib.suppress(OSError, EOFError):
                    return json.loads(self._answer(json.dumps(question).encode()))
                self.close()
        return None

    def _answer(self, question: bytes) -> bytes:
        if self._process is None:
            pipe = subprocess.PIPE
            try:
                self._process = subprocess.Popen(
                    self._argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd="/", env=self._environment
                )
                self._tell(self._process, b'["x = 1"]')
            except (OSError, EOFError) as error:  # before it read any reply
                self.close()
                raise InfrastructureError(f"Python {self.version} ({self._argv[0]}) reads no code") from error
        return self._tell(self._process, question)

    def _tell(self, process: subprocess.Popen[bytes], question: bytes) -> bytes:
        """The process's answer. Raises `OSError` or `EOFError` if it ends."""
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(question + b"\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], LONGEST_S)[0]:
            self.close()
            raise InfrastructureError(f"Python {self.version} does not read a reply within {LONGEST_S:g} s")
        if not (line := process.stdout.readline()).endswith(b"\n"):
            raise EOFError
        return line


@contextlib.contextmanager
def reading_for(program: str, version: str, minor: tuple[int, int]) -> Iterator[None]:
    """Within it, and in tasks made there, Python is what this interpreter reads, if its version is another one."""
    target = Target(program, version) if minor != sys.version_info[:2] else None
    _target.set(target)
    try:
        yield
    finally:
        _target.set(None)
        if target is not None:
            target.close()


def target() -> Target | None:
    """The interpreter that programs run on; None if its version is this one's."""
    return _target.get()


def is_python(program: str) -> bool:
    """Whether a text is Python for the interpreter that programs run on."""
    other = target()
    return parse(program) is not None if other is None else other.parses(program)


def unread(program: str) -> str:
    """Why this interpreter's syntax tree says nothing of a program, though it is Python where it runs; else empty."""
    other = target()
    if other is None or parse(program) is not None or not other.parses(program):
        return ""
    own = ".".join(map(str, sys.version_info[:2]))
    return f"it has syntax of Python {other.version}, which codechat's own Python {own} does not read"
