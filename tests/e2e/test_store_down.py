"""A store that is down: the cells are done, a few lines say so, and the command they print fills that very store."""

import shlex
import sys
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.cli.cell_view import store_words
from codechat.report.tracking import TRACKING
from codechat.run.settings.compose import compose
from support.stores import PASSWORD, QUOTED, USER, client_at, free_port, lacking, postgres

pytestmark = pytest.mark.long

CELL = ("model=echo", "dataset.limit=1", "agenda.turns=2", "hardware.workers=1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def upload_in(told: str) -> list[str]:
    """The words of the command behind `Later:`, without the program."""
    (line,) = [line for line in told.splitlines() if "Later: " in line]
    return shlex.split(line.partition("Later: ")[2])[1:]


@pytest.mark.postgres
@pytest.mark.skipif(bool(lacking()), reason=lacking())
def test_a_database_that_comes_up_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    port = free_port()
    uri = f"postgresql://{USER}:{QUOTED}@127.0.0.1:{port}/team"
    words = [f"tracking.uri={uri}", "tracking.experiment=our study", f"tracking.artifacts={tmp_path}/files"]
    assert main([*CELL, *words]) == 0
    told = capsys.readouterr()
    assert "MLflow at postgresql://***@" in told.err
    assert len(told.err.strip().splitlines()) <= 5
    assert QUOTED not in told.out + told.err and PASSWORD not in told.out + told.err
    assert "set PGPASSWORD" in told.err
    command = upload_in(told.err)
    with postgres(port) as server:
        server.create("team")
        assert main(command) == 2
        assert "not uploaded: " in capsys.readouterr().err
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        assert main(command) == 0
        assert f"--backend-store-uri postgresql://{USER}@127.0.0.1:{port}/team" in capsys.readouterr().out
        client = client_at(uri)
        (run,) = client.search_runs([client.get_experiment_by_name("our study").experiment_id])
        assert run.info.status == "FINISHED"
        assert run.info.artifact_uri.startswith((tmp_path / "files").as_uri())
    assert not (tmp_path / "mlflow").exists(), "the local store stays empty"


def test_a_server_is_named_without_its_login(capsys: pytest.CaptureFixture[str]) -> None:
    server = f"127.0.0.1:{free_port()}"
    assert main([*CELL, "tracking=server", f"tracking.uri=http://user:secret@{server}", "tracking.live=false"]) == 0
    told = capsys.readouterr().err
    assert len(told.strip().splitlines()) <= 5
    assert "secret" not in told
    chosen = ["tracking=server", f"tracking.uri=http://{server}", "tracking.live=False"]
    assert upload_in(told)[2:] == chosen
    assert "MLFLOW_TRACKING_USERNAME" in told and "MLFLOW_TRACKING_PASSWORD" in told
    assert main(upload_in(told)) == 2
    assert "not uploaded: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plain", "two words", "a,b", "a=b", "42", "null", "it's", 'say "x"', "{x}", "ä"])
def test_the_command_names_every_experiment_as_it_is(name: str) -> None:
    config = TRACKING.validate({"kind": "server", "uri": "http://127.0.0.1:1/x?y=1,2&z=%20", "experiment": name})
    assert compose(list(store_words(config))).config.tracking == config


def test_the_table_of_a_sweep_says_which_cells_are_not_tracked(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["seed=0,1", f"tracking.uri=http://127.0.0.1:{free_port()}"]
    assert main(["-m", *CELL, *words]) == 0
    told = capsys.readouterr()
    assert told.out.count("done, not tracked") == 2
    assert told.err.count("Later: ") == 2


@pytest.mark.parametrize(
    ("word", "module", "install"),
    [
        ("uri=postgresql://db/mlflow", "psycopg", "pip install 'codechat[postgres]'"),
        ("uri=mysql+pymysql://db/mlflow", "pymysql", "pip install 'PyMySQL'"),
        ("artifacts=s3://bucket/cells", "boto3", "pip install boto3"),
    ],
)
def test_a_missing_library_is_told_before_anything_runs(
    word: str, module: str, install: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main([*CELL, f"tracking.{word}"]) == 2
    told = capsys.readouterr()
    assert install in told.err
    assert len(told.err.strip().splitlines()) <= 5
    assert not Path("runs").exists()
