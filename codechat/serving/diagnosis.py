"""Why a server did not become ready, read from its log: the line that says it, and the option to change."""

import re
from dataclasses import dataclass
from pathlib import Path

from codechat.errors import UserError

LONGEST_LINE = 240


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason that vLLM, or a library of it, writes to its log, and what to do about it."""

    pattern: re.Pattern[str]
    problem: str
    remedy: str


def _cause(pattern: str, problem: str, remedy: str) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), problem, remedy)


PORT_TAKEN = re.compile(r"address already in use", re.IGNORECASE)
CAUSES = (
    _cause(
        r"no space left on device|not enough (free )?disk space",
        "the disk is full",
        "free some space, or set HF_HOME to a folder on another disk",
    ),
    _cause(
        r"gated repo|access to model .* is restricted|awaiting a review",
        "its weights are gated",
        "ask for access on the model's page at huggingface.co, then set HF_TOKEN to your token",
    ),
    _cause(
        r"is not a local folder and is not a valid model|repository not found|RepositoryNotFoundError"
        r"|is not a valid git identifier|RevisionNotFoundError|no such model",
        "its weights were not found",
        "check {place}.name and {place}.weights.revision; a private repository needs HF_TOKEN",
    ),
    _cause(
        r"couldn't connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|cannot find the requested files",
        "its weights could not be downloaded",
        "check the network; or download them beforehand: hf download {name}",
    ),
    _cause(
        r"larger than the available kv cache memory|tokens that can be stored in kv cache",
        "too little GPU memory is left for one conversation of the longest kind",
        "set {place}.weights.max_model_len lower, which makes another cell; or more memory: hardware.memory_fraction",
    ),
    _cause(
        r"less than desired gpu memory utilization",
        "another program uses the GPU's memory",
        "end it, or set hardware.memory_fraction lower",
    ),
    _cause(
        r"out of memory|OutOfMemoryError|no available memory for the cache blocks",
        "the GPU's memory is too small",
        "set hardware.max_num_seqs or {place}.weights.max_model_len lower, or hardware.tensor_parallel higher",
    ),
    _cause(
        r"unrecognized arguments|invalid choice",
        "this vLLM does not know an option",
        "pip install -U 'codechat[vllm]'; {place}.weights holds what is set for this model",
    ),
)


def why(name: str, place: str, said: str, ended: str, log: Path) -> UserError:
    """The error for a server that was not ready. `ended` says what became of it; `place` is the model's key."""
    for cause in CAUSES:
        found = [line for line in said.splitlines() if cause.pattern.search(line)]
        if found:
            remedy = cause.remedy.format(place=place, name=name)
            return UserError(f"{name} cannot be served: {cause.problem} (log: {log})\n  {_short(found[-1])}", remedy)
    lines = [line for line in said.splitlines() if line.strip()]
    last = f"\n  {_short(lines[-1])}" if lines else ""
    return UserError(f"{name} cannot be served: vllm {ended}{last}", f"its log says more: {log}")


def _short(line: str) -> str:
    """The line without what vLLM and Python put before its text."""
    text = re.sub(r"^(\(\S+ pid=\d+\)\s*)?((ERROR|WARNING|INFO|CRITICAL)\s+[\d: .-]+\[[^\]]*\]\s*)?", "", line.strip())
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
