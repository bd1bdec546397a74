"""Reports of unit tests draw every figure and render none, since rendering takes most of their time.

A module with `RENDERED = True` has its figures rendered.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_rendered(request: pytest.FixtureRequest) -> Iterator[None]:
    if "codechat.report.build" not in sys.modules or getattr(request.module, "RENDERED", False):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codechat.report.build.save", save_nothing)
        yield


def save_nothing(figure: Any, folder: Path, name: str) -> tuple[Path, Path]:
    """What stands for a figure's two files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    for path in paths:
        path.touch()
    return paths
