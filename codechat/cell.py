"""A cell: one validated experiment with its tasks, its pool, its identity and its folder."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from codechat.agendas import AgendaConfig
from codechat.datasets import DATASETS, select
from codechat.domain import Dataset, Task
from codechat.errors import UserError
from codechat.experiment import Experiment, cell_id
from codechat.files import content_hash
from codechat.hardware import HARDWARE, Resources
from codechat.instructions import INSTRUCTIONS, Pool
from codechat.protocols import PROTOCOLS, DialogueProtocol, Parts
from codechat.tracking.address import without_password


@dataclass(frozen=True)
class Composed:
    """A validated experiment with how it was asked for: the chosen option of every group, and what else was set."""

    experiment: Experiment
    choices: Mapping[str, str]
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """What the engine runs. The name is for people; the id alone identifies."""

    experiment: Experiment
    choices: Mapping[str, str]
    dataset: Dataset
    tasks: tuple[Task, ...]
    pool: Pool
    id: str
    name: str

    @property
    def folder(self) -> Path:
        """Where the cell leaves its files."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.").lower()[:80].rstrip("-.")
        return Path(self.experiment.runs_dir) / f"{readable}-{self.id[:8]}"

    @property
    def model_label(self) -> str:
        """The model as records name it."""
        return _model_label(self.experiment, self.choices)

    def protocol(self) -> DialogueProtocol:
        """The protocol, built on the cell's agenda and pool."""
        config = self.experiment.protocol
        parts = Parts(self.experiment.agenda, self.pool, self.experiment.judge.lookahead)
        return PROTOCOLS.of(config).factory(config, parts)

    def resources(self) -> Resources:
        """What the engine may use of the machine."""
        config = self.experiment.hardware
        return HARDWARE.of(config).factory(config)

    def config_yaml(self) -> str:
        """The whole resolved configuration: names of key variables, never keys, and no password of a URI."""
        values = {**self.experiment.model_dump(mode="json"), "choices": dict(self.choices)}
        return without_password(as_yaml(values))


def as_yaml(values: Mapping[str, Any]) -> str:
    """Readable YAML: keys in their order, texts of several lines as blocks."""
    return yaml.dump(dict(values), Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=120)


def build_cell(composed: Composed) -> Cell:
    """Load what the identity depends on, and name the cell. Raises `UserError`."""
    experiment = composed.experiment
    dataset: Dataset = DATASETS.of(experiment.dataset).factory(experiment.dataset)
    tasks = select(dataset, experiment.dataset)
    if not tasks:
        raise UserError(f"the dataset {dataset.name} has no tasks", "choose another dataset, or mend dataset.path")
    pool: Pool = INSTRUCTIONS.of(experiment.instructions).factory(experiment.instructions)
    identity = cell_id(experiment, dataset, tasks, pool)
    return Cell(experiment, composed.choices, dataset, tasks, pool, identity, _name(composed, dataset, tasks))


def _name(composed: Composed, dataset: Dataset, tasks: tuple[Task, ...]) -> str:
    """What varies between cells: `gpt5 humaneval balanced`, and whatever departs from the default."""
    experiment = composed.experiment
    parts = [_model_label(experiment, composed.choices), dataset.name]
    if "agenda" in PROTOCOLS.of(experiment.protocol).uses:
        parts.append(composed.choices.get("agenda", "agenda"))
        if experiment.agenda.turns != AgendaConfig().turns:
            parts.append(f"{experiment.agenda.turns} turns")
    if len(tasks) != len(dataset.tasks):
        parts.append(f"{len(tasks)} tasks")
    return " ".join([*parts, *(" ".join(setting.split())[:60] for setting in composed.settings)])[:200]


def _model_label(experiment: Experiment, choices: Mapping[str, str]) -> str:
    """The preset's name, or the model's own where the provider is used bare."""
    choice = choices.get("model", experiment.model.kind)
    return experiment.model.name if choice == experiment.model.kind else choice


def session_id(cell: str, task_id: str) -> str:
    """The id of a task's session in a cell: the same on every run."""
    return content_hash([cell, task_id])[:16]


@contextlib.contextmanager
def held(cell: Cell) -> Iterator[None]:
    """Hold the cell's folder for this process. Raises `UserError` where another process has it."""
    try:
        cell.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cell.folder / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise UserError(
            f"the cell {cell.folder} is in use by another process", "wait for it, or stop it; what it did is kept"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write {cell.folder}: {error.strerror}", "set runs_dir to a writable folder") from error
    try:
        yield
    finally:
        lock.release()


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _block)
