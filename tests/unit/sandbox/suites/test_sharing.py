"""The checker tests equal programs once; verdicts outlast a process only if they say something of the program alone."""

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Failure, Program, Target, Verdict
from codechat.base.errors import InfrastructureError
from codechat.base.texts import writable
from codechat.run.protocols.session_log import EqualTurns
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.sandbox.suites import sharing
from codechat.sandbox.suites.checker import Checker, NoSandbox, ProgramKeys
from codechat.sandbox.suites.sharing import KeptVerdicts, may_outlast, may_share, shared_key

ONE, SAME, ELSE = "def f(x):\n    return x\n", "def f(x):  # same\n    return x\n", "def f(x):\n    return -x\n"
PASSED = Verdict("pass", True, None, 0.5, inside="")


def config(**options: Any) -> SandboxConfig:
    return SANDBOXES.validate({"kind": "process", **options})


@dataclass
class Suite:
    """Tests that count their runs, and end as they are told."""

    ends: Verdict | Exception = PASSED
    shares: bool = True
    key: str = "tests"
    seen: list[str] = field(default_factory=list)
    kind = "calls"
    outside: dict[str, str] = field(default_factory=dict)

    __module__ = "codechat.sandbox.suites"  # those of other packages are tested again in every process

    async def check(self, program: Program, sandbox: Any) -> Verdict:
        self.seen.append(program.source)
        await asyncio.sleep(0.01)
        if isinstance(self.ends, Exception):
            raise self.ends
        return self.ends


@pytest.fixture
def store() -> Iterator[KeptVerdicts]:
    made = KeptVerdicts(config(), weak=True)
    yield made
    made.close()


def check(checker: Checker, suite: Suite, *sources: str) -> list[Verdict]:
    async def both() -> list[Verdict]:
        return await asyncio.gather(*(checker.check(Program(source), suite) for source in sources))

    return asyncio.run(both())


def checker(store: KeptVerdicts | None = None, **options: Any) -> Checker:
    return Checker(NoSandbox(config(**options)), store)


def test_equal_programs_that_are_tested_at_once_are_tested_once() -> None:
    suite = Suite()
    assert check(checker(), suite, ONE, SAME, ELSE, ONE) == [PASSED] * 4
    assert suite.seen == [ONE, ELSE]


@pytest.mark.parametrize(
    "options", [{"shares": False}, {"ends": Verdict("fail", False, Failure("an exception", exception="line 3"))}]
)
def test_each_text_is_tested_where_the_verdict_or_the_tests_might_tell_them_apart(options: dict[str, Any]) -> None:
    suite = Suite(**options)
    check(checker(), suite, ONE, SAME, ONE)
    assert suite.seen == [ONE, SAME]


def test_the_sandbox_may_share_nothing() -> None:
    suite = Suite()
    tests = checker(share=False)
    check(tests, suite, ONE, SAME, ONE)
    assert suite.seen == [ONE, SAME]
    assert tests.remember(Program(ONE), suite, PASSED) is None


def test_other_tests_targets_and_languages_share_nothing() -> None:
    sandbox = NoSandbox(config())
    keys = {
        shared_key(Program(source, Target("python", entry)), Suite(key=key), sandbox)
        for source in (ONE, ELSE)
        for entry in ("f", "g")
        for key in ("tests", "others")
    }
    assert len(keys) == 8
    assert shared_key(Program("int f(int x) { return x; }", Target("c", "f")), Suite(), sandbox) is None


def test_an_error_is_no_verdict() -> None:
    suite = Suite(InfrastructureError("the box broke"))
    tests = checker()
    for source in (ONE, SAME):
        with pytest.raises(InfrastructureError):
            check(tests, suite, source)
    suite.ends = PASSED
    assert check(tests, suite, SAME) == [PASSED]
    assert suite.seen == [ONE, SAME, SAME]


@pytest.mark.parametrize(
    ("verdict", "shared", "outlasts"),
    [
        (PASSED, True, True),
        (Verdict("fail", False, Failure("wrong result", actual="1"), inside=""), True, True),
        (Verdict("fail", False, Failure("an exception", exception="line 1"), inside=""), False, False),
        (Verdict("timeout", False, Failure("the CPU time is used up"), inside=""), True, False),
        (Verdict("crash", False, Failure("killed by SIGKILL"), inside=""), True, False),
        (Verdict("crash", False, Failure("out of memory", exception="line 1"), inside=""), False, False),
        (Verdict("syntax_error", False, Failure("it does not parse"), inside=""), False, False),
        (Verdict("pass", True, inside="both share an interpreter"), False, False),
        (Verdict("pass", True), True, False),
    ],
)
def test_which_verdicts_are_shared_and_which_outlast_a_process(
    verdict: Verdict, shared: bool, outlasts: bool, store: KeptVerdicts
) -> None:
    assert (may_share(verdict), may_outlast(verdict)) == (shared, outlasts)
    suite = Suite(verdict)
    check(checker(store), suite, ONE)
    again = Suite()
    check(checker(store), again, SAME)
    assert (not again.seen) is outlasts


def test_verdicts_of_another_packages_tests_do_not_outlast_a_process(store: KeptVerdicts) -> None:
    foreign = type("Foreign", (Suite,), {"__module__": "plugin"})
    for _ in range(2):
        suite = foreign()
        assert check(checker(store), suite, ONE, SAME) == [PASSED] * 2
        assert suite.seen == [ONE]


def test_a_verdict_is_kept_as_it_was(store: KeptVerdicts) -> None:
    verdict = Verdict("fail", False, Failure("wrong", "base", 3, "½", "'a'", "'b\ufffd'", stdout="x"), 0.25, inside="")
    store.put("key", verdict)
    store.put("key", PASSED)
    assert store.get("key") == verdict
    assert store.get("other") is None


def test_a_verdict_under_other_conditions_is_not_found(store: KeptVerdicts, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("key", PASSED)
    for other in (KeptVerdicts(config(), weak=False), KeptVerdicts(config(cpu_factor=5), weak=True)):
        assert other.get("key") is None
        other.close()
    monkeypatch.setattr(sharing, "machine", lambda: "another")
    other = KeptVerdicts(config(), weak=True)
    assert other.get("key") is None
    other.close()


def test_a_text_that_no_file_can_hold_is_kept_as_records_have_it(store: KeptVerdicts) -> None:
    verdict = Verdict("fail", False, Failure("wrong", actual="\ud800"), inside="")
    store.put("key", verdict)
    assert store.get("key") == writable(verdict) != verdict


def test_the_oldest_go_first(store: KeptVerdicts, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        store.put(str(number), PASSED)
    monkeypatch.setattr(sharing, "MOST", 5)
    KeptVerdicts(config(), weak=True).close()
    assert [store.get(str(number)) is not None for number in range(20)] == [False] * 15 + [True] * 5


def test_contents_and_clearing(store: KeptVerdicts) -> None:
    store.put("key", PASSED)
    assert sharing.contents().entries == 1 and sharing.contents().size > 0
    assert sharing.clear().entries == 1
    assert sharing.contents().entries == 0 and sharing.clear().entries == 0


def test_an_unusable_file_costs_one_warning(
    cache_folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache_folder / "verdicts").mkdir()
    (cache_folder / "verdicts" / "verdicts.db").write_bytes(b"not a database, but long enough to be read as one" * 9)
    with caplog.at_level(logging.WARNING):
        store = KeptVerdicts(config(), weak=True)
    assert "cache clear" in caplog.text
    suite = Suite()
    assert check(checker(store), suite, ONE, SAME) == [PASSED] * 2
    assert suite.seen == [ONE]
    sharing.clear()
    caplog.clear()
    monkeypatch.setattr(sharing, "unfit", lambda path: "it is on a file system of type nfs4")
    assert KeptVerdicts(config(), weak=True).get("key") is None
    assert "nfs4" in caplog.text


def test_a_closed_store_has_released_its_file() -> None:
    store = KeptVerdicts(config(), weak=True)
    db = store._db
    assert db is not None
    store.close()
    store.close()
    assert store.get("key") is None
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")


def test_a_file_of_another_version_is_left_alone(cache_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache_folder / "verdicts").mkdir()
    with sqlite3.connect(cache_folder / "verdicts" / "verdicts.db") as db:
        db.execute("PRAGMA user_version=9")
    db.close()
    store = KeptVerdicts(config(), weak=True)
    assert "another version" in caplog.text
    assert store.get("key") is None


def test_turns_are_told_by_all_their_checks() -> None:
    turns = EqualTurns()
    own, other = ProgramKeys("text 0", "code"), ProgramKeys("text of others", "code of others")
    turns.add(0, own)
    assert turns.finish(0) is None
    turns.add(1, ProgramKeys("text 1", "code"))
    turns.add(1, other)
    assert turns.finish(1) is None  # one of its tests had not been run
    turns.add(2, ProgramKeys("text 2", "code"))
    turns.add(2, ProgramKeys("text of others 2", "code of others"))
    assert turns.finish(2) == 0
    assert turns.finish(3) is None  # nothing was tested
    turns.add(4, ProgramKeys("text 1", None))
    assert turns.finish(4) == 1  # the same text, whatever its verdict tells
    turns.add(5, None)
    turns.add(5, own)
    assert turns.finish(5) is None
