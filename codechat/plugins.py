"""Find components: in the modules of a folder of codechat, and in those that other installed packages name."""

import importlib
import pkgutil
import traceback
from importlib.metadata import entry_points

from codechat.errors import UserError


def import_all(room: str, group: str) -> None:
    """Import every module of the package `room`, then those under the entry-point group `codechat.<group>`.

    Raises `UserError` that names the package whose module cannot be loaded.
    """
    for module in pkgutil.iter_modules(getattr(importlib.import_module(room), "__path__", []), f"{room}."):
        importlib.import_module(module.name)
    for point in entry_points(group=f"codechat.{group}"):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist else point.value
            raise UserError(
                f"the {group} '{point.name}' of the package {package} cannot be loaded: {_told(error)}",
                f"mend or uninstall {package}",
            ) from error


def _told(error: BaseException) -> str:
    """The error with its type, unless it speaks for itself, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}:{last.lineno})"
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{error}{where}"
