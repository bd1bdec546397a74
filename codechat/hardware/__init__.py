"""Hardware: a cell's share of the machine it runs on. Nothing here can change a score."""

from dataclasses import dataclass

from codechat.config import Config, run_option
from codechat.registry import NoTraits, Registry


class HardwareConfig(Config):
    """Options every kind of hardware has."""

    kind: str = run_option(..., "where the cell runs")
    workers: int | None = run_option(None, "sandbox workers; null: one per core that this process may use", ge=1)


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of the engine."""

    workers: int


HARDWARE: Registry[Resources, NoTraits] = Registry("hardware", "codechat.hardware", NoTraits, Resources, HardwareConfig)
