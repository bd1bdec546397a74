"""Protocols: how a dialogue unfolds. One file per protocol; the engine runs any of them.

A protocol's `run` reads as its paper's algorithm in plain control flow; everything that costs or can fail goes
through the `Kit`, which records it.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from codechat.agendas import AgendaConfig
from codechat.instructions import Pool
from codechat.judges import JudgeConfig
from codechat.metrics import Effort, Measures
from codechat.protocols.kit import Kit, SessionLog
from codechat.records import SessionRecord
from codechat.registry import Registry
from codechat.tasks import Task


@dataclass(frozen=True, slots=True)
class Ask:
    """Calls that a session is expected to make at a turn, for estimates.

    `characters` are those of one request, beside the earlier `replies` that it holds; `answer` those of one reply, None
    for a judgement. `times` may be a fraction if only a share of the sessions makes the call.
    """

    role: str
    turn: int
    characters: float
    answer: float | None = None
    times: float = 1.0
    replies: int = 0


class DialogueProtocol(Protocol):
    """One way to hold a dialogue over a task, and what is measured of it."""

    @property
    def measures(self) -> Measures:
        """What `metrics` holds: all that is tracked, tabled, drawn and reported follows from it."""

    def turns(self, task: Task) -> int:
        """The most turns that a session over the task can have: what progress and estimates count.

        It is called for every task before anything runs: raises `UserError` for a task that does not fit the protocol.
        """

    def agenda(self, generator: random.Random) -> list[str]:
        """The types of the turns after the first, as the record keeps them; [] if the protocol has none."""

    def asks(self, task: Task) -> Iterator[Ask]:
        """What a session over the task is expected to ask of whom."""

    async def run(self, task: Task, kit: Kit) -> None:
        """Hold the dialogue, writing finished turns to `kit.log`, whose agenda is set.

        Raises `InfrastructureError` if something outside failed: the session is then errored.
        """

    async def score(self, task: Task, kit: Kit, recorded: SessionRecord) -> None:
        """Score a recorded dialogue over the task again: its requests and replies, tested and judged anew.

        What was asked stays as it was, even if another verdict would have led to another dialogue.
        """

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        """The content of metrics.json, as `measures` says, with what `spending_of` makes of the effort.

        The sessions come without their texts (`SessionRecord.slim`) and are read from the journal each time they are
        iterated over: look at them once if you can, and keep little of each.
        """


@dataclass(frozen=True)
class Parts:
    """The components that a protocol may build on: those that it names in `uses`, None for the others."""

    agenda: AgendaConfig
    pool: Pool | None
    judge: JudgeConfig


@dataclass(frozen=True)
class ProtocolTraits:
    """What is known of a protocol before it is built.

    `uses` names the groups, beside model and dataset, that can change its results: `agenda`, `instructions`, `judge`,
    `sandbox`. Only these are built, checked, admitted and part of the cell id. `over` is the type of its tasks.
    """

    uses: frozenset[str] = frozenset()
    over: type[Task] = Task


PROTOCOLS: Registry[DialogueProtocol, ProtocolTraits] = Registry("protocol", "codechat.protocols", ProtocolTraits)

__all__ = ["PROTOCOLS", "Ask", "DialogueProtocol", "Kit", "Parts", "ProtocolTraits", "SessionLog"]
