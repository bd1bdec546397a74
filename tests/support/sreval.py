"""Made-up cells and task rows of SR-Eval's steps."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codechat.base.records import TRACKED, SessionRecord, write_sessions
from codechat.report.metrics.measures import FIELD
from codechat.studies.sreval.dataset import PUBLISHED
from codechat.studies.sreval.metrics import STEPWISE, stepwise_metrics
from codechat.studies.sreval.protocol import paper_context

TURNS = {  # how many tasks of the published files have a first turn, a second, …
    "sreval_python": (142, 142, 142, 100, 34),
    "sreval_java": (172, 172, 172, 163, 109),
    "sreval_python_repository": (89, 89, 89, 85, 25),
    "sreval_java_repository": (40, 40, 33, 15, 4),
}


@dataclass(frozen=True)
class Steps:
    """One cell to be made. `model` is its preset; `passes` is how likely a turn passes; `options` are the model's."""

    model: str
    dataset: str = "sreval_python"
    prompting: str = "full_history"
    context: str = "basic"
    harness: str = "official"
    by_turn: tuple[int, ...] = ()
    passes: float = 0.5
    local_context: str | None = None  # as the paper has it
    kind: str = "openai"
    options: tuple[tuple[str, Any], ...] = ()
    seed: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """How many tasks have each turn; those of the published file unless given."""
        return self.by_turn or TURNS[self.dataset]


def write_steps(made: Steps, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    name = "-".join(
        [made.model, made.dataset, made.prompting, made.context, made.harness, *map(str, dict(made.options).values())]
    )
    name += f"-seed-{made.seed}" if made.seed else ""
    folder = runs / name
    folder.mkdir(parents=True)
    sessions = list(sessions_of(made, name))
    write_sessions(folder / "sessions.jsonl", sessions)
    (folder / "metrics.json").write_text(json.dumps({**stepwise_metrics(sessions, seed=0), FIELD: STEPWISE.describe()}))
    protocol = {"kind": "stepwise", "prompting": made.prompting, "context": made.context, "harness": made.harness}
    protocol["local_context"] = made.local_context or paper_context(made.dataset)
    config = {
        "model": {"kind": made.kind, **dict(made.options)}, "dataset": {"kind": made.dataset}, "protocol": protocol,
        "seed": made.seed, "choices": {"model": made.model, "dataset": made.dataset, "protocol": "stepwise"},
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    content = dict(zip(sorted(TURNS), sorted(PUBLISHED), strict=True)).get(made.dataset)
    if content is not None:
        (folder / TRACKED).write_text(json.dumps({"dataset": {"content_hash": content}}))
    return folder


def sessions_of(made: Steps, cell: str) -> Iterator[SessionRecord]:
    """The sessions, in dataset order; the same for the same cell."""
    luck = random.Random(cell)
    for number in range(made.counts[0]):
        turns = sum(number < count for count in made.counts)
        yield SessionRecord.model_validate(
            {
                "cell_id": cell, "session_id": f"{cell}.{number}", "task_id": f"{made.dataset}/{number}",
                "dataset": made.dataset, "model": made.model, "protocol": "stepwise", "agenda": [], "seed": made.seed,
                "status": "completed", "turns": [_turn(turn, luck.random() < made.passes) for turn in range(turns)],
            }
        )  # fmt: skip


def _turn(turn: int, passed: bool) -> dict[str, Any]:
    code = f"def f(x):\n    return x + {turn}\n"
    return {
        "turn": turn, "request": [{"role": "user", "content": "programming problem:\nWrite f."}], "code": code,
        "response": f"```python\n{code}```", "outcome": "pass" if passed else "fail", "passed": passed,
        "passed_base": passed, "failure": None if passed else {"reason": "AssertionError: 3 != 4"},
        "earlier": [{"turn": 0, "passed": passed}] if turn else [],
        "usage": {"input_tokens": 900 + 400 * turn, "output_tokens": 300, "cached_input_tokens": 0},
    }  # fmt: skip


def program(body: str) -> str:
    return f"def task_func(values):\n    {body}\n"


def unit_test(*lines: str) -> str:
    """A test case as SR-Eval writes it."""
    body = "\n".join(f"        {line}" for line in lines)
    return f"import unittest\n\n\nclass TestCases(unittest.TestCase):\n    def test_it(self):\n{body}\n"


def growing(name: str, turns: int = 3) -> dict[str, Any]:
    """A task that sums, then drops negative numbers, then doubles, …: a later test contradicts an earlier one."""
    steps = [
        ("Write task_func(values), which adds numbers up.", "return sum(values)", "self.assertEqual(task_func([1, -2]), -1)"),
        ("Leave negative numbers out. ", "return sum(v for v in values if v >= 0)", "self.assertEqual(task_func([1, -2]), 1)"),
        ("An empty list gives None.", "return sum(v for v in values if v >= 0) if values else None",
         "self.assertIsNone(task_func([]))"),
        ("Return a float.", "return float(sum(v for v in values if v >= 0)) if values else None",
         "self.assertIsInstance(task_func([2]), float)"),
        ("Refuse texts with a ValueError.",
         "if isinstance(values, str):\n        raise ValueError(values)\n"
         "    return float(sum(v for v in values if v >= 0)) if values else None",
         "self.assertRaises(ValueError, task_func, 'ab')"),
    ]  # fmt: skip
    return {
        "hash_id": name, "mt_id": 1, "total_turn": turns, "metadata": {"source": "mine"},
        "turn_datas": [
            {"turn_num": number, "instruction": text, "solution": program(body), "test": unit_test(test)}
            for number, (text, body, test) in enumerate(steps[:turns], 1)
        ],
    }  # fmt: skip


GROWING = growing("a" * 24)


def growing_java(name: str, turns: int = 3) -> dict[str, Any]:
    """A task that greets, then greets by name, then refuses an empty name."""
    steps = [
        ("Write a class Greeter with greet(), starting with:\n<code>", 'String greet() { return "Hello"; }',
         'assertEquals("Hello", new Greeter().greet());'),
        ("Greet by name.", 'String greet(String name) { return "Hello " + name; }',
         'assertEquals("Hello Ada", new Greeter().greet("Ada"));'),
        ("Refuse an empty name.",
         'String greet(String name) {\n        if (name.isEmpty()) throw new IllegalArgumentException();\n'
         '        return "Hello " + name;\n    }',
         'assertThrows(IllegalArgumentException.class, () -> new Greeter().greet(""));'),
    ]  # fmt: skip
    return {
        "hash_id": name, "mt_id": 1, "total_turn": turns, "metadata": {"source": "mine"},
        "turn_datas": [
            {"turn_num": number, "instruction": text, "solution": f"class Greeter {{\n    {body}\n}}\n",
             "test": "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\n\n"
                     f"class GreeterTest {{\n    @Test void works() {{ {test} }}\n}}\n"}
            for number, (text, body, test) in enumerate(steps[:turns], 1)
        ],
    }  # fmt: skip


GROWING_JAVA = growing_java("c" * 24)
