"""codechat: does a model keep code working while a developer keeps asking for changes?

from codechat import compose, run

outcome = run(compose(["model=echo", "dataset.limit=3", "tracking=none"]))
outcome.status, outcome.metrics["mst"], outcome.folder, list(outcome.sessions)
"""

from typing import TYPE_CHECKING, Any

from codechat.environment import VERSION

if TYPE_CHECKING:
    from codechat.engine.run import run
    from codechat.engine.settings.compose import compose
    from codechat.errors import UserError

__version__ = VERSION
_HOMES = {"compose": "codechat.engine.settings.compose", "run": "codechat.engine.run", "UserError": "codechat.errors"}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that importing the package is fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'codechat' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


__all__ = ["UserError", "__version__", "compose", "run"]
