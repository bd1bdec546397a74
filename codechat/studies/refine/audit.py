"""What people label of the judge's decisions on instructions: does each apply, and was it followed?

One sample can serve both questions, or each question has its own sample (paper, section IV-D): only about half of all
decisions were followed by a judged change, so a single sample contains few judged changes.

The labels correct adherence. `population.json` next to a sample holds the judge of every cell of the draw, and how many
changes were judged adhered, by task and scope: the number of decisions that each label represents.
"""

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import JUDGE_TAG, SessionRecord, tags_in
from codechat.base.seeding import generator
from codechat.base.template import counted
from codechat.base.texts import read_json
from codechat.report.audit import kinds
from codechat.report.audit.kinds import (
    DEFAULT,
    UNDECIDED,
    WORDS,
    Drawn,
    Kind,
    Question,
    Row,
    draw_by_stratum,
    read_labels,
    shuffled,
)
from codechat.report.comparison import JudgeLabels, Label, LoadedCell
from codechat.report.loading import Options, content_notes, load_cells, settings_text
from codechat.report.metrics.statistics import rate
from codechat.run.journal import read_values
from codechat.studies.refine.chapter.powered import FEWEST
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.judge_hybrid import DISAGREES

APPLICABILITY = Question("applicability", "applicable", drawn=("both", "applicability"))
ADHERENCE = Question(
    "adherence", "adherence", ("adhered", "violated"), "adherence_judge", "adherence_reason",
    after="applicable", otherwise="inapplicable", drawn=("both", "adherence", "correction"),
)  # fmt: skip
OTHER_QUESTIONS = {"applicability", "constraint", "votes", "reference"}  # of a judge's options
POPULATION = "population.json"
Place = tuple[str, str, str]  # cell, task and turn
DECIDED = {word: value for value, word in WORDS.items()}
RIGHT = 0.8
"""The share of followed, and of other instructions, that a judge is assumed to decide as people do."""
RAREST = 0.02
"""The smallest share of followed (or not followed) instructions to expect: groups that look sure get labels too."""


class JudgedCell(BaseModel):
    """A cell that decisions were drawn from.

    `dataset` is the content's hash, or the name if the hash is unknown. `judge` is a hash of everything that can change
    a verdict, `named` the judge in the configuration. `judged` holds (adhered, judged) changes by task and scope.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str
    judge: str
    named: str
    judged: dict[str, dict[str, tuple[int, int]]]


class PopulationFile(BaseModel):
    """The content of population.json: the cells by their ids."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cells: dict[str, JudgedCell]


def judge_of(cell: LoadedCell, options: Options) -> str:
    """A hash of everything that can change a cell's verdicts on adherence."""
    settings = settings_text(
        cell.config, options, lambda key: key.startswith("judge.") and not OTHER_QUESTIONS & {*key.split(".")}
    )
    return content_hash([settings, tags_in(cell.folder).get(JUDGE_TAG, "")])[:16]


def population_json(cells: Iterable[LoadedCell], options: Options) -> str:
    """The content of population.json: the cells that have a judged change."""
    found = {cell.cell_id: _recorded(cell, options) for cell in cells}
    file = PopulationFile(cells={name: cell for name, cell in found.items() if cell.judged})
    return json.dumps(file.model_dump(mode="json"), sort_keys=True, separators=(",", ":")) + "\n"


def _recorded(cell: LoadedCell, options: Options) -> JudgedCell:
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for session in cell.sessions():
        for turn in session.turns if session.status == "completed" else ():
            for asked in turn.asked if turn.code is not None else ():
                judged = asked.adherence
                if judged is None or judged.verdict == "undecided":
                    continue
                by_scope = counts.setdefault(session.task_id, {})
                hits, total = by_scope.get(asked.scope, (0, 0))
                by_scope[asked.scope] = (hits + (judged.verdict == "adhered"), total + 1)
    return JudgedCell(dataset=cell.source, judge=judge_of(cell, options), named=cell.judge, judged=counts)


class People(NamedTuple):
    """The labels by judge, and remarks about the cells and decisions that they rest on."""

    by_judge: Mapping[str, JudgeLabels]
    notes: tuple[str, ...]


def read_people(path: Path, cells: Sequence[LoadedCell], options: Options) -> People:
    """The labels in a folder or file. Several people's labels of one change count by their mean. Raises `UserError`."""
    rows = [row for file in _files(path) for _, row in read_labels(file).values()]
    said: dict[Place, list[float]] = defaultdict(list)
    drawn: dict[Place, Row] = {}
    for row in rows:
        place = (row["cell_id"], row["task_id"], row["turn"])
        answer = row.answer(ADHERENCE)
        if answer and row["judge_adherence"] in ADHERENCE.words:
            said[place].append(float(answer == "adhered"))
            drawn[place] = row
    if not said:
        remedy = "label what `codechat audit export … correction=100` drew, and put the file into the folder"
        raise UserError(f"{path} holds no label of adherence", remedy)
    known = _population(path, {row["cell_id"] for row in rows}, cells, options)
    missing = {cell for cell, _, _ in said} - known.keys()
    if missing:
        message = f"{path} labels cells of which nothing else is known: {', '.join(sorted(missing))[:80]}"
        raise UserError(message, f"give these cells too (runs=DIR,DIR), or the {POPULATION} of the sample")
    return _people(said, drawn, known)


def _people(said: Mapping[Place, list[float]], drawn: Mapping[Place, Row], known: Mapping[str, JudgedCell]) -> People:
    labels: dict[str, list[Label]] = defaultdict(list)
    for place, values in sorted(said.items()):
        row, cell = drawn[place], known[place[0]]
        scope, task = row["scope"], row["task_id"]
        if scope not in cell.judged.get(task, {}):
            message = f"{POPULATION} knows of no judged change of {task}, which people labelled"
            raise UserError(message, f"keep the {POPULATION} that was written with the sample")
        adhered = row["judge_adherence"] == "adhered"
        labels[cell.judge].append(Label(task, scope, adhered, fmean(values), row["cell_id"]))
    found = {}
    for judge, labelled in labels.items():
        members = [cell for cell in known.values() if cell.judge == judge]
        sizes: Counter[tuple[str, bool]] = Counter()
        for scope, (hits, total) in (
            item for cell in members for task in cell.judged.values() for item in task.items()
        ):
            sizes.update({(scope, True): hits, (scope, False): total - hits})
        found[judge] = JudgeLabels(members[0].named, dict(sizes), tuple(labelled))
    split = sum(0 < fmean(values) < 1 for values in said.values())
    note = f"People disagree on {split} of {len(said)} labelled changes: each counts by the mean of its labels."
    return People(found, (note,) if split else ())


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"there is no folder {path}", "audit=DIR is the out=DIR of `codechat audit export`")
    found = [file for file in sorted(path.glob("*.csv")) if _holds_labels(file)]
    if not found:
        remedy = "audit=DIR is the out=DIR of `codechat audit export`, with the files that people labelled"
        raise UserError(f"{path} holds no labels of instructions", remedy)
    return found


def _holds_labels(file: Path) -> bool:
    """Whether a file holds labelled decisions: a folder may hold other tables too."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            header = stream.readline()
    except (OSError, UnicodeDecodeError):
        return False
    names = next(csv.reader([header], delimiter=";" if header.count(";") > header.count(",") else ","), [])
    return {"sample", "judge_adherence"} <= {*names}


def _population(
    path: Path, labelled: set[str], cells: Sequence[LoadedCell], options: Options
) -> Mapping[str, JudgedCell]:
    """The cells that the sample was drawn from: by population.json, else the labelled cells at hand."""
    file = (path if path.is_dir() else path.parent) / POPULATION
    try:
        return PopulationFile.model_validate_json(file.read_bytes()).cells
    except FileNotFoundError:
        parts = [part for cell in cells for part in cell.parts if part.cell_id in labelled]
        return {part.cell_id: _recorded(part, options) for part in parts}
    except (OSError, ValidationError) as error:
        message = f"{file} is damaged: {str(error).splitlines()[0]}"
        raise UserError(message, "draw into another folder by the same command") from error


def with_labels(cells: Sequence[LoadedCell], people: People, options: Options) -> list[LoadedCell]:
    """The cells; each that measures adherence gets its judge's labels, or the reason why there are none."""
    names = sorted({known.judge for known in people.by_judge.values()})
    found = []
    for cell in cells:
        labels: JudgeLabels | str | None = people.by_judge.get(judge_of(cell.parts[0], options))
        if labels is None:
            labels = f"the labels are of another judge ({', '.join(names)}"
            labels += ", with other options, prompts or rules)" if cell.judge in names else ")"
        found.append(replace(cell, labels=labels) if DECISIONS.concerns(cell) else cell)
    return found


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
        return cell.measures is not None and cell.measures.have("iar")

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
        files = {POPULATION: population_json(found.cells, options)}
        return Drawn(sample.rows, _summary(sample), tuple(content_notes(found.cells)), files)

    def correct(
        self, cells: Sequence[LoadedCell], folder: Path, options: Options
    ) -> tuple[list[LoadedCell], Sequence[str]]:
        people = read_people(folder, cells, options)
        found = with_labels(cells, people, options)
        missed = [cell for cell in found if isinstance(cell.labels, str)]
        why = [f"Adherence of {cell.label} on {cell.dataset} is not corrected: {cell.labels}." for cell in missed]
        return found, [*people.notes, *why]


DECISIONS = _Instructions(
    DEFAULT, one="decision on an instruction", questions=(APPLICABILITY, ADHERENCE), groups=("scope", "change"),
    ask="1. Does the instruction apply to this code?", disputed=DISAGREES,
)  # fmt: skip
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


class Sample(NamedTuple):
    """The drawn decisions in random order, and the population of the draw."""

    rows: tuple[Row, ...]
    population: Population


def draw_sample(runs: Sequence[Path], size: int, seed: int) -> Sample:
    """Draw `size` decisions for all questions, each stratum in proportion. Raises `UserError` without decisions."""
    found = _population_of(runs)
    return Sample(tuple(shuffled(_fitting(found, size, seed), seed)), found)


def draw_apart(runs: Sequence[Path], applicability: int, adherence: int, seed: int) -> Sample:
    """Draw decisions on applicability and, separately, judged changes, each draw stratified (paper, IV-D)."""
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
    """Draw `size` judged changes, equally many per judge, by verdict and scope. Raises `UserError` without any."""
    found = _population_of(runs)
    names = {cell.cell_id: judge_of(cell, options) for cell in found.cells}
    groups: dict[str, dict[Group, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in found.judged:
        if row["judge_adherence"] != UNDECIDED:
            groups[names[row["cell_id"]]][Group(row["scope"], row["judge_adherence"] == "adhered")].append(row)
    if not groups:
        raise UserError("the runs hold no judgement of adherence to draw from", "give cells of refinements")
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
        found[session, int(turn), instruction] = str(read_json(value).get("reason", ""))
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
            chosen = next((each for each in turn.asked if each.id == candidate.id), None)
            asked = chosen or known.get(candidate.id)
            if asked is None:
                yield None
                continue
            judged = chosen.adherence if chosen and turn.code is not None else None
            yield DECISIONS.row(
                {"code_before": before, "code_after": (turn.code or "") if judged else ""},
                dataset=cell.dataset, task_id=session.task_id, turn=turn.turn, cell_id=session.cell_id,
                instruction_id=asked.id, scope=asked.scope, change=asked.change, instruction=asked.text,
                counts_for="both", judge_applicable=WORDS[candidate.applicable], judge=candidate.by,
                judge_reason=reasons.get((session.session_id, turn.turn, candidate.id), ""),
                judge_adherence=judged.verdict if judged else "", adherence_judge=judged.by if judged else "",
                adherence_reason=judged.reason if judged else "",
            )  # fmt: skip
        before = before if turn.rolled_back else turn.code or before
