"""Which decisions of the judges are looked at by people: a seeded sample, stratified by scope, change and judge."""

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
from codechat.report.loading import load_cells
from codechat.report.study import LoadedCell
from codechat.seeding import generator


@dataclass(frozen=True, slots=True)
class Decision:
    """One applicability decision, with the adherence judgement where the candidate was chosen.

    `after` is None where the candidate was not chosen, or where the reply had no code: there is nothing to judge then.
    `applicable` None: the judge could not decide. `adherence` is set exactly where `after` is.
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
        """Tells this decision from every other; it changes with what the judges decided."""
        judged = [self.applicable, self.by, self.adherence, self.adherence_by]
        return content_hash([self.cell_id, self.task_id, self.turn, self.instruction.id, *judged])[:16]

    @property
    def stratum(self) -> tuple[str, str, str]:
        """Scope, change and the judge of applicability."""
        return self.instruction.scope, self.instruction.change, self.by


@dataclass(frozen=True, slots=True)
class Sample:
    """What was drawn, of how many decisions, and how many candidates no pool knows any more."""

    decisions: tuple[Decision, ...]
    population: int
    unknown: int


def draw_sample(runs: Iterable[Path], size: int, seed: int) -> Sample:
    """Draw from all completed sessions of the cells, each stratum by its share; the same for any order of the runs.

    Raises `UserError` where there are no cells, or no decision to draw from.
    """
    decisions: list[Decision] = []
    unknown = 0
    for cell in load_cells(list(runs)):
        known = _instructions_of(cell)
        reasons = applicability_reasons(cell.folder)
        for session in cell.sessions():
            if session.status == "completed":
                found, missed = _decisions_of(session, known, reasons)
                decisions += found
                unknown += missed
    if not decisions:
        remedy = "give cells of protocol=refine with follow-up turns: no other protocol asks a judge"
        raise UserError("the runs hold no decision of a judge to draw from", remedy)
    decisions.sort(key=lambda one: (one.cell_id, one.task_id, one.turn, one.instruction.id))
    return Sample(tuple(_stratified(decisions, size, seed)), len(decisions), unknown)


def _instructions_of(cell: LoadedCell) -> dict[str, Instruction]:
    """The cell's pool by id; empty where its file is gone, since chosen instructions are in the records anyway."""
    try:
        config = INSTRUCTIONS.validate(cell.config.get("instructions") or {"kind": "default"})
        pool = INSTRUCTIONS.build(config)
    except UserError:
        return {}
    return {one.id: one for one in pool.instructions}


def _decisions_of(
    session: SessionRecord, known: Mapping[str, Instruction], reasons: Mapping[tuple[str, int, str], str]
) -> tuple[list[Decision], int]:
    """The session's decisions, and how many are about an instruction whose text is not known."""
    found: list[Decision] = []
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
                Decision(
                    session.cell_id, session.model, session.dataset, session.task_id, turn.turn, instruction,
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


def _stratified(decisions: list[Decision], size: int, seed: int) -> Iterator[Decision]:
    """Every stratum by its share of the decisions (largest remainder), so that the sample's accuracy is unbiased."""
    strata: dict[tuple[str, str, str], list[Decision]] = {}
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
    generator(seed, "", "audit/order").shuffle(drawn)  # so that no stratum is labelled while one grows tired
    yield from drawn


__all__ = ["Decision", "Sample", "draw_sample"]
