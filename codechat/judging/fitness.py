"""Questions with known answers, by which a language model is tested as a judge before it judges.

Twelve for each role, six of each answer, about short Python code: a model that fails them decides nothing else either,
and one that always gives the same answer gets six.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.files import from_yaml
from codechat.judging import JudgeConfig
from codechat.judging.llm import WORDS, LlmJudgeConfig

NEEDED = 10
"""Right answers of twelve that a judge needs. By chance (one-sided binomial test, answers of a coin) 10 or more come
with p = 0.019, below the usual 0.05; 9 or more with 0.073."""


@dataclass(frozen=True, slots=True)
class Known:
    """The texts that a role's prompt quotes, by name, and the right word."""

    quoted: dict[str, str]
    right: str

    def is_in(self, prompt: str) -> bool:
        """Whether a prompt quotes the texts as `codechat.judging.deciding.quote` does."""
        return all(f">>>\n{text}\n<<<END {name.upper()} " in prompt for name, text in self.quoted.items())


def _known(role: str, row: dict[str, Any]) -> Known:
    yes, no = WORDS[role]
    quoted = {name: str(text).rstrip("\n") for name, text in row.items() if name != "holds"}
    return Known(quoted, yes if row["holds"] else no)


KNOWN: dict[str, tuple[Known, ...]] = {
    role: tuple(_known(role, row) for row in rows)
    for role, rows in from_yaml(Path(__file__).with_suffix(".yaml").read_text("utf-8")).items()
}
"""The questions of each role, in the order in which they are asked."""


def examined(judge: JudgeConfig) -> LlmJudgeConfig | None:
    """The language models of a judge that are tested first (`judge.check`); None if there are none, or it is off."""
    parts = (judge, *(getattr(judge, name) for name in type(judge).model_fields))
    return next((part for part in parts if isinstance(part, LlmJudgeConfig) and part.check), None)


def right_word(prompt: str) -> str | None:
    """The right word if a prompt asks one of the questions: a stand-in for a judge passes the test by it."""
    return next((one.right for questions in KNOWN.values() for one in questions if one.is_in(prompt)), None)
