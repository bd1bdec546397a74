"""A judge of a test's own in place of the registered ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from codechat.judging import ADHERENCE, APPLICABILITY, JUDGES, JudgeTraits


@dataclass(frozen=True)
class OwnJudge:
    """Stands for `JUDGES`: every config is of the judge called own, which has these traits."""

    traits: JudgeTraits

    @classmethod
    def deciding(cls, *questions: str, needs_rules: bool = False, languages: Any = None) -> "OwnJudge":
        """Decides these questions, or those about instructions."""
        decided = frozenset(questions or (APPLICABILITY, ADHERENCE))
        return cls(JudgeTraits(needs_rules=needs_rules, questions=decided, languages=languages))

    def of(self, config: object) -> Any:
        return SimpleNamespace(name="own", traits=self.traits)

    def __iter__(self) -> Iterator[Any]:
        return iter(JUDGES)
