"""This machine."""

from typing import Literal

from codechat.config import run_option
from codechat.hardware import HARDWARE, HardwareConfig, Resources, own_cores


class LocalConfig(HardwareConfig):
    """Options of this machine."""

    kind: Literal["local"] = run_option("local", "where the cell runs")


@HARDWARE.register("local", LocalConfig)
def local(config: LocalConfig) -> Resources:
    """This machine, one sandbox worker per core unless set otherwise."""
    return Resources(config.workers or own_cores())
