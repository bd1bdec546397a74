"""vLLM: command line, environment, and the reason of a failed start, read from the log."""

import os
import re
import shlex
import shutil
from pathlib import Path

from codechat.base.errors import UserError
from codechat.models.endpoints import key_of
from codechat.models.hardware import HardwareConfig
from codechat.models.serving.planning import VISIBLE, Placement, visible_gpus
from codechat.models.serving.server import VLLM, Need, Server

SILENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Turns off all usage reports, also if the user's environment allows them."""
HOST = "127.0.0.1"


def program(need: Need) -> str:
    """The path of vLLM's command. Raises `UserError` if vLLM is not installed."""
    path = shutil.which(VLLM)
    if path is None:
        raise UserError(
            f"nothing answers at {need.base_url}, and vllm, which would serve {need.server.name}, is not installed",
            "pip install 'codechat[vllm]' on a machine with a GPU; or start the server, or set "
            f"{key_of(need.config, 'base_url')} to the model's server",
        )
    return path


def arguments_of(server: Server, place: Placement, hardware: HardwareConfig) -> list[str]:
    """The arguments of `vllm serve`, without host and port.

    `--generation-config vllm`: a repository's sampling defaults, such as Qwen's repetition penalty, would change greedy
    decoding. `--enable-prompt-tokens-details`: replies report the cached part of their prompts.
    """
    chosen = server.weights.identity()
    words = [server.name, "--served-model-name", server.name]
    words += [word for name, value in chosen.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words += ["--generation-config", "vllm", "--enable-prompt-tokens-details"]
    if place.fraction is not None:
        words += ["--gpu-memory-utilization", str(place.fraction)]
    if len(place.gpus) > 1:
        words += ["--tensor-parallel-size", str(len(place.gpus))]
    return [*words, *shlex.split(hardware.vllm_args)]


def environment_of(place: Placement) -> dict[str, str]:
    """The variables of a server's process. Raises `UserError` if the environment hides one of its GPUs."""
    variables = {**os.environ, **SILENT}
    if place.gpus:
        visible = visible_gpus()
        if visible is not None and max(place.gpus) >= len(visible):
            raise UserError(
                f"the servers are laid out on {max(place.gpus) + 1} GPUs or more, and {VISIBLE}={','.join(visible)}",
                "set hardware.gpus to the GPUs that this process may use",
            )
        variables[VISIBLE] = ",".join(str(gpu) if visible is None else visible[gpu] for gpu in place.gpus)
    return variables


LONGEST_LINE = 240


PORT_TAKEN = re.compile(r"address already in use", re.IGNORECASE)
CAUSES = (
    (r"no space left on device|not enough (free )?disk space", "the disk is full",
     "free some space, or set HF_HOME to a folder on another disk"),
    (r"gated repo|access to model .* is restricted|awaiting a review", "its weights are gated",
     "ask for access on the model's page at huggingface.co, then set HF_TOKEN to your token"),
    (r"is not a local folder and is not a valid model|repository not found|RepositoryNotFoundError"
     r"|is not a valid git identifier|RevisionNotFoundError|no such model", "its weights were not found",
     "check {place}.name and {place}.weights.revision; a private repository needs HF_TOKEN"),
    (r"couldn't connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|cannot find the requested files",
     "its weights could not be downloaded", "check the network; or download them beforehand: hf download {name}"),
    (r"larger than the available kv cache memory|tokens that can be stored in kv cache",
     "too little GPU memory is left for one conversation of the longest kind",
     "set {place}.weights.max_model_len lower, which makes another cell; or more memory: hardware.memory_fraction"),
    (r"less than desired gpu memory utilization", "another program uses the GPU's memory",
     "end it, or set hardware.memory_fraction lower"),
    (r"out of memory|OutOfMemoryError|no available memory for the cache blocks", "the GPU's memory is too small",
     "set {place}.weights.max_model_len lower, which makes another cell, or hardware.vllm_args='--max-num-seqs 32'"),
    (r"unrecognized arguments|invalid choice", "this vLLM does not know an option",
     "pip install -U 'codechat[vllm]'; {place}.weights holds what is set for this model"),
)  # fmt: skip
"""Reasons of a failed start: a pattern of a log line, the problem, and the remedy."""


def failure(name: str, place: str, output: str, ended: str, log: Path) -> UserError:
    """The error of a server that was never ready. `ended`: how it ended; `place`: the model's key in the config."""
    lines = [line for line in output.splitlines() if line.strip()]
    for pattern, problem, remedy in CAUSES:
        if matching := [line for line in lines if re.search(pattern, line, re.IGNORECASE)]:
            message = f"{name} cannot be served: {problem} (log: {log})\n  {_short(matching[-1])}"
            return UserError(message, remedy.format(place=place, name=name))
    last = f"\n  {_short(lines[-1])}" if lines else ""
    return UserError(f"{name} cannot be served: vllm {ended}{last}", f"its log says more: {log}")


def _short(line: str) -> str:
    """The line without the prefixes of vLLM and Python."""
    text = re.sub(r"^(\(\S+ pid=\d+\)\s*)?((ERROR|WARNING|INFO|CRITICAL)\s+[\d: .-]+\[[^\]]*\]\s*)?", "", line.strip())
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
