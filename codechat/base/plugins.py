"""Find components: in a package of codechat, in the studies, and in the entry points of other installed packages.

A study is a package whose files are found by their names: `dataset.py`, `dataset_*.py` or a package `dataset` for the
group `dataset`, and so for every group. Studies are in `codechat.studies`, and under the entry-point group
`codechat.study` of installed packages.
"""

import functools
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from codechat.base.errors import UserError

STUDIES = "codechat.studies"


def import_all(package: str, group: str) -> None:
    """Import the modules of a package, of the studies for `group`, and of the group's entry points.

    Raises `UserError` that names the installed package whose module cannot be loaded.
    """
    for name in _modules_in(importlib.import_module(package)):
        importlib.import_module(name)
    import_study_files(group)
    for point in _installed(tuple(sys.path)).get(f"codechat.{group}", ()):
        _load(point, group)


def import_study_files(group: str) -> None:
    """Import the files of all studies that are named after the group. Raises `UserError` as `import_all` does."""
    _import_files(_own_files(), group)
    for point in _installed(tuple(sys.path)).get("codechat.study", ()):
        _load(point, "study", lambda package: _import_files(_modules_in(package), group))


def _modules_in(package: ModuleType) -> Iterator[str]:
    for module in pkgutil.iter_modules(getattr(package, "__path__", []), f"{package.__name__}."):
        yield module.name


@functools.cache
def _own_files() -> tuple[str, ...]:
    """The files of codechat's own studies, listed once a process: every group asks for some of them."""
    studies = map(importlib.import_module, _modules_in(importlib.import_module(STUDIES)))
    return tuple(name for study in studies for name in _modules_in(study))


def _import_files(files: Iterable[str], group: str) -> None:
    for name in files:
        file = name.rpartition(".")[2]
        if file == group or file.startswith(f"{group}_"):
            importlib.import_module(name)


def _load(point: EntryPoint, what: str, then: Callable[[Any], None] = lambda loaded: None) -> None:
    """Load an entry point. Raises `UserError` if that fails."""
    try:
        then(point.load())
    except (Exception, SystemExit) as error:
        package = point.dist.name if point.dist else point.value
        problem = f"the {what} '{point.name}' of the package {package} cannot be loaded: {_words(error)}"
        raise UserError(problem, f"mend or uninstall {package}") from error


@functools.cache
def _installed(path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of all packages on the module path by group, cached: each package has a file of them."""
    points = entry_points()
    return {group: tuple(points.select(group=group)) for group in points.groups if group.startswith("codechat.")}


def _words(error: BaseException) -> str:
    """The error with its type, unless it is a `UserError`, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}:{last.lineno})"
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{error}{where}"
