"""Protocols: how a dialogue unfolds. One file per protocol; the engine runs any of them.

A protocol's `run` reads as its paper's algorithm in plain control flow; everything that costs or can fail goes
through the `Kit`, which records it.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from codechat.agendas import AgendaConfig
from codechat.domain import Task
from codechat.instructions import Pool
from codechat.metrics import Effort, Measures
from codechat.protocols.kit import Kit, SessionLog
from codechat.records import SessionRecord
from codechat.registry import Registry


class DialogueProtocol(Protocol):
    """One way to hold a dialogue over a task, and what is measured of it."""

    @property
    def measures(self) -> Measures:
        """What `metrics` holds: all that is tracked, tabled, drawn and reported follows from it."""

    def turns(self, task: Task) -> int:
        """The most turns that a session over the task can have: what progress and estimates count."""

    def agenda(self, generator: random.Random) -> list[str]:
        """The types of the turns after the first, as the record keeps them; [] where a protocol has none."""

    async def run(self, task: Task, kit: Kit) -> None:
        """Hold the dialogue, writing finished turns to `kit.log`, whose agenda is set.

        Raises `InfrastructureError` where something outside failed: the session is then errored.
        """

    async def score(self, task: Task, kit: Kit, recorded: SessionRecord) -> None:
        """Score a recorded dialogue over the task again: its requests and replies, tested and judged anew.

        What was asked stays as it was, even where another verdict would have led to another dialogue.
        """

    def metrics(self, sessions: Collection[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        """The content of metrics.json, as `measures` says, with what `spending_of` makes of the effort.

        The sessions come without their texts (`SessionRecord.slim`) and are read from the journal each time they are
        iterated over: look at them once where you can, and keep little of each.
        """


@dataclass(frozen=True)
class Parts:
    """The components that a protocol may build on; those it names in `uses` become part of the cell id."""

    agenda: AgendaConfig
    pool: Pool
    lookahead: int


ProtocolFactory = Callable[[Any, Parts], DialogueProtocol]
PROTOCOLS: Registry[ProtocolFactory] = Registry("protocol", "codechat.protocols")

__all__ = ["PROTOCOLS", "DialogueProtocol", "Kit", "Parts", "ProtocolFactory", "SessionLog"]
