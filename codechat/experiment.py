"""A cell's whole configuration, validated, and the identity that follows from it."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, SerializeAsAny

from codechat.agendas import AGENDAS, AgendaConfig
from codechat.config import Config, result_option, run_option, validate
from codechat.datasets import DATASETS, DatasetConfig
from codechat.domain import Dataset, Task
from codechat.files import content_hash
from codechat.hardware import HARDWARE, HardwareConfig
from codechat.instructions import INSTRUCTIONS, Pool
from codechat.judges import JUDGES, JudgeConfig
from codechat.models import MODELS, ModelConfig
from codechat.protocols import PROTOCOLS
from codechat.registry import Registry
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.tracking import TRACKING

IDENTITY_SCHEMA = 1

GROUPS: Mapping[str, Registry[Any]] = {
    "model": MODELS,
    "dataset": DATASETS,
    "instructions": INSTRUCTIONS,
    "agenda": AGENDAS,
    "protocol": PROTOCOLS,
    "judge": JUDGES,
    "sandbox": SANDBOXES,
    "hardware": HARDWARE,
    "tracking": TRACKING,
}


class Experiment(Config):
    """One cell: a component of every group, and the fixed keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: SerializeAsAny[ModelConfig] = result_option(..., "the model under test")
    dataset: SerializeAsAny[DatasetConfig] = result_option(..., "the tasks")
    instructions: SerializeAsAny[Config] = result_option(..., "the pool of refinement instructions")
    agenda: SerializeAsAny[AgendaConfig] = result_option(..., "how many turns, of which types")
    protocol: SerializeAsAny[Config] = result_option(..., "how a dialogue unfolds")
    judge: SerializeAsAny[JudgeConfig] = result_option(..., "who decides applicability and adherence")
    sandbox: SerializeAsAny[SandboxConfig] = result_option(..., "where candidate code runs, within which limits")
    hardware: SerializeAsAny[HardwareConfig] = run_option(..., "what the cell may use of this machine")
    tracking: SerializeAsAny[Config] = run_option(..., "where the cell's metrics are sent")
    seed: int = result_option(0, "seed of every random choice")
    runs_dir: str = run_option("runs", "folder that holds one folder per cell")
    max_errors: int = run_option(0, "errored sessions that are tolerated before the exit status is 3", ge=0)
    budget_usd: float | None = run_option(
        None, "US dollars that the cell may spend on model and judges, all its runs together; null: no limit", gt=0
    )
    budget_tokens: int | None = run_option(
        None, "tokens, in and out, that the cell may spend on model and judges; null: no limit", gt=0
    )
    dry_run: bool = run_option(False, "estimate calls, tokens and cost, and run nothing")

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Experiment":
        """Validate every group through its registry. Raises `UserError`."""
        parts = {
            group: registry.validate(values[group] if isinstance(values.get(group), Mapping) else {}, group)
            for group, registry in GROUPS.items()
        }
        rest = {name: value for name, value in values.items() if name not in GROUPS}
        return validate(cls, {**rest, **parts}, "")


def cell_id(experiment: Experiment, dataset: Dataset, tasks: tuple[Task, ...], pool: Pool) -> str:
    """Hex SHA-256 of everything that can change a result (contract, section 2).

    A group counts only where the protocol uses it, so that a protocol without an agenda has no agenda in its id.
    """
    uses = PROTOCOLS.of(experiment.protocol).uses
    identity: dict[str, Any] = {
        "schema": IDENTITY_SCHEMA,
        "model": experiment.model.identity(),
        "dataset": {
            **experiment.dataset.identity(),
            "content": dataset.content_hash,
            "tasks": [task.task_id for task in tasks],
        },
        "protocol": experiment.protocol.identity(),
        "sandbox": experiment.sandbox.identity(),
        "seed": experiment.seed,
    }
    if "agenda" in uses:
        identity["agenda"] = experiment.agenda.identity()
    if "instructions" in uses:
        identity["instructions"] = {**experiment.instructions.identity(), "content": pool.content_hash}
    if "judge" in uses:
        identity["judge"] = experiment.judge.identity()
    return content_hash(identity)
