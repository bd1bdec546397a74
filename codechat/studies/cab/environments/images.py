"""Images for worktrees: built once per Dockerfile and commit, without network, by the first process that needs one.

The engine bounds a build in memory and in the size of a file; `timeout` ends it after its time. Images carry a label,
by which images of failed builds are removed. An interpreter runs next to the programs of any image: only the loader,
the libraries and the few modules that it needs are mounted, so that an image needs no Python and no certain C library.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from codechat.base.domain import Build
from codechat.base.errors import InfrastructureError
from codechat.base.files import content_hash
from codechat.datasets.tasks import Workspace
from codechat.sandbox.rooms import CODE, UNPRIVILEGED, boot_code, legible
from codechat.sandbox.rooms.inside.beside import HeadAndTail
from codechat.sandbox.rooms.inside.starter import BLOCK
from codechat.studies.cab.environments.build_files import Refused, parts_of, recipe
from codechat.studies.cab.environments.commits import folder_of
from codechat.studies.cab.environments.resident import Limits

PLACE = "/codechat"  # the folder of the interpreter in a container
HOME_OF_PYTHON = f"PYTHONHOME={PLACE}"
PLACES = ("lower", "meeting")  # for what else is mounted in a container
ASK_S = 60.0
BUNDLE_VERSION = 3  # of the interpreter's folder
# Prints the module files and the libraries of a process that imported what the code of a worktree imports.
ASK = """
import contextlib, ctypes, collections.abc, errno, fcntl, importlib.machinery, json, marshal, mmap, os, platform
import resource, select, shutil, signal, socket, stat, struct, sys, time, traceback, typing
import encodings.ascii, encodings.latin_1, encodings.utf_8, encodings.idna
with open("/proc/self/maps") as stream:
    libraries = sorted({line.split(None, 5)[5].strip() for line in stream if ".so" in line})
modules = sorted({each.__file__ for each in list(sys.modules.values()) if getattr(each, "__file__", None)})
print(json.dumps({"libraries": libraries, "modules": modules}))
"""


def bundle() -> Path:
    """The folder of the interpreter and codechat's code for worktrees, made once. Raises `InfrastructureError`."""
    code = {part: folder / "inside" for part, folder in CODE.items()}
    texts = [path.read_bytes() for folder in code.values() for path in sorted(folder.glob("*.py"))]
    key = content_hash([sys.version, sys.base_prefix, BUNDLE_VERSION, os.getuid(), content_hash(b"".join(texts))])[:24]
    folder = folder_of("interpreters") / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            made = folder.with_suffix(".part")
            shutil.rmtree(made, ignore_errors=True)
            _interpreter(made)
            for part, place in code.items():
                shutil.copytree(place, made / part / "inside", ignore=shutil.ignore_patterns("__pycache__"))
            for name in PLACES:
                (made / name).mkdir()
            made.rename(folder)
    return folder


def _interpreter(made: Path) -> None:
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    done = subprocess.run([program, "-S", "-s", "-P", "-c", ASK], capture_output=True, timeout=ASK_S, check=False)
    if done.returncode:
        raise InfrastructureError(f"the interpreter {program} does not start: {done.stderr.decode(errors='replace')}")
    answer = json.loads(done.stdout)
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    (made / "lib").mkdir(parents=True)
    shutil.copy(program, made / "python")
    for library in map(Path, answer["libraries"]):
        if not library.is_relative_to(standard):
            loader = library.name.startswith(("ld-", "ld."))
            shutil.copy(library, made / ("loader" if loader else f"lib/{library.name}"))
            name = library.name
            while not loader and not name.endswith(".so"):  # programs ask for libffi.so.8.1.2 by libffi.so.8
                name = name.rpartition(".")[0]
                (made / "lib" / name).symlink_to(library.name)
    for file in map(Path, answer["modules"]):
        module = file.parent.resolve() / file.name  # a link itself, if the standard library's files are links
        whole = module.parent.glob("*.py") if module.name == "__init__.py" else ()  # some modules have two names
        for path in (module, *whole):
            if path.is_relative_to(standard):
                place = made / "lib" / standard.name / path.relative_to(standard)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
    for folder, _, files in os.walk(made):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                path.chmod(0o755)


def words(arguments: list[str]) -> list[str]:
    """The command line of the interpreter in a container, which needs the variable `HOME_OF_PYTHON`."""
    return [f"{PLACE}/loader", "--library-path", f"{PLACE}/lib", f"{PLACE}/python", *arguments]


IMAGE_VERSION = 1  # of a prepared image
LOG_KB = 16
ANSWER_S = 120.0
RECIPE = ".codechat.Dockerfile"
BUILDER = {"DOCKER_BUILDKIT": "0"}  # the other builder reads more than is checked here
LABEL = "codechat=room"
KILL_S = 10  # between the end of a build's time and the kill of the engine's command
FAILED = re.compile(rb'returned a non-zero code: \d+|building at STEP "RUN ')
"""The words of docker and podman for a command of a build that failed."""
LAST = 1000  # bytes of an output, in which they stand
TRIES = 3  # of a build that ends otherwise: a step that it shares with another one may end with that one's image


@dataclass(frozen=True)
class Image:
    """An image prepared for worktrees from the one that was `built`: the repository's root in it, and its variables."""

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
        """Whether an image exists on this machine."""
        return self.run("image", "inspect", image).returncode == 0

    def check(self) -> None:
        """Raise `InfrastructureError` if the engine is away."""
        done = self.run("version")
        if done.returncode != 0:
            raise InfrastructureError(f"{self.program} is away: {_last(done.stdout)}")


@dataclass(frozen=True)
class Builder:
    """Builds Dockerfiles over commits, each in at most `seconds`. `bases` maps their base images to local ones."""

    engine: Engine
    limits: Limits
    seconds: float
    network: bool
    bases: Mapping[str, str]

    def image(self, workspace: Workspace, dockerfile: str, lower: Path) -> Image:
        """The image for a row's worktrees. Raises `InfrastructureError`: a Dockerfile of the dataset has to build."""
        made_of = [IMAGE_VERSION, dockerfile, dict(self.bases), self.network, workspace.repository, workspace.commit]
        key = content_hash(made_of)[:32]
        note = folder_of("images") / f"{key}.json"
        note.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{note}.lock"):
            if note.exists():
                known = Image(**json.loads(note.read_text(encoding="utf-8")))
                if self.engine.has(known.name):
                    return known
            self.engine.check()
            built = self.build(lower, {}, dockerfile, f"codechat-built:{key}")
            if not built.ok:
                raise InfrastructureError(f"the room's own Dockerfile does not build here: {_last(built.log.encode())}")
            made = self.prepare(f"codechat-built:{key}", f"codechat-room:{key}", lower)
            note.write_text(json.dumps(asdict(made)), encoding="utf-8")
            return made

    def build(self, lower: Path, files: Mapping[str, str], dockerfile: str, tag: str) -> Build:
        """Build a Dockerfile over the commit and further files. Raises `InfrastructureError` if the engine is away.

        A failed build leaves no image. A build that fails outside its own commands is tried again.
        """
        began = time.monotonic()

        def ended(ok: bool, log: str) -> Build:
            return Build(ok, log, round(time.monotonic() - began, 3))

        try:
            made = recipe(dockerfile, self.bases, network=self.network)
            self._refuse_absent(made.bases)
            text = re.sub(r"(?m)^(FROM .*)$", rf"\1\nLABEL {LABEL}", made.text)  # images of steps have it, too
            with _context(lower, files, text) as context:
                for _ in range(TRIES):
                    status, output = self._run(tag, context)
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

    def _run(self, tag: str, context: Path) -> tuple[int | None, HeadAndTail]:
        """Run the build; returns the exit status (None after its time) and the output. Raises `InfrastructureError`."""
        memory = f"{self.limits.memory_mb}m"
        options = ["--rm", "--force-rm", "--memory", memory, "--memory-swap", memory]
        options += ["--ulimit", f"fsize={self.limits.disk_mb << 20}", "--file", str(context / RECIPE), "--tag", tag]
        options += [] if self.network else ["--network", "none"]
        ending = ["timeout", f"--kill-after={KILL_S}", str(self.seconds)]
        output, until = HeadAndTail(LOG_KB << 9), time.monotonic() + self.seconds
        try:
            process = subprocess.Popen(
                [*ending, self.engine.program, "build", *options, str(context)],
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

    def _refuse_absent(self, bases: tuple[str, ...]) -> None:
        for base in bases if not self.network else ():
            if not self.engine.has(base):
                self.engine.check()
                raise Refused(f"the base image {base} is not here: pull it, or map it (environment.images)")

    def prepare(self, built: str, tag: str, lower: Path) -> Image:
        """Prepare a built image for worktrees, under a tag. Raises `InfrastructureError`."""
        config = json.loads(self.engine.need("image", "inspect", "--format", "{{json .Config}}", built))
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        given = (config.get("WorkingDir") or "/workspace/repository", f"{PLACE}/lower", UNPRIVILEGED)
        code = boot_code(f"furnish import prepare\nprint(prepare{given!r})", PLACE)
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
        variables = {name: value for name, _, value in pairs}
        return Image(tag, built, self.engine.program, output.splitlines()[-1], variables)


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
        # it could leave out what the Dockerfile needs, or be a link
        (context / ".dockerignore").unlink(missing_ok=True)
        yield context


def _write(context: Path, name: str, content: str) -> None:
    """Write a maintainer's file below the context, through no link. Raises `Refused`."""
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
