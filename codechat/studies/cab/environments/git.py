"""Git over repositories that are data: no settings, questions or protocols but those that are given here."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from codechat.base.errors import UserError

OWN = {
    "LC_ALL": "C",
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables that git gets: these, and nothing of the user's but the path of programs."""
    return {"PATH": os.environ.get("PATH", os.defpath), **OWN, **more}


def git(
    *words: str, more: Mapping[str, str], seconds: float, folder: Path | None = None, stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run git, with `more` variables. Raises `TimeoutExpired`, and `UserError` if it is not installed."""
    try:
        return subprocess.run(
            ["git", *words],
            cwd=folder,
            env=environment(more),
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("git is not installed, and repositories need it", "apt install git") from None


def last_words(stderr: bytes) -> str:
    """The last line of what git said, which tells why it ended."""
    return "".join(stderr.decode(errors="replace").strip().splitlines()[-1:])


def objects_of(clone: Path) -> Path | None:
    """The folder of a clone's own objects, be it with or without a working tree; None if the path is no clone."""
    for place in (clone / ".git", clone):
        objects = place / "objects"
        if (place / "HEAD").is_file() and objects.is_dir() and not place.is_symlink() and not objects.is_symlink():
            return objects
    return None


def borrows(objects: Path) -> bool:
    """Whether objects of another repository belong to these, which could be any."""
    return (objects / "info" / "alternates").exists()
