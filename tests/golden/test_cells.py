"""Cells as they were before the core was opened: records, metrics and ids stay, but for fields that end in `_s`.

`cells/records/` was written by that version. Rules and baselines have a version in the ids of the cells that use them;
where that was raised since, the id is compared under version 1, and what the baselines write has its own tests.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from codechat.testing.openai_server import Call, OpenAIServer, Result, fading_solver, overflow

from codechat.datasets import DATASETS

HERE = Path(__file__).parent / "cells"
CELLS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "cells.yaml").read_text())
REPLIES: dict[str, list[str]] = yaml.safe_load((HERE / "replies.yaml").read_text())


def tasks() -> list[Any]:
    starter = DATASETS.build(DATASETS.validate({"kind": "starter"}))
    own = DATASETS.build(DATASETS.validate({"kind": "jsonl", "path": str(HERE / "tasks.jsonl")}))
    return [*starter.tasks, *own.tasks]


def behaviour() -> Any:
    """Code that breaks now and then, judges of every kind of answer, and a model whose context is short."""
    fading = fading_solver(tasks())

    def answer(call: Call) -> Result:
        first = call.messages[0]["content"]
        luck = int(hashlib.sha256(first.encode()).hexdigest(), 16) % 10
        for words, yes, no in (
            ("VERDICT: NOT_APPLICABLE", "APPLICABLE", "NOT_APPLICABLE"),
            ("VERDICT: ADHERED", "ADHERED", "VIOLATED"),
        ):
            if words in first:
                if luck == 0 or (luck == 1 and len(call.messages) == 1):
                    return "I cannot say."
                return f"Looked at.\nREASON: luck {luck}.\nVERDICT: {yes if luck > 4 else no}"
        if str(call.body["model"]).startswith("short") and len(call.messages) > 7:
            return overflow()
        return fading(call)  # type: ignore[return-value]

    return answer


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(behaviour()) as running:
        yield running


def words_of(name: str, url: str) -> list[str]:
    """The command line of a cell."""
    replies = {f"${{{key}}}": json.dumps(value).replace("\\n", "\n") for key, value in REPLIES.items()}
    found = []
    for word in CELLS[name]["set"]:
        for place, text in {**replies, "SERVER": url, "HERE": str(HERE)}.items():
            word = word.replace(place, text)
        found.append(word)
    return [*found, "tracking=none", "hardware.workers=1"]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not key.endswith("_s")}
    return [without_times(each) for each in value] if isinstance(value, list) else value
