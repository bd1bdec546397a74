"""The GPUs of each server, computed from sizes alone, or a refusal with what would fit.

Gigabytes of memory and weights are as on a card's label. A server whose weights fit one GPU may share that GPU; a
larger server gets several GPUs for itself.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.models.endpoints import VLLM
from codechat.models.hardware import HardwareConfig
from codechat.models.serving.server import Server

KV_GB = 1.0
"""Least memory for conversations (keys and values) on each GPU of a server."""
SCARCE = 0.1
"""A server on several GPUs with a smaller part of each for conversations gets idle GPUs too."""
REMEDY = (
    "load the largest with weights.quantization=fp8 (another cell), or set hardware=h100_8, or a smaller "
    "model@judge.adherence now and judge again by codechat rescore, or serve a model elsewhere and set its base_url"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPUs of a machine. `memory_gb` of each GPU, None if unknown: then no server shares a GPU.

    The servers of a GPU use `fraction` of the memory together.
    """

    gpus: int
    memory_gb: float | None = None
    fraction: float = 0.9

    @property
    def usable_gb(self) -> float | None:
        """The gigabytes of each GPU that servers may use."""
        return None if self.memory_gb is None else self.memory_gb * self.fraction


@dataclass(frozen=True, slots=True)
class Placement:
    """The GPUs of a server, and its part of their memory; None without GPUs.

    `kv_gb`: memory left for conversations on each GPU; None if unknown.
    """

    gpus: tuple[int, ...] = ()
    fraction: float | None = None
    kv_gb: float | None = None


class DoesNotFit(UserError):
    """The servers of a cell need more GPU memory than the machine has."""


def machine_of(hardware: HardwareConfig) -> Machine:
    """The machine that the options describe; nvidia-smi completes it."""
    gpus, memory = hardware.gpus, hardware.gpu_memory_gb
    if gpus is None or (gpus and memory is None):
        memories = listed_gpus()
        gpus = len(memories) if gpus is None else gpus
        memory = memory or min(memories, default=None)
    return Machine(gpus, memory, hardware.memory_fraction)


def lay_out(machine: Machine, servers: Sequence[Server], taken: Iterable[Placement] = ()) -> dict[Server, Placement]:
    """A place for every server, given the places `taken` by other servers. Raises `DoesNotFit`.

    Programs other than vLLM take no GPU. The largest server is placed first. A server that fits one GPU goes to the
    GPU with the most memory left; the servers of a GPU have equal memory for conversations.
    """
    if not machine.gpus:
        return dict.fromkeys(servers, Placement())
    places: dict[Server, Placement] = {each: Placement() for each in servers if each.program != VLLM}
    on_gpus = [each for each in servers if each.program == VLLM]
    parts = [0.0] * machine.gpus  # the taken part of each GPU's memory
    for place in taken:
        for gpu in {*place.gpus} & {*range(machine.gpus)}:
            parts[gpu] += place.fraction or machine.fraction
    alone, together = list[Server](), dict[int, list[Server]]()
    for server in sorted(dict.fromkeys(on_gpus), key=lambda each: each.weights_gb or float("inf"), reverse=True):
        count = _gpus_for(machine, server)
        if count > 1 or server.weights_gb is None or machine.memory_gb is None:
            alone.append(server)
            idle = [gpu for gpu, part in enumerate(parts) if not part][:count]
            if len(idle) < count:
                raise _refusal(machine, on_gpus)
            _give(machine, server, idle, places, parts)
        else:
            left = [_left_gb(machine, part, together.get(gpu, ())) for gpu, part in enumerate(parts)]
            together.setdefault(left.index(max(left)), []).append(server)
    for gpu, sharing in together.items():
        kv = KV_GB + (left_gb := _left_gb(machine, parts[gpu], sharing)) / len(sharing)
        if left_gb < 0:
            raise _refusal(machine, on_gpus)
        for server in sharing:
            part = ((server.weights_gb or 0.0) + kv) / (machine.memory_gb or 1.0)
            places[server] = Placement((gpu,), int(part * 10_000 + 1e-6) / 10_000, kv)
        parts[gpu] = machine.fraction
    for server in alone:
        gpus, kv_gb = places[server].gpus, places[server].kv_gb
        idle = [gpu for gpu, part in enumerate(parts) if not part][: len(gpus)]
        if 1 < len(gpus) == len(idle) and kv_gb is not None and kv_gb < SCARCE * (machine.memory_gb or 0.0):
            _give(machine, server, [*gpus, *idle], places, parts)
    return {server: places[server] for server in servers}


def _give(
    machine: Machine, server: Server, gpus: Sequence[int], places: dict[Server, Placement], parts: list[float]
) -> None:
    size, usable = server.weights_gb, machine.usable_gb
    kv = None if size is None or usable is None else usable - size / len(gpus)
    places[server] = Placement(tuple(gpus), machine.fraction, kv)
    for gpu in gpus:
        parts[gpu] = machine.fraction


def _refusal(machine: Machine, servers: Sequence[Server]) -> DoesNotFit:
    sizes = ", ".join(
        f"{each.described} " + ("of unknown size" if each.weights_gb is None else f"{each.weights_gb:g} GB")
        for each in servers
    )
    memory = f" of {machine.memory_gb:g} GB ({machine.fraction:g} of each is used)" if machine.memory_gb else ""
    gpus = counted(machine.gpus, "GPU") + memory
    return DoesNotFit(f"the model servers of this cell do not fit {gpus}: {sizes}", REMEDY)


def _gpus_for(machine: Machine, server: Server) -> int:
    """The number of GPUs that hold a server's weights."""
    count, size, usable = 1, server.weights_gb, machine.usable_gb
    while size is not None and usable is not None and count <= machine.gpus and size / count + KV_GB > usable:
        count *= 2
    return count


def _left_gb(machine: Machine, part: float, servers: Iterable[Server]) -> float:
    """The gigabytes of a GPU left after the taken part and the servers' least needs."""
    needed = sum((each.weights_gb or 0.0) + KV_GB for each in servers)
    return (machine.fraction - part) * (machine.memory_gb or 0.0) - needed


PATIENCE_S = 10.0
VISIBLE = "CUDA_VISIBLE_DEVICES"


def listed_gpus() -> list[float]:
    """The memory of each GPU that this process may use, in gigabytes; empty if nvidia-smi is missing or fails."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        memories = [float(line) / 1024 for line in answer.splitlines() if line.strip()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    visible = visible_gpus()
    return memories if visible is None else memories[: len(visible)]


def visible_gpus() -> list[str] | None:
    """The names of the GPUs that the environment allows this process, e.g. in a batch job; None: all."""
    named = os.environ.get(VISIBLE)
    return None if named is None else [each.strip() for each in named.split(",") if each.strip()]


T = TypeVar("T")


def by_servers(cells: Sequence[T], needs: Callable[[T], Iterable[Server]]) -> list[list[T]]:
    """The cells in groups with equal servers, in the order of the cells within a group.

    The first cell's group is first; every next group shares the most servers with the group before it.
    """
    groups: dict[frozenset[Server], list[T]] = {}
    for cell in cells:
        groups.setdefault(frozenset(needs(cell)), []).append(cell)
    ordered: list[list[T]] = []
    last: frozenset[Server] = next(iter(groups), frozenset())
    while groups:
        last = max(groups, key=lambda servers: len(servers & last))
        ordered.append(groups.pop(last))
    return ordered
