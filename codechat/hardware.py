"""What a cell may use of the machine it runs on: nothing here can change a score."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from codechat.config import Config, run_option
from codechat.registry import Registry


class HardwareConfig(Config):
    """Options every kind of hardware has."""

    kind: str = run_option(..., "where the cell runs")
    workers: int | None = run_option(None, "sandbox workers; null: one per core that this process may use", ge=1)


@dataclass(frozen=True, slots=True)
class Resources:
    """What the engine is given."""

    workers: int


HardwareFactory = Callable[[Any], Resources]
HARDWARE: Registry[HardwareFactory] = Registry("hardware", "codechat.hardware")


class LocalConfig(HardwareConfig):
    """This machine."""

    kind: Literal["local"] = run_option("local", "where the cell runs")


@HARDWARE.register("local", LocalConfig)
def local(config: LocalConfig) -> Resources:
    """This machine, one sandbox worker per core unless told otherwise."""
    return Resources(config.workers or len(os.sched_getaffinity(0)))
