"""The strongest kind of isolation that this machine grants."""

from typing import Literal

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox, SandboxConfig
from codechat.sandbox.bubblewrap import bubblewrap
from codechat.sandbox.landlock import landlock
from codechat.sandbox.process import limits_only


class AutoConfig(SandboxConfig):
    """Options of `auto`."""

    kind: Literal["auto"] = run_option("auto", "bubblewrap if it works, else landlock, else process")


@SANDBOXES.register("auto", AutoConfig)
def auto(config: AutoConfig, workers: int = 1) -> Sandbox:
    """Bubblewrap if it works, else landlock, else process, which warns that it is weaker."""
    refusals: list[str] = []
    for start in (bubblewrap, landlock):
        try:
            return start(config, workers)
        except UserError as error:
            refusals.append(error.message)
    return limits_only(config, workers, "; ".join(refusals))
