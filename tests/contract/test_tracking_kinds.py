"""What every tracker keeps to, whatever its store."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from codechat.base.config import is_identity
from codechat.report.metrics import Point
from codechat.report.tracking import TRACKING, FinishedCell, TrackedRun
from support.stores import mlflow_server

pytestmark = pytest.mark.long

KINDS = [component.name for component in TRACKING]


def finished_cell(folder: Path) -> FinishedCell:
    run = folder / "runs" / "echo-1"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("seed: 0\n")
    return FinishedCell("c0ffee", "echo", {"seed": 0}, (Point("turn/pass_at_1", 1.0, 0),), run)


def test_the_kinds_of_the_group() -> None:
    assert {"mlflow", "none", "server"} <= set(KINDS)


@contextlib.contextmanager
def options_of(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """What the kind needs to be told; a server is started for one that needs its address."""
    if not TRACKING[kind].config.model_fields.get("uri", FieldInfo(default=None)).is_required():
        yield {"kind": kind}
        return
    with mlflow_server(f"sqlite:///{folder}/server.db", folder / "served") as server:
        yield {"kind": kind, "uri": server.uri}


@pytest.mark.parametrize("kind", KINDS)
def test_logging_twice_is_logging_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell = finished_cell(tmp_path)
    with options_of(kind, tmp_path) as options:
        runs = [TRACKING.build(TRACKING.validate(options)).log(cell) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] is None or isinstance(runs[0], TrackedRun)
    assert [path.name for path in cell.folder.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_option_is_part_of_a_cells_identity(kind: str) -> None:
    fields = TRACKING[kind].config.model_fields
    assert not any(is_identity(field) for field in fields.values())
    assert all(field.description for field in fields.values())
