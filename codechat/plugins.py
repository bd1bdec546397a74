"""Find components: in the modules of a folder of codechat, and in those that other installed packages name."""

import functools
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from codechat.errors import UserError


def import_all(room: str, group: str) -> None:
    """Import every module of the package `room`, then those under the entry-point group `codechat.<group>`.

    Raises `UserError` that names the package whose module cannot be loaded.
    """
    for module in pkgutil.iter_modules(getattr(importlib.import_module(room), "__path__", []), f"{room}."):
        importlib.import_module(module.name)
    for point in _installed(tuple(sys.path)).get(f"codechat.{group}", ()):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist else point.value
            raise UserError(
                f"the {group} '{point.name}' of the package {package} cannot be loaded: {_told(error)}",
                f"mend or uninstall {package}",
            ) from error


@functools.cache
def _installed(path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of all packages on the module path by group, read once: they are in a file a package."""
    found = entry_points()
    return {group: tuple(found.select(group=group)) for group in found.groups if group.startswith("codechat.")}


def _told(error: BaseException) -> str:
    """The error with its type, unless it speaks for itself, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}:{last.lineno})"
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{error}{where}"
