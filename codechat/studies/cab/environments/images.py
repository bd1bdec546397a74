"""Images for worktrees: built once per Dockerfile and commit, without network, whichever process comes first.

The engine bounds a build in memory and in the size of a file; `timeout` ends it after its time. Images carry a label,
by which those of failed builds are removed.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from codechat.base.domain import Build
from codechat.base.errors import InfrastructureError
from codechat.base.files import content_hash
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.environments.build_files import Recipe, Refused, parts_of, recipe
from codechat.studies.cab.environments.bundle import HOME_OF_PYTHON, PLACE, bundle, words
from codechat.studies.cab.environments.cache import images_folder
from codechat.studies.cab.environments.inside.starter import BLOCK, HeadAndTail
from codechat.studies.cab.environments.limits import NOBODY, Limits, legible

IMAGE_VERSION = 1  # of what is made of a built image
LOG_KB = 16
ANSWER_S = 120.0
RECIPE = ".codechat.Dockerfile"
BUILDER = {"DOCKER_BUILDKIT": "0"}  # the other builder reads more than is checked here
PREPARE = """
import sys
for name, path in (("codechat", []), ("codechat.sandbox", [{place!r} + "/sandbox"]),
                   ("codechat.studies.cab.environments", [{place!r} + "/environments"])):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = path
from codechat.studies.cab.environments.inside.prepare import prepare
print(prepare({start!r}, {place!r} + "/lower", {owner}))
"""
LABEL = "codechat=room"
KILL_S = 10  # for which the engine's command may go on after its time
FAILED = re.compile(rb'returned a non-zero code: \d+|building at STEP "RUN ')
"""The words of docker and podman for a command of a build that failed."""
LAST = 1000  # bytes of an output, in which they stand
TRIES = 3  # of a build that ends otherwise: a step that it shares with another one may go with that one's image


@dataclass(frozen=True)
class Image:
    """An image fit for worktrees, made of the one that was built: the repository's root in it, and its variables."""

    name: str
    built: str
    program: str
    root: str
    variables: dict[str, str]


@dataclass(frozen=True)
class Engine:
    """The command line of docker or podman."""

    program: str

    def run(self, *arguments: str, seconds: float = ANSWER_S) -> "subprocess.CompletedProcess[bytes]":
        """A finished command. Raises `InfrastructureError` if it takes longer, or cannot be started."""
        try:
            return subprocess.run(
                [self.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(f"{self.program} {arguments[0]} took more than {seconds:g} s") from error
        except OSError as error:
            raise InfrastructureError(f"{self.program} does not start: {error.strerror}") from error

    def need(self, *arguments: str) -> str:
        """The output of a command that must succeed. Raises `InfrastructureError`."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise InfrastructureError(f"{self.program} {arguments[0]}: {_last(done.stdout)}")
        return done.stdout.decode(errors="replace").strip()

    def has(self, image: str) -> bool:
        """Whether an image is here."""
        return self.run("image", "inspect", image).returncode == 0

    def check(self) -> None:
        """Raise `InfrastructureError` if the engine is away."""
        done = self.run("version")
        if done.returncode != 0:
            raise InfrastructureError(f"{self.program} is away: {_last(done.stdout)}")


@dataclass(frozen=True)
class Builder:
    """Builds Dockerfiles over commits."""

    engine: Engine
    limits: Limits
    seconds: float  # that a build may take
    network: bool
    bases: Mapping[str, str]

    def image(self, workspace: Workspace, dockerfile: str, lower: Path) -> Image:
        """The image for a row's worktrees. Raises `InfrastructureError`: a Dockerfile of the dataset has to build."""
        made_of = [IMAGE_VERSION, dockerfile, dict(self.bases), self.network, workspace.repository, workspace.commit]
        key = content_hash(made_of)[:32]
        note = images_folder() / f"{key}.json"
        note.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{note}.lock"):
            if note.exists():
                known = Image(**json.loads(note.read_text(encoding="utf-8")))
                if self.engine.has(known.name):
                    return known
            self.engine.check()
            tag = f"codechat-room:{key}"
            built = self.build(lower, {}, dockerfile, f"codechat-built:{key}")
            if not built.ok:
                raise InfrastructureError(f"the room's own Dockerfile does not build here: {_last(built.log.encode())}")
            made = self.prepare(f"codechat-built:{key}", tag, lower)
            note.write_text(json.dumps(asdict(made)), encoding="utf-8")
            return made

    def build(self, lower: Path, files: Mapping[str, str], dockerfile: str, tag: str) -> Build:
        """Build a Dockerfile over the commit and further files. Raises `InfrastructureError` if the engine is away.

        A failed build leaves no image. One that ends for another reason than a command of its own is tried again.
        """
        began = time.monotonic()

        def ended(ok: bool, log: str) -> Build:
            return Build(ok, log, round(time.monotonic() - began, 3))

        try:
            made = recipe(dockerfile, self.bases, network=self.network)
            self._refuse_absent(made)
            text = re.sub(r"(?m)^(FROM .*)$", rf"\1\nLABEL {LABEL}", made.text)  # images of steps have it, too
            with _context(lower, files, text) as context:
                for _ in range(TRIES):
                    status, output = self._run(self._words(tag, context))
                    if status in (0, None) or FAILED.search((output.tail or output.head)[-LAST:]):
                        break
        except Refused as refused:
            return ended(False, str(refused))
        if status != 0:
            self.engine.check()
            self.engine.run("image", "prune", "--force", "--filter", f"label={LABEL}")
        if status is None:
            return ended(False, f"the build took more than {self.seconds:g} s")
        return ended(status == 0, legible(bytes(output.head), bytes(output.tail), output.total, LOG_KB))

    def _run(self, words: Sequence[str]) -> tuple[int | None, HeadAndTail]:
        """Run `build`; returns the exit status, None if it was ended after its time, and both ends of the output.

        Raises `InfrastructureError` if the engine's command cannot be started.
        """
        output, until = HeadAndTail(LOG_KB << 9), time.monotonic() + self.seconds
        ending = ["timeout", f"--kill-after={KILL_S}", str(self.seconds)]
        try:
            process = subprocess.Popen(
                [*ending, self.engine.program, "build", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **BUILDER},
            )
        except OSError as error:
            raise InfrastructureError(f"{self.engine.program} does not start: {error.strerror}") from error
        with process:
            assert process.stdout is not None
            while data := os.read(process.stdout.fileno(), BLOCK):
                output.add(data)
        late = process.returncode != 0 and time.monotonic() >= until
        return None if late else process.returncode, output

    def _words(self, tag: str, context: Path) -> list[str]:
        limit = f"{self.limits.memory_mb}m"
        options = ["--rm", "--force-rm", "--memory", limit, "--memory-swap", limit]
        options += ["--ulimit", f"fsize={self.limits.disk_mb << 20}", "--file", str(context / RECIPE), "--tag", tag]
        return [*options, *(() if self.network else ("--network", "none")), str(context)]

    def _refuse_absent(self, made: Recipe) -> None:
        for base in made.bases if not self.network else ():
            if not self.engine.has(base):
                self.engine.check()
                raise Refused(f"the base image {base} is not here: pull it, or map it (environment.images)")

    def prepare(self, built: str, tag: str, lower: Path) -> Image:
        """Make a built image fit for worktrees, under a tag. Raises `InfrastructureError`."""
        config = json.loads(self.engine.need("image", "inspect", "--format", "{{json .Config}}", built))
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        code = PREPARE.format(place=PLACE, start=config.get("WorkingDir") or "/workspace/repository", owner=NOBODY)
        name = f"codechat-{secrets.token_hex(8)}"
        options = ["run", "--name", name, "--network", "none", "--user", "0:0", "--workdir", "/", "--cap-drop", "ALL"]
        for capability in ("CHOWN", "DAC_OVERRIDE", "FOWNER"):
            options += ["--cap-add", capability]
        options += ["--volume", f"{bundle()}:{PLACE}:ro", "--volume", f"{lower}:{PLACE}/lower:ro"]
        options += ["--env", HOME_OF_PYTHON]
        program, *rest = words(["-S", "-s", "-P", "-B", "-c", code])
        try:
            output = self.engine.need(*options, "--entrypoint", program, built, *rest)
            self.engine.need("commit", name, tag)
        finally:
            self.engine.run("rm", "-f", name)
        return Image(
            tag, built, self.engine.program, output.splitlines()[-1], {name: value for name, _, value in pairs}
        )


@contextlib.contextmanager
def _context(lower: Path, files: Mapping[str, str], text: str) -> Iterator[Path]:
    """A folder with the commit's files, further files and the Dockerfile, and no history. Raises `Refused`."""
    with tempfile.TemporaryDirectory(prefix="codechat-build-") as folder:
        context = Path(folder, "context")
        shutil.copytree(lower, context, symlinks=True, ignore=lambda place, _: [".git"] if Path(place) == lower else [])
        for name, content in files.items():
            _write(context, name, content)
        recipe_file = context / RECIPE
        recipe_file.unlink(missing_ok=True)
        recipe_file.write_text(text, encoding="utf-8", errors="replace", newline="")
        with contextlib.suppress(FileNotFoundError):
            (context / ".dockerignore").unlink()  # it could leave out what the Dockerfile needs, or be a link
        yield context


def _write(context: Path, name: str, content: str) -> None:
    """Write a maintainer's file below the context: by no way out of it, through no link. Raises `Refused`."""
    *folders, last = parts_of(name)
    place = context
    try:
        for part in folders:
            place /= part
            if place.is_symlink():
                raise Refused(f"'{name[:200]}' leads through a link")
            place.mkdir(exist_ok=True)
        place /= last
        if place.is_symlink():
            place.unlink()
        place.write_text(content, encoding="utf-8", errors="replace", newline="")
    except OSError as error:
        raise Refused(f"'{name[:200]}' cannot be written: {error.strerror}") from error


def _last(output: bytes) -> str:
    lines = [line for line in re.split(r"\r|\n", output.decode(errors="replace")) if line.strip()]
    return " / ".join(lines[-2:])[:400] if lines else "it printed nothing"
