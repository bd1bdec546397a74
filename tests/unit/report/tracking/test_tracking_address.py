"""Which tracking URIs are understood, and what is told of them."""

from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.report.tracking import TRACKING
from codechat.report.tracking.address import Address, without_password


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:///mlflow/store.db",
        "sqlite:////var/store.db?timeout=60",
        "http://127.0.0.1:5000",
        "https://user:secret@tracking.example.org/mlflow",
        "postgresql+psycopg://user:secret@db/mlflow",
        "mysql://db/mlflow",
        "mssql+pyodbc://db/mlflow",
        "databricks",
        "databricks://profile",
    ],
)
def test_stores_that_mlflow_knows(uri: str) -> None:
    config = TRACKING.validate({"kind": "mlflow", "uri": uri})
    assert config.model_dump()["uri"] == uri


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("htpp://127.0.0.1:5000", "'htpp' is not a kind"),
        ("gopher+x://user:secret@host", "'gopher' is not a kind"),
        ("./mlruns", "no runs in plain folders"),
        ("file:///tmp/mlruns", "no runs in plain folders"),
        ("", "no runs in plain folders"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("http://", "no host"),
        ("http://user:secret@[::1", "Invalid IPv6"),
        ("http://127.0.0.1:notaport", "Port could not"),
    ],
)
def test_a_uri_that_is_none_is_the_users_mistake(uri: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        TRACKING.validate({"kind": "mlflow", "uri": uri})
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5


def test_the_default_store_lies_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = Address.of(None)
    assert address.database == tmp_path / "mlflow" / "store.db"
    assert address.artifacts(None, Path("elsewhere")) == (tmp_path / "mlflow" / "artifacts").as_uri()
    assert address.open_with("1", "r").endswith("mlflow ui --backend-store-uri sqlite:///mlflow/store.db")
    assert address.charts("1") == "http://127.0.0.1:5000/#/experiments/1/runs?compareRunsMode=CHART"


def test_two_working_folders_are_two_stores_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uris = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        uris.append(Address.of(None).client_uri)
    assert uris[0] != uris[1]


def test_a_servers_run_has_a_page_and_no_password_in_it() -> None:
    address = Address.of("https://user:secret@tracking.example.org/mlflow/")
    assert address.open_with("3", "abc") == "https://***@tracking.example.org/mlflow/#/experiments/3/runs/abc"
    assert address.charts("3").startswith("https://***@tracking.example.org/mlflow/#/experiments/3/runs?")
    assert address.database is address.artifacts(None, Path("runs")) is address.socket is None


def test_a_database_server_is_reached_at_its_usual_port() -> None:
    assert Address.of("postgresql+psycopg://u:p@db/mlflow").socket == ("db", 5432)
    assert Address.of("mysql://db:3333/mlflow").socket == ("db", 3333)
    assert Address.of("postgresql:///mlflow?host=/run/postgresql").socket is None


@pytest.mark.parametrize(
    ("uri", "public"),
    [
        ("postgresql://me:secret@db:5433/mlflow", "postgresql://me@db:5433/mlflow"),
        ("postgresql+psycopg://me@db/mlflow?sslmode=require", "postgresql+psycopg://me@db/mlflow?sslmode=require"),
        ("postgresql:///mlflow?host=/run/pg&password=secret&user=me", "postgresql:///mlflow?host=/run/pg&user=me"),
        ("mysql://me:a%40secret@db/mlflow", "mysql://me@db/mlflow"),
        ("https://me:secret@tracking.example.org/mlflow", "https://tracking.example.org/mlflow"),
        ("sqlite:////var/a@b?timeout=60", "sqlite:////var/a@b?timeout=60"),
        ("databricks", "databricks"),
    ],
)
def test_a_command_can_name_a_store_without_its_secrets(uri: str, public: str) -> None:
    assert Address.of(uri).public_uri == public
    assert Address.of(public).public_uri == public


@pytest.mark.parametrize(
    "text",
    [
        "at postgresql://me:secret@db/x: no",
        "tracking.uri=postgresql+psycopg://me:sec/ret@db/x",
        "uri: postgresql:///x?user=me&password=secret",
        '"mysql://db/x?passwd=secret&y=1"',
        "http://me:secret@server",
    ],
)
def test_no_password_is_shown(text: str) -> None:
    shown = without_password(text)
    assert "sec" not in shown
    assert "***" in shown
    assert without_password(shown) == shown


def test_artifacts_of_a_database_lie_beside_the_runs_or_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = Address.of("postgresql://db/mlflow")
    assert database.artifacts(None, Path("runs")) == (tmp_path / "mlflow" / "artifacts").as_uri()
    assert database.artifacts(None, Path("/scratch/runs")) == "file:///scratch/mlflow/artifacts"
    assert database.artifacts("files", Path("runs")) == (tmp_path / "files").as_uri()
    assert database.artifacts("s3://bucket/x", Path("runs")) == "s3://bucket/x"
    assert Address.of(None).artifacts("files", Path("runs")) == (tmp_path / "files").as_uri()


@pytest.mark.parametrize("uri", ["postgresql://db/mlflow", "sqlite:///store.db", "./mlruns", "http://", "gopher://x"])
def test_only_a_server_is_a_server(uri: str) -> None:
    with pytest.raises(UserError, match=r"tracking\.uri="):
        TRACKING.validate({"kind": "server", "uri": uri})


def test_a_server_needs_its_address() -> None:
    with pytest.raises(UserError, match=r"tracking\.uri is required"):
        TRACKING.validate({"kind": "server"})


@pytest.mark.parametrize("uri", ["http://127.0.0.1:5000", "databricks"])
def test_a_server_says_itself_where_files_go(uri: str) -> None:
    with pytest.raises(UserError, match="artifacts-destination"):
        TRACKING.validate({"kind": "mlflow", "uri": uri, "artifacts": "files"})
