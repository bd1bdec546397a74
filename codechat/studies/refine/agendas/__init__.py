"""Evaluation agendas A(N, D): the type of instruction of every turn, fixed before the session (paper III-C)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from codechat.base.config import Config, Within, original_option, result_option
from codechat.base.domain import CHANGES, SCOPES, Instruction
from codechat.base.errors import UserError
from codechat.base.registry import Registry

Axis = Literal["scope", "change", "cell"]

TYPES: Mapping[Axis, tuple[str, ...]] = {
    "scope": SCOPES,
    "change": CHANGES,
    "cell": tuple(f"{scope}/{change}" for scope in SCOPES for change in CHANGES),
}
LONGEST_BLOCK = 100
__all__ = ["AGENDAS", "TYPES", "AgendaConfig", "Axis", "draw", "nests", "type_of", "types_at"]


class AgendaConfig(Config):
    """N, D and how types are drawn from D."""

    within: ClassVar[Within] = {"composite_types": ("composite", (2, 3, 4, 5))}

    turns: int = original_option(10, "N: turns of a session, turn 0 (the initial generation) included", ge=2, le=1000)
    axis: Axis = original_option("scope", "what a type is: scope, change, or cell (scope/change)")
    distribution: dict[str, float] | None = original_option(
        None, "D: a weight per type, normalised; null spreads evenly over all types of the axis"
    )
    sampling: str = original_option(
        "quota", "quota: D as exact counts (largest remainder); iid: each turn drawn from D"
    )
    order: Literal["shuffled", "grouped", "blocks"] = original_option(
        "shuffled",
        "quota only: shuffled per session, grouped by type in the order of the axis, or in shuffled blocks, each of "
        "the smallest size with D exact, so that a shorter agenda is the beginning of a longer one",
    )
    sequence: list[str] | None = original_option(
        None, "the types turn by turn, repeated or cut to N-1 entries; takes the place of distribution", min_length=1
    )
    composite: int = result_option(
        1, "instructions in the request of a turn; fewer where fewer apply without a contradiction", ge=1, le=5
    )
    composite_types: Literal["anew", "same"] = result_option(
        "anew", "types of a turn's further instructions: drawn anew from D, or the turn's own"
    )
    seed: int | None = result_option(
        None, "seed of the agenda and of the order in which instructions are tried; null: the cell's seed"
    )

    @model_validator(mode="after")
    def _types_belong_to_the_axis(self) -> Self:
        known = TYPES[self.axis]
        for option, named in (("distribution", self.distribution), ("sequence", self.sequence)):
            for name in named or ():
                if name not in known:
                    raise ValueError(f"{option}: '{name}' is no type of axis {self.axis} ({', '.join(known)})")
        if self.distribution is not None:
            weights = self.distribution.values()
            if any(not 0 <= weight < float("inf") for weight in weights) or not sum(weights) > 0:
                raise ValueError("distribution: weights must be at least 0 and not all 0")
        if self.order == "blocks" and not self.block():
            problem = f"agenda.order=blocks: no block of up to {LONGEST_BLOCK} turns has agenda.distribution exactly"
            raise UserError(problem, "choose weights with a small common whole, such as 4, 3 and 3, or another order")
        return self

    def weights(self) -> dict[str, float]:
        """The share of every type of the axis, in the axis's order; they sum to 1."""
        types = TYPES[self.axis]
        given = self.distribution if self.distribution is not None else dict.fromkeys(types, 1.0)
        total = sum(given.values())
        return {name: given.get(name, 0.0) / total for name in types}

    def block(self) -> list[str]:
        """The shortest agenda, by type, with D exact; empty if none of up to `LONGEST_BLOCK` turns has it."""
        for size in range(1, LONGEST_BLOCK + 1):
            exact = {name: weight * size for name, weight in self.weights().items()}
            if all(abs(share - round(share)) < 1e-9 for share in exact.values()):
                return [name for name, share in exact.items() for _ in range(round(share))]
        return []


@dataclass(frozen=True)
class AgendaTraits:
    """`nests`: a shorter agenda is the beginning of a longer one for every order. `learns`: the third argument is
    the pool's instructions, and sessions differ in length up to N."""

    nests: bool = False
    learns: bool = False


AGENDAS: Registry[list[str], AgendaTraits] = Registry(
    "agenda", "codechat.studies.refine.agendas", AgendaTraits, list[str], AgendaConfig, key="sampling"
)


def nests(options: Mapping[str, Any]) -> bool:
    """Whether a shorter agenda with these options of a config.yaml is the beginning of a longer one."""
    sampled = any(each.traits.nests for each in AGENDAS if each.name == options.get("sampling"))
    return sampled or options.get("order") == "blocks" or options.get("sequence") is not None


def draw(config: AgendaConfig, generator: random.Random, instructions: Sequence[Instruction] = ()) -> list[str]:
    """The session's agenda: N-1 types, or fewer if lengths are learned; entry t-1 is for turn t.

    `instructions` are the pool's.
    """
    count = config.turns - 1
    if config.sequence is not None:
        return [config.sequence[index % len(config.sequence)] for index in range(count)]
    further = (instructions,) if AGENDAS.of(config).traits.learns else ()
    return AGENDAS.build(config, generator, *further)


def types_at(
    config: AgendaConfig, agenda: list[str], place: int, generator: random.Random, instructions: Sequence[Instruction]
) -> list[str]:
    """The types of the turns' instructions at a place in the request; the agenda has the types at place 0.

    Where types are drawn anew and a learned length is shorter, the last turns have the agenda's types.
    """
    anew = draw(config, generator, instructions) if place and config.composite_types == "anew" else []
    return [*anew, *agenda[len(anew) :]]


def type_of(instruction: Instruction, axis: Axis) -> str:
    """The type of an instruction on an axis."""
    return {"scope": instruction.scope, "change": instruction.change, "cell": instruction.kind}[axis]


@AGENDAS.register("quota", AgendaConfig)
def quota(config: AgendaConfig, generator: random.Random) -> list[str]:
    """D as exact counts by largest remainder, ties broken by the session's generator, then shuffled (paper III-C)."""
    count = config.turns - 1
    if config.order == "blocks":
        block, drawn = config.block(), list[str]()
        while len(drawn) < count:
            drawn += generator.sample(block, len(block))
        return drawn[:count]
    weights = config.weights()
    # Rounding keeps 1/3 * 9 at 3: floats just under an integer must not lose a whole unit.
    exact = {name: round(weight * count, 9) for name, weight in weights.items()}
    quotas = {name: int(share) for name, share in exact.items()}
    candidates = [name for name, weight in weights.items() if weight > 0]
    generator.shuffle(candidates)
    candidates.sort(key=lambda name: round(exact[name] - quotas[name], 9), reverse=True)  # stable: ties stay shuffled
    for name in candidates[: count - sum(quotas.values())]:
        quotas[name] += 1
    agenda = [name for name, times in quotas.items() for _ in range(times)]
    if config.order == "shuffled":
        generator.shuffle(agenda)
    return agenda


@AGENDAS.register("iid", AgendaConfig, nests=True)
def iid(config: AgendaConfig, generator: random.Random) -> list[str]:
    """Each turn's type drawn independently from D."""
    weights = config.weights()
    return generator.choices(list(weights), list(weights.values()), k=config.turns - 1)
