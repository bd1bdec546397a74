"""Checks programs by suites, each pair once, and programs of equal compiled code together."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from codechat.base.domain import Program, Verdict
from codechat.base.files import content_hash
from codechat.base.promises import is_plugin, kept_to_type
from codechat.sandbox import Box, Command, Ran, Sandbox, SandboxConfig
from codechat.sandbox.languages import language_of
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.sharing import KeptVerdicts, exact_key, may_outlast, may_share, shared_key

T = TypeVar("T")

REMEMBERED = 20_000  # verdicts
_OF_REFERENCES: dict[str, Verdict] = {}  # of the process: the cells of a sweep have the same references


@dataclass(frozen=True, slots=True)
class ProgramKeys:
    """What was tested: two checks of one `exact` key were of one text, those of one `shared` key of equal programs."""

    exact: str
    shared: str | None


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
    """Runs suites in one sandbox. A check that is done or under way is not run again.

    Nor is a program of equal compiled code (`codechat.sandbox.suites.sharing`), unless `sandbox.share` is false. `kept`
    has verdicts of other processes; None: they are not asked.
    """

    def __init__(self, sandbox: Sandbox, kept: KeptVerdicts | None = None) -> None:
        self._sandbox, self._kept = sandbox, kept
        self._verdicts: dict[str, Verdict] = {}
        self._running: dict[str, asyncio.Task[Verdict]] = {}

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program; raises as `Suite.check`."""
        key = exact_key(program, suite)
        if key in self._verdicts:
            return self._verdicts[key]
        if key not in self._running:
            shared = shared_key(program, suite, self._sandbox)
            known = None if shared is None else await self._shared(shared, kept=_kept_by_code(program, suite))
            if known is not None:
                return known
            if key not in self._running:
                self._start(program, suite, key, shared)
        return await asyncio.shield(self._running[key])

    async def check_anew(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program, run again whatever is known of it. Raises as `Suite.check`."""
        return await _checked(suite).check(program, self._sandbox)

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The verdict on a dataset's own program: run once a process and sandbox config. Raises as `Suite.check`."""
        key = content_hash([exact_key(program, suite), self._sandbox.config.model_dump(mode="json")])
        if key not in _OF_REFERENCES:
            _remember(_OF_REFERENCES, key, await self.check(program, suite))
        return _OF_REFERENCES[key]

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> ProgramKeys | None:
        """See `codechat.run.protocols.services.Tests`."""
        if not self._sandbox.config.share:
            return None
        tested = ProgramKeys(exact_key(program, suite), None)
        if may_share(verdict):
            tested = replace(tested, shared=shared_key(program, suite, self._sandbox))
        for key in filter(None, (tested.exact, tested.shared)):
            if key not in self._verdicts:
                _remember(self._verdicts, key, verdict)
        return tested

    async def _shared(self, key: str, *, kept: bool) -> Verdict | None:
        """The verdict on programs of this key, which may be under way; None if there is none."""
        if key in self._verdicts:
            return self._verdicts[key]
        if key in self._running:
            verdict = await asyncio.shield(self._running[key])
            return verdict if may_share(verdict) else None
        known = self._kept.get(key) if self._kept is not None and kept else None
        if known is not None:
            _remember(self._verdicts, key, known)
        return known

    def _start(self, program: Program, suite: Suite, exact: str, shared: str | None) -> None:
        running = asyncio.ensure_future(_checked(suite).check(program, self._sandbox))
        keys = [exact, *([shared] if shared is not None and shared not in self._running else [])]
        self._running |= dict.fromkeys(keys, running)

        def done(ended: "asyncio.Task[Verdict]") -> None:
            for key in keys:
                del self._running[key]
            if not ended.cancelled() and ended.exception() is None:
                self._keep(exact, shared, ended.result(), kept=_kept_by_code(program, suite))

        running.add_done_callback(done)

    def _keep(self, exact: str, shared: str | None, verdict: Verdict, *, kept: bool) -> None:
        _remember(self._verdicts, exact, verdict)
        if shared is not None and may_share(verdict):
            _remember(self._verdicts, shared, verdict)
            if self._kept is not None and kept and may_outlast(verdict):
                self._kept.put(shared, verdict)

    async def run(self, command: Command) -> Ran:
        """Run a command in a box of the sandbox, each time it is called."""
        return await self._sandbox.run(command)


def _kept_by_code(program: Program, suite: Suite) -> bool:
    """Whether kept verdicts are of today's code: that of other packages is not looked at, and may have changed."""
    return not is_plugin(type(suite)) and not is_plugin(type(language_of(program.target.language)))


def _remember(verdicts: dict[str, Verdict], key: str, verdict: Verdict) -> None:
    """Keep a verdict, at the cost of the oldest if there are too many."""
    verdicts[key] = verdict
    if len(verdicts) > REMEMBERED:
        del verdicts[next(iter(verdicts))]
