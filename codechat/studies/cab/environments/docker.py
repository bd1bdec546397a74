"""A container of the row's own image, by docker or podman; the engine and this process share a kernel."""

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from codechat.base.config import result_option, run_option
from codechat.base.domain import Build, Output
from codechat.base.errors import InfrastructureError, UserError
from codechat.datasets.tasks import Workspace
from codechat.sandbox.rooms import UNPRIVILEGED, VARIABLES, Resident
from codechat.sandbox.rooms.inside import furnish
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.cab.environments.checkout import Checkout
from codechat.studies.cab.environments.commits import hold_commit
from codechat.studies.cab.environments.images import HOME_OF_PYTHON, PLACE, Builder, Engine, Image, bundle, words
from codechat.studies.cab.environments.resident import Limits, ResidentWorktree, run_within

SPARE_PROCESSES, SPARE_MB = 16, 128  # of the container, in addition to a command's
GIVEN = "FROM {image}\nWORKDIR " + furnish.REPOSITORY + "\nCOPY . .\n"


class DockerConfig(Limits):
    version: ClassVar[int] = 2

    kind: Literal["docker"] = result_option("docker", "a container of the image that the row's Dockerfile builds")
    image: str | None = result_option(None, "one image for all rows without a Dockerfile", min_length=1)
    fallback: Literal["checkout"] | None = result_option(
        None, "where rows work that have neither Dockerfile nor image: with environment=checkout's means; null: nowhere"
    )
    network: str | None = result_option(
        None,
        "the engine's network that commands reach, such as bridge; null: none. They can then send out all they see",
        pattern=r"^[A-Za-z0-9][\w.-]*$",
    )
    test_s: float = result_option(600.0, "seconds by the clock that a row's test command may take", gt=0)
    images: dict[str, str] = result_option({}, "images of this machine in place of a Dockerfile's bases: {base: mine}")
    build_network: bool = result_option(False, "let builds reach the network: they run what they download, as root")
    build_s: float = result_option(1800.0, "seconds by the clock that a build may take", gt=0)
    program: Literal["docker", "podman"] = run_option("docker", "the engine's command")

    def recipe_of(self, workspace: Workspace) -> str | None:
        """The workspace's Dockerfile, else one over the option `image`; None without both."""
        return workspace.dockerfile or (None if self.image is None else GIVEN.format(image=self.image))

    def room_of(self, workspace: Workspace) -> str:
        return self.kind if self.fallback is None or self.recipe_of(workspace) is not None else self.fallback

    def networked(self, workspace: Workspace) -> bool:
        return self.network is not None and self.room_of(workspace) == self.kind

    def builder(self, program: str) -> Builder:
        """A builder within the limits that uses an engine's program."""
        return Builder(Engine(program), self, self.build_s, self.build_network, self.images)

    def lacking(self, workspace: Workspace) -> tuple[str, str] | None:
        if self.recipe_of(workspace) is not None or self.fallback is not None:
            return None
        remedy = "environment.fallback=checkout lets such work without an engine, environment.image=NAME in an image"
        return "Dockerfile", remedy


class Docker:
    """Opens worktrees in containers."""

    commands = builds = True

    def __init__(self, config: DockerConfig) -> None:
        program = shutil.which(config.program)
        if program is None:
            raise UserError(
                f"environment=docker needs the program {config.program}, which is not installed",
                "or choose environment=checkout",
            )
        self._config, self._free = config, asyncio.Semaphore(config.max_rooms)
        self._builder = config.builder(program)
        self._plain = None if config.fallback is None else Checkout(config, free=self._free)

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    def _check(self) -> None:
        """Raise `UserError` if the engine does not answer, or lacks the common image and may not fetch it."""
        config, engine = self._config, self._builder.engine
        try:
            engine.check()
            named = config.image and config.images.get(config.image, config.image)
            lacks = named is not None and not config.build_network and not engine.has(named)
        except InfrastructureError as away:
            raise UserError(
                f"environment=docker needs an engine that answers: {away}",
                f"start it (`{config.program} version` must show it); or choose environment=checkout",
            ) from away
        if lacks:
            raise UserError(
                f"environment.image: {config.program} has no image '{named}' on this machine, and none is downloaded",
                f"fetch or build it beforehand ({config.program} pull {named}); `{config.program} images` shows all",
            )

    async def open(self, workspace: Workspace) -> Worktree:
        dockerfile = self._config.recipe_of(workspace)
        if dockerfile is None and self._plain is not None:
            return await self._plain.open(workspace)
        if dockerfile is None:
            what, remedy = self._config.lacking(workspace) or ("", "")
            raise UserError(f"{workspace.repository} at {workspace.commit[:12]} comes without a {what}", remedy)
        await self._free.acquire()
        with ExitStack() as held:
            held.callback(self._free.release)
            lower = await hold_commit(held, workspace, None)
            image = await asyncio.to_thread(self._builder.image, workspace, dockerfile, lower)
            resident = await self._start(image)
            test = workspace.test if workspace.dockerfile is not None else None
            build = partial(self._build, lower=lower, own=dockerfile, image=image, test=test)
            return ResidentWorktree(self._config, resident, held.pop_all(), build)

    def _build(
        self, files: Mapping[str, str], dockerfile: str | None, *, lower: Path, own: str, image: Image, test: str | None
    ) -> Build:
        """Build a worktree's image with a maintainer's files, and run the row's `test` in it; leaves no image.

        `own` is the row's Dockerfile, and `image` the worktree's image, which counts as built without any change.
        Raises `InfrastructureError`.
        """
        if not files and dockerfile is None:
            return self._tested(Build(True, ""), image, test)
        name = secrets.token_hex(8)
        tags = f"codechat-tried:{name}", f"codechat-tested:{name}"
        try:
            built = self._builder.build(lower, files, own if dockerfile is None else dockerfile, tags[0])
            if built.ok and test is not None:
                built = self._tested(built, self._builder.prepare(*tags, lower), test)
            return built
        finally:
            for tag in reversed(tags):
                self._builder.engine.run("image", "rm", "--force", tag)

    def _tested(self, built: Build, image: Image, test: str | None) -> Build:
        """The build with the output of the test, if there is one, in an event loop of this thread."""

        async def run(command: str) -> Output:
            resident = await self._start(image)
            try:
                return await run_within(self._config, resident, command, self._config.test_s)
            finally:
                await resident.aclose()

        return built if test is None else replace(built, test=asyncio.run(run(test)))

    async def _start(self, image: Image) -> Resident:
        folder = await asyncio.to_thread(bundle)
        name = f"codechat-{secrets.token_hex(8)}"

        def command(arguments: list[str], meeting: str) -> list[str]:
            program, *rest = words(arguments)
            volumes = ["--volume", f"{folder}:{PLACE}:ro", "--volume", f"{meeting}:{PLACE}/meeting"]
            return [image.program, "run", *self._options(name), *volumes, "--entrypoint", program, image.name, *rest]

        inside = {
            **self._config.inside(),
            "lower": image.root,
            "uid": None,
            "overlay": True,
            "cover": [PLACE, "/sys"],
            "root": image.root,
            "networked": self._config.network is not None,
            "environment": {**VARIABLES, **image.variables, "HOME": furnish.HOME},
        }
        return await Resident.meet(command, PLACE, inside, meeting=f"{PLACE}/meeting/control")

    def _options(self, name: str) -> list[str]:
        """The engine's options. Its filters are off, because they forbid the namespaces of commands; ours are used."""
        config = self._config
        options = ["--rm", "--name", name, "--pull", "never", "--read-only", "--hostname", "room"]
        options += ["--network", config.network or "none"]
        # docker passes this machine's name servers to a container, podman this machine's table of names
        if config.network is None:
            options += ["--dns", "127.0.0.1", "--dns-search", "."] if config.program == "docker" else ["--no-hosts"]
        options += [
            "--cap-drop",
            "ALL",
            "--user",
            f"{UNPRIVILEGED}:{UNPRIVILEGED}",
            "--workdir",
            "/",
            "--env",
            HOME_OF_PYTHON,
        ]
        paths = "systempaths=unconfined" if config.program == "docker" else "unmask=ALL"
        for profile in ("no-new-privileges", "seccomp=unconfined", "apparmor=unconfined", paths):
            options += ["--security-opt", profile]
        memory = f"{config.memory_mb + config.disk_mb + SPARE_MB}m"
        options += ["--memory", memory, "--memory-swap", memory]
        return [*options, "--pids-limit", str(config.processes + SPARE_PROCESSES)]

    async def aclose(self) -> None:
        """Images are kept: `codechat cache clear` removes them."""
        if self._plain is not None:
            await self._plain.aclose()


@ENVIRONMENTS.register("docker", DockerConfig)
def docker(config: DockerConfig) -> Environment:
    """A container of the image that the row's Dockerfile builds, by docker or podman; builds are tried again."""
    return Docker(config)
