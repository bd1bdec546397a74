"""A second reader's labels of the same triples, and the agreement of the rules and the first labels with them.

Labels say little about a rule that was fixed to fit them. Labels of an independent reader without access to the first
labels and the rules say more. The file is a CSV with a row per triple: `instruction` (its id), `triple`
(`digest`), `applicable` (yes, no) and `adherence` (adhered, violated; empty if there is no change). Other columns
are ignored.
"""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.audit.scoring import QUESTIONS, Kappa, Question, Share, kappa, share
from codechat.audit.triples import Triple
from codechat.domain import CHANGES, SCOPES
from codechat.errors import UserError
from codechat.patterns import adherence, applicable

_REMEDY = "docs/audit.md describes the columns"
_WORDS = {True: "yes", False: "no", None: None}


class SecondLabel(BaseModel):
    """One row: the second reader's labels of a triple."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    instruction: str
    triple: str
    applicable: Literal["yes", "no"]
    adherence: Literal["adhered", "violated", ""]


@dataclass(frozen=True, slots=True)
class Accord:
    """The agreement of decisions with the second reader."""

    same: Share
    kappa: Kappa | None


@dataclass(frozen=True, slots=True)
class _Pair:
    triple: Triple
    question: Question
    label: str | None
    decided: str | None
    second: str

    @property
    def groups(self) -> tuple[str, ...]:
        return ("overall", self.triple.instruction.scope, self.triple.instruction.change)


def digest(triple: Triple) -> str:
    """The name of a triple: the first 12 hex digits of the SHA-256 of instruction id, code before, code after.

    They are separated by NUL; a missing code after is an empty text.
    """
    parts = (triple.instruction.id, triple.before, triple.after or "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def read_second(path: Path) -> list[SecondLabel]:
    """The rows of the file. Raises `UserError` naming file and line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {path}: {error}", _REMEDY) from error
    readings = []
    for number, row in enumerate(rows, 2):
        try:
            readings.append(SecondLabel.model_validate(row))
        except ValidationError as error:
            first = error.errors()[0]
            raise UserError(f"{path}:{number}: {first['loc'][0]}: {first['msg']}", _REMEDY) from error
    return readings


def by_second(
    triples: Iterable[Triple], readings: Sequence[SecondLabel]
) -> dict[Literal["rules", "labels"], dict[Question, dict[str, Accord]]]:
    """The accord of the rules, and of the labels, with the second reader: per question, overall, scope and change.

    Undecided or unlabelled triples are left out. Raises `UserError` for a label of an unknown triple.
    """
    known = {digest(one): one for one in triples}
    lost = [one for one in readings if one.triple not in known]
    if lost:
        raise UserError(f"no triple of '{lost[0].instruction}' is named {lost[0].triple}", _REMEDY)
    pairs = [pair for one in readings for pair in _pairs(known[one.triple], one)]
    names = ("overall", *SCOPES, *CHANGES)

    def accords(side: Literal["decided", "label"]) -> dict[Question, dict[str, Accord]]:
        return {
            question: {
                name: _accord([one for one in pairs if one.question == question and name in one.groups], side)
                for name in names
            }
            for question in QUESTIONS
        }

    return {"rules": accords("decided"), "labels": accords("label")}


def _pairs(triple: Triple, reading: SecondLabel) -> Iterator[_Pair]:
    fits = applicable(triple.before, triple.instruction).applicable
    yield _Pair(triple, "applicability", _WORDS[triple.applicable], _WORDS[fits], reading.applicable)
    if reading.adherence and triple.after is not None:
        verdict = adherence(triple.before, triple.after, triple.instruction).verdict
        decided = None if verdict == "undecided" else verdict
        yield _Pair(triple, "adherence", triple.adherence, decided, reading.adherence)


def _accord(pairs: Iterable[_Pair], side: Literal["decided", "label"]) -> Accord:
    both = [(first, pair.second) for pair in pairs if (first := getattr(pair, side)) is not None]
    return Accord(share(sum(one == two for one, two in both), len(both)), kappa(both))
