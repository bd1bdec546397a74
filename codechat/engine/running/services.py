"""The components of a running cell: only those that its protocol uses are built, checked and admitted."""

import contextlib
from collections.abc import AsyncIterator, Callable

from codechat.calls import Brake
from codechat.constraints.examining import Examiner
from codechat.engine.cell import Cell
from codechat.engine.cell.libraries import preload, refuse_lacking
from codechat.engine.settings.config import CellConfig
from codechat.environments import ENVIRONMENTS, Environment
from codechat.journal import Journal
from codechat.judges import JUDGES
from codechat.models import MODELS, UNDER_TEST
from codechat.models.roles import models_in, role_of
from codechat.protocols.services import CheckOnce, Player, Services
from codechat.sandbox import SANDBOXES, Sandbox, admit
from codechat.suites.checker import Checker, NoSandbox
from codechat.suites.sharing import KeptVerdicts


@contextlib.asynccontextmanager
async def services_of(
    cell: Cell, journal: Journal, note: Callable[[str], None], brake: Brake
) -> AsyncIterator[Services]:
    """Build the components, and close them at the end. `note` gets remarks for the user."""
    config = cell.config
    async with contextlib.AsyncExitStack() as stack:
        environment = None
        if "environment" in config.uses:
            environment = ENVIRONMENTS.build(config.environment)
            stack.push_async_callback(environment.aclose)
        players = _players(config, environment, stack)
        judge = gate = None
        offline = False
        if "judge" in config.uses:
            judge, offline = JUDGES.build(config.judge), JUDGES.of(config.judge).traits.offline
            stack.push_async_callback(judge.aclose)
            gate = CheckOnce(judge)
        sandbox: Sandbox = NoSandbox(config.sandbox)
        if "sandbox" in config.uses:
            sandbox = _sandbox(cell, stack, note)
        examiner = Examiner(cell.resources().workers)
        stack.push_async_callback(examiner.aclose)
        yield Services(
            players,
            journal,
            Checker(sandbox, _kept(sandbox, stack)),
            judge,
            brake,
            offline,
            gate,
            examiner,
            environment,
        )


def _kept(sandbox: Sandbox, stack: contextlib.AsyncExitStack) -> KeptVerdicts | None:
    """The verdicts of other cells and processes, unless the sandbox shares none."""
    if isinstance(sandbox, NoSandbox) or not sandbox.config.share:
        return None
    kept = KeptVerdicts(sandbox.config, weak=sandbox.weak)
    stack.callback(kept.close)
    return kept


def _players(
    config: CellConfig, environment: Environment | None, stack: contextlib.AsyncExitStack
) -> dict[str, Player]:
    """The model of each role: the model under test, and the models in the protocol's config.

    Where there are rooms, whether they can be had is checked before the model under test is asked: what is scored again
    needs neither.
    """
    tested = MODELS.build(config.model)
    gate = CheckOnce(tested) if environment is None else CheckOnce(environment, tested)
    players = {UNDER_TEST: Player(tested, gate, MODELS.of(config.model).traits.baseline)}
    for place, model in models_in(config.protocol, "protocol"):
        players[role_of(place)] = Player.of(MODELS.build(model))
    for player in players.values():
        stack.push_async_callback(player.model.aclose)
    return players


def _sandbox(cell: Cell, stack: contextlib.AsyncExitStack, note: Callable[[str], None]) -> Sandbox:
    config = cell.config
    refuse_lacking(config.sandbox, cell.tasks)
    sandbox = SANDBOXES.build(config.sandbox, workers=cell.resources().workers)
    stack.push_async_callback(sandbox.aclose)
    preload(sandbox, cell.tasks)
    if not MODELS.of(config.model).traits.baseline:
        admit(sandbox, config.sandbox)
    if sandbox.notice:
        note(sandbox.notice)
    return sandbox
