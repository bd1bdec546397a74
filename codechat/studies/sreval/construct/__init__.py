"""Construction of tasks of SR-Eval's kind: one requirement becomes several, each with its program and tests.

Sections 3.1.2 and 3.1.3 of the paper. `seeds.py` reads the seeds, `agents.py` asks models, `algorithm.py` has the graph
of the steps and Algorithms 1 and 2.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import original_option, result_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.datasets.reading.rows import make_suite
from codechat.run.construct import RECIPES, Dropped, Item, Kept, Kit, Outcome, Recipe, RecipeConfig, Stage
from codechat.run.protocols import Ask
from codechat.sandbox.suites import SUITES
from codechat.studies.sreval.construct.agents import (
    MOST_STEPS,
    RECALLS,
    Agents,
    Aligned,
    Analyzed,
    Converted,
    Decomposed,
    Evaluated,
    StepsPrompts,
    StepsRoles,
)
from codechat.studies.sreval.construct.algorithm import (
    ALIGNMENT,
    DISTINCTIVENESS,
    Limits,
    Skippable,
    make_turns,
    read_verdict,
)
from codechat.studies.sreval.construct.seeds import filtered, place_of, read_seeds, refuse_failing

NO_ANSWER = "no readable answer"
LOADS = {"python": "pass", "java": "class LoadsTest {\n    @org.junit.jupiter.api.Test void loads() { }\n}\n"}
"""Tests that every runnable program passes, for seeds without tests."""


class StepsConfig(RecipeConfig):
    kind: Literal["steps"] = original_option("steps", "which recipe")
    rounds: int = result_option(6, "decompositions of a seed: six in the paper's 4.5, five in its 3.1.2", ge=1)
    attempts: int = result_option(10, "programs and tests that the coder may write for a turn", ge=1)
    earlier: Literal["all", "previous"] = result_option(
        "all", "the solutions that new tests must not pass: of all turns before, or as in the paper the previous one"
    )
    roles: StepsRoles = original_option(..., "who makes the tasks")
    prompts: StepsPrompts = original_option(..., "each as a text or @FILE")


class Steps:
    """The stages. The journal has the results of all requests and runs, so that each stage can be run again."""

    def __init__(self, config: StepsConfig) -> None:
        self._config = config
        self._items = None if config.rows is not None else tuple(self._read())
        self._recalls = [role for role in RECALLS if getattr(config.roles, role) is not None]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles in use."""
        converted = self._items is None or any(not item.data["instruction"] for item in self._items)
        aligned = ALIGNMENT not in self._config.skip
        always = ("decomposer", "evaluator", "analyzer", "coder")
        return (*["converter"] * converted, *always, *["alignment"] * aligned, *self._recalls)

    def seeds(self) -> Sequence[Item]:
        return self._items or ()

    def _read(self) -> Iterator[Item]:
        if self._config.seeds is None:
            raise UserError("recipe=steps makes tasks from finished programs", "seeds=FILE, as docs/sreval.md says")
        return read_seeds(Path(self._config.seeds).expanduser())

    async def prepare(self, items: Sequence[Item], kit: Kit) -> None:
        """Raises `UserError` if a seed that stands alone fails its tests, or does not load, and if a repository lacks a
        function. An existing function that fails is dropped later."""

        async def tested(item: Item) -> tuple[str, Verdict]:
            return item.id, await _tested(item, item.data["solution"], kit)

        for item in items:
            if "place" in item.data:
                suite = place_of(item.data).suite_of("\n".join(item.data["tests"]), "")
                await asyncio.to_thread(suite.place)  # type: ignore[attr-defined]
        alone = [item for item in items if "place" not in item.data]
        refuse_failing(await asyncio.gather(*map(tested, alone)))

    async def filter(self, item: Item, kit: Kit) -> Outcome:
        """A repository's function must pass in place, be long enough, and depend on its own file alone (3.1.1)."""
        if "place" not in item.data:
            return Kept(item)
        checked = await self._agents(item, kit).check_seed(item.data["solution"])
        if not checked.correct:
            return Dropped("fails in place", checked.feedback)
        return filtered(item.data) or Kept(item)

    async def recall(self, item: Item, kit: Kit) -> Outcome:
        """Drops a repository's function that a model writes without the repository (3.1.1)."""
        agents = self._agents(item, kit)
        for role in self._recalls if "place" in item.data else ():
            if await agents.knows_by_heart(role, item.data["signature"], item.data["docstring"]):
                return Dropped("contaminated", f"{role} ({getattr(self._config.roles, role).name}) writes it by heart")
        return Kept(item)

    async def convert(self, item: Item, kit: Kit) -> Outcome:
        """A repository's function gets an instruction that asks for it."""
        if item.data["instruction"]:
            return Kept(item)
        agents = self._agents(item, kit)
        found = await agents.convert(item.data["signature"], item.data["docstring"], item.data["body"])
        return Kept(item.having(instruction=found)) if found else Dropped(NO_ANSWER, "of the converter")

    async def decompose(self, item: Item, kit: Kit) -> Outcome:
        """The instruction becomes steps in an order (3.1.2). After the last round people revise them."""
        agents, instruction = self._agents(item, kit), item.data["instruction"]
        steps, feedback = list[str](), ""
        for number in range(1, self._config.rounds + 1):  # noqa: B007  the provenance has it
            parts = await agents.decompose(instruction, (steps, feedback) if steps else None)
            if parts and len(parts) > MOST_STEPS:  # counts as refused: people see what is too many to the end
                steps, feedback = parts, f"There are {len(parts)} instructions: give two to {MOST_STEPS}."
                continue
            evaluated = await agents.evaluate(instruction, parts) if parts else None
            if parts is None or evaluated is None:
                return Dropped(NO_ANSWER, f"of the {'evaluator' if parts else 'decomposer'}")
            steps, feedback = parts, evaluated.feedback
            if evaluated.decision == "RETAIN":
                if evaluated.failing:
                    said = f"The evaluator retains these steps, and {' and '.join(evaluated.failing)} fails; "
                    steps = _revised(kit, f"{said}give the steps that hold, one a line. {feedback}", steps)
                break
        else:
            refused = f"These steps were refused {counted(self._config.rounds, 'time')}; give others, one a line. "
            steps = _revised(kit, refused + feedback, steps)
        arranged = await agents.arrange(steps)
        if isinstance(arranged, Dropped):
            return arranged
        order, edges = arranged
        made = item.having(steps=[steps[step - 1] for step in order])
        return Kept(made.noting(rounds=number, edges=[list(edge) for edge in edges], order=list(order)))

    async def tests(self, item: Item, kit: Kit) -> Outcome:
        """Every step gets a program and tests (Algorithm 1)."""
        config = self._config
        skip: list[Skippable] = [part for part in (ALIGNMENT, DISTINCTIVENESS) if part in config.skip]
        limits = Limits(config.attempts, config.earlier, skip)
        made = await make_turns(item.data["steps"], self._agents(item, kit), limits)
        if isinstance(made, Dropped):
            return made
        turns = [
            {"instruction": turn.requirement, "solution": turn.draft.code, "tests": turn.draft.test} for turn in made
        ]
        attempts, told_by = [turn.attempts for turn in made], [turn.told_by for turn in made]
        return Kept(item.having(turns=turns).noting(attempts=attempts, told_by=told_by, skip=skip))

    async def completeness(self, item: Item, kit: Kit) -> Outcome:
        """The last program must pass the seed's own tests: all steps together are the whole requirement (3.1.2).

        A seed without tests cannot show it.
        """
        if not item.data["tests"]:
            return Kept(item.noting(complete=None))
        last = item.data["turns"][-1]["solution"]
        if "place" in item.data:
            checked = await self._agents(item, kit).check_seed(last)
        else:
            checked = read_verdict(await _tested(item, last, kit))
        return Kept(item.noting(complete=True)) if checked.correct else Dropped("incomplete", checked.feedback)

    def row(self, item: Item) -> Mapping[str, Any]:
        """The line of a task for `dataset=jsonl` with `protocol=stepwise`."""
        place = place_of(item.data)
        turns = []
        for turn in item.data["turns"]:
            suite = place.suite_fields(turn["tests"], turn["solution"])
            turns.append({"instruction": turn["instruction"], "solution": turn["solution"], "suite": suite})
        name = {"entry_point": place.entry_point} if place.entry_point else {}
        return {"task_id": item.id, "language": place.language, **name, "turns": turns}

    def distributions(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, int]]:
        """Counts for the card: turns of a task, the coder's attempts at a turn, and the ends of tests before a step."""
        made = [row["provenance"] for row in rows]
        counts: dict[str, Counter[str]] = {
            "turns of a task": Counter(str(len(row["turns"])) for row in rows),
            "language": Counter(row["language"] for row in rows),
            "attempts at a turn": Counter(str(count) for each in made for count in each["attempts"]),
            "the previous solution": Counter(str(end) for each in made for end in each["told_by"][1:]),
        }
        return {title: dict(sorted(count.items())) for title, count in counts.items()}

    def asks(self, item: Item) -> Iterator[Ask]:
        """The expected calls for a seed: 27 on average, as in the paper. The program grows over the steps."""
        whole, solution = len(item.data["instruction"]), len(item.data["solution"])
        steps, step, code, tests = whole + 400, 230, solution * 3 // 4, 2000
        if "place" in item.data:
            head = 500 + len(item.data["docstring"])
            yield from (Ask(role, 0, head, solution) for role in self._recalls)
        if not item.data["instruction"]:
            yield Ask("converter", 0, 1200 + solution, 900)
        yield Ask("decomposer", 0, 1900 + whole + solution + steps, steps, times=2)
        yield Ask("evaluator", 0, 1600 + whole + solution + steps, 500, times=2)
        yield Ask("analyzer", 0, 1000 + steps, 200)
        yield Ask("coder", 0, 1300 + step + code + (code + tests) // 2, code + tests, times=11)
        if ALIGNMENT not in self._config.skip:
            yield Ask("alignment", 0, 1250 + 3 * step + code + tests, 300, times=11)

    def _agents(self, item: Item, kit: Kit) -> Agents:
        data = item.data
        return Agents(kit, self._config.prompts, place_of(data), data["solution"], "\n".join(data["tests"]))


async def _tested(item: Item, code: str, kit: Kit) -> Verdict:
    """The verdict of a seed's own tests on a program that stands alone; without tests it must load."""
    place, solution = place_of(item.data), item.data["solution"]
    python, tests = place.language == "python", item.data["tests"] or [LOADS[place.language]]
    fields = place.suite_fields("\n".join(tests), f"{solution}\n\n{code}" if python and code != solution else solution)
    if python:
        fields["tests"] = tests
    return await kit.check(Program(code, place.target), make_suite(SUITES.validate(fields, "tests"), item.id))


def _revised(kit: Kit, question: str, steps: Sequence[str]) -> list[str]:
    """The steps as people give them, one a line; the same if they leave them."""
    answer = kit.people(question, "\n".join(" ".join(step.split()) for step in steps))
    return [line.strip() for line in answer.splitlines() if line.strip()] if answer else [*steps]


@RECIPES.register("steps", StepsConfig)
def steps(config: StepsConfig) -> Recipe:
    """Tasks whose requirements come step by step, each with its program and tests (SR-Eval)."""
    made = Steps(config)
    works = {"filter": made.filter, "recall": made.recall, "convert": made.convert, "decompose": made.decompose}
    works |= {"tests": made.tests, "completeness": made.completeness}
    return Recipe(
        seeds=made.seeds,
        stages=[Stage(name, work) for name, work in works.items()],
        row=made.row,
        roles=made.roles,
        schemas=(Converted, Decomposed, Evaluated, Analyzed, Aligned),
        optional=(ALIGNMENT, DISTINCTIVENESS),
        sandbox=True,
        distributions=made.distributions,
        asks=made.asks,
        prepare=made.prepare,
        cell=("dataset=jsonl", "protocol=stepwise"),
    )
