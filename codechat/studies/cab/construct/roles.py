"""The models with a role in making issues: what each is asked, and how its answer is read (appendices A.1 to A.4).

The thread is quoted, so that nothing in it is taken for an instruction, nor for an answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, StringConstraints, ValidationInfo, field_validator

from codechat.base.config import Config, original_option
from codechat.base.template import require
from codechat.judging.deciding import Filled, Form, Question, quote, read_object, reask
from codechat.models import ModelConfig
from codechat.models.roles import role
from codechat.run.construct import Kit, RecipeRoles
from codechat.studies.cab.construct.dockerfiles import Dockerfile, read_dockerfile

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True)
class Criterion:
    """A question about an issue, the answer that keeps it, and why it is dropped with the other one."""

    text: str
    keeps: Literal["YES", "NO"]
    reason: str


CRITERIA = (
    Criterion("Did somebody other than the author solve the problem?", "YES", "solved by nobody else"),
    Criterion("Does the author confirm that the problem is solved?", "YES", "not confirmed"),
    Criterion(
        "Is it one specific technical problem, not a wish for a feature, an opinion or an open question?",
        "YES",
        "not specific",
    ),
    Criterion("Does the thread hold a clear and final solution?", "YES", "no clear solution"),
    Criterion(
        "Can the solution be applied as it stands, without material that the thread does not hold?",
        "YES",
        "solution needs more",
    ),
    Criterion(
        "Does the thread hold personal data: an e-mail address, a telephone number, a postal address, a full name "
        "beside the account's name, a password or another credential, a document's number, an IP address, or the like? "
        "A mark such as [e-mail address masked] stands where some was, and counts.",
        "NO",
        "personal data",
    ),
    Criterion(
        "Could the problem still be reproduced, and solved in this way, with what can be had today?",
        "YES",
        "not reproducible",
    ),
)
"""The seven questions of appendix A.1, in our words; an issue is kept if every answer is the one that keeps."""
BUILD, NEEDED, NOT_NEEDED = "BUILD", "NEEDED", "NOT_NEEDED"
SHORTEST = 4
"""Letters and digits that evidence must have at least."""
CONDITIONS = 30
"""The most conditions of one answer."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Removed(_Answer):
    """The numbers of the comments that say nothing of use."""

    remove: list[int]
    why: str = ""


class Condition(_Answer):
    """What an answer must bring, and words of the thread that show it."""

    condition: Line
    evidence: Line


class Extracted(_Answer):
    """All conditions of an issue."""

    conditions: list[Condition] = Field(max_length=CONDITIONS)


class IssuesRoles(RecipeRoles):
    """Who decides and writes; the paper asked one model for all."""

    filter: SerializeAsAny[ModelConfig] = role("claude37_sonnet", "model that answers the seven questions")
    messages: SerializeAsAny[ModelConfig] = role("claude37_sonnet", "model that finds comments that say nothing")
    classify: SerializeAsAny[ModelConfig] = role("claude37_sonnet", "model that says whether a build is needed")
    dockerfile: SerializeAsAny[ModelConfig] = role("claude37_sonnet", "model that writes and repairs Dockerfiles")
    conditions: SerializeAsAny[ModelConfig] = role("claude37_sonnet", "model that says what satisfies the user")


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "filter": ("thread", "questions", "form"),
    "messages": ("thread",),
    "classify": ("thread", "form"),
    "dockerfile": ("thread", "repository"),
    "repair": ("thread", "repository", "dockerfile", "log"),
    "conditions": ("thread",),
    "reask": ("problem",),
    "reask_words": ("verdicts",),
}


class IssuesPrompts(Config):
    """The prompts; `{{name}}` is filled in. `{{language}}` and the mark `{{boundary}}` may stand in any."""

    filter: str = original_option(..., "asks the {{questions}} about the {{thread}}; ends with {{form}}")
    messages: str = original_option(..., "asks which comments of the {{thread}} say nothing")
    classify: str = original_option(..., "asks if the {{thread}} can only be answered with a build; ends with {{form}}")
    dockerfile: str = original_option(..., "asks for a Dockerfile; fills {{repository}} and {{thread}}")
    repair: str = original_option(..., "asks for a better one; fills {{dockerfile}} and {{log}} too")
    conditions: str = original_option(..., "asks for the conditions of the {{thread}}")
    reask: str = original_option(..., "follows an answer in another form; fills {{problem}}")
    reask_words: str = original_option(..., "follows an answer without the lines asked for; fills {{verdicts}}")

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        return require(text, *_FIELDS[info.field_name or ""], may=("language", "network", "boundary"))


class Asking:
    """The roles' questions about one issue."""

    def __init__(self, kit: Kit, prompts: IssuesPrompts, issue: Mapping[str, Any], *, network: bool) -> None:
        """`network`: whether builds reach one."""
        self._kit, self._prompts, self._thread = kit, prompts, thread_of(issue)
        reached = "a network can be reached" if network else "no network can be reached"
        self._own = {"language": str(issue["language"]), "network": reached}

    async def criteria(self) -> list[str] | None:
        """Why the issue is dropped by the seven questions, empty if it is kept; None if no answer could be read."""
        labels = [f"QUESTION {number}" for number in range(1, len(CRITERIA) + 1)]
        asked = [f"{label}: {criterion.text}" for label, criterion in zip(labels, CRITERIA, strict=True)]
        own = {"questions": "\n".join(asked), "form": "\n".join(f"{label}: YES or NO" for label in labels)}
        answers = await self._decide("filter", self._prompts.filter, dict.fromkeys(labels, ("YES", "NO")), own)
        if answers is None:
            return None
        return [each.reason for label, each in zip(labels, CRITERIA, strict=True) if answers[label] != each.keeps]

    async def empty_comments(self, comments: int) -> list[int] | None:
        """The numbers, from 1, of the comments that say nothing; None if no answer could be read."""
        read = partial(read_removed, comments=comments)
        form = Form(self._quoted(self._prompts.messages), Removed, self._prompts.reask, read=read)
        found = (await self._kit.fill_in("messages", form)).value
        return None if found is None else found.remove

    async def needs_build(self) -> bool | None:
        """Whether an answer can be tried only in a build; None if no answer could be read."""
        own = {"form": f"{BUILD}: {NEEDED} or {NOT_NEEDED.replace('_', ' ')}"}
        answers = await self._decide("classify", self._prompts.classify, {BUILD: (NEEDED, NOT_NEEDED)}, own)
        return None if answers is None else answers[BUILD] == NEEDED

    async def dockerfile(self, repository: str, draw: int) -> Dockerfile | None:
        """A candidate; None if no answer could be read. `repository` describes its files."""
        form = self._dockerfile_form(self._prompts.dockerfile, repository=repository)
        return (await self._kit.fill_in("dockerfile", form, draw=draw)).value

    async def repair(self, repository: str, failed: Dockerfile, log: str) -> Dockerfile | None:
        """A better one than one that failed; None if no answer could be read."""
        form = self._dockerfile_form(self._prompts.repair, repository=repository, dockerfile=failed.text, log=log)
        return (await self._kit.fill_in("dockerfile", form)).value

    async def conditions(self) -> Filled[Extracted]:
        """What satisfies the user."""
        form = Form(self._quoted(self._prompts.conditions), Extracted, self._prompts.reask)
        return await self._kit.fill_in("conditions", form)

    def _dockerfile_form(self, template: str, **parts: str) -> Form[Dockerfile]:
        return Form(self._quoted(template, **parts), Dockerfile, self._prompts.reask, read=read_dockerfile)

    async def _decide(
        self, role: str, template: str, answers: Mapping[str, tuple[str, ...]], own: Mapping[str, str]
    ) -> dict[str, str] | None:
        prompt = quote(template, {**self._own, **own}, thread=self._thread)
        question = Question(role, prompt, answers, reask(self._prompts.reask_words, answers))
        return (await self._kit.decide(role, question)).answers

    def _quoted(self, template: str, **parts: str) -> str:
        return quote(template, self._own, thread=self._thread, **parts)


def thread_of(issue: Mapping[str, Any]) -> str:
    """The issue and its comments as a role sees them, the comments numbered from 1."""
    head = f"Title: {issue['title']}\nAuthor: {issue['author']}\n\n{issue['body'] or '(no text)'}"
    said = [
        f"[{n}] {each['user']}, {each['created_at']}:\n{each['body']}" for n, each in enumerate(issue["comments"], 1)
    ]
    return "\n\n".join([head, *said])


def read_removed(answer: str, comments: int) -> Removed | str:
    """The numbers, each of a comment that there is; else why not, in words."""
    found = read_object(answer, Removed)
    if isinstance(found, str):
        return found
    if wrong := [each for each in found.remove if not 1 <= each <= comments]:
        return f"remove: there is no comment {wrong[0]}"
    return found if len({*found.remove}) == len(found.remove) else "remove: a number is there twice"


def founded(conditions: Sequence[Condition], issue: Mapping[str, Any]) -> list[Condition]:
    """The conditions whose evidence stands in the issue or in one of its comments, each once."""
    texts = [issue["title"], issue["body"] or "", *(each["body"] for each in issue["comments"])]
    said = [_plain(text) for text in texts]
    kept: dict[str, Condition] = {}
    for each in conditions:
        evidence = _plain(each.evidence)
        if len(evidence) >= SHORTEST and any(evidence in text for text in said):
            kept.setdefault(_plain(each.condition), each)
    return [*kept.values()]


def _plain(text: str) -> str:
    """A text as it is compared: letters and digits alone, in small letters."""
    return " ".join(re.findall(r"\w+", text.casefold()))
