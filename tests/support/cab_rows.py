"""Issues in CodeAssistBench's fields, and small git repositories, of the tests' own writing."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
       (("NAME", "tests"), ("EMAIL", "tests@localhost"), ("DATE", "2025-01-01T00:00:00Z"))},
}  # fmt: skip
NOWHERE = "0123456789" * 4


def issue(**fields: Any) -> dict[str, Any]:
    """A row; `fields` replace its own."""
    return {
        "number": 4,
        "title": "It does not start",
        "created_at": "2025-01-02T03:04:05Z",
        "closed_at": "2025-01-03T03:04:05Z",
        "commit_id": NOWHERE,
        "labels": [],
        "url": "https://github.com/ann/shop/issues/4",
        "body": "Nothing happens when I start it.",
        "author": "user",
        "comments": [
            {"user": "ann", "created_at": "2025-01-02T04:00:00Z", "body": "Which version is it?"},
            {"user": "user", "created_at": "2025-01-02T05:00:00Z", "body": "1.2, from the archive."},
            {"user": "ann", "created_at": "2025-01-02T06:00:00Z", "body": "Set SHOP_HOME before you start it."},
        ],
        "satisfaction_conditions": ["Names the variable that must be set"],
        "_classification": {"category": "Does not need build environment", "timestamp": "2025-01-01"},
        "dockerfile": None,
        "language": "python",
        **fields,
    }


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """A task file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def git(folder: Path, *words: str, **variables: str) -> str:
    """What git prints in a folder."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**GIT, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str], *, bare: bool = False) -> str:
    """A repository with one commit of these files, whose id it returns; a bare one is a mirror."""
    work = folder.with_name(folder.name + ".work") if bare else folder
    work.mkdir(parents=True)
    git(work, "init", "-q")
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "files")
    if bare:
        git(work.parent, "clone", "-q", "--mirror", str(work), str(folder))
    return git(work, "rev-parse", "HEAD")
