"""Draw the judges' decisions to label: seeded samples, stratified by scope, change and judge.

One sample can serve both questions (applicability and adherence), or each question has a sample of its own (paper,
section IV-D): only about half of all decisions were followed by a change that was judged, so that a single sample
contains few of these.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codechat.base.domain import AdherenceVerdict, Instruction
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord
from codechat.base.seeding import generator
from codechat.report.audit.allocation import Group
from codechat.report.audit.judged import kinds
from codechat.report.audit.strata import Stratum, draw_by_stratum, shuffled
from codechat.report.loading import content_notes, load_cells
from codechat.report.study import LoadedCell
from codechat.run.journal import read_values
from codechat.studies.refine.instructions import INSTRUCTIONS

CountsFor = Literal["both", "applicability", "adherence", "correction"]
"""The question that a decision was drawn for. Draws for the correction have the verdicts in other proportions."""


@dataclass(frozen=True, slots=True)
class AuditDecision:
    """One applicability decision, with the adherence judgement if the candidate was chosen.

    `after` is None if the candidate was not chosen or the reply had no code. `applicable` is None if the judge
    could not decide. `adherence` is set if and only if `after` is. `counts_for` is the question that the decision
    was drawn for; a decision drawn for applicability alone has no adherence.
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
    counts_for: CountsFor = "both"

    @property
    def key(self) -> str:
        """Identifies this decision together with the judges' answers and what it counts for."""
        judged = (self.applicable, self.by, self.adherence, self.adherence_by)
        return decision_key((self.cell_id, self.task_id, self.turn, self.instruction.id), judged, self.counts_for)

    @property
    def stratum(self) -> Stratum:
        """Scope, change and the judge of applicability."""
        return self.instruction.scope, self.instruction.change, self.by

    @property
    def adherence_stratum(self) -> Stratum:
        """Scope, change and the judge of adherence."""
        return self.instruction.scope, self.instruction.change, self.adherence_by


def decision_key(place: tuple[str, str, int, str], judged: tuple[object, ...], counts_for: CountsFor) -> str:
    """The hash of a decision: cell, task, turn and instruction, the judges' answers, and what it counts for."""
    return content_hash([*place, *judged, *(() if counts_for == "both" else (counts_for,))])[:16]


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """The drawn decisions of one sample.

    `population` is the number of all decisions, `judged` that of judged changes among them, and `unknown` that of
    candidates whose text is unknown. `notes` are remarks about the cells; `cells` and `changes` are the cells and
    all their judged changes.
    """

    decisions: tuple[AuditDecision, ...]
    population: int
    judged: int
    unknown: int
    notes: tuple[str, ...] = ()
    cells: tuple[LoadedCell, ...] = ()
    changes: tuple[AuditDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class _Population:
    """All decisions in a fixed order, the number of candidates whose text is unknown, and the cells."""

    decisions: list[AuditDecision]
    unknown: int
    cells: tuple[LoadedCell, ...]

    @property
    def judged(self) -> list[AuditDecision]:
        """The decisions that were followed by a judged change."""
        return [one for one in self.decisions if one.adherence is not None]

    def sample(self, drawn: list[AuditDecision], seed: int) -> DrawnSample:
        """The sample of some drawn decisions, in random order."""
        changes = tuple(self.judged)
        return DrawnSample(
            tuple(shuffled(drawn, seed)), len(self.decisions), len(changes), self.unknown,
            tuple(content_notes(self.cells)), self.cells, changes,
        )  # fmt: skip


def draw_sample(runs: Iterable[Path], size: int, seed: int) -> DrawnSample:
    """Draw `size` decisions, each of which counts for every question that the judges answered.

    They come from all completed sessions of the cells, each stratum in proportion; the result is the same for any
    order of the runs.

    Raises `UserError` if there are no cells, or no decisions.
    """
    population = _population_of(runs)
    strata = [one.stratum for one in population.decisions]
    return population.sample(draw_by_stratum(population.decisions, strata, size, seed, "audit/sample"), seed)


def draw_apart(runs: Iterable[Path], applicability: int, adherence: int, seed: int) -> DrawnSample:
    """Draw decisions about applicability, and apart from them judged changes, in these numbers (paper, IV-D).

    Each draw is stratified as in `draw_sample`, the second by the judge of adherence. A decision that both draws
    contain counts for both.

    Raises `UserError` if there are no cells, or nothing to draw from.
    """
    population = _population_of(runs)
    decisions, judged = population.decisions, population.judged
    if adherence and not judged:
        raise UserError("the runs hold no judgement of adherence to draw from", "leave adherence=… out")
    fits = draw_by_stratum(decisions, [one.stratum for one in decisions], applicability, seed, "audit/sample")
    strata = [one.adherence_stratum for one in judged]
    followed = {one.key for one in draw_by_stratum(judged, strata, adherence, seed, "audit/adherence")}
    # of a decision drawn for applicability alone, the change that followed is not shown
    drawn = [
        one if one.key in followed
        else replace(one, after=None, adherence=None, adherence_by="", adherence_reason="", counts_for="applicability")
        for one in fits
    ]  # fmt: skip
    both = {one.key for one in fits}
    drawn += [replace(one, counts_for="adherence") for one in judged if one.key in followed - both]
    return population.sample(drawn, seed)


Sizes = Mapping[Group, int]


def draw_for_correction(
    runs: Iterable[Path],
    size: int,
    seed: int,
    judges: Callable[[LoadedCell], str],
    allocated: Callable[[str, Sizes, int], Sizes],
) -> DrawnSample:
    """Draw `size` judged changes, equally many for each of the cells' judges, by verdict and scope as `allocated` says.

    `judges` gives the name of a cell's judge; `allocated` takes that name, the number of changes in each group, and
    the number to draw.

    Raises `UserError` if there are no cells, or nothing to draw from.
    """
    population = _population_of(runs)
    names = {cell.cell_id: judges(cell) for cell in population.cells}
    groups: dict[str, dict[Group, list[AuditDecision]]] = defaultdict(lambda: defaultdict(list))
    for one in population.judged:
        if one.adherence != "undecided":
            groups[names[one.cell_id]][Group(one.instruction.scope, one.adherence == "adhered")].append(one)
    if not groups:
        raise UserError(
            "the runs hold no judgement of adherence to draw from", "give cells whose turns have instructions"
        )
    drawn: list[AuditDecision] = []
    for place, (judge, own) in enumerate(sorted(groups.items())):
        number = size // len(groups) + (place < size % len(groups))
        counts = allocated(judge, {group: len(found) for group, found in sorted(own.items())}, number)
        for (scope, adhered), count in counts.items():
            luck = generator(seed, f"{judge}/{scope}/{adhered}", "audit/correction")
            drawn += luck.sample(own[Group(scope, adhered)], count)
    return population.sample([replace(one, counts_for="correction") for one in drawn], seed)


def _population_of(runs: Iterable[Path]) -> _Population:
    decisions: list[AuditDecision] = []
    unknown = 0
    cells = load_cells(list(runs))
    for cell in cells:
        known = _instructions_of(cell)
        reasons = _applicability_reasons(cell.folder)
        for session in cell.sessions():
            if session.status == "completed":
                found, missed = _decisions_of(cell, session, known, reasons)
                decisions += found
                unknown += missed
    if not decisions:
        others = (
            f"of {' and '.join(kind.protocols)}, {kind.name}=100 draws {kind.several}"
            for kind in kinds().values()
            if kind.protocols
        )
        remedy = "; ".join(("give cells whose turns have instructions, after the first turn", *others))
        raise UserError("the runs hold no decision of a judge about an instruction to draw from", remedy)
    decisions.sort(key=lambda one: (one.cell_id, one.task_id, one.turn, one.instruction.id))
    return _Population(decisions, unknown, cells)


def _instructions_of(cell: LoadedCell) -> dict[str, Instruction]:
    """The cell's pool by id.

    Empty if its file is gone: the chosen instructions are in the records anyway.
    """
    try:
        config = INSTRUCTIONS.validate(cell.config.get("instructions") or {"kind": "default"})
        pool = INSTRUCTIONS.build(config)
    except UserError:
        return {}
    return {one.id: one for one in (*pool.instructions, *pool.others)}


def _applicability_reasons(folder: Path) -> dict[tuple[str, int, str], str]:
    """The judge's reasons by (session, turn, instruction), from the journal, because records leave them out.

    Empty if the journal is gone or cannot be read.
    """
    found: dict[tuple[str, int, str], str] = {}
    for session, name, value in read_values(folder / "journal.db", "applicability"):
        turn, _, instruction = name.split("/", 2)
        found[session, int(turn), instruction] = str(json.loads(value).get("reason", ""))
    return found


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
            one = turn.instruction
            chosen = one is not None and one.id == candidate.id
            instruction = known.get(candidate.id)
            if one is not None and chosen:
                instruction = Instruction(one.id, one.text, one.scope, one.change)
            if instruction is None:
                unknown += 1
                continue
            judged = turn.adherence if chosen and turn.code is not None else None
            adherence = (judged.verdict, judged.by, judged.reason) if judged else (None, "", "")
            found.append(
                AuditDecision(
                    session.cell_id, session.model, cell.dataset, session.task_id, turn.turn, instruction,
                    before, turn.code if judged else None,
                    candidate.applicable, candidate.by,
                    reasons.get((session.session_id, turn.turn, candidate.id), ""), *adherence,
                )
            )  # fmt: skip
        before = turn.code or before
    return found, unknown
