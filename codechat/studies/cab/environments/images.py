"""Images for worktrees: built once per Dockerfile and commit, without network, whichever process comes first.

A build is ended when it takes too much time or disk, or starts too many processes (`Watch`). The engine bounds a build
in memory and in the size of a file, and knows no further bound, so its containers are looked at while it runs. They are
known by a name that is added to their `/etc/hosts`: no Dockerfile can leave that out.
"""

import contextlib
import json
import os
import re
import secrets
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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

MADE = 1  # version of what is made of a built image
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
WATCH_S = 0.25  # between two looks, or more:
LAZINESS = 5.0  # a look is followed by a pause of so many times its own length
STEP = re.compile(rb"^ ---> ([0-9a-f]{12,64})\r?$", re.MULTILINE)
MOST_STEPS = 500  # images that the output may name between two looks; a program can print lines as the engine's
SETTLED = 4  # looks in a row, `WATCH_S` apart, without a further image: then an ended build is taken to be over
LINE = 100  # bytes of the output that are read again, since a line can come in two parts
FAILED = re.compile(rb'returned a non-zero code: \d+|building at STEP "RUN ')
"""The words of docker and podman for a command of a build that failed."""
LAST = 1000  # bytes of an output, in which they stand
TRIES = 3  # of a build that ends otherwise: a step that it shares with another one may go with that one's image

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


class Exceeded(Exception):
    """A build was ended; the text says why."""


@dataclass(frozen=True)
class Bounds:
    """The most that a build may take: seconds by the clock, bytes written by all its steps, and processes at once."""

    seconds: float
    disk: int
    processes: int


@dataclass
class Watch:
    """Runs one build. `run` runs a command of the engine, `program` is its path."""

    program: str
    run: Run
    bounds: Bounds
    name: str = field(default_factory=lambda: f"codechat-build-{secrets.token_hex(8)}")
    _known: dict[str, bool] = field(default_factory=dict)  # containers: whether they are of this build
    _steps: dict[str, int] = field(default_factory=dict)  # what each step added, by its image
    _named: set[bytes] = field(default_factory=set)  # images that the output names, and that are not inspected yet

    def build(self, words: Iterable[str], variables: Mapping[str, str], keep: int) -> tuple[int, HeadAndTail]:
        """Run `build` with further words and variables: its exit status, and `keep` bytes of either end of its output.

        Raises `Exceeded`, and `InfrastructureError` if the engine's command cannot be started. No container is left.
        """
        try:
            process = subprocess.Popen(
                [self.program, "build", "--add-host", f"{self.name}:127.0.0.1", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
            )
        except OSError as error:
            raise InfrastructureError(f"{self.program} does not start: {error.strerror}") from error
        output = HeadAndTail(keep)
        with process:
            try:
                self._follow(process, output)
                status = process.wait()
                self._measure()
            finally:
                process.kill()
                process.wait()
                with suppress(InfrastructureError):  # a build that was ended: the engine may not have done so yet
                    for container in self._containers("ps", "-aq", "--no-trunc"):
                        self.run("rm", "--force", container)
        return status, output

    def discard(self, tag: str) -> None:
        """Remove the images of its steps and `tag`, but those that another image or container needs.

        The engine finishes a step that is under way before it heeds that nobody waits for it, so the images are looked
        for until none has come for a while. Such an image is known by one of ours below it. One right above a base
        image stays, in the engine's cache: it could as well be a step of somebody else's build.
        """
        quiet = 0
        while quiet < SETTLED:
            self.run("image", "rm", "--force", tag)
            quiet = 0 if self._adopt() else quiet + 1
            time.sleep(WATCH_S)
        for name in reversed(self._steps):
            self.run("image", "rm", name)

    def _adopt(self) -> bool:
        """Take images whose parent is one of ours for ours; whether there was one."""
        every = self.run("image", "ls", "--all", "--quiet", "--no-trunc").stdout.decode(errors="replace").split()
        strange = self._inspected(set(every) - self._steps.keys())
        found = [image["Id"] for image in strange if image["Parent"] in self._steps and not image["RepoTags"]]
        self._steps.update(dict.fromkeys(found, 0))
        return bool(found)

    def _follow(self, process: "subprocess.Popen[bytes]", output: HeadAndTail) -> None:
        """Read the output until its end, and look at the build meanwhile. Raises `Exceeded`."""
        assert process.stdout is not None
        reader, until, look, line = process.stdout.fileno(), time.monotonic() + self.bounds.seconds, 0.0, b""
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while True:
            now = time.monotonic()
            if now >= until:
                raise Exceeded(f"the build took more than {self.bounds.seconds:g} s")
            if now >= look:
                self._look()
                took = time.monotonic() - now
                look = now + took + max(WATCH_S, LAZINESS * took)
            if poll.poll(1000 * max(0.0, min(look, until) - time.monotonic())):
                data = os.read(reader, BLOCK)
                if not data:
                    return
                output.add(data)
                self._named.update(STEP.findall(line + data))
                line = (line + data)[-LINE:]
                if len(self._named) > MOST_STEPS:  # among which those of the engine's could not be found
                    raise Exceeded("the build printed hundreds of lines that look like the engine's")

    def _look(self) -> None:
        """Bound new containers of the build, and measure all. Raises `Exceeded`."""
        own = self._containers("ps", "-q", "--no-trunc")
        written = 0
        for container in own:
            size = self.run("inspect", "--size", "--format", "{{.SizeRw}}", container).stdout
            with suppress(ValueError):
                written += int(size)
            # its first lines name the columns
            if len(self.run("top", container, "-eo", "pid").stdout.splitlines()) > self.bounds.processes:
                raise Exceeded(f"the build started more than {self.bounds.processes:,} processes")
        self._measure(written)

    def _containers(self, *listing: str) -> list[str]:
        """The containers of this build among those listed. One that is met for the first time is bounded."""
        done = self.run(*listing)
        listed = done.stdout.decode(errors="replace").split() if done.returncode == 0 else []
        for container in listed:
            if container not in self._known:
                hosts = self.run("inspect", "--format", "{{json .HostConfig.ExtraHosts}}", container)
                self._known[container] = hosts.returncode == 0 and self.name in hosts.stdout.decode(errors="replace")
                if self._known[container]:
                    self.run("update", "--pids-limit", str(self.bounds.processes), container)
        return [container for container in listed if self._known[container]]

    def _measure(self, written: int = 0) -> None:
        """Add what finished steps wrote, and compare. Raises `Exceeded`."""
        names, self._named = {name.decode() for name in self._named}, set()
        for image in self._inspected(sorted(names)):
            if not image["RepoTags"] and not image["RepoDigests"] and image["Id"] not in self._steps:
                below = sum(each["Size"] for each in self._inspected([image["Parent"]] if image["Parent"] else []))
                self._steps[image["Id"]] = max(0, image["Size"] - below)
        if written + sum(self._steps.values()) > self.bounds.disk:
            raise Exceeded(f"the build wrote more than {self.bounds.disk >> 20:,} MiB")

    def _inspected(self, images: Iterable[str]) -> list[dict[str, Any]]:
        """The engine's descriptions of images, without those that are not there."""
        names = list(images)
        output = self.run("image", "inspect", "--format", "{{json .}}", *names).stdout if names else b""
        return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]


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
    bounds: Bounds
    network: bool
    bases: Mapping[str, str]

    def image(self, workspace: Workspace, dockerfile: str, lower: Path) -> Image:
        """The image for a row's worktrees. Raises `InfrastructureError`: a Dockerfile of the dataset has to build."""
        made_of = [MADE, dockerfile, dict(self.bases), self.network, workspace.repository, workspace.commit]
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

    def build(self, lower: Path, files: Mapping[str, str], dockerfile: str, tag: str, *, tried: bool = False) -> Build:
        """Build a Dockerfile over the commit and further files. Raises `InfrastructureError` if the engine is away.

        A failed build that was only `tried` leaves no image; others leave those of their steps, for the next attempt. A
        build that ends for another reason than a command of its own is tried again.
        """
        began = time.monotonic()

        def ended(ok: bool, log: str) -> Build:
            return Build(ok, log, round(time.monotonic() - began, 3))

        try:
            made = recipe(dockerfile, self.bases, network=self.network)
            self._refuse_absent(made)
            with _context(lower, files, made.text) as context:
                for _ in range(TRIES):  # each by itself within the bounds
                    watch = Watch(self.engine.program, self.engine.run, self.bounds)
                    status, output = watch.build(self._words(tag, context), BUILDER, LOG_KB << 9)
                    if status != 0 and tried:
                        watch.discard(tag)
                    if status == 0 or FAILED.search((output.tail or output.head)[-LAST:]):
                        break
        except Refused as refused:
            return ended(False, str(refused))
        except Exceeded as why:
            watch.discard(tag)
            return ended(False, str(why))
        if status != 0:
            self.engine.check()
        return ended(status == 0, legible(bytes(output.head), bytes(output.tail), output.total, LOG_KB))

    def _words(self, tag: str, context: Path) -> list[str]:
        limit = f"{self.limits.memory_mb}m"
        options = ["--rm", "--force-rm", "--memory", limit, "--memory-swap", limit, "--label", "codechat=room"]
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
