"""The cells of a sweep by each launcher: equal records under one tag, and what becomes of a cell that goes wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.testing import OpenAIServer
from codechat.testing.cells import command
from support import processes
from support.processes import Slow, below, cells_in, descendants, metrics_of, records_of, sweeps_of, wait_until

pytestmark = pytest.mark.long

SMALL = ("model=drifter", "dataset.limit=3", "agenda.turns=3", "seed=1,2,3")
LONG = 300


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = descendants()
    yield
    until = time.monotonic() + 10
    while (left := descendants() - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert not {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left}


def codechat(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "codechat", *words], cwd=folder, capture_output=True, text=True,
                          timeout=2 * LONG, check=False)  # fmt: skip


def test_three_cells_by_each_launcher(tmp_path: Path) -> None:
    """On a fresh store each: equal records and metrics, and one sweep tag, which does not depend on the launcher."""
    tags = set()
    for launcher in ("serial", "joblib"):
        folder = tmp_path / launcher
        folder.mkdir()
        options = ["launcher.jobs=2"] if launcher == "joblib" else []
        done = (codechat if options else processes.codechat)(folder, "-m", *SMALL, f"launcher={launcher}", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        tags |= sweeps_of(folder, 3)
        table = done.stdout.partition("\nsweep adhoc-")[2]
        assert [line.split()[0] for line in table.splitlines()[2:5]] == ["seed=1", "seed=2", "seed=3"]
        assert "compare  " in table
        assert all(f"cell {number} of 3: " in done.stdout for number in (1, 2, 3))
    assert len(tags) == 1
    serial, joblib = tmp_path / "serial" / "runs", tmp_path / "joblib" / "runs"
    assert len(records_of(serial)) == 3
    assert records_of(joblib) == records_of(serial)
    assert metrics_of(joblib) == metrics_of(serial)
    configs = [{cell.name: (cell / "config.yaml").read_text() for cell in cells_in(runs)} for runs in (serial, joblib)]
    assert configs[0] == configs[1], "a launcher is in no cell's config"


def test_a_bug_and_a_mistake_in_one_cell_do_not_stop_the_others(tmp_path: Path) -> None:
    """Two cells cannot be read; two are done, and the exit status is the highest."""
    row = {"task_id": "m/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n"}
    (tmp_path / "good.jsonl").write_text(json.dumps({**row, "tests": "assert f(1) == 1"}))
    words = ["model=echo", "agenda.turns=2", "tracking=none", "dataset=jsonl", "seed=1,2"]
    done = codechat(
        tmp_path, "-m", *words, "dataset.path=missing.jsonl,good.jsonl", "launcher=joblib", "launcher.jobs=3"
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("error: ") == 2
    rows = done.stdout.partition("\nsweep adhoc-")[2]
    assert rows.count(" not run ") == 2
    assert rows.count(" done ") == 2


def test_a_launcher_takes_a_single_cell(tmp_path: Path) -> None:
    done = codechat(tmp_path, *SMALL[:-1], "tracking=none", "launcher=joblib")
    assert done.returncode == 0, done.stderr
    assert ": 1 cell\n" in done.stdout
    assert len(records_of(tmp_path / "runs")) == 1


def test_a_dry_run_starts_no_process(tmp_path: Path) -> None:
    done = processes.codechat(tmp_path, "-m", *SMALL, "launcher=joblib", "dry_run=true")
    assert done.returncode == 0
    assert ": 3 cells" in done.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["launcher=jobli"], "no launcher is called 'jobli'\ndid you mean 'joblib'?"),
        (["launcher=joblib", "launcher.job=2"], "launcher.job is not an option\ndid you mean 'jobs'?"),
        (["launcher.jobs=2"], "launcher=serial has no option launcher.jobs\nlauncher=joblib has it"),
        (["launcher=joblib", "launcher.jobs=0"], "launcher.jobs: Input should be greater than or equal to 1"),
        (["launcher=joblib", "seed=1,2"], "put -m in front"),
        (["~launcher"], "write launcher=NAME or launcher.KEY=VALUE"),
        (["hydra/launcher=joblib"], "codechat does not take Hydra's own settings"),
    ],
)
def test_mistakes_are_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model=echo", *words]) == 2
    errors = capsys.readouterr().err
    assert told in errors
    assert errors.count("\n") <= 5


def test_help_and_list_know_the_launchers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == main(["list"]) == main(["list", "launcher"]) == 0
    told = capsys.readouterr().out
    assert told.count("Several cells at once") == 2
    assert "launcher.jobs" in told


def sweep_of(url: str, turns: int, seeds: str, *more: str) -> list[str]:
    """Cells of two tasks, for each seed one, two at a time."""
    words = command(url, 2, "runs", f"agenda.turns={turns}", f"seed={seeds}", "launcher=joblib", "launcher.jobs=2")
    words.insert(words.index("codechat") + 1, "-m")
    return [*words, *more]


def start(words: list[str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)  # fmt: skip


def test_an_interruption_ends_all_cells_and_keeps_what_they_have(tmp_path: Path) -> None:
    """One sweep meets all in turn, and no call is paid for twice, as in a single cell.

    Ctrl-C goes to the whole group of the terminal's processes. The cells of a launcher that is killed stop by themselves.
    """
    slow = Slow(0.5)
    with OpenAIServer(slow) as server:
        words = sweep_of(server.base_url, 16, "1,2,3,4")
        for how in ("ctrl-c", "SIGTERM", "SIGUSR1", "SIGKILL"):
            asked = len(server.calls)
            with start(words, tmp_path) as process:
                wait_until(lambda asked=asked: len(server.calls) > asked + 4)  # type: ignore[misc]
                if how == "ctrl-c":
                    os.killpg(process.pid, signal.SIGINT)
                elif how == "SIGKILL":
                    stop_with_its_launcher(process)
                    continue
                else:
                    process.send_signal(getattr(signal, how))
                output, errors = process.communicate(timeout=LONG)
            assert process.returncode == 130, (how, output, errors)
            assert "Traceback" not in errors, how
            assert "interrupted: " in errors, how
            table = output.partition("\nsweep adhoc-")[2]
            assert table.count(" interrupted ") == 2, (how, table)
            assert "2 cells were not begun" in output, how
        slow.seconds, asked = 0, len(server.calls)
        done = codechat(tmp_path, *words[words.index("codechat") + 1 :])
        assert done.returncode == 0, done.stderr
        assert asked < len(server.calls) == 4 * 2 * 16, "a reply was paid for twice"


def stop_with_its_launcher(process: "subprocess.Popen[str]") -> None:
    """Kill a launcher, and wait until its cells have ended."""
    children = below(process.pid)
    assert len(children) >= 2
    process.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def test_a_killed_process_of_a_cell_is_replaced_once(tmp_path: Path) -> None:
    with OpenAIServer(Slow(0.3)) as server:
        with start(sweep_of(server.base_url, 12, "1,2"), tmp_path) as process:
            wait_until(lambda: len(server.calls) > 12)
            victim = next(pid for pid in below(process.pid) if has_journal(pid))
            os.kill(victim, signal.SIGKILL)
            output, errors = process.communicate(timeout=LONG)
        assert process.returncode == 0, output + errors
        assert output.partition("\nsweep adhoc-")[2].count(" done ") == 2
        assert len(server.calls) <= 2 * 2 * 12 + 2 * 2, "only what was under way is asked again"


def has_journal(pid: int) -> bool:
    """Whether a process runs a cell."""
    files = Path(f"/proc/{pid}/fd")
    return any(each.readlink().name == "journal.db" for each in files.iterdir() if each.exists())
