"""docs/instructions.md says what the code does: its tables are those of the code, and its examples are understood."""

import re
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.studies.refine.instructions.pool import PoolConfig, load
from codechat.studies.refine.patterns import patterns
from codechat.studies.refine.patterns.rules import KEYS
from support.docs_tables import pattern_rows, verb_rows

PAGE = (Path(__file__).parents[5] / "docs" / "instructions.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("rows", [pattern_rows, verb_rows])
def test_the_tables_are_those_of_the_code(rows: object) -> None:
    assert callable(rows)
    written = PAGE.splitlines()
    expected = list(rows())
    start = written.index(expected[0])
    end = next(number for number in range(start, len(written)) if not written[number].startswith("|"))
    assert written[start:end] == expected


def test_every_key_and_every_pattern_has_a_row() -> None:
    first = set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE))
    assert first >= set(KEYS), "a key of a rule"
    assert first >= set(PoolConfig(columns={}).columns) | {
        "id",
        "text",
        "scope",
        "change",
        "rule",
        "rejected",
        "accepted",
    }
    assert len(patterns()) > 100 and first >= patterns().keys()


@pytest.mark.parametrize("language", ["csv", "yaml"])
def test_its_pools_are_understood(tmp_path: Path, language: str) -> None:
    (text,) = [body for tag, body in BLOCK.findall(PAGE) if tag == language]
    path = tmp_path / f"pool.{language}"
    path.write_text(text, encoding="utf-8")
    pool = load(PoolConfig(path=str(path)))
    assert len(pool.instructions) == len([each for each in pool.instructions if each.rule]) + (language == "csv")
    assert len(pool.instructions) == 4 and not pool.rejected
    assert not pool.warnings


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (pool,) = [body for tag, body in BLOCK.findall(PAGE) if tag == "csv"]
    Path("pool.csv").write_text(pool)
    Path("my.md").write_text("Mine:\n{{prompt}}\n")
    lines = [line for tag, body in BLOCK.findall(PAGE) if tag == "console" for line in body.splitlines()]
    for line in lines:
        assert main([word.strip("'") for word in re.findall(r"'[^']*'|\S+", line)][1:]) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "Solve this, please: {{prompt}}" in printed and "Mine:" in printed
    assert "rules: 3;" in printed and "LLM: 1)" in printed
    assert len(lines) == 3
