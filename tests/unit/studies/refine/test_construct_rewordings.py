"""The recipe `rewordings`: what is dropped, and that its items are statements of a twin."""

import json
import re
from pathlib import Path
from typing import cast

import pytest

from codechat.cli.app import main
from codechat.datasets import DATASETS, DatasetConfig, load
from codechat.testing import Call, OpenAIServer
from support.construction import read, write

QUOTED = re.compile(r"<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)
ROWS = [
    {"task_id": f"mine/{name}", "prompt": f'def {name}(x):\n    """Return x, {name}."""\n', "entry_point": name,
     "canonical_solution": "    return x\n", "base_input": [[1]]}
    for name in ("kept", "changed", "lost", "mended", "silent")
]  # fmt: skip


def answer(call: Call) -> str:
    parts = {name: text for name, _, text in QUOTED.findall(call.messages[0]["content"])}
    if "REWORDING" in parts:
        assert "Return x" in parts["ORIGINAL"]
        verdict = "NO" if "changed" in parts["REWORDING"] else "YES"
        return "I cannot say" if "silent" in parts["REWORDING"] else f"REASON: so it seems\nVERDICT: {verdict}"
    name = parts["STATEMENT"].split("(")[0].removeprefix("def ")
    right = f'```python\ndef {name}(x):\n    """Give back x ({name})."""\n```'
    if name == "lost" or (name == "mended" and len(call.messages) == 1):
        return right.replace("(x):", "(y):")
    return right


def test_what_comes_through_is_a_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tasks.jsonl", ROWS)
    with OpenAIServer(answer, models=["writer", "checker"]) as server:
        words = ["construct", "recipe=rewordings", "seeds=tasks.jsonl", "out=out", "tracking=none"]
        for role in ("writer", "checker"):
            place = f"construct.roles.{role}"
            words += [f"model@{place}=openai", f"{place}.name={role}", f"{place}.base_url={server.base_url}"]
            words += [f"{place}.api_key_env=null"]
        assert main(words) == 0
        asked = [call for call in server.calls if len(call.messages) > 1]
        assert any("must be Python with the head 'def mended(x):'" in call.messages[-1]["content"] for call in asked)
    items, dropped = read(tmp_path / "out" / "items.jsonl"), read(tmp_path / "out" / "dropped.jsonl")
    assert [item["task_id"] for item in items] == ["mine/kept", "mine/mended"]
    assert items[0]["prompt"] == 'def kept(x):\n    """Give back x (kept)."""\n'
    assert items[0]["original"] == ROWS[0]["prompt"]
    reasons = {each["id"]: each["reason"] for each in dropped}
    assert reasons == {"mine/changed": "meaning changed", "mine/lost": "no rewording", "mine/silent": "undecided"}
    counts = json.loads((tmp_path / "out" / "yield.json").read_text())
    assert (counts["seeds"], counts["kept"]) == (5, 2)
    for name in ("card.md", "questions.jsonl"):
        assert (tmp_path / "out" / name).exists()
    options = {"kind": "jsonl", "path": "tasks.jsonl", "twin": "reworded", "rewordings": "out/items.jsonl"}
    chosen = {**options, "tasks": ["mine/kept", "mine/mended"]}
    twins = load(cast(DatasetConfig, DATASETS.validate(chosen))).tasks
    assert [twin.prompt for twin in twins if twin.task_id in chosen["tasks"]] == [item["prompt"] for item in items]
