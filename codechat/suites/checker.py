"""Checks programs by suites, each pair once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from codechat.domain import Program, Verdict
from codechat.files import content_hash
from codechat.promises import held, is_plugin
from codechat.sandbox import Box, Command, Ran, Sandbox, SandboxConfig
from codechat.suites import Suite

T = TypeVar("T")

REMEMBERED = 20_000  # verdicts
_OF_REFERENCES: dict[str, Verdict] = {}  # of the process: the cells of a sweep have the same references


class NoSandbox:
    """Replaces the sandbox if a protocol uses none: suites that only read code never call it."""

    weak: bool = False
    notice: str | None = None

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config

    async def lend(self, work: Callable[[Box], T], tools: Sequence[str] = ()) -> T:
        """A bug of the protocol."""
        raise ValueError("the protocol runs code, and does not name the sandbox in `uses`")

    async def run(self, command: Command) -> Ran:
        raise ValueError("the protocol runs a command, and does not name the sandbox in `uses`")

    async def aclose(self) -> None:
        """Nothing to release."""


def _held(suite: Suite) -> Suite:
    """The suite, held to what a suite promises if it is a plugin's: a dataset may make it without the registry."""
    kind = type(suite)
    return cast(Suite, held(suite, Suite, f"suite={suite.kind} of {kind.__module__}")) if is_plugin(kind) else suite


class Checker:
    """Runs suites in one sandbox. A check that is done or under way is not run again."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._verdicts: dict[str, Verdict] = {}
        self._running: dict[str, asyncio.Task[Verdict]] = {}

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program; raises as `Suite.check`."""
        key = _key(program, suite)
        if key in self._verdicts:
            return self._verdicts[key]
        running = self._running.get(key)
        if running is None:
            running = asyncio.ensure_future(_held(suite).check(program, self._sandbox))
            self._running[key] = running
            running.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(running)

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The verdict on a dataset's own program: run once a process and sandbox config. Raises as `Suite.check`."""
        key = content_hash([_key(program, suite), self._sandbox.config.model_dump(mode="json")])
        if key not in _OF_REFERENCES:
            _remember(_OF_REFERENCES, key, await self.check(program, suite))
        return _OF_REFERENCES[key]

    async def run(self, command: Command) -> Ran:
        """Run a command in a box of the sandbox, each time it is called."""
        return await self._sandbox.run(command)

    def _keep(self, key: str, done: "asyncio.Task[Verdict]") -> None:
        self._running.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            _remember(self._verdicts, key, done.result())


def _key(program: Program, suite: Suite) -> str:
    """A hash of all that decides a verdict in one sandbox."""
    target = program.target
    return content_hash([program.source, target.language, target.entry_point, target.signature, suite.kind, suite.key])


def _remember(verdicts: dict[str, Verdict], key: str, verdict: Verdict) -> None:
    """Keep a verdict, at the cost of the oldest if there are too many."""
    verdicts[key] = verdict
    if len(verdicts) > REMEMBERED:
        del verdicts[next(iter(verdicts))]
