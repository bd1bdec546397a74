"""Folders of repositories: which of those that the chosen tasks need are there, told before any model is asked."""

import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from codechat.errors import MAX_WIDTH, UserError
from codechat.template import counted

CLONE = "clone them there, each at the commit that the tasks were made from (docs/sreval.md), or choose dataset.tasks"
NAME_IT = "set dataset.repos=DIR to the folder that holds them, or choose others with dataset.tasks"


def folder_of(repos: str | None) -> Path | None:
    """The folder that `dataset.repos` names."""
    return None if repos is None else Path(repos).expanduser().resolve()


def require_repositories(repos: Path | None, needed: Iterable[str]) -> None:
    """Raises `UserError` that names every missing repository; `needed` has the repository of each chosen task."""
    missing = Counter(name for name in needed if repos is None or not (repos / name).is_dir())
    if not missing:
        return
    tasks = f"{counted(missing.total(), 'chosen task')} need{'s' if missing.total() == 1 else ''}"
    where = f" that {'is' if len(missing) == 1 else 'are'} not in {repos}" if repos is not None else ""
    head = f"{tasks} {counted(len(missing), 'repository', 'repositories')}{where} (tasks of each in brackets):"
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items()))
    lines = textwrap.wrap(listed, MAX_WIDTH, break_on_hyphens=False)
    raise UserError("\n".join([head, *lines]), NAME_IT if repos is None else CLONE)
