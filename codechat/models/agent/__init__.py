"""A coding agent: a reply is what a command did in a workspace. Presets for three agents are files in conf/model.

One request of a protocol is one start of the command, in a room (`workspace.py`) whose only way out is the model's
endpoint, by a gateway that counts and pays (`gateway.py`). `turn.py` reads what the agent left.
"""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from codechat.base.domain import AgentStep, Reply, Trajectory, TurnEnd
from codechat.base.errors import UserError
from codechat.models import MODELS, Desk, Request
from codechat.models.agent.config import AgentConfig
from codechat.models.agent.turn import Changes, Files, prompt_of, read_output
from codechat.models.agent.workspace import Installation, Workspace
from codechat.models.calls.limits import endpoint_at
from codechat.models.endpoints import AGENT, ENDPOINT_LISTENER, EndpointInfo
from codechat.sandbox.rooms import Ended

if TYPE_CHECKING:
    from codechat.models.agent.gateway import Meter

__all__ = ["Agent", "AgentConfig"]

SIGNALLED = 128
"""The least exit status of a shell whose program a signal ended."""


class Agent:
    """Starts the agent once a request, in the room of the request's session."""

    def __init__(self, config: AgentConfig) -> None:
        from codechat.models.agent.gateway import Gateway

        self.config, self._gateway = config, Gateway(config)
        self._installation: Installation | None = None
        self._presented = self._has_asked = False

    async def check(self) -> None:
        """Find the agent. Raises `UserError` if it, or bubblewrap, cannot be started here."""
        self._installation = Installation.of(self.config)

    async def complete(self, request: Request) -> Reply:
        """The agent's last message and its trajectory. Raises as `Model.complete`."""
        desk = request.desk
        if desk is None or self._installation is None:
            raise UserError("a coding agent can only be the model under test", "choose another model for this role")
        dialogues, installation = endpoint_at(self.config.address).dialogues, self._installation
        dialogues.keep(self.config.max_concurrency)
        await dialogues.begin(desk.session)
        workspace: Workspace = desk.opened("agent", lambda: Workspace(self.config, installation, desk))
        state = await workspace.open(request)
        if not self._presented:
            self._presented = True
            await self._present(workspace, installation)
        try:
            return await self._turn(workspace, desk, request, state)
        except BaseException:
            await workspace.aclose()  # a later attempt begins with the state before this one
            raise

    async def _present(self, workspace: Workspace, installation: Installation) -> None:
        """Report the agent's version to the running cell."""
        listener, words = ENDPOINT_LISTENER.get(), self.config.version_command[1:]
        said = await workspace.said((installation.program, *words)) if words else ""
        facts = {AGENT: said.splitlines()[0][:100]} if said else {}
        if listener is not None:
            await listener.on_connect(self.config, EndpointInfo(self.config.address, facts))

    async def _turn(self, workspace: Workspace, desk: Desk, request: Request, before: Path) -> Reply:
        began, remembers = time.monotonic(), bool(workspace.conversation and self.config.continued)
        file = desk.start().file
        attempts = workspace.count_attempt(request)
        assert workspace.listener is not None
        async with self._gateway.metering(workspace.listener, workspace.path(request, ".calls")) as meter:
            prompt = prompt_of(request.messages, request.turn, self.config.here, file)
            done, limit = await _run(workspace, meter, prompt, self.config.limits_of_turn.seconds)
        errors = "" if done.status == 0 else await workspace.errors()
        self._has_asked |= meter.requests > 0
        if limit is None and 0 < (done.status or 0) < SIGNALLED and not self._has_asked:
            raise UserError(
                f"the agent ended with status {done.status} before it asked its model: "
                f"{' '.join(errors.split())[-300:]}",
                f"try model.command by hand: {' '.join(self.config.command)[:200]}",
            )
        state, whole = await workspace.keep(request)
        output = self.config.output
        earlier = workspace.files
        if earlier is None:
            earlier = await asyncio.to_thread(Files, before)
        files = await asyncio.to_thread(Files, state)
        workspace.files = files
        changes = await asyncio.to_thread(Changes.between, earlier, files, file, output.file)
        said = read_output(output, done.head + done.tail if output.file is None else changes.noted.encode())
        workspace.name_conversation(said.session)
        steps = said.steps if not errors else (*said.steps, AgentStep("tool", "standard error", errors, done.status))
        ended: TurnEnd = limit or (_end_of(done) if whole else "disk")
        trajectory = Trajectory(
            changes.file, steps, said.omitted, said.ran_code, changes.added, changes.removed, changes.elsewhere,
            changes.diff, ended, done.status, meter.requests, meter.unmetered, meter.replayed, attempts, remembers,
        )  # fmt: skip
        return Reply(
            said.reply,
            "stop" if ended == "exit" else ended,
            latency_s=time.monotonic() - began,
            usage=meter.usage,
            retries=meter.retries,
            rate_limited=meter.rate_limited,
            trajectory=trajectory,
        )

    async def aclose(self) -> None:
        """Close the connections to the endpoint."""
        await self._gateway.aclose()


async def _run(workspace: Workspace, meter: "Meter", prompt: str, seconds: float) -> tuple[Ended, TurnEnd | None]:
    """The agent's end, and the limit that ended it. Raises what ends the whole session.

    Its `seconds` leave out what its requests waited for the endpoint: a call under way may be waiting.
    """
    limit: TurnEnd | None = None
    began = time.monotonic()
    running = asyncio.ensure_future(workspace.run(prompt))
    over = asyncio.ensure_future(meter.over())
    try:
        while not (running.done() or over.done()):
            left = began + seconds + meter.waited_s - time.monotonic()
            if left <= 0 and not meter.under_way:
                limit = "time"
                break
            watched = {running, over} if left > 0 else {running, over, *meter.under_way}
            await asyncio.wait(watched, timeout=left if left > 0 else None, return_when=asyncio.FIRST_COMPLETED)
        limit = over.result() if over.done() else limit
        if limit is not None and not running.done():
            await workspace.end()
        return await running, limit
    finally:
        running.cancel()
        over.cancel()


def _end_of(done: Ended) -> TurnEnd:
    if done.ended == "exit":
        return "exit" if done.status == 0 else "error"
    return "memory" if done.ended == "memory" else "error"


@MODELS.register("agent", AgentConfig, has_desk=True)
def agent(config: AgentConfig) -> Agent:
    """A coding agent in a workspace, started once a turn: Claude Code, Codex, mini-swe-agent, or a command."""
    return Agent(config)
