"""Validators in one file: a suite that reads code and runs nothing, tasks without entry point, tests or reference,
and a protocol that asks once and counts which constraints are kept."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from codechat.base.config import Config, result_option
from codechat.base.domain import Failure, Message, Program, Target, Verdict
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.tasks import Dataset, Requirement, Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Breakdown, Effort, Final, Measures, Series, spending_of, tokens_of
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.sandbox import Sandbox
from codechat.sandbox.languages import extract
from codechat.sandbox.suites import SUITES


@dataclass(frozen=True)
class Holds:
    """Passed if the code holds a word."""

    word: str
    kind = "holds"

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.word])

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox | None) -> Verdict:
        if self.word in program.source.split():
            return Verdict("pass", True)
        return Verdict("fail", False, Failure(f"no {self.word}"))


class HoldsConfig(Config):
    """Fields of the suite."""

    kind: Literal["holds"] = result_option("holds", "which kind of tests")
    word: str = result_option(..., "what the code must hold")


@SUITES.register("holds", HoldsConfig)
def holds(config: HoldsConfig) -> Holds:
    """The code holds a word (a plugin of the tests)."""
    return Holds(config.word)


class ConstraintsConfig(DatasetConfig):
    """Options of the dataset."""

    kind: Literal["constraints"] = result_option("constraints", "which dataset")


@DATASETS.register("constraints", ConstraintsConfig)
def constraints(config: ConstraintsConfig) -> Dataset:
    """Three tasks in Go, with constraints and nothing else (a plugin of the tests)."""
    tasks = tuple(
        Task(
            f"go/{number}",
            f"Write part {number} of a program in Go.",
            Target("go"),
            requirements=tuple(Requirement(word, word, f"Use {word}.", Holds(word)) for word in ("func", "defer")),
        )
        for number in range(3)
    )
    return Dataset("constraints", tasks, content_hash([task.prompt for task in tasks]))


class KeepingConfig(Config):
    """Options of the protocol."""

    kind: Literal["keeping"] = result_option("keeping", "the protocol")


class Keeping:
    """One turn: the task with its constraints."""

    measures = Measures(
        "keeping",
        "Keeping: constraints that one reply keeps",
        series=(Series("kept_at", "Constraints kept"),),
        finals=(Final("kept", "Constraints kept"), Final("all_kept", "All constraints kept")),
        breakdowns=(Breakdown("kept_by", "Constraints kept", "constraint", "kept_by"),),
        passed="all constraints are kept",
    )

    def turns(self, task: Task) -> int:
        return 1

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        yield Ask(UNDER_TEST, 0, len(task.prompt), 500)

    async def run(self, task: Task, kit: Kit) -> None:
        wishes = "\n".join(need.text for need in task.requirements)
        request = (Message("user", f"{task.prompt}\n{wishes}"),)
        reply = await kit.ask(UNDER_TEST, 0, request)
        extraction = extract(reply.text, task.target)
        found = {need.id: await kit.check(0, extraction, need.suite) for need in task.requirements}
        broken = next((verdict for verdict in found.values() if not verdict.passed), None)
        kept = {name: verdict.passed for name, verdict in found.items()}
        verdict = broken or Verdict("pass", True)
        kit.finish_turn(TurnRecord.of(0, request, (reply, extraction), verdict, kept=kept))

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        kept = list(sessions)
        done = [session for session in kept if session.status == "completed"]
        rows = [(session.turns[0].model_extra or {})["kept"] for session in done]
        each = {name: _share([row[name] for row in rows]) for name in (rows[0] if rows else ())}
        share = _share([value for row in rows for value in row.values()])
        passed = [bool(session.turns[0].passed) for session in done]
        return {
            "sessions": len(kept),
            "completed": len(done),
            "errored": len(kept) - len(done),
            "outcomes": {"pass": sum(passed), "fail": len(passed) - sum(passed)},
            "kept_at": [share],
            "kept": share,
            "all_kept": _share(passed),
            "kept_by": each,
            **spending_of(tokens_of(done), effort),
        }


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


@PROTOCOLS.register("keeping", KeepingConfig)
def keeping(config: KeepingConfig, parts: Parts) -> Keeping:
    """One reply, and which constraints it keeps (a plugin of the tests)."""
    return Keeping()
