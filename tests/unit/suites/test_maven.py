"""What Maven says of tests, read as a verdict: as many as are named must have passed."""

from dataclasses import replace

import pytest

from codechat.sandbox import Command, Ran
from codechat.suites.maven import Maven, Part, judge_build

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


@pytest.mark.parametrize(("goal", "unrun"), [("testCompile", "unfit"), ("compile", None), ("test", None)])
def test_tests_that_do_not_compile_are_told_from_those_that_fail(goal: str, unrun: str | None) -> None:
    begun = "[INFO] --- maven-compiler-plugin:3.8.1:testCompile (default-testCompile) @ shop ---\n"
    said = f"{begun}[ERROR] Failed to execute goal a:maven-plugin:3.8.1:{goal} (default-{goal}) on project shop\n"
    verdict = judge_build(Ran(1, stdout=said), Command(argv=("mvn",)), 1)
    assert not verdict.passed and verdict.unrun == unrun
