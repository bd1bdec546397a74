"""What a compiler's answers say of a program's version, without a compiler; and which compilers are found."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Command, Ran
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Compiled
from codechat.sandbox.suites.compilers import Absent, Found, find_compiler
from codechat.studies.multicodeif import versions
from codechat.studies.multicodeif.versions import LanguageVersion

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


class Room:
    """A sandbox whose compiler answers one command after the other, the last one for ever."""

    config = SANDBOXES.validate({"kind": "process"})

    def __init__(self, *answers: Ran) -> None:
        self._answers, self.commands = list(answers), list[Command]()

    async def run(self, command: Command) -> Ran:
        self.commands.append(command)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


WRONG = "Program.java:1: error: ';' expected\n"
JAVAC = Found("/jdk/bin/javac", "/jdk", (17,), ("/jdk",))


async def judged(
    monkeypatch: pytest.MonkeyPatch, room: Room, source: str = "class C { }\n", harness: Any = "guarded"
) -> Verdict:
    monkeypatch.setattr(versions, "_works", set())
    monkeypatch.setattr(versions, "find_compiler", lambda *_: JAVAC)
    sandbox: Any = room
    return await LanguageVersion("java", "17", harness).check(Program(source, Target("java")), sandbox)


@pytest.mark.parametrize(
    ("ran", "harness", "outcome", "reason"),
    [
        (Ran(0), "guarded", "pass", None),
        (Ran(1, stderr=WRONG), "guarded", "syntax_error", "expected"),
        (Ran(1, stderr=WRONG), "official", "fail", "expected"),
        (Ran(1, stderr=MISSING), "official", "fail", "a does not exist"),
        (Ran(1, stderr="no error at all"), "guarded", "crash", "status 1"),
        (Ran(2, stderr=WRONG), "guarded", "crash", "status 2"),
        (Ran(0, why="idle"), "guarded", "timeout", ""),
        (Ran(1, stderr=WRONG, why="cpu"), "guarded", "timeout", ""),
        (Ran(1, stderr=WRONG, why="down"), "official", "crash", ""),
    ],
)
async def test_the_end_of_a_compiler_is_a_verdict(
    monkeypatch: pytest.MonkeyPatch, ran: Ran, harness: str, outcome: str, reason: str | None
) -> None:
    verdict = await judged(monkeypatch, Room(ran, Ran(0)), harness=harness)
    assert (verdict.outcome, verdict.passed, verdict.inside) == (outcome, outcome == "pass", "")
    assert (verdict.failure is None) is (reason is None)
    assert reason is None or (verdict.failure is not None and reason in verdict.failure.reason)


async def test_what_the_compiler_must_have_seen_whole_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, outcome in ((versions.SEEN - 1, "pass"), (versions.SEEN, "crash")):
        said = MISSING + "x" * (size - len(MISSING))
        monkeypatch.setattr(LanguageVersion, "_compare", lambda *_: None)
        assert (await judged(monkeypatch, Room(Ran(1, stderr=said), Ran(0)))).outcome == outcome


async def test_a_compiler_that_refuses_what_is_right_decides_nothing_and_is_asked_until_it_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(Ran(1, stderr=WRONG))
    verdict = await judged(monkeypatch, room)
    assert verdict.outcome == "crash" and verdict.failure is not None
    assert "javac" in verdict.failure.reason and "/jdk" not in verdict.failure.reason
    assert len(room.commands) == 2
    room = Room(Ran(1, stderr=WRONG), Ran(0), Ran(1, stderr=WRONG))
    assert (await judged(monkeypatch, room)).outcome == "syntax_error"
    sandbox: Any = room
    again = await LanguageVersion("java", "17", "guarded").check(Program("class C { }", Target("java")), sandbox)
    assert again.outcome == "syntax_error" and len(room.commands) == 3, "it is known to work"
    room = Room(Ran(1, stderr=WRONG), Ran(0, why="cpu"))
    assert (await judged(monkeypatch, room)).outcome == "crash"


async def test_a_program_is_named_as_it_needs_and_a_published_check_names_it_its_own_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for harness, name in (("guarded", "Own.java"), ("official", "Test.java")):
        room = Room(Ran(0))
        await judged(monkeypatch, room, "public class Own { }\n", harness)
        (command,) = room.commands
        assert list(command.files) == [name] and command.argv[0] == JAVAC.program and command.argv[-1] == name
        assert command.tools == JAVAC.tools and command.alone
        assert "/jdk/lib" in command.environment["LD_LIBRARY_PATH"]


async def test_no_program_and_no_compiler_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(Ran(0))
    assert (await judged(monkeypatch, room, " \n")).outcome == "no_code"
    assert not room.commands
    assert (await judged(monkeypatch, room, " \n", "official")).outcome == "pass" and len(room.commands) == 1

    def absent(*_: Any) -> Found:
        raise Absent("install one")

    sandbox: Any = room
    monkeypatch.setattr(versions, "find_compiler", absent)
    verdict = await LanguageVersion("java", "17", "guarded").check(Program("class C { }", Target("java")), sandbox)
    assert verdict.outcome == "crash" and verdict.failure is not None and verdict.failure.reason == "install one"


@pytest.mark.parametrize(
    ("outcome", "met"), [("pass", True), ("fail", False), ("syntax_error", False), ("no_code", False), ("crash", None), ("timeout", None)]
)  # fmt: skip
def test_a_compiler_without_an_answer_leaves_the_constraint_undecided(outcome: Any, met: bool | None) -> None:
    verdict = Verdict.without_run(outcome, "why") if outcome != "pass" else Verdict("pass", True)
    found = versions.finding_of(verdict)
    assert found.met is met and found.reason == ("why" if outcome != "pass" else versions.ACCEPTED)


def test_suites_of_other_versions_are_others() -> None:
    keys = {LanguageVersion(*each).key for each in (("java", "8", "guarded"), ("java", "11", "guarded"), ("java", "8", "official"))}  # type: ignore[arg-type]  # fmt: skip
    assert len(keys) == 3 and dict(LanguageVersion("java", "8", "guarded").outside) == {}
