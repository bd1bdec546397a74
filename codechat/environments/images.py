"""Images for rooms: built once per Dockerfile and commit, without network, whichever process comes first."""

import contextlib
import json
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from codechat.domain import Build
from codechat.environments.building import Bounds, Exceeded, Watch
from codechat.environments.bundle import HOME_OF_PYTHON, PLACE, bundle, words
from codechat.environments.dockerfiles import Recipe, Refused, recipe
from codechat.environments.kept import images_folder
from codechat.environments.legible import legible
from codechat.environments.limits import NOBODY, Limits
from codechat.environments.writing import parts_of
from codechat.errors import InfrastructureError
from codechat.files import content_hash
from codechat.tasks import Workspace

MADE = 1  # version of what is made of a built image
LOG_KB = 16
ANSWER_S = 120.0
RECIPE = ".codechat.Dockerfile"
BUILDER = {"DOCKER_BUILDKIT": "0"}  # the other builder reads more than is checked here
PREPARE = """
import sys
for name, path in (("codechat", []), ("codechat.sandbox", [{place!r} + "/sandbox"]),
                   ("codechat.environments", [{place!r} + "/environments"])):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = path
from codechat.environments.inside.prepare import prepare
print(prepare({start!r}, {place!r} + "/lower", {owner}))
"""


@dataclass(frozen=True)
class Image:
    """An image fit for rooms, made of the one that was built: the repository's root in it, and its variables."""

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
    bounds: Bounds
    network: bool
    bases: Mapping[str, str]

    def image(self, workspace: Workspace, dockerfile: str, lower: Path) -> Image:
        """The image for a row's rooms. Raises `InfrastructureError`: a Dockerfile of the dataset has to build."""
        key = content_hash([MADE, dockerfile, dict(self.bases), self.network, workspace.repository, workspace.commit])[
            :32
        ]
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
            made = self._prepare(f"codechat-built:{key}", tag, lower)
            note.write_text(json.dumps(asdict(made)), encoding="utf-8")
            return made

    def build(self, lower: Path, files: Mapping[str, str], dockerfile: str, tag: str, *, tried: bool = False) -> Build:
        """Build a Dockerfile over the commit and further files. Raises `InfrastructureError` if the engine is away.

        A failed build that was only `tried` leaves no image; others leave those of their steps, for the next attempt.
        """
        began, watch = time.monotonic(), Watch(self.engine.program, self.engine.run, self.bounds)

        def ended(ok: bool, log: str) -> Build:
            return Build(ok, log, round(time.monotonic() - began, 3))

        try:
            made = recipe(dockerfile, self.bases, network=self.network)
            self._refuse_absent(made)
            with _context(lower, files, made.text) as context:
                status, kept = watch.build(self._words(tag, context), BUILDER, LOG_KB << 9)
        except Refused as refused:
            return ended(False, str(refused))
        except Exceeded as why:
            watch.discard(tag)
            return ended(False, str(why))
        if status != 0:
            self.engine.check()
            if tried:
                watch.discard(tag)
        return ended(status == 0, legible(bytes(kept.head), bytes(kept.tail), kept.total, LOG_KB))

    def _words(self, tag: str, context: Path) -> list[str]:
        limit = f"{self.limits.memory_mb}m"
        asked = ["--rm", "--force-rm", "--memory", limit, "--memory-swap", limit, "--label", "codechat=room"]
        asked += ["--ulimit", f"fsize={self.limits.disk_mb << 20}", "--file", str(context / RECIPE), "--tag", tag]
        return [*asked, *(() if self.network else ("--network", "none")), str(context)]

    def _refuse_absent(self, made: Recipe) -> None:
        for base in made.bases if not self.network else ():
            if not self.engine.has(base):
                self.engine.check()
                raise Refused(f"the base image {base} is not here: pull it, or map it (environment.images)")

    def _prepare(self, built: str, tag: str, lower: Path) -> Image:
        told = json.loads(self.engine.need("image", "inspect", "--format", "{{json .Config}}", built))
        pairs = (entry.partition("=") for entry in told.get("Env") or ())
        code = PREPARE.format(place=PLACE, start=told.get("WorkingDir") or "/workspace/repository", owner=NOBODY)
        name = f"codechat-{secrets.token_hex(8)}"
        asked = ["run", "--name", name, "--network", "none", "--user", "0:0", "--workdir", "/", "--cap-drop", "ALL"]
        for capability in ("CHOWN", "DAC_OVERRIDE", "FOWNER"):
            asked += ["--cap-add", capability]
        asked += [
            "--volume",
            f"{bundle()}:{PLACE}:ro",
            "--volume",
            f"{lower}:{PLACE}/lower:ro",
            "--env",
            HOME_OF_PYTHON,
        ]
        program, *rest = words(["-S", "-s", "-P", "-B", "-c", code])
        try:
            said = self.engine.need(*asked, "--entrypoint", program, built, *rest)
            self.engine.need("commit", name, tag)
        finally:
            self.engine.run("rm", "-f", name)
        return Image(tag, built, self.engine.program, said.splitlines()[-1], {name: value for name, _, value in pairs})


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
    return " / ".join(lines[-2:])[:400] if lines else "it said nothing"
