"""The file of an EvalPlus release: the user's file, EvalPlus's override, or EvalPlus's cache.

EvalPlus downloads into its cache on first use. The cache is read here, because importing `evalplus.data` also imports
the `datasets` library, which takes seconds.
"""

import contextlib
import hashlib
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from codechat.base.environment import user_cache
from codechat.base.errors import UserError
from codechat.datasets import compared
from codechat.datasets.tasks import Dataset

STALL_S = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """A released file: EvalPlus's name, the overriding variable, the content's hash, the pattern of task ids."""

    name: str
    version: str
    override: str
    content: str
    ids: str

    def locate(self, path: str | None, url: str | None) -> Path:
        """The path, the override's file or the cached file, downloaded if missing. Raises `UserError` on failure."""
        if path is not None:
            return Path(path).expanduser()
        if url is None and os.environ.get(self.override):
            return Path(os.environ[self.override]).expanduser()
        cached = self.cache_path(url)
        if not cached.exists():
            self._download(url, cached)
        return cached

    def compared(self, dataset: Dataset) -> Dataset:
        """The dataset, with a departure if it is a part, an edit or another version of the release. Raises `UserError`
        if a task has no id of the release: other tasks must not have the release's name."""
        other = next((task.task_id for task in dataset.tasks if not re.fullmatch(self.ids, task.task_id)), None)
        if other is not None:
            raise UserError(
                f"dataset={dataset.name} takes tasks of {self.name} only, and the file holds '{other}'",
                f"{self.elsewhere()}; tasks of your own are dataset=jsonl dataset.path=FILE dataset.name=NAME",
            )
        return compared(dataset, f"{self.name} {self.version}", {self.content})

    def elsewhere(self) -> str:
        return f"a local copy is {self.override}=FILE, or in a sweep of this dataset alone dataset.path=FILE"

    def cache_path(self, url: str | None = None) -> Path:
        """EvalPlus's path in the cache; a file from another `url` has a hash of the address in its name."""
        mark = "" if url is None else f"-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        return user_cache() / "evalplus" / f"{self.name}-{self.version}{mark}.jsonl"

    def _download(self, url: str | None, target: Path) -> None:
        from evalplus.data.utils import get_dataset_metadata, make_cache

        address = url or get_dataset_metadata(self.name, self.version, mini=False)[0]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # EvalPlus writes its cache in place: a kill or a second process would leave half a file for good.
            with tempfile.TemporaryDirectory(dir=target.parent) as folder, _limit_stalls():
                part = Path(folder) / target.name
                with contextlib.redirect_stdout(sys.stderr):  # standard output is for the command's result
                    make_cache(address, str(part))
                part.replace(target)
        except (OSError, EOFError, ValueError, HTTPException) as error:
            raise UserError(
                f"cannot download {self.name} {self.version} from {address}: {error}",
                f"{self.elsewhere()} (.jsonl or .jsonl.gz); another address is dataset.url=URL",
            ) from error


@contextlib.contextmanager
def _limit_stalls() -> Iterator[None]:
    """Set the timeout that the downloader lacks: a silent server would block the command forever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(STALL_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
