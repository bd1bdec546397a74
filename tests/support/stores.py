"""MLflow stores and servers, and a real PostgreSQL server on loopback."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent.parent.parent / "mlflow" / "serve.sh"
START_S = 120.0


@dataclass(frozen=True)
class MlflowServer:
    """A running server."""

    uri: str
    process: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        """End it and its workers at once; a second time does nothing."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextlib.contextmanager
def mlflow_server(store: str, artifacts: Path, workers: int = 1) -> Iterator[MlflowServer]:
    """A server that ends with the block; its log lies beside the artifacts."""
    artifacts.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with artifacts.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [SCRIPT, store, str(artifacts), "--port", str(port), "--workers", str(workers)],
            cwd=artifacts,
            env={**os.environ, "PATH": path},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = MlflowServer(f"http://127.0.0.1:{port}", process)
    try:
        wait_until_healthy(port, process, artifacts.with_suffix(".log"))
        yield server
    finally:
        server.kill()


def wait_until_healthy(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        assert process.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return
        time.sleep(0.1)


def client_of(folder: Path) -> Any:
    """A client of the folder's store.

    Its URI is absolute: MLflow keeps one connection per URI for the life of a process, so that a relative one would
    read the store of whichever test opened it first.
    """
    import mlflow

    return mlflow.MlflowClient(f"sqlite:///{folder.absolute()}/mlflow/store.db")


def client_at(uri: str) -> Any:
    """A client of any store. MLflow, and what it is built on, warn when they open one."""
    import mlflow

    os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")  # keeps no connection of a server's few
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(uri)
        client.search_experiments(max_results=1)
    return client


USER, PASSWORD = "codechat", "se:cr/et"  # characters that a URI must quote
QUOTED = "se%3Acr%2Fet"
SYSTEM_USER = "postgres"  # the server refuses to run as root; the package brings this user
POSTGRES_START_S = 60.0


def programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs, which the distribution keeps off the PATH."""
    found = [each.parent for each in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    newest = max(found, key=lambda each: int(each.parent.name), default=None)
    return newest or (Path(on_path).parent if on_path else None)


def lacking() -> str:
    """Why no server can be had here; empty if one can."""
    if programs() is None:
        return "needs the package postgresql"
    if os.getuid() == 0 and SYSTEM_USER not in {each.pw_name for each in pwd.getpwall()}:
        return f"needs the user {SYSTEM_USER}"
    return ""


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    port: int
    folder: Path

    def uri(self, database: str, password: str = f":{QUOTED}", **options: str) -> str:
        """The URI of a database; `password=""` leaves the password out."""
        query = "?" + "&".join(f"{key}={value}" for key, value in options.items()) if options else ""
        return f"postgresql://{USER}{password}@127.0.0.1:{self.port}/{database}{query}"

    def create(self, database: str) -> str:
        """Create an empty database; returns its URI."""
        self.ask(f'CREATE DATABASE "{database}"', "postgres")
        return self.uri(database)

    def ask(self, statement: str, database: str) -> str:
        """What a statement answers, as unaligned text."""
        words = [str(self.folder / "psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        answer = subprocess.run(
            [*words, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return answer.stdout.strip()


@contextlib.contextmanager
def postgres(port: int | None = None) -> Iterator[Postgres]:
    """A server that ends with the block, on this port or a free one."""
    folder = programs()
    assert folder is not None
    user = SYSTEM_USER if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="codechat-postgres-", ignore_cleanup_errors=True) as own:
        data, secret = Path(own, "data"), Path(own, "password")
        secret.write_text(PASSWORD)
        if user is not None:
            shutil.chown(own, user)
            shutil.chown(secret, user)
        made = [folder / "initdb", "-D", data, "-U", USER, "--pwfile", secret, "-A", "scram-sha-256", "-E", "UTF8"]
        subprocess.run([*made, "--no-sync", "--locale=C"], check=True, capture_output=True, user=user, cwd="/")
        port = port or free_port()
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": own, "fsync": "off"}
        words = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with Path(own, "log").open("wb") as log:
            server = subprocess.Popen(
                [folder / "postgres", "-D", data, *words], user=user, cwd="/", stdout=log, stderr=log
            )
        try:
            wait_until_ready(folder, port, server)
            yield Postgres(port, folder)
        finally:
            server.send_signal(signal.SIGINT)  # ends the connections, and then itself
            server.wait(POSTGRES_START_S)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(folder: Path, port: int, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + POSTGRES_START_S
    asked = [folder / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(asked, check=False).returncode != 0:
        assert server.poll() is None and time.monotonic() < until, "PostgreSQL did not come up"
        time.sleep(0.1)
