"""A user's own tasks with constraints."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import MAX_LINES, UserError
from codechat.cli.app import main
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset
from codechat.run.cell import fitting
from codechat.run.settings.compose import compose
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.multicodeif.rows import ConstrainedTask

NAMING = {"type": "naming", "answer": "rust;function:snake_case"}
WORDS = {"type": "requirement", "answer": "Read the file line by line"}
ROW: dict[str, Any] = {"task_id": "own/1", "prompt": "Sum the lines of a file.", "constraints": [NAMING, WORDS]}


def load(folder: Path, *rows: dict[str, Any]) -> Dataset:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DATASETS.build(DATASETS.validate({"kind": "jsonl", "path": str(path)}))


def test_several_constraints_and_a_judged_one_in_words_of_ones_own(tmp_path: Path) -> None:
    (task,) = load(tmp_path, {**ROW, "canonical_solution": "fn sum() {}"}).tasks
    assert isinstance(task, ConstrainedTask)
    assert (task.target.language, task.level, task.reference) == ("rust", "single", "fn sum() {}")
    (level,) = task.levels
    assert (level.name, level.prompt) == ("single", "Sum the lines of a file.")
    assert [each.type for each in level.constraints] == ["naming", "requirement"]
    assert level.constraints[1].words == "Read the file line by line."
    assert level.constraints[1].check("fn sum() {}").met is None


@pytest.mark.parametrize(
    ("fields", "language"),
    [
        ({"language": "RS"}, "rust"),
        ({"constraints": [WORDS]}, ""),
        ({"constraints": [WORDS], "language": "c++"}, "cpp"),
        ({"constraints": [{"type": "language_type", "answer": "Go"}]}, "go"),
    ],
)
def test_the_language_is_given_or_that_of_the_constraints(
    tmp_path: Path, fields: dict[str, Any], language: str
) -> None:
    assert load(tmp_path, {**ROW, **fields}).tasks[0].target.language == language


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"constraints": [{"type": "namings", "answer": "x"}]},
            "own/1: .*'namings'",
        ),
        (
            {"constraints": [{"type": "naming", "answer": "rust"}]},
            "own/1: .*naming: .*'rust'",
        ),
        (
            {"constraints": [{"type": "language_version", "answer": "go;1.22"}]},
            "own/1: .*language_version: .*'go'",
        ),
        ({"constraints": [{"type": "language_type", "answer": "klingon"}]}, "own/1.*'klingon'"),
        ({"constraints": [WORDS], "language": "pyhton"}, "own/1: .*'pyhton'"),
        ({"language": "java"}, "own/1: .*java, rust"),
        (
            {"constraints": [{"type": "requirement", "answer": "  "}]},
            "own/1: .*requirement: .*empty",
        ),
        ({"constraints": [{"type": "naming"}]}, r"constraints\.0\.answer: Field required"),
        ({"tests": ["assert True"]}, "leave out tests"),
        ({"entry_point": "f"}, "leave out entry_point"),
        ({"constraint": []}, "'constraint': .*'constraints'"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=rf"mine\.jsonl:2: .*{problem}"):
        load(tmp_path, {**ROW, "task_id": "own/0"}, {**ROW, **fields})


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    broken = [{"type": "naming", "answer": "rust"}, {"type": "brace", "answer": "java;Whitesmiths"}]
    mistakes = [{"constraints": broken}, {"tests": ["assert True"]}, {"prompts": ""}, {"language": "java"}]
    rows = [{**ROW, **fields, "task_id": f"own/{place}"} for place, fields in enumerate([*mistakes, mistakes[1]])]
    with pytest.raises(UserError) as raised:
        load(tmp_path, {**ROW, "task_id": "own/right"}, *rows)
    lines = str(raised.value).splitlines()
    assert len(lines) == MAX_LINES
    assert "mine.jsonl:2: " in lines[0] and "answer 'rust'" in lines[0] and "'Whitesmiths' is none of" in lines[0]
    assert "mine.jsonl:3: " in lines[1] and "(also in line 6)" in lines[1]
    assert "mine.jsonl:4: " in lines[2]
    assert lines[3].startswith("and line 5: ") and "several languages" in lines[3]


def test_what_no_rule_knows_is_told_at_the_start(tmp_path: Path) -> None:
    unread = [{"type": "return_type", "answer": "zig;f;Integer"}]
    tasks = load(tmp_path, ROW, {**ROW, "task_id": "own/2", "constraints": unread}).tasks
    (remark,) = fitting.undecidable(compose(["protocol=repair", "judge=llm"]).config, tasks)
    assert remark.startswith("1 of 2 tasks have ") and "return_type" in remark and "zig" in remark


def test_the_types_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "constraints"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for kind in constraint_types():
        assert f"{kind.name} ({kind.category}) answer {' '.join(kind.form.split())}" in shown
    assert re.search(r"typescript;countWords;Integer [a-z ]+, for c, cpp, csharp, go, java", shown)
    for kind in (each for each in constraint_types() if not each.solved):
        assert all(kind.read(example) for example in kind.examples) and kind.examples, kind.name


def test_other_files_keep_their_hash(tmp_path: Path) -> None:
    plain = {"task_id": "a", "prompt": "Say hello."}
    assert load(tmp_path, plain).content_hash == load(tmp_path, {**plain, "constraints": []}).content_hash
    assert load(tmp_path, ROW).content_hash != load(tmp_path, {**ROW, "constraints": [WORDS]}).content_hash
