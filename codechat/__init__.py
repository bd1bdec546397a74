"""codechat: does a model keep code working while a developer keeps asking for changes?

from codechat import compose, run

outcome = run(compose(["model=echo", "dataset.limit=3", "tracking=none"]))
outcome.status, outcome.metrics["mst"], outcome.folder, list(outcome.sessions)
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from codechat.base.environment import VERSION
from codechat.moved import OldNames

if TYPE_CHECKING:
    from codechat.base.errors import UserError
    from codechat.run.run import run
    from codechat.run.settings.compose import compose

__version__ = VERSION
_HOMES = {"compose": "codechat.run.settings.compose", "UserError": "codechat.base.errors"}
sys.meta_path.insert(0, OldNames())


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that importing the package is fast. `run` is a room that can be called."""
    if name == "run":
        return importlib.import_module("codechat.run")
    if name not in _HOMES:
        raise AttributeError(f"module 'codechat' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


__all__ = ["UserError", "__version__", "compose", "run"]
