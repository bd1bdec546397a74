"""For every test: a response cache of its own, so that none answers another's question or writes into the user's.

What the sandbox worked out about references is shared, as is its Java runtime: both are dear, and the same for every
test.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codechat.environment import cache_root

LOCATION = "CODECHAT_CACHE_DIR"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: a worker more than cores, since many tests wait for processes, servers and limits of time."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def new_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a cache folder with nothing in it but the sandbox's truths and its Java runtime."""
    shared = [cache_root() / "expected", cache_root() / "java"]
    for folder in shared:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folders, numbers = tmp_path_factory.mktemp("caches"), itertools.count()

    def make() -> Path:
        folder = folders / str(next(numbers))
        folder.mkdir()
        for each in shared:
            (folder / each.name).symlink_to(each.resolve())
        return folder

    return make


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(new_cache: Callable[[], Path]) -> Iterator[None]:
    """For fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCATION, str(new_cache()))
        yield


@pytest.fixture(autouse=True)
def cache_folder(new_cache: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test, and of processes that it starts."""
    folder = new_cache()
    monkeypatch.setenv(LOCATION, str(folder))
    return folder
