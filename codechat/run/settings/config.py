"""A cell's whole configuration, validated, and the cell id."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, SerializeAsAny, model_validator
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
from codechat.studies.cab.environments import ENVIRONMENTS, EnvironmentConfig
from codechat.studies.refine.agendas import AGENDAS, AgendaConfig
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool

IDENTITY_SCHEMA = 1

GROUPS: Mapping[str, Registry[Any, Any]] = {
    registry.group: registry
    for registry in (
        MODELS,
        DATASETS,
        INSTRUCTIONS,
        AGENDAS,
        PROTOCOLS,
        JUDGES,
        SANDBOXES,
        ENVIRONMENTS,
        HARDWARE,
        TRACKING,
    )
}
NEEDED = ("model", "dataset", "protocol")
"""The groups that every protocol needs; it names the others in `uses`."""

BEFORE: Mapping[str, Mapping[str, str]] = {"environment": {"kind": "none"}}
"""The values that cells have in a group that was added after they were begun."""

RETIRED: Mapping[str, frozenset[str]] = {"tracking": frozenset({"traces"})}
"""Options by group that codechat no longer has: the config.yaml of an older cell is read without them."""


class ShardConfig(Config):
    """Options of a process that runs one of several equal parts of a cell's tasks."""

    index: int | None = run_option(None, "run only this part of the tasks, counted from 0; null: all tasks")
    count: int | None = run_option(None, "of so many parts", ge=1)

    @model_validator(mode="after")
    def _names_a_part(self) -> Self:
        """Raises `UserError`: both options name one part together."""
        if self.count is None and self.index is not None:
            raise UserError(
                f"shard.index={self.index} needs shard.count",
                f"say of how many: shard.index={self.index} shard.count=N",
            )
        if self.count is not None and self.index is None:
            raise UserError(
                f"shard.count={self.count} needs shard.index",
                f"say which of the {self.count}, from 0 to {self.count - 1}: shard.index=0 shard.count={self.count}; "
                "the command without both merges",
            )
        if self.count is not None and self.index is not None and not 0 <= self.index < self.count:
            raise UserError(
                f"there is no shard {self.index} of {self.count}",
                f"shard.index counts from 0: the last one is shard.index={self.count - 1}",
            )
        return self


class StopConfig(Config):
    """Options of a cell that ends before its last task, once enough is known. Off unless `width` or `difference` is."""

    width: float | None = result_option(
        None, "end when the 95 % interval of the figure is no wider than this; null: run all tasks", gt=0
    )
    difference: bool = result_option(
        False, "end when the paired differences from the sweep's other cells have a certain sign"
    )
    figure: Literal["mst", "pass_at_1"] = result_option(
        "mst", "the figure: mst (in turns), or pass_at_1 (a share) at a turn"
    )
    turn: int | None = result_option(None, "pass_at_1 at this turn; null: the last", ge=0)
    until: int | None = run_option(None, "a sweep's own: the tasks at which all differences are decided", ge=1)
    look: int | None = run_option(None, "a sweep's own: run so many tasks, and measure nothing yet", ge=1)

    @property
    def is_set(self) -> bool:
        """Whether the cell may end early."""
        return self.width is not None or self.difference


class CellConfig(Config):
    """One cell: a component of every group, and the fixed keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: SerializeAsAny[ModelConfig] = original_option(..., "the model under test")
    dataset: SerializeAsAny[DatasetConfig] = original_option(..., "the tasks")
    instructions: SerializeAsAny[Config] = original_option(..., "the pool of refinement instructions")
    agenda: SerializeAsAny[AgendaConfig] = original_option(..., "how many turns, of which types")
    protocol: SerializeAsAny[Config] = original_option(..., "how a dialogue unfolds")
    judge: SerializeAsAny[JudgeConfig] = original_option(
        ..., "decides applicability and adherence", json_schema_extra=SCORING
    )
    sandbox: SerializeAsAny[SandboxConfig] = original_option(
        ..., "where candidate code runs, within which limits", json_schema_extra=SCORING
    )
    environment: SerializeAsAny[EnvironmentConfig] = result_option(
        ..., "where a model may run commands in a repository"
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
    pilot: str | None = run_option(
        None, "with dry_run: the folder of a finished cell, by whose calls and tokens the estimate is corrected"
    )
    shard: ShardConfig = run_option(ShardConfig(), "which part of the tasks this process runs")
    stop: StopConfig = result_option(StopConfig(), "whether to end once enough is known")

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "CellConfig":
        """Validate every group through its registry. Raises `UserError`."""
        for key, value in values.items():
            if writable(value) is not value:
                raise UserError(f"{key} has half of a surrogate pair, which no file can hold", "leave it out")
        parts = {}
        for group, registry in GROUPS.items():
            given = values.get(group, BEFORE.get(group))
            options = given.items() if isinstance(given, Mapping) else ()
            left = {name: value for name, value in options if name not in RETIRED.get(group, ())}
            parts[group] = registry.validate(left, group)
        if (settled := getattr(parts["protocol"], "settled", None)) is not None:
            parts["protocol"] = settled(parts["dataset"])
        unasked = {*QUESTIONS, SOLUTION} - questions_of(parts["protocol"])
        parts["judge"] = without_roles(parts["judge"], unasked)
        rest = {name: value for name, value in values.items() if name not in GROUPS}
        return validate(cls, {**rest, **parts}, "")

    @property
    def transient(self) -> set[str]:
        """The names of what says nothing of the whole cell, and is kept in no file: how this process runs it."""
        return {"shard", "pilot"} | (set() if self.stop.is_set else {"stop"})

    @property
    def questions(self) -> tuple[str, ...]:
        """The judge's roles that the protocol asks; none if it uses no judge."""
        asked = PROTOCOLS.of(self.protocol).traits.questions if "judge" in self.uses else frozenset()
        return tuple(role for role in QUESTIONS if role in asked)

    @property
    def uses(self) -> frozenset[str]:
        """The groups that affect the cell: those that the protocol names, and those that every cell needs."""
        return PROTOCOLS.of(self.protocol).traits.uses | set(NEEDED)

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options that can change a result, of the groups that the protocol uses."""
        unused = GROUPS.keys() - self.uses
        return {name: value for name, value in super().identity(older).items() if name not in unused}

    def field_at(self, key: str) -> FieldInfo | None:
        """The declared field nearest to the end of a dotted key; None if a part of the key is unknown."""
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
        parts = key.split(".")
        return [self.field_at(".".join(parts[: count + 1])) for count in range(len(parts))]

    def can_change_result(self, key: str) -> bool:
        """Whether a dotted key is part of the cell id: none of its parts may be a run option."""
        return all(field is not None and is_identity(field) for field in self._fields_along(key))

    def is_run_option(self, key: str) -> bool:
        """Whether a dotted key is one of speed, repetition or machine, or lies within such a group."""
        return any(field is not None and part_of(field) == "run" for field in self._fields_along(key))

    def can_change_in_rescoring(self, key: str) -> bool:
        """Whether a key leaves recorded dialogues as they are: it concerns scoring, paths or this machine."""
        fields = self._fields_along(key)
        group, field = type(self).model_fields[key.partition(".")[0]], fields[-1]
        if part_of(group) == "run" or any(each is not None and is_scoring(each) for each in fields):
            return True
        return field is not None and part_of(field) == "place"


def cell_id(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...], pool: Pool | None) -> str:
    """Hex SHA-256 of everything that can change a result (contract, section 2)."""
    return _hash(config.identity(), dataset, tasks, pool, content_outside(tasks))


def cell_ids(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...], pool: Pool | None) -> tuple[str, ...]:
    """The cell's id, then those that it had under earlier versions of its rules and baselines, each once.

    Every version counts with repositories in the id and (as at first) without.
    """
    identities, content = [config.identity(older) for older in range(config.versions())], content_outside(tasks)
    found = [_hash(each, dataset, tasks, pool, outside) for each in identities for outside in (content, {})]
    return tuple(dict.fromkeys(found))


def _hash(
    options: Mapping[str, Any], dataset: Dataset, tasks: tuple[Task, ...], pool: Pool | None, outside: Mapping[str, str]
) -> str:
    """The id of a cell with these options, whose verdicts depend on the content `outside` the dataset."""
    identity: dict[str, Any] = {"schema": IDENTITY_SCHEMA, **options}
    identity["dataset"] = {
        **identity["dataset"],
        "content": dataset.content_hash,
        "tasks": [task.task_id for task in tasks],
        **({"outside": outside} if outside else {}),
    }
    if pool is not None and "instructions" in identity:
        identity["instructions"] = {**identity["instructions"], "content": pool.content_hash}
    return content_hash(identity)


def content_outside(tasks: tuple[Task, ...]) -> dict[str, str]:
    """Content outside the dataset that verdicts depend on, such as repositories: name → content hash."""
    return dict(sorted(found for task in tasks for suite in task.suites for found in suite.outside.items()))
