"""Made-up cells, tasks and constraints of MultiCodeIF, and a bench for its protocols."""

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from codechat.base.domain import Compliance, Target, Usage
from codechat.base.errors import UserError
from codechat.base.records import TRACKED, SessionRecord, TurnRecord, write_sessions
from codechat.judging import ConstraintQuestion
from codechat.report.metrics.measures import FIELD
from codechat.studies.multicodeif.constraints import (
    Constraint,
    ConstraintType,
    Finding,
    constraint_type,
    constraint_types,
)
from codechat.studies.multicodeif.dataset import PUBLISHED
from codechat.studies.multicodeif.metrics import (
    LEVELS,
    REPAIR,
    ConstrainedTurn,
    ConstraintRecord,
    levels_metrics,
    repair_metrics,
)
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from support.benches import Judging

SIZES = {  # tasks of the published file by category
    "environment": 341, "coding_style": 274, "interface_specification": 296, "data_structure": 165, "algorithm": 165,
    "code_quality": 100, "scenario": 60, "code_context": 60, "exemplar": 65,
}  # fmt: skip
CHAIN = ("data_structure_type", "data_structure_operation", "data_structure_size", "data_structure_operation")
LANGUAGES = ("python", "java", "cpp", "go", "")


@dataclass(frozen=True)
class Constrained:
    """A cell to be made: `passes` is how likely a constraint is met, `share` which part of the tasks it has.

    `options` are the protocol's, and `judged` is False if what a judge decides is undecided.
    """

    model: str
    protocol: str = "repair"
    passes: float = 0.5
    share: float = 1.0
    judged: bool = True
    dataset: str = "multicodeif"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    judge: str = "llm"

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol's options with the defaults."""
        own = {"feedback": "named", "rejudge": False, "rounds": 4} if self.protocol == "repair" else {}
        return {"kind": self.protocol, "context": "single", "harness": "guarded", **own, **self.options}


def write_constrained(made: Constrained, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    name = "-".join([made.model, made.dataset, *map(str, made.settings.values())])
    name += f"-seed-{made.seed}" if made.seed else ""
    folder = runs / name
    folder.mkdir(parents=True)
    sessions = list(sessions_of(made, name))
    write_sessions(folder / "sessions.jsonl", sessions)
    settings = made.settings
    if made.protocol == "repair":
        metrics = repair_metrics(sessions, rounds=settings["rounds"], rejudge=settings["rejudge"], seed=0)
    else:
        metrics = levels_metrics(sessions, seed=0)
    measures = REPAIR if made.protocol == "repair" else LEVELS
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: measures.describe()}))
    part = "single" if made.protocol == "repair" else "levels"
    config = {
        "model": {"kind": "openai"}, "dataset": {"kind": "multicodeif", "part": part}, "protocol": settings,
        "judge": {"kind": made.judge}, "seed": made.seed, "choices": {"model": made.model, "dataset": "multicodeif", "protocol": made.protocol},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if made.dataset == "multicodeif":
        content = sorted(PUBLISHED)[part == "levels"]
        (folder / TRACKED).write_text(json.dumps({"dataset": {"content_hash": content}}))
    return folder


def sessions_of(made: Constrained, cell: str) -> Iterator[SessionRecord]:
    """The sessions; the same for the same cell."""
    luck = random.Random(cell)
    kinds = {kind.name: kind for kind in constraint_types()}
    by_category = {name: [kind for kind in kinds.values() if kind.category == name] for name in SIZES}
    chains = made.protocol == "levels"
    tasks = [(name, number) for name, size in SIZES.items() for number in range(int(size * made.share))]
    for place, (category, number) in enumerate([("chain", each) for each in range(165)] if chains else tasks):
        if chains:
            found = [[kinds[name] for name in CHAIN[: level + 1]] for level in range(4)]
            turns = [_turn(made, luck, turn, each, f"L{turn + 1}") for turn, each in enumerate(found)]
        else:
            own = by_category[category]
            turns = list(_repairs(made, luck, [own[number % len(own)]]))
        yield SessionRecord.model_validate(
            {
                "cell_id": cell, "session_id": f"{cell}.{place}", "task_id": f"{category}/{number}",
                "dataset": made.dataset, "model": made.model, "protocol": made.protocol, "agenda": [], "seed": made.seed,
                "status": "completed", "turns": turns, "language": LANGUAGES[place % len(LANGUAGES)],
            }
        )  # fmt: skip


def _repairs(made: Constrained, luck: random.Random, kinds: Sequence[ConstraintType]) -> Iterator[dict[str, Any]]:
    settings = made.settings
    for number in range(settings["rounds"] + 1):
        turn = _turn(made, luck, number, kinds, "single")
        yield turn
        if turn["passed"] is not False and not settings["rejudge"]:
            return


def _turn(
    made: Constrained, luck: random.Random, number: int, kinds: Sequence[ConstraintType], level: str
) -> dict[str, Any]:
    constraints = []
    for kind in kinds:
        met = luck.random() < made.passes * (0.6 if kind.category == "code_quality" else 1)
        known = None if kind.by == "judge" and not made.judged else met
        official = known if kind.by == "judge" or luck.random() < 0.9 else not met
        chosen = known if made.settings["harness"] == "guarded" else official
        constraints.append(
            {"type": kind.name, "category": kind.category, "by": kind.by, "met": chosen, "guarded": known,
             "official": official, "reason": f"line {number + 1}: `f` is {'right' if met else 'wrong'}"}
        )  # fmt: skip
    found = [each["met"] for each in constraints]
    passed = False if False in found else None if None in found else True
    code = f"def f(x):\n    return x + {number}\n"
    return {
        "turn": number, "request": [{"role": "user", "content": "Write f, which adds."}], "code": code,
        "response": f"```python\n{code}```", "passed": passed, "passed_base": passed,
        "outcome": None if passed is None else "pass" if passed else "fail", "level": level,
        "round": 0 if made.protocol == "levels" else number, "constraints": constraints, "parses": luck.random() < 0.95,
        "usage": {"input_tokens": 300, "output_tokens": 200, "cached_input_tokens": 0},
    }  # fmt: skip


SNAKE = ("naming", "python;variable:snake_case")
SPACES = ("indentation", "python;spaces:4;spacing")
SOLUTION = "def solve(secret_helper):\n    return secret_helper + 41\n"


def constraint_with_answer(kind: str, answer: str) -> Constraint:
    """A constraint_with_answer by its type's name and its published answer."""
    return Constraint(kind, constraint_type(kind).read(answer))


def level(name: str, prompt: str, *constraints: tuple[str, str]) -> Level:
    """A level with such constraints."""
    return Level(name, prompt, tuple(constraint_with_answer(*each) for each in constraints))


def constrained_task(*constraints: tuple[str, str], language: str = "python") -> ConstrainedTask:
    """A task of one level."""
    own = level("single", "Write it.", *constraints)
    return ConstrainedTask("t/1", own.prompt, Target(language), level=own.name, levels=(own,))


class Quoting(Judging):
    """Decides constraints by the code, and quotes the reference in its reason."""

    def __init__(self, kept: Callable[[ConstraintQuestion], bool | None] = lambda one: "good" in one.code) -> None:
        super().__init__()
        self.kept, self.questions = kept, list[ConstraintQuestion]()

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        self.questions.append(question)
        await asyncio.sleep(0)
        return Compliance(self.kept(question), "test", f"not as in {question.reference}", usage=Usage(11, 3))


KINDS = {  # a constraint's letter: its type, its category, what decides it
    "n": ("naming", "coding_style", "rule"),
    "t": ("data_structure_type", "data_structure", "rule"),
    "o": ("data_structure_operation", "data_structure", "rule"),
    "v": ("language_version", "environment", "compiler"),
    "q": ("code_quality", "code_quality", "judge"),
    "x": ("exemplar", "exemplar", "judge"),
}
MET = {"+": True, "-": False, "?": None}


def constraint(written: str) -> ConstraintRecord:
    """`n+` is met, `n-` unmet, `n?` undecided; `n+-` is met by the guarded harness alone."""
    name, category, by = KINDS[written[0]]
    guarded, official = MET[written[1]], MET[written[-1]]
    return ConstraintRecord(
        type=name, category=category, by=by, met=guarded, reason=f"made up: {written}", guarded=guarded, official=official
    )  # fmt: skip


def turn(number: int, written: str, **fields: Any) -> TurnRecord:
    """A turn with the verdicts on its constraints, such as `n+ t-?`; fields of the protocols or of every turn."""
    constraints = [constraint(each) for each in written.split()]
    names = ConstrainedTurn.model_fields
    own = ConstrainedTurn(
        **{"level": "single", "round": number, "constraints": constraints, "parses": True}
        | {name: value for name, value in fields.items() if name in names}
    )
    passed = own.all_met("met")
    outcome = None if passed is None else "pass" if passed else "fail"
    common = {"response": "…", "code": "x", "outcome": outcome, "passed": passed, "passed_base": passed}
    further = {name: value for name, value in fields.items() if name not in names}
    return TurnRecord(turn=number, **common | further, **own.model_dump())


def session(task: str, *turns: str | TurnRecord, **fields: Any) -> SessionRecord:
    """A session of turns, written as for `turn`."""
    made = [each if isinstance(each, TurnRecord) else turn(number, each) for number, each in enumerate(turns)]
    known = {"cell_id": "c", "session_id": task, "task_id": task, "dataset": "d", "model": "m", "protocol": "repair"}
    return SessionRecord(**known | {"agenda": [], "seed": 0, "status": "completed", "turns": made} | fields)


CONSTRAINED: dict[str, Any] = {
    "task_id": "syntax_function/1",
    "level": "single",
    "category": "syntax",
    "constraint_type": "function",
    "language": "rust",
    "answer": "Rust;push_str",
    "prompt": "Join words with push_str.",
}
ANSWERS = ["Java;HashMap", "Java;HashMap;['put', 'get']", "Java;HashMap;100", "java;HashMap"]


def constrained(**fields: Any) -> dict[str, Any]:
    """The row with other fields."""
    return {**CONSTRAINED, **fields}


def chain(number: int = 0) -> list[dict[str, Any]]:
    """A chain of four levels."""
    return [
        constrained(
            task_id=f"multi/{number}/{level}",
            level=f"L{level}",
            chain=number,
            category="data_structure",
            constraint_type="cumulative",
            language="java",
            answer=ANSWERS[level - 1],
            answers_cumulative=ANSWERS[:level],
            prompt=f"Keep a phone book, level {level}.",
        )
        for level in range(1, 5)
    ]


@dataclass(frozen=True)
class Spins:
    """Never ends."""

    reads_code = True

    @property
    def key(self) -> list[Any]:
        return []

    def find(self) -> Finding:
        while True:
            pass


class Ends(Spins):
    """Ends its process."""

    def find(self) -> Finding:
        os._exit(1)


class Hoards(Spins):
    """Wants more memory than there is for it."""

    def find(self) -> Finding:
        return Finding(True, str(len(bytearray(64 << 30))))


class Fails(Spins):
    """Raises what nobody foresaw."""

    def find(self) -> Finding:
        raise KeyError("surprise")


class Lacks(Spins):
    """Needs what is not installed."""

    def find(self) -> Finding:
        raise UserError("it is not there", "install it")
