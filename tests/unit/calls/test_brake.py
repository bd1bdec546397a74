"""Coroutines that are run to their end, from a script as from a notebook."""

import asyncio

import pytest

from codechat.calls import Brake, run_coroutine
from codechat.errors import InfrastructureError


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
