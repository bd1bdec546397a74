"""Turns that are graded while a dialogue goes on: in what order, and what of them stays if something fails."""

import asyncio

import pytest

from codechat.base.errors import InfrastructureError
from codechat.base.records import TurnRecord
from codechat.run.protocols.dialogue import Graded, grade_in_order


async def test_what_fails_outside_fails_the_session_after_the_turns_before_it() -> None:
    done: list[int] = []

    async def grade(earlier: Graded | None) -> TurnRecord:
        await asyncio.sleep(0)
        before = -1 if earlier is None else (await earlier).turn
        done.append(before + 1)
        return TurnRecord(turn=before + 1)

    with pytest.RaisesGroup(pytest.RaisesExc(InfrastructureError, match="the server is gone")):
        async with grade_in_order() as grading:
            grading.start(grade)
            grading.start(grade)
            raise InfrastructureError("the server is gone")
    assert done == [0, 1]
