"""Coroutines that are run to their end, from a script as from a notebook."""

import asyncio

import pytest

from codechat.base.errors import InfrastructureError, Stopped
from codechat.models.calls import Brake, run_coroutine


async def answer() -> int:
    await asyncio.sleep(0)
    return 7


async def fail() -> int:
    raise InfrastructureError("the server is gone")


def test_a_script_gets_the_result() -> None:
    assert run_coroutine(answer, Brake()) == 7
    with pytest.raises(InfrastructureError):
        run_coroutine(fail, Brake())


async def test_a_notebook_whose_loop_runs_gets_the_result_too() -> None:
    assert run_coroutine(answer, Brake()) == 7
    with pytest.raises(InfrastructureError):
        run_coroutine(fail, Brake())


@pytest.mark.parametrize(
    ("pulls", "reason", "interrupted"),
    [
        ([("budget", False)], "budget", False),
        ([("budget", False), ("another", False)], "budget", False),
        ([("budget", False), ("signal", True)], "signal", True),
        ([("signal", True), ("budget", False)], "signal", True),
    ],
)
def test_the_first_reason_counts_and_an_interruption_before_all(
    pulls: list[tuple[str, bool]], reason: str, interrupted: bool
) -> None:
    brake = Brake()
    brake.check()
    assert not brake.refused and not brake.interrupted
    for each, by_user in pulls:
        brake.pull(each, interrupted=by_user)
    assert (brake.reason, brake.interrupted, brake.refused) == (reason, interrupted, False)
    with pytest.raises(Stopped, match=reason):
        brake.check()
    assert brake.refused


async def test_who_waits_is_woken_and_whoever_comes_later_does_not_wait() -> None:
    brake, never = Brake(), asyncio.Event()

    async def forever() -> None:
        await never.wait()

    await brake.wait(asyncio.sleep(0))
    waiting = asyncio.create_task(brake.wait(forever()))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    brake.pull("budget")
    with pytest.raises(Stopped, match="budget"):
        await asyncio.wait_for(waiting, 5.0)
    with pytest.raises(Stopped, match="budget"):
        await asyncio.wait_for(brake.wait(forever()), 5.0)
    assert not brake._waiting


async def test_what_fails_while_it_is_waited_for_fails_the_wait() -> None:
    async def failing() -> None:
        raise ValueError("no")

    brake = Brake()
    with pytest.raises(ValueError, match="no"):
        await brake.wait(failing())
    assert not brake._waiting


async def test_an_interruption_in_a_notebook_pulls_the_brake_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    brake = Brake()

    async def until_pulled() -> str:
        while not brake.reason:  # noqa: ASYNC110  another thread says so
            await asyncio.sleep(0.001)
        return brake.reason

    monkeypatch.setattr("codechat.models.calls.brake.futures.wait", interrupted)
    assert run_coroutine(until_pulled, brake) == "interrupted" and brake.interrupted
