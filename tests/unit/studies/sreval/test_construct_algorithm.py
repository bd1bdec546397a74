"""Algorithms 1 and 2 of SR-Eval on hand-written traces: scripted agents, real tests in the sandbox."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from codechat.base.domain import Program, Verdict
from codechat.run.construct import Dropped
from codechat.run.construct.interface import Settled
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites import Suite
from codechat.studies.sreval.construct.algorithm import (
    Checked,
    Draft,
    Judged,
    Limits,
    Place,
    Round,
    Turn,
    make_turns,
    unified_check,
)
from support.machine import needs_java

Answer = Judged | None
Run = Callable[["Trace"], "Played"]
PAPER_AND_MORE, PYTHON = Limits(), Place("python", "area")
RETAIN = Judged("RETAIN")
ASKS = ["Write area(w, h).", "Refuse negative sides.", "Refuse sides of zero."]


@dataclass(frozen=True)
class Trace:
    """What the agents say, in the order in which they are asked; the alignment retains once its answers are used up."""

    drafts: Sequence[Draft | None]
    judged: Sequence[Answer] = ()
    people: str | Settled | None = None
    limits: Limits = PAPER_AND_MORE
    asks: Sequence[str] = tuple(ASKS[:2])
    place: Place = PYTHON


@dataclass
class Played:
    """What came of a trace, and what the coder was asked."""

    made: tuple[Turn, ...] | Dropped | Settled
    rounds: list[Round] = field(default_factory=list)
    aligned: int = 0

    @property
    def attempts(self) -> list[int]:
        """Replies of the coder that each finished turn took."""
        assert isinstance(self.made, tuple), self.made
        return [turn.attempts for turn in self.made]

    @property
    def feedback(self) -> list[str]:
        """The feedback that the coder got, in order."""
        return [asked.feedback for asked in self.rounds if asked.feedback]


@dataclass
class Script:
    """The team of a trace."""

    trace: Trace
    played: Played
    verdict: Callable[[Program, Suite], Verdict]

    async def write(self, asked: Round) -> Draft | None:
        self.played.rounds.append(asked)
        return self.trace.drafts[len(self.played.rounds) - 1]

    async def check(self, code: str | None, draft: Draft) -> Checked:
        place = self.trace.place

        async def verdict(program: Program, suite: Suite) -> Verdict:
            found = self.verdict(program, suite)
            return await found if inspect.isawaitable(found) else found

        return await unified_check(verdict, place, place.stub if code is None else code, draft)

    async def align(self, asked: Round, draft: Draft) -> Answer:
        self.played.aligned += 1
        return self.trace.judged[self.played.aligned - 1] if self.played.aligned <= len(self.trace.judged) else RETAIN

    async def settle(self, asked: Round, judged: Judged) -> str | None:
        if isinstance(self.trace.people, Settled):
            raise self.trace.people
        return judged.requirement if self.trace.people == "suggestion" else self.trace.people


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", "total_cpu_s": 2, "load_cpu_s": 2}), workers=1)

        def play(trace: Trace) -> Played:
            played = Played(())
            team = Script(trace, played, lambda program, suite: suite.check(program, sandbox))  # type: ignore[arg-type,return-value]
            try:
                played.made = runner.run(make_turns(trace.asks, team, trace.limits))
            except Settled as settled:
                played.made = settled
            return played

        yield play
        runner.run(sandbox.aclose())


def suite(*bodies: str, head: str = "") -> str:
    methods = "".join(f"    def test_{number}(self):\n        {body}\n" for number, body in enumerate(bodies))
    return f"import unittest\n{head}class TestArea(unittest.TestCase):\n{methods}"


AREA = "def area(w, h):\n    return w * h\n"
POSITIVE = "def area(w, h):\n    if w < 0 or h < 0:\n        raise ValueError('negative side')\n    return w * h\n"
NO_ZERO = POSITIVE.replace("<", "<=")
EQUALS, RAISES = "self.assertEqual(area(2, 3), 6)", "self.assertRaises(ValueError, area, -1, 2)"
NOT_ZERO = "self.assertRaises(ValueError, area, 0, 2)"
ONE, TWO, THREE = Draft(AREA, suite(EQUALS)), Draft(POSITIVE, suite(EQUALS, RAISES)), Draft(NO_ZERO, suite(NOT_ZERO))
NOT_NEW = Draft(POSITIVE, suite(EQUALS))
REFINE = Judged("TEST_REFINE", "expect no words")
ASK = Judged("QUESTION_REFINE", "which error?", "Raise ValueError for negative sides.")


class TestPython:
    def test_passes_at_once(self, run: Run) -> None:
        played = run(Trace([ONE, TWO, THREE], asks=ASKS))
        assert played.attempts == [1, 1, 1] and played.aligned == 3 and not played.feedback
        assert isinstance(played.made, tuple)
        assert [turn.told_by for turn in played.made] == [None, "fails", "fails"]
        assert [asked.turn for asked in played.rounds] == [1, 2, 3]

    def test_wrong_then_right(self, run: Run) -> None:
        played = run(Trace([ONE, Draft(AREA, TWO.test), TWO]))
        assert played.attempts == [1, 2] and played.aligned == 2
        assert "ValueError not raised" in played.feedback[0] and played.rounds[2].defect == Draft(AREA, TWO.test)

    def test_tests_that_do_not_discriminate_then_do(self, run: Run) -> None:
        played = run(Trace([ONE, NOT_NEW, TWO]))
        assert played.attempts == [1, 2] and "previous solution" in played.feedback[0]
        assert run(Trace([ONE, NOT_NEW], limits=Limits(skip=["distinctiveness"]))).attempts == [1, 1]

    def test_refined_tests(self, run: Run) -> None:
        played = run(Trace([ONE, TWO, TWO], judged=[RETAIN, REFINE]))
        assert played.attempts == [1, 2] and played.feedback == ["expect no words"] and played.rounds[2].defect == TWO
        assert run(Trace([ONE, TWO], judged=[REFINE], limits=Limits(skip=["alignment"]))).aligned == 0

    @pytest.mark.parametrize(
        ("people", "requirement"),
        [("Raise ValueError.", "Raise ValueError."), ("suggestion", ASK.requirement), (None, ASKS[1])],
    )
    def test_a_refined_question_is_settled_and_its_turn_made_anew(
        self, run: Run, people: str | None, requirement: str
    ) -> None:
        played = run(Trace([ONE, TWO, TWO], judged=[RETAIN, ASK], people=people))
        assert played.attempts == [1, 2] and played.rounds[2].requirement == requirement
        assert isinstance(played.made, tuple) and played.made[1].requirement == requirement
        assert ("stays as it is" in played.feedback[0]) is (people is None) and "which error?" in played.feedback[0]

    def test_a_question_that_is_dropped_ends_the_task(self, run: Run) -> None:
        played = run(Trace([ONE, TWO], judged=[RETAIN, ASK], people=Settled(Dropped("question"))))
        assert isinstance(played.made, Settled) and len(played.rounds) == 2

    def test_the_limit_in_turn_3(self, run: Run) -> None:
        limits = Limits(attempts=2)
        made = run(Trace([ONE, NOT_NEW, TWO, TWO, Draft(POSITIVE, THREE.test)], asks=ASKS, limits=limits)).made
        assert isinstance(made, Dropped) and made.reason == "attempts used up"
        assert "turn 3 of 3" in made.detail and "2 attempts" in made.detail

    def test_every_turn_has_all_attempts_from_one_on(self, run: Run) -> None:
        played = run(Trace([None, ONE, NOT_NEW, TWO], limits=Limits(attempts=2)))
        assert played.attempts == [2, 2] and [asked.attempt for asked in played.rounds] == [1, 2, 1, 2]
        assert played.rounds[2].defect is None  # nothing of the turn before

    def test_replies_that_cannot_be_read(self, run: Run) -> None:
        played = run(Trace([None, ONE, TWO]))
        assert played.attempts == [2, 1] and "could not be read" in played.feedback[0]
        assert played.rounds[1].defect is None

    def test_a_decision_that_cannot_be_read_is_no_consent(self, run: Run) -> None:
        played = run(Trace([ONE, ONE, TWO], judged=[None]))
        assert played.attempts == [2, 1] and "Nobody could judge" in played.feedback[0]

    @pytest.mark.parametrize("end", ["raise SystemExit(0)", "import os\n    os._exit(0)"])
    def test_a_coder_that_exits_the_process(self, run: Run, end: str) -> None:
        exits = Draft(f"def area(w, h):\n    {end}\n", ONE.test)
        played = run(Trace([exits, ONE, TWO]))
        assert played.attempts == [2, 1] and played.feedback[0]

    @pytest.mark.long
    def test_a_previous_solution_that_hangs_says_nothing_of_the_tests(self, run: Run) -> None:
        hangs = Draft("def area(w, h):\n    while w < 0:\n        pass\n    return w * h\n", ONE.test)
        played = run(Trace([hangs, TWO], limits=Limits(attempts=1)))
        assert isinstance(played.made, Dropped) and "do not simply fail" in played.made.detail

    def test_first_tests_that_check_nothing(self, run: Run) -> None:
        played = run(Trace([Draft(AREA, suite("self.assertTrue(callable(area))")), ONE, TWO]))
        assert played.attempts == [2, 1] and "nothing yet" in played.feedback[0]
        paper = Limits(earlier="previous")
        assert run(Trace([Draft(AREA, suite("self.assertTrue(area)")), TWO], limits=paper)).attempts == [1, 1]

    def test_an_earlier_solution_that_passes(self, run: Run) -> None:
        back = Draft(AREA, suite("self.assertEqual(area(-1, 2), -2)"))  # as before the second turn
        played = run(Trace([ONE, TWO, back, THREE], asks=ASKS))
        assert played.attempts == [1, 1, 2] and "solution of turn 1" in played.feedback[0]
        assert run(Trace([ONE, TWO, back], asks=ASKS, limits=Limits(earlier="previous"))).attempts == [1, 1, 1]

    @pytest.mark.parametrize("test", ["import unittest\n", "def test(:\n", suite(head="x = 1\n") + "    pass\n"])
    def test_no_test_is_neither_right_nor_wrong(self, run: Run, test: str) -> None:
        played = run(Trace([Draft(AREA, test), ONE, TWO]))
        assert played.attempts == [2, 1] and "tests" in played.feedback[0].lower()

    def test_a_program_that_does_not_parse(self, run: Run) -> None:
        played = run(Trace([Draft("def area(w, h)\n", ONE.test), ONE, TWO]))
        assert played.attempts == [2, 1] and "not valid Python" in played.feedback[0]


JAVA = Place("java")
SHOP = Draft(
    "class Shop {\n    int price() { return 2; }\n}\n",
    "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\nclass ShopTest {\n"
    "    @Test void prices() { assertEquals(2, new Shop().price()); }\n}\n",
)


def other(price: int, *, method: str = "price", test: str = "") -> Draft:
    code = SHOP.code.replace("return 2", f"return {price}").replace("price()", f"{method}()")
    body = test or f"assertEquals({price}, new Shop().{method}());"
    return Draft(code, SHOP.test.replace("assertEquals(2, new Shop().price());", body))


@needs_java
@pytest.mark.long
class TestJava:
    def test_a_new_value_fails_and_a_new_name_does_not_fit(self, run: Run) -> None:
        asks = ["price()", "3", "cost()"]
        played = run(Trace([SHOP, other(3), other(3, method="cost")], asks=asks, place=JAVA))
        assert isinstance(played.made, tuple)
        assert [turn.told_by for turn in played.made] == [None, "fails", "unfit"]

    def test_wrong_then_right(self, run: Run) -> None:
        wrong = Draft(SHOP.code, other(3).test)
        played = run(Trace([SHOP, wrong, other(3)], place=JAVA))
        assert played.attempts == [1, 2] and "expected: <3> but was: <2>" in played.feedback[0]

    def test_tests_that_do_not_discriminate(self, run: Run) -> None:
        any_price = other(3, test="assertTrue(new Shop().price() > 0);")
        played = run(Trace([SHOP, any_price, other(3)], place=JAVA))
        assert played.attempts == [1, 2] and "previous solution" in played.feedback[0]

    def test_what_does_not_compile_exits_or_has_no_test_is_told_apart(self, run: Run) -> None:
        broken = replace(SHOP, code=SHOP.code.replace("2;", "two;"))
        exits = replace(SHOP, code=SHOP.code.replace("return 2", "System.exit(0); return 2"))
        none = replace(SHOP, test=SHOP.test.replace("@Test ", ""))
        skips = replace(SHOP, test=SHOP.test.replace("@Test ", "@Test @org.junit.jupiter.api.Disabled "))
        nothing = replace(SHOP, test=SHOP.test.replace("assertEquals(2, new Shop().price())", "assertTrue(true)"))
        drafts = [broken, exits, none, skips, nothing, replace(SHOP, test="class {"), SHOP]
        played = run(Trace(drafts, asks=["price()"], place=JAVA))
        assert played.attempts == [7]
        for words, feedback in zip(
            ["does not compile", "", "no test runs", "skipped", "has nothing yet", "not valid Java"],
            played.feedback,
            strict=True,
        ):
            assert words in feedback, (words, feedback)
