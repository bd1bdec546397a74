"""A real model on this machine: SmolLM2-135M by llama.cpp, which codechat starts. Nothing here depends on its replies."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.models.gguf import GgufConfig
from codechat.models.serving import Fleet
from codechat.models.serving.fleet import running_in
from codechat.run.answering.servers import folder_of_servers, use_servers
from codechat.run.settings.compose import compose

pytestmark = [pytest.mark.real, pytest.mark.skipif(find_spec("llama_cpp") is None, reason="needs codechat[local]")]

TOKENS = 48
SMALL = (
    "model=smollm2_135m", f"model.max_tokens={TOKENS}", "dataset.limit=1", "judge=rules", "tracking=none",
    "hardware.workers=1", "hardware.llama_cpp_args='--n_threads 1 --n_threads_batch 1'",
)  # fmt: skip
WAIT_S = 120.0
LONG = "protocol.prompts.initial=" + "Take your time. " * 100 + "{{prompt}} {{signature}}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The `runs_dir` whose server outlives its cells."""
    folder = f"runs_dir={tmp_path_factory.mktemp('shared')}"
    with Fleet() as fleet:
        use_servers(compose([*SMALL, folder]).config, fleet)
        yield folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sessions(runs: Path) -> list[dict[str, Any]]:
    newest = max(runs.glob("*/sessions.jsonl"), key=lambda path: path.stat().st_mtime)
    return [json.loads(line) for line in newest.read_text().splitlines()]


def answered(session: dict[str, Any]) -> list[dict[str, Any]]:
    """The turns that the model answered."""
    return [turn for turn in session["turns"] if turn["usage"]["input_tokens"]]


def metrics(runs: Path) -> dict[str, Any]:
    newest = max(runs.glob("*/metrics.json"), key=lambda path: path.stat().st_mtime)
    read: dict[str, Any] = json.loads(newest.read_text())
    return read


def asked(log: Path) -> int:
    return log.read_text().count('"POST /v1/chat/completions')


def answer(url: str, **body: Any) -> Any:
    posted = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(posted, timeout=WAIT_S) as said:
        return json.load(said)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_ten_turns_are_counted_as_the_server_counts_them(shared: str) -> None:
    longest = 256  # a reply cut off earlier does not parse, and every later turn is skipped
    ours = [*SMALL, shared, f"model.max_tokens={longest}", "agenda.turns=10", "model.cache=false"]
    assert main(ours) == 0
    config = compose(ours).config
    (session,) = sessions(Path(config.runs_dir))
    said = answered(session)
    assert len(session["turns"]) == 10
    (running,) = running_in(folder_of_servers(config)).values()
    for turn in said[-1:] + said[:1]:  # the server still has the last one
        again = answer(f"{running.base_url}/chat/completions", model="m", max_tokens=1, messages=turn["request"])
        assert turn["usage"]["input_tokens"] == again["usage"]["prompt_tokens"]
        if turn["finish_reason"] == "length":
            assert turn["usage"]["output_tokens"] == longest
    used = metrics(Path(config.runs_dir))["tokens"]["model"]
    assert used["output_tokens"] == sum(turn["usage"]["output_tokens"] for turn in said)
    served = metrics(Path(config.runs_dir))["servers"]["model"]
    assert served["llama_cpp"][0][0].isdigit() and served["prefix_hit_rate"] is None
    before = asked(running.log)
    assert main(ours) == 0 and asked(running.log) == before, "a finished cell asks nothing"


def test_greedy_replies_are_cached_across_cells(shared: str) -> None:
    ours = [*SMALL, shared, "agenda.turns=2"]
    assert main(ours) == 0
    assert main([*SMALL, "runs_dir=others", "agenda.turns=2"]) == 0
    assert metrics(Path("others"))["cached_replies"] >= 1
    assert not list(Path("others").rglob("*.log")), "every reply is known, so nothing is started"


def test_a_killed_run_ends_its_server_and_is_resumed() -> None:
    ours = [*SMALL, "dataset.limit=3", "agenda.turns=2", "model.cache=false"]
    folder = folder_of_servers(compose(ours).config)
    with subprocess.Popen([sys.executable, "-m", "codechat", *ours], stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + WAIT_S
        while not (logs := list(folder.glob("*.log"))) or not asked(logs[0]):
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.05)
        (running,) = running_in(folder).values()
        process.kill()
    while accepts(running.port) or running.alive():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert main(ours) == 0
    replies = sum(len(answered(session)) for session in sessions(Path("runs")))
    assert replies <= asked(running.log) <= replies + 1, "only the call under way is asked again"


def test_a_taken_port_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert main([*SMALL, "agenda.turns=2", f"model.base_url=http://127.0.0.1:{port}/v1"]) == 0
    assert f"(port {port} is taken)" in capsys.readouterr().err


def test_a_conversation_too_long_ends_its_session() -> None:
    assert main([*SMALL, "agenda.turns=10", "model.weights.max_model_len=256", LONG]) == 0
    (session,) = sessions(Path("runs"))
    assert session["ended"] == "context_overflow"


def test_a_file_that_is_cut_off_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    config = compose(list(SMALL)).config.model
    assert isinstance(config, GgufConfig)
    Path("cut.gguf").write_bytes(config.file().read_bytes()[:100_000])
    assert main(["model=gguf", "model.path=cut.gguf", *SMALL[2:]]) == 2
    said = capsys.readouterr().err
    assert "error: cut cannot be served: llama.cpp cannot load its file" in said and "Traceback" not in said
