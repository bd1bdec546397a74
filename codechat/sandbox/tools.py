"""Programs of the host that a box may see: their checked paths and real paths."""

import os
from collections.abc import Iterable
from pathlib import Path

from codechat.environment import cache_root, home
from codechat.errors import UserError

COMMANDS = ("/usr/bin", "/bin")
"""The tools of tests that start the system's commands."""
PROC = "/proc"
"""Stands for a /proc that shows a program its own processes, and no others."""
EMPTY = ("/tmp", "/var/tmp", "/dev", "/proc")  # a box has its own


def check_tools(tools: Iterable[str]) -> tuple[str, ...]:
    """The tools, each once and in order; raises `UserError` for one that is missing, or that a box cannot see."""
    return tuple(dict.fromkeys(map(_check_tool, sorted(tools))))


def _check_tool(tool: str) -> str:
    path = Path(tool)
    if tool == PROC:
        return tool
    if not path.is_absolute() or not os.access(path, os.F_OK):
        raise UserError(f"the sandbox cannot show the tool {tool}: there is none", "install it, or give its whole path")
    real = path.resolve()
    for folder in (path, real):
        if any(folder.is_relative_to(empty) or Path(empty).is_relative_to(folder) for empty in EMPTY):
            raise UserError(
                f"the sandbox cannot show the tool {tool}: a program has {folder} for itself",
                "install it elsewhere, such as in /usr/local or /opt",
            )
    for secret in (cache_root().absolute().resolve(), Path(__file__).resolve().parent.parent, home().resolve()):
        if secret.is_relative_to(real):
            raise UserError(
                f"the sandbox cannot show the tool {tool}: {secret} lies in it, which programs must not see",
                "name the program itself, or a folder that holds nothing else",
            )
    return str(path)


def places(tools: Iterable[str], seen: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(real path, place in the box) of every tool but `PROC`, and of its link targets, except those in `seen` folders.

    A place that is not the real path must be a link to it: many programs look for their own files beside them.
    """
    shown = [Path(folder) for folder in seen]
    pairs: list[tuple[str, str]] = []
    for tool in tools:
        if tool == PROC:
            continue
        path, real = Path(tool), Path(tool).resolve()
        for place in dict.fromkeys((real, path)):
            if not any(place.is_relative_to(folder) for folder in shown):
                shown.append(place)
                pairs.append((str(real), str(place)))
    return tuple(pairs)
