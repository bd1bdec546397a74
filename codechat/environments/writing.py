"""A maintainer's files: which paths they may have, and the commands that write them in a room.

Such a file is written by a command of the room, with no right and no place that the maintainer's own commands lack.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from codechat.environments.dockerfiles import Refused

PIECE = 20_000
"""Characters that one command writes: quoted, they fit into the argument of a shell."""


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a file's path below the repository's root. Raises `Refused` if it leads elsewhere, or to git's."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or ".git" in path.parts:
        raise Refused(f"'{name[:200]}' is no path of a file in the repository")
    return path.parts


def commands_writing(files: Mapping[str, str]) -> Iterator[str]:
    """Shell commands, each run in the repository's root, that write files as a build gets them.

    A path that is refused is left out. A file that leads through a link, or stands where a folder is, is not written.
    """
    for name, text in files.items():
        try:
            parts = parts_of(name)
        except Refused:
            continue
        pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)] or [""]
        for number, piece in enumerate(pieces):
            yield _command(parts, piece, more=number > 0)


def _command(parts: tuple[str, ...], text: str, *, more: bool) -> str:
    """Write a file, or append to it if there is `more` of it than one command takes."""
    places = [shlex.quote("./" + "/".join(parts[:length])) for length in range(1, len(parts) + 1)]
    *folders, place = places
    steps = [f"test ! -L {folder}" for folder in folders]
    steps += [f"mkdir -p {folders[-1]}"] if folders and not more else []
    steps.append(f"test ! -L {place}" if more else f"{{ test ! -L {place} || rm -f {place}; }}")
    prints = [f"printf %s {shlex.quote(part)}" if part != "\0" else r"printf '\000'" for part in re.split("(\0)", text)]
    return " && ".join([*steps, f"{{ {'; '.join(prints)}; }} {'>>' if more else '>'} {place}"])
