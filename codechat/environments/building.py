"""A build of an image under watch: it is ended when it takes too much time or disk, or starts too many processes.

The engine bounds a build in memory and in the size of a file, and knows no further bound. So its containers are looked
at while it runs. They are known by a name that is added to their `/etc/hosts`: no Dockerfile can leave that out.
"""

import json
import os
import re
import secrets
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from codechat.environments.inside.starter import BLOCK, Kept
from codechat.errors import InfrastructureError

WATCH_S = 0.25  # between two looks, or more:
LAZINESS = 5.0  # a look is followed by a pause of so many times its own length
STEP = re.compile(rb"^ ---> ([0-9a-f]{12,64})\r?$", re.MULTILINE)
MOST_STEPS = 500  # images that the output may name between two looks; a program can print lines as the engine's
SETTLED = 4  # looks in a row, `WATCH_S` apart, without a further image: then an ended build is taken to be over
LINE = 100  # bytes of the output that are read again, since a line can come in two parts

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


class Exceeded(Exception):
    """Why a build was ended."""


@dataclass(frozen=True)
class Bounds:
    """What a build may take: seconds by the clock, bytes written by all its steps, and processes at once."""

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
    _told: set[bytes] = field(default_factory=set)  # images that the output names, and nobody asked for yet

    def build(self, words: Iterable[str], variables: Mapping[str, str], keep: int) -> tuple[int, Kept]:
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
        kept = Kept(keep)
        with process:
            try:
                self._follow(process, kept)
                status = process.wait()
                self._measure()
            finally:
                process.kill()
                process.wait()
                self._remove()
        return status, kept

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

    def _follow(self, process: "subprocess.Popen[bytes]", kept: Kept) -> None:
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
                kept.add(data)
                self._told.update(STEP.findall(line + data))
                line = (line + data)[-LINE:]
                if len(self._told) > MOST_STEPS:  # among which those of the engine's could not be found
                    raise Exceeded("the build printed hundreds of lines that look like the engine's")

    def _look(self) -> None:
        """Bound new containers of the build, and measure all. Raises `Exceeded`."""
        own = self._containers("ps", "-q", "--no-trunc")
        written = 0
        for container in own:
            told = self.run("inspect", "--size", "--format", "{{.SizeRw}}", container).stdout
            with suppress(ValueError):
                written += int(told)
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
                told = self.run("inspect", "--format", "{{json .HostConfig.ExtraHosts}}", container)
                self._known[container] = told.returncode == 0 and self.name in told.stdout.decode(errors="replace")
                if self._known[container]:
                    self.run("update", "--pids-limit", str(self.bounds.processes), container)
        return [container for container in listed if self._known[container]]

    def _measure(self, written: int = 0) -> None:
        """Add what finished steps wrote, and compare. Raises `Exceeded`."""
        told, self._told = {name.decode() for name in self._told}, set()
        for image in self._inspected(sorted(told)):
            if not image["RepoTags"] and not image["RepoDigests"] and image["Id"] not in self._steps:
                below = sum(each["Size"] for each in self._inspected([image["Parent"]] if image["Parent"] else []))
                self._steps[image["Id"]] = max(0, image["Size"] - below)
        if written + sum(self._steps.values()) > self.bounds.disk:
            raise Exceeded(f"the build wrote more than {self.bounds.disk >> 20:,} MiB")

    def _inspected(self, images: Iterable[str]) -> list[dict[str, Any]]:
        """What the engine knows of images, without those that are not there."""
        names = list(images)
        said = self.run("image", "inspect", "--format", "{{json .}}", *names).stdout if names else b""
        lines = [line for line in said.splitlines() if line.startswith(b"{")]
        return [json.loads(line) for line in lines]

    def _remove(self) -> None:
        """Remove the containers of a build that was ended: the engine may not have done so yet."""
        with suppress(InfrastructureError):
            for container in self._containers("ps", "-aq", "--no-trunc"):
                self.run("rm", "--force", container)
