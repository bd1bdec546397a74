"""A user's own tasks: what is accepted, and how a mistake is told."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.domain import AssertionTests, Dataset, Requirement
from codechat.errors import UserError
from codechat.languages.python.assembly import assemble, signature_of

ROW: dict[str, Any] = {
    "task_id": "mine/0",
    "prompt": 'def double(x: int) -> int:\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "base_input": [[1], [0]],
    "plus_input": [[-4]],
    "atol": 0,
}


ASKED = {"type": "style", "text": "Add a docstring.", "tests": "assert double.__doc__"}
ASSERTED: dict[str, Any] = {
    **{name: value for name, value in ROW.items() if name not in ("base_input", "plus_input", "atol")},
    "tests": ["assert double(1) == 2", "assert double(0) == 0"],
    "requirements": [ASKED, {**ASKED, "id": "extension", "tests": ["a = 1", "assert a"], "accumulates": False}],
}


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def load(path: Path) -> Dataset:
    return DATASETS["jsonl"].factory(DATASETS.validate({"kind": "jsonl", "path": str(path)}))


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(path)
    told = str(caught.value)
    assert len(told.splitlines()) <= 5
    return told.replace(str(path), "FILE")


def test_round_trip(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "a.jsonl", ROW, "", {**ROW, "task_id": "mine/1", "oracle": "set_equal"}))
    assert [task.task_id for task in dataset.tasks] == ["mine/0", "mine/1"]
    task = dataset.tasks[0]
    assert task.prompt == ROW["prompt"] and task.signature == "def double(x: int) -> int:"
    assert task.reference == ROW["prompt"] + ROW["canonical_solution"]
    assert (task.tests.base, task.tests.plus) == (((1,), (0,)), ((-4,),))
    assert (task.tests.atol, task.tests.oracle) == (0.0, "equal") and dataset.tasks[1].tests.oracle == "set_equal"


def test_hash_follows_what_is_used(tmp_path: Path) -> None:
    plain = load(write(tmp_path / "a.jsonl", ROW)).content_hash
    packed = tmp_path / "b.data"
    packed.write_bytes(gzip.compress(json.dumps(ROW, indent=None, separators=(", ", " : ")).encode()))
    assert load(packed).content_hash == plain
    assert load(write(tmp_path / "c.jsonl", {**ROW, "contract": "ignored"})).content_hash == plain
    for change in ({"atol": 1e-3}, {"plus_input": []}, {"prompt": ROW["prompt"] + "\n"}, {"base_output": [2, 0]}):
        assert load(write(tmp_path / "d.jsonl", {**ROW, **change})).content_hash != plain


def test_line_17(tmp_path: Path) -> None:
    rows: list[dict[str, Any] | str] = [{**ROW, "task_id": f"mine/{n}"} for n in range(20)]
    rows[16] = '{"task_id": "mine/16", '
    told = refusal(write(tmp_path / "tasks.jsonl", *rows))
    assert told.startswith("FILE:17: not JSON") and "canonical_solution" in told


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**ROW, "base_input": "[[1]]"}, "FILE:1: base_input: Input should be a valid list"),
        ({**ROW, "base_input": [1]}, "FILE:1: base_input.0: Input should be a valid list"),
        ({**ROW, "base_input": []}, "FILE:1: give base_input (calls to compare) or tests (assertions)"),
        ({**ROW, "tests": ["assert True"]}, "FILE:1: give base_input (calls to compare) or tests (assertions)"),
        ({**ASSERTED, "plus_input": [[1]]}, "FILE:1: plus_input goes with base_input, not with tests"),
        ({**ASSERTED, "requirements": [{"type": "t", "text": "x"}]}, "FILE:1: requirements.0.tests: Field required"),
        ({**ASSERTED, "requirements": [{**ASKED, "kind": 1}]}, "FILE:1: requirements.0.kind: Extra inputs are not"),
        ({**ASSERTED, "requirements": [{**ASKED, "id": "a"}] * 2}, "FILE:1: requirements: the id 'a' is taken"),
        ({**ASSERTED, "requirements": [{**ASKED, "id": "task"}]}, "FILE:1: requirements: the id 'task' is taken"),
        ({k: v for k, v in ROW.items() if k != "entry_point"}, "FILE:1: entry_point: Field required"),
        ({**ROW, "entry_point": "class"}, "FILE:1: entry_point: Value error, is not a Python name"),
        ({**ROW, "entry_point": "triple"}, "FILE:1: canonical_solution: neither alone nor after the prompt"),
        ({**ROW, "canonical_solution": "    return ("}, "FILE:1: canonical_solution: neither alone"),
        ({**ROW, "canonical_solution": None}, "FILE:1: give canonical_solution or base_output"),
        ({**ROW, "canonical_solution": None, "base_output": [2, 0]}, "FILE:1: give canonical_solution or plus_output"),
        ({**ROW, "base_output": [2]}, "FILE:1: base_output has 1 results for 2 inputs"),
        ({**ROW, "plus_inputs": []}, "FILE:1: unknown field 'plus_inputs': did you mean 'plus_input'?"),
        ({**ROW, "atol": -1}, "FILE:1: atol: Input should be greater than or equal to 0"),
        ({**ROW, "oracle": "roughly"}, "FILE:1: oracle: Input should be 'equal'"),
        ('["a list"]', "FILE:1: the line is not a JSON object"),
        ("[" * 100_000, "FILE:1: nested too deeply"),
        ('{"task_id": ' + "9" * 5000 + "}", "FILE:1: Exceeds the limit"),
        ("", "FILE holds no task"),
    ],
)
def test_mistakes(tmp_path: Path, row: dict[str, Any] | str, told: str) -> None:
    assert refusal(write(tmp_path / "t.jsonl", row)).startswith(told)


def test_duplicate_id(tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "t.jsonl", ROW, ROW)).startswith("FILE:2: task_id 'mine/0' is there twice")


def test_unreadable_files(tmp_path: Path) -> None:
    assert "there is no file" in refusal(tmp_path / "none.jsonl")
    assert "cannot read" in refusal(tmp_path)
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(gzip.compress(json.dumps(ROW).encode() * 99)[:-20])
    assert "cannot read" in refusal(torn)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(json.dumps(ROW).encode() + b'\n{"task_id": "\xe9"}\n')
    assert refusal(latin).startswith("FILE:2: not UTF-8")


def test_path_is_required() -> None:
    with pytest.raises(UserError, match=r"dataset\.path is required"):
        DATASETS.validate({"kind": "jsonl"})


def test_task_without_reference(tmp_path: Path) -> None:
    bare = {k: v for k, v in ROW.items() if k != "canonical_solution"}
    row = {**bare, "base_output": [2, 0], "plus_output": [-8]}
    task = load(write(tmp_path / "t.jsonl", row)).tasks[0]
    assert task.reference is None and task.signature == "def double(x: int) -> int:"
    assert (task.tests.expected_base, task.tests.expected_plus) == ((2, 0), (-8,))
    told = refusal(write(tmp_path / "u.jsonl", {**row, "prompt": "Double a number."}))
    assert told.startswith("FILE:1: prompt: without canonical_solution it must show the line 'def double(...):'")


def test_assertions_and_verifiable_instructions(tmp_path: Path) -> None:
    task = load(write(tmp_path / "t.jsonl", ASSERTED)).tasks[0]
    assert task.assertions == AssertionTests(("assert double(1) == 2", "assert double(0) == 0"))
    assert task.tests.base == ()
    assert task.requirements == (
        Requirement("1", "style", "Add a docstring.", AssertionTests(("assert double.__doc__",))),
        Requirement("extension", "style", "Add a docstring.", AssertionTests(("a = 1", "assert a")), accumulates=False),
    )
    with_calls = load(write(tmp_path / "u.jsonl", {**ROW, "requirements": [ASKED]})).tasks[0]
    assert with_calls.assertions is None and len(with_calls.requirements) == 1
    hashes = {load(write(tmp_path / "v.jsonl", row)).content_hash for row in (ROW, {**ROW, "requirements": []})}
    assert len(hashes) == 1, "an empty list changes nothing"


WHOLE = "def double(x):\n    return 2 * x\n"


@pytest.mark.parametrize(
    ("prompt", "solution", "expected"),
    [
        ("Double a number.", WHOLE, WHOLE),
        ('"""Double a number."""\n', WHOLE, WHOLE),
        ("def double(x):", "    return 2 * x\n", WHOLE),
        ("import math\ndef double(x):\n", "    return 2 * x\n", "import math\n" + WHOLE),
        ("import math\n", WHOLE, "import math\n" + WHOLE),
        ("def double(x):\n", WHOLE, WHOLE),
    ],
)
def test_both_styles(prompt: str, solution: str, expected: str) -> None:
    assert assemble(prompt, solution, "double") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x): return x\n", "def f(x):"),
        (
            "@g\ndef f(x,\n      y={1: 2}) -> dict[int, int]:  # why\n    pass\n",
            "def f(x,\n      y={1: 2}) -> dict[int, int]:",
        ),
        ("def f(a=lambda: 0): pass", "def f(a=lambda: 0):"),
        ("def f(x): pass\n\ndef f(x, y): pass\n", "def f(x, y):"),
        ("x = 1\n\nclass A:\n    def f(self): pass\n", None),
        ("not python at all", None),
    ],
)
def test_signature(source: str, expected: str | None) -> None:
    assert signature_of(source, "f") == expected


def test_select(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "t.jsonl", *({**ROW, "task_id": f"mine/{n}"} for n in range(5))))

    def chosen(**options: Any) -> list[str]:
        config = DATASETS.validate({"kind": "jsonl", "path": "t", **options})
        assert isinstance(config, DatasetConfig)
        return [task.task_id for task in select(dataset, config)]

    assert chosen(limit=2) == ["mine/0", "mine/1"]
    assert chosen(tasks=["mine/3", "mine/1"]) == ["mine/1", "mine/3"]
    assert chosen(tasks=["mine/3", "mine/1"], limit=1) == ["mine/1"]
    with pytest.raises(UserError, match="did you mean"):
        chosen(tasks=["mine/9"])
