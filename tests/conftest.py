"""For every test: a response cache of its own, so that none answers another's question or writes into the user's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.cache import LOCATION


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCATION, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def cache_folder(cache_of_the_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test's cache, for processes that it starts too."""
    folder = tmp_path / "response cache"
    monkeypatch.setenv(LOCATION, str(folder))
    return folder
