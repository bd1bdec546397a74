"""What Maven says of tests, read as a verdict: as many as are named must have passed."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.sandbox import SANDBOXES, Command, Ran
from codechat.studies.sreval.suite_maven import LEAST, Maven, Part, judge_build
from support.mistakes import mistake

PART = Part("A.java", (1, 1), "")
SUITE = Maven("shop", None, PART, PART, "", ("test", "-Dtest=a.ATest#b"))


def summary(*counts: tuple[int, int]) -> str:
    return "".join(f"[INFO] Tests run: {run}, Failures: 0, Errors: 0, Skipped: {skipped}\n" for run, skipped in counts)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("test",), 1),
        (("test", "-Dtest=a.ATest"), 1),
        (("test", "-Dtest=a.ATest#b+c,BTest,!CTest"), 3),
        (("-pl", "core", "test", "-Dtest=ATest#b,BTest#c+d+e"), 4),
    ],
)
def test_how_many_tests_are_named(words: tuple[str, ...], named: int) -> None:
    assert replace(SUITE, words=words).named == named


def test_a_repository_that_programs_cannot_read_is_refused_at_the_start(tmp_path: Path) -> None:
    def config(place: Path | None) -> Any:
        return SANDBOXES.validate({"kind": "process", "maven_repository": str(place), **LEAST})

    for place in (tmp_path / "missing", tmp_path / "closed"):
        (tmp_path / "closed").mkdir(mode=0o700, exist_ok=True)
        if os.getuid() == 0 or not place.exists():
            with mistake(str(place)):
                SUITE.make_ready(config(place), print)


FORGED = "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n"
REALLY = {
    "skipped": summary((2, 2)),
    "half skipped": summary((2, 1)),
    "failed": "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n",
    "failed, in a module": summary((1, 0)) + "[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0\n",
    "errors": "[WARNING] Tests run: 2, Failures: 0, Errors: 2, Skipped: 0\n",
    "with blanks behind it": "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0 \r\n",
}
PRINTED = {
    "before it": FORGED + "{}",
    "behind it": "{}" + FORGED,
    "around it": FORGED + "{}" + FORGED,
    "often": 50 * FORGED + "{}",
    "with an end of line": "\n" + FORGED + "\n\n{}",
    "and a success": FORGED + "[INFO] BUILD SUCCESS\n{}",
    "as of a class": "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0 s\n{}",
    "less than nothing": FORGED.replace("Skipped: 0", "Skipped: -2") + "{}",
}


@pytest.mark.parametrize("printed", PRINTED)
@pytest.mark.parametrize("really", REALLY)
def test_what_a_program_prints_makes_no_pass(really: str, printed: str) -> None:
    """Even if Maven is to ignore failures, and ends with status 0."""
    stdout = PRINTED[printed].replace("{}", REALLY[really])
    assert not judge_build(Ran(0, stdout=stdout), Command(argv=("mvn",)), 2).passed


@pytest.mark.parametrize(
    ("said", "named", "passes"),
    [
        (summary((1, 0)), 1, True),
        (summary((7, 0)), 1, True),  # one method with parameters
        (summary((1, 0), (2, 0)), 3, True),  # of two modules
        ("", 1, False),
        (summary((1, 1)), 1, False),
        (summary((2, 0)), 3, False),
        (summary((3, 1)), 2, False),
        (summary((5, 0), (1, 1)), 1, False),  # what a program printed, and what Maven did
    ],
)
def test_a_build_passes_by_its_tests_alone(said: str, named: int, passes: bool) -> None:
    verdict = judge_build(Ran(0, stdout=said), Command(argv=("mvn",)), named)
    assert verdict.passed is passes
    assert passes or (verdict.failure is not None and "were run to their end" in verdict.failure.reason)


@pytest.mark.parametrize(
    ("goal", "said", "outcome"),
    [
        ("compile", "Fatal error compiling: java.lang.StackOverflowError", "crash"),
        ("testCompile", "Fatal error compiling: CompilerException: java.lang.OutOfMemoryError: Java heap", "crash"),
        ("testCompile", "COMPILATION ERROR :\n[ERROR] An unknown compilation problem occurred", "crash"),
        ("compile", "COMPILATION ERROR :\n[ERROR] A.java:[1,2] cannot find symbol", "fail"),
        ("test", "ATest.b:3 StackOverflowError", "fail"),
    ],
)
def test_a_compiler_that_runs_out_of_stack_or_memory_decides_nothing(goal: str, said: str, outcome: str) -> None:
    stdout = (
        f"[ERROR] {said}\n[ERROR] Failed to execute goal a:maven-plugin:3.8.1:{goal} (default-{goal}) on project shop\n"
    )
    verdict = judge_build(Ran(1, stdout=stdout), Command(argv=("mvn",)), 1)
    assert verdict.outcome == outcome and (outcome == "fail" or verdict.unrun is None)


@pytest.mark.parametrize(("goal", "unrun"), [("testCompile", "unfit"), ("compile", None), ("test", None)])
def test_tests_that_do_not_compile_are_told_from_those_that_fail(goal: str, unrun: str | None) -> None:
    begun = "[INFO] --- maven-compiler-plugin:3.8.1:testCompile (default-testCompile) @ shop ---\n"
    said = f"{begun}[ERROR] Failed to execute goal a:maven-plugin:3.8.1:{goal} (default-{goal}) on project shop\n"
    verdict = judge_build(Ran(1, stdout=said), Command(argv=("mvn",)), 1)
    assert not verdict.passed and verdict.unrun == unrun
