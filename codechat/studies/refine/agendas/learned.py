"""Agendas learned from dialogues: how long sessions are, how they begin, and which type follows which."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from codechat.base.config import place_option
from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.files import file_hash
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.texts import read_json
from codechat.studies.refine.agendas import AGENDAS, TYPES, AgendaConfig, Axis
from codechat.studies.refine.agendas.recognising import Recogniser

SMOOTHING = 1.0
"""Observations that are added to each row of transitions, spread as the types are over all requests."""
FORMS = (
    'a line is ["a request", …], {"turns": ["a request", …]}, {"messages": [{"role": …, "content": …}, …]}, '
    "or a session's record"
)
REMEDY = "agenda.from names a JSONL file of dialogues"


class Learned(BaseModel):
    """The counts of a file of dialogues, by which agendas are drawn.

    `turns` counts follow-up requests, `recognised` the ones with a type. `lengths` counts dialogues by their turns, the
    initial request included; `types` counts requests by type, in the order of the axis; `first` counts types of first
    follow-ups; `transitions` counts by type the types that came next. A request without a type is in no transition.
    """

    model_config = ConfigDict(frozen=True)

    dialogues: int
    turns: int
    recognised: int
    lengths: dict[int, int]
    types: dict[str, int]
    first: dict[str, int]
    transitions: dict[str, dict[str, int]]

    @classmethod
    def of(cls, dialogues: Sequence[Sequence[str | None]], axis: Axis) -> Self:
        """Count dialogues; each is the `scope/change` of its follow-ups, None where none was recognised."""
        typed = [[kind and _on(kind, axis) for kind in each] for each in dialogues]
        counts = Counter(kind for each in typed for kind in each if kind)
        types = [name for name in TYPES[axis] if counts[name]]
        steps = Counter(step for each in typed for step in pairwise(each))
        first = Counter(each[0] for each in typed)
        return cls(
            dialogues=len(typed),
            turns=sum(map(len, typed)),
            recognised=counts.total(),
            lengths=dict(sorted(Counter(1 + len(each) for each in typed).items())),
            types={name: counts[name] for name in types},
            first={name: first[name] for name in types},
            transitions={name: {after: steps[name, after] for after in types} for name in types},
        )

    @cached_property
    def starts(self) -> Mapping[str, float]:
        """The probability of each type at the first follow-up; they sum to 1."""
        return self._smoothed(self.first)

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, float]]:
        """By type the probability of each type at the next follow-up; each row sums to 1."""
        return {name: self._smoothed(counts) for name, counts in self.transitions.items()}

    def _smoothed(self, counts: Mapping[str, int]) -> Mapping[str, float]:
        whole = sum(counts.values()) + SMOOTHING
        return {name: (counts[name] + SMOOTHING * of / self.recognised) / whole for name, of in self.types.items()}

    def draw(self, turns: int, generator: random.Random) -> list[str]:
        """A session's agenda of at most so many turns; with fewer it is the beginning of the same agenda."""
        (length,) = generator.choices(list(self.lengths), list(self.lengths.values()))
        agenda: list[str] = []
        while len(agenda) < min(length, turns) - 1:
            row = self.rows[agenda[-1]] if agenda else self.starts
            agenda += generator.choices(list(row), list(row.values()))
        return agenda


def _on(kind: str, axis: Axis) -> str:
    scope, _, change = kind.partition("/")
    return {"scope": scope, "change": change, "cell": kind}[axis]


class _Learning(AgendaConfig):
    """Options of agendas that are learned; the field `from`, a word of Python, is added below."""

    version: ClassVar[int] = 1  # of the recognition of requests, too

    @model_validator(mode="after")
    def _has_nothing_to_learn_twice(self) -> Self:
        if self.distribution is not None or self.sequence is not None or self.order != "shuffled":
            named = "agenda=learned takes its types from agenda.from, and no distribution, sequence or order"
            raise UserError(named, "leave it out, or choose another agenda")
        return self

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options and the hash of the dialogues. Raises `UserError` if they cannot be read."""
        return {**super().identity(older), "content": file_hash(_source(self), REMEDY)}


_FIELDS: Any = {
    "from": (str, place_option(..., "the JSONL file of dialogues; its content is in the cell id", min_length=1))
}
LearnedConfig = create_model("LearnedConfig", __base__=_Learning, __module__=__name__, **_FIELDS)


@AGENDAS.register("learned", LearnedConfig, nests=True, learns=True)
def learned(config: AgendaConfig, generator: random.Random, instructions: Sequence[Instruction]) -> list[str]:
    """Length, beginning and transitions (first-order) as in the dialogues of agenda.from, at most agenda.turns."""
    return learn(config, instructions).draw(config.turns, generator)


def learn(config: AgendaConfig, instructions: Sequence[Instruction]) -> Learned:
    """The counts of the dialogues that the options name, recognised by a pool's instructions. Raises `UserError`."""
    path = _source(config)
    return _learn(path, file_hash(path, REMEDY), config.axis, tuple(instructions))


def _source(config: AgendaConfig) -> Path:
    return Path(getattr(config, "from"))


@lru_cache(maxsize=4)  # every session draws from the same
def _learn(path: Path, content: str, axis: Axis, instructions: tuple[Instruction, ...]) -> Learned:
    recogniser = Recogniser(instructions)
    dialogues = [found for found in _dialogues(path, recogniser) if found]
    if not any(kind for each in dialogues for kind in each):
        problem = f"{path}: none of the requests in {len(dialogues)} dialogues has a type that the pool knows"
        raise UserError(problem, f"{FORMS}, and requests are like the instructions of `codechat list instructions`")
    return Learned.of(dialogues, axis)


def _dialogues(path: Path, recogniser: Recogniser) -> Iterator[list[str | None]]:
    """The types of each dialogue's follow-ups."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if line.strip():
            try:
                yield _follow_ups(read_json(line), recogniser)
            except (ValueError, LookupError, TypeError) as error:
                problem = "not a record of a session" if isinstance(error, ValidationError) else str(error)
                raise UserError(f"{path}:{number}: not a dialogue: {problem:.200}", FORMS) from error


def _follow_ups(dialogue: Any, recogniser: Recogniser) -> list[str | None]:
    """The types of a dialogue's follow-ups. Raises `ValueError`."""
    if isinstance(dialogue, list):
        dialogue = {"turns": dialogue}
    if not isinstance(dialogue, dict) or not isinstance(given := dialogue.get("turns", dialogue.get("messages")), list):
        raise ValueError("it has neither 'turns' nor 'messages'")
    if "cell_id" in dialogue:
        session = SessionRecord.model_validate(dialogue)
        done = session.turns[1:] if session.status == "completed" else []
        return [_kind(turn, recogniser) for turn in done if not turn.skipped]
    texts = given
    if "turns" not in dialogue:
        texts = [each["content"] for each in given if each["role"] == "user"][1:]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a request is no text")
    return [recogniser.kind_of(text) for text in texts]


def _kind(turn: TurnRecord, recogniser: Recogniser) -> str | None:
    """The type of a recorded turn: of its (first) instruction, else of the last message to the model."""
    if turn.asked:
        return f"{turn.asked[0].scope}/{turn.asked[0].change}"
    said = [message.content for message in turn.first_request if message.role == "user"]
    return recogniser.kind_of(said[-1]) if said else None
