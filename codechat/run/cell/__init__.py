"""A cell: one validated config with its tasks, its pool, its identity and its folder."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.datasets import load
from codechat.datasets.tasks import Dataset, Task
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.endpoints import address_of
from codechat.models.hardware import HARDWARE, Resources
from codechat.models.roles import models_in
from codechat.report.tracking.address import without_password
from codechat.run.cell.fitting import check_fit, check_judge, check_texts, other_languages, undecidable
from codechat.run.cell.references import select_here
from codechat.run.journal import Journal, is_blank
from codechat.run.protocols import PROTOCOLS, DialogueProtocol, Parts
from codechat.run.settings.compose import Composed
from codechat.run.settings.config import CellConfig, Content, Group, cell_ids, study_groups

SHARDS = "shards"
"""The folder of a cell's shards, within its own."""

ASKING_S = 2.0


@dataclass(frozen=True)
class Cell:
    """A config with its data, ready to run. The name is for people; only the id identifies the cell.

    `contents` is the data that groups of studies load, such as the pool of instructions, by group. `remarks` are
    warnings for the user. `older` are the ids of the cell under earlier versions of its rules and baselines: a run
    begun under one of them is not continued. `begun` is the folder if the cell was begun under another name, or of a
    shard.
    """

    config: CellConfig
    choices: Mapping[str, str]
    dataset: Dataset
    tasks: tuple[Task, ...]
    contents: Mapping[str, Content]
    id: str
    name: str
    remarks: tuple[str, ...] = ()
    older: tuple[str, ...] = ()
    begun: Path | None = None

    @cached_property
    def folder(self) -> Path:
        return self.begun or self.folder_of(self.id)

    def folder_of(self, identity: str) -> Path:
        """The folder of the cell under an id."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.").lower()[:80].rstrip("-.")
        return Path(self.config.runs_dir) / f"{readable}-{identity[:8]}"

    @cached_property
    def uses(self) -> frozenset[str]:
        """The groups that affect the cell."""
        return self.config.uses

    @property
    def is_recorded(self) -> bool:
        """Whether the dialogues are recorded: nothing is drawn, and no model under test is asked."""
        return False

    @cached_property
    def study_groups(self) -> tuple[Group, ...]:
        """The groups of studies that affect the cell, in the order of config.yaml."""
        return used_groups(self.config)

    @cached_property
    def agenda_seed(self) -> int | None:
        """The option agenda.seed; None: the cell's seed."""
        agenda = self.config.part("agenda")
        return None if agenda is None else agenda.seed

    @cached_property
    def model_label(self) -> str:
        """The model's name in records: its preset, or `model.name` if a kind or a provider is chosen."""
        model = self.config.model
        choice = self.choices.get("model", model.kind)
        return model.name if choice in (model.kind, getattr(model, "provider", None)) else choice

    @cached_property
    def protocol_name(self) -> str:
        return PROTOCOLS.of(self.config.protocol).name

    @cached_property
    def protocol(self) -> DialogueProtocol:
        """The protocol, built with the judge's options and the groups of the studies."""
        return PROTOCOLS.build(self.config.protocol, parts_of(self.config, self.contents))

    @cached_property
    def turns(self) -> int:
        """The turns of all sessions, if none ends early."""
        return sum(map(self.protocol.turns, self.tasks))

    @cached_property
    def endpoints(self) -> Mapping[str, ModelConfig]:
        """The models behind endpoints that the cell may ask, by their place in the config."""
        return endpoints_of(self.config)

    @cached_property
    def resources(self) -> Resources:
        """The share of the machine that the engine may use."""
        return HARDWARE.build(self.config.hardware)

    def settings(self) -> dict[str, Any]:
        """The content of config.yaml, the same for a cell and its shards."""
        values = {**self.config.values(self.config.transient), "choices": dict(self.choices)}
        recorded = self.config.model.recorded_model()
        return values if recorded is None else {**values, "recorded_model": recorded}

    def config_yaml(self) -> str:
        """The whole resolved configuration: names of key variables, never keys, and no password of a URI."""
        return without_password(as_yaml(self.settings()))

    def abandoned(self) -> Path | None:
        """A folder in which the cell was begun under earlier rules, baselines or repositories, if it has none yet."""
        if self.folder.exists():
            return None
        return next((place for place in map(self.folder_of, self.older) if any(journals_in(place))), None)


def journals_in(folder: Path) -> Iterator[Path]:
    """The journals of a cell: of its folder, if there is one, then of its shards."""
    yield from folder.glob("journal.db")
    yield from sorted(folder.glob(f"{SHARDS}/*/journal.db"))


def as_yaml(values: Mapping[str, Any]) -> str:
    """Readable YAML: keys in their order, texts of several lines as blocks."""
    return yaml.dump(dict(values), Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=120)


def used_groups(config: CellConfig) -> tuple[Group, ...]:
    """The groups of studies that affect a cell with these options."""
    return tuple(group for group in study_groups().values() if group.name in config.uses)


def parts_of(config: CellConfig, contents: Mapping[str, Content]) -> Parts:
    """The parts that a protocol is built on."""
    groups = study_groups().values()
    data = {group.data: contents.get(group.name) for group in groups if group.data}
    return Parts(config.judge, {group.name: config.part(group.name) for group in groups} | data)


def build_cell(composed: Composed) -> Cell:
    """Load the data that the id depends on, check that all parts fit, and name the cell. Raises `UserError`."""
    config = composed.config
    dataset = load(config.dataset)
    tasks, left_out = select_here(dataset, config.dataset, config.sandbox)
    if left_out:
        dataset = replace(dataset, remark="; ".join(filter(None, [dataset.remark, left_out])))
    if not tasks:
        remedy = "install them where sandbox.python is" if left_out else "choose another, or correct dataset.path"
        raise UserError(f"the dataset {dataset.name} has no tasks{left_out and f' ({left_out})'}", remedy)
    check_fit(config, dataset, tasks)
    check_judge(config, tasks)
    contents = load_contents(config, tasks)
    check_texts(dataset, tasks, contents)
    identity, *older = cell_ids(config, dataset, tasks, contents)
    cell = Cell(config, composed.choices, dataset, tasks, contents, identity, "", older=tuple(older))
    cell = replace(cell, remarks=tuple(remarks_on(cell)), name=_name(cell, composed.settings))
    folders = () if cell.folder.exists() else Path(config.runs_dir).glob(f"*-{identity[:8]}")
    begun = min((folder for folder in folders if any(journals_in(folder))), default=None)
    return replace(cell, begun=begun)


def load_contents(config: CellConfig, tasks: Sequence[Task]) -> dict[str, Content]:
    """The data of the groups that affect a cell. Raises `UserError`."""
    loading = [(group, group.load) for group in used_groups(config) if group.load is not None]
    return {group.name: load(config.part(group.name), tasks) for group, load in loading}


def remarks_on(cell: Cell) -> Iterator[str]:
    """Warnings about the tasks and about the first suspicious place in loaded data, and the remarks of the groups.

    Raises `UserError` if a group of a study does not fit the cell.
    """
    dataset = cell.dataset
    yield from (f"warning: {remark}" for remark in (dataset.departure, dataset.remark) if remark)
    for group, content in cell.contents.items():
        more = len(content.warnings) - 1
        remedy = f" (and {more} more: codechat list {group} {group}.path=…)" if more > 0 else ""
        yield from (f"warning: {warning}{remedy}" for warning in content.warnings[:1])
    for each in cell.study_groups:
        yield from each.check(cell)
    yield from undecidable(cell.config, cell.tasks)
    yield from other_languages(cell.config, cell.tasks)


def _name(cell: Cell, settings: Sequence[str]) -> str:
    """A name such as `gpt5 humaneval balanced`, followed by the settings that differ from the defaults."""
    model, label = cell.config.model, cell.model_label
    recorded = model.recorded_model() if label == model.kind else None
    parts = [f"{recorded} ({label})" if recorded else label, cell.dataset.name]
    for group in cell.study_groups:
        parts += group.label(cell.config.part(group.name), cell.choices.get(group.name, group.name))
    if len(cell.tasks) != len(cell.dataset.tasks):
        parts.append(f"{len(cell.tasks)} tasks")
    return " ".join([*parts, *(" ".join(setting.split())[:60] for setting in settings)])[:200]


def endpoints_of(config: CellConfig) -> dict[str, ModelConfig]:
    """The models behind endpoints that a cell may ask, by their place in the config."""
    places = {UNDER_TEST: config.model, **dict(models_in(config.protocol, "protocol"))}
    if "judge" in config.uses:
        places |= dict(models_in(config.judge, "judge"))
    return {place: each for place, each in places.items() if address_of(each) is not None}


def session_id(cell: str, task_id: str) -> str:
    """The id of a task's session in a cell: the same on every run."""
    return content_hash([cell, task_id])[:16]


@contextlib.contextmanager
def lock(folder: Path, key: str = "runs_dir") -> Iterator[None]:
    """Lock the folder that the setting `key` names. Raises `UserError` if another process holds the lock.

    A new folder is removed if a mistake ends the cell before anything is recorded.
    """
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = FileLock(folder / ".lock", timeout=0)
        file.acquire()
    except Timeout:
        problem = f"the folder {folder} is in use by another process"
        raise UserError(problem, "wait for it, or stop it; its results are kept") from None
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}", f"set {key} to a writable folder") from error
    try:
        yield
    except UserError:
        if new:
            _remove_prepared(folder)
        raise
    finally:
        file.release()


def _remove_prepared(folder: Path) -> None:
    """Remove the folder of a cell without a result whose journal is empty."""
    journal = folder / "journal.db"
    prepared = (journal, folder / "config.yaml", folder / ".lock")
    with contextlib.suppress(OSError):
        if {*folder.iterdir()} <= {*prepared} and is_blank(journal):
            for path in prepared:
                path.unlink(missing_ok=True)
            folder.rmdir()


def is_unused(folder: Path, settings: str, *others: str) -> bool:
    """Whether a folder is missing or empty, or was left by a process that was killed before it wrote its `settings`.

    Such a process leaves a lock, a journal without records, and the temporary file of the settings; also `others`,
    which are written before the settings.
    """
    if not folder.is_dir():
        return not folder.exists()
    names = {path.name for path in folder.iterdir()}
    started = {".lock", *(f"journal.db{suffix}" for suffix in ("", "-wal", "-shm"))}
    left = {name for name in names - started - {*others} if not name.startswith(f".{settings}.")}
    if left or (names and names <= {*others}):
        return False
    if "journal.db" not in names:
        return True
    with contextlib.closing(Journal(folder / "journal.db")) as journal:
        return journal.is_empty


def is_held(folder: Path) -> bool:
    """Whether another process holds the lock of a cell's folder for more than `ASKING_S` seconds."""
    if not (folder / ".lock").exists():
        return False
    try:
        with FileLock(folder / ".lock", timeout=ASKING_S):
            return False
    except Timeout:
        return True


class _BlockDumper(yaml.SafeDumper): ...


def _block(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _block)
