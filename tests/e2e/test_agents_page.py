"""The page "Evaluate an agent": its own agent runs as it stands there, and what does not start says why."""

import json
import re
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.sandbox.rooms.box import Box
from codechat.testing import OpenAIServer

pytestmark = pytest.mark.skipif(Box.here() is None, reason="needs user namespaces")
PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
CELL = (
    "dataset=starter",
    "dataset.limit=1",
    "agenda.turns=2",
    "judge=rules",
    "tracking=none",
    "model.api_key_env=null",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the page's preset."""
    ((name, text),) = re.findall(r"`(conf/model/\w+\.yaml)`:\n\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_agent_of_the_page_runs_with_its_cells_in_the_working_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "def mask_middle(word: str, keep: int) -> str:\n    return word\n"
    with OpenAIServer(lambda call: f"Done.\n```python\n{code}```") as server:
        words = (f"model.base_url={server.base_url}", "model.version_command=[python3,--version]", "runs_dir=runs")
        assert main(["model=one_request", *CELL, *words]) == 0, capsys.readouterr()
    (cell,) = (folder / "runs").iterdir()
    (line,) = (cell / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    for turn in json.loads(line)["turns"]:
        assert turn["trajectory"]["file"] == code and turn["response"].startswith("Done.")
        assert [(step["kind"], step["status"]) for step in turn["trajectory"]["steps"]] == [("command", 0)]
    (version,) = json.loads((cell / "metrics.json").read_text(encoding="utf-8"))["servers"]["model"]["agent"]
    assert version.startswith("Python 3")


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (["model.command=[absent-agent]"], "there is no program 'absent-agent'", "docs/agents.md"),
        (["model.command=[python3,-X]"], "before it asked its model", "model.command"),
        (["protocol=assist", "dataset=assist_starter"], "protocol=assist has no part for a coding agent", "choose"),
    ],
    ids=["absent", "wrong-flag", "assist"],
)
def test_what_does_not_start_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str, remedy: str
) -> None:
    assert main(["model=one_request", *CELL, "model.base_url=http://127.0.0.1:9/v1", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and remedy in said


def test_an_agent_below_a_folder_that_rooms_have_for_themselves_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder / "bin" / "own-agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("codechat.sandbox.command.EMPTY", (str(folder),))
    assert main(["model=one_request", *CELL, f"model.command=[{program}]"]) == 2
    assert "outside of /tmp" in capsys.readouterr().err
