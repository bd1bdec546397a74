"""Where an EvalPlus release is on this machine: a file the user names, EvalPlus's override, or its cache.

EvalPlus downloads into its cache on first use; that stays so, through its own code. The cache is then read here,
since importing `evalplus.data` also imports the `datasets` library, which costs seconds that a cached run need not pay.
"""

import contextlib
import hashlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from codechat.environment import user_cache
from codechat.errors import UserError

STALL_S = 60.0


@dataclass(frozen=True, slots=True)
class Release:
    """A released file, as EvalPlus names it, and the variable that makes EvalPlus read another."""

    name: str
    version: str
    override: str

    def locate(self, path: str | None, url: str | None) -> Path:
        """The file to read; downloaded where neither the path nor the override names one and the cache has none.

        Raises `UserError` where the download fails.
        """
        if path is not None:
            return Path(path).expanduser()
        if url is None and os.environ.get(self.override):
            return Path(os.environ[self.override]).expanduser()
        cached = self.cache_path(url)
        if not cached.exists():
            self._download(url, cached)
        return cached

    def cache_path(self, url: str | None = None) -> Path:
        """EvalPlus's own place; what came from another address lies beside it, under a name that tells them apart."""
        mark = "" if url is None else f"-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        return user_cache() / "evalplus" / f"{self.name}-{self.version}{mark}.jsonl"

    def _download(self, url: str | None, target: Path) -> None:
        from evalplus.data.utils import get_dataset_metadata, make_cache

        address = url or get_dataset_metadata(self.name, self.version, mini=False)[0]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # EvalPlus writes its cache in place: a kill or a second process would leave half a file for good.
            with tempfile.TemporaryDirectory(dir=target.parent) as folder, _told_on_stderr(), _bounded_stall():
                part = Path(folder) / target.name
                make_cache(address, str(part))
                part.replace(target)
        except (OSError, EOFError, ValueError, HTTPException) as error:
            raise UserError(
                f"cannot download {self.name} {self.version} from {address}: {error}",
                "give a local copy with dataset.path=FILE (.jsonl or .jsonl.gz), or another address: dataset.url=URL",
            ) from error


@contextlib.contextmanager
def _told_on_stderr() -> Iterator[None]:
    """The downloader prints its progress; standard output belongs to the command's result."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _bounded_stall() -> Iterator[None]:
    """The downloader sets no timeout of its own: a silent server would hold the command for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(STALL_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
