"""vLLM: command line, environment, readiness, and the reasons of a failed start."""

import http
import os
import shlex
import shutil

from codechat.base.errors import UserError
from codechat.models.endpoints import VLLM, key_of
from codechat.models.hardware import HardwareConfig
from codechat.models.serving.planning import VISIBLE, Placement, visible_gpus
from codechat.models.serving.server import BUSY, Need, Server, local_url, page_of

SILENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Turns off all usage reports, also if the user's environment allows them."""


def command(need: Need) -> list[str]:
    """The command without its arguments. Raises `UserError` if vLLM is not installed."""
    path = shutil.which(VLLM)
    if path is None:
        raise UserError(
            f"nothing answers at {need.base_url}, and vllm, which would serve {need.server.name}, is not installed",
            "pip install 'codechat[vllm]' on a machine with a GPU; or start the server, or set "
            f"{key_of(need.config, 'base_url')} to the model's server",
        )
    return [path, "serve"]


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


def is_ready(port: int) -> bool:
    """Whether the server on a port reports that it is ready, or is busy with requests."""
    page = page_of(local_url(port), "/health")
    return page is not None and page[0] in (http.HTTPStatus.OK, BUSY)


CAUSES: tuple[tuple[str, str, str], ...] = (
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
