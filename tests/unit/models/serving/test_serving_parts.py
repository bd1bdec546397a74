"""Servers: what they are told, in which order cells need them, and what their logs mean."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codechat.base.errors import MAX_LINES, UserError
from codechat.models.calls.cache import CachedQuestion
from codechat.models.endpoints import Weights
from codechat.models.hardware import CELLS_AT_ONCE, HardwareConfig, cores, own_cores
from codechat.models.serving import Placement, Server, by_servers, needs_in, server, server_of
from codechat.models.serving.fleet import Running, spawn
from codechat.models.serving.programs import failure
from codechat.models.serving.server_guard import is_used, user_name
from codechat.models.serving.vllm import arguments_of, command, environment_of
from codechat.run.answering.servers import servers_needed
from codechat.run.settings.compose import compose
from codechat.testing import OpenAIServer
from support.mistakes import mistake

A, B, C, JUDGE = (Server(name, Weights(), 10) for name in ("a", "b", "c", "judge"))


def hardware(*words: str) -> HardwareConfig:
    return compose(["model=echo", *words]).config.hardware


def test_cells_that_need_the_same_servers_follow_each_other() -> None:
    cells = [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2)]
    needs = {"a": {A, JUDGE}, "b": {B}, "c": {C, JUDGE}}
    groups = by_servers(cells, lambda cell: needs[cell[0]])
    assert groups == [[("a", 1), ("a", 2)], [("c", 1), ("c", 2)], [("b", 1), ("b", 2)]]
    assert by_servers([3, 1, 2], lambda _: ()) == [[3, 1, 2]]
    assert by_servers([], lambda _: ()) == []


def test_the_ten_open_cells_of_rq1_need_five_models_and_two_judges() -> None:
    models = ("llama31_8b", "llama33_70b", "qwen25_coder_7b", "qwen25_coder_14b", "qwen25_coder_32b")
    cells = [(data, model) for data in ("starter", "humaneval") for model in models]
    configs = {model: servers_needed(compose([f"model={model}", "judge=paper"]).config) for model in models}
    groups = by_servers(cells, lambda cell: configs[cell[1]])
    assert [len(group) for group in groups] == [2] * 5
    names = {server.name for servers in configs.values() for server in servers}
    assert len(names) == 7
    assert all(len(servers) == 3 for servers in configs.values())


def test_only_a_model_served_by_vllm_on_this_machine_has_a_server() -> None:
    def of(*words: str) -> Server | None:
        return server_of(compose(list(words)).config.model)

    assert of("model=gpt_oss_20b") == Server("openai/gpt-oss-20b", Weights(), 13)
    assert of("model=gpt_oss_20b_low") == of("model=gpt_oss_20b"), "one server at any effort"
    assert of("model=gpt_oss_20b", "model.base_url=http://localhost:9/v1") is not None
    assert of("model=gpt_oss_20b", "model.base_url=http://example.org:9/v1") is None
    assert of("model=openai", "model.name=m") is of("model=gpt5") is of("model=echo") is None
    assert of("model=openai", "model.name=m", "model.served_by=vllm") == Server("m", Weights(), None)


def test_the_arguments_of_a_server() -> None:
    weights = Weights(revision="v2", dtype="bfloat16", quantization="fp8", max_model_len=16384)
    options = hardware("hardware.vllm_args='--max-num-seqs 128'")
    assert arguments_of(Server("org/m", weights, 10), Placement((2, 3), 0.85), options) == [
        "org/m", "--served-model-name", "org/m", "--revision", "v2", "--dtype", "bfloat16", "--quantization", "fp8",
        "--max-model-len", "16384", "--generation-config", "vllm", "--enable-prompt-tokens-details",
        "--gpu-memory-utilization", "0.85", "--tensor-parallel-size", "2", "--max-num-seqs", "128",
    ]  # fmt: skip
    assert arguments_of(A, Placement(), hardware())[3:] == [
        "--generation-config", "vllm", "--enable-prompt-tokens-details",
    ]  # fmt: skip


def test_the_environment_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    plain = environment_of(Placement())
    assert (plain["VLLM_NO_USAGE_STATS"], plain["DO_NOT_TRACK"]) == ("1", "1")
    assert "CUDA_VISIBLE_DEVICES" not in plain
    assert environment_of(Placement((1, 2), 0.9))["CUDA_VISIBLE_DEVICES"] == "1,2"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")  # what a batch system left to this process
    assert environment_of(Placement((1, 2), 0.9))["CUDA_VISIBLE_DEVICES"] == "5,7"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES=4"):
        environment_of(Placement((1,), 0.9))


def test_a_missing_vllm_is_told_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = compose(["model=gpt_oss_20b", "model.base_url=http://127.0.0.1:9/v1"]).config.model
    (need,) = needs_in({"model": config})
    with mistake("http://127.0.0.1:9/v1", "vllm", "pip install 'codechat[vllm]'"):
        command(need)


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full", "HF_HOME"),
        ("OSError: You are trying to access a gated repo.", "its weights are gated", "HF_TOKEN"),
        (
            "OSError: org/m is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
            "its weights were not found",
            "check model.name and model.weights.revision",
        ),
        (
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
            "not be downloaded",
            "hf download org/m",
        ),
        (
            "(EngineCore_DP0 pid=12) ERROR 11-20 10:00:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            "the GPU's memory is too small",
            "hardware.vllm_args",
        ),
        ("ValueError: No available memory for the cache blocks.", "the GPU's memory is too small", "max-num-seqs"),
        (
            "ValueError: To serve at least one request with the model's max seq len (131072), 16.00 GiB KV cache is needed, which is larger than the available KV cache memory (4.85 GiB).",
            "one conversation of the longest kind",
            "model.weights.max_model_len",
        ),
        (
            "ValueError: Free memory on device (19.77/22.05 GiB) on startup is less than desired GPU memory utilization (0.9, 19.84 GiB).",
            "another program uses the GPU's memory",
            "hardware.memory_fraction",
        ),
        (
            "vllm: error: unrecognized arguments: --enable-prompt-tokens-details",
            "does not know an option",
            "pip install -U",
        ),
    ],
)
def test_a_log_is_read(line: str, problem: str, remedy: str) -> None:
    said = f"INFO starting\n{line}\nRuntimeError: Engine core initialization failed.\n"
    lines = str(
        failure(Server("org/m", Weights()), "model", said, "ended with status 1 before it was ready", Path("x.log"))
    ).splitlines()
    assert len(lines) <= MAX_LINES
    assert lines[0].startswith("org/m cannot be served: ") and problem in lines[0] and "x.log" in lines[0]
    told = lines[1].strip().removesuffix("…")
    assert told in line and not told.startswith(("(EngineCore", "ERROR"))
    assert remedy in lines[2]


def test_an_unknown_end_quotes_the_last_line() -> None:
    lines = str(
        failure(Server("m", Weights()), "model", "one\nSegmentation fault\n\n", "ended with status 139", Path("x.log"))
    ).splitlines()
    ended, quoted, log = lines
    assert ended.startswith("m ") and "status 139" in ended
    assert quoted == "  Segmentation fault" and "x.log" in log
    assert (
        len(
            str(
                failure(Server("m", Weights()), "model", "", "was not ready in 5 s (hardware.start_s)", Path("x.log"))
            ).splitlines()
        )
        == 2
    )


def test_options_of_weights_are_part_of_the_id_and_of_the_cache_only_if_set() -> None:
    plain = compose(["model=gpt_oss_20b"]).config.model
    assert "weights" not in plain.identity()
    chosen = compose(["model=gpt_oss_20b", "model.weights.quantization=fp8", "model.weights.max_model_len=4096"])
    assert chosen.config.model.identity()["weights"] == {"quantization": "fp8", "max_model_len": 4096}

    def key(weights: Weights, said: str = "") -> str:
        return CachedQuestion("a", "m", {}, None, weights.key(said)).key()

    assert Weights().key("") == ""
    assert Weights(revision="r").key("said") == "r\nsaid", "as before there were other options"
    several = [
        Weights(),
        Weights(revision="r"),
        Weights(dtype="float16"),
        Weights(quantization="fp8"),
        Weights(max_model_len=9),
    ]
    assert len({key(each) for each in several}) == len(several)


def test_cells_that_run_at_once_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(16))
    assert cores() == own_cores() == 16
    shares = []
    for at_once in ("1", "4", "32"):
        monkeypatch.setenv(CELLS_AT_ONCE, at_once)
        shares.append(own_cores())
    assert shares == [16, 4, 1]


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 1:
    subprocess.Popen([sys.executable, __file__], start_new_session=True)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def guarded(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    """The guard of a command's process, which this process uses."""
    users = log.with_suffix(".users")
    users.mkdir(parents=True, exist_ok=True)
    (users / user_name(os.getpid())).touch()
    return spawn(command, dict(os.environ), log)


def test_a_server_that_does_not_heed_is_ended_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    monkeypatch.setattr("codechat.models.serving.fleet.GRACE_S", 0.3)
    log = tmp_path / "x.log"
    guard = guarded([sys.executable, str(tmp_path / "stubborn.py"), "more"], log)
    while len(pids := log.read_text().split()) < 2:
        assert guard.poll() is None, log.read_text()
        time.sleep(0.02)
    assert all(user_name(int(pid)) for pid in pids)
    (log.with_suffix(".users") / user_name(os.getpid())).unlink()
    assert guard.wait(30) == 128 + signal.SIGKILL
    assert not any(user_name(int(pid)) for pid in pids), "also the one that left the group"


def test_a_server_is_known_by_the_id_and_the_start_of_its_guard(tmp_path: Path) -> None:
    def alive(name: str) -> bool:
        return Running(tmp_path / "x.log", 0, 1, Placement(), "", name, 0.0).alive()

    me, child = os.getpid(), subprocess.Popen(["true"])
    name = user_name(child.pid) or f"{child.pid}-1"
    child.wait()
    assert alive(user_name(me)), "the command line does not count: a new process has none for a while"
    assert not alive(f"{me}-1"), "another process had this id earlier"
    assert not alive(name)
    assert not alive(""), "it ended before its name could be read"


def test_a_server_s_exit_status_and_words_are_its_own(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("of an earlier one\n")
    assert guarded(["sh", "-c", "echo mine; exit 7"], log).wait(30) == 7
    assert log.read_text() == "of an earlier one\nmine\n"


def test_only_users_that_have_not_ended_count(tmp_path: Path) -> None:
    assert not is_used(tmp_path / "absent") and not is_used(tmp_path)
    child = subprocess.Popen(["sleep", "600"])
    (tmp_path / user_name(child.pid)).touch()
    (tmp_path / f"{os.getpid()}-1").touch()  # another process had this number earlier
    assert is_used(tmp_path)
    child.kill()
    while is_used(tmp_path):  # also while nobody has taken notice of its end
        time.sleep(0.02)
    child.wait()


def test_the_query_of_an_address_goes_with_every_page() -> None:
    asked = list[str]()

    class Queried(OpenAIServer):
        def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
            asked.append(path)

    with Queried(lambda call: "x") as running:
        assert server.answers(f"{running.base_url}?api-version=7")
        assert server.kv_tokens(f"{running.base_url}?api-version=7") is None
    assert asked == ["/v1/models?api-version=7", "/metrics?api-version=7"]
