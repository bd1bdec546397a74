"""The engine: from a validated config to a cell's folder, without a terminal.

`compose` turns overrides into a config; `codechat.run` itself can be called with it, for notebooks, tests and
benchmarks: `codechat.run(compose([...]))` is `codechat.run.run.run`.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """The package, which is also the function that gives the package its name."""

    def __call__(self, *args: Any, **keys: Any) -> Any:
        from codechat.run.run import run

        return run(*args, **keys)


sys.modules[__name__].__class__ = _Callable
