"""Twins: the same tasks with other names, examples or words, and references that pass as before."""

import ast
import json
import os
import re
from pathlib import Path
from typing import Any, cast

import pytest

from codechat.base.errors import UserError
from codechat.base.seeding import generator
from codechat.datasets import DATASETS, DatasetConfig, load
from codechat.datasets.tasks import Dataset
from codechat.datasets.twins.examples import Plan, find, results_of
from codechat.datasets.twins.prose import with_name
from codechat.run.results.samples import check_references
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls

DATA = Path(os.environ.get("CODECHAT_TEST_DATA") or "absent")
HUMANEVAL = {"kind": "humaneval", "path": str(DATA / "HumanEvalPlus.jsonl.gz")}
MBPP = {"kind": "mbpp", "path": str(DATA / "MbppPlus.jsonl.gz")}


def config(**options: Any) -> DatasetConfig:
    return cast(DatasetConfig, DATASETS.validate({"kind": "starter", **options}))


def some(path: Path, *rows: dict[str, Any]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"kind": "jsonl", "path": str(path)}


class Silent:
    def notice(self, text: str) -> None: ...

    def progress(self, done: int, of: int) -> None: ...


def defects(options: dict[str, Any]) -> list[str]:
    """The references that fail."""
    sandbox = cast(SandboxConfig, SANDBOXES.validate({"kind": "auto"}))
    return [str(each) for each in check_references(config(**options), sandbox, workers=2, view=Silent())[0]]


def is_identifier(name: str) -> bool:
    """Whether a name is no word of prose."""
    return bool(re.search(r"[_\d]|(?<=.)[A-Z]", name))


def check_names(originals: Dataset, twins: Dataset) -> None:
    """No old entry point is left in a twin as a name, and no identifier anywhere."""
    assert twins.name == f"{originals.name}_renamed" and twins.content_hash != originals.content_hash
    for task, twin in zip(originals.tasks, twins.tasks, strict=True):
        old, new = task.target.entry_point, twin.target.entry_point
        assert task.task_id == twin.task_id and old != new and twin.reference is not None
        assert re.findall(r"\w+", twin.target.signature)[:2] == ["def", new]
        assert old not in re.findall(r"\w+", twin.target.signature)
        assert new in re.findall(r"\w+", twin.prompt)
        left = re.findall(rf"(?<!\w){re.escape(old)}(?!\w)(\()?", twin.prompt)
        assert not left if is_identifier(old) else "(" not in left, f"{task.task_id}: {twin.prompt}"
        assert isinstance(twin.suite, Calls) and isinstance(task.suite, Calls)
        assert (twin.suite.entry_point, twin.suite.reference) == (new, twin.reference)
        assert twin.suite.inputs == task.suite.inputs


def test_a_twin_of_the_starter_has_other_names_and_examples() -> None:
    originals, twins, others = load(config()), load(config(twin="renamed")), load(config(twin="renamed", twin_seed=1))
    check_names(originals, twins)
    check_names(originals, others)
    assert load(config(twin="renamed")) == twins, "the same seed gives the same twin"
    assert len({each.content_hash for each in (originals, twins, others)}) == 3
    same = [a.task_id for a, b in zip(twins.tasks, others.tasks, strict=True) if a.prompt == b.prompt]
    assert len(same) < 3, "the seed decides the names"
    for original, twin in zip(originals.tasks, twins.tasks, strict=True):
        before, after = (ast.parse(each.reference or "") for each in (original, twin))
        assert [type(node) for node in ast.walk(before)] == [type(node) for node in ast.walk(after)]


def test_ids_of_today_are_without_the_new_options() -> None:
    assert config().identity() == {"kind": "starter"}
    assert config(twin="renamed").identity() == {"kind": "starter", "twin": "renamed"}


def test_most_examples_of_the_starter_are_others() -> None:
    pairs = zip(load(config()).tasks, load(config(twin="renamed")).tasks, strict=True)
    shown = [[re.findall(r">>> \w+(\(.*)", each.prompt) for each in pair] for pair in pairs]
    kept = sum(call in before for before, after in shown for call in after)
    assert all(len(before) == len(after) for before, after in shown)
    assert 0 < kept < 0.4 * sum(len(after) for _, after in shown)


@pytest.mark.long
def test_references_pass_on_the_twins_of_the_starter() -> None:
    for seed in (0, 5):
        assert defects({"twin": "renamed", "twin_seed": seed}) == []


@pytest.mark.data
@pytest.mark.long
@pytest.mark.skipif(not DATA.exists(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
@pytest.mark.parametrize("options", [HUMANEVAL, MBPP], ids=["humaneval", "mbpp"])
def test_references_pass_on_the_twins_of_published_tasks(options: dict[str, Any]) -> None:
    twin = {**options, "twin": "renamed", "twin_seed": 2}
    originals, twins = load(config(**options)), load(config(**twin))
    check_names(originals, twins)
    words = [a for a, b in zip(originals.tasks, twins.tasks, strict=True) if a.target.entry_point in b.prompt.split()]
    assert len(words) < 0.1 * len(twins.tasks), "names that are plain English stay where they are prose"
    assert defects(twin) == []


ROW = {
    "task_id": "t/1",
    "prompt": 'def join_up(parts, sep):\n    """Join `parts` by sep; sep is a text.\n\n    >>> join_up([1], "-")\n'
    "    '1'\n    join_up([1, 2], '+') == '1+2'\n    \"\"\"\n",
    "entry_point": "join_up",
    "canonical_solution": "    return sep.join(map(str, parts))\n",
    "base_input": [[[1], "-"], [[1, 2], "+"], [[3, 4], "*"], [[7], "/"], [[], "%"]],
}
TESTED = {
    "task_id": "t/2",
    "prompt": "Write add_up(first, other=0), which adds other to first.",
    "entry_point": "add_up",
    "canonical_solution": "def add_up(first, other=0):\n    return first + other\n",
    "tests": ["assert add_up(1, other=2) == 3", "from functools import partial\nassert partial(add_up, 1)(2) == 3"],
    "requirements": [{"type": "t", "text": "Let add_up(first, other) take texts.", "tests": ["assert add_up('a', 'b') == 'ab'"]}],
}  # fmt: skip


def test_prose_code_and_examples_of_one_task(tmp_path: Path) -> None:
    (task,) = load(config(**some(tmp_path / "own.jsonl", ROW), twin="renamed", twin_seed=4)).tasks
    name, (parts, sep) = task.target.entry_point, re.findall(r"\w+", task.target.signature)[2:]
    assert {"join_up", "parts", "sep"}.isdisjoint(re.findall(r"\w+", task.prompt + (task.reference or "")))
    assert f"Join `{parts}` by {sep}; {sep} is a text." in task.prompt
    assert task.reference is not None and f"return {sep}.join(map(str, {parts}))" in task.reference
    examples = dict(re.findall(rf"{name}\((.*)\)\s*(?:==)?\s*('.*')", task.prompt))
    assert len(examples) == 2 and {"[1], '-'", "[1, 2], '+'", '[1], "-"'}.isdisjoint(examples), task.prompt
    for arguments, result in examples.items():
        values, by = ast.literal_eval(f"({arguments})")
        assert ast.literal_eval(result) == by.join(map(str, values))


def test_assertions_and_requirements_are_renamed_too(tmp_path: Path) -> None:
    options = {**some(tmp_path / "own.jsonl", TESTED), "twin": "renamed"}
    (task,) = load(config(**options)).tasks
    (requirement,) = task.requirements
    assert isinstance(task.suite, Assertions) and isinstance(requirement.suite, Assertions)
    texts = [task.prompt, requirement.text, *task.suite.snippets, *requirement.suite.snippets]
    assert all(task.target.entry_point in text and "add_up" not in text for text in texts)
    (keyword,) = re.findall(r"\(1, (\w+)=2\)", task.suite.snippets[0])
    assert f"{keyword}=0" in task.target.signature
    assert task.suite.reference == requirement.suite.reference == task.reference


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**ROW, "language": "javascript", "signature": "function join_up(parts, sep)"}, "javascript"),
        ({"task_id": "t", "prompt": "Write anything.", "language": "python"}, "no reference"),
        ({**ROW, "canonical_solution": "    join_up = 1\n    return eval('sep')\n"}, ""),
    ],
)
def test_a_task_of_another_kind_is_refused_in_words(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    options = {**some(tmp_path / "own.jsonl", row), "twin": "renamed"}
    if not told:  # the parameters keep their names, which the program reads from a text
        (task,) = load(config(**options)).tasks
        assert "(parts, sep)" in task.target.signature and "join_up" not in task.target.signature
        return
    with pytest.raises(UserError, match=told) as refused:
        load(config(**options))
    assert "dataset.exclude" in refused.value.remedy


def test_the_contract_is_of_the_twin(tmp_path: Path) -> None:
    row = {
        "task_id": "own/1", "prompt": "def halve(number):\n    \"\"\"Half of it.\"\"\"\n", "entry_point": "halve",
        "canonical_solution": "    return number / 2\n", "base_input": [[2]],
        "contract": "\n    assert number > 0, 'invalid' # $_CONTRACT_$\n",
    }  # fmt: skip
    (task,) = load(config(**some(tmp_path / "own.jsonl", row), twin="renamed")).tasks
    assert task.contract is not None and "halve" not in task.contract and "number" not in task.contract
    names: dict[str, Any] = {}
    exec(task.contract, names)
    names[task.target.entry_point](1)
    with pytest.raises(AssertionError, match="invalid"):
        names[task.target.entry_point](-1)


def test_options_of_another_twin_are_left_aside_so_that_a_sweep_over_twins_may_give_them() -> None:
    for twin in ({}, {"twin": "reworded"}):
        assert config(**twin, twin_seed=1, rewordings="file").identity() == config(**twin).identity()
    assert load(config(twin_seed=1, rewordings="absent")) == load(config())
    assert config(twin="renamed", twin_seed=1, rewordings="file").identity()["twin_seed"] == 1


def reworded(path: Path, **prompts: str) -> Dataset:
    rows = [{"task_id": f"starter/{name}", "prompt": prompt, "more": 1} for name, prompt in prompts.items()]
    some(path, *rows)
    return load(config(twin="reworded", rewordings=str(path), tasks=["starter/mask_middle"]))


def test_rewordings_replace_prompts_and_nothing_else(tmp_path: Path) -> None:
    task = next(each for each in load(config()).tasks if each.task_id == "starter/mask_middle")
    new = f'{task.target.signature}\n    """Show the ends of a word alone."""\n'
    found = reworded(tmp_path / "words.jsonl", mask_middle=new)
    twin = next(each for each in found.tasks if each.task_id == task.task_id)
    assert found.name == "starter_reworded" and twin.prompt == new
    assert (twin.reference, twin.suite, twin.target) == (task.reference, task.suite, task.target)
    other = reworded(tmp_path / "words.jsonl", mask_middle=new + "    # more\n")
    assert other.content_hash != found.content_hash


@pytest.mark.parametrize(
    ("prompts", "told"),
    [
        (
            {"wrap_words": "def wrap_words(text: str, width: int) -> list[str]:\n    pass\n"},
            "1 chosen task: starter/mask",
        ),
        ({"mask_middle": "Hide the middle of a word."}, "does not name mask_middle"),
        ({"mask_middle": "def mask_middle(word):\n    pass\n"}, "with the head 'def mask_middle"),
        ({"mask_middle": ""}, "prompt"),
    ],
)
def test_rewordings_that_cannot_be_used(tmp_path: Path, prompts: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        reworded(tmp_path / "words.jsonl", **prompts)
    assert refused.value.remedy
    with pytest.raises(UserError, match=r"needs dataset\.rewordings"):
        load(config(twin="reworded"))


@pytest.mark.parametrize(
    ("text", "name", "is_function", "expected"),
    [
        ("the list numbers of numbers", "numbers", False, "the list numbers of numbers"),
        ("`numbers` and 'numbers' and numbers[0] <= 2", "numbers", False, "`NEW` and 'NEW' and NEW[0] <= 2"),
        ("an integer n, the n-th, f('n n')", "n", False, "an integer NEW, the n-th, f('n n')"),
        ("two integers a and b, a number", "a", False, "two integers NEW and b, a number"),
        ("sort arr; my_list.arr", "arr", False, "sort NEW; my_list.arr"),
        ("find the median; median(x); a function median that", "median", True,
         "find the median; NEW(x); a function NEW that"),
        ("count_up counts; recount_up", "count_up", True, "NEW counts; recount_up"),
    ],
)  # fmt: skip
def test_mentions_in_prose(text: str, name: str, is_function: bool, expected: str) -> None:
    assert with_name(text, name, "NEW", is_function=is_function) == expected


@pytest.mark.parametrize(
    ("text", "results"),
    [
        (">>> f(1)\n2\n", [2]),
        ("f(1) == 2\nf(2) ➞ [3]\nf(3) => 'x'.\nf(4) should return (1, 2)\nassert f(5)==6", [2, [3], "x", (1, 2), 6]),
        ("f(1) == 2 + 1 = 3", []),
        ("f(1) == 2 because 1 + 1 is 2", []),
        ("f(0) == 1\nf(n) == f(n - 1)\n>>> f(7)\n8", [8]),
        ("g.f(1) == 2; f(x) == 3; f(1, y=2) == 3", []),
        ('f(")") == ")"', [")"]),
    ],
)
def test_examples_that_are_read(text: str, results: list[Any]) -> None:
    assert [each.result for each in find(text, slice(0, len(text)), "f")] == results


def test_a_new_example_shows_the_same_result_or_one_that_is_not_shown() -> None:
    """Tested by the reference's own results: a shown False stays False, and a wrong example stays."""
    calls = Calls("f", "def f(x):\n    return x > 1 if x < 9 else x\n", ((1,), (0,), (10,), (-3,), (11,)), name="t")
    text = "f(0) == False\nf(2) == True\nf(10) == 10\nf(1) == True\n"
    plan = Plan.of(find(text, slice(0, len(text)), "f"), calls, generator(0, "t", "p"))
    (results,) = results_of([plan])
    places = {place.start: new for place, new in plan.texts(results)}
    new = [places.get(each.call.start) for each in plan.examples]
    assert new == ["-3", None, "11", None], "for False, True without a further input, a number, and a wrong result"
    assert plan.texts(None) == [], "the reference refuses a shown call"
