"""The models that need no endpoint: echo, scripted, replay."""

import json
from pathlib import Path

import pytest

from codechat.base.domain import Instruction, Message, Reply, Usage
from codechat.base.errors import ContextOverflow, InfrastructureError, UserError
from codechat.models import MODELS, BaselineView, Request
from codechat.models.scripted import Scripted
from support.benches import task_of
from support.mistakes import mistake

TASK = task_of("T/0", "def add(a, b):", "def add(a, b):\n    return a + b\n", prompt="Add.")
BARE = task_of("T/1", "def add(a, b):", prompt="Add.")


def ask(turn: int = 0, text: str = "please", view: BaselineView | None = None, task_id: str = "T/0") -> Request:
    return Request((Message("user", text),), task_id, turn, view)


def build(**values: object):
    config = MODELS.validate(values)
    return MODELS.build(config)


async def test_echo_answers_the_reference_then_the_current_code() -> None:
    echo = build(kind="echo")
    first = await echo.complete(ask(view=BaselineView(TASK, None, None, 0)))
    assert first.text == "```python\ndef add(a, b):\n    return a + b\n```\n"
    instruction = Instruction("i", "Add a comment.", "cosmetic", "add")
    later = await echo.complete(ask(1, view=BaselineView(TASK, instruction, "x = 1\n", 0)))
    assert later.text == "```python\nx = 1\n```\n"


async def test_echo_fences_code_that_holds_a_fence() -> None:
    code = 'TEXT = """\n```\n"""'
    reply = await build(kind="echo").complete(ask(1, view=BaselineView(TASK, None, code, 0)))
    assert reply.text == f"````python\n{code}\n````\n"


async def test_echo_needs_a_reference() -> None:
    with pytest.raises(UserError, match="T/1 has no reference"):
        await build(kind="echo").complete(ask(view=BaselineView(BARE, None, None, 0)))


def test_only_echo_is_a_baseline_here() -> None:
    assert {name for name in ("echo", "scripted", "replay") if MODELS[name].traits.baseline} == {"echo"}


async def test_a_list_script_answers_by_turn_and_raises_at_its_end() -> None:
    model = build(kind="scripted", replies=["zero", "one"])
    assert (await model.complete(ask(1))).text == "one"
    assert (await model.complete(ask(0))).text == "zero"
    with mistake("2 replies", "turn 2", "model.replies"):
        await model.complete(ask(2))


async def test_a_script_may_have_replies_for_every_task() -> None:
    model = build(kind="scripted", replies={"T/0": ["zero", "one"], "T/1": ["other"]})
    assert (await model.complete(ask(1))).text == "one"
    assert (await model.complete(ask(0, task_id="T/1"))).text == "other"
    with pytest.raises(UserError, match=r"no task T/2[\s\S]*'T/0'"):
        await model.complete(ask(0, task_id="T/2"))


async def test_a_script_may_raise_be_a_function_or_a_coroutine() -> None:
    with pytest.raises(InfrastructureError, match="down"):
        await Scripted([InfrastructureError("down")]).complete(ask())
    assert await Scripted(lambda request: Reply(request.task_id, None)).complete(ask()) == Reply("T/0", None)

    async def later(request: Request) -> str:
        return request.messages[0].content

    assert (await Scripted(later).complete(ask(text="hello"))).text == "hello"


# -- replay ------------------------------------------------------------------------------------------------------


def turn(number: int, response: str | None, **fields: object) -> dict[str, object]:
    outcome = {"outcome": "no_code", "passed": False, "passed_base": False}
    return {"turn": number, "response": response, "finish_reason": "stop", **outcome, **fields}


def recording(path: Path, turns: list[dict[str, object]], **fields: object) -> Path:
    session = {"schema": 1, "cell_id": "c", "session_id": "s", "task_id": "T/0", "dataset": "d", "model": "m"}
    session |= {"protocol": "refine", "agenda": [], "seed": 0, "status": "completed", "turns": turns, **fields}
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(session) + "\n")
    return path


INSTRUCTION = {"id": "i", "text": "Rename x to y.", "scope": "cosmetic", "change": "modify"}


async def test_replay_returns_what_was_recorded(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "cached_input_tokens": 2}
    turns = [turn(0, "zero", usage=usage, latency_s=1.5), turn(1, "one", instruction=INSTRUCTION)]
    model = build(kind="replay", path=str(recording(tmp_path / "s.jsonl", turns)))
    await model.check()
    assert await model.complete(ask(0)) == Reply("zero", "stop", 1.5, usage=Usage(5, 7, 2))
    assert (await model.complete(ask(1, "Now: Rename x to y. Thanks."))).text == "one"


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (ask(0, task_id="T/9"), "no session"),
        (ask(3), "fewer turns"),
        (ask(1), "skipped"),
        (ask(2, "Add a docstring."), "Rename x to y."),
        (ask(4, "Have A."), "Have B."),
    ],
)
async def test_replay_refuses_what_was_not_recorded(tmp_path: Path, request_: Request, cause: str) -> None:
    turns = [turn(0, "zero"), turn(1, None, skipped=True), turn(2, "two", instruction=INSTRUCTION)]
    turns.append(turn(4, "four", requirement={"id": "B", "strategy": "s", "text": "Have B.\n"}))
    model = build(kind="replay", path=str(recording(tmp_path / "s.jsonl", turns)))
    with mistake(cause, f"turn {request_.turn} of {request_.task_id}"):
        await model.complete(request_)


async def test_replay_overflows_where_the_recording_did(tmp_path: Path) -> None:
    path = recording(tmp_path / "s.jsonl", [turn(0, "zero"), turn(1, None)], ended="context_overflow")
    with pytest.raises(ContextOverflow):
        await build(kind="replay", path=str(path)).complete(ask(1))


async def test_replay_tells_why_an_errored_session_has_no_more(tmp_path: Path) -> None:
    path = recording(tmp_path / "s.jsonl", [turn(0, "zero")], status="errored", error="endpoint down")
    with mistake("endpoint down", "turn 1 of"):
        await build(kind="replay", path=str(path)).complete(ask(1))


async def test_replay_refuses_two_sessions_of_one_task(tmp_path: Path) -> None:
    recording(tmp_path / "s.jsonl", [turn(0, "a")])
    model = build(kind="replay", path=str(recording(tmp_path / "s.jsonl", [turn(0, "b")])))
    with pytest.raises(UserError, match="two sessions of T/0"):
        await model.check()


def test_the_identity_of_a_replay_is_its_content_not_its_place(tmp_path: Path) -> None:
    def identity(name: str, reply: str) -> dict[str, object]:
        path = recording(tmp_path / name, [turn(0, reply)])
        return MODELS.validate({"kind": "replay", "path": str(path)}).identity()

    assert identity("a", "same") == identity("b", "same") != identity("c", "other")
    assert "path" not in identity("d", "same")


def test_a_missing_recording_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    config = MODELS.validate({"kind": "replay", "path": str(tmp_path / "none.jsonl")})
    with pytest.raises(UserError, match=r"cannot read .*none\.jsonl"):
        config.identity()
