"""Score recorded dialogues again: extract, test and judge the adherence of their replies.

No model under test is asked. Decisions on the path of a dialogue are not made again, because another decision would
have led to another dialogue: candidates, instructions, requests, skips and context overflows stay as recorded. The
judge's tokens count this scoring alone.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from codechat.base.config import is_scoring, scoring_identity
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord, dataset_in, read_sessions
from codechat.datasets import load
from codechat.datasets.tasks import Dataset, Task
from codechat.models.roles import models_in
from codechat.report.metrics import Effort, Measures
from codechat.run.cell import Cell, load_contents, remarks_on
from codechat.run.cell.fitting import check_judge, check_texts
from codechat.run.protocols import Ask, DialogueProtocol, Kit
from codechat.run.settings.config import GROUPS, NEEDED, CellConfig, content_outside, study_groups

IDENTITY_SCHEMA = 1


@dataclass(frozen=True)
class Recording:
    """The completed sessions of a cell, as lines of JSON by task id; `errored` ones have no whole dialogue to score.

    `openings`: recorded first requests by task id. `content`: hash of the dataset at that time, None if unknown.
    """

    cell_id: str
    sessions: Mapping[str, str]
    errored: int
    openings: Mapping[str, str]
    content: str | None


@dataclass(frozen=True, kw_only=True)
class RescoredCell(Cell):
    """A cell whose replies are already recorded. The user chooses its folder."""

    recording: Recording
    place: Path

    @property
    def is_recorded(self) -> bool:
        return True

    @cached_property
    def folder(self) -> Path:
        return self.place

    @cached_property
    def protocol(self) -> DialogueProtocol:
        models = (place for place, _ in models_in(self.config.protocol, "protocol"))
        anew = {place.rpartition(".")[2] for place in models if self.config.can_change_in_rescoring(place)}
        return Rescoring(super().protocol, self.recording, anew)

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "rescored_from": self.recording.cell_id}


@dataclass(frozen=True)
class Rescoring:
    """Recorded dialogues, in place of new ones. `anew`: the protocol's roles that are asked again, such as a judge."""

    inner: DialogueProtocol
    recording: Recording
    anew: Collection[str] = ()

    @property
    def measures(self) -> Measures:
        return self.inner.measures

    def turns(self, task: Task) -> int:
        return self.inner.turns(task)

    def agenda(self, generator: random.Random) -> list[str]:
        return self.inner.agenda(generator)

    def asks(self, task: Task) -> Iterator[Ask]:
        return self.inner.asks(task)

    async def run(self, task: Task, kit: Kit) -> None:
        kit.recording = SessionRecord.model_validate_json(self.recording.sessions[task.task_id])
        kit.anew, kit.log.agenda = self.anew, kit.recording.agenda
        await self.inner.run(task, kit)
        if len(kit.log.turns) != len(kit.recording.turns):
            raise kit.changed()
        kit.log.ended = kit.recording.ended

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return self.inner.metrics(sessions, seed=seed, effort=effort)


def read_recording(path: Path) -> Recording:
    """The sessions of a cell. Raises `UserError` if none can be scored again."""
    cell_id, errored = "", 0
    sessions: dict[str, str] = {}
    openings: dict[str, str] = {}
    for record in read_sessions(path):
        if record.task_id in sessions or (cell_id and record.cell_id != cell_id):
            raise UserError(f"{path} holds sessions of several cells", "give the folder of one cell")
        cell_id = record.cell_id
        if record.status == "completed":
            sessions[record.task_id] = record.line()
            if record.turns and (opening := record.turns[0].first_request):
                openings[record.task_id] = opening[-1].content
        else:
            errored += 1
    if not sessions:
        raise UserError(f"{path} holds no completed session", "finish the cell first: run its command again")
    return Recording(cell_id, sessions, errored, openings, dataset_in(path.parent).get("content_hash"))


def rescored_cell(
    config: CellConfig, choices: Mapping[str, str], recording: Recording, name: str, place: Path
) -> RescoredCell:
    """The cell that scores a recording by the config's judge and sandbox. Raises `UserError`."""
    check_judge(config, ())
    options = config.dataset
    if "environment" in config.uses and "repos" in type(options).model_fields:
        options = options.model_copy(update={"repos": None})  # only rooms are made of clones, and no command runs again
    dataset = load(options)
    present = {task.task_id: task for task in dataset.tasks}
    for each in recording.sessions:
        if each not in present:
            raise UserError(f"the dataset {dataset.name} has no task '{each}' any more", "dataset.path=FILE names it")
    tasks = tuple(present[each] for each in recording.sessions)
    if recording.content not in (None, dataset.content_hash):
        _refuse_other_questions(dataset, tasks, recording)
    contents = load_contents(config, tasks)
    check_texts(dataset, tasks, contents)
    identity: dict[str, Any] = {
        "schema": IDENTITY_SCHEMA,
        "rescored_from": recording.cell_id,
        "dataset": dataset.content_hash,
        "tasks": [task.task_id for task in tasks],
        **{
            group.name: (contents.get(group.name) or group.registry.build(config.part(group.name))).content_hash
            for group in study_groups().values()
            if group.load is not None
        },
        **{group: found for group in NEEDED if (found := scoring_identity(getattr(config, group)))},
        **{
            group: getattr(config, group).identity()
            for group in GROUPS
            if is_scoring(CellConfig.whole().model_fields[group])
        },
    }
    outside = content_outside(tasks)
    if outside:
        identity["outside"] = outside
    cell_id = content_hash(identity)
    cell = RescoredCell(config, choices, dataset, tasks, contents, cell_id, name, recording=recording, place=place)
    return replace(cell, remarks=tuple(remarks_on(cell)))


def other_tests(cell: RescoredCell) -> str:
    """A remark if the tasks have changed since the recording; empty if they have not, or it is unknown."""
    then, now = cell.recording.content, cell.dataset.content_hash
    if then in (None, now):
        return ""
    return (
        f"the tasks of {cell.dataset.name} were changed since the recording (content {str(then)[:8]}, now {now[:8]}): "
        "its replies are tested by the tests of now"
    )


def _refuse_other_questions(dataset: Dataset, tasks: Iterable[Task], recording: Recording) -> None:
    """Raise `UserError` if a task of a changed dataset asks another question than the recorded one."""
    for task in tasks:
        asked = recording.openings.get(task.task_id)
        if asked is not None and task.prompt.strip("\n") not in asked:
            raise UserError(
                f"the task {task.task_id} of {dataset.name} was another when its replies were recorded",
                "dataset.path=FILE names the tasks of that time; or run the cell on the present tasks",
            )
