"""A cell: one validated experiment with its tasks, its pool, its identity and its folder."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from codechat.datasets import DATASETS, select
from codechat.domain import Dataset, Task
from codechat.errors import UserError
from codechat.experiment import Experiment, cell_id
from codechat.files import content_hash
from codechat.hardware import HARDWARE, Resources
from codechat.instructions import INSTRUCTIONS, Pool
from codechat.protocols import PROTOCOLS, DialogueProtocol, Parts


@dataclass(frozen=True)
class Cell:
    """What the engine runs. `labels` are the names of the chosen options, by group; they identify nothing."""

    experiment: Experiment
    labels: Mapping[str, str]
    dataset: Dataset
    tasks: tuple[Task, ...]
    pool: Pool
    id: str
    folder: Path

    @property
    def model_label(self) -> str:
        """The model as records name it: the preset's name, or the model's own where the provider is used bare."""
        model = self.experiment.model
        choice = self.labels.get("model", model.kind)
        return model.name if choice == model.kind else choice

    @property
    def name(self) -> str:
        """What varies between cells, for people: `gpt5 humaneval balanced`."""
        return " ".join((self.model_label, self.dataset.name, self.labels.get("agenda", "agenda")))

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
        """The whole resolved configuration; it holds names of key variables, never keys."""
        values = {**self.experiment.model_dump(mode="json"), "choices": dict(self.labels)}
        return as_yaml(values)


def as_yaml(values: Mapping[str, Any]) -> str:
    """Readable YAML: keys in their order, texts of several lines as blocks."""
    return yaml.dump(dict(values), Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=120)


def build_cell(experiment: Experiment, labels: Mapping[str, str]) -> Cell:
    """Load what the identity depends on, and name the cell. Raises `UserError`."""
    dataset: Dataset = DATASETS.of(experiment.dataset).factory(experiment.dataset)
    tasks = select(dataset, experiment.dataset)
    if not tasks:
        raise UserError(f"the dataset {dataset.name} has no tasks", "choose another dataset, or mend dataset.path")
    pool: Pool = INSTRUCTIONS.of(experiment.instructions).factory(experiment.instructions)
    identity = cell_id(experiment, dataset, tasks, pool)
    unnamed = Cell(experiment, labels, dataset, tasks, pool, identity, Path())
    turns = experiment.agenda.turns
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", f"{unnamed.name} {turns} turns").strip("-.").lower()[:80]
    folder = Path(experiment.runs_dir) / f"{readable}-{identity[:8]}"
    return Cell(experiment, labels, dataset, tasks, pool, identity, folder)


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
