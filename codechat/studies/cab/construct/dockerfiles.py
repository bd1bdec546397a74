"""Dockerfiles for issues that need a build: candidates in turn, then repairs, each built over the issue's commit.

Appendix A.3 of the paper. A build has the commit's files as its context, and the bounds of the study's environments. A
Dockerfile that would clone anything but the row's repository at its commit, or needs what builds do not have, is
refused without a build.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Build
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.datasets.tasks import Workspace
from codechat.judging.deciding import whole_of
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.cab.dataset import find_clone
from codechat.studies.cab.environments.build_files import Refused, instructions, recipe
from codechat.studies.cab.environments.commits import git, last_words, unpacked
from codechat.studies.cab.environments.docker import DockerConfig
from codechat.studies.cab.environments.images import Engine

WORDS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
    "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
LOG_KEPT, TEXT_KEPT, FILES_KEPT, WORKFLOWS = 3_000, 4_000, 200, 2
"""Characters of a log and of a file, paths of files, and workflows that the model is shown, as in the paper."""
CLONE_S = 1800.0
_GIT = re.compile(r"\bgit\b[^;&|]*?\s(clone|fetch|pull|submodule|remote|archive)\b")
_OF_GIT = re.compile(r"^git[+@:]|\.git(?:#|/?$)")
_ADDRESS = re.compile(r"(?:git\+)?(?:https?|git|ssh|file)://[^\s'\";&|)]+|\bgit@[^\s'\";&|)]+")
_CHECKED_OUT = re.compile(r"\bgit\b[^;&|]*?\s(?:checkout|switch|reset)\s+(?:-\S+\s+)*([^\s;&|'\"]+)")


class Dockerfile(BaseModel):
    """A Dockerfile that can be read."""

    model_config = ConfigDict(frozen=True)

    text: str


class Writer(Protocol):
    """Who writes Dockerfiles; `repository` describes the files of the commit."""

    async def dockerfile(self, repository: str, draw: int) -> Dockerfile | None:
        """A candidate; None if no answer could be read."""

    async def repair(self, repository: str, failed: Dockerfile, log: str) -> Dockerfile | None:
        """A better one than one that failed; None if no answer could be read."""


def read_dockerfile(answer: str) -> Dockerfile | str:
    """The Dockerfile of a reply: all of it, or its only fence; else why it is none, in words."""
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
    """Why a Dockerfile is not built at all, in words; empty if it may be."""
    try:
        recipe(text, config.images, network=config.build_network)
    except Refused as refused:
        return str(refused)
    own = f"{clone_url}/{repository}".casefold()
    return next(filter(None, (_strays(line, own, commit, text) for line in instructions(text))), "")


def _strays(instruction: str, own: str, commit: str, text: str) -> str:
    """How an instruction takes another repository or commit than one's own, in words; empty if it does not."""
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
    """The files of an unpacked commit as the model is shown them: names, README, workflows, and its own Dockerfile.

    Nothing is read through a link, which could lead anywhere.
    """
    names = sorted(_files_of(folder), key=lambda name: (name.count("/"), name))
    told = [f"Files ({len(names)}):", *names[:FILES_KEPT], *(["…"] if len(names) > FILES_KEPT else [])]
    readme = [name for name in names if "/" not in name and name.casefold().startswith("readme")][:1]
    workflows = [name for name in names if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", name)][:WORKFLOWS]
    own = [name for name in names if name.rpartition("/")[2].casefold() == "dockerfile"][:1]
    for name in (*readme, *workflows, *own):
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        told += ["", f"--- {name}", text[:TEXT_KEPT] + ("…" if len(text) > TEXT_KEPT else "")]
    return "\n".join(told)


def _files_of(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git" and not Path(place, name).is_symlink())
        for name in files:
            if not Path(place, name).is_symlink() and Path(place, name).is_file():
                yield str(Path(place, name).relative_to(folder))


@dataclass
class Builds:
    """Builds the Dockerfiles of issues, a few at once. `repos` is the folder of clones; what lacks is cloned there."""

    config: DockerConfig
    repos: str | None
    clone_url: str
    candidates: int
    repairs: int
    keeps_images: bool
    _cloning: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.config.max_rooms)

    def check(self) -> None:
        """Raise `UserError` if there is no folder of clones, or no engine that answers."""
        remedy = "or skip=[dockerfiles]: rows have none then"
        if self.repos is None:
            raise UserError("the stage dockerfiles needs the repositories", f"repos=DIR, a folder for clones; {remedy}")
        try:
            Engine(self._program()).check()
        except InfrastructureError as away:
            raise UserError(
                f"the stage dockerfiles needs an engine that answers: {away}", f"start it; {remedy}"
            ) from away

    def _program(self) -> str:
        program = shutil.which(self.config.program)
        if program is None:
            remedy = "install it, or skip=[dockerfiles]: rows have none then"
            raise UserError(f"the stage dockerfiles needs the program {self.config.program}", remedy)
        return program

    async def make(self, item: Item, kit: Kit, writer: Writer) -> Outcome:
        """The item with the first Dockerfile that builds: of the candidates in their order, then of the repairs."""
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
            for number in range(1, self.candidates + self.repairs + 1):
                of_repair = number > self.candidates
                if of_repair and failed is None:
                    break  # no candidate could be read
                if of_repair and failed is not None:
                    made = await writer.repair(described, failed, log[-LOG_KEPT:])
                else:
                    made = await writer.dockerfile(described, number - 1)
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
        """How the build of a Dockerfile ended, and its log."""
        if refusal := refusal_of(text, repository, commit, self.clone_url, self.config):
            return "refused", refusal
        inputs: dict[str, Any] = {"dockerfile": text, "repository": repository, "commit": commit}
        tag = f"codechat-issue:{content_hash(inputs)[:32]}"

        def build() -> Build:
            builder = self.config.builder(self._program())
            try:
                return builder.build(folder, {}, text, tag)
            finally:
                if not self.keeps_images:
                    builder.engine.run("image", "rm", "--force", tag)

        async def compute() -> Build:
            async with self._places:
                return await asyncio.to_thread(build)

        made = await kit.step("build", inputs, Build, compute)
        return "built" if made.ok else "failed", made.log

    async def _clone(self, repository: str) -> Path:
        """The repository's clone, made if there is none. Raises `InfrastructureError` if it cannot be cloned."""
        assert self.repos is not None
        async with self._cloning[repository]:
            return await asyncio.to_thread(_clone_of, self.repos, repository, self.clone_url)


def _clone_of(repos: str, repository: str, clone_url: str) -> Path:
    folder = Path(repos).expanduser().resolve()
    there = find_clone(folder, repository)
    if there is None:
        there = folder / f"{repository.replace('/', '__')}.git"
        _mirror(f"{clone_url}/{repository}.git", there)
    return there


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
