"""Score recorded dialogues again: their replies are extracted, tested and judged for adherence anew.

No model under test is asked. Applicability is not judged again, since another decision there would have led to another
dialogue: candidates, instructions and requests stay as recorded, and so does what was skipped or no longer fitted the
model's context. Tokens of the judge are those that scoring again has cost.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codechat.cell import Cell, as_yaml
from codechat.datasets import DATASETS
from codechat.domain import Dataset, Instruction, Message, Reply, Task, Usage
from codechat.errors import UserError
from codechat.experiment import Experiment
from codechat.extraction import extract
from codechat.files import content_hash
from codechat.instructions import INSTRUCTIONS, Pool
from codechat.metrics import Effort, Measures
from codechat.protocols import DialogueProtocol, Kit
from codechat.protocols.grading import in_order
from codechat.protocols.refine import Answer, Selection, grade, overflow, skip
from codechat.records import SessionRecord, TurnRecord, read_sessions
from codechat.tracking.address import without_password

IDENTITY_SCHEMA = 1


@dataclass(frozen=True)
class Recording:
    """The completed sessions of a cell, as lines of JSON by task id; `errored` ones have no whole dialogue to score."""

    cell_id: str
    sessions: Mapping[str, str]
    errored: int


@dataclass(frozen=True)
class RescoredCell(Cell):
    """A cell whose replies are recorded already. Its folder is the one that was asked for."""

    recording: Recording
    place: Path

    @property
    def folder(self) -> Path:
        return self.place

    def protocol(self) -> DialogueProtocol:
        """The cell's protocol over recorded replies."""
        return Rescoring(super().protocol(), self.recording, {one.id: one for one in self.pool.instructions})

    def config_yaml(self) -> str:
        """The configuration, with the id of the cell that the replies come from."""
        values = {**self.experiment.model_dump(mode="json"), "choices": dict(self.choices)}
        values["rescored_from"] = self.recording.cell_id
        return without_password(as_yaml(values))


@dataclass(frozen=True)
class Rescoring:
    """Recorded refinement dialogues, in place of new ones."""

    inner: DialogueProtocol
    recording: Recording
    pool: Mapping[str, Instruction]

    @property
    def measures(self) -> Measures:
        return self.inner.measures

    def turns(self, task: Task) -> int:
        return self.inner.turns(task)

    def agenda(self, generator: random.Random) -> list[str]:
        return self.inner.agenda(generator)

    async def run(self, task: Task, kit: Kit) -> None:
        recorded = SessionRecord.model_validate_json(self.recording.sessions[task.task_id])
        kit.log.agenda = recorded.agenda
        code = ""
        async with in_order() as grading:
            for turn in recorded.turns:
                selection = self._selection(turn)
                request = tuple(Message(message.role, message.content) for message in turn.request)
                if turn.skipped:
                    grading.start(partial(skip, kit, turn.turn, selection))
                elif turn.response is None:
                    remaining = range(turn.turn, len(recorded.turns))
                    grading.start(partial(overflow, kit, remaining, selection, request))
                    break
                else:
                    extraction = extract(turn.response, task.entry_point)
                    answer = Answer(
                        turn.turn, selection if turn.instruction else None, request, _reply(turn), extraction, code
                    )
                    grading.start(partial(grade, kit, answer))
                    code = extraction.code or code

    def _selection(self, turn: TurnRecord) -> Selection:
        """The recorded choice. The instruction's rule is the pool's, where the pool still words it the same."""
        chosen = turn.instruction
        if chosen is None:
            return Selection(None, tuple(turn.candidates), Usage())
        known = self.pool.get(chosen.id)
        if known is None or known.text != chosen.text:
            known = Instruction(chosen.id, chosen.text, chosen.scope, chosen.change)
        return Selection(known, tuple(turn.candidates), Usage())

    def metrics(self, sessions: Collection[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return self.inner.metrics(sessions, seed=seed, effort=effort)


def _reply(turn: TurnRecord) -> Reply:
    used = turn.usage
    usage = Usage(used.input_tokens, used.output_tokens, used.cached_input_tokens)
    return Reply(turn.response or "", turn.finish_reason, usage, turn.latency_s)


def read_recording(path: Path) -> Recording:
    """The sessions of a cell. Raises `UserError` where there is nothing that can be scored again."""
    cell_id, errored = "", 0
    sessions: dict[str, str] = {}
    for record in read_sessions(path):
        if record.protocol != "refine":
            raise UserError(
                f"{path} was recorded by protocol={record.protocol}, and only refine is scored again by itself",
                f"replay it instead: model=replay model.path={path}, with the same dataset and protocol",
            )
        if record.task_id in sessions or (cell_id and record.cell_id != cell_id):
            raise UserError(f"{path} holds sessions of several cells", "give the folder of one cell")
        cell_id = record.cell_id
        if record.status == "completed":
            sessions[record.task_id] = record.line()
        else:
            errored += 1
    if not sessions:
        raise UserError(f"{path} holds no completed session", "finish the cell first: run its command again")
    return Recording(cell_id, sessions, errored)


def rescored_cell(
    experiment: Experiment, choices: Mapping[str, str], recording: Recording, name: str, place: Path
) -> RescoredCell:
    """The cell that scores a recording by the experiment's judge and sandbox. Raises `UserError`."""
    dataset: Dataset = DATASETS.of(experiment.dataset).factory(experiment.dataset)
    pool: Pool = INSTRUCTIONS.of(experiment.instructions).factory(experiment.instructions)
    tasks = _tasks(dataset, list(recording.sessions))
    identity = content_hash(
        {
            "schema": IDENTITY_SCHEMA,
            "rescored_from": recording.cell_id,
            "dataset": dataset.content_hash,
            "tasks": [task.task_id for task in tasks],
            "instructions": pool.content_hash,
            "judge": experiment.judge.identity(),
            "sandbox": experiment.sandbox.identity(),
        }
    )
    return RescoredCell(experiment, choices, dataset, tasks, pool, identity, name, recording, place)


def _tasks(dataset: Dataset, names: Sequence[str]) -> tuple[Task, ...]:
    tasks = {task.task_id: task for task in dataset.tasks}
    for name in names:
        if name not in tasks:
            raise UserError(f"the dataset {dataset.name} has no task '{name}' any more", "dataset.path=FILE names it")
    return tuple(tasks[name] for name in names)
