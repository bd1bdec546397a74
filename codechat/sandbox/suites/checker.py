"""Checks programs by suites, each pair once."""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from codechat.base.domain import Program, Target, Verdict
from codechat.base.files import content_hash
from codechat.base.promises import is_plugin, kept_to_type
from codechat.sandbox import Box, Command, Ran, Sandbox, SandboxConfig
from codechat.sandbox.suites import Suite

T = TypeVar("T")

REMEMBERED = 20_000  # verdicts
_OF_REFERENCES: dict[str, Verdict] = {}  # of the process: the cells of a sweep have the same references


def key_of(program: Program, suite: Suite) -> str:
    """A hash of all that decides a verdict in one sandbox, the program's text among it."""
    return _key(program.source, program.target, suite.kind, suite.key)


@functools.lru_cache(maxsize=1024)  # asked for before a check and after it
def _key(source: str, target: Target, kind: str, suite: str) -> str:
    return content_hash([source, target.language, target.entry_point, target.signature, kind, suite])


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


def _checked(suite: Suite) -> Suite:
    """The suite, held to what a suite promises if it is a plugin's: a dataset may make it without the registry."""
    if not is_plugin(type(suite)):
        return suite
    return cast(Suite, kept_to_type(suite, Suite, f"suite={suite.kind} of {type(suite).__module__}"))


class Checker:
    """Runs suites in one sandbox. A check that is done or under way is not run again."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._verdicts: dict[str, Verdict] = {}
        self._running: dict[str, asyncio.Task[Verdict]] = {}

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program; raises as `Suite.check`."""
        key = key_of(program, suite)
        if key in self._verdicts:
            return self._verdicts[key]
        if key not in self._running:
            self._start(program, suite, key)
        return await asyncio.shield(self._running[key])

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The verdict on a dataset's own program: run once a process and sandbox config. Raises as `Suite.check`."""
        key = content_hash([key_of(program, suite), self._sandbox.config.model_dump(mode="json")])
        if key not in _OF_REFERENCES:
            _remember(_OF_REFERENCES, key, await self.check(program, suite))
        return _OF_REFERENCES[key]

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> str:
        """See `codechat.run.protocols.services.Tests`."""
        key = key_of(program, suite)
        if key not in self._verdicts:
            _remember(self._verdicts, key, verdict)
        return key

    def _start(self, program: Program, suite: Suite, key: str) -> None:
        running = self._running[key] = asyncio.ensure_future(_checked(suite).check(program, self._sandbox))

        def done(ended: "asyncio.Task[Verdict]") -> None:
            del self._running[key]
            if not ended.cancelled() and ended.exception() is None:
                _remember(self._verdicts, key, ended.result())

        running.add_done_callback(done)

    async def run(self, command: Command) -> Ran:
        """Run a command in a box of the sandbox, each time it is called."""
        return await self._sandbox.run(command)


def _remember(verdicts: dict[str, Verdict], key: str, verdict: Verdict) -> None:
    verdicts[key] = verdict
    if len(verdicts) > REMEMBERED:
        del verdicts[next(iter(verdicts))]
