"""Which GPUs a server gets. Pure: sizes in, places out, or a refusal that says what would fit.

Gigabytes are as on a card's label, for memory and weights alike. A server whose weights fit one GPU may share it with
others; one that needs several has them for itself.
"""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.models.hardware import HardwareConfig
from codechat.models.serving.server import Server

KV_GB = 1.0
"""Memory that a server needs on each of its GPUs beside its weights, for the keys and values of conversations."""
SCARCE = 0.1
"""A server on several GPUs with less than this part of each for conversations gets idle ones too."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPUs of a machine. `memory_gb` is that of each GPU, None if it is not known: then no server shares one.

    Servers use `fraction` of it together. `tensor_parallel` None: as few GPUs as hold the weights, and idle ones if
    these leave little for conversations.
    """

    gpus: int
    memory_gb: float | None = None
    fraction: float = 0.9
    tensor_parallel: int | None = None
    data_parallel: int = 1

    @property
    def usable_gb(self) -> float | None:
        """The gigabytes of each GPU that servers may use."""
        return None if self.memory_gb is None else self.memory_gb * self.fraction

    @property
    def described(self) -> str:
        """The GPUs, for people."""
        size = "" if self.memory_gb is None else f" of {self.memory_gb:g} GB ({self.fraction:g} of each is used)"
        return counted(self.gpus, "GPU") + size


@dataclass(frozen=True, slots=True)
class Placement:
    """The GPUs of a server, and the part of their memory that it may use; no GPU and None on a machine without any.

    `kv_gb` is what that leaves for conversations on each GPU; None if it is not known.
    """

    gpus: tuple[int, ...] = ()
    fraction: float | None = None
    tensor_parallel: int = 1
    data_parallel: int = 1
    kv_gb: float | None = None


class DoesNotFit(UserError):
    """The servers of a cell need more memory than there is."""


def machine_of(hardware: HardwareConfig) -> Machine:
    """The machine that the options describe; what they leave open is asked from nvidia-smi."""
    gpus, memory = hardware.gpus, hardware.gpu_memory_gb
    if gpus is None or (gpus and memory is None):
        found = listed_gpus()
        gpus = len(found) if gpus is None else gpus
        memory = memory or (min(found) if found else None)
    return Machine(gpus, memory, hardware.memory_fraction, hardware.tensor_parallel, hardware.data_parallel or 1)


def lay_out(
    machine: Machine, servers: Sequence[Server], running: Mapping[Server, Placement] | None = None
) -> dict[Server, Placement]:
    """A place for every server; those that are `running` keep theirs. Raises `DoesNotFit`.

    Servers that share GPUs are laid out so that the one with the least memory for conversations has the most.
    """
    kept = running or {}
    places = _layout(machine, servers, kept)
    if places is None:
        ordered = sorted(dict.fromkeys(servers), key=lambda each: -(each.weights_gb or 0.0))
        sizes = ", ".join(
            f"{each.described} " + ("of unknown size" if each.weights_gb is None else f"{each.weights_gb:g} GB")
            for each in ordered
        )
        raise DoesNotFit(
            f"the model servers of this cell do not fit {machine.described}: {sizes}",
            "; or ".join(_remedies(machine, ordered)),
        )
    return places if machine.tensor_parallel else _widened(machine, places, kept)


def _layout(
    machine: Machine, servers: Sequence[Server], kept: Mapping[Server, Placement]
) -> dict[Server, Placement] | None:
    """As `lay_out`; None if the servers do not fit."""
    new = [each for each in dict.fromkeys(servers) if each not in kept]
    if not machine.gpus:
        return {each: Placement() for each in new} | dict(kept)
    used = [sum(place.fraction or 1.0 for place in kept.values() if gpu in place.gpus) for gpu in range(machine.gpus)]
    needed = {each: _gpus_for(machine, each) for each in new}
    empty = [gpu for gpu, part in enumerate(used) if part == 0]
    placed: dict[Server, Placement] = {}
    for server in sorted(new, key=lambda each: -(each.weights_gb or 0.0)):
        count = needed[server]
        if count is None:
            return None
        if count > 1 or server.weights_gb is None or machine.memory_gb is None:
            if count > len(empty):
                return None
            own, empty = empty[:count], empty[count:]
            placed[server] = _whole(machine, server, tuple(own))
            used = [machine.fraction if gpu in own else part for gpu, part in enumerate(used)]
    shared = [each for each in new if each not in placed]
    best = max(  # by the memory for conversations, the least first
        _assignments(machine, shared, used),
        key=lambda places: sorted(place.kv_gb or 0.0 for place in places.values()),
        default=None,
    )
    return None if best is None else {each: (placed | best)[each] for each in new} | dict(kept)


def _widened(
    machine: Machine, places: dict[Server, Placement], kept: Mapping[Server, Placement]
) -> dict[Server, Placement]:
    """The layout with idle GPUs given to servers on several that have little memory for conversations there."""
    idle = [gpu for gpu in range(machine.gpus) if not any(gpu in place.gpus for place in places.values())]
    for server, place in places.items():
        scarce = place.kv_gb is not None and place.kv_gb < SCARCE * (machine.memory_gb or 0.0)
        more = len(place.gpus)
        if more > 1 and scarce and server not in kept and more <= len(idle):
            places = {**places, server: _whole(machine, server, (*place.gpus, *idle[:more]))}
            idle = idle[more:]
    return places


def _gpus_for(machine: Machine, server: Server) -> int | None:
    """How many GPUs a server takes; None if there are not enough."""
    usable = machine.usable_gb
    size, parallel = server.weights_gb, machine.tensor_parallel
    if parallel is None:
        parallel = 1
        while size is not None and usable is not None and size / parallel + KV_GB > usable:
            parallel *= 2
            if parallel > machine.gpus:
                return None
    elif size is not None and usable is not None and size / parallel + KV_GB > usable:
        return None
    count = parallel * machine.data_parallel
    return count if count <= machine.gpus else None


def _whole(machine: Machine, server: Server, gpus: tuple[int, ...]) -> Placement:
    """A place on GPUs that no other server has."""
    parallel = len(gpus) // machine.data_parallel
    size, usable = server.weights_gb, machine.usable_gb
    kv = None if size is None or usable is None else usable - size / parallel
    return Placement(gpus, machine.fraction, parallel, machine.data_parallel, kv)


def _assignments(machine: Machine, servers: list[Server], used: list[float]) -> Iterator[dict[Server, Placement]]:
    """Every way of putting each server on one GPU. Of GPUs that hold the same, only the first is tried."""
    if not servers:
        yield {}
        return
    if machine.memory_gb is None:
        return
    ordered = sorted(servers, key=lambda each: -(each.weights_gb or 0.0))
    for choice in itertools.product(range(machine.gpus), repeat=len(ordered)):
        fresh = [gpu for gpu in dict.fromkeys(choice) if used[gpu] == 0]
        if fresh != [gpu for gpu, part in enumerate(used) if part == 0][: len(fresh)]:
            continue
        places: dict[Server, Placement] = {}
        for gpu in dict.fromkeys(choice):
            together = [each for each, other in zip(ordered, choice, strict=True) if other == gpu]
            free = (machine.fraction - used[gpu]) * machine.memory_gb
            kv = (free - sum(each.weights_gb or 0.0 for each in together)) / len(together)
            if kv < KV_GB:
                break
            for each in together:
                part = ((each.weights_gb or 0.0) + kv) / machine.memory_gb
                places[each] = Placement((gpu,), int(part * 10_000 + 1e-6) / 10_000, kv_gb=kv)
        else:
            yield places


def _remedies(machine: Machine, ordered: list[Server]) -> Iterator[str]:
    """Changes with which the servers would fit, each tried."""
    largest, *rest = ordered
    size = largest.weights_gb
    smaller = [*rest] if size is None else [replace(largest, weights_gb=size / 2), *rest]
    if size is not None and largest.weights.quantization is None and _layout(machine, smaller, {}):
        yield f"load {largest.name} with weights.quantization=fp8, which makes another cell"
    bigger = Machine(8, 80.0, machine.fraction)
    if machine.gpus < bigger.gpus and _layout(bigger, ordered, {}):
        yield "hardware=h100_8"
    for left in rest:
        if _layout(machine, [each for each in ordered if each != left], {}):
            yield f"a smaller model@judge.adherence now, and {left.name} afterwards by codechat rescore"
            break
    yield "serve a model elsewhere and set its base_url"


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


T = TypeVar("T")


def by_servers(cells: Sequence[T], needs: Callable[[T], Iterable[Server]]) -> list[list[T]]:
    """The cells in groups that need the same servers; each group keeps the cells' order.

    The first cell's group is first; then always the one that shares the most servers with the one before, of several
    the earliest.
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
