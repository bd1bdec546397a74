"""Protocols: how a dialogue unfolds. One file per protocol; the engine runs any of them.

A protocol's `run` reads as its paper's algorithm in plain control flow; everything that costs or can fail goes
through the `Kit`, which records it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from codechat.base.config import Config
from codechat.base.records import SessionRecord
from codechat.base.registry import Registry
from codechat.datasets.tasks import Task
from codechat.judging import ADHERENCE, APPLICABILITY, JudgeConfig
from codechat.report.metrics import Effort, Measures
from codechat.run.protocols.kit import Kit
from codechat.run.protocols.services import SessionLog


@dataclass(frozen=True, slots=True)
class Ask:
    """Calls that a session is expected to make at a turn, for estimates.

    `characters` counts one request without the `replies` earlier replies in it; `answer` counts one reply, None for a
    judgement. `times` may be a fraction if only a share of the sessions makes the call.

    With so many `shared` characters, and so many of the replies (`shared_replies`), an earlier request of the role
    began, or the role's reply to it followed: what a cache of prefixes can serve.
    """

    role: str
    turn: int
    characters: float
    answer: float | None = None
    times: float = 1.0
    replies: int = 0
    shared: float = 0.0
    shared_replies: int = 0


class DialogueProtocol(Protocol):
    """One way to hold a dialogue over a task, and what is measured of it."""

    @property
    def measures(self) -> Measures:
        """A description of `metrics`, from which tracking, tables, figures and reports are made."""

    def turns(self, task: Task) -> int:
        """The most turns that a session over the task can have, for progress and estimates.

        Called for every task before anything runs: raises `UserError` for a task that does not fit the protocol.
        """

    def agenda(self, generator: random.Random) -> list[str]:
        """The types of the turns after the first, as the record keeps them; [] if the protocol has none."""

    def asks(self, task: Task) -> Iterator[Ask]:
        """The calls that a session over the task is expected to make."""

    async def run(self, task: Task, kit: Kit) -> None:
        """Hold the dialogue, writing finished turns to `kit.log`, whose agenda is set.

        Raises `InfrastructureError` if something outside failed: the session is then errored. A recorded session is
        scored again by the same method: `kit.ask` returns the recorded replies, requests stay as recorded, and a
        protocol whose path depends on verdicts follows `kit.recorded(turn)`.
        """

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        """The content of metrics.json, as `measures` says, with what `spending_of` makes of the effort.

        The sessions come without their texts (`SessionRecord.slim`), and each iteration reads them from the journal:
        iterate once if you can, and keep little of each.
        """


class Parts:
    """What a protocol may build on: the judge's options, and by their names the groups of studies and their data.

    Such as `parts.agenda`, the options of that group, and `parts.pool`, the data that the group `instructions` loads;
    None if the protocol does not name the group in `uses`, or no installed study brings it.
    """

    def __init__(self, judge: JudgeConfig, groups: Mapping[str, Any]) -> None:
        self.judge = judge
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._groups.get(name)


@dataclass(frozen=True)
class ProtocolTraits:
    """The properties of a protocol that are known before it is built.

    `uses`: config groups, in addition to model and dataset, that can change its results (`judge`, `sandbox`, groups of
    studies). Only these are built, checked, admitted and part of the cell id. `questions`: questions to the judge; a
    cell leaves out judge models for other questions. `further` returns the questions that the options add. `over`: the
    type of its tasks. `settle` completes the options by the dataset's, before the cell has its id. `with_desk`: the
    values of options that a coding agent needs, whose folder stays from turn to turn: other values start anew. None: no
    agent fits. `assumes` returns the assumptions behind `asks` that the options add, in words.
    """

    uses: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset({APPLICABILITY, ADHERENCE})
    over: type[Task] = Task
    further: Callable[[Any], frozenset[str]] = lambda options: frozenset()
    settle: Callable[[Any, Config], Config] = lambda options, dataset: options
    with_desk: Mapping[str, Any] | None = field(default_factory=dict, hash=False)
    assumes: Callable[[Any], tuple[str, ...]] = lambda options: ()


PROTOCOLS: Registry[DialogueProtocol, ProtocolTraits] = Registry(
    "protocol", "codechat.run.protocols", ProtocolTraits, DialogueProtocol
)


def questions_of(config: Config) -> frozenset[str]:
    """The questions of a protocol to its judge: by its traits and by its options."""
    traits = PROTOCOLS.of(config).traits
    return traits.questions | traits.further(config)


__all__ = ["PROTOCOLS", "Ask", "DialogueProtocol", "Kit", "Parts", "ProtocolTraits", "SessionLog", "questions_of"]
