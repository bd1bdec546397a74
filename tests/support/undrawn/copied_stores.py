"""Where CODECHAT_TEST_STORE names a file, MLflow's new stores in files are copies of it: migrations take two seconds.

The first new store of all becomes that file, once MLflow has made its tables.
"""

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

NAME = "CODECHAT_TEST_STORE"
MODULE = "mlflow.store.db.utils"


def copying(initialize: Callable[[Any], None]) -> Callable[[Any], None]:
    """What makes the tables of a new store, given MLflow's own way."""

    def copy(engine: Any) -> None:
        made = Path(os.environ.get(NAME, ""))
        place = engine.url.database
        if not made.name or engine.dialect.name != "sqlite" or place in (None, "", ":memory:"):
            initialize(engine)
        elif made.exists():
            _copy(made, place)
        else:
            initialize(engine)
            own = made.with_suffix(f".{os.getpid()}")
            _copy(place, own)
            own.replace(made)

    return copy


def _copy(source: str | Path, target: str | Path) -> None:
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


class Changed(MetaPathFinder):
    """Changes a module as soon as it is imported."""

    def __init__(self, module: str, change: Callable[[Any], None]) -> None:
        self._module, self._change = module, change

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == self._module else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _copies(module: Any) -> None:
    module._initialize_tables = copying(module._initialize_tables)


def install() -> None:
    """For stores that this process is going to make."""
    sys.meta_path.insert(0, Changed(MODULE, _copies))
