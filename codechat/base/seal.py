"""The seal of a finished cell: hashes that show whether its files were changed since the run wrote them."""

import hashlib
import json
from pathlib import Path

from codechat.base.files import write_atomically
from codechat.base.texts import read_json

SEAL = "seal.json"
SEALED = ("config.yaml", "metrics.json", "sessions.jsonl")


def write_seal(folder: Path) -> None:
    """Seal a cell's files, once all of them are written. Raises `UserError` for a folder that cannot be written."""
    hashes = {name: _hash_of(folder / name) for name in SEALED if (folder / name).is_file()}
    write_atomically(folder / SEAL, json.dumps(hashes, indent=1) + "\n")


def break_seal(folder: Path) -> None:
    """Remove the seal, before a file is written again."""
    (folder / SEAL).unlink(missing_ok=True)


def edited(folder: Path) -> str:
    """A sentence with the remedy if a file of a sealed cell was changed; empty if not, or without a seal."""
    if not (folder / SEAL).is_file():
        return ""
    try:
        hashes = {**read_json((folder / SEAL).read_bytes())}
        changed = [name for name in SEALED if name in hashes and hashes[name] != _hash_of(folder / name)]
    except (OSError, ValueError, TypeError):
        changed = [SEAL]
    if not changed:
        return ""
    verb = "is" if len(changed) == 1 else "are"
    remedy = "the cell's command, run again, restores its files and calls no model"
    return f"{' and '.join(changed)} {verb} not what the run wrote ({SEAL}): figures may be wrong; {remedy}"


def _hash_of(path: Path) -> str:
    if not path.is_file():
        return "gone"
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
