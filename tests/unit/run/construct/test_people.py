"""What people are asked, and what a folder, a store and an estimate say of a construction."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from codechat.base.domain import CHARS_PER_TOKEN, Message
from codechat.base.errors import UserError
from codechat.judging.deciding import Form, read_object
from codechat.report.tracking import TRACKING, FinishedCell, Shown
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Stage, Waits
from codechat.run.construct import run as construct_run
from codechat.run.journal import Journal
from codechat.run.protocols import Ask
from codechat.testing import Call, OpenAIServer
from support.construction import Quiet, run, seeds
from support.mistakes import mistake


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def two_questions(item: Item, kit: Kit) -> Outcome:
    name = kit.people(f"Which name for {item.data['number']}?", "total")
    said = (await kit.ask("poet", f"write {name}")).text
    if item.data["number"] == 0:
        return Kept(item.having(said=said))
    return Kept(item.having(said=said, better=kit.people(f"Is {said} good?", "yes")))


@pytest.mark.parametrize(
    ("on_question", "kept", "dropped", "waiting"),
    [("wait", 0, 0, 2), ("suggestion", 2, 0, 0), ("keep", 2, 0, 0), ("drop", 0, 2, 0)],
)
def test_a_question_without_an_answer(tmp_path: Path, on_question: str, kept: int, dropped: int, waiting: int) -> None:
    with OpenAIServer(lambda call: "it is") as server:
        outcome = run(tmp_path / "o", [Stage("ask", two_questions)], seeds(2), server, on_question=on_question)
    assert outcome.status == 0 and outcome.yields is not None
    assert [outcome.yields[key] for key in ("kept", "dropped", "waiting")] == [kept, dropped, waiting]
    if on_question in ("suggestion", "keep"):
        settled = rows(tmp_path / "o" / "items.jsonl")[0]["provenance"]["people"]
        assert [each["by"] for each in settled] == [f"on_question={on_question}"]


def test_answers_come_one_after_the_other_and_stay(tmp_path: Path) -> None:
    out, stages = tmp_path / "o", [Stage("ask", two_questions)]
    asked: list[str] = []

    def answer(call: Call) -> str:
        asked.append(call.messages[-1]["content"])
        return "it is"

    with OpenAIServer(answer) as server:
        run(out, stages, seeds(2), server)
        first, second = rows(out / "questions.jsonl")
        answers = tmp_path / "answers"
        lines = [{"question": first["id"], "answer": "sum"}, {"question": second["id"], "do": "suggestion"}]
        answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
        run(out, stages, seeds(2), server, answers=str(answers))
        (third,) = rows(out / "questions.jsonl")
        assert third["question"] == "Is it is good?"
        answers.write_text(json.dumps({"question": third["id"], "do": "keep"}) + "\n")
        outcome = run(out, stages, seeds(2), server, answers=str(answers))
        assert outcome.yields is not None and outcome.yields["kept"] == 2
    assert sorted(asked) == ["write sum", "write total"], "nothing was asked twice"
    assert [row.get("better") for row in rows(out / "items.jsonl")] == [None, None]


def test_a_stage_that_waits_goes_on_with_the_answer_in_the_item(tmp_path: Path) -> None:
    async def review(item: Item, kit: Kit) -> Outcome:
        return Waits("Sound?", "yes")

    async def count(item: Item, kit: Kit) -> Outcome:
        return Kept(item) if item.data["answers"]["review"] == "yes" else Dropped("not sound")

    outcome = run(tmp_path / "o", [Stage("review", review), Stage("count", count)], seeds(2), on_question="suggestion")
    assert outcome.yields is not None and outcome.yields["kept"] == 2


def test_an_answer_to_nothing_known_is_no_harm_and_two_to_one_question_are_refused(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.write_text('{"question": "abc", "answer": "x"}\n{"question": "abc", "do": "keep"}\n')
    with pytest.raises(UserError, match="answered twice"):
        run(tmp_path / "o", [Stage("ask", two_questions)], seeds(1), answers=str(answers))


class Verse(BaseModel):
    line: str


class Broken(BaseModel):
    line: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"line": "a"}', True),
        ('Here it is:\n```json\n{"line": "a"}\n```\nDone.', True),
        ('```json\n{"line": "a"}\n```\n```json\n{"line": "b"}\n```', False),
        ('{"line": "a"} {"line": "b"}', False),
        ('{"line": 3}', False),
        ("[]", False),
        ("no", False),
        ('{"line": "a"', False),
    ],
)
def test_an_object_is_read_strictly(reply: str, read: bool) -> None:
    found = read_object(reply, Verse)
    assert isinstance(found, Verse) is read
    assert read or found, "it says why"


def test_a_form_is_asked_again_with_the_problem(tmp_path: Path) -> None:
    async def fill(item: Item, kit: Kit) -> Outcome:
        filled = await kit.fill_in("poet", Form("write", Verse, "again: {{problem}}"))
        return (
            Dropped("unreadable", filled.problem) if filled.value is None else Kept(item.having(**dict(filled.value)))
        )

    def answer(call: Call) -> str:
        return '{"line": "b"}' if len(call.messages) == 3 else "{}"

    with OpenAIServer(answer) as server:
        run(tmp_path / "o", [Stage("fill", fill)], seeds(1), server, recipe={"schemas": (Verse,)})
        assert "again: line: Field required" in server.calls[1].messages[-1]["content"]
    assert rows(tmp_path / "o" / "items.jsonl")[0]["line"] == "b"


def test_a_schema_that_cannot_be_read_and_a_role_without_a_model_are_refused(tmp_path: Path) -> None:
    stages = [Stage("ask", two_questions)]
    with pytest.raises(UserError, match="Broken"):
        run(tmp_path / "o", stages, seeds(1), recipe={"schemas": (Broken,)})
    with mistake("construct.roles.poet"):
        run(tmp_path / "o", stages, seeds(1), recipe={"roles": ("poet",)})
    with pytest.raises(UserError, match="two seeds"):
        run(tmp_path / "o", stages, [*seeds(1), *seeds(1)])
    assert not (tmp_path / "o").exists()


def test_seeds_are_checked_before_a_call(tmp_path: Path) -> None:
    async def prepare(items: Any, kit: Kit) -> None:
        raise UserError(f"the solution of {items[0].id} fails its tests", "mend it")

    with OpenAIServer(lambda call: "x") as server:
        with pytest.raises(UserError, match="s0 fails"):
            run(tmp_path / "o", [Stage("ask", two_questions)], seeds(2), server, recipe={"prepare": prepare})
        assert not server.calls


def test_another_construction_is_not_written_over(tmp_path: Path) -> None:
    async def keep(item: Item, kit: Kit) -> Outcome:
        return Kept(item)

    stages = [Stage("keep", keep)]
    run(tmp_path / "o", stages, seeds(2))
    before = (tmp_path / "o" / "items.jsonl").read_bytes()
    with pytest.raises(UserError, match="other seeds"):
        run(tmp_path / "o", stages, seeds(3))
    with pytest.raises(UserError, match="other settings: seed"):
        run(tmp_path / "o", stages, seeds(2), top={"seed": 1})
    settings = tmp_path / "o" / "config.yaml"
    settings.write_text(settings.read_text().replace("recipe: trial", "recipe: other"))
    with pytest.raises(UserError, match="recipe=other"):
        run(tmp_path / "o", stages, seeds(2))
    assert (tmp_path / "o" / "items.jsonl").read_bytes() == before


def test_an_estimate_counts_what_is_missing(tmp_path: Path) -> None:
    stages, recipe = [Stage("ask", ask_once)], {"asks": lambda item: [Ask("poet", 0, 400, 80, times=2)]}
    with OpenAIServer(lambda call: "x") as server:
        outcome = run(tmp_path / "o", stages, seeds(3), server, recipe=recipe, top={"dry_run": True})
        assert outcome.estimate is not None
        assert outcome.estimate.calls["poet"] == 6
        assert outcome.estimate.tokens["poet"].input_tokens == round(6 * 400 / CHARS_PER_TOKEN)
        assert not server.calls and not (tmp_path / "o").exists()
        run(tmp_path / "o", stages, seeds(3), server, recipe=recipe)
        outcome = run(tmp_path / "o", stages, seeds(3), server, recipe=recipe, top={"dry_run": True})
        assert outcome.estimate is not None and outcome.estimate.calls["poet"] == 0


async def ask_once(item: Item, kit: Kit) -> Outcome:
    await kit.ask("poet", (Message("user", item.id),))
    return Kept(item)


class Store:
    """A tracker that keeps what it is shown, while a construction runs and in the end."""

    def __init__(self) -> None:
        self.logged: list[FinishedCell] = []
        self.progress: Callable[[], Mapping[str, float]] = dict

    def log(self, cell: FinishedCell) -> None:
        self.logged.append(cell)

    def show(self, cell: Any, progress: Callable[[], Mapping[str, float]], tell: Any) -> Shown | None:
        self.progress = progress
        return None


def test_a_store_is_shown_tokens_dollars_and_yields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr(TRACKING, "build", lambda config: store)
    from codechat.models import Prices

    with OpenAIServer(lambda call: "two words") as server:
        poet = {"prices": Prices(input=1, output=1)}
        run(tmp_path / "o", [Stage("ask", ask_once)], seeds(3), server, poet=poet, watcher=Quiet())
    points = {point.key: point.value for point in store.logged[0].points}
    assert (points["final/kept"], points["final/yield"], points["stage/ask/calls"]) == (3, 1, 3)
    assert points["cost/all/usd"] > 0 and points["cost/per_kept/output_tokens"] == 2
    shown = store.progress()
    assert shown["kept"] == 3 and shown["tokens"] == points["cost/all/input_tokens"] + 6 and shown["dollars"] > 0


class Killed(BaseException):
    """A process that ends here."""


@pytest.mark.parametrize("at", ["journal", "settings", "answers"])
def test_a_construction_killed_at_its_start_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    async def keep(item: Item, kit: Kit) -> Outcome:
        return Kept(item)

    def killed(*args: object, **options: object) -> None:
        raise Killed

    name = {"journal": "Journal", "settings": "write_atomically", "answers": "_answers"}[at]
    with monkeypatch.context() as patch:
        patch.setattr(construct_run, name, killed)
        with pytest.raises(Killed):
            run(tmp_path / "o", [Stage("keep", keep)], seeds(2))
    assert run(tmp_path / "o", [Stage("keep", keep)], seeds(2)).status == 0


def begun(folder: Path, *names: str) -> Path:
    """What an older version left that was killed between its journal and its settings."""
    folder.mkdir()
    for name in (".lock", *names):
        (folder / name).touch()
    return folder


def test_a_folder_of_an_older_version_without_settings_is_taken_if_nothing_was_paid(tmp_path: Path) -> None:
    async def keep(item: Item, kit: Kit) -> Outcome:
        return Kept(item)

    stages = [Stage("keep", keep)]
    left = begun(tmp_path / "left", "answers.jsonl", ".config.yaml.x1y2")
    with contextlib.closing(Journal(left / "journal.db")):
        shutil.copy(left / "journal.db-wal", left / "kept-wal")  # a killed process leaves it
    (left / "kept-wal").rename(left / "journal.db-wal")
    assert run(left, stages, seeds(2)).status == 0
    paid = begun(tmp_path / "paid")
    with contextlib.closing(Journal(paid / "journal.db")) as journal:
        asyncio.run(journal.finish("s", "{}", "{}", completed=False))
    for folder in (paid, begun(tmp_path / "mine", "notes.txt")):
        with mistake("out=DIR", str(folder)):
            run(folder, stages, seeds(2))
    only = tmp_path / "only"
    only.mkdir()
    (only / "answers.jsonl").write_text('{"question": "q", "answer": "mine"}\n')
    with mistake("out=DIR"):
        run(only, stages, seeds(2))
