"""What people label of the judge's decisions on instructions: does each apply, and was it followed?

One sample can serve both questions, or each question has a sample of its own (paper, section IV-D): only about half of
all decisions were followed by a change that was judged, so that a single sample contains few of these.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord
from codechat.base.seeding import generator
from codechat.base.template import counted
from codechat.report.audit.kinds import (
    DEFAULT,
    UNDECIDED,
    WORDS,
    Drawn,
    Kind,
    Row,
    Stratum,
    draw_by_stratum,
    kinds,
    register,
    shuffled,
    whole,
)
from codechat.report.comparison import LoadedCell
from codechat.report.loading import Options, content_notes, load_cells
from codechat.run.journal import read_values
from codechat.studies.refine.audit_allocation import Group, allocation
from codechat.studies.refine.audit_people import (
    ADHERENCE,
    APPLICABILITY,
    POPULATION,
    judge_of,
    measures_adherence,
    population_json,
    read_people,
    with_labels,
)
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.judge_hybrid import DISAGREES

DECIDED = {word: value for value, word in WORDS.items()}


class _Instructions(Kind):
    """Decisions on instructions; a row has the code before the turn, and after it if the change was judged.

    `counts_for` is the question that a decision was drawn for. Draws for the correction of adherence have the verdicts
    in other proportions than the cells.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        place = ("sample", "dataset", "task_id", "turn", "instruction_id", "scope", "change", "instruction")
        labels = ("applicable", "adherence", "note", "annotator", "counts_for")
        judged = ("judge_applicable", "judge", "judge_reason", "judge_adherence", "adherence_judge", "adherence_reason")
        return (*place, *labels, *judged, "cell_id")

    @property
    def wording(self) -> str:
        return "instruction"

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "n": "decisions to draw for both questions at once (default 100)",
            "applicability": "instead of n: decisions to draw for applicability alone (the paper: 100)",
            "adherence": "instead of n: judged changes to draw for adherence, apart from those (the paper: 100)",
            "correction": "instead of n: judged changes to draw by which `report … audit=DIR` corrects adherence best",
            "pilot": "with correction: the folder of an earlier audit, whose labels say how often the judge errs",
        }

    def concerns(self, cell: LoadedCell) -> bool:
        """Whether a cell has a rate of adherence, which labels can correct."""
        return measures_adherence(cell)

    def key(self, columns: Mapping[str, str]) -> str:
        where = [columns["cell_id"], columns["task_id"], int(columns["turn"]), columns["instruction_id"]]
        adherence = columns["judge_adherence"] or None
        judged = [DECIDED[columns["judge_applicable"]], columns["judge"], adherence, columns["adherence_judge"]]
        drawn = [] if columns["counts_for"] == "both" else [columns["counts_for"]]
        return content_hash([*where, *judged, *drawn])[:16]

    def draw(self, runs: Sequence[Path], values: Mapping[str, str], seed: int, options: Options) -> Drawn:
        """One sample for both questions, one for each question that is named, or one for the correction."""
        sizes = {
            key: whole(key, values[key]) for key in ("n", "applicability", "adherence", "correction") if key in values
        }
        if "correction" in sizes and len(sizes) > 1:
            other = next(key for key in sizes if key != "correction")
            raise UserError(f"correction draws by verdict, {other} by the decisions' shares", "leave one out")
        if "pilot" in values and "correction" not in sizes:
            raise UserError("pilot goes with correction", "such as correction=200 pilot=audit")
        if "n" in sizes and len(sizes) > 1:
            raise UserError(f"n draws for both questions at once, {[*sizes][1]} for one alone", "leave one out")
        if "correction" in sizes:
            sample = draw_for_correction(runs, sizes["correction"], seed, options, values.get("pilot"))
        elif not sizes or "n" in sizes:
            sample = draw_sample(runs, sizes.get("n", 100), seed)
        else:
            sample = draw_apart(runs, sizes.get("applicability", 0), sizes.get("adherence", 0), seed)
        found = sample.population
        files = {POPULATION: population_json(found.cells, options)}
        return Drawn(sample.rows, _summary(sample), tuple(content_notes(found.cells)), files)

    def correct(
        self, cells: Sequence[LoadedCell], folder: Path, options: Options
    ) -> tuple[list[LoadedCell], Sequence[str]]:
        people = read_people(folder, cells, options)
        found = with_labels(cells, people, options)
        missed = [f"Adherence of {cell.label} on {cell.dataset} is not corrected: {cell.labels}." for cell in found
                  if isinstance(cell.labels, str)]  # fmt: skip
        return found, [*people.notes, *missed]


DECISIONS = _Instructions(
    DEFAULT,
    one="decision on an instruction",
    questions=(APPLICABILITY, ADHERENCE),
    groups=("scope", "change"),
    ask="1. Does the instruction apply to this code?",
    disputed=DISAGREES,
)
register(DECISIONS)


@dataclass(frozen=True, slots=True)
class Population:
    """All decisions in a fixed order, the number of candidates whose text is unknown, and the cells."""

    decisions: list[Row]
    unknown: int
    cells: tuple[LoadedCell, ...]

    @property
    def judged(self) -> list[Row]:
        """The decisions that were followed by a judged change."""
        return [row for row in self.decisions if row["judge_adherence"]]


@dataclass(frozen=True, slots=True)
class Sample:
    """The drawn decisions in random order, and those that they were drawn from."""

    rows: tuple[Row, ...]
    population: Population


def draw_sample(runs: Sequence[Path], size: int, seed: int) -> Sample:
    """Draw `size` decisions, each of which counts for every question that the judges answered.

    They come from all completed sessions of the cells, each stratum in proportion; the result is the same for any
    order of the runs.

    Raises `UserError` if there are no cells, or no decisions.
    """
    found = _population_of(runs)
    return Sample(tuple(shuffled(_fitting(found, size, seed), seed)), found)


def draw_apart(runs: Sequence[Path], applicability: int, adherence: int, seed: int) -> Sample:
    """Draw decisions about applicability, and apart from them judged changes, in these numbers (paper, IV-D).

    Each draw is stratified as in `draw_sample`, the second by the judge of adherence. A decision that both draws
    contain counts for both.

    Raises `UserError` if there are no cells, or nothing to draw from.
    """
    found = _population_of(runs)
    judged = found.judged
    if adherence and not judged:
        raise UserError("the runs hold no judgement of adherence to draw from", "leave adherence=… out")
    fits = _fitting(found, applicability, seed)
    strata = [(row["scope"], row["change"], row["adherence_judge"]) for row in judged]
    followed = {row["sample"] for row in draw_by_stratum(judged, strata, adherence, seed, "audit/adherence")}
    both = {row["sample"] for row in fits}
    drawn = [row if row["sample"] in followed else _without_change(row) for row in fits]
    drawn += [_drawn_for(row, "adherence") for row in judged if row["sample"] in followed - both]
    return Sample(tuple(shuffled(drawn, seed)), found)


def draw_for_correction(runs: Sequence[Path], size: int, seed: int, options: Options, pilot: str | None) -> Sample:
    """Draw `size` judged changes, equally many for each of the cells' judges, by verdict and scope (`allocation`).

    `pilot` is the folder of an earlier audit, by whose labels the number for each verdict and scope is chosen.

    Raises `UserError` if there are no cells, or nothing to draw from.
    """
    pilots = read_people(Path(pilot), load_cells(runs), options).by_judge if pilot is not None else {}
    found = _population_of(runs)
    names = {cell.cell_id: judge_of(cell, options) for cell in found.cells}
    groups: dict[str, dict[Group, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in found.judged:
        if row["judge_adherence"] != UNDECIDED:
            groups[names[row["cell_id"]]][Group(row["scope"], row["judge_adherence"] == "adhered")].append(row)
    if not groups:
        raise UserError(
            "the runs hold no judgement of adherence to draw from", "give cells whose turns have instructions"
        )
    drawn: list[Row] = []
    for place, (judge, own) in enumerate(sorted(groups.items())):
        number = size // len(groups) + (place < size % len(groups))
        counts = allocation({group: len(rows) for group, rows in sorted(own.items())}, number, pilots.get(judge))
        for group, count in counts.items():
            luck = generator(seed, f"{judge}/{group.scope}/{group.adhered}", "audit/correction")
            drawn += [_drawn_for(row, "correction") for row in luck.sample(own[group], count)]
    return Sample(tuple(shuffled(drawn, seed)), found)


def _fitting(found: Population, size: int, seed: int) -> list[Row]:
    """Decisions on applicability, by scope, change and judge."""
    strata: list[Stratum] = [(row["scope"], row["change"], row["judge"]) for row in found.decisions]
    return draw_by_stratum(found.decisions, strata, size, seed, "audit/sample")


def _drawn_for(row: Row, question: str) -> Row:
    return DECISIONS.row(row.texts, **{**row.columns, "counts_for": question})


def _without_change(row: Row) -> Row:
    """Of a decision that was drawn for applicability alone, the change that followed is not shown."""
    gone = {"judge_adherence": "", "adherence_judge": "", "adherence_reason": "", "counts_for": "applicability"}
    return DECISIONS.row({**row.texts, "code_after": ""}, **{**row.columns, **gone})


def _summary(sample: Sample) -> str:
    """How many decisions were drawn, of how many."""
    found = sample.population
    left = f"\n{found.unknown} were left out: the pool no longer has their instruction" if found.unknown else ""
    counts = Counter(row["counts_for"] for row in sample.rows)
    of, judged = counted(len(found.decisions), "decision"), counted(len(found.judged), "judged change")
    if counts["correction"]:
        return f"drawn: {counts['correction']} of {judged}, to correct adherence{left}"
    if not counts["applicability"] and not counts["adherence"]:
        number = sum(bool(row["judge_adherence"]) for row in sample.rows)
        return f"{len(sample.rows)} of {of} drawn, {number} with an adherence judgement{left}"
    both = counts["both"]
    drawn = [(counts["applicability"] + both, of, "applicability"), (counts["adherence"] + both, judged, "adherence")]
    text = "drawn: " + ", ".join(f"{number} of {all_} for {name}" for number, all_, name in drawn if number)
    return text + (f"; {counted(both, 'row')} in both draws, to be labelled once" if both else "") + left


def _population_of(runs: Sequence[Path]) -> Population:
    decisions: list[Row] = []
    unknown = 0
    cells = load_cells(runs)
    for cell in cells:
        known = _instructions_of(cell)
        reasons = _applicability_reasons(cell.folder)
        for session in cell.sessions():
            for row in _decisions_of(cell, session, known, reasons) if session.status == "completed" else ():
                if row is None:
                    unknown += 1
                else:
                    decisions.append(row)
    if not decisions:
        others = (f"of {' and '.join(kind.protocols)}, {kind.name}=100 draws {kind.several}"
                  for kind in kinds().values() if kind.protocols)  # fmt: skip
        remedy = "; ".join(("give cells whose turns have instructions, after the first turn", *others))
        raise UserError("the runs hold no decision of a judge about an instruction to draw from", remedy)
    decisions.sort(key=lambda row: (row["cell_id"], row["task_id"], int(row["turn"]), row["instruction_id"]))
    return Population(decisions, unknown, cells)


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
) -> Iterator[Row | None]:
    """The session's decisions, None for one about an instruction whose text is unknown."""
    before = ""
    for turn in session.turns:
        for candidate in turn.candidates:
            chosen = turn.instruction if turn.instruction and turn.instruction.id == candidate.id else None
            asked = chosen or known.get(candidate.id)
            if asked is None:
                yield None
                continue
            judged = turn.adherence if chosen and turn.code is not None else None
            yield DECISIONS.row(
                {"code_before": before, "code_after": (turn.code or "") if judged else ""},
                dataset=cell.dataset, task_id=session.task_id, turn=turn.turn, cell_id=session.cell_id,
                instruction_id=asked.id, scope=asked.scope, change=asked.change, instruction=asked.text,
                counts_for="both", judge_applicable=WORDS[candidate.applicable], judge=candidate.by,
                judge_reason=reasons.get((session.session_id, turn.turn, candidate.id), ""),
                judge_adherence=judged.verdict if judged else "", adherence_judge=judged.by if judged else "",
                adherence_reason=judged.reason if judged else "",
            )  # fmt: skip
        before = turn.code or before
