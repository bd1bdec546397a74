"""Stepwise sessions over a repository's function: made up here, since published repositories are not at hand."""

import json
import re
import sys
from pathlib import Path

import pytest

import codechat
from codechat.cli.app import main
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from support.repositories import FILES, PROJECT, TOTAL, write_lines, write_shop

pytestmark = pytest.mark.long


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return ["protocol=stepwise", *write_shop(tmp_path), "tracking=none"]


def run(words: list[str], *more: str) -> Outcome:
    return run_composed(compose([*words, "hardware.workers=1", *more]))


def test_references_pass_and_the_repository_stays_as_it_was(words: list[str]) -> None:
    found = run(words, "model=reference").metrics
    assert found is not None and found["acc"] == [1.0, 1.0, 1.0]
    assert found["decided"] == {"outside": 0, "inside": 3}
    root = Path("repos", PROJECT)
    assert {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")} == FILES


def test_the_reference_before_fails_the_turns_whose_tests_tell_the_step(words: list[str]) -> None:
    found = run(words, "model=previous").metrics
    assert found is not None and found["acc"] == [1.0, 0.0, 0.0]


def test_verify_checks_every_turn(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    turns = [dict(turn) for turn in TOTAL["turn_datas"]]
    turns[1]["test"] = "import unittest\n@unittest.skip('later')\ndef test_it(self):\n    pass"
    turns[2]["test"] = "def test_it(self):\n    self.assertEqual(1, 2)"
    write_lines(Path("tasks.jsonl"), {**TOTAL, "turn_datas": turns})
    assert main(["verify", *words[1:-1]]) == 0, "published data keeps its defects"
    shown = capsys.readouterr().out
    assert "turn 1" not in shown
    assert re.search("turn 2: its reference fails .*status 1", shown), "a skipped test is no pass"
    assert re.search("turn 3: its reference fails .*status 1", shown)


def test_another_state_of_the_repository_is_told_before_any_call(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("repos", PROJECT, "shop/basket.py")
    file.write_text("\n" + file.read_text())
    assert main([*words, "model=reference"]) == 2
    assert re.search("basket.py .*function total .*22 to 24", capsys.readouterr().err)
    assert not Path("runs").exists()


def test_another_content_of_the_repository_is_another_cell(words: list[str]) -> None:
    first = run(words, "model=reference")
    Path("repos", PROJECT, "notes.txt").write_text("x")
    for cached in (
        "codechat.sandbox.suites.repository.read_contents",
        "codechat.sandbox.suites.repository._pack",
    ):
        module, _, name = cached.rpartition(".")
        getattr(sys.modules[module], name).cache_clear()
    assert run(words, "model=reference").cell.id != first.cell.id


@pytest.mark.skipif("site-packages" in str(codechat.__file__), reason="needs codechat installed from its folder")
def test_an_environment_of_ones_own(words: list[str]) -> None:
    found = run(words, "model=reference", f"dataset.environments={{shop: {sys.executable}}}").metrics
    assert found is not None and found["acc"] == [1.0, 1.0, 1.0]


ABOVE = "The code above the function in its file:\n\n```python\n{}\n```\n\n"


@pytest.mark.parametrize("prompting", ["full_history", "code_edit", "cumulative"])
@pytest.mark.parametrize("shown", ["first", "every", None])
def test_the_code_above_stands_before_the_first_task_or_every_one(
    words: list[str], prompting: str, shown: str | None
) -> None:
    chosen = [] if shown is None else [f"protocol.local_context={shown}"]
    cell = run(words, "model=reference", f"protocol.prompting={prompting}", *chosen)
    sessions = [json.loads(line) for line in (cell.folder / "sessions.jsonl").read_text().splitlines()]
    requests = [turn["request"] for turn in sessions[0]["turns"]]
    code = FILES["shop/basket.py"].partition("    @loud")[0].rstrip()
    above = ABOVE.format(code)
    assert (
        requests[0][-1]["content"] == above + "programming problem:\nWrite total(self, rate), the sum times the rate."
    )
    for request in requests[1:]:
        assert request[-1]["content"].startswith(above) == (shown != "first")
        assert all("The code above" not in message["content"] for message in request[:-1])
