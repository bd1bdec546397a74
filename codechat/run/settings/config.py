"""A cell's whole configuration, validated, and the cell id."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, Literal, Protocol, Self

from pydantic import ConfigDict, SerializeAsAny, create_model, model_validator
from pydantic.fields import FieldInfo

from codechat.base.config import (
    SCORING,
    Config,
    is_identity,
    is_scoring,
    original_option,
    part_of,
    result_option,
    run_option,
    validate,
)
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.plugins import import_study_files
from codechat.base.registry import Registry
from codechat.base.texts import writable
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.tasks import Dataset, Task
from codechat.judging import JUDGES, QUESTIONS, SOLUTION, JudgeConfig
from codechat.models import MODELS, ModelConfig
from codechat.models.hardware import HARDWARE, HardwareConfig
from codechat.models.roles import without_roles
from codechat.report.tracking import TRACKING
from codechat.run.protocols import PROTOCOLS, questions_of
from codechat.sandbox import SANDBOXES, SandboxConfig


class Content(Protocol):
    """Data that a group's component loads, such as a pool of instructions; `content_hash` is part of the cell id."""

    @property
    def content_hash(self) -> str: ...

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings for the author."""

    def texts(self) -> Iterable[tuple[str, str]]:
        """The ids of the parts, shown in tables, and their texts."""


@dataclass(frozen=True)
class Group:
    """A group of options that a study adds to every cell; a protocol that needs it names it in `uses`.

    `field` declares `options`, the type of its options, in a cell's config, behind the group `behind`. `before` are the
    values of cells from before the group. `check` yields remarks on a cell that uses the group; raises `UserError`.
    `label` returns words of a cell's name. A group may `load` data from options and tasks, which a protocol gets as
    `data`; or its component `serves` the sessions: it is checked before the model under test is asked, and closed after
    the sessions.
    """

    registry: Registry[Any, Any]
    options: Any
    field: Any
    behind: str
    before: Mapping[str, Any] | None = None
    check: Callable[[Any], Iterator[str]] = lambda cell: iter(())
    label: Callable[[Any, str], Sequence[str]] = lambda options, choice: ()
    data: str = ""
    load: Callable[[Config, Sequence[Task]], Content] | None = None
    serves: bool = False

    @property
    def name(self) -> str:
        """The group's name: the key of its options."""
        return self.registry.group


_BROUGHT: dict[str, Group] = {}


def add_group(group: Group) -> None:
    """Add a group; called in a study's file `groups.py`."""
    _BROUGHT[group.name] = group


@cache
def study_groups() -> Mapping[str, Group]:
    """The groups of all installed studies by name. Raises `UserError` for a broken package."""
    import_study_files("groups")
    return dict(_BROUGHT)


IDENTITY_SCHEMA = 1

OWN: tuple[Registry[Any, Any], ...] = (MODELS, DATASETS, PROTOCOLS, JUDGES, SANDBOXES, HARDWARE, TRACKING)


class _Groups(Mapping[str, Registry[Any, Any]]):
    """The registry of each group of a cell, in the order of config.yaml; studies are imported at first use."""

    @functools.cached_property
    def _found(self) -> dict[str, Registry[Any, Any]]:
        found = [(registry.group, registry) for registry in OWN]
        for group in study_groups().values():
            names = [name for name, _ in found]
            found.insert(names.index(group.behind) + 1, (group.name, group.registry))
        return dict(found)

    def __getitem__(self, name: str) -> Registry[Any, Any]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


GROUPS = _Groups()
NEEDED = ("model", "dataset", "protocol")
"""The groups of every protocol; it names others in `uses`."""

RETIRED = frozenset(
    {
        *("traces", "batch_size", "batch_age_s", "share", "build_disk_mb", "build_processes"),
        *("tensor_parallel", "data_parallel", "max_num_seqs", "batch_invariant"),
    }
)
"""Removed options of components: the config.yaml of an older cell is read without them."""


class ShardConfig(Config):
    """Options of a process that runs one of several equal parts of a cell's tasks."""

    index: int | None = run_option(None, "run only this part of the tasks, counted from 0; null: all tasks")
    count: int | None = run_option(None, "of so many parts", ge=1)

    @model_validator(mode="after")
    def _names_a_part(self) -> Self:
        """Raises `UserError` unless both options name one part."""
        index, count = self.index, self.count
        if count is None and index is not None:
            remedy = f"give the number of shards: shard.index={index} shard.count=N"
            raise UserError(f"shard.index={index} needs shard.count", remedy)
        if count is not None and index is None:
            remedy = f"choose one, from 0 to {count - 1}: shard.index=0 shard.count={count}; without both, it merges"
            raise UserError(f"shard.count={count} needs shard.index", remedy)
        if count is not None and index is not None and not 0 <= index < count:
            remedy = f"shard.index counts from 0: the last one is shard.index={count - 1}"
            raise UserError(f"there is no shard {index} of {count}", remedy)
        return self


class StopConfig(Config):
    """Options of a cell that ends before its last task, once enough is known. Off unless `width` or `difference` is."""

    width: float | None = result_option(None, "end when the 95 % interval of the figure is this narrow", gt=0)
    difference: bool = result_option(False, "end when the paired differences in a sweep have a certain sign")
    figure: Literal["mst", "pass_at_1"] = result_option("mst", "mst (in turns), or pass_at_1 (a share) at a turn")
    turn: int | None = result_option(None, "pass_at_1 at this turn; null: the last", ge=0)
    until: int | None = run_option(None, "set by a sweep: end after so many tasks, its checkpoint", ge=1)

    @property
    def is_set(self) -> bool:
        """Whether the cell may end early."""
        return self.width is not None or self.difference


class CellConfig(Config):
    """One cell: a component of every group, and the fixed keys. `whole` also has the groups of the studies."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: SerializeAsAny[ModelConfig] = original_option(..., "the model under test")
    dataset: SerializeAsAny[DatasetConfig] = original_option(..., "the tasks")
    protocol: SerializeAsAny[Config] = original_option(..., "how a dialogue unfolds")
    judge: SerializeAsAny[JudgeConfig] = original_option(
        ..., "decides applicability and adherence", json_schema_extra=SCORING
    )
    sandbox: SerializeAsAny[SandboxConfig] = original_option(
        ..., "where candidate code runs, within which limits", json_schema_extra=SCORING
    )
    hardware: SerializeAsAny[HardwareConfig] = run_option(..., "what the cell may use of this machine")
    tracking: SerializeAsAny[Config] = run_option(..., "where the cell's metrics are sent")
    seed: int = original_option(0, "seed of every random choice")
    runs_dir: str = run_option("runs", "folder that holds one folder per cell")
    max_errors: int = run_option(0, "errored sessions that are tolerated before the exit status is 3", ge=0)
    budget_usd: float | None = run_option(
        None, "US dollars that the cell may spend on model and judges, all its runs together; null: no limit", gt=0
    )
    budget_tokens: int | None = run_option(
        None, "tokens, in and out, that the cell may spend on model and judges; null: no limit", gt=0
    )
    dry_run: bool = run_option(False, "estimate calls, tokens and cost, and run nothing")
    shard: ShardConfig = run_option(ShardConfig(), "which part of the tasks this process runs")
    stop: StopConfig = result_option(StopConfig(), "whether to end once enough is known")

    @staticmethod
    @functools.cache
    def whole() -> "type[CellConfig]":
        """The class of all cells, with a field for each group of an installed study."""
        added: Any = {name: (group.options, group.field) for name, group in study_groups().items()}
        return create_model("CellConfig", __base__=CellConfig, __module__=__name__, __doc__=CellConfig.__doc__, **added)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "CellConfig":
        """Validate every group through its registry. Raises `UserError`."""
        for key, value in values.items():
            if writable(value) is not value:
                raise UserError(f"{key} has half of a surrogate pair, which no file can hold", "leave it out")
        parts = {}
        for group, registry in GROUPS.items():
            brought = study_groups().get(group)
            given = values.get(group, brought.before if brought else None)
            parts[group] = registry.validate(_without_retired(given) if isinstance(given, Mapping) else {}, group)
        settle = PROTOCOLS.of(parts["protocol"]).traits.settle
        parts["protocol"] = settle(parts["protocol"], parts["dataset"])
        unasked = {*QUESTIONS, SOLUTION} - questions_of(parts["protocol"])
        parts["judge"] = without_roles(parts["judge"], unasked)
        fixed = {name: value for name, value in values.items() if name not in GROUPS}
        if isinstance(stop := fixed.get("stop"), Mapping):  # the option `look` was removed
            fixed["stop"] = {name: value for name, value in stop.items() if name != "look"}
        return validate(cls.whole(), {**fixed, **parts}, "")

    def part(self, group: str) -> Any:
        """The options of a group, which may be a study's; None if no installed study has it."""
        return getattr(self, group, None)

    def values(self, exclude: Iterable[str] = ()) -> dict[str, Any]:
        """All options as JSON values, in the order of config.yaml."""
        values = self.model_dump(mode="json", exclude={*exclude})
        names = (*GROUPS, *(name for name in values if name not in GROUPS))
        return {name: values[name] for name in names if name in values}

    @property
    def transient(self) -> set[str]:
        """The options of this process alone, which are in no file."""
        return {"shard"} | (set() if self.stop.is_set else {"stop"})

    @property
    def questions(self) -> tuple[str, ...]:
        """The judge's roles that the protocol asks; none if it uses no judge."""
        asked = PROTOCOLS.of(self.protocol).traits.questions if "judge" in self.uses else frozenset()
        return tuple(role for role in QUESTIONS if role in asked)

    @property
    def uses(self) -> frozenset[str]:
        """The groups that affect the cell: named by the protocol, or needed by every cell."""
        return PROTOCOLS.of(self.protocol).traits.uses | set(NEEDED)

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options that can change a result, of the groups that the protocol uses."""
        unused = GROUPS.keys() - self.uses
        return {name: value for name, value in super().identity(older).items() if name not in unused}

    def field_at(self, key: str) -> FieldInfo | None:
        """The last declared field along a dotted key; None if a part of the key is unknown."""
        node: Any = self
        field: FieldInfo | None = None
        for name in key.split("."):
            if not isinstance(node, Config):
                break
            field = type(node).model_fields.get(name)
            if field is None:
                return None
            node = getattr(node, name)
        return field

    def _fields_along(self, key: str) -> list[FieldInfo | None]:
        """The field at every part of a dotted key."""
        return [self.field_at(".".join(parts)) for parts in accumulate([name] for name in key.split("."))]

    def can_change_result(self, key: str) -> bool:
        """Whether a dotted key is part of the cell id: no part is a run option."""
        return all(field is not None and is_identity(field) for field in self._fields_along(key))

    def is_run_option(self, key: str) -> bool:
        """Whether a dotted key is a run option, or within one."""
        return any(field is not None and part_of(field) == "run" for field in self._fields_along(key))

    def can_change_in_rescoring(self, key: str) -> bool:
        """Whether a key does not affect recorded dialogues: it concerns scoring, paths or this machine."""
        fields = self._fields_along(key)
        run = part_of(type(self).model_fields[key.partition(".")[0]]) == "run"
        place = fields[-1] is not None and part_of(fields[-1]) == "place"
        return run or place or any(each is not None and is_scoring(each) for each in fields)


def _without_retired(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a component without removed ones; a mapping without a kind belongs to the user."""
    gone = RETIRED if "kind" in values else ()
    left = {name: value for name, value in values.items() if name not in gone}
    return {name: _without_retired(value) if isinstance(value, Mapping) else value for name, value in left.items()}


def cell_id(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...], contents: Mapping[str, Content]) -> str:
    """Hex SHA-256 of everything that can change a result (contract, section 2)."""
    return _hash(config.identity(), dataset, tasks, contents, content_outside(tasks))


def cell_ids(
    config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...], contents: Mapping[str, Content]
) -> tuple[str, ...]:
    """The cell's id, then its ids under earlier versions of its rules and baselines, each once.

    Early versions had no repositories in the id.
    """
    identities, content = [config.identity(older) for older in range(config.versions())], content_outside(tasks)
    ids = (_hash(each, dataset, tasks, contents, outside) for each in identities for outside in (content, {}))
    return tuple(dict.fromkeys(ids))


def _hash(
    options: Mapping[str, Any],
    dataset: Dataset,
    tasks: tuple[Task, ...],
    contents: Mapping[str, Content],
    outside: Mapping[str, str],
) -> str:
    """The id of a cell with these options; `outside` is content outside the dataset that verdicts depend on.

    Tasks named `X_without_Y` are an arm of an ablation, which never shares a cell with X, not even with equal tasks.
    """
    identity: dict[str, Any] = {"schema": IDENTITY_SCHEMA, **options}
    identity["dataset"] = {
        **identity["dataset"],
        "content": dataset.content_hash,
        "tasks": [task.task_id for task in tasks],
        **({"outside": outside} if outside else {}),
        **({"without": arm} if (arm := dataset.name.partition("_without_")[2]) and dataset.own else {}),
    }
    for group, content in contents.items():
        if group in identity:
            identity[group] = {**identity[group], "content": content.content_hash}
    return content_hash(identity)


def content_outside(tasks: tuple[Task, ...]) -> dict[str, str]:
    """Content outside the dataset that verdicts depend on, such as repositories: name → content hash."""
    return dict(sorted(pair for task in tasks for suite in task.suites for pair in suite.outside.items()))
