"""Made-up cells and task files of CodeIF-Bench's conversations."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codechat.base.records import SessionRecord, write_sessions
from codechat.report.metrics import Measures
from codechat.report.metrics.measures import FIELD
from codechat.studies.codeif.metrics import DYNAMIC, conversation_metrics, static_measures

STRATEGIES = (
    "Input-Output Conditions", "Exception Handling", "Edge Case Handling", "Annotation Coverage", "Code Complexity",
    "Code Standard", "Functionality Extension",
)  # fmt: skip
MEASURES: dict[str, Measures] = {"static": static_measures(converses=True, official=False), "dynamic": DYNAMIC}


@dataclass(frozen=True)
class Talk:
    """One cell to be made; `meets` is how likely a new instruction is met, `forgets` that one is lost again."""

    model: str
    protocol: str = "static"
    dataset: str = "codeif_bench"
    tasks: int = 20
    meets: float = 0.6
    forgets: float = 0.15
    errored: int = 0
    seed: int = 0

    @property
    def cell_id(self) -> str:
        return f"{self.model}/{self.dataset}/{self.protocol}" + (f"/seed={self.seed}" if self.seed else "")


def write_talk(made: Talk, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    folder = runs / made.cell_id.replace("/", "-")
    folder.mkdir(parents=True)
    sessions = list(talks_of(made))
    write_sessions(folder / "sessions.jsonl", sessions)
    measures = MEASURES[made.protocol]
    metrics = conversation_metrics(sessions, measures, converses=True, seed=0)
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: measures.describe()}))
    config = {
        "model": {"kind": "openai", "name": made.model}, "dataset": {"kind": made.dataset},
        "protocol": {"kind": made.protocol}, "agenda": {"turns": 10}, "seed": made.seed,
        "choices": {"model": made.model, "dataset": made.dataset, "protocol": made.protocol, "agenda": "balanced"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def talks_of(made: Talk) -> Iterator[SessionRecord]:
    """The sessions, in dataset order; the same for the same cell."""
    for number in range(made.tasks):
        errored = number >= made.tasks - made.errored
        turns = list(_turns(made, random.Random(f"{made.cell_id}/{number}"), number))
        yield SessionRecord.model_validate(
            {
                "cell_id": made.cell_id, "session_id": f"{made.model}.{made.protocol}.{number}",
                "task_id": f"CodeIF/{number}", "dataset": made.dataset, "model": made.model, "protocol": made.protocol,
                "agenda": [], "seed": made.seed, "status": "errored" if errored else "completed",
                "error": "the endpoint is down" if errored else None, "turns": turns[:2] if errored else turns,
            }
        )  # fmt: skip


def _turns(made: Talk, luck: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """A turn per instruction; the dynamic conversation gives feedback on one that was not met."""
    asked = list(luck.sample(STRATEGIES, 4 + number % 3))
    met: dict[str, bool] = {}
    history: list[dict[str, str]] = []
    plan = [("initial", "Base"), *(("instruction", strategy) for strategy in asked)]
    turn = 0
    for kind, strategy in plan:
        rounds = [kind, "feedback"] if made.protocol == "dynamic" else [kind]
        for place, name in enumerate(rounds):
            if place and met[strategy]:
                break
            met = {key: value and luck.random() > made.forgets / 2 for key, value in met.items()}
            met[strategy] = luck.random() < made.meets
            record = _turn(turn, name, strategy, met, history)
            yield {**record, "discarded": bool(place) and not met[strategy], "level": "L-1" if number % 2 else "L-2"}
            history = [*record["request"], {"role": "assistant", "content": record["response"]}]
            turn += 1


def _turn(
    turn: int, kind: str, strategy: str, met: dict[str, bool], history: list[dict[str, str]]
) -> dict[str, Any]:  # fmt: skip
    code = f"def f(x):\n    return x + {turn}\n"
    text = f"Keep to the {strategy.lower()}: answer whatever comes within its bounds."
    checks = [
        {"id": _id(name), "strategy": name, "asked": True, "accumulates": name != "Functionality Extension",
         "outcome": "pass" if passed else "fail", "passed": passed, "reason": None if passed else "AssertionError: 3 != 4"}
        for name, passed in met.items()
    ]  # fmt: skip
    own = strategy == "Functionality Extension"
    holds = met[strategy] if own else all(c["passed"] for c in checks if c["accumulates"])
    said = text if turn else "Write f, which returns what it is given."
    return {
        "turn": turn, "round": kind, "checks": checks,
        "requirement": None if strategy == "Base" else {"id": _id(strategy), "strategy": strategy, "text": text},
        "request": [*history, {"role": "user", "content": said}], "response": f"Here it is.\n```python\n{code}```",
        "finish_reason": "stop", "code": code, "outcome": "pass" if holds else "fail", "passed": holds,
        "passed_base": met.get("Base", False), "failure": None if holds else {"reason": "AssertionError: 3 != 4"},
        "usage": {"input_tokens": 120 + 60 * turn, "output_tokens": 80, "cached_input_tokens": 0}, "latency_s": 1.25,
    }  # fmt: skip


def _id(strategy: str) -> str:
    return "task" if strategy == "Base" else strategy


FUNCTION: dict[str, Any] = {
    "task_id": 7,
    "prompt": "Write a python function called 'double' that doubles a number.",
    "test": ["assert double(2) == 4", "assert double(0) == 0"],
    "code": "def double(x): \r\n    return 2 * x",
    "requirements": {
        "Functionality Extension": {
            "requirement": "With times=n it multiplies by n.",
            "unit_test": "assert double(2, times=3) == 6",
        },
        "Exception Handling": {
            "requirement": "Raise TypeError for a text.",
            "unit_test": ["try:\n    double('a')\n    assert False\nexcept TypeError:\n    pass"],
        },
        "Edge Case Handling": {"requirement": "None gives 0.", "unit_test": "assert double(None) == 0"},
        "Code Standard": {"requirement": "Follow PEP 8.", "unit_test": "assert True"},
    },
    "multi-turn": ["Exception Handling", "Code Standard"],
}

REPOSITORY: dict[str, Any] = {
    "namespace": "shop.basket.Basket.total",
    "type": "method",
    "project_path": "Shopping/shop",
    "completion_path": "Shopping/shop/shop/basket.py",
    "signature_position": [5, 5],
    "body_position": [6, 6],
    "dependency": {"intra_class": ["shop.basket.Basket.items"], "intra_file": [], "cross_file": []},
    "requirement": {"Functionality": "The sum of the prices.", "Arguments": ":return: int."},
    "tests": ["tests/test_basket.py::test_total"],
    "indent": 8,
    "code": "    def total(self):\n        return sum(self.items)\n",
    "prompt": "Write the method 'total'.",
    "context": "class Basket: ...",
    "requirements": {
        "Context Usage Correctness Verification": {
            "requirement": "Use the items of the basket.",
            "unit_test": ["def test_items(): ..."],
            "test": "tests/test_basket.py::test_items",
        }
    },
    "multi-turn": ["Context Usage Correctness Verification"],
}


def write_rows(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path
