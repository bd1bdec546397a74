"""Extraction on completions that real models gave: nearly all give a program; those that do not name another function."""

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract
from codechat.sandbox.languages.python.extraction import missing_names

DATA = os.environ.get("CODECHAT_TEST_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA is not set")


def rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def dialogue_replies() -> Iterator[tuple[str, str]]:
    """Reply and entry point of every published CodeIF-Bench completion (function level)."""
    tasks = {row["task_id"]: row for row in rows(Path(DATA or "") / "codeif_l1_tasks_v0_93b17ef.jsonl.gz")}
    for path in sorted(Path(DATA or "").glob("codeif_l1_*_round_*.gz")) + sorted(
        Path(DATA or "").glob("codeif_l1_base_*.gz")
    ):
        for row in rows(path):
            yield row["completion_raw"], called(tasks[row["task_id"]])


def called(task: dict[str, Any]) -> str:
    names = re.findall(r"(?m)^def (\w+)", task["code"])
    return next(name for name in reversed(names) if any(re.search(rf"\b{name}\(", test) for test in task["test"]))


def sample_replies() -> Iterator[tuple[str, str]]:
    """Raw completion, or else solution, and entry point of every published HumanEval+ and MBPP+ sample."""
    folder = Path(DATA or "")
    tasks = rows(folder / "HumanEvalPlus.jsonl.gz") + rows(folder / "MbppPlus.jsonl.gz")
    entry_points = {row["task_id"]: row["entry_point"] for row in tasks}
    for path in sorted(folder.glob("*_samples_*.jsonl")):
        for row in rows(path):
            yield row.get("completion_raw") or row["solution"], entry_points[row["task_id"]]


def test_dialogues() -> None:
    found = [extract(reply, Target(entry_point=entry_point)) for reply, entry_point in dialogue_replies()]
    assert len(found) == 3732
    assert sum(item.problem is None for item in found) >= 3630
    assert sum(item.problem == "syntax_error" for item in found) <= 6


@pytest.mark.long
def test_one_fence_gives_its_content_and_a_program_that_lacks_nothing() -> None:
    """Where a reply has one fence, the code is what is in it; and no name is lost with the test code."""
    compared = 0
    for reply, entry_point in dialogue_replies():
        found = extract(reply, Target(entry_point=entry_point))
        if found.code is None or found.program is None:
            continue
        assert missing_names(found.program) <= missing_names(found.code)
        match = re.search(r"(?ms)^```python\n(.*?)^```$", reply) if reply.count("```") == 2 else None
        if match:
            compared += 1
            assert found.code == match[1].strip("\n").rstrip()
    assert compared > 2000


@pytest.mark.long
def test_the_same_code_is_found_without_an_entry_point() -> None:
    """But for replies that give an alternative under another name, at the end."""
    pairs = [(reply, extract(reply, Target(entry_point=name))) for reply, name in dialogue_replies()]
    named = [(reply, found) for reply, found in pairs if found.problem is None]
    assert sum(extract(reply, Target()).code != found.code for reply, found in named) <= 20


def test_samples() -> None:
    problems = [
        (entry_point, extract(reply, Target(entry_point=entry_point)).problem)
        for reply, entry_point in sample_replies()
    ]
    assert len(problems) == 1412
    assert sum(problem is None for _, problem in problems) >= 1405
    assert not any(problem == "syntax_error" for _, problem in problems)
