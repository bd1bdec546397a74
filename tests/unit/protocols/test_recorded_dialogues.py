"""Recorded dialogues that are scored again: what is tested, and what is kept of the record."""

from pathlib import Path
from typing import Any

from codechat.domain import Extraction, Message, Reply, Target, Verdict
from codechat.protocols import PROTOCOLS
from codechat.protocols.recorded import MEASURES, Recorded, RecordedConfig, recorded_metrics
from codechat.records import SessionRecord, TurnRecord
from codechat.tasks import Task


class Kept:
    """A kit that passes every answer."""

    def __init__(self) -> None:
        self.turns: list[TurnRecord] = []
        self.checked: list[str | None] = []

    async def ask(self, role: str, turn: int, messages: tuple[Message, ...]) -> Reply:
        return Reply(f"turn {turn} of {len(messages)}")

    async def check(self, turn: int, extraction: Extraction, suite: Any) -> Verdict:
        self.checked.append(extraction.code)
        return Verdict("pass", True, None, inside="")

    def finish_turn(self, turn: TurnRecord) -> None:
        self.turns.append(turn)


async def test_a_reply_is_read_again_as_it_was_recorded(tmp_path: Path) -> None:
    asked = [Message("user", "an x, please")]
    turns = [
        TurnRecord(turn=0, request=asked, response="```python\nx = 1\n```", code="x = 2"),
        TurnRecord(turn=1, request=asked, code="x = 3"),
    ]
    session = SessionRecord(
        cell_id="c", session_id="s", task_id="t", dataset="d", model="m", protocol="recorded", agenda=[], seed=0,
        status="completed", turns=turns,
    )  # fmt: skip
    (tmp_path / "sessions.jsonl").write_text(session.line() + "\n")
    suite: Any = object()
    for code, read in (("extracted", "x = 1"), ("published", "x = 2")):
        config = PROTOCOLS.validate({"kind": "recorded", "path": str(tmp_path / "sessions.jsonl"), "code": code})
        assert isinstance(config, RecordedConfig)
        kit: Any = Kept()
        task = Task("t", "p", suite=suite, target=Target("python"))
        await Recorded(config, MEASURES, recorded_metrics).score(task, kit, session)
        assert [each.response for each in kit.turns] == [turns[0].response, None]
        assert [(each or "").strip() for each in kit.checked] == [read, "x = 3"]
        kit = Kept()
        await Recorded(config, MEASURES, recorded_metrics).run(task, kit)
        assert [each.response for each in kit.turns] == ["turn 0 of 1", None], "where nothing was said nobody is asked"
