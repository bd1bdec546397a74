"""What a compiler's answers say of a program's version, without a compiler; and which compilers are found."""

from pathlib import Path
from typing import Any

import pytest

from codechat.domain import Program, Target
from codechat.languages import language_of
from codechat.languages.compiling import Compiled
from codechat.sandbox import SANDBOXES, Command, Ran
from codechat.suites import versions
from codechat.suites.compilers import Found, find_compiler
from codechat.suites.versions import LanguageVersion

MISSING = "Program.java:1: error: package a does not exist\nimport a.B;\n        ^\n1 error\n"
TWO = MISSING + "Program.java:2: error: cannot find symbol\n  symbol:   class B\n  location: class C\n2 errors\n"


class Answers:
    """A sandbox in which the compiler answers for an old version, and otherwise for its newest."""

    config = SANDBOXES.validate({"kind": "process"})

    def __init__(self, old: Ran, newest: Ran) -> None:
        self._old, self._newest = old, newest

    async def run(self, command: Command) -> Ran:
        return self._old if "--release" in command.argv else self._newest


@pytest.mark.parametrize(
    ("newest", "outcome"),
    [
        (Ran(1, stderr=TWO), "pass"),
        (Ran(1, stderr=MISSING), "syntax_error"),
        (Ran(0), "syntax_error"),
        (Ran(-9, stderr=MISSING, why="cpu"), "timeout"),
        (Ran(3, stderr=MISSING), "crash"),
        (Ran(1, stderr="Program.java:1: error: ';' expected\n"), "crash"),
    ],
)
async def test_an_error_is_the_versions_if_the_newest_compiler_came_to_its_end_without_it(
    monkeypatch: pytest.MonkeyPatch, newest: Ran, outcome: str
) -> None:
    async def works(*_: Any) -> None:
        return None

    monkeypatch.setattr(versions, "find_compiler", lambda *_: Found("/jdk/bin/javac", "/jdk", (17,)))
    monkeypatch.setattr(LanguageVersion, "_sample", works)
    room: Any = Answers(Ran(1, stderr=TWO), newest)
    program = Program("import a.B;\nclass C { B o; }\n", Target("java"))
    assert (await LanguageVersion("java", "8", "guarded").check(program, room)).outcome == outcome


def test_a_compiler_is_found_in_a_folder_that_is_named_and_asked_for_its_version(tmp_path: Path) -> None:
    program = tmp_path / "tools" / "bin" / "python3.2"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncase $1 in -V) echo Python 3.2.6 >&2;; *) echo {tmp_path}/tools;; esac\n")
    program.chmod(0o755)
    config: Any = SANDBOXES.validate({"kind": "process", "toolchains": [str(tmp_path / "tools")]})
    known = language_of("python")
    assert isinstance(known, Compiled)
    found = find_compiler(known.compiler, (3, 2), config)
    assert (found.program, found.home, found.version) == (str(program), str(tmp_path / "tools"), (3, 2, 6))
