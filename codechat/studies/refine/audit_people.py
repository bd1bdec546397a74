"""People's labels, read from the folder of a labelled sample, to correct adherence.

`population.json` in that folder holds the judge of every cell of the draw, and how many changes were judged adhered, by
task and scope. So the number of decisions that each label represents is known even without the cells.
"""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import JUDGE_TAG, tags_in
from codechat.report.audit.kinds import Question, Row, read_labels
from codechat.report.comparison import LoadedCell
from codechat.report.loading import Options, settings_text
from codechat.report.metrics.powered import JudgeLabels, Label

APPLICABILITY = Question("applicability", "applicable", drawn=("both", "applicability"))
ADHERENCE = Question(
    "adherence", "adherence", ("adhered", "violated"), "adherence_judge", "adherence_reason",
    after="applicable", otherwise="inapplicable", drawn=("both", "adherence", "correction"),
)  # fmt: skip
OTHER_QUESTIONS = {"applicability", "constraint", "votes", "reference"}  # of a judge's options
POPULATION = "population.json"
Place = tuple[str, str, str]  # cell, task and turn


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


class Population(BaseModel):
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
    population = Population(cells={name: cell for name, cell in found.items() if cell.judged})
    return json.dumps(population.model_dump(mode="json"), sort_keys=True, separators=(",", ":")) + "\n"


def _recorded(cell: LoadedCell, options: Options) -> JudgedCell:
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for session in cell.sessions():
        for turn in session.turns if session.status == "completed" else ():
            judged, asked = turn.adherence, turn.instruction
            if judged is not None and asked is not None and turn.code is not None and judged.verdict != "undecided":
                by_scope = counts.setdefault(session.task_id, {})
                hits, total = by_scope.get(asked.scope, (0, 0))
                by_scope[asked.scope] = (hits + (judged.verdict == "adhered"), total + 1)
    return JudgedCell(dataset=cell.source, judge=judge_of(cell, options), named=cell.judge, judged=counts)


@dataclass(frozen=True)
class People:
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
        raise UserError(
            f"{path} holds no label of adherence",
            "label what `codechat audit export … correction=100` drew, and put the file into the folder",
        )
    known = _population(path, {row["cell_id"] for row in rows}, cells, options)
    missing = {cell for cell, _, _ in said} - known.keys()
    if missing:
        raise UserError(
            f"{path} labels cells of which nothing else is known: {', '.join(sorted(missing))[:80]}",
            f"give these cells too (runs=DIR,DIR), or the {POPULATION} that `audit export` wrote with the sample",
        )
    return _people(said, drawn, known)


def _people(said: Mapping[Place, list[float]], drawn: Mapping[Place, Row], known: Mapping[str, JudgedCell]) -> People:
    labels: dict[str, list[Label]] = defaultdict(list)
    for place, values in sorted(said.items()):
        row, cell = drawn[place], known[place[0]]
        scope, task = row["scope"], row["task_id"]
        if scope not in cell.judged.get(task, {}):
            raise UserError(
                f"{POPULATION} knows of no judged change of {task}, which people labelled",
                f"keep the {POPULATION} that was written with the sample",
            )
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
        raise UserError(
            f"there is no folder {path}", "audit=DIR is where people's labels lie, as `audit export` wrote it"
        )
    found = [file for file in sorted(path.glob("*.csv")) if _holds_labels(file)]
    if not found:
        raise UserError(
            f"{path} holds no labels of instructions",
            "audit=DIR is the out=DIR of `codechat audit export`, with the files that people labelled",
        )
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
        return Population.model_validate_json(file.read_bytes()).cells
    except FileNotFoundError:
        parts = [part for cell in cells for part in cell.parts if part.cell_id in labelled]
        return {part.cell_id: _recorded(part, options) for part in parts}
    except (OSError, ValidationError) as error:
        raise UserError(
            f"{file} is damaged: {str(error).splitlines()[0]}", "draw into another folder by the same command"
        ) from error


def measures_adherence(cell: LoadedCell) -> bool:
    """Whether a cell has a rate of adherence, which labels can correct."""
    return cell.measures is not None and cell.measures.have("iar")


def with_labels(cells: Sequence[LoadedCell], people: People, options: Options) -> list[LoadedCell]:
    """The cells; each that measures adherence gets its judge's labels, or the reason why there are none."""
    names = sorted({known.judge for known in people.by_judge.values()})
    found = []
    for cell in cells:
        labels: JudgeLabels | str | None = people.by_judge.get(judge_of(cell.parts[0], options))
        if labels is None:
            labels = f"the labels are of another judge ({', '.join(names)}"
            labels += ", with other options, prompts or rules)" if cell.judge in names else ")"
        found.append(replace(cell, labels=labels) if measures_adherence(cell) else cell)
    return found
