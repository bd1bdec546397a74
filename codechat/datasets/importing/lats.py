"""Logs of LATS and Reflexion: of each task the `implementations` in order, and whether the last is a solution.

`is_solved` is the verdict of the hidden tests on `solution`, the last implementation; the earlier ones were only tried
on tests that the model wrote: no verdict is known. Reflections and that feedback stay as `source_fields`.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.base.config import original_option
from codechat.base.errors import UserError
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.importing.dialogues import PublishedTurn, dialogue
from codechat.datasets.reading.lines import problem_of, rows_of

REMEDY = "source=FILE names a log of LATS: JSON lines with implementations and is_solved"


class LatsImport(ImportConfig):
    """Options of `lats`."""

    format: Literal["lats"] = original_option("lats", "what the source is")


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True)

    implementations: list[str | None] = []
    is_solved: bool | None = None
    solution: str | None = None
    task_id: str | int | None = None
    name: str | None = None
    reflections: list[Any] = []
    test_feedback: list[Any] = []


@FORMATS.register("lats", LatsImport)
def lats(config: LatsImport) -> Imported:
    """LATS's and Reflexion's logs of programming tasks. Raises `UserError` naming the first wrong row."""
    path, sessions = Path(config.source), {}
    for place, value in rows_of(path):
        try:
            row = _Row.model_validate(value)
        except ValidationError as error:
            raise UserError(f"{place}: not a task of LATS: {problem_of(error)}", REMEDY) from error
        name = str(row.name if row.task_id is None else row.task_id)
        if (row.task_id is None and not row.name) or name in sessions:
            raise UserError(
                f"{place}: {'a second log of ' + name if name in sessions else 'no task_id or name'}", REMEDY
            )
        if not row.implementations and row.solution is None:
            raise UserError(f"{place}: neither implementations nor a solution", REMEDY)
        sessions[name] = dialogue(name, "lats", config.model or path.name.split(".")[0], _turns(row))
    if not sessions:
        raise UserError(f"{path} holds no task", REMEDY)
    return Imported(list(sessions.values()), [])


def _turns(row: _Row) -> list[PublishedTurn]:
    codes = list(row.implementations)
    if row.solution is not None and (not codes or codes[-1] != row.solution):
        codes.append(row.solution)  # the verdict is on it
    turns = []
    for number, code in enumerate(codes):
        own = {
            name: values[number]
            for name, values in (("reflection", row.reflections), ("test_feedback", row.test_feedback))
            if number < len(values)
        }
        passed = row.is_solved if number == len(codes) - 1 else None
        turns.append(PublishedTurn(code, passed, own={"source_fields": own} if own else None))
    return turns
