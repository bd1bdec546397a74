"""Defects outside of the tests' reach: no test input meets them, and a plausible other one does."""

import ast
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets.starter import StarterConfig, starter
from codechat.models import MODELS
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.studies.refine.baselines.unseen import add_unseen_defect

CODE = '''def double(values, limit=3):
    """Double what is below the limit."""
    # in order
    return [number * 2 for number in values if number < limit]
'''
LISTS = tuple(([*range(length)], limit) for length, limit in zip((0, 1, 2, 3, 4, 9), (5, 6, 6, 7, 9, 12), strict=True))
GUARD = re.compile(r"^ +if (?P<guard>.+ % [0-9]+ == [0-9]+):\n +return None$", re.MULTILINE)


def planted(code: str) -> list[str]:
    return [found["guard"] for found in GUARD.finditer(code)]


def results(code: str, inputs: Any) -> list[Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return [names["double"](*each) for each in inputs]


def test_the_tests_do_not_see_it_and_inputs_between_them_do() -> None:
    draws = random.Random(1)
    between = [(draws.choices(range(10), k=draws.randrange(10)), draws.randrange(5, 13)) for _ in range(200)]
    guards = set()
    for number in range(20):
        made = add_unseen_defect(CODE, "double", LISTS, random.Random(number))
        assert made is not None
        assert ast.get_docstring(ast.parse(made).body[0]) == "Double what is below the limit."  # type: ignore[arg-type]
        assert results(made, LISTS) == results(CODE, LISTS)
        assert results(made, between) != results(CODE, between)
        guards |= {*planted(made)}
        assert made == add_unseen_defect(CODE, "double", LISTS, random.Random(number)), "by the draw alone"
    assert len(guards) > 1


@pytest.mark.parametrize(
    ("code", "inputs"),
    [
        ("def other(values):\n    return values\n", LISTS),  # no such function
        ("def double(values, limit): return values\n", LISTS),  # no line for it
        (CODE + "    return double(values[1:], limit)\n", LISTS),  # it gives itself other arguments
        (
            "def double(values, limit):\n    len = sum = limit\n    return values\n",
            [(values, 1) for values, _ in LISTS],
        ),
        (CODE, [([1], 2), ([1], 4), ([1], 6)]),  # other numbers may be no valid ones
        (CODE, []),
    ],
)
def test_none_is_added_without_a_place_or_a_property(code: str, inputs: Any) -> None:
    assert add_unseen_defect(code, "double", inputs, random.Random(0)) is None


def test_most_starter_tasks_have_one() -> None:
    tasks = starter(StarterConfig()).tasks
    suites: Any = {task.task_id: task.suite for task in tasks}
    made = [
        add_unseen_defect(task.reference or "", task.target.entry_point, suites[task.task_id].inputs, random.Random(0))
        for task in tasks
    ]
    assert sum(code is not None for code in made) >= 0.8 * len(tasks)


@pytest.mark.long
def test_a_cell_with_unseen_defects_passes_every_test(tmp_path: Path) -> None:
    rates = [f"model.regression.{scope}=0.6" for scope in ("cosmetic", "structural", "semantic")]
    words = ["model=drifter", "model.unseen=1", "judge=rules", "tracking=none", "dataset.limit=10", *rates]
    outcome = run(compose([*words, f"runs_dir={tmp_path}"]))
    assert outcome.metrics is not None
    assert outcome.metrics["pass_at_1"] == [1.0] * 10
    text = (outcome.folder / "sessions.jsonl").read_text()
    sessions = [json.loads(line) for line in text.splitlines()]
    assert sum(bool(planted(turn["code"] or "")) for each in sessions for turn in each["turns"]) > 30
    assert "unseen" not in text


def test_the_option_changes_no_id_of_today() -> None:
    plain, zero, half = (MODELS.validate({"kind": "drifter", **more}) for more in ({}, {"unseen": 0}, {"unseen": 0.5}))
    assert plain.identity() == zero.identity()
    assert "unseen" not in plain.identity()
    assert half.identity()["unseen"] == 0.5
