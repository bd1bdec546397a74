"""Cells whose models codechat serves itself, by a stand-in for vLLM: started, attached, refused, watched, ended."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.models.serving import CellServers, Fleet, needs_in
from codechat.models.serving.server_guard import user_name
from codechat.run.answering.servers import folder_of_servers, use_servers
from codechat.run.cell import endpoints_of
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.run.settings.config import CellConfig
from codechat.testing import OpenAIServer, dataset_tasks, error, reference_solver
from support.standin_vllm import VERSION, Standin, install

pytestmark = pytest.mark.long

MODEL, JUDGE = "Qwen/Qwen2.5-Coder-7B-Instruct", "openai/gpt-oss-20b"
SMALL = ("dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1")
PLAIN = "--generation-config vllm --enable-prompt-tokens-details"
LONG = 300.0


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    standin = install(tmp_path, monkeypatch)
    yield standin
    left = standin.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a server outlived its cell"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def words(port: int, *more: str) -> list[str]:
    return ["model=qwen25_coder_7b", f"model.base_url=http://127.0.0.1:{port}/v1", *SMALL, *more]


def judged(port: int, judge_port: int, *more: str) -> list[str]:
    roles = [
        word
        for role in ("applicability", "adherence")
        for word in (f"model@judge.{role}=gpt_oss_20b", f"judge.{role}.base_url=http://127.0.0.1:{judge_port}/v1")
    ]
    return [*words(port), "judge=llm", *roles, *more]


def folder() -> Path:
    (found,) = (path for path in Path("runs").iterdir() if not path.name.startswith("."))
    return found


def metrics() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder() / "metrics.json").read_text())
    return read


def cached_part(payer: str) -> float:
    """The cached part of all prompts by what the replies said, not by the server's counters."""
    used = metrics()["tokens"][payer]
    return float(used["cached_input_tokens"] / used["input_tokens"])


def test_prompts_are_made_so_that_a_prefix_cache_has_most_of_them(standin: Standin) -> None:
    assert main(words(free_port(), "agenda.turns=10")) == 0
    assert metrics()["servers"]["model"]["prefix_hit_rate"] == pytest.approx(cached_part("model"))
    (line,) = (folder() / "sessions.jsonl").read_text().splitlines()
    later = [turn["usage"] for turn in json.loads(line)["turns"][1:] if turn["usage"]["input_tokens"]]
    assert sum(used["cached_input_tokens"] for used in later) / sum(used["input_tokens"] for used in later) >= 0.85


def bring_up(config: CellConfig, fleet: Fleet) -> None:
    """Start a cell's servers, and wait until they are ready."""
    use_servers(config, fleet)
    servers = CellServers(fleet, needs_in(endpoints_of(config)), config.hardware, folder_of_servers(config), print)

    async def reach() -> None:
        async with servers.at_work():
            for need in servers.needs:
                await servers.reach(need.config)

    asyncio.run(reach())


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the error."""
    lines = capsys.readouterr().err.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("error: "))
    return lines[first:]


def test_a_cell_starts_its_servers_and_ends_them(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    port, judge_port = free_port(), free_port()
    ours = judged(port, judge_port, "hardware=h100_1", "hardware.vllm_args='--max-num-seqs 64'")
    assert main(ours) == 0
    said = capsys.readouterr().err
    assert f"starting {MODEL} on GPU 0 at http://127.0.0.1:{port}/v1 (log: runs/.servers/" in said
    assert f"{JUDGE} is ready after " in said
    assert Counter(standin.models()) == {MODEL: 1, JUDGE: 1}, "both questions are asked of one server"
    start = next(each for each in standin.starts() if each["model"] == MODEL)
    assert start["arguments"][-6:] == ["--max-num-seqs", "64", "--host", "127.0.0.1", "--port", str(port)]
    assert start["variables"] == {"CUDA_VISIBLE_DEVICES": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    assert not standin.processes(), "the servers ended with the cell"
    servers = metrics()["servers"]
    assert set(servers) == {"model", "judge.applicability", "judge.adherence"}
    assert servers["model"]["vllm"] == [VERSION]
    assert servers["model"]["arguments"][0].startswith(f"{MODEL} --served-model-name {MODEL} --generation-config vllm")
    assert servers["model"]["fingerprints"] == ["vllm-0.33.0-tp1"]
    assert servers["model"]["prefix_hit_rate"] == pytest.approx(cached_part("model"))
    assert f"http://127.0.0.1:{port}/v1" in (folder() / "config.yaml").read_text()
    before = metrics()
    assert main(ours) == 0
    assert len(standin.starts()) == 2, "a finished cell starts nothing"
    assert metrics() == before | {"wall_s": metrics()["wall_s"]}
    assert "figures are those of" not in capsys.readouterr().err


def test_what_is_known_of_the_servers_is_tracked(standin: Standin) -> None:
    import mlflow

    uri = f"sqlite:///{Path.cwd()}/store.db"
    given = [each for each in words(free_port(), "tracking=mlflow", f"tracking.uri={uri}") if each != "tracking=none"]
    outcome = run(compose(given))
    assert outcome.status == 0 and outcome.tracking.run is not None, outcome.tracking.failure
    tracked = mlflow.MlflowClient(tracking_uri=uri).get_run(outcome.tracking.run.run_id)
    assert tracked.data.metrics["cost/prefix_hit_rate"] == pytest.approx(cached_part("model"))
    assert tracked.data.tags["codechat.server.model.vllm"] == VERSION
    assert tracked.data.tags["codechat.server.model.fingerprints"] == "vllm-0.33.0-tp1"
    assert "--generation-config vllm" in tracked.data.tags["codechat.server.model.arguments"]


def test_a_started_server_s_replies_are_cached_by_model_and_weights(standin: Standin) -> None:
    assert main(words(free_port())) == 0
    assert main(words(free_port(), "runs_dir=others")) == 0
    assert len(standin.starts()) == 1, "the same model at another port: every reply is known, so nothing is started"
    assert main(words(free_port(), "model.weights.quantization=fp8", "runs_dir=others")) == 0
    assert len(standin.starts()) == 2, "other weights are asked"


def test_a_server_that_answers_is_attached(standin: Standin) -> None:
    solver = reference_solver(dataset_tasks("starter"))
    with OpenAIServer(solver, models=[MODEL]) as server:
        assert main(words(int(server.base_url.split(":")[2].split("/")[0]))) == 0
        assert server.answered == 2
    assert not standin.starts()
    assert "servers" not in metrics(), "it does not tell a version of vLLM"


@pytest.mark.parametrize("launcher", ["serial", "joblib"])
def test_a_sweep_loads_each_model_once(standin: Standin, launcher: str, capsys: pytest.CaptureFixture[str]) -> None:
    port, judge_port = free_port(), free_port()
    grid = ("seed=0,1", "model.weights.dtype=null,float16")
    own = (f"launcher={launcher}", *(("launcher.jobs=2",) if launcher == "joblib" else ()))
    assert main(["-m", *judged(port, judge_port, *grid), *own]) == 0
    assert Counter(standin.models()) == {MODEL: 2, JUDGE: 1}
    assert not standin.processes()
    table = capsys.readouterr().out.rpartition("sweep adhoc-")[2]
    order = [line.split()[0] for line in table.splitlines() if line.startswith("seed=")]
    assert order == ["seed=0", "seed=0", "seed=1", "seed=1"], "the table keeps the order of the cells"


def test_a_server_stays_for_the_processes_that_use_it(standin: Standin) -> None:
    standin.behave(MODEL, answer_s=0.5)
    given = words(free_port(), "agenda.turns=8")
    with Fleet() as fleet:
        bring_up(compose(given).config, fleet)
        other = codechat(given)
        users = Path("runs/.servers")
        assert until(lambda: len(list(users.glob("*/*.users/*"))) == 2 or other.poll() is not None)
    _, said = other.communicate(timeout=LONG)
    assert other.returncode == 0, said
    assert standin.models() == [MODEL]
    assert not standin.processes(), "the last of them ended it"
    assert (metrics()["completed"], metrics()["errored"]) == (1, 0)


def test_processes_of_other_working_folders_share_it_too(standin: Standin, tmp_path: Path) -> None:
    given = words(free_port())
    (tmp_path / "elsewhere").mkdir()
    with Fleet() as fleet:
        bring_up(compose(given).config, fleet)
        command = [sys.executable, "-m", "codechat", *given, f"runs_dir={tmp_path / 'runs'}"]
        done = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(standin.processes()) == 3, "its first user still uses it"
    assert standin.models() == [MODEL]


def test_processes_of_a_sweep_are_told_why_a_server_does_not_start(
    standin: Standin, capsys: pytest.CaptureFixture[str]
) -> None:
    standin.behave(MODEL, says=["torch.OutOfMemoryError: CUDA out of memory."], status=1)
    assert main(["-m", *words(free_port(), "seed=0,1"), "launcher=joblib", "launcher.jobs=2"]) == 2
    assert capsys.readouterr().err.count("GPU's memory") == 2, "once for each cell"
    assert len(standin.starts()) <= 2, "once for each cell at most"


def test_a_taken_port_is_replaced_by_another(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert main(words(port)) == 0
    assert f"(port {port} is taken)" in capsys.readouterr().err
    assert standin.starts()[0]["arguments"][-1] != str(port)
    assert metrics()["completed"] == 1


def test_a_port_that_is_taken_meanwhile_is_replaced_too(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    line = "ERROR: [Errno 98] error while attempting to bind on address: address already in use"
    standin.behave(MODEL, first={"says": [line], "status": 1})
    assert main(words(free_port())) == 0
    assert len(standin.starts()) == 2
    assert capsys.readouterr().err.count("starting ") == 2


def test_nothing_is_started_where_it_must_not_be(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (("hardware=api",), ("hardware.serve=never",), ("model.served_by=null",)):
        assert main(words(port := free_port(), *more)) == 2
        lines = told(capsys)
        assert lines[0].startswith("error: ") and f" http://127.0.0.1:{port}/v1 (" in lines[0]
        assert "start the server" in lines[1] and "model.base_url" in lines[1]
    assert not standin.starts()


def test_vllm_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "vllm").exists()]
    monkeypatch.setenv("PATH", ":".join(kept))
    assert main(words(port := free_port())) == 2
    lines = told(capsys)
    assert lines[0].startswith("error: ") and "vllm" in lines[0]
    assert f" http://127.0.0.1:{port}/v1, " in lines[0]
    assert "pip install 'codechat[vllm]'" in lines[1] and len(lines) <= 5


def test_cells_that_ask_no_model_need_no_vllm_under_any_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hybrid judge asks its model only if no rule decides."""
    monkeypatch.chdir(tmp_path)
    kept = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "vllm").exists()]
    monkeypatch.setenv("PATH", ":".join(kept))
    apart = ("seed=0,1", "launcher=joblib", "launcher.jobs=2")
    assert main(["-m", "model=drifter", "judge=hybrid", *SMALL, *apart]) == 0
    assert main(["-m", *words(free_port()), *apart]) == 2
    assert capsys.readouterr().err.count("codechat[vllm]") == 2, "once for each cell"


@pytest.mark.parametrize(
    ("line", "words_told"),
    [
        ("OSError: org/x is not a local folder and is not a valid model identifier listed on 'x'", "model.name"),
        ("OSError: You are trying to access a gated repo.", "HF_TOKEN"),
        ("OSError: [Errno 28] No space left on device", "HF_HOME"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "hardware.vllm_args"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    standin: Standin, capsys: pytest.CaptureFixture[str], line: str, words_told: str
) -> None:
    standin.behave(MODEL, says=["INFO loading", line, "RuntimeError: Engine core initialization failed."], status=1)
    assert main(words(free_port())) == 2
    lines = told(capsys)
    assert lines[0].startswith(f"error: {MODEL} cannot be served: ")
    assert line in lines[1]
    assert words_told in lines[2] and len(lines) <= 5
    assert len(standin.starts()) == 1


def test_a_server_that_is_not_ready_in_time(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    standin.behave(MODEL, never=True, says=["INFO loading weights"])
    assert main(words(free_port(), "hardware.start_s=1")) == 2
    lines = told(capsys)
    assert lines[0].startswith(f"error: {MODEL} ") and "1 s (hardware.start_s)" in lines[0]
    assert lines[1].strip() == "INFO loading weights" and len(lines) <= 5


def test_a_server_that_dies_leaves_errored_sessions(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    standin.behave(MODEL, lives=2)
    given = words(free_port(), "agenda.turns=4", "dataset.limit=2", "model.max_retries=3")
    assert main(given) == 3
    assert len(standin.starts()) == 1 and metrics()["errored"] >= 1
    assert "errored" in capsys.readouterr().err
    assert main(given) == 0, "the same command starts it again and resumes"
    assert len(standin.starts()) == 2 and metrics()["errored"] == 0


def test_an_attached_server_of_another_length_is_refused_before_the_first_call(
    standin: Standin, capsys: pytest.CaptureFixture[str]
) -> None:
    solver = reference_solver(dataset_tasks("starter"))
    with OpenAIServer(solver, models=[MODEL], facts={"max_model_len": 4096}) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        assert main(words(port, "model.weights.max_model_len=8192")) == 2
        lines = told(capsys)
        assert "4096 tokens" in lines[0] and "model.weights.max_model_len=8192" in lines[0]
        assert "--max-model-len 8192" in lines[1]
        assert server.answered == 0
        assert main(words(port, "model.weights.max_model_len=4096")) == 0
    assert main(words(free_port(), "model.weights.max_model_len=8192")) == 0
    assert "--max-model-len 8192" in " ".join(standin.starts()[0]["arguments"])


def test_another_model_at_the_port_is_told(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    refuses = error(404, f"The model `{MODEL}` does not exist.", "model_not_found")
    with OpenAIServer(lambda _: refuses, models=["some/other"]) as server:
        assert main(words(int(server.base_url.split(":")[2].split("/")[0]))) == 2
    lines = told(capsys)
    assert "does not exist" in lines[0] and "some/other" in "".join(lines) and len(lines) <= 5
    assert not standin.starts()


def test_what_does_not_fit_is_refused_before_any_call(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["model=llama33_70b", "judge=paper", "hardware=h100_3", *SMALL]
    for more in ([], ["dry_run=true"]):
        assert main([*given, *more]) == 2
        lines = told(capsys)
        assert lines[0].startswith("error: ") and "3 GPUs of 80 GB" in lines[0]
        assert "weights.quantization=fp8" in lines[1] and "hardware=h100_8" in lines[1] and "rescore" in lines[1]
    assert main(["model=qwen25_coder_32b", "judge=paper", "hardware=h100_3", "dry_run=true", *SMALL]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"Qwen/Qwen2\.5-Coder-32B-Instruct on GPU 0: 65\.5 GB .*, 6\.5 GB ", shown)
    assert re.search(r"openai/gpt-oss-20b on GPU 2: 13 GB .*, 59\.0 GB ", shown)
    assert not standin.starts()


def test_a_forbidden_sandbox_is_told_before_a_model_loads(
    standin: Standin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = standin.folder.parent / "programs"
    (bare / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (bare / "bwrap").chmod(0o755)
    monkeypatch.setattr("codechat.sandbox.bubblewrap.find_spec", lambda name: None)
    assert main(words(free_port(), "sandbox=bubblewrap")) == 2
    assert len(told(capsys)) <= 5
    assert not standin.starts()


# -- the end of codechat -----------------------------------------------------------------------------------------------


def codechat(given: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "codechat", *given]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(true: Any, seconds: float = LONG) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        threading.Event().wait(0.02)
    return bool(true())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left_however_codechat_ends(standin: Standin, how: signal.Signals) -> None:
    standin.behave(MODEL, never=True)
    with codechat(words(free_port())) as process:
        assert until(lambda: standin.starts() or process.poll() is not None)
        assert len(standin.processes()) == 3, process.communicate()
        process.send_signal(how)
        assert until(lambda: not standin.processes(), 60), "also the process that left the server's group"
        process.communicate(timeout=LONG)
    assert process.returncode == (-9 if how == signal.SIGKILL else 130)


def test_a_killed_guard_takes_its_server_with_it(standin: Standin) -> None:
    with Fleet() as fleet:
        config = compose(words(free_port())).config
        bring_up(config, fleet)
        (start,) = standin.starts()
        guard = int(Path(f"/proc/{start['processes'][0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        assert until(lambda: not user_name(start["processes"][0]))
        for engine in start["processes"][1:]:  # without a guard, only vLLM's own processes could end these
            os.kill(engine, signal.SIGKILL)
        assert until(lambda: not standin.processes(), 20)


def test_starting_and_ending_a_server_takes_little(standin: Standin) -> None:
    standin.behave(MODEL, load_s=1.0)
    config, own = compose(words(free_port())).config, own_time()
    began = time.monotonic()
    with Fleet() as fleet:
        bring_up(config, fleet)
        up = time.monotonic()
    ended = time.monotonic()
    assert up - began < 1 + own + 2, "beside the server's own time"
    assert ended - up < 2


def own_time() -> float:
    """What the stand-in itself needs to begin."""
    began = time.monotonic()
    script = "from codechat.testing import OpenAIServer, dataset_tasks; dataset_tasks('starter')"
    subprocess.run([sys.executable, "-c", script], check=True)
    return time.monotonic() - began


def test_processes_share_the_servers_that_one_of_them_started(standin: Standin) -> None:
    with socket.socket() as silent, Fleet() as fleet:
        silent.bind(("127.0.0.1", 0))  # so that the server is not where the config says
        given = words(silent.getsockname()[1])
        bring_up(compose(given).config, fleet)
        with codechat(given) as other:
            _, said = other.communicate(timeout=LONG)
            assert other.returncode == 0, said
        assert len(standin.starts()) == 1
    assert metrics()["servers"]["model"]["arguments"] == [f"{MODEL} --served-model-name {MODEL} " + PLAIN]
    assert main([*given, "runs_dir=others"]) == 0
    assert len(standin.starts()) == 1, "its replies are cached as those of a started server"
