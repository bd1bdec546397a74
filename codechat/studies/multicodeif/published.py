"""Lines of MultiCodeIF's published outputs: a reply each, with its place in a task and the published verdicts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codechat.datasets.reading.lines import read_values
from codechat.errors import UserError
from codechat.studies.multicodeif.metrics import all_met

NAME = re.compile(r"multicodeif_(?P<mode>single|selfrepair|multi)_(?P<model>.+?)(?P<ending>\.jsonl(?:\.gz)?)")
REMEDY = "source=FILE names published outputs of MultiCodeIF, .jsonl or .jsonl.gz (docs/multicodeif.md)"


class PublishedReply(BaseModel):
    """One published reply. Other fields are ignored.

    A reply to a task has a `round`, one to a level of a chain has `level` and `chain`. `feedback_prompt` is null if the
    reply was carried over from the round before.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    task_id: str = Field(min_length=1)
    response_raw: str
    model: str = ""
    round: Literal["R0", "R1", "R2", "R3", "R4"] | None = None
    level: Literal["L1", "L2", "L3", "L4"] | None = None
    chain: int | None = None
    feedback_prompt: str | None = None
    previous_round_verdict: bool | None = None
    code: str | None = None
    prompt_differs: bool = False
    official_verdict: bool | None = None
    reference_verdict: bool | None = None
    reference_verdicts: list[bool] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A reply, and its place as FILE:LINE."""

    place: str
    row: PublishedReply

    @property
    def task(self) -> str:
        """The id of the task that it answers."""
        return self.row.task_id if self.row.level is None else f"chain/{self.row.chain}"

    @property
    def turn(self) -> int:
        """The turn of its session: the round, or the level from 0."""
        return int(self.row.round[1:]) if self.row.round else int((self.row.level or "L1")[1:]) - 1

    @property
    def verdicts(self) -> list[bool | None]:
        """The published verdict on each constraint: the official one, or that of the published validators."""
        if self.row.reference_verdicts is not None:
            return list(self.row.reference_verdicts)
        official = self.row.official_verdict
        return [self.row.reference_verdict if official is None else official]

    @property
    def met(self) -> bool | None:
        """Whether all constraints are met by the published verdicts."""
        return all_met(self.verdicts)


def read_lines(path: Path) -> list[Line]:
    """The replies of a file, all to tasks or all to levels. Raises `UserError` naming the first wrong line."""
    lines: list[Line] = []
    for place, row in read_values(path, PublishedReply.model_validate, REMEDY, "source"):
        if (row.round is None) == (row.level is None) or (row.level is None) != (row.chain is None):
            raise UserError(f"{place}: a reply has either a round, or a level and a chain", REMEDY)
        line = Line(place, row)
        if lines and (lines[0].row.level is None) != (row.level is None):
            raise UserError(f"{place}: replies to levels and to tasks are in one file", ONE)
        if lines and lines[0].row.model != row.model:
            raise UserError(f"{place}: a reply of {row.model} among those of {lines[0].row.model}", ONE)
        lines.append(line)
    if not lines:
        raise UserError(f"{path} holds no reply", REMEDY)
    return lines


ONE = "import one mode of one model at a time"


def beside(source: Path) -> Iterator[Path]:
    """The single-level replies of the same model in the folder of a source with its published name."""
    named = NAME.fullmatch(source.name)
    if named and named["mode"] != "single":
        path = source.with_name(f"multicodeif_single_{named['model']}{named['ending']}")
        if path.is_file():
            yield path
