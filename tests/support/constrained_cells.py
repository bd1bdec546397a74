"""Made-up cells of self-repair and of levels: what they leave, without a model, a sandbox or a dataset."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from codechat.base.records import TRACKED, SessionRecord, write_sessions
from codechat.report.metrics.measures import FIELD
from codechat.studies.multicodeif.constraints import ConstraintType, constraint_types
from codechat.studies.multicodeif.dataset import PUBLISHED
from codechat.studies.multicodeif.metrics import LEVELS, REPAIR, levels_metrics, repair_metrics

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
