"""Made-up cells of maintainers who explore repositories: what they leave, without a model, a room or a dataset."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codechat.base.domain import Usage
from codechat.base.records import TRACKED, SessionRecord, TurnRecord, write_sessions
from codechat.report.metrics.measures import FIELD
from codechat.run.settings.compose import compose_values
from codechat.studies.cab.dataset import PUBLISHED
from codechat.studies.cab.metrics import ASSIST, assist_metrics
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, BuildRecord, ExploredRecord, Status, UserReply

LANGUAGES = ("c", "c++", "c#", "java", "javascript", "python", "typescript")
CREATED = {"recent": "2025-03-01T00:00:00Z", "all_time": "2019-03-01T00:00:00Z"}


@dataclass(frozen=True)
class Assisted:
    """One cell to be made: `issues` dialogues of each language and cohort, `good` how likely a condition is met.

    `dataset` is the kind of its dataset; every `undecided`-th dialogue has no judgement, none if it is 0.
    """

    model: str
    issues: int = 3
    good: float = 0.5
    cohorts: tuple[str, ...] = ("recent", "all_time")
    dataset: str = "cab"
    undecided: int = 0
    seed: int = 0
    words: tuple[str, ...] = ()
    """Words of a command whose protocol, environment and dataset's options the cell has."""


def write_assisted(made: Assisted, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    folder = runs / f"{made.model}-{made.dataset}-{made.seed}"
    folder.mkdir(parents=True)
    sessions = list(sessions_of(made, folder.name))
    write_sessions(folder / "sessions.jsonl", sessions)
    metrics = assist_metrics(sessions, rounds=10, seed=0)
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: ASSIST.describe()}))
    named = {"benchmark": "cab", "kind": "all"} if made.dataset == "cab" else {"kind": made.dataset}
    config = {
        "model": {"kind": "openai"}, "dataset": named, "protocol": {"kind": "assist"},
        "seed": made.seed, "choices": {"model": made.model, "dataset": made.dataset, "protocol": "assist"},
    }  # fmt: skip
    if made.words:
        composed = compose_values(["protocol=assist", "dataset=cab", "dataset.path=x", *made.words])[0]
        config |= {name: composed[name] for name in ("protocol", "environment")}
        config["dataset"] = composed["dataset"]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if made.dataset == "cab":
        (folder / TRACKED).write_text(json.dumps({"dataset": {"content_hash": min(PUBLISHED)}}))
    return folder


def sessions_of(made: Assisted, cell: str) -> Iterator[SessionRecord]:
    """The sessions, in dataset order; the same for the same cell."""
    luck, number = random.Random(cell), 0
    for language in LANGUAGES:
        for cohort in made.cohorts:
            for _ in range(made.issues):
                number += 1
                decided = not made.undecided or number % made.undecided != 0
                turns = [*_turns(luck, made.good)]
                yield SessionRecord(
                    cell_id=cell, session_id=f"{cell}.{number}", task_id=f"own/tool#{number}", dataset=made.dataset,
                    model=made.model, protocol="assist", agenda=[], seed=made.seed, status="completed", turns=turns,
                    language=language,
                    judgement=_judgement(luck, made.good, turns, CREATED[cohort], decided).model_dump(),
                )  # fmt: skip


def _turns(luck: random.Random, good: float) -> Iterator[TurnRecord]:
    """Answers until the user is satisfied, ten at most."""
    for number in range(10):
        drawn = luck.random()
        status: Status = (
            "FULLY_SATISFIED" if drawn < good else "PARTIALLY_SATISFIED" if drawn < 0.8 else "NOT_SATISFIED"
        )
        own = AssistTurn(
            answer=f"Set the port, {number}.",
            explored=[ExploredRecord(command="=ls", status=0, ended="exit", cut=False, seconds_s=0.1)],
            steps=2,
            build=BuildRecord(ok=True, log="done") if number else None,
            user=UserReply(text="And then?", status=status, reason="It is open.", references=["a/b#1:2"]),
        )
        used = {"usage_by_role": {"user": {"input_tokens": 10, "output_tokens": 2}}}
        yield TurnRecord.of(number, (), None, usage=Usage(100, 20), **own.model_dump(), **used)
        if status == "FULLY_SATISFIED":
            return


def _judgement(
    luck: random.Random, good: float, turns: list[TurnRecord], created: str, decided: bool
) -> AssistJudgement:
    met = [luck.random() < good for _ in range(3)]
    verdict: Any = "CORRECT" if all(met) else "PARTIALLY_CORRECT" if any(met) else "INCORRECT"
    known: dict[str, Any] = {"verdict": None, "judged": None, "implied": None, "technical": None, "verbosity": None}
    if decided:
        known = dict.fromkeys(known, verdict) | {"verbosity": luck.choice(["APPROPRIATE", "VERBOSE", "CONCISE"])}
    user = AssistTurn.of(turns[-1]).user
    assert user is not None
    return AssistJudgement(
        **known,
        conditions=list(met) if decided else [None] * 3,
        conditions_met=sum(met) if decided else None,
        why=["It says so.", "", "It does not."] if decided else [],
        reason="seen" if decided else "no reply could be read",
        build=None,
        needs_build=False,
        unvalidated=False,
        rounds=len(turns),
        thread_turns=luck.randint(1, 6),
        satisfied=user.status,
        pull=False,
        created_at=created,
    )
