"""Replies read by the interpreter that programs run on, where it is of another version than codechat's."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.base.domain import Extraction, Instruction, Target
from codechat.base.errors import InfrastructureError
from codechat.sandbox.interpreters import interpreter_at
from codechat.sandbox.languages import extract
from codechat.sandbox.languages.python import target as module
from codechat.sandbox.languages.python.target import Target as Interpreter
from codechat.sandbox.languages.python.target import is_python, reading_for, target, unread
from codechat.studies.refine.patterns import adherence, applicable

ANOTHER = (99, 0)
F = Target("python", "f")
REPLY = "Here:\n```python\ndef f(x):\n    return x\n\nif __name__ == '__main__':\n    print(f(1))\n```\nDone."
NEW = "type Text = str\n\ndef f[T](x: T) -> T:\n    return x if f'{'x'}' else x\n"
REPLIES = {
    "a block": REPLY,
    "prose": "I cannot help.",
    "broken": "```python\ndef f(x:\n    return x\n```",
    "half a pair": "```python\ndef f(x):\n    return '\ud800'\n```",
    "a class": "```python\nclass Solution:\n    def f(self, x):\n        return x\n```",
    "deep": f"```python\ndef f(x):\n    return {'(' * 5000}{')' * 5000}\n```",
    "lines": "```python\r\ndef f(x):\r\n    return '\u2028\x0c'\r\n```",
    "empty": "",
}


@pytest.fixture
def same() -> Iterator[None]:
    """This interpreter, asked as if it were of another version."""
    with reading_for(sys.executable, "99.0", ANOTHER):
        yield


@pytest.mark.parametrize("reply", REPLIES)
def test_it_extracts_what_this_interpreter_does(reply: str) -> None:
    own = extract(REPLIES[reply], F)
    with reading_for(sys.executable, "99.0", ANOTHER):
        assert extract(REPLIES[reply], F) == own


def test_the_same_version_costs_nothing() -> None:
    with reading_for("/no/interpreter", "3.x", sys.version_info[:2]):
        assert target() is None and extract(REPLY, F).problem is None
    assert target() is None and unread("def f(x:") == "" and not is_python("def f(x:")


def test_one_process_answers_and_ends_with_the_context() -> None:
    with reading_for(sys.executable, "99.0", ANOTHER):
        other = target()
        assert other is not None and is_python("x = 1") and not is_python("x = = 1")
        process = other._process
        assert process is not None and extract(REPLY, F).problem is None and other._process is process
    assert process.poll() is not None and target() is None


def fake(folder: Path, body: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


FIRST = "read first; echo '\"\"'"  # the answer to the question by which an interpreter shows that it reads


def test_a_text_that_ends_the_interpreter_is_no_syntax_error(tmp_path: Path) -> None:
    body = f"{FIRST}; read line; echo x >> {tmp_path}/starts; exit 1"
    with reading_for(fake(tmp_path, body), "3.99.1", ANOTHER):
        found = extract(REPLY, F)
    assert (found.program, found.problem) == (None, "no_code") and "3.99.1" in found.reason
    assert (tmp_path / "starts").read_text() == "x\nx\n"


def test_an_interpreter_that_dies_once_is_started_again(tmp_path: Path) -> None:
    body = f'test -e {tmp_path}/died && exec {sys.executable} "$@"; touch {tmp_path}/died; {FIRST}'
    with reading_for(fake(tmp_path, body), "99.0", ANOTHER):
        assert extract(REPLY, F).problem is None


@pytest.mark.parametrize("body", ["exec sleep 60", "exit 1"])
def test_an_interpreter_that_gives_no_answer_is_infrastructure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(module, "LONGEST_S", 0.2)
    with reading_for(fake(tmp_path, body), "3.99.1", ANOTHER), pytest.raises(InfrastructureError, match=r"3\.99\.1"):
        extract(REPLY, F)


def test_an_interpreter_that_does_not_start_is_infrastructure() -> None:
    with reading_for("/no/interpreter", "3.99.1", ANOTHER), pytest.raises(InfrastructureError, match=r"3\.99\.1"):
        extract(REPLY, F)


def test_rules_are_undecided_on_what_only_the_other_interpreter_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Instruction("m/0", "Do it.", "cosmetic", "add", {"pattern": "docstring", "where": {"pattern": "function"}})
    unreadable, before = "def f(x):\n    return = x\n", "def f(x):\n    return x\n"
    assert adherence(before, unreadable, asked).verdict == "violated"
    assert applicable(unreadable, asked).applicable is False
    monkeypatch.setattr(Interpreter, "parses", lambda self, program: True)
    with reading_for(sys.executable, "99.0", ANOTHER):
        found = adherence(before, unreadable, asked)
        assert found.verdict == "undecided" and "99.0" in found.reason
        assert applicable(unreadable, asked).applicable is None
        assert adherence(before, before + "# more\n", asked).verdict == "violated"


INSTALLED = (
    *map(shutil.which, ("python3.12", "python3.13")),
    *Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"),
)
NEWER = [path for path in INSTALLED if path and "shims" not in str(path) and sys.version_info < (3, 12)]


@pytest.mark.tools
@pytest.mark.skipif(not NEWER, reason="needs another Python, 3.12 or later")
@pytest.mark.parametrize("python", NEWER, ids=str)
def test_new_syntax_is_read_by_a_new_interpreter(python: str) -> None:
    with reading_for(str(interpreter_at(str(python), "").program), "3.12", ANOTHER):
        found = extract(f"```python\n{NEW}if __name__ == '__main__':\n    f(1)\n```", F)
        assert found.problem is None and found.program is not None and "__main__" not in found.program
        assert extract("```python\nprint 'x'\n```", F).problem is not None
        assert is_python(NEW) and unread(NEW)
    assert extract(f"```python\n{NEW}```", F) == Extraction(
        NEW.rstrip(), None, "syntax_error", "does not parse: line 1: invalid syntax"
    )
