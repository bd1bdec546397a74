"""Isolation by a container engine, if one is installed. The engine and this process must share a kernel."""

import functools
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox, SandboxConfig
from codechat.sandbox.command import COMMANDS, PROC, place_of, places
from codechat.sandbox.inside.isolate import NO_USER
from codechat.sandbox.process import SCRATCH, limits_of
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import Inside, Launch, ZygoteSandbox, variables_of

IMAGE = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
SPARE_PROCESSES = 16  # of the container, in addition to the limit of a program


class DockerConfig(SandboxConfig):
    """Options of `docker`."""

    kind: Literal["docker"] = run_option("docker", "a container without network, rights or a writable root")
    image: str = run_option(IMAGE, "the image, already pulled, with the same minor version of Python", min_length=1)
    program: Literal["docker", "podman"] = run_option("docker", "the engine's command")


@SANDBOXES.register("docker", DockerConfig)
def docker(config: DockerConfig, workers: int = 1) -> Sandbox:
    """A container per worker without network, rights or a writable root; needs an engine."""
    program = shutil.which(config.program)
    if program is None:
        raise UserError(
            f"sandbox=docker needs the program {config.program}, which is not installed", "or choose sandbox=bubblewrap"
        )
    libraries = config.libraries()
    if libraries.minor != sys.version_info[:2] and config.image == IMAGE:
        raise UserError(
            f"sandbox.python is Python {libraries.version}, and the image {IMAGE} has another one",
            f"name an image that has it: sandbox.image=python:{libraries.minor[0]}.{libraries.minor[1]}-slim",
        )
    paths = [path for path in libraries.path if path.endswith("-packages")]
    inside = Inside(
        paths=[f"/packages/{number}" for number in range(len(paths))],
        limits=limits_of(config),
        scratch=list(SCRATCH),
        own_path=True,
    )

    @functools.cache
    def launch(tools: tuple[str, ...]) -> Launch:
        def command(arguments: list[str], folder: str) -> list[str]:
            return [program, *_options(config, paths, folder, tools), config.image, "python3", *arguments]

        mounted = replace(inside, proc=PROC in tools)
        return Launch(command, "/harness", mounted, None, "/meeting/control", dict(os.environ))

    sandbox = ZygoteSandbox(config, launch, workers, weak=False, notice=None)
    try:
        sandbox.start()
    except WorkerDied as error:
        remedy = f"see that {config.program} runs and holds the image: {config.program} pull {config.image}"
        raise UserError(f"{config.program} does not start: {str(error).splitlines()[0]}", remedy) from error
    return sandbox


def _options(config: DockerConfig, paths: list[str], folder: str, tools: tuple[str, ...]) -> list[str]:
    """The engine's own filter is off, because it forbids the namespaces that each program gets; ours is used."""
    here = Path(__file__).resolve().parent
    options = ["run", "--rm", "--pull", "never", "--network", "none", "--read-only", "--hostname", "sandbox"]
    options += ["--cap-drop", "ALL", "--user", f"{NO_USER}:{NO_USER}"]
    for profile in ("no-new-privileges", "seccomp=unconfined", "apparmor=unconfined"):
        options += ["--security-opt", profile]
    options += ["--pids-limit", str(config.processes + SPARE_PROCESSES)]
    options += ["--tmpfs", f"/tmp:rw,mode=1777,size={config.file_mb}m"]
    options += ["--volume", f"{folder}:/meeting", "--volume", f"{here / 'inside'}:/harness/inside:ro"]
    for number, path in enumerate(paths):
        options += ["--volume", f"{path}:/packages/{number}:ro"]
    for place in _installed(paths):  # the embedded dataset holds its own answers
        options += ["--tmpfs", place]
    for source, place in places([tool for tool in tools if tool not in COMMANDS], ()):  # the image has commands
        options += ["--volume", f"{source}:{place_of(place)}:ro"]
    for name, value in variables_of(config).items():
        options += ["--env", f"{name}={value}"]
    return options


def _installed(paths: list[str]) -> Iterator[str]:
    """Where the container would show codechat itself."""
    here = Path(__file__).resolve().parent.parent
    for number, path in enumerate(paths):
        for folder in dict.fromkeys((here, Path(path, "codechat"))):
            if folder.is_relative_to(path) and folder.is_dir():
                yield f"/packages/{number}/{folder.relative_to(path)}"
