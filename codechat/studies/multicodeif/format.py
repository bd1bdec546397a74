"""MultiCodeIF's published outputs, one file per mode and model, as sessions of `repair` or `levels`.

A reply's turn is its round, or its level. The first replies of self-repair, and those to first levels that a file of
chains lacks, are those of the single-level file of the same model: the first level of a chain is a single task.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.config import original_option
from codechat.base.domain import Failure, Message, Outcome
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import counted
from codechat.datasets import DATASETS
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.reading.lines import read_values
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.constraints.published import extracted
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord, OfficialTurn, all_met
from codechat.studies.multicodeif.rows import ConstrainedTask, Level

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


TASK_FILE = "multicodeif_tasks"
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
    source, first = Path(config.source), list(beside(Path(config.source)))
    lines, singles = read_lines(source), [line for path in first for line in read_lines(path)]
    for line in singles:
        if line.row.model != lines[0].row.model:
            raise UserError(f"{line.place}: a reply of {line.row.model} among those of {lines[0].row.model}", ONE)
    task_file = Path(config.tasks) if config.tasks else _find_tasks(source.parent)
    chained = lines[0].row.level is not None
    tasks = _tasks(task_file, "single") if singles or not chained else {}
    if chained:
        chains = _tasks(task_file, "levels")
        lines, tasks = [*_first_levels(lines, singles, chains, tasks), *lines], chains
    else:
        lines = [*_first_rounds(lines, singles), *lines]
    sessions = _by_task(lines, tasks, task_file)
    repeated = [] if chained else _repeat_rounds(sessions)
    turns = {line.turn for own in sessions.values() for line in own.values()}
    named = NAME.fullmatch(source.name)
    model = config.model or lines[-1].row.model or (named["model"] if named else "imported")
    own_code: list[str] = []
    made = [
        _Session(tasks[name], own, "levels" if chained else "repair", model, own_code).record(turns, config.missing)
        for name, own in ((name, sessions[name]) for name in tasks if name in sessions)
    ]
    if own_code:
        repeated.append(
            f"{counted(len(own_code), 'reply has', 'replies have')} no prompt, but other code than the round before: "
            f"taken as published, not as carried over; the first is {own_code[0]}"
        )
    return Imported(made, [*first, task_file], [*repeated, *_remarks(lines)])


def _find_tasks(folder: Path) -> Path:
    found = [path for path in sorted(folder.glob(f"{TASK_FILE}.jsonl*")) if path.is_file()]
    if len(found) != 1:
        raise UserError(f"{'no' if not found else 'more than one'} task file {TASK_FILE}.jsonl is in {folder}", OTHER)
    return found[0]


def _tasks(path: Path, part: str) -> dict[str, ConstrainedTask]:
    config = DATASETS.validate({"kind": "multicodeif", "path": str(path), "part": part})
    return {task.task_id: task for task in DATASETS.build(config).tasks if isinstance(task, ConstrainedTask)}


def _first_rounds(lines: Sequence[Line], singles: Sequence[Line]) -> Iterable[Line]:
    """The single-level replies to the tasks in the lines, without those that they hold."""
    wanted = {line.task for line in lines} - {line.task for line in lines if line.turn == 0}
    return (line for line in singles if line.turn == 0 and line.task in wanted)


def _first_levels(
    lines: Sequence[Line],
    singles: Sequence[Line],
    chains: Mapping[str, ConstrainedTask],
    tasks: Mapping[str, ConstrainedTask],
) -> Iterable[Line]:
    """The single-level replies to the first levels of the chains in the lines, without those that they hold."""
    have = {line.task for line in lines if line.turn == 0}
    replies = {line.task: line for line in singles if line.turn == 0}
    alike = {(task.prompt, task.levels[0].constraints): name for name, task in tasks.items()}
    for name in dict.fromkeys(line.task for line in lines):
        level = chains[name].levels[0] if name in chains else None
        single = replies.get(alike.get((level.prompt, level.constraints), "")) if level else None
        if single and name not in have:
            chain = int(name.removeprefix("chain/"))
            yield replace(single, row=single.row.model_copy(update={"round": None, "level": "L1", "chain": chain}))


def _by_task(
    lines: Iterable[Line], tasks: Mapping[str, ConstrainedTask], task_file: Path
) -> dict[str, dict[int, Line]]:
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
            for own in whole:
                own[number] = _repeated(own[number - 1], number)
            present.append(number)
            remarks.append(
                f"round {number} is in no line, and the verdicts before round {after} are those of round {number - 1}: "
                f"its replies are taken to be those of round {number - 1}"
            )
    return remarks


def _repeated(line: Line, number: int) -> Line:
    """The same reply a round later; carried over if it was met."""
    feedback = None if line.met else ""
    return replace(line, row=line.row.model_copy(update={"round": f"R{number}", "feedback_prompt": feedback}))


@dataclass(frozen=True, slots=True)
class _Session:
    """The replies to a task by turn, with what makes a record of them.

    `own_code` gets the places of replies that seem carried over and are not.
    """

    task: ConstrainedTask
    lines: Mapping[int, Line]
    protocol: str
    model: str
    own_code: list[str]

    def record(self, known: set[int], missing: str) -> SessionRecord:
        """The record; `known` are the turns that the source holds of any task."""
        turns: list[TurnRecord] = []
        holes = []
        for number in range(max(known) + 1):
            if (line := self.lines.get(number)) is not None:
                turns.append(self._turn(line, turns))
            elif missing == "empty" and number in known:
                turns.append(self._empty(number))
            else:
                holes.append(number)
        return SessionRecord(
            cell_id="imported",
            session_id=f"imported/{self.task.task_id}",
            task_id=self.task.task_id,
            dataset="multicodeif",
            model=self.model,
            protocol=self.protocol,
            agenda=[],
            seed=0,
            status="errored" if holes else "completed",
            error=_lacking(holes, known) if holes else None,
            turns=turns,
            language=self.task.target.language,
        )

    def _turn(self, line: Line, before: Sequence[TurnRecord]) -> TurnRecord:
        """The record of a reply. A carried one is published as its code alone: here it is the reply carried over."""
        repair = line.row.round is not None and line.turn > 0
        carried = repair and line.row.feedback_prompt is None
        if carried and before:
            reply = before[-1].response or ""
            carried = (line.row.code or line.row.response_raw).strip() in (extracted(reply), reply.strip())
            self.own_code.extend([] if carried else [line.place])
        asked = [Message("user", line.row.feedback_prompt)] if line.row.feedback_prompt else []
        response = before[-1].response if carried and before else line.row.response_raw
        passed = line.met
        outcome: Outcome | None = None if passed is None else "pass" if passed else "fail"
        pairs = zip(self._constraints(line.turn), line.verdicts, strict=True)
        unmet = ", ".join(constraint.type for constraint, met in pairs if met is False)
        return TurnRecord(
            turn=line.turn,
            request=asked,
            response=response,
            code=line.row.code,
            outcome=outcome,
            passed=passed,
            passed_base=passed,
            failure=Failure(f"published: {unmet} not met") if passed is False else None,
            **self._fields(line.turn, line.verdicts, carried=carried),
        )

    def _empty(self, number: int) -> TurnRecord:
        """The record of a reply that the source lacks, if it counts as an empty one."""
        verdicts: list[bool | None] = [False] * len(self._constraints(number))
        reason = "the source has no reply"
        fields = self._fields(number, verdicts, reason)
        return TurnRecord(
            turn=number, response="", outcome="no_code", passed=False, passed_base=False, failure=Failure(reason),
            **fields,
        )  # fmt: skip

    def _constraints(self, turn: int) -> tuple[Constraint, ...]:
        return _level(self.task, turn).constraints

    def _fields(
        self, turn: int, verdicts: Sequence[bool | None], reason: str = "", *, carried: bool = False
    ) -> dict[str, Any]:
        """The fields of a turn with constraints; what the codes of both harnesses keep is not known."""
        passed = all_met(list(verdicts))
        outcome: Literal["pass", "fail"] = "pass" if passed else "fail"
        turned = ConstrainedTurn(
            level=_level(self.task, turn).name,
            round=turn if self.protocol == "repair" else 0,
            carried=carried,
            constraints=[
                ConstraintRecord(
                    type=each.type,
                    category=constraint_type(each.type).category,
                    by=constraint_type(each.type).by,
                    met=met,
                    reason=reason or _said(met),
                    guarded=None,
                    official=met,
                )
                for each, met in zip(self._constraints(turn), verdicts, strict=True)
            ],
            official=None if passed is None else OfficialTurn(passed=passed, outcome=outcome, reason=None),
        )
        return turned.model_dump()


def _lacking(holes: Sequence[int], known: set[int]) -> str:
    remedy = "; missing=empty counts it as an empty one" if known.intersection(holes) else ""
    return f"the source has no reply for turn {', '.join(map(str, holes))}{remedy}"


def _said(met: bool | None) -> str:
    return "no verdict was published" if met is None else f"published: {'met' if met else 'not met'}"


def _remarks(lines: Sequence[Line]) -> Iterable[str]:
    """What a user should know of the replies."""
    silent = sum(line.met is None for line in lines)
    if silent:
        yield f"{silent} of {counted(len(lines), 'reply', 'replies')} have no published verdict"
    differing = list(dict.fromkeys(line.task for line in lines if line.row.prompt_differs))
    if differing:
        yield f"{counted(len(differing), 'task')} had another prompt when it was answered: {', '.join(differing)}"
