"""The file of an EvalPlus release: one the user names, EvalPlus's override, or EvalPlus's cache.

EvalPlus's own code downloads into its cache on first use. The cache is then read here, because importing
`evalplus.data` also imports the `datasets` library, which takes seconds.
"""

import contextlib
import hashlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path

from codechat.environment import user_cache
from codechat.errors import UserError
from codechat.tasks import Dataset
from codechat.template import counted

STALL_S = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """A released file: EvalPlus's name of it, the variable that overrides it, and its content's hash."""

    name: str
    version: str
    override: str
    content: str

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
        """The dataset that was read, with a remark if it is not the release but cut, edited or another version."""
        if dataset.content_hash == self.content:
            return dataset
        found = f"{counted(len(dataset.tasks), 'task')} with the content {dataset.content_hash[:8]}"
        remark = f"{found} are not {self.name} {self.version}: compare no figure with those of the release"
        return replace(dataset, remark=remark)

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
                "give a local copy with dataset.path=FILE (.jsonl or .jsonl.gz), or another address: dataset.url=URL",
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
