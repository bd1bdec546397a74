"""Tasks that no program can pass: what the syntax of a language rules out, and witnesses that are no programs."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat import compose, run
from codechat.cli.app import main
from codechat.sandbox.languages import parses
from codechat.studies.multicodeif.constraints import Constraint
from codechat.studies.multicodeif.construct.sources import read_pools
from codechat.studies.multicodeif.dataset import read_part
from codechat.testing import OpenAIServer
from support.construction import ROLES, Agents, attempts, ends, fenced, read, snippet, words_of, write
from support.mistakes import mistake

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "multicodeif_tasks.jsonl.gz"
RULED_OUT = [
    ("naming", "typescript;class:PascalCase,variable:kebab-case"),
    ("naming", "go;function:kebab-case"),
    ("naming", "haskell;function:PascalCase"),
    ("naming", "haskell;class:camelCase"),
    ("naming", "zig;function:kebab-case"),
    ("brace", "python;K&R"),
    ("brace", "haskell;1TBS"),
    ("brace", "go;Allman"),
    ("data_structure_type", "java;array list"),
    ("data_structure_size", "rust;linked list;5"),
    ("data_structure_operation", "cpp;vector;['push_back', 'error handling']"),
]
PASSED = [
    ("naming", "kotlin;class:kebab-case,function:kebab-case", "class `a-b` {\n    fun `c-d`() {\n    }\n}\n"),
    ("naming", "haskell;class:PascalCase,function:camelCase", "data Tree = Leaf\n\ncountAll :: Int -> Int\ncountAll n = n + 1\n"),
    ("naming", "zig;function:snake_case", "fn count_all() i32 {\n    return 1;\n}\n"),
    ("brace", "go;K&R", "package main\n\nfunc main() {\n\tprintln(1)\n}\n"),
    ("brace", "c;Allman", "int main(void)\n{\n    return 0;\n}\n"),
    ("data_structure_operation", "go;map;['insert']", "package main\n\nfunc main() {\n\tm := map[string]int{}\n\tm[\"a\"] = 1\n}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer"), RULED_OUT)
def test_what_the_syntax_rules_out_is_known_and_no_program_keeps_it(name: str, answer: str) -> None:
    constraint = Constraint.of(name, answer)
    assert constraint.impossible
    for code in attempts(constraint):
        assert not (constraint.check(code).met and parses(constraint.answer.language, code)), code


@pytest.mark.parametrize(("name", "answer", "code"), PASSED)
def test_what_a_program_keeps_is_not_ruled_out(name: str, answer: str, code: str) -> None:
    constraint = Constraint.of(name, answer)
    assert parses(constraint.answer.language, code) and constraint.check(code).met and not constraint.impossible


def test_a_pool_with_a_value_that_no_program_keeps_is_refused(tmp_path: Path) -> None:
    pool = read_pools()["naming"].model_dump() | {"values": [{"values": ["function:kebab-case"]}]}
    (tmp_path / "naming.yaml").write_text(yaml.safe_dump(pool | {"languages": ["kotlin"]}))
    assert read_pools(str(tmp_path))["naming"].languages == ["kotlin"]
    (tmp_path / "naming.yaml").write_text(yaml.safe_dump(pool | {"languages": ["kotlin", "rust"]}))
    with mistake("function:kebab-case in rust", "naming.yaml"):
        read_pools(str(tmp_path))


class Careless(Agents):
    """A solver whose programs are torn, or whose programs without the constraint are."""

    def solve(self, parts: Mapping[str, str]) -> str:
        defect = self.defect(parts["task"])
        if defect == "other torn" and "constraint" in parts:
            return fenced("def count-words(text):\n    return len(text)\n")
        good = super().solve(parts)
        return good.replace("\n```\n", "\ndef count-words(text):\n    return 1\n```\n") if defect == "torn" else good


def test_a_witness_and_a_refused_program_must_be_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "seeds.jsonl", [snippet(number) for number in range(3)])
    words = ("types=[library]", "number=3", "levels=1", "skip=[concepts]", "rounds=1", "tries=2", "out=out")
    with OpenAIServer(Careless({0: "torn", 1: "other torn"}), models=ROLES) as server:
        assert main(words_of(server.base_url, *words)) == 0
    assert [row["task_id"] for row in read(tmp_path / "out" / "items.jsonl")] == ["library/2"]
    assert ends(tmp_path / "out") == {
        "library/0": ("witness", "not passable"), "library/1": ("witness", "accepts everything")
    }  # fmt: skip
    assert all("grammar" in row["detail"] for row in read(tmp_path / "out" / "dropped.jsonl"))


def checked(path: Path, out: Path) -> dict[str, tuple[str, str]]:
    assert main(["construct", "recipe=constraints", f"check={path}", f"out={out}", "tracking=none"]) == 0
    return ends(out)


def row(name: str, answer: str, **more: Any) -> dict[str, Any]:
    return {
        "task_id": name, "level": "single", "category": "coding_style", "constraint_type": "naming",
        "language": answer.partition(";")[0], "answer": answer, "prompt": "Write it.", **more,
    }  # fmt: skip


def test_finished_tasks_are_checked_without_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dropped ones are a list that a dataset leaves out; another file is another construction."""
    rows = [
        row("a", "typescript;function:kebab-case"),
        row("b", "typescript;function:camelCase", witness="function a() {\n}\n"),
    ]
    tasks = write(tmp_path / "tasks.jsonl", rows)
    assert checked(tasks, tmp_path / "out") == {"a": ("check", "not passable")}
    data = ["dataset=multicodeif", f"dataset.path={tasks}", f"dataset.exclude={tmp_path / 'out' / 'dropped.jsonl'}"]
    monkeypatch.chdir(tmp_path)
    outcome = run(compose(["model=echo", *data, "protocol=repair", "judge=rules", "tracking=none"]))
    assert outcome.metrics is not None and outcome.metrics["sessions"] == 1
    write(tasks, rows[1:])
    assert main(["construct", "recipe=constraints", f"check={tasks}", f"out={tmp_path / 'out'}", "tracking=none"]) == 2


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset")
def test_of_the_published_tasks_thirteen_with_hyphens_and_nineteen_others_cannot_be_passed(tmp_path: Path) -> None:
    """Of 16 with hyphens, Kotlin's three can be passed: names in backticks. No program keeps what is ruled out."""
    found = checked(PUBLISHED, tmp_path / "out")
    single = {task.task_id: task.levels[0].constraints[0] for task in read_part(PUBLISHED, "single").tasks}
    hyphens = {name for name, each in single.items() if each.type == "naming" and "kebab" in each.answer.raw}
    assert len(hyphens) == 16 and len(hyphens & {*found}) == 13
    assert {single[name].answer.language for name in hyphens - {*found}} == {"kotlin"}
    assert sum(single[name].type == "brace" for name in {*found} & {*single}) == 9
    assert {name for name in found if name.count("/") == 1 and name.startswith("chain/")} == {
        "chain/58", "chain/98", "chain/110", "chain/139"
    }  # fmt: skip
    assert len(found) == 32
    for name in {*found} & {*single}:
        kept = [code for code in attempts(single[name]) if single[name].check(code).met]
        assert not any(parses(single[name].answer.language, code) for code in kept), name
    assert json.loads((tmp_path / "out" / "yield.json").read_text())["seeds"] == 2351
