"""HumanEval-X beside HumanEval+: the same inputs, but for those that a language cannot express or a decision drops."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import validate
from codechat.base.errors import UserError
from codechat.datasets.tasks import Dataset
from codechat.sandbox.suites.calls import Driven
from codechat.studies.refine import dataset_humaneval_x as humaneval_x
from codechat.studies.refine.dataset_humaneval_x import Decided, HumanEvalXConfig, Mended, decisions
from support.mistakes import mistake

PLUS = {
    "task_id": "HumanEval/7",
    "prompt": "def twice(x):\n",
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "base_input": [[0], [1]],
    "plus_input": [[2**40], *([n] for n in range(2, 40)), [2**60]],
}
JAVASCRIPT = {
    "task_id": "JavaScript/7",
    "prompt": "const help = (x) => {\n  return x;\n}\n\n/* twice */\nconst twice = (x) => {\n",
    "canonical_solution": "  return x * 3;\n}\n",
    "test": "",
}
JAVA = {
    "task_id": "Java/7",
    "prompt": "import java.util.*;\n\nclass Solution {\n    public int twice(int x) {\n",
    "canonical_solution": "        return 2 * x;\n    }\n}\n",
}
Decisions = Sequence[Decided | Mended]


def build(folder: Path, language: str, *rows: dict[str, Any], plus: dict[str, Any] = PLUS) -> Dataset:
    (folder / "plus.jsonl").write_text(json.dumps(plus) + "\n")
    (folder / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = {"kind": "humaneval_x", "language": language}
    paths = {"path": str(folder / "x.jsonl"), "plus": str(folder / "plus.jsonl")}
    return humaneval_x.humaneval_x(validate(HumanEvalXConfig, {**values, **paths}, "dataset"))


def suite_of(dataset: Dataset) -> Driven:
    (task,) = dataset.tasks
    assert isinstance(task.suite, Driven)
    return task.suite


@pytest.fixture(autouse=True)
def decided(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Decisions]:
    found: dict[tuple[str, str], Decisions] = {}
    monkeypatch.setattr(humaneval_x, "decisions", lambda: found)
    return found


def test_a_task_has_the_last_head_of_its_prompt_and_both_references(tmp_path: Path) -> None:
    dataset = build(tmp_path, "javascript", JAVASCRIPT)
    (task,) = dataset.tasks
    assert (dataset.name, task.task_id, task.prompt) == ("humaneval_x_javascript", "HumanEval/7", JAVASCRIPT["prompt"])
    assert (task.target.language, task.target.entry_point) == ("javascript", "twice")
    assert task.target.signature == "const twice = (x) =>"
    assert task.reference == JAVASCRIPT["prompt"] + JAVASCRIPT["canonical_solution"]
    assert suite_of(dataset).model is not None and suite_of(dataset).model.entry_point == "twice"


def test_what_a_language_cannot_express_is_left_out_and_listed(tmp_path: Path) -> None:
    javascript, java = build(tmp_path, "javascript", JAVASCRIPT), build(tmp_path, "java", JAVA)
    assert (2**60,) not in suite_of(javascript).inputs and (2**40,) in suite_of(javascript).inputs
    assert not {(2**60,), (2**40,)} & set(suite_of(java).inputs)
    assert suite_of(java).model is not None and suite_of(java).model.inputs == suite_of(java).inputs
    (detail,) = java.details
    assert detail.startswith("HumanEval/7: 40 of 42 inputs, 40 ") and "java" in detail
    assert "1 of 1 task in java" in java.remark and "40 of the 40 inputs" in java.remark
    assert suite_of(java).signature == "public int twice(int x)"


def test_decisions_drop_inputs_keep_own_results_and_mend(
    tmp_path: Path, decided: dict[tuple[str, str], Decisions]
) -> None:
    common = {"language": "javascript", "task": "HumanEval/7", "why": "a test"}
    decided["javascript", "HumanEval/7"] = (
        Decided(**common, decision="drop", inputs=[0], results=("0", "1")),
        Decided(**common, decision="own", inputs=[3], results=("4", "5")),
        Mended(**common, replace=("x * 3", "x * 2")),
    )
    suite = suite_of(build(tmp_path, "javascript", JAVASCRIPT))
    assert suite.base == ((1,),) and suite.inputs[2] == (2,) and suite.own == {2}
    assert suite.reference is not None and suite.reference.endswith("return x * 2;\n}\n")


def test_a_task_of_which_too_little_is_left_is_left_out(
    tmp_path: Path, decided: dict[tuple[str, str], Decisions]
) -> None:
    common = {"language": "java", "task": "HumanEval/7", "why": "a test"}
    decided["java", "HumanEval/7"] = (Decided(**common, decision="drop", inputs=[0, 1, 3], results=("0", "1")),)
    other = {**JAVA, "task_id": "Java/7"}
    with mistake("java"):
        build(tmp_path, "java", other)
    decided["java", "HumanEval/7"] = (Decided(**common, decision="cannot", inputs=[0, 1, 3], results=("0", "1")),)
    (detail,) = build(tmp_path, "java", other).details
    assert detail.startswith("HumanEval/7: 37 of 42 inputs, 37 ") and "java" in detail


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**JAVA}, "task_id 'Java/7' .*JavaScript/NUMBER"),
        ({**JAVASCRIPT, "task_id": "JavaScript/8"}, "HumanEval[+] has no task 8"),
        ({**JAVASCRIPT, "prompt": "function twice(x) {"}, "prompt: .*javascript"),
        ({"task_id": "JavaScript/7"}, "prompt: Field required"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=f"x.jsonl:1: .*{said}"):
        build(tmp_path, "javascript", row)


def test_other_tasks_in_place_of_humaneval_plus_are_told_by_the_option_that_has_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'Mbpp/2'\n.*dataset\.plus=FILE"):
        build(tmp_path, "javascript", JAVASCRIPT, plus=PLUS | {"task_id": "Mbpp/2"})


def test_the_language_that_is_lacking_is_told_with_those_to_choose_from() -> None:
    with mistake("dataset.language=VALUE", "javascript or java"):
        validate(HumanEvalXConfig, {"kind": "humaneval_x", "language": "???", "path": "x"}, "dataset")


def test_the_file_of_decisions_is_whole() -> None:
    known = decisions()
    assert {language for language, _ in known} == {"javascript", "java"}
    for (language, task), ones in known.items():
        places = [place for one in ones if isinstance(one, Decided) for place in one.inputs]
        assert len(places) == len(set(places)), (language, task)
        assert all(one.why and (isinstance(one, Decided) or one.replace[0] != one.replace[1]) for one in ones)


@pytest.mark.long
@pytest.mark.skipif("CODECHAT_TEST_DATA" not in os.environ, reason="CODECHAT_TEST_DATA is unset: no benchmark files")
@pytest.mark.parametrize(("language", "file"), [("javascript", "js"), ("java", "java")])
def test_of_the_published_tasks_nearly_all_are_there(language: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(humaneval_x, "decisions", decisions)
    folder = os.environ["CODECHAT_TEST_DATA"]
    paths = {"path": f"{folder}/humaneval_x_{file}.jsonl.gz", "plus": f"{folder}/HumanEvalPlus.jsonl.gz"}
    dataset = humaneval_x.humaneval_x(
        validate(HumanEvalXConfig, {"kind": "humaneval_x", "language": language, **paths}, "dataset")
    )
    assert len(dataset.tasks) >= 150 and not dataset.departure
    mended = {
        task
        for (spoken, task), ones in decisions().items()
        if spoken == language
        for one in ones
        if isinstance(one, Mended)
    }
    for task in dataset.tasks:
        assert isinstance(task.suite, Driven) and len(task.suite.inputs) >= 5
        assert task.task_id not in mended or task.reference is not None
