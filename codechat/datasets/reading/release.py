"""The file of an EvalPlus release: one the user names, EvalPlus's override, or EvalPlus's cache.

EvalPlus's own code downloads into its cache on first use. The cache is then read here, because importing
`evalplus.data` also imports the `datasets` library, which takes seconds.
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
    """A released file: EvalPlus's name of it, the variable that overrides it, its content's hash, its tasks' ids."""

    name: str
    version: str
    override: str
    content: str
    ids: str

    def locate(self, path: str | None, url: str | None) -> Path:
        """The file to read; downloaded if neither the path nor the override names one and the cache has none.

        Raises `UserError` if the download fails.
        """
        if path is not None:
            return Path(path).expanduser()
        if url is None and os.environ.get(self.override):
            return Path(os.environ[self.override]).expanduser()
        cached = self.cache_path(url)
        if not cached.exists():
            self._download(url, cached)
        return cached

    def compared(self, dataset: Dataset) -> Dataset:
        """The dataset that was read, with its departure if it is the release cut, edited or in another version.

        Raises `UserError` if a task has no id of the release: other tasks must not have its name.
        """
        other = next((task.task_id for task in dataset.tasks if not re.fullmatch(self.ids, task.task_id)), None)
        if other is not None:
            raise UserError(
                f"dataset={dataset.name} takes tasks of {self.name} only, and the file holds '{other}'",
                f"{self.elsewhere()}; tasks of your own are dataset=jsonl dataset.path=FILE dataset.name=NAME",
            )
        return compared(dataset, f"{self.name} {self.version}", {self.content})

    def elsewhere(self) -> str:
        """The ways to give a local copy."""
        return f"a local copy is {self.override}=FILE, or in a sweep of this dataset alone dataset.path=FILE"

    def cache_path(self, url: str | None = None) -> Path:
        """EvalPlus's own path; a file from another `url` is beside it, with a hash of the address in its name."""
        mark = "" if url is None else f"-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        return user_cache() / "evalplus" / f"{self.name}-{self.version}{mark}.jsonl"

    def _download(self, url: str | None, target: Path) -> None:
        from evalplus.data.utils import get_dataset_metadata, make_cache

        address = url or get_dataset_metadata(self.name, self.version, mini=False)[0]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # EvalPlus writes its cache in place: a kill or a second process would leave half a file for good.
            with tempfile.TemporaryDirectory(dir=target.parent) as folder, _print_to_stderr(), _limit_stalls():
                part = Path(folder) / target.name
                make_cache(address, str(part))
                part.replace(target)
        except (OSError, EOFError, ValueError, HTTPException) as error:
            raise UserError(
                f"cannot download {self.name} {self.version} from {address}: {error}",
                f"{self.elsewhere()} (.jsonl or .jsonl.gz); another address is dataset.url=URL",
            ) from error


@contextlib.contextmanager
def _print_to_stderr() -> Iterator[None]:
    """Send the downloader's progress to standard error: standard output is for the command's result."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _limit_stalls() -> Iterator[None]:
    """Set the timeout that the downloader lacks: a silent server would block the command forever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(STALL_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
