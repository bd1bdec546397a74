"""A user and a judge without a language model, who show a dialogue of `dataset=assist_starter` without a key.

Both count words: a condition holds if the maintainer's answers have most of its words. That is no judgement, so no
other dataset may use them.
"""

import re
from typing import Literal

from codechat.base.config import original_option
from codechat.base.domain import Reply
from codechat.base.errors import UserError
from codechat.models import MODELS, ModelConfig, Request

DATASETS = frozenset({"assist_starter"})
MOST = 2 / 3  # the required share of a condition's words in an answer
SHORTEST = 4  # letters of a word that counts
GRADES = ("INCORRECT", "PARTIALLY CORRECT", "CORRECT")
STATUSES = ("NOT_SATISFIED", "PARTIALLY_SATISFIED", "FULLY_SATISFIED")
SAID = (
    "Thank you, but that does not help me yet.",
    "Thank you, that is a part of it. What about the rest of my question?",
    "Thank you, that is all that I needed.",
)
_QUOTED = re.compile(r"^<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"\w+")


class RehearsedUserConfig(ModelConfig):
    kind: Literal["rehearsed_user"] = original_option("rehearsed_user", "which provider answers")
    name: str = original_option("rehearsed_user", "the name that the records show", min_length=1)


class RehearsedJudgeConfig(ModelConfig):
    kind: Literal["rehearsed_judge"] = original_option("rehearsed_judge", "which provider answers")
    name: str = original_option("rehearsed_judge", "the name that the records show", min_length=1)


class Rehearsed:
    """Reads the quoted conditions and answers of its request, and nothing else."""

    def __init__(self, *, judges: bool) -> None:
        self._judges = judges

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """A reply in the form that the role's prompt asks for. Raises `UserError` for another role's request."""
        parts = {name: text for name, _, text in _QUOTED.findall(request.messages[0].content)}
        conditions = [line.partition(". ")[2] for line in parts.get("CONDITIONS", "").splitlines()]
        if not conditions:
            raise UserError(
                "a rehearsed user or judge was asked a question without conditions",
                "it plays in protocol=assist alone, as user or judge",
            )
        said = [text for name, text in parts.items() if name == "ANSWER" or name.startswith("MAINTAINER_")]
        met = [_holds(condition, "\n".join(said)) for condition in conditions]
        step, share = 2 if all(met) else int(any(met)), f"{sum(met)} of {len(met)} conditions"
        reason = f"REASON: a count of words, no judgement: the answer has most words of {share}"
        if not self._judges:
            return Reply("\n".join([SAID[step], "", f"SATISFACTION_STATUS: {STATUSES[step]}", reason]))
        decided = [f"CONDITION {number}: {str(holds).upper()}" for number, holds in enumerate(met, 1)]
        head = [f"TECHNICAL CORRECTNESS: {GRADES[step]}", *decided, "VERBOSITY: APPROPRIATE"]
        return Reply("\n".join([*head, reason, f"VERDICT: {GRADES[step]}"]))

    async def aclose(self) -> None:
        """Nothing to release."""


@MODELS.register("rehearsed_user", RehearsedUserConfig, offline=True, datasets=DATASETS)
def rehearsed_user(config: RehearsedUserConfig) -> Rehearsed:
    """A user of dataset=assist_starter who counts words, no language model (offline)."""
    return Rehearsed(judges=False)


@MODELS.register("rehearsed_judge", RehearsedJudgeConfig, offline=True, datasets=DATASETS)
def rehearsed_judge(config: RehearsedJudgeConfig) -> Rehearsed:
    """A judge of dataset=assist_starter who counts words, no language model (offline)."""
    return Rehearsed(judges=True)


def _holds(condition: str, answer: str) -> bool:
    words, said = (set(_WORD.findall(text.casefold())) for text in (condition, answer))
    counted = {word for word in words if len(word) >= SHORTEST}
    return len(counted & said) >= MOST * len(counted)
