"""CodeAssistBench's file on the command line: what is wrong is told at the start, with exit status 2."""

from pathlib import Path

import pytest

from codechat.cli.app import main
from support.cab import NOWHERE, issue, repository, write

pytestmark = pytest.mark.long


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["protocol=static", "model=gpt5", "dataset=cab", *words]) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown and len(shown.splitlines()) <= 5
    return shown


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit = repository(tmp_path / "repos" / "shop", {"README.md": "A shop.\n"})
    good = write(tmp_path / "good.jsonl", issue(commit_id=commit))
    bad = write(tmp_path / "bad.jsonl", issue(), issue(satisfaction_conditions=[]))
    (tmp_path / "torn.jsonl").write_text('{"url": \n')
    (tmp_path / "empty" / "shop").mkdir(parents=True)
    missing = write(tmp_path / "missing.jsonl", issue(commit_id=NOWHERE))
    for words, shown in (
        ((), "dataset.path is required"),
        ((f"dataset.path={bad}",), "bad.jsonl:2: satisfaction_conditions: "),
        ((f"dataset.path={tmp_path}/torn.jsonl",), "torn.jsonl:1: not JSON: "),
        ((f"dataset.path={good}", "dataset.kind=pull"), "no issue of the file is of"),
        ((f"dataset.path={good}", "dataset.kind=cab"), "Input should be 'issue', 'pull' or 'all' (got 'cab')"),
        ((f"dataset.path={good}", "dataset.repository=x"), "did you mean 'repos'"),
        ((f"dataset.path={good}", f"dataset.repos={tmp_path}/empty"), "shop is no clone"),
        ((f"dataset.path={missing}", f"dataset.repos={tmp_path}/repos"), f"shop lacks the commit {NOWHERE}"),
    ):
        assert shown in " ".join(told(capsys, *words).split()), words


def test_a_sweep_over_what_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys of `cab` are known to sweeps: the words fit, so the cells are refused for what they are."""
    path = write(tmp_path / "tasks.jsonl", issue())
    words = ["-m", "protocol=static", "model=gpt5", "dataset=cab", f"dataset.path={path}", "dataset.kind=issue,pull"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "ann/shop#4 has no tests" in told and "no issue of" in told
