"""A user's own tasks: what is accepted, and how a mistake is told."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Target
from codechat.base.errors import UserError
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.tasks import Dataset, Requirement, Task
from codechat.sandbox.languages.python.syntax import assemble, signature_of
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.tool import Tool
from support.mistakes import mistake

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


BARE = {name: ROW[name] for name in ("task_id", "prompt", "entry_point")}
PERL_ROW = {"task_id": "perl/0", "prompt": "", "language": "perl"}
TRUE = {"kind": "tool", "argv": ["true"]}
GIVEN = {"kind": "calls", "entry_point": "double", "base_input": [[1]]}


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def load(path: Path) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": "jsonl", "path": str(path)}))


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(path)
    told = str(caught.value)
    assert len(told.splitlines()) <= 5
    return told.replace(str(path), "FILE")


def calls(task: Task) -> Calls:
    assert isinstance(task.suite, Calls)
    return task.suite


def test_round_trip(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "a.jsonl", ROW, "", {**ROW, "task_id": "mine/1", "oracle": "set_equal"}))
    assert [task.task_id for task in dataset.tasks] == ["mine/0", "mine/1"]
    task = dataset.tasks[0]
    assert task.prompt == ROW["prompt"] and task.target.signature == "def double(x: int) -> int:"
    assert task.reference == ROW["prompt"] + ROW["canonical_solution"]
    assert (calls(task).base, calls(task).plus) == (((1,), (0,)), ((-4,),))
    assert (calls(task).atol, calls(task).oracle) == (0.0, "equal") and calls(dataset.tasks[1]).oracle == "set_equal"


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
        ({**ROW, "base_input": "[[1]]"}, "FILE:1: base_input: .* list"),
        ({**ROW, "base_input": [1]}, "FILE:1: base_input.0: .* list"),
        ({**ROW, "base_input": []}, "FILE:1: give base_input .*tests "),
        ({**ROW, "tests": ["assert True"]}, "FILE:1: give base_input .*tests "),
        ({**ASSERTED, "plus_input": [[1]]}, "FILE:1: plus_input .*base_input.*tests"),
        ({**PERL_ROW, "tests": ["1"]}, "FILE:1: tests .*Python.*base_input or suite.* perl"),
        (
            {**PERL_ROW, "entry_point": "f", "base_input": [[1]], "base_output": [1]},
            "FILE:1: language: .*perl.*base_input.* java, javascript, python",
        ),
        (
            {**PERL_ROW, "language": "js", "entry_point": "f", "base_input": [[1], [2**60]], "base_output": [1, 2]},
            r"FILE:1: input 1: js .* 1.153e\+18",
        ),
        (
            {**PERL_ROW, "language": "java", "entry_point": "f", "base_input": [[1]], "base_output": [1]},
            "FILE:1: signature: ''",
        ),
        ({**ROW, "suite": TRUE}, "FILE:1: give suite alone.*base_input.*tests"),
        (
            {**BARE, "suite": {"kind": "calling"}},
            "FILE:1: suite: .*'calling'.*'calls'",
        ),
        ({**BARE, "suite": {"kind": "tool"}}, "FILE:1: suite: suite.argv .*required"),
        ({**BARE, "suite": {**TRUE, "args": 1}}, "FILE:1: suite: suite.args "),
        ({**BARE, "suite": {**TRUE, "file": "../x"}}, "FILE:1: suite: suite: '../x'"),
        ({**BARE, "suite": "tool"}, "FILE:1: suite: "),
        ({**BARE, "suite": GIVEN}, "FILE:1: suite: .*reference.*base_output"),
        (
            {**BARE, "requirements": [{**ASKED, "suite": TRUE}]},
            "FILE:1: requirements.0.tests: .*tests.*suite",
        ),
        ({**ASSERTED, "requirements": [{"type": "t", "text": "x"}]}, "FILE:1: requirements.0.tests: .*required"),
        ({**ASSERTED, "requirements": [{**ASKED, "kind": 1}]}, "FILE:1: requirements.0.kind: "),
        ({**ASSERTED, "requirements": [{**ASKED, "id": "a"}] * 2}, "FILE:1: requirements: .*'a'"),
        ({**ASSERTED, "requirements": [{**ASKED, "id": "task"}]}, "FILE:1: requirements: .*'task'"),
        ({k: v for k, v in ROW.items() if k != "entry_point"}, "FILE:1: entry_point: .*required"),
        ({**ROW, "entry_point": "class"}, "FILE:1: entry_point: .*Python name"),
        ({**ROW, "entry_point": "triple"}, "FILE:1: canonical_solution: .*triple"),
        ({**ROW, "canonical_solution": "    return ("}, "FILE:1: canonical_solution: "),
        ({**ROW, "canonical_solution": None}, "FILE:1: .*canonical_solution.*base_output"),
        ({**ROW, "canonical_solution": None, "base_output": [2, 0]}, "FILE:1: .*canonical_solution.*plus_output"),
        ({**ROW, "base_output": [2]}, "FILE:1: base_output .*1 .*2 "),
        ({**ROW, "plus_inputs": []}, "FILE:1: .*'plus_inputs'.*'plus_input'"),
        ({**ROW, "atol": -1}, "FILE:1: atol: .* 0"),
        ({**ROW, "oracle": "roughly"}, "FILE:1: oracle: .*'equal'"),
        ('["a list"]', "FILE:1: .*JSON object"),
        ("[" * 100_000, "FILE:1: nested more than 100 levels deep"),
        ('{"task_id": ' + "9" * 5000 + "}", "FILE:1: Exceeds the limit"),
        ("", "FILE holds no task"),
    ],
)
def test_mistakes(tmp_path: Path, row: dict[str, Any] | str, told: str) -> None:
    assert re.match(told, refusal(write(tmp_path / "t.jsonl", row)), re.DOTALL)


def test_duplicate_id(tmp_path: Path) -> None:
    told = refusal(write(tmp_path / "t.jsonl", ROW, ROW))
    assert told.startswith("FILE:2: ") and "mine/0" in told


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
    assert task.reference is None and task.target.signature == "def double(x: int) -> int:"
    assert (calls(task).expected_base, calls(task).expected_plus) == ((2, 0), (-8,))
    told = refusal(write(tmp_path / "u.jsonl", {**row, "prompt": "Double a number."}))
    assert told.startswith("FILE:1: prompt: ") and "canonical_solution" in told and "'def double(...):'" in told


def test_assertions_and_verifiable_instructions(tmp_path: Path) -> None:
    task = load(write(tmp_path / "t.jsonl", ASSERTED)).tasks[0]
    assert task.suite == Assertions(("assert double(1) == 2", "assert double(0) == 0"))
    assert task.requirements == (
        Requirement("1", "style", "Add a docstring.", Assertions(("assert double.__doc__",))),
        Requirement("extension", "style", "Add a docstring.", Assertions(("a = 1", "assert a")), accumulates=False),
    )
    with_calls = load(write(tmp_path / "u.jsonl", {**ROW, "requirements": [ASKED]})).tasks[0]
    assert calls(with_calls).base and len(with_calls.requirements) == 1
    hashes = {load(write(tmp_path / "v.jsonl", row)).content_hash for row in (ROW, {**ROW, "requirements": []})}
    assert len(hashes) == 1, "an empty list changes nothing"


HASHES = {
    "calls": (ROW, "ac44b7d95fb1de2d5bd5ea406bd795e4edd973b22100c67f34975854e7c94bb6"),
    "assertions": (ASSERTED, "b53145fffde80c08d535cb948cc5a1f6b9938e23e019dc0951524d857bf4efa7"),
    "requirements": (
        {**ROW, "requirements": [ASKED]},
        "60aae7434f4715c8a1ef0b7db2f957d42faff28351075cbe89caddd577b7ad91",
    ),
}


@pytest.mark.parametrize("name", HASHES)
def test_fields_that_came_later_leave_the_hash_of_older_rows(tmp_path: Path, name: str) -> None:
    row, wanted = HASHES[name]
    assert load(write(tmp_path / "t.jsonl", row)).content_hash == wanted


PERL: dict[str, Any] = {
    "task_id": "perl/0",
    "prompt": "Print six times seven.",
    "language": "perl",
    "canonical_solution": "print 6 * 7 . qq(\\n);",
    "suite": {"kind": "tool", "argv": ["perl", "-c", "{program}"], "file": "answer.pl"},
}


def test_another_language_brings_its_own_suite_and_nothing_is_read_as_python(tmp_path: Path) -> None:
    task = load(write(tmp_path / "t.jsonl", PERL)).tasks[0]
    assert task.target == Target("perl") and task.reference == PERL["canonical_solution"]
    assert task.suite == Tool(("perl", "-c", "{program}"), file="answer.pl")
    named = load(write(tmp_path / "u.jsonl", {**PERL, "entry_point": "Main::run"})).tasks[0]
    assert named.target == Target("perl", "Main::run")


def test_a_suite_of_any_kind_may_stand_in_a_row_and_in_a_requirement(tmp_path: Path) -> None:
    given = {"kind": "calls", "entry_point": "double", "base_input": [[1]], "base_output": [2]}
    asked = {"type": "style", "text": "Add a docstring.", "suite": {"kind": "assertions", "tests": ["assert True"]}}
    bare = {name: ROW[name] for name in ("task_id", "prompt", "entry_point")}
    task = load(write(tmp_path / "t.jsonl", {**bare, "suite": given, "requirements": [asked]})).tasks[0]
    assert task.suite == Calls("double", None, base=((1,),), expected_base=(2,), name="mine/0")
    assert task.target == Target("python", "double", "def double(x: int) -> int:")
    assert task.requirements == (Requirement("1", "style", "Add a docstring.", Assertions(("assert True",))),)
    assert [suite.kind for suite in task.suites] == ["calls", "assertions"]


def test_the_hash_covers_the_suite_by_what_decides(tmp_path: Path) -> None:
    def hashed(**suite: Any) -> str:
        row = {**PERL, "suite": {**PERL["suite"], **suite}}
        return load(write(tmp_path / "t.jsonl", row)).content_hash

    assert hashed() == hashed(wall_s=10) == hashed(passes=0)
    assert len({hashed(), hashed(passes=1), hashed(argv=["perl", "{program}"]), hashed(executes=True)}) == 4
    bare = {name: value for name, value in PERL.items() if name != "suite"}
    other = load(write(tmp_path / "u.jsonl", {**bare, "language": "ruby"})).content_hash
    assert other != load(write(tmp_path / "u.jsonl", bare)).content_hash != hashed()


def test_a_task_needs_no_tests_no_entry_point_and_no_reference(tmp_path: Path) -> None:
    task = load(write(tmp_path / "t.jsonl", {"task_id": "free/0", "prompt": "Write a poem."})).tasks[0]
    assert (task.suite, task.reference, task.target, task.requirements) == (None, None, Target(), ())
    assert task.suites == ()


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


def test_two_tasks_of_one_id_are_refused() -> None:
    twice = Dataset("mine", (Task("a", "one"), Task("a", "two"), Task("b", "three")), "hash")
    with mistake("2 tasks", "mine", "'a'"):
        select(twice, DatasetConfig(kind="any"))


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
