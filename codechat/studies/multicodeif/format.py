"""MultiCodeIF's published outputs, one file per mode and model, as sessions of `repair` or `levels`.

The turn of a reply is the round, or the level. The first replies of self-repair, and replies to first levels that a
file of chains lacks, are in the single-level file of the same model: the first level of a chain is a single task.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.config import original_option
from codechat.base.domain import Failure, Message
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import counted
from codechat.datasets import DATASETS
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.reading.lines import read_values
from codechat.studies.multicodeif.constraints.published import extracted
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord, OfficialTurn, all_met, outcome_of
from codechat.studies.multicodeif.rows import ConstrainedTask, Level

NAME = re.compile(r"multicodeif_(?P<mode>single|selfrepair|multi)_(?P<model>.+?)(?P<ending>\.jsonl(?:\.gz)?)")
ONE = "import one mode of one model at a time"
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
    reference_all: bool | None = None

    def contradiction(self) -> str:
        """Two published verdicts of the reply that contradict each other; empty if none do."""
        official, reference = self.official_verdict, self.reference_verdict
        if None not in (official, reference) and official != reference:
            return f"official_verdict is {official}, and reference_verdict {reference}"
        met = None if self.reference_verdicts is None else all(self.reference_verdicts)
        if None not in (met, self.reference_all) and met != self.reference_all:
            return f"reference_all is {self.reference_all}, and its verdicts say {met}"
        return ""


Tasks = Mapping[str, ConstrainedTask]


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
        """The verdict on each constraint: the official one, or else the one of the published validators."""
        row = self.row
        if row.reference_verdicts is not None:
            return list(row.reference_verdicts)
        return [row.reference_verdict if row.official_verdict is None else row.official_verdict]

    @property
    def met(self) -> bool | None:
        """Whether all constraints are met by the published verdicts."""
        return all_met(self.verdicts)


def read_lines(path: Path, model: str | None = None) -> list[Line]:
    """The replies of a file, all to tasks or all to levels, and of one model: the given one, if any.

    Raises `UserError` that names the first wrong line.
    """
    lines: list[Line] = []
    for place, row in read_values(path, PublishedReply.model_validate, REMEDY, "source"):
        if (row.round is None) == (row.level is None) or (row.level is None) != (row.chain is None):
            raise UserError(f"{place}: a reply has either a round, or a level and a chain", REMEDY)
        if found := row.contradiction():
            raise UserError(f"{place}: {found}", "correct the line, or leave one of the two out")
        line = Line(place, row)
        if lines and (lines[0].row.level is None) != (row.level is None):
            raise UserError(f"{place}: replies to levels and to tasks are in one file", ONE)
        model = row.model if model is None else model
        if model != row.model:
            raise UserError(f"{place}: a reply of {row.model} among replies of {model}", ONE)
        lines.append(line)
    if not lines:
        raise UserError(f"{path} holds no reply", REMEDY)
    return lines


OTHER = "tasks=FILE names the task file that the replies were made from"


class MultiCodeIFImport(ImportConfig):
    """Options of `multicodeif`."""

    format: Literal["multicodeif"] = original_option("multicodeif", "what the source is")
    missing: Literal["error", "empty"] = original_option(
        "error", "a reply that the source lacks: its session is errored, or it counts as an empty one, as in the paper"
    )


@FORMATS.register("multicodeif", MultiCodeIFImport)
def multicodeif(config: MultiCodeIFImport) -> Imported:
    """MultiCodeIF's published outputs, one mode of one model. Raises `UserError` naming the first wrong line."""
    source, first = Path(config.source), list[Path]()
    named = NAME.fullmatch(source.name)
    if named and named["mode"] != "single":  # the single-level replies of the same model
        single = source.with_name(f"multicodeif_single_{named['model']}{named['ending']}")
        first = [single] if single.is_file() else []
    lines = read_lines(source)
    singles = [line for path in first for line in read_lines(path, lines[0].row.model)]
    task_file = Path(config.tasks) if config.tasks else _find_tasks(source.parent)
    chained = lines[0].row.level is not None
    tasks = _tasks(task_file, "single") if singles or not chained else {}
    if chained:
        chains = _tasks(task_file, "levels")
        lines, tasks = [*_first_levels(lines, singles, chains, tasks), *lines], chains
    else:
        wanted = {line.task for line in lines} - {line.task for line in lines if line.turn == 0}
        lines = [*(line for line in singles if line.turn == 0 and line.task in wanted), *lines]
    sessions = _by_task(lines, tasks, task_file)
    repeated = [] if chained else _repeat_rounds(sessions)
    turns = {line.turn for own in sessions.values() for line in own.values()}
    model = config.model or lines[-1].row.model or (named["model"] if named else "imported")
    own_code: list[str] = []
    protocol = "levels" if chained else "repair"
    made = [
        _Session(task, sessions[name], protocol, model, own_code).record(turns, config.missing)
        for name, task in tasks.items()
        if name in sessions
    ]
    if own_code:
        repeated.append(
            f"{counted(len(own_code), 'reply has', 'replies have')} no prompt, but other code than the round before: "
            f"taken as published, not as carried over; the first is {own_code[0]}"
        )
    return Imported(made, [*first, task_file], [*repeated, *_remarks(lines)])


def _find_tasks(folder: Path) -> Path:
    paths = [path for path in sorted(folder.glob("multicodeif_tasks.jsonl*")) if path.is_file()]
    if len(paths) != 1:
        count = "more than one" if paths else "no"
        raise UserError(f"{count} task file multicodeif_tasks.jsonl is in {folder}", OTHER)
    return paths[0]


def _tasks(path: Path, part: str) -> dict[str, ConstrainedTask]:
    config = DATASETS.validate({"kind": "multicodeif", "path": str(path), "part": part})
    return {task.task_id: task for task in DATASETS.build(config).tasks if isinstance(task, ConstrainedTask)}


def _first_levels(lines: Sequence[Line], singles: Sequence[Line], chains: Tasks, tasks: Tasks) -> Iterable[Line]:
    """The single-level replies to the first levels of the chains whose first reply is not in the lines."""
    have = {line.task for line in lines if line.turn == 0}
    replies = {line.task: line for line in singles if line.turn == 0}
    alike = {(task.prompt, task.levels[0].constraints): name for name, task in tasks.items()}
    for name in dict.fromkeys(line.task for line in lines):
        level = chains[name].levels[0] if name in chains else None
        single = replies.get(alike.get((level.prompt, level.constraints), "")) if level else None
        if single and name not in have:
            chain = int(name.removeprefix("chain/"))
            yield replace(single, row=single.row.model_copy(update={"round": None, "level": "L1", "chain": chain}))


def _by_task(lines: Iterable[Line], tasks: Tasks, task_file: Path) -> dict[str, dict[int, Line]]:
    """The replies by task and turn. Raises `UserError` for a reply that fits no task, and for a second one."""
    found: dict[str, dict[int, Line]] = defaultdict(dict)
    for line in lines:
        task = tasks.get(line.task)
        if task is None:
            raise UserError(f"{line.place}: there is no task {line.task} in {task_file}", OTHER)
        level = _level(task, line.turn)
        if len(line.verdicts) != len(level.constraints):
            given = f"{counted(len(line.verdicts), 'verdict')} on {counted(len(level.constraints), 'constraint')}"
            raise UserError(f"{line.place}: {given} of {line.task}", OTHER)
        if line.turn in found[line.task]:
            raise UserError(f"{line.place}: a second reply for turn {line.turn} of {line.task}", ONE)
        found[line.task][line.turn] = line
    return found


def _level(task: ConstrainedTask, turn: int) -> Level:
    return task.levels[min(turn, len(task.levels) - 1)]


def _repeat_rounds(sessions: Mapping[str, dict[int, Line]]) -> list[str]:
    """Fill rounds that the source lacks altogether because they repeat the round before; returns remarks on them.

    A round repeats the one before if every reply of the next round reports, as its previous verdict, the verdict of the
    last round present.
    """
    present = sorted({turn for own in sessions.values() for turn in own})
    remarks = []
    for number in range(1, max(present)):
        if number in present:
            continue
        after = min(turn for turn in present if turn > number)
        whole = [own for own in sessions.values() if number - 1 in own and after in own]
        if number - 1 in present and all(own[after].row.previous_round_verdict == own[number - 1].met for own in whole):
            for own in whole:  # the same reply a round later; carried over if it was met
                last = own[number - 1]
                changes = {"round": f"R{number}", "feedback_prompt": None if last.met else ""}
                own[number] = replace(last, row=last.row.model_copy(update=changes))
            present.append(number)
            remarks.append(
                f"round {number} is in no line, and round {after} reports the verdicts of round {number - 1} as the "
                f"previous ones: round {number} gets the replies of round {number - 1}"
            )
    return remarks


@dataclass(frozen=True, slots=True)
class _Session:
    """The replies to a task by turn. `own_code` gets the places of replies that seem carried over and are not."""

    task: ConstrainedTask
    lines: Mapping[int, Line]
    protocol: str
    model: str
    own_code: list[str]

    def record(self, known: set[int], missing: str) -> SessionRecord:
        """The record; `known` are the turns in the source, of any task."""
        turns: list[TurnRecord] = []
        holes = []
        for number in range(max(known) + 1):
            if (line := self.lines.get(number)) is not None:
                turns.append(self._turn(line, turns))
            elif missing == "empty" and number in known:
                turns.append(self._empty(number))
            else:
                holes.append(number)
        remedy = "; missing=empty counts it as an empty one" if known.intersection(holes) else ""
        return SessionRecord(
            cell_id="imported", session_id=f"imported/{self.task.task_id}", task_id=self.task.task_id,
            dataset="multicodeif", model=self.model, protocol=self.protocol, agenda=[], seed=0, turns=turns,
            status="errored" if holes else "completed", language=self.task.target.language,
            error=f"the source has no reply for turn {', '.join(map(str, holes))}{remedy}" if holes else None,
        )  # fmt: skip

    def _turn(self, line: Line, before: Sequence[TurnRecord]) -> TurnRecord:
        """The record of a reply. A carried one is published as code alone; the record has the whole earlier reply."""
        repair = line.row.round is not None and line.turn > 0
        carried = repair and line.row.feedback_prompt is None
        if carried and before:
            reply = before[-1].response or ""
            carried = (line.row.code or line.row.response_raw).strip() in (extracted(reply), reply.strip())
            self.own_code.extend([] if carried else [line.place])
        asked = [Message("user", line.row.feedback_prompt)] if line.row.feedback_prompt else []
        response = before[-1].response if carried and before else line.row.response_raw
        pairs = zip(_level(self.task, line.turn).constraints, line.verdicts, strict=True)
        unmet = ", ".join(constraint.type for constraint, met in pairs if met is False)
        return TurnRecord(
            turn=line.turn, request=asked, response=response, code=line.row.code, outcome=outcome_of(line.met),
            passed=line.met, passed_base=line.met,
            failure=Failure(f"published: {unmet} not met") if line.met is False else None,
            **self._fields(line.turn, line.verdicts, carried=carried),
        )  # fmt: skip

    def _empty(self, number: int) -> TurnRecord:
        """The record of a missing reply that counts as an empty one."""
        reason = "the source has no reply"
        fields = self._fields(number, [False] * len(_level(self.task, number).constraints), reason)
        return TurnRecord(
            turn=number, response="", outcome="no_code", passed=False, passed_base=False, failure=Failure(reason),
            **fields,
        )  # fmt: skip

    def _fields(
        self, turn: int, verdicts: Sequence[bool | None], reason: str = "", *, carried: bool = False
    ) -> dict[str, Any]:
        """The fields of a turn with constraints; the guarded verdicts are unknown."""
        passed = all_met(verdicts)
        reasons = {None: "no verdict was published", True: "published: met", False: "published: not met"}
        official = OfficialTurn(passed=passed, outcome=outcome_of(passed), reason=None)
        return ConstrainedTurn(
            level=_level(self.task, turn).name,
            round=turn if self.protocol == "repair" else 0,
            carried=carried,
            constraints=[
                ConstraintRecord.of(each, met, reason or reasons[met], None, met)
                for each, met in zip(_level(self.task, turn).constraints, verdicts, strict=True)
            ],
            official=None if passed is None else official,
        ).model_dump()


def _remarks(lines: Sequence[Line]) -> Iterable[str]:
    """Remarks for the user."""
    silent = sum(line.met is None for line in lines)
    if silent:
        yield f"{silent} of {counted(len(lines), 'reply', 'replies')} have no published verdict"
    differing = list(dict.fromkeys(line.task for line in lines if line.row.prompt_differs))
    if differing:
        yield f"{counted(len(differing), 'task')} had another prompt when it was answered: {', '.join(differing)}"
