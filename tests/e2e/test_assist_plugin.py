"""A second protocol with a role and commands in a repository: one file, found by entry point, no line elsewhere."""

import json
from pathlib import Path

import pytest

from codechat.testing import Call, OpenAIServer, Result
from support.plugins import codechat, install

pytestmark = pytest.mark.long


def speak(call: Call) -> Result:
    """The model looks around and then into a file; the guide wants to see a function."""
    if call.body["model"] == "walker":
        return ["ls till", "cat till/receipt.py"][sum(message["role"] == "assistant" for message in call.messages)]
    return f"REASON: read\nVERDICT: {'FOUND' if 'def total' in call.messages[0]['content'] else 'MISSED'}"


def test_an_agentic_protocol_in_one_file(tmp_path: Path) -> None:
    install(tmp_path, "errand", ("protocol",))
    with OpenAIServer(speak, models=["walker", "guide"]) as server:
        words = ["protocol=errand", "dataset=assist_starter", "dataset.tasks=['starter/till#1']", "model=openai"]
        for place, name in (("model", "walker"), ("protocol.roles.guide", "guide")):
            words += [f"{place}.base_url={server.base_url}", f"{place}.name={name}", f"{place}.api_key_env=null"]
        status, output = codechat(tmp_path, *words, "tracking=none", "runs_dir=runs")
    assert status == 0, output
    (cell,) = (tmp_path / "runs").iterdir()
    session = json.loads((cell / "sessions.jsonl").read_text())
    assert [(turn["status"], turn["found"]) for turn in session["turns"]] == [(0, False), (0, True)]
    assert "receipt.py" in session["turns"][0]["printed"] and "def total" in session["turns"][1]["printed"]
    assert [turn["outcome"] for turn in session["turns"]] == [None, None]
    assert [call["role"] for call in session["turns"][1]["calls"]] == ["model", "guide"]
    metrics = json.loads((cell / "metrics.json").read_text())
    assert metrics["found"] == 1.0 and set(metrics["tokens"]) == {"model", "judge", "guide"}
    status, output = codechat(tmp_path, "report", "runs=runs", "out=report")
    assert status == 0, output
    assert "what a model finds by commands" in (tmp_path / "report" / "index.html").read_text()
