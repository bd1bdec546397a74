"""CodeIF-Bench's published completions, one file per mode and model, as sessions of the protocol `static`.

A line is one reply: `task_id`, `turn`, `instruction_type`, `completion_raw`, `official_passed`. The tasks determine the
turn of a reply: the task itself is turn 0, then come the requirements in order, with which `turn` must agree in a file
of the n-round conversation. The base replies, with which every conversation begins, are in a separate file.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codechat.base.config import original_option
from codechat.base.domain import Failure, Outcome
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets import DATASETS
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.reading.lines import lines_of
from codechat.datasets.tasks import Requirement, Task
from codechat.studies.codeif.metrics import OfficialRecord, RequirementRecord

BASE = "Base"
NAME = re.compile(r"codeif_l1_(?:base|single_round|multi_round|n_round)_(?P<model>.+?)(?P<ending>\.jsonl(?:\.gz)?)")
REMEDY = "source=FILE names completions of CodeIF-Bench, .jsonl or .jsonl.gz (docs/codeif.md)"
TWICE = "import one mode of one model at a time"
RESULT = re.compile(r"passed|timed out|failed\b.*", re.DOTALL)
VERDICTS = "correct or remove official_passed and official_result of this line: an import does not choose between them"
OTHER = "tasks=FILE names the task file that the completions were made from"


class Completion(BaseModel):
    """One published reply. Other fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)

    task_id: int
    turn: int = Field(ge=1)
    instruction_type: str
    completion_raw: str
    official_passed: bool | None = None
    official_result: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """A reply and its place in the file."""

    place: str
    row: Completion


class CodeIFImport(ImportConfig):
    """Options of `codeif`."""

    format: Literal["codeif"] = original_option("codeif", "what the source is")


@FORMATS.register("codeif", CodeIFImport)
def codeif(config: CodeIFImport) -> Imported:
    """CodeIF-Bench's published completions, one mode of one model."""
    return import_codeif(Path(config.source), Path(config.tasks) if config.tasks else None, config.model)


def import_codeif(source: Path, tasks: Path | None = None, model: str | None = None) -> Imported:
    """The sessions, in the order of the tasks. Raises `UserError` that names the first wrong line.

    For a file with its published name, the base replies of the same model and the fitting task file come from the same
    folder, unless the file has base replies, or `tasks` is given.
    """
    lines, companions = list(_read(source)), []
    named = NAME.fullmatch(source.name)
    base = source.with_name(f"codeif_l1_base_{named['model']}{named['ending']}") if named else source
    if base != source and base.is_file() and not any(line.row.instruction_type == BASE for line in lines):
        lines = [*_read(base), *lines]
        companions.append(base)
    by_task: dict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        if line.row.model != lines[0].row.model:
            raise UserError(f"{line.place}: a reply of {line.row.model} among replies of {lines[0].row.model}", TWICE)
        by_task[f"CodeIF/{line.row.task_id}"].append(line)
    conversation = _is_conversation(by_task)
    if tasks is None and (tasks := _find_tasks(source.parent, by_task, conversation)):
        companions.append(tasks)
    known = {} if tasks is None else {task.task_id: task for task in _tasks(tasks)}
    for task_id, own in by_task.items():
        if known and task_id not in known:
            raise UserError(f"{own[0].place}: there is no task {own[0].row.task_id} in {tasks}", OTHER)
    model = model or (named["model"] if named else "imported")
    order = [task_id for task_id in known if task_id in by_task] or list(by_task)
    return Imported(
        [_session(task_id, known.get(task_id), by_task[task_id], model, conversation) for task_id in order], companions
    )


def _is_conversation(by_task: Mapping[str, Sequence[_Line]]) -> bool:
    """Whether the replies to a task form one conversation, not a separate request for each requirement."""
    turns = [[line.row.turn for line in lines if line.row.instruction_type != BASE] for lines in by_task.values()]
    return any(turn > 2 for own in turns for turn in own) or all(own in ([], [2]) for own in turns)


def _find_tasks(folder: Path, by_task: Mapping[str, Sequence[_Line]], conversation: bool) -> Path | None:
    """The task file in the folder with exactly the answered requirements; None unless there is one."""
    answered = {task_id: {line.row.instruction_type for line in lines} - {BASE} for task_id, lines in by_task.items()}
    fitting = []
    for path in sorted(folder.glob("codeif_l1_tasks*.jsonl*")):
        tasks = {task.task_id: {each.strategy for each in _requirements(task, conversation)} for task in _tasks(path)}
        if all(tasks.get(task_id) == own for task_id, own in answered.items()):
            fitting.append(path)
    return fitting[0] if len(fitting) == 1 else None


def _requirements(task: Task, conversation: bool) -> list[Requirement]:
    """The requirements that the protocol asks for, in order; without a conversation, all of them."""
    return [each for each in task.requirements if each.asked or not conversation]


def _read(path: Path) -> Iterable[_Line]:
    number = 0
    for number, text in lines_of(path, "source"):
        try:
            row = Completion.model_validate_json(text)
        except ValidationError as error:
            first: Any = error.errors()[0]
            problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
            raise UserError(f"{path}:{number}: not a published completion: {problem}", REMEDY) from error
        _refuse_contradiction(f"{path}:{number}", row)
        yield _Line(f"{path}:{number}", row)
    if not number:
        raise UserError(f"{path} holds no completion", REMEDY)


def _refuse_contradiction(place: str, row: Completion) -> None:
    """Raise `UserError` for a result that is no word of the harness, or that `official_passed` contradicts."""
    result = row.official_result
    if result is None:
        return
    if not RESULT.fullmatch(result):
        raise UserError(f"{place}: official_result '{result[:60]}' is not passed, timed out or failed", VERDICTS)
    if row.official_passed is not (result == "passed"):
        said = json.dumps(row.official_passed)
        raise UserError(f"{place}: official_passed is {said}, official_result '{result[:60]}'", VERDICTS)


def _tasks(path: Path) -> tuple[Task, ...]:
    config = DATASETS.validate({"kind": "codeif_bench", "path": str(path)})
    return tuple(DATASETS.build(config).tasks)


def _session(task_id: str, task: Task | None, lines: Sequence[_Line], model: str, conversation: bool) -> SessionRecord:
    turns: dict[int, TurnRecord] = {}
    for line in lines:
        number, requirement = _place(line, task, conversation)
        if number in turns:
            raise UserError(f"{line.place}: a second reply for {line.row.instruction_type} of {task_id}", TWICE)
        turns[number] = _turn(number, line.row, requirement)
    last = len(_requirements(task, conversation)) if task and len(turns) > 1 else max(turns)
    missing = [number for number in range(last + 1) if number not in turns]
    return SessionRecord(
        cell_id="imported", session_id=f"imported/{task_id}", task_id=task_id, dataset="codeif_bench", model=model,
        protocol="static", agenda=[], seed=0, turns=[turns[number] for number in sorted(turns)],
        status="errored" if missing else "completed",
        error=f"the source has no reply for turn {', '.join(map(str, missing))}" if missing else None,
    )  # fmt: skip


def _place(line: _Line, task: Task | None, conversation: bool) -> tuple[int, Requirement | None]:
    """The turn of a reply, and its requirement."""
    row = line.row
    if row.instruction_type == BASE:
        return 0, None
    if task is None:
        if not conversation:
            raise UserError(f"{line.place}: without the tasks this reply's place is unknown", OTHER)
        return row.turn - 1, None
    for number, requirement in enumerate(_requirements(task, conversation), 1):
        if requirement.strategy == row.instruction_type:
            if conversation and row.turn != number + 1:
                raise UserError(f"{line.place}: turn {row.turn}, but the tasks ask for this at {number + 1}", OTHER)
            return number, requirement
    raise UserError(f"{line.place}: {task.task_id} has no requirement '{row.instruction_type}'", OTHER)


def _turn(number: int, row: Completion, requirement: Requirement | None) -> TurnRecord:
    """The record of a reply. A turn without a verdict is recorded as not passed, with `official` null."""
    passed = row.official_passed is True
    outcome: Outcome = "pass" if passed else "fail"
    reason = row.official_result or "no result given"
    official, failure = None, "the benchmark's own harness gives no verdict"
    if row.official_passed is not None:
        official = OfficialRecord(passed=passed, outcome=outcome, reason=None if passed else reason).model_dump()
        failure = f"published: {reason}"
    asked = requirement and RequirementRecord(id=requirement.id, strategy=requirement.strategy, text=requirement.text)
    extra: dict[str, Any] = {"requirement": asked.model_dump() if asked else None, "official": official}
    return TurnRecord(
        turn=number, response=row.completion_raw, outcome=outcome, passed=passed, passed_base=passed,
        failure=None if passed else Failure(reason=failure), **extra,
    )  # fmt: skip
