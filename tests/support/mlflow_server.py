"""An MLflow server of the tests' own, started as a team starts it: by `mlflow/serve.sh`."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
