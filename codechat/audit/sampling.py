"""Draw the judges' decisions to label: a seeded sample, stratified by scope, change and judge."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from codechat.audit.reasons import applicability_reasons
from codechat.domain import AdherenceVerdict, Instruction
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.instructions import INSTRUCTIONS
from codechat.records import AdherenceRecord, SessionRecord, TurnRecord
from codechat.report.contents import content_notes
from codechat.report.loading import load_cells
from codechat.report.study import LoadedCell
from codechat.seeding import generator


@dataclass(frozen=True, slots=True)
class AuditDecision:
    """One applicability decision, with the adherence judgement if the candidate was chosen.

    `after` is None if the candidate was not chosen or the reply had no code. `applicable` is None if the judge could
    not decide. `adherence` is set if and only if `after` is.
    """

    cell_id: str
    model: str
    dataset: str
    task_id: str
    turn: int
    instruction: Instruction
    before: str
    after: str | None
    applicable: bool | None
    by: str
    reason: str
    adherence: AdherenceVerdict | None
    adherence_by: str
    adherence_reason: str

    @property
    def key(self) -> str:
        """Identifies this decision together with the judges' answers."""
        judged = [self.applicable, self.by, self.adherence, self.adherence_by]
        return content_hash([self.cell_id, self.task_id, self.turn, self.instruction.id, *judged])[:16]

    @property
    def stratum(self) -> tuple[str, str, str]:
        """Scope, change and the judge of applicability."""
        return self.instruction.scope, self.instruction.change, self.by


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """The drawn decisions, the number of all decisions, and that of candidates whose text is unknown.

    `notes` are sentences about the cells.
    """

    decisions: tuple[AuditDecision, ...]
    population: int
    unknown: int
    notes: tuple[str, ...] = ()


def draw_sample(runs: Iterable[Path], size: int, seed: int) -> DrawnSample:
    """Draw from all completed sessions of the cells, each stratum by its share; the same for any order of the runs.

    Raises `UserError` if there are no cells, or no decisions.
    """
    decisions: list[AuditDecision] = []
    unknown = 0
    cells = load_cells(list(runs))
    for cell in cells:
        known = _instructions_of(cell)
        reasons = applicability_reasons(cell.folder)
        for session in cell.sessions():
            if session.status == "completed":
                found, missed = _decisions_of(cell, session, known, reasons)
                decisions += found
                unknown += missed
    if not decisions:
        remedy = "give cells of protocol=refine with follow-up turns: no other protocol asks a judge"
        raise UserError("the runs hold no decision of a judge to draw from", remedy)
    decisions.sort(key=lambda one: (one.cell_id, one.task_id, one.turn, one.instruction.id))
    return DrawnSample(
        tuple(_draw_by_stratum(decisions, size, seed)), len(decisions), unknown, tuple(content_notes(cells))
    )


def _instructions_of(cell: LoadedCell) -> dict[str, Instruction]:
    """The cell's pool by id; empty if its file is gone, because chosen instructions are in the records anyway."""
    try:
        config = INSTRUCTIONS.validate(cell.config.get("instructions") or {"kind": "default"})
        pool = INSTRUCTIONS.build(config)
    except UserError:
        return {}
    return {one.id: one for one in pool.instructions}


def _decisions_of(
    cell: LoadedCell,
    session: SessionRecord,
    known: Mapping[str, Instruction],
    reasons: Mapping[tuple[str, int, str], str],
) -> tuple[list[AuditDecision], int]:
    """The session's decisions, and the number of those about an instruction whose text is unknown."""
    found: list[AuditDecision] = []
    unknown = 0
    before = ""
    for turn in session.turns:
        for candidate in turn.candidates:
            chosen = turn.instruction is not None and turn.instruction.id == candidate.id
            instruction = _chosen(turn) if chosen else known.get(candidate.id)
            if instruction is None:
                unknown += 1
                continue
            judged = turn.adherence if chosen and turn.code is not None else None
            found.append(
                AuditDecision(
                    session.cell_id, session.model, cell.dataset, session.task_id, turn.turn, instruction,
                    before, turn.code if judged else None,
                    candidate.applicable, candidate.by,
                    reasons.get((session.session_id, turn.turn, candidate.id), ""), *_judgement(judged),
                )
            )  # fmt: skip
        before = turn.code or before
    return found, unknown


def _chosen(turn: TurnRecord) -> Instruction | None:
    one = turn.instruction
    return None if one is None else Instruction(one.id, one.text, one.scope, one.change)


def _judgement(judged: AdherenceRecord | None) -> tuple[AdherenceVerdict | None, str, str]:
    return (None, "", "") if judged is None else (judged.verdict, judged.by, judged.reason)


def _draw_by_stratum(decisions: list[AuditDecision], size: int, seed: int) -> Iterator[AuditDecision]:
    """Every stratum by its share of the decisions (largest remainder), so that the sample's accuracy is unbiased."""
    strata: dict[tuple[str, str, str], list[AuditDecision]] = {}
    for one in decisions:
        strata.setdefault(one.stratum, []).append(one)
    size = min(size, len(decisions))
    shares = {name: size * len(members) / len(decisions) for name, members in strata.items()}
    counts = {name: math.floor(share) for name, share in shares.items()}
    by_remainder = sorted(strata, key=lambda name: (counts[name] - shares[name], name))
    for name in by_remainder[: size - sum(counts.values())]:
        counts[name] += 1
    drawn = [
        one
        for name in sorted(strata)
        for one in generator(seed, "/".join(name), "audit/sample").sample(strata[name], counts[name])
    ]
    generator(seed, "", "audit/order").shuffle(drawn)  # so that no stratum is labelled only when tired
    yield from drawn


__all__ = ["AuditDecision", "DrawnSample", "draw_sample"]
