"""Hardware: a cell's share of the machine it runs on. Nothing here can change a score."""

import os
from dataclasses import dataclass
from typing import Literal

from codechat.base.config import Config, run_option
from codechat.base.registry import NoTraits, Registry

CELLS_AT_ONCE = "CODECHAT_CELLS_AT_ONCE"
"""The environment variable by which a launcher sets the number of cells that share this machine's cores."""


class HardwareConfig(Config):
    """Options every kind of hardware has."""

    kind: str = run_option(..., "where the cell runs")
    workers: int | None = run_option(
        None, "sandbox workers; null: the cores that this process may use, divided by the cells at once", ge=1
    )
    scratch: str | None = run_option(
        None,
        "a folder of this machine for the response cache and the references' results; null: CODECHAT_CACHE_DIR, else "
        "the user's cache folder",
    )
    gpus: int | None = run_option(None, "GPUs for model servers; null: all that nvidia-smi lists, 0: none", ge=0)
    gpu_memory_gb: float | None = run_option(None, "gigabytes of memory of each GPU; null: as nvidia-smi says", gt=0)
    memory_fraction: float = run_option(0.9, "part of a GPU's memory that model servers may use together", gt=0, le=1)
    vllm_args: str = run_option("", "further arguments of `vllm serve`, for every server: --max-num-seqs 64")
    llama_cpp_args: str = run_option(
        "", "further arguments of `llama_cpp.server`, of speed alone: --n_threads 4 --n_gpu_layers -1"
    )
    start_s: float = run_option(
        1800.0, "seconds in which a server must be ready, downloading the weights included", gt=0
    )
    serve: Literal["auto", "never"] = run_option(
        "auto", "auto: a server is started for a model with served_by at whose local base_url nothing answers; or never"
    )


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of the engine."""

    workers: int


HARDWARE: Registry[Resources, NoTraits] = Registry(
    "hardware", "codechat.models.hardware", NoTraits, Resources, HardwareConfig
)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def own_cores() -> int:
    """A cell's share of the cores, at least one."""
    return max(1, cores() // int(os.environ.get(CELLS_AT_ONCE, "1")))


class LocalConfig(HardwareConfig):
    """Options of this machine."""

    kind: Literal["local"] = run_option("local", "where the cell runs")


@HARDWARE.register("local", LocalConfig)
def local(config: LocalConfig) -> Resources:
    """This machine, one sandbox worker per core unless set otherwise."""
    return Resources(config.workers or own_cores())
