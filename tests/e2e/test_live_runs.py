"""A cell in MLflow while it runs: it appears, rises, ends as it ended, and costs the cell nothing if the store is down."""

import asyncio
import contextlib
import itertools
import json
import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.report.tracking import TRACKING, live
from codechat.report.tracking.live import PROCESS_TAG
from codechat.report.tracking.mlflow_run import INCOMPLETE
from codechat.report.tracking.runs import find_cells
from codechat.testing import Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import without_times
from support.processes import Seen, seen, started, wait_until
from support.stores import client_at, client_of, mlflow_server

pytestmark = pytest.mark.long

SESSIONS = 8
CELL = (
    "model=openai",
    "model.name=fading-20",
    "model.api_key_env=null",
    "model.cache=false",
    "model.max_concurrency=2",
)
SIZE = (f"dataset.limit={SESSIONS}", "agenda.turns=3", "hardware.workers=1")
SECONDS = 0.3


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database: making one takes seconds, copying it none."""
    folder = tmp_path_factory.mktemp("template")
    tracker: Any = TRACKING.build(TRACKING.validate({"kind": "mlflow", "uri": f"sqlite:///{folder}/store.db"}))
    tracker.open(folder / "runs")
    return folder / "store.db"


@pytest.fixture
def folder(tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose default store exists; cells of this process are shown at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live, "FIRST_S", 0.0)
    monkeypatch.setattr(live, "PAUSE_S", 0.2)
    (tmp_path / "mlflow").mkdir()
    shutil.copy(migrated, tmp_path / "mlflow" / "store.db")
    return tmp_path


class Late:
    """A model that takes its time. While it is held, the sessions that end first have ended, and no other one can."""

    def __init__(self) -> None:
        self.held = False
        self._answer = fading_solver(dataset_tasks("starter"))

    async def __call__(self, call: Call) -> Any:
        await asyncio.sleep(SECONDS)
        while self.held and call.number > 2 * SESSIONS + 3:  # noqa: ASYNC110  the test's own thread lets go
            await asyncio.sleep(0.05)
        return self._answer(call)


@pytest.fixture
def model() -> Late:
    return Late()


@pytest.fixture
def words(model: Late) -> Iterator[tuple[str, ...]]:
    """The words of a cell of that model."""
    with OpenAIServer(model, keep_calls=False) as server:
        yield (*CELL, *SIZE, f"model.base_url={server.base_url}")


@contextlib.contextmanager
def watching(store: Path) -> Iterator[list[Seen]]:
    """Everything that could be seen of the store's one run, in order, without repetitions."""
    found: list[Seen] = []
    ended = threading.Event()

    def look() -> None:
        last = False
        while not last:
            last = ended.wait(0.02)
            for run in seen(store):
                if not found or found[-1] != run:
                    found.append(run)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def metrics_in(folder: Path) -> Any:
    (path,) = folder.glob("runs/*/metrics.json")
    return without_times(json.loads(path.read_text()))


def test_a_cell_is_a_run_that_rises_and_then_has_everything(folder: Path, words: tuple[str, ...]) -> None:
    with watching(folder / "mlflow" / "store.db") as found:
        assert main([*words]) == 0
    assert len({run.run_id for run in found}) == 1
    assert unrepeated(found) == ["RUNNING", "FINISHED"]
    counts = [run.sessions[-1][1] for run in found if run.sessions and run.status == "RUNNING"]
    assert counts == sorted(counts) and counts[0] < counts[-1] == SESSIONS
    assert len(set(counts)) > 2
    run = client_of(folder).get_run(found[0].run_id)
    shown, metrics = run.data.metrics, metrics_in(folder)
    assert (shown["progress/sessions"], shown["progress/errors"]) == (SESSIONS, 0)
    assert shown["progress/pass_rate"] == pytest.approx(sum(metrics["pass_at_1"]) / 3)
    used = metrics["tokens"]
    assert shown["progress/tokens"] == sum(each["input_tokens"] + each["output_tokens"] for each in used.values())
    assert "progress/dollars" not in shown, "no price is known"
    assert shown["final/mst"] == metrics["mst"]
    assert [point.step for point in client_of(folder).get_metric_history(run.info.run_id, "turn/pass_at_1")] == [
        0,
        1,
        2,
    ]
    assert {item.path for item in client_of(folder).list_artifacts(run.info.run_id)} > {"metrics.json", "tables"}
    assert run.info.end_time - run.info.start_time > 1000 * SECONDS, "the run began with the cell"
    again = main([*words])
    assert again == 0
    assert [each.run_id for each in seen(folder / "mlflow" / "store.db")] == [run.info.run_id]


def test_dollars_are_shown_where_they_are_known(folder: Path, words: tuple[str, ...]) -> None:
    assert main([*words, "dataset.limit=1", "model.prices={input: 1000, output: 0}"]) == 0
    ((run_id, _, _),) = seen(folder / "mlflow" / "store.db")
    shown = client_of(folder).get_run(run_id).data.metrics
    paid = metrics_in(folder)["cost_usd"]["model"]
    assert paid > 0 and shown["progress/dollars"] == pytest.approx(paid)


def test_it_can_be_turned_off_and_changes_no_result(folder: Path, words: tuple[str, ...]) -> None:
    assert main([*words, "runs_dir=shown/runs", "tracking.experiment=shown"]) == 0
    shown = {run.run_id for run in seen(folder / "mlflow" / "store.db")}
    assert main([*words, "tracking.live=false"]) == 0
    (own,) = (run for run in seen(folder / "mlflow" / "store.db") if run.run_id not in shown)
    run = client_of(folder).get_run(own.run_id)
    assert run.info.status == "FINISHED" and PROCESS_TAG not in run.data.tags
    assert not [key for key in run.data.metrics if key.startswith("progress/")]
    assert run.info.end_time - run.info.start_time < run.data.metrics["cost/wall_s"] * 1000, "it began at the end"
    assert metrics_in(folder) == metrics_in(folder / "shown")
    assert [path.name for path in folder.glob("runs/*")] == [path.name for path in folder.glob("shown/runs/*")]


def test_the_next_start_of_a_killed_cell_continues_its_run(folder: Path, words: tuple[str, ...], model: Late) -> None:
    """First it is killed and cannot say so, then terminated, which is noted, and at last it is let finish."""
    store = folder / "mlflow" / "store.db"
    reached: tuple[tuple[int, float], ...] = ()
    runs = set[str]()
    for stop, status, left in ((signal.SIGKILL, -9, "RUNNING"), (signal.SIGTERM, 130, "KILLED")):
        model.held = True
        with started(folder, *words) as process:
            wait_until(partial(has_gone_on, store, len(reached)))
            process.send_signal(stop)
            model.held = False
            process.communicate(timeout=60)
        assert process.returncode == status
        ((run_id, state, sessions),) = seen(store)
        runs.add(run_id)
        assert (state, process_of(folder, run_id)) == (left, f"{socket.gethostname()} {process.pid}")
        assert sessions[: len(reached)] == reached, "the series goes on"
        reached = sessions
        assert reached[-1][1] < SESSIONS, "something is left to do"
        with pytest.raises(UserError, match="has no finished cell"):
            find_cells(None, "codechat", "", folder / "found")
    model.held = True
    with watching(store) as found, started(folder, *words) as process:
        wait_until(lambda: seen(store)[0].status == "RUNNING" and len(seen(store)[0].sessions) > len(reached))
        model.held = False
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert {run.run_id for run in found} == runs and len(runs) == 1
    assert unrepeated(found) == ["KILLED", "RUNNING", "FINISHED"]
    ((_, _, whole),) = seen(store)
    assert whole[: len(reached)] == reached and len(whole) > len(reached)
    for each in zip(*whole, strict=True):
        assert sorted(each) == list(each), "steps go on, and counts too"
    assert whole[-1][1] == SESSIONS
    assert len(find_cells(None, "codechat", "", folder / "found")) == 1


def has_gone_on(store: Path, points: int) -> bool:
    return any(len(run.sessions) > points and run.sessions[-1][1] > 0 for run in seen(store))


def process_of(folder: Path, run_id: str) -> str:
    return str(client_of(folder).get_run(run_id).data.tags[PROCESS_TAG])


def test_a_killed_cell_that_goes_on_unshown_ends_its_run(folder: Path, words: tuple[str, ...], model: Late) -> None:
    store = folder / "mlflow" / "store.db"
    model.held = True
    with started(folder, *words) as process:
        wait_until(lambda: any(run.sessions for run in seen(store)))
        process.kill()
        model.held = False
        process.communicate(timeout=60)
    (killed,) = seen(store)
    assert killed.status == "RUNNING"
    assert main([*words, "tracking.live=false"]) == 0
    assert [(run.run_id, run.status) for run in seen(store)] == [(killed.run_id, "FINISHED")]


def unrepeated(found: list[Seen]) -> list[str]:
    """The statuses of a run, each once for as long as it lasted, without the moments in which its cell is logged."""
    return [status for status, _ in itertools.groupby(run.status for run in found if run.status != INCOMPLETE)]


def test_a_bug_leaves_a_failed_run(folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("codechat.run.run.write_metrics", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        main([*words, "dataset.limit=1"])
    ((_, status, _),) = seen(folder / "mlflow" / "store.db")
    assert status == "FAILED"


def test_on_a_server(folder: Path, words: tuple[str, ...]) -> None:
    with mlflow_server(f"sqlite:///{folder}/mlflow/store.db", folder / "served") as server:
        with watching(folder / "mlflow" / "store.db") as found:
            assert main([*words, "tracking=server", f"tracking.uri={server.uri}"]) == 0
        assert unrepeated(found) == ["RUNNING", "FINISHED"]
        assert found[-1].sessions[-1][1] == SESSIONS
        run = client_at(server.uri).get_run(found[0].run_id)
        assert "final/mst" in run.data.metrics


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def sessions_took(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[float, str]:
    """Seconds that a cell's sessions and metrics took, as its summary says, and what it wrote to stderr."""
    assert main(words) == 0
    told = capsys.readouterr()
    (line,) = [line for line in told.out.splitlines() if line.endswith(" s)")]
    return float(line.rpartition("(")[2].removesuffix(" s)")), told.err


def test_a_store_that_refuses_costs_nothing_and_is_told_once(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"tracking.uri=http://127.0.0.1:{free_port()}"
    without, _ = sessions_took([*words, address, "runs_dir=without", "tracking.live=false"], capsys)
    took, told = sessions_took([*words, address], capsys)
    assert took < without + 8
    assert len(re.findall(r"warning: .* not shown .*MLflow at http", told)) == 1
    assert told.count("warning: not tracked") == told.count("Later: ") == 1


def test_a_store_that_hangs_costs_nothing(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "15")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tracking.uri=http://127.0.0.1:{silent.getsockname()[1]}"
        without, _ = sessions_took([*words, "tracking=none", "runs_dir=without"], capsys)
        monkeypatch.setattr("codechat.run.run.send", untracked)
        took, _ = sessions_took([*words, address], capsys)
    assert took < without + live.PATIENCE_S + 8


def untracked(*_: Any) -> Any:
    """The end of a cell without its tracking, which waits for the store as long as ever."""
    from codechat.run.results.measured import Tracking

    return Tracking(failure="the store is down")


def test_a_store_that_comes_back_shows_the_rest(
    folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    answers, logged = [OSError("the network is gone")] * 2, mlflow.MlflowClient.log_batch

    def log_batch(*given: Any, **named: Any) -> None:
        if answers:
            raise answers.pop()
        logged(*given, **named)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", log_batch)
    assert main([*words]) == 0
    ((run_id, status, sessions),) = seen(folder / "mlflow" / "store.db")
    assert not answers
    assert status == "FINISHED" and sessions[-1][1] == SESSIONS
    assert client_of(folder).get_run(run_id).data.params["dataset.limit"] == str(SESSIONS)
