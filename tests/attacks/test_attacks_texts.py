"""Hostile texts in one cell, from the reply and the sandbox to the pages and tables: all inert, and none ends the cell."""

import csv
import io
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from attack_texts import ATTACKS

import codechat
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord
from codechat.base.spreadsheet import csv_text, unescape_formula
from codechat.base.texts import problem_of_name, visible, writable
from codechat.cli.app import main
from codechat.report.data import Column, Table
from codechat.report.formats import as_csv, as_latex, as_markdown
from codechat.testing import Answer, Call, OpenAIServer

NAMES = list(ATTACKS)
csv.field_size_limit(1 << 20)
REFERENCE = "def f(x):\n    return x\n"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def program(attack: str) -> str:
    """Prints the text, and raises it in an exception of a class with its name."""
    text, name = ascii(attack), ascii(writable(attack).replace("\0", ""))
    return f"def f(x):\n    print({text})\n    raise type({name}, (Exception,), {{}})({text})\n"


def reply(name: str) -> str:
    return f"{writable(ATTACKS[name])}\n\n```python\n{program(ATTACKS[name])}```\n"


def task_id(number: int) -> str:
    """The attack itself if it can be a name; the number makes it unique."""
    name = f"{ATTACKS[NAMES[number]]} #{number}"
    return f"case #{number}" if problem_of_name(name) else name


@dataclass(frozen=True)
class Ran:
    folder: Path
    words: list[str]
    sessions: list[SessionRecord]
    said: str
    around: set[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One cell over all attacks, with MLflow; then the same command again."""
    folder = tmp_path_factory.mktemp("texts")
    rows = [
        {"task_id": task_id(n), "prompt": f"case={n}= {writable(ATTACKS[NAMES[n]])}\n", "entry_point": "f",
         "canonical_solution": REFERENCE, "base_input": [[1]], "plus_input": [[2]]}
        for n in range(len(NAMES))
    ]  # fmt: skip
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def solve(call: Call) -> Answer:
        found = re.search(r"case=(\d+)=", json.dumps(call.body))
        assert found
        return Answer(reply(NAMES[int(found[1])]))

    with pytest.MonkeyPatch.context() as patch, OpenAIServer(solve) as server:
        patch.chdir(folder)
        words = [
            "model=openai", "model.name='[red]=EVIL<b>../x'", f"model.base_url={server.base_url}",
            "dataset=jsonl", "dataset.path=tasks.jsonl", "agenda.turns=2", "hardware.workers=2",
        ]  # fmt: skip
        outcome = codechat.run(codechat.compose(words))
        assert outcome.status == 0, outcome
        sessions = list(outcome.sessions)
        around = {path.name for path in folder.iterdir()}
        yield Ran(folder / outcome.folder, words, sessions, str(outcome.tracking.failure), around)


def test_no_text_ends_the_cell_and_each_is_recorded_as_it_was(ran: Ran) -> None:
    assert len(ran.sessions) == len(NAMES) and all(one.status == "completed" for one in ran.sessions)
    for name, session in zip(NAMES, ran.sessions, strict=True):
        first = session.turns[0]
        assert first.response == reply(name), name
        assert first.failure is not None and first.failure.exception is not None, name
        session.line().encode()
        if name in ("lone surrogate", "reversed pair"):
            assert "EVIL\ufffd" in first.failure.exception or "\ufffdEVIL" in first.failure.exception
        if len(ATTACKS[name]) < 200 and "0x" not in name:
            assert first.failure.reason == "an exception", (name, first.failure)


def test_a_resumed_cell_has_equal_records(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are read back from the journal: every value is the one that the session had the first time."""
    before = (ran.folder / "sessions.jsonl").read_bytes()
    with sqlite3.connect(ran.folder / "journal.db") as journal:
        journal.execute("DELETE FROM sessions")
    journal.close()
    monkeypatch.chdir(ran.folder.parent.parent)
    outcome = codechat.run(codechat.compose(ran.words))
    assert outcome.status == 0
    assert (outcome.folder / "sessions.jsonl").read_bytes() == before


def test_nothing_is_written_outside(ran: Ran) -> None:
    assert ran.around == {"tasks.jsonl", "runs", "mlflow"}
    assert len(list((ran.folder.parent).iterdir())) == 1
    assert re.fullmatch(r"[a-z0-9.-]+", ran.folder.name)
    assert not ran.said, "MLflow took tags, params and tables"


class Scripts(HTMLParser):
    """The elements of a page, and the kinds of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append(dict(attrs))


def scripts_that_run(page: str) -> int:
    parser = Scripts()
    parser.feed(page)
    assert not parser.handlers and not parser.tags & {"img", "iframe", "object", "svg", "template"}
    return sum("type" not in script for script in parser.scripts)


def test_the_pages_and_tables_are_inert(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ran.folder.parent.parent)
    assert main(["report", "runs=runs", "out=report"]) == 0
    page = Path("report/index.html").read_text()
    assert scripts_that_run(page) == 1 and "document.title='EVIL'" not in page
    assert main(["audit", "export", "runs=runs", "out=audit"]) == 0
    page = Path("audit/label.html").read_text()
    assert scripts_that_run(page) == 1
    with Path("audit/sample.csv").open(newline="", encoding="utf-8") as stream:
        for row in csv.reader(stream):
            assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    for path in Path("report/tables").glob("*.csv"):
        for row in csv.reader(_lines(path.read_text(encoding="utf-8"))):
            assert not any(cell.startswith(("=", "@")) for cell in row)
    shown = capsys.readouterr()
    assert not HIDDEN.search(shown.out.replace("\r", "") + shown.err)


def test_exports_hold_every_turn(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd
    from pyarrow import parquet

    monkeypatch.chdir(ran.folder.parent.parent)
    turns = [turn for session in ran.sessions for turn in session.turns]
    for suffix in ("csv", "parquet"):
        assert main(["export", f"run={ran.folder}", f"out=turns.{suffix}"]) == 0
    exact = parquet.read_table("turns.parquet").to_pydict()
    assert exact["response"] == [turn.response for turn in turns]
    with Path("turns.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(turns) == len(pd.read_csv("turns.csv"))
    for row, turn in zip(rows, turns, strict=True):
        assert unescape_formula(row["response"]) == (turn.response or "").replace("\0", "\ufffd")
        assert not row["task_id"].startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_inert_in_every_table_and_terminal(name: str) -> None:
    text = writable(ATTACKS[name])
    text.encode()
    assert not HIDDEN.search(visible(ATTACKS[name]).replace("\n", ""))
    table = Table("t", text, (Column("a", text), Column("b", "n")), ((text, 1), ("x", -2)), note=text)
    _, first = csv.reader(_lines(csv_text([["a"], [text]])))
    assert not first[0].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert list(csv.reader(_lines(as_csv(table))))[2] == ["x", "-2"], "numbers stay numbers"
    latex = as_latex(table)
    code = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    assert not re.search(r"\\(input|immediate|write18)", code)
    assert all(line.startswith(("%", "\\", "{}", "x")) or "&" in line for line in latex.splitlines() if line)
    for line in as_markdown(table).splitlines():
        assert "<" not in line and "](" not in line
    rows = [line for line in as_markdown(table).split("\n") if line.startswith("|")]
    assert len(rows) == 4 and all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


def _lines(text: str) -> Iterator[str]:
    return iter(io.StringIO(text, newline=""))


REFUSED = [name for name in NAMES if problem_of_name(ATTACKS[name])]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_shown_is_refused_at_the_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {
        "task_id": ATTACKS[name],
        "prompt": "p",
        "entry_point": "f",
        "canonical_solution": REFERENCE,
        "base_input": [[1]],
    }
    Path("tasks.jsonl").write_text(json.dumps(row) + "\n")
    words = ["dataset=jsonl", "dataset.path=tasks.jsonl", "tracking=none", "agenda.turns=1"]
    with pytest.raises(UserError):
        codechat.run(codechat.compose(["model=echo", *words]))
    assert not Path("runs").exists()


def test_the_refused_and_the_taken_are_both_many() -> None:
    assert len(REFUSED) >= 15 and len(NAMES) - len(REFUSED) >= 30 and len(NAMES) >= 40
