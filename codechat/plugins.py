"""Where components come from: the modules of a room, and those that other installed packages name."""

import importlib
import pkgutil
from importlib.metadata import entry_points

from codechat.errors import UserError


def import_all(room: str, group: str) -> None:
    """Import every module of a room, then those under the entry-point group `codechat.<group>`.

    Raises `UserError` that names the package whose module cannot be loaded.
    """
    for module in pkgutil.iter_modules(getattr(importlib.import_module(room), "__path__", []), f"{room}."):
        importlib.import_module(module.name)
    for point in entry_points(group=f"codechat.{group}"):
        try:
            point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise UserError(
                f"the {group} '{point.name}' of the package {package} cannot be loaded: {error}",
                f"mend or uninstall {package}",
            ) from error
