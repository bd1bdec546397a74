"""The models with a role in making issues: prompts and the reading of answers (appendices A.1 to A.4), and builds.

The thread is quoted, so that no part of it counts as an instruction or an answer. A build has the commit's files as its
context, and the bounds of the study's environments. A Dockerfile that would clone anything but the row's repository at
its commit, or needs something that builds do not have, is refused without a build.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, StringConstraints, ValidationInfo, field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Build
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.base.template import require
from codechat.datasets.tasks import Workspace
from codechat.judging.deciding import Filled, Form, Question, quote, read_object, reask, whole_of
from codechat.models import ModelConfig
from codechat.models.roles import role
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, RecipeRoles
from codechat.studies.cab.construct.quality import covers, texts_of
from codechat.studies.cab.dataset import find_clone
from codechat.studies.cab.environments.build_files import Refused, instructions, recipe
from codechat.studies.cab.environments.commits import git, last_words, unpacked
from codechat.studies.cab.environments.docker import DockerConfig
from codechat.studies.cab.environments.images import Engine
from codechat.studies.cab.tasks import plain

WORDS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
    "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
LOG_KEPT, TEXT_KEPT, FILES_KEPT, WORKFLOWS = 3_000, 4_000, 200, 2
"""Characters of a log and of a file, paths of files, and workflows in the prompt, as in the paper."""
CLONE_S = 1800.0
SKIP = "or skip=[dockerfiles]: rows have none then"
_GIT = re.compile(r"\bgit\b[^;&|]{0,400}?\s(clone|fetch|pull|submodule|remote|archive)\b")
_OF_GIT = re.compile(r"^git[+@:]|\.git(?:#|/?$)")
_ADDRESS = re.compile(r"(?:git\+)?(?:https?|git|ssh|file)://[^\s'\";&|)]+|\bgit@[^\s'\";&|)]+")
_CHECKED_OUT = re.compile(r"\bgit\b[^;&|]{0,400}?\s(?:checkout|switch|reset)\s+(?:-\S+\s+)*([^\s;&|'\"]+)")


class Dockerfile(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str


def read_dockerfile(answer: str) -> Dockerfile | str:
    """The Dockerfile of a reply, which is the whole reply or its only fence; else the problem in words."""
    text = whole_of(answer)
    if text is None:
        return "several fences, and one Dockerfile was asked for"
    made = instructions(text)
    words = [instruction.partition(" ")[0].upper() for instruction in made]
    if wrong := next((line for line, word in zip(made, words, strict=True) if word not in WORDS), None):
        return f"'{wrong[:60]}' is no instruction of a Dockerfile"
    if next((word for word in words if word != "ARG"), "") != "FROM":
        return "a Dockerfile begins with FROM"
    return Dockerfile(text=text.strip("\n") + "\n")


def refusal_of(text: str, repository: str, commit: str, clone_url: str, config: DockerConfig) -> str:
    """The reason to refuse a Dockerfile, in words; empty if it may be built."""
    try:
        made = recipe(text, config.images, network=config.build_network)
    except Refused as refused:
        return str(refused)
    own = f"{clone_url}/{repository}".casefold()
    strays = next(filter(None, (_strays(line, own, commit, text) for line in instructions(text))), "")
    return strays or ("" if _holds_files(made.text, own) else "nothing of the repository is in its image")


def _holds_files(text: str, own: str) -> bool:
    """Whether the last stage has files of the context or of the repository's address, or of a stage that has some."""
    stages = dict[str, bool]()  # by number and by name
    names, holds, number = ("", ""), False, 0
    for line in text.casefold().split("\n"):
        word, _, rest = line.partition(" ")
        if word == "from":  # as `recipe` writes it
            base, _, name = rest.partition(" as ")
            names, holds, number = (str(number), name), stages.get(base, False), number + 1
        elif word in ("copy", "add"):
            flags = [each for each in rest.split() if each.startswith("--")]
            sources = [each for each in rest.split() if not each.startswith("--")][:-1]
            origin = next((flag.partition("=")[2] for flag in flags if flag.startswith("--from=")), None)
            local = any(not re.match(r"<<|\w+://|git@", each.strip('[",')) for each in sources)
            holds = holds or (local if origin is None else stages.get(origin, False)) or own in rest
        elif word == "run":
            holds = holds or own in rest
        stages |= dict.fromkeys(names, holds)
    return holds


def _strays(instruction: str, own: str, commit: str, text: str) -> str:
    """The use of another repository or commit than the row's, in words; empty if there is none."""
    clones = _GIT.search(instruction)
    addresses = [each for each in _ADDRESS.findall(instruction) if clones or _OF_GIT.search(each)]
    taken = [each for each in _CHECKED_OUT.findall(instruction) if each not in (commit, "FETCH_HEAD", "--")]
    strange = [each for each in addresses if re.sub(r"(?:\.git)?(?:#.*)?/?$", "", each.casefold()) != own]
    if strange:
        return f"it clones {strange[0][:80]}"
    if clones and not addresses and clones[1] not in ("fetch", "pull"):
        return f"what it clones cannot be told: {instruction[:80]}"
    if addresses and commit not in text:
        return "it clones the repository, but not at its commit"
    return f"it checks out {taken[0][:60]}" if taken else ""


def describe(folder: Path) -> str:
    """The files of a commit, for a prompt: names, README, workflows, Dockerfile. Links are not followed."""
    names = sorted(_files_of(folder), key=lambda name: (name.count("/"), name))
    lines = [f"Files ({len(names)}):", *names[:FILES_KEPT], *(["…"] if len(names) > FILES_KEPT else [])]
    readme = [name for name in names if "/" not in name and name.casefold().startswith("readme")][:1]
    workflows = [name for name in names if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", name)][:WORKFLOWS]
    own = [name for name in names if name.rpartition("/")[2].casefold() == "dockerfile"][:1]
    for name in (*readme, *workflows, *own):
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        lines += ["", f"--- {name}", text[:TEXT_KEPT] + ("…" if len(text) > TEXT_KEPT else "")]
    return "\n".join(lines)


def _files_of(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git" and not Path(place, name).is_symlink())
        for name in files:
            if not Path(place, name).is_symlink() and Path(place, name).is_file():
                yield str(Path(place, name).relative_to(folder))


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True)
class Criterion:
    """A question about an issue, the answer that keeps it, and the reason to drop it for the other answer."""

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
CONDITIONS = 30  # the most conditions of one answer


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Removed(_Answer):
    """The numbers of the useless comments."""

    remove: list[int]
    why: str = ""


class Condition(_Answer):
    """A condition for an answer, and words of the thread as evidence."""

    condition: Line
    evidence: Line


class Extracted(_Answer):
    conditions: list[Condition] = Field(max_length=CONDITIONS)


class IssuesRoles(RecipeRoles):
    """The models; the paper has one for all roles."""

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
    """The prompts, with fields `{{name}}`. Any may have `{{language}}` and the mark `{{boundary}}`."""

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
    """The roles' questions about one issue. `network`: whether builds reach a network."""

    def __init__(self, kit: Kit, prompts: IssuesPrompts, issue: Mapping[str, Any], *, network: bool) -> None:
        self._kit, self._prompts, self._thread = kit, prompts, thread_of(issue)
        reached = "a network can be reached" if network else "no network can be reached"
        self._own = {"language": str(issue["language"]), "network": reached}

    async def criteria(self) -> list[str] | None:
        """The reasons of the seven questions to drop the issue; None if no answer could be read."""
        labels = [f"QUESTION {number}" for number in range(1, len(CRITERIA) + 1)]
        asked = [f"{label}: {criterion.text}" for label, criterion in zip(labels, CRITERIA, strict=True)]
        own = {"questions": "\n".join(asked), "form": "\n".join(f"{label}: YES or NO" for label in labels)}
        answers = await self._decide("filter", self._prompts.filter, dict.fromkeys(labels, ("YES", "NO")), own)
        if answers is None:
            return None
        return [each.reason for label, each in zip(labels, CRITERIA, strict=True) if answers[label] != each.keeps]

    async def empty_comments(self, comments: int) -> list[int] | None:
        """The numbers, from 1, of the useless comments; None if no answer could be read."""
        read = partial(read_removed, comments=comments)
        form = Form(self._quoted(self._prompts.messages), Removed, self._prompts.reask, read=read)
        removed = (await self._kit.fill_in("messages", form)).value
        return None if removed is None else removed.remove

    async def needs_build(self) -> bool | None:
        """Whether an answer can be tried only in a build; None if no answer could be read."""
        own = {"form": f"{BUILD}: {NEEDED} or {NOT_NEEDED.replace('_', ' ')}"}
        answers = await self._decide("classify", self._prompts.classify, {BUILD: (NEEDED, NOT_NEEDED)}, own)
        return None if answers is None else answers[BUILD] == NEEDED

    async def dockerfile(self, repository: str, draw: int) -> Dockerfile | None:
        """A candidate; None if no answer could be read. `repository` describes the files."""
        form = self._dockerfile_form(self._prompts.dockerfile, repository=repository)
        return (await self._kit.fill_in("dockerfile", form, draw=draw)).value

    async def repair(self, repository: str, failed: Dockerfile, log: str) -> Dockerfile | None:
        """A repaired Dockerfile; None if no answer could be read."""
        form = self._dockerfile_form(self._prompts.repair, repository=repository, dockerfile=failed.text, log=log)
        return (await self._kit.fill_in("dockerfile", form)).value

    async def conditions(self) -> Filled[Extracted]:
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
    """The issue and its comments for a prompt, the comments numbered from 1."""
    head = f"Title: {issue['title']}\nAuthor: {issue['author']}\n\n{issue['body'] or '(no text)'}"
    comments = enumerate(issue["comments"], 1)
    return "\n\n".join(
        [head, *(f"[{n}] {each['user']}, {each['created_at']}:\n{each['body']}" for n, each in comments)]
    )


def read_removed(answer: str, comments: int) -> Removed | str:
    """The numbers of existing comments, else the problem in words."""
    removed = read_object(answer, Removed)
    if isinstance(removed, str):
        return removed
    if wrong := [each for each in removed.remove if not 1 <= each <= comments]:
        return f"remove: there is no comment {wrong[0]}"
    return removed if len({*removed.remove}) == len(removed.remove) else "remove: a number is there twice"


def founded(conditions: Sequence[Condition], issue: Mapping[str, Any]) -> list[Condition]:
    """The conditions with evidence in the issue or in one of its comments that names something of them, each once."""
    texts = [*map(plain, texts_of(issue))]
    kept: dict[str, Condition] = {}
    for each in conditions:
        evidence = plain(each.evidence)
        if covers(evidence, each.condition) and any(evidence in text for text in texts):
            kept.setdefault(plain(each.condition), each)
    return [*kept.values()]


@dataclass
class Builds:
    """Builds the Dockerfiles of issues, a few at once. `repos` has the clones; missing ones are cloned there."""

    config: DockerConfig
    repos: str | None
    clone_url: str
    candidates: int
    repairs: int
    _cloning: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.config.max_rooms)

    def check(self) -> None:
        """Raise `UserError` if there is no folder of clones, or no engine that answers."""
        if self.repos is None:
            raise UserError("the stage dockerfiles needs the repositories", f"repos=DIR, a folder for clones; {SKIP}")
        try:
            Engine(self._program()).check()
        except InfrastructureError as away:
            raise UserError(
                f"the stage dockerfiles needs an engine that answers: {away}", f"start it; {SKIP}"
            ) from away

    def _program(self) -> str:
        program = shutil.which(self.config.program)
        if program is None:
            raise UserError(f"the stage dockerfiles needs the program {self.config.program}", f"install it, {SKIP}")
        return program

    async def make(self, item: Item, kit: Kit, asking: Asking) -> Outcome:
        """The item with the first Dockerfile that builds, of the candidates in their order, then of the repairs."""
        repository, commit = item.data["repository"], item.data["commit_id"]
        clone = await self._clone(repository)
        try:
            held = await asyncio.to_thread(unpacked, Workspace(str(clone), commit), None)
        except UserError as error:
            return Dropped("commit not in the clone", str(error))
        try:
            described = await asyncio.to_thread(describe, held.folder)
            tries: list[str] = []
            failed, log = None, ""
            for number in range(self.candidates + self.repairs):
                of_repair = number >= self.candidates
                if not of_repair:
                    made = await asking.dockerfile(described, number)
                elif failed is not None:
                    made = await asking.repair(described, failed, log[-LOG_KEPT:])
                else:
                    break  # no candidate could be read
                if made is None:
                    tries.append("unread")
                    continue
                ended, log = await self._tried(kit, made.text, repository, commit, held.folder)
                tries.append(ended)
                if ended == "built":
                    noted = {"dockerfile_tries": tries, "dockerfile_by": "repair" if of_repair else "candidate"}
                    own = {"dockerfile": made.text, "build_network": self.config.build_network}
                    return Kept(item.having(**own).noting(**noted))
                failed = made
        finally:
            held.release()
        return Dropped("no build" if failed is not None else "undecided", ", ".join(tries))

    async def _tried(
        self, kit: Kit, text: str, repository: str, commit: str, folder: Path
    ) -> tuple[Literal["built", "failed", "refused"], str]:
        if refusal := refusal_of(text, repository, commit, self.clone_url, self.config):
            return "refused", refusal
        inputs: dict[str, Any] = {"dockerfile": text, "repository": repository, "commit": commit}
        tag = f"codechat-issue:{content_hash(inputs)[:32]}"

        def build() -> Build:
            builder = self.config.builder(self._program())
            try:
                return builder.build(folder, {}, text, tag)
            finally:
                builder.engine.run("image", "rm", "--force", tag)

        async def compute() -> Build:
            async with self._places:
                return await asyncio.to_thread(build)

        made = await kit.step("build", inputs, Build, compute)
        return "built" if made.ok else "failed", made.log

    async def _clone(self, repository: str) -> Path:
        """The repository's clone, made if there is none. Raises `InfrastructureError` if it cannot be cloned."""
        async with self._cloning[repository]:
            return await asyncio.to_thread(self._clone_of, repository)

    def _clone_of(self, repository: str) -> Path:
        folder = Path(self.repos or "").expanduser().resolve()
        clone = find_clone(folder, repository)
        if clone is None:
            clone = folder / f"{repository.replace('/', '__')}.git"
            _mirror(f"{self.clone_url}/{repository}.git", clone)
        return clone


def _mirror(url: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".cloning-") as folder:
        made = Path(folder, "made.git")
        words = ("clone", "--quiet", "--mirror", "--", url, str(made))
        try:
            done = git(*words, more={**proxies, "GIT_ALLOW_PROTOCOL": "https:http:file"}, seconds=CLONE_S)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(f"{url} could not be cloned within {CLONE_S:g} s") from None
        if done.returncode:
            raise InfrastructureError(f"{url} could not be cloned: {last_words(done.stderr)[:200]}")
        made.rename(target)
