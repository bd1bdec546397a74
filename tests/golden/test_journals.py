"""Journals of an earlier tree are resumed: each step is found by its name and digest, and nothing is asked again.

`journals/` was written by that tree: a journal without the records of its sessions, and the records that it led to.
`python tests/golden/test_journals.py` writes the missing ones.
"""

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from codechat.cli.app import main
from codechat.testing import Call, OpenAIServer, Result
from golden import test_cells
from support.cab import judges, says
from support.codeif import write_rows
from support.construction import ROLES, Agents, snippet
from support.multicodeif import chain, constrained
from support.sreval import growing

JOURNALS = Path(__file__).parent / "journals"
STEPWISE = [growing("a" * 24, 3), growing("b" * 24, 5)]
EXPLORED = ["EXPLORE: echo a >> note; cat note\nEXPLORE: ls", "EXPLORE: cat note", "ANSWER: first", "ANSWER: second"]


def served(*places: str, name: str = "") -> list[str]:
    """The words by which roles are asked of the test's server, as `name` or by the role's name."""
    words = []
    for place in places:
        words += [f"{place}.base_url=SERVER", f"{place}.api_key_env=null", f"{place}.cache=false"]
        words += [f"{place}.name={name or place.rpartition('.')[2]}"]
    return words


JUDGED = ["judge=llm", "judge.check=false", *served("judge.constraint")]
ASSIST = ["model=openai", "protocol=assist", "dataset=assist_starter"]
ASSIST += [f"model@protocol.roles.{role}=openai" for role in ("user", "judge")]
ASSIST += served("model", "protocol.roles.user", "protocol.roles.judge")
AUTHORS = [f"construct.roles.{role}" for role in ROLES]
CONSTRUCTED = ["construct", "recipe=constraints", "types=[library,data_structure_size]", "languages=[python]"]
CONSTRUCTED += ["expand=[data_structure_size]", "number=3", "levels=2", "rounds=2", "seeds=seeds.jsonl", "out=runs/out"]
CONSTRUCTED += [*(f"model@{place}=openai" for place in AUTHORS), *served(*AUTHORS)]
MODEL = ["model=openai", *served("model", name="fading-40")]
JUDGES = served("judge.applicability", "judge.adherence")
CELLS: dict[str, list[str]] = {
    "refine": [*MODEL, "judge=llm", "judge.check=false", *JUDGES, "dataset.limit=3", "agenda.turns=5"],
    "refine_together": [
        *MODEL, "judge=llm", "judge.check=false", *JUDGES, "judge.batch=3", "dataset.limit=2", "agenda.turns=4",
    ],
    "static": [*MODEL, "protocol=static", "dataset=jsonl", "dataset.path=tasks.jsonl"],
    "dynamic": [*MODEL, "protocol=dynamic", "dataset=jsonl", "dataset.path=tasks.jsonl"],
    "stepwise": [*MODEL, "protocol=stepwise", "dataset=sreval_python", "dataset.path=steps.jsonl"],
    "repair": [*MODEL, "protocol=repair", "dataset=multicodeif", "dataset.path=rows.jsonl", *JUDGED],
    "levels": [
        *MODEL, "protocol=levels", "dataset=multicodeif", "dataset.path=rows.jsonl", "dataset.part=levels",
        *JUDGED,
    ],
    "assist": ASSIST,
    "construct": CONSTRUCTED,
}  # fmt: skip


class Answers:
    """A server's replies, a function of the request alone."""

    def __init__(self) -> None:
        self._refine, self._agents = test_cells.behaviour(), Agents({1: "malformed", 2: "unpassable", 4: "related"})
        self._steps = {turn["instruction"].strip(): turn["solution"] for row in STEPWISE for turn in row["turn_datas"]}

    def __call__(self, call: Call) -> Result:
        first, newest, model = call.messages[0]["content"], call.messages[-1]["content"], call.body["model"]
        if model == "model":
            return EXPLORED[sum(message["role"] == "assistant" for message in call.messages)]
        if model == "user":
            return says("Done.", "FULLY_SATISFIED") if "second" in first else says("Go on.")
        if model == "constraint":
            return f"REASON: it says so.\nVERDICT: {'KEPT' if len(first) % 2 else 'BROKEN'}"
        if model in ROLES:
            conditions = sum(f"CONDITION {number}:" in first for number in range(1, 9))
            return judges(*[True] * conditions) if conditions else self._agents(call)
        return self._code(call, first, newest)

    def _code(self, call: Call, first: str, newest: str) -> Result:
        if call.body["model"] == "applicability" and "VERDICT: " not in first:  # several instructions in one question
            return "\n".join(f"VERDICT {number}: {'NOT_' * (number < 3)}APPLICABLE" for number in (1, 2, 3))
        if (step := newest.splitlines()[-1]) in self._steps:
            return f"```python\n{self._steps[step]}```"
        if "phone book" in first or "Name it" in first:
            return f"```java\nclass Book {{ int turn = {len(call.messages)}; }}\n```"
        return self._refine(call)  # type: ignore[no-any-return]


def write_inputs() -> None:
    """The files that the cells read, into this folder."""
    shutil.copy(test_cells.HERE / "tasks.jsonl", "tasks.jsonl")
    write_rows(Path("steps.jsonl"), *STEPWISE)
    naming = {"category": "coding_style", "constraint_type": "naming", "language": "java"}
    rows = [constrained(task_id=f"n/{number}", answer="java;class:PascalCase", **naming) for number in range(2)]
    for row in rows:
        row["prompt"] = f"Name it well, {row['task_id']}."
    judged = constrained(task_id="situation/1", category="situation", constraint_type="situation", language="java")
    judged |= {"answer": "class Names {}", "prompt": "Name it, too."}
    write_rows(Path("rows.jsonl"), *rows, judged, *chain(0), *chain(1))
    write_rows(Path("seeds.jsonl"), *(snippet(number) for number in range(9)))


@contextlib.contextmanager
def started(name: str) -> Iterator[tuple[OpenAIServer, Callable[[], int]]]:
    """A server, and what runs the cell `name` in this folder and returns its exit status."""
    write_inputs()
    with OpenAIServer(
        Answers(), models=["fading-40", "applicability", "adherence", "constraint", "model", "user", *ROLES]
    ) as server:
        words = [word.replace("SERVER", server.base_url) for word in CELLS[name]]
        more = ["tracking=none", "sandbox.allow_weak=true"]
        more += [] if name == "construct" else ["hardware.workers=1", "runs_dir=runs"]
        yield server, lambda: main([*words, *more])


ADDED = ("asked", "unreadable")


def timeless(value: Any) -> Any:
    """Without times, and without what was added to records since."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.endswith("_s") and key not in ADDED}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def records(folder: Path) -> list[Any]:
    """The sessions or items of a cell, without times."""
    file = next(file for name in ("sessions", "items") if (file := folder / f"{name}.jsonl").exists())
    return [timeless(json.loads(line)) for line in file.read_text().splitlines()]


def steps(journal: Path) -> list[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(journal)) as db:
        return sorted(db.execute("SELECT session, name, digest FROM steps"))


@pytest.mark.parametrize("name", CELLS)
def test_a_journal_of_an_earlier_tree_is_resumed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = json.loads(gzip.decompress((JOURNALS / f"{name}.json.gz").read_bytes()))
    folder = tmp_path / "runs" / before["folder"]
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(before["config"])
    journal = folder / "journal.db"
    journal.write_bytes(gzip.decompress((JOURNALS / f"{name}.db.gz").read_bytes()))
    known = steps(journal)
    with started(name) as (server, run):
        assert run() == 0
        assert server.answered == 0
    assert steps(journal) == known
    assert records(folder) == timeless(before["records"])


def write(name: str, folder: Path) -> None:
    """Run the cell, and write its journal without the records, and the records apart."""
    folder.mkdir()
    os.chdir(folder)
    with started(name) as (server, run):
        assert run() == 0
        print(name, server.answered, "replies")
    (cell,) = (folder / "runs").iterdir()
    with contextlib.closing(sqlite3.connect(cell / "journal.db", isolation_level=None)) as db:
        db.execute("DELETE FROM sessions")
        db.execute("VACUUM INTO 'copy.db'")
    JOURNALS.mkdir(exist_ok=True)
    (JOURNALS / f"{name}.db.gz").write_bytes(gzip.compress(Path("copy.db").read_bytes(), mtime=0))
    kept = {"folder": cell.name, "config": (cell / "config.yaml").read_text(), "records": records(cell)}
    (JOURNALS / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for each in CELLS:
            if not (JOURNALS / f"{each}.db.gz").exists():
                write(each, Path(scratch) / each)
