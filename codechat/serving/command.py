"""The command line and the environment of a server."""

import os
import shutil
from collections.abc import Mapping

from codechat.errors import UserError
from codechat.hardware import HardwareConfig
from codechat.models.endpoints import key_of
from codechat.serving.gpus import VISIBLE, visible_gpus
from codechat.serving.planning import Placement
from codechat.serving.server import VLLM, Need, Server

SILENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""vLLM and what it loads report nothing to anybody, whatever the user's environment says."""
HOST = "127.0.0.1"


class NotInstalled(UserError):
    """A model is to be served on this machine, and the program that serves it is not there."""


def program(need: Need) -> str:
    """The path of vLLM's command. Raises `NotInstalled`."""
    found = shutil.which(VLLM)
    if found is None:
        raise NotInstalled(
            f"nothing answers at {need.base_url}, and vllm, which would serve {need.server.name}, is not installed",
            "pip install 'codechat[vllm]' on a machine with a GPU; or start the server, or set "
            f"{key_of(need.config, 'base_url')} to the model's server",
        )
    return found


def arguments_of(server: Server, place: Placement, hardware: HardwareConfig) -> list[str]:
    """What `vllm serve` is told, without host and port.

    `--generation-config vllm`: a repository's own sampling defaults, such as Qwen's repetition penalty, would change
    greedy decoding. `--enable-prompt-tokens-details`: without it no reply says how much of its prompt was cached.
    """
    options: Mapping[str, float | None] = {
        "--gpu-memory-utilization": place.fraction,
        "--tensor-parallel-size": place.tensor_parallel if place.tensor_parallel > 1 else None,
        "--data-parallel-size": place.data_parallel if place.data_parallel > 1 else None,
        "--max-num-seqs": hardware.max_num_seqs,
    }
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return [*server.arguments(), "--generation-config", "vllm", "--enable-prompt-tokens-details", *given]


def environment_of(place: Placement, hardware: HardwareConfig) -> dict[str, str]:
    """The variables of a server's process. Raises `UserError` if the environment hides a GPU that it needs."""
    variables = {**os.environ, **SILENT}
    if place.gpus:
        visible = visible_gpus()
        if visible is not None and max(place.gpus) >= len(visible):
            raise UserError(
                f"the servers are laid out on {max(place.gpus) + 1} GPUs or more, and {VISIBLE}={','.join(visible)}",
                "set hardware.gpus to the GPUs that this process may use",
            )
        variables[VISIBLE] = ",".join(str(gpu) if visible is None else visible[gpu] for gpu in place.gpus)
    if hardware.batch_invariant:
        variables["VLLM_BATCH_INVARIANT"] = "1"
    return variables
