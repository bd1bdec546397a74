"""The GPUs that this process may use."""

import os
import subprocess

PATIENCE_S = 10.0
VISIBLE = "CUDA_VISIBLE_DEVICES"


def listed_gpus() -> list[float]:
    """The memory of each GPU that this process may use, in gigabytes; none if nvidia-smi is missing or fails."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        found = [float(line) / 1024 for line in answer.splitlines() if line.strip()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    visible = visible_gpus()
    return found if visible is None else found[: len(visible)]


def visible_gpus() -> list[str] | None:
    """The names of the GPUs that the environment leaves to this process, such as a batch system does; None: all."""
    named = os.environ.get(VISIBLE)
    return None if named is None else [each.strip() for each in named.split(",") if each.strip()]
