"""What people label of the judge's decisions on instructions: does each apply, and was it followed?

One sample can serve both questions, or each question has its own sample (paper, section IV-D): only about half of all
decisions were followed by a judged change, so a single sample contains few judged changes.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord
from codechat.base.seeding import generator
from codechat.base.template import counted
from codechat.report.audit import kinds
from codechat.report.audit.kinds import DEFAULT, UNDECIDED, WORDS, Drawn, Kind, Row, draw_by_stratum, shuffled
from codechat.report.comparison import LoadedCell
from codechat.report.loading import Options, content_notes, load_cells
from codechat.report.metrics.powered import FEWEST
from codechat.report.metrics.statistics import rate
from codechat.run.journal import read_values
from codechat.studies.refine import audit_people
from codechat.studies.refine.audit_people import ADHERENCE, APPLICABILITY, judge_of, read_people
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.judge_hybrid import DISAGREES

DECIDED = {word: value for value, word in WORDS.items()}
RIGHT = 0.8
"""The share of followed, and of other instructions, that a judge is assumed to decide as people do."""
RAREST = 0.02
"""The smallest share of followed (or not followed) instructions to expect: groups that look sure get labels too."""


class _Instructions(Kind):
    """Decisions on instructions; a row has the code before the turn, and after it if the change was judged.

    `counts_for` is the question of the draw. Draws for the correction have other proportions of verdicts than cells.
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
        }

    def concerns(self, cell: LoadedCell) -> bool:
        return audit_people.measures_adherence(cell)

    def key(self, columns: Mapping[str, str]) -> str:
        where = [columns["cell_id"], columns["task_id"], int(columns["turn"]), columns["instruction_id"]]
        adherence = columns["judge_adherence"] or None
        judged = [DECIDED[columns["judge_applicable"]], columns["judge"], adherence, columns["adherence_judge"]]
        drawn = [] if columns["counts_for"] == "both" else [columns["counts_for"]]
        return content_hash([*where, *judged, *drawn])[:16]

    def draw(self, runs: Sequence[Path], values: Mapping[str, str], seed: int, options: Options) -> Drawn:
        """One sample for both questions, one for each question that is named, or one for the correction."""
        named = [key for key in ("n", "applicability", "adherence", "correction") if key in values]
        sizes = {key: kinds.whole(key, values[key]) for key in named}
        if "correction" in sizes and len(sizes) > 1:
            other = next(key for key in sizes if key != "correction")
            raise UserError(f"correction draws by verdict, {other} by the decisions' shares", "leave one out")
        if "n" in sizes and len(sizes) > 1:
            raise UserError(f"n draws for both questions at once, {[*sizes][1]} for one alone", "leave one out")
        if "correction" in sizes:
            sample = draw_for_correction(runs, sizes["correction"], seed, options)
        elif not sizes or "n" in sizes:
            sample = draw_sample(runs, sizes.get("n", 100), seed)
        else:
            sample = draw_apart(runs, sizes.get("applicability", 0), sizes.get("adherence", 0), seed)
        found = sample.population
        files = {audit_people.POPULATION: audit_people.population_json(found.cells, options)}
        return Drawn(sample.rows, _summary(sample), tuple(content_notes(found.cells)), files)

    def correct(
        self, cells: Sequence[LoadedCell], folder: Path, options: Options
    ) -> tuple[list[LoadedCell], Sequence[str]]:
        people = read_people(folder, cells, options)
        found = audit_people.with_labels(cells, people, options)
        missed = [cell for cell in found if isinstance(cell.labels, str)]
        why = [f"Adherence of {cell.label} on {cell.dataset} is not corrected: {cell.labels}." for cell in missed]
        return found, [*people.notes, *why]


DECISIONS = _Instructions(
    DEFAULT,
    one="decision on an instruction",
    questions=(APPLICABILITY, ADHERENCE),
    groups=("scope", "change"),
    ask="1. Does the instruction apply to this code?",
    disputed=DISAGREES,
)
kinds.register(DECISIONS)


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
    """The drawn decisions in random order, and the population of the draw."""

    rows: tuple[Row, ...]
    population: Population


def draw_sample(runs: Sequence[Path], size: int, seed: int) -> Sample:
    """Draw `size` decisions for all questions, each stratum in proportion. Raises `UserError` without decisions."""
    found = _population_of(runs)
    return Sample(tuple(shuffled(_fitting(found, size, seed), seed)), found)


def draw_apart(runs: Sequence[Path], applicability: int, adherence: int, seed: int) -> Sample:
    """Draw decisions on applicability, and separately judged changes, in these numbers (paper, IV-D).

    Each draw is stratified. A decision in both draws counts for both. Raises `UserError` without decisions.
    """
    found = _population_of(runs)
    judged = found.judged
    if adherence and not judged:
        raise UserError("the runs hold no judgement of adherence to draw from", "leave adherence=… out")
    fits = _fitting(found, applicability, seed)
    strata = [(row["scope"], row["change"], row["adherence_judge"]) for row in judged]
    followed = {row["sample"] for row in draw_by_stratum(judged, strata, adherence, seed, "audit/adherence")}
    both = {row["sample"] for row in fits}
    gone = {"judge_adherence": "", "adherence_judge": "", "adherence_reason": "", "counts_for": "applicability"}
    drawn = [
        row if row["sample"] in followed else DECISIONS.row({**row.texts, "code_after": ""}, **{**row.columns, **gone})
        for row in fits
    ]  # a decision that was drawn for applicability alone does not show the change that followed
    drawn += [_drawn_for(row, "adherence") for row in judged if row["sample"] in followed - both]
    return Sample(tuple(shuffled(drawn, seed)), found)


def draw_for_correction(runs: Sequence[Path], size: int, seed: int, options: Options) -> Sample:
    """Draw `size` judged changes, equally many for each of the cells' judges, by verdict and scope (`allocation`).

    Raises `UserError` if there are no cells, or nothing to draw from.
    """
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
    for place, (judge, by_group) in enumerate(sorted(groups.items())):
        number = size // len(groups) + (place < size % len(groups))
        counts = allocation({group: len(rows) for group, rows in sorted(by_group.items())}, number)
        for group, count in counts.items():
            luck = generator(seed, f"{judge}/{group.scope}/{group.adhered}", "audit/correction")
            drawn += [_drawn_for(row, "correction") for row in luck.sample(by_group[group], count)]
    return Sample(tuple(shuffled(drawn, seed)), found)


class Group(NamedTuple):
    """The decisions of a scope with one verdict."""

    scope: str
    adhered: bool


def allocation(sizes: Mapping[Group, int], number: int) -> dict[Group, int]:
    """The number of labels of each group, `number` in all; `sizes` holds the number of decisions of each group.

    The variance of the corrected share is least if each group gets labels in proportion to its size times the standard
    deviation of people's answers in it (Neyman, 1934). Every group gets the labels that an estimate of its scope needs,
    if there are decisions and labels enough.
    """
    wanted = {group: size * _deviation(group, sizes) for group, size in sizes.items()}
    least = min(FEWEST, number // max(1, len(sizes)))
    found = {group: min(size, least) for group, size in sizes.items()}
    while (left := min(number, sum(sizes.values())) - sum(found.values())) > 0:
        given = {group: found[group] for group in sizes if found[group] < sizes[group]}
        whole = sum(wanted[group] for group in given)
        target = {group: wanted[group] / whole * (left + sum(given.values())) for group in given}
        behind = {group: max(0.0, target[group] - count) for group, count in given.items()}
        shares = {group: left * lack / sum(behind.values()) for group, lack in behind.items()}
        more = {group: min(sizes[group] - found[group], math.floor(share)) for group, share in shares.items()}
        if not any(more.values()):
            order = sorted(given, key=lambda group: (math.floor(shares[group]) - shares[group], group))
            more = dict.fromkeys(order[:left], 1)
        found = {group: count + more.get(group, 0) for group, count in found.items()}
    return found


def _deviation(group: Group, sizes: Mapping[Group, int]) -> float:
    """The standard deviation of people's answers in a group, for a judge that is right in `RIGHT` of all cases."""

    def likely(share: float) -> float:
        return min(1 - RAREST, max(RAREST, share))

    size = {verdict: sizes.get(Group(group.scope, verdict), 0) for verdict in (True, False)}
    adhered = rate(size[True], sum(size.values())) or 0.0
    followed = likely((adhered + RIGHT - 1) / (2 * RIGHT - 1))
    says = RIGHT if group.adhered else 1 - RIGHT
    share = likely(says * followed / (says * followed + (1 - says) * (1 - followed)))
    return math.sqrt(share * (1 - share))


def _fitting(found: Population, size: int, seed: int) -> list[Row]:
    strata: list[kinds.Stratum] = [(row["scope"], row["change"], row["judge"]) for row in found.decisions]
    return draw_by_stratum(found.decisions, strata, size, seed, "audit/sample")


def _drawn_for(row: Row, question: str) -> Row:
    return DECISIONS.row(row.texts, **{**row.columns, "counts_for": question})


def _summary(sample: Sample) -> str:
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
                unknown += row is None
                decisions += [] if row is None else [row]
    if not decisions:
        with_protocols = (kind for kind in kinds.kinds().values() if kind.protocols)
        others = (f"of {' and '.join(one.protocols)}, {one.name}=100 draws {one.several}" for one in with_protocols)
        remedy = "; ".join(("give cells whose turns have instructions, after the first turn", *others))
        raise UserError("the runs hold no decision of a judge about an instruction to draw from", remedy)
    decisions.sort(key=lambda row: (row["cell_id"], row["task_id"], int(row["turn"]), row["instruction_id"]))
    return Population(decisions, unknown, cells)


def _instructions_of(cell: LoadedCell) -> dict[str, Instruction]:
    """The cell's pool by id; empty if its file is gone, since records hold the chosen instructions."""
    try:
        config = INSTRUCTIONS.validate(cell.config.get("instructions") or {"kind": "default"})
        pool = INSTRUCTIONS.build(config)
    except UserError:
        return {}
    return {one.id: one for one in (*pool.instructions, *pool.others)}


def _applicability_reasons(folder: Path) -> dict[tuple[str, int, str], str]:
    """The reasons by (session, turn, instruction), which only the journal holds; empty without a journal."""
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
    """The session's decisions; None for an instruction whose text is unknown."""
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
