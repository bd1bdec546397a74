"""What is sent for a batch and what a provider's answers about it mean, without a server."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from codechat.models.calls.batch_protocols import CLOCKS_S, AnthropicBatches, OpenAIBatches
from codechat.models.calls.batches import Batch, Result, State, Unreached, Unsure

MADE = 1_000_000.0
BATCH = Batch("ours", 2, MADE, file="file-1", remote="batch-1")
EARLIEST = int(MADE - CLOCKS_S)
ENDED = State("ended", 0, ended=True)


class Provider:
    """Answers one request after the other, and notes them."""

    def __init__(self, *answers: Any) -> None:
        self._answers = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in answers]
        self.asked = list[tuple[str, str, bytes | None, str]]()

    async def __call__(self, method: str, path: str, content: bytes | None, kind: str) -> bytes:
        self.asked.append((method, path, content, kind))
        return self._answers.pop(0)

    @property
    def pages(self) -> list[dict[str, list[str]]]:
        return [parse_qs(urlsplit(path).query) for _, path, _, _ in self.asked]


def openai(*answers: Any) -> tuple[OpenAIBatches, Provider]:
    provider = Provider(*answers)
    return OpenAIBatches(provider, "/chat/completions"), provider


def anthropic(*answers: Any, path: str = "/v1/messages") -> tuple[AnthropicBatches, Provider]:
    provider = Provider(*answers)
    return AnthropicBatches(provider, path), provider


def time(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()


def made(name: str, *, at: float = MADE, status: str = "ended", size: int = 2) -> dict[str, Any]:
    counts = {"succeeded": size - 1, "processing": 1}
    return {"id": name, "created_at": time(at), "processing_status": status, "request_counts": counts}


def succeeded(key: str) -> dict[str, Any]:
    return {"custom_id": key, "result": {"type": "succeeded", "message": {"said": key}}}


async def test_a_file_of_requests_is_uploaded_and_a_batch_made_of_it() -> None:
    batches, provider = openai({"id": "file-1"}, {"id": 7})
    assert await batches.upload(BATCH, {"a": b'{"n": 1}', "b": b'{"n": 2}'}) == "file-1"
    assert await batches.create(BATCH, {}) == "7"
    (how, where, content, kind), (made_how, made_where, said, made_kind) = provider.asked
    assert (how, where, made_how, made_where, made_kind) == ("POST", "/files", "POST", "/batches", "application/json")
    edge = kind.partition("boundary=")[2].encode()
    assert content is not None and said is not None and edge
    _, purpose, file, end = content.split(b"--" + edge)
    assert b"batch" in purpose and end == b"--\r\n"
    lines = [json.loads(line) for line in file.partition(b"\r\n\r\n")[2].splitlines() if line]
    assert lines == [{"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": {"n": n}}
                     for key, n in (("a", 1), ("b", 2))]  # fmt: skip
    asked = json.loads(said)
    assert asked["input_file_id"] == "file-1" and asked["endpoint"] == "/v1/chat/completions"


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"1"])
async def test_an_answer_that_is_no_object_is_none(answer: bytes) -> None:
    with pytest.raises(Unreached):
        await openai(answer)[0].state(BATCH)
    with pytest.raises(Unreached):
        await anthropic(answer)[0].state(BATCH)


async def test_a_batch_without_a_file_is_not_looked_for() -> None:
    batches, provider = openai()
    assert await batches.find(Batch("ours", 2, MADE), ["a"]) == "" and not provider.asked


async def test_a_batch_is_found_by_its_file_on_whichever_page() -> None:
    others = [{"id": f"other-{n}", "input_file_id": f"other-{n}", "created_at": MADE} for n in range(2)]
    ours = {"id": "batch-1", "input_file_id": "file-1", "created_at": MADE}
    batches, provider = openai({"data": others, "has_more": True}, {"data": [*others, ours], "has_more": True})
    assert await batches.find(BATCH, ["a"]) == "batch-1"
    assert provider.pages == [{"limit": ["100"]}, {"limit": ["100"], "after": ["other-1"]}]


@pytest.mark.parametrize(("oldest", "more", "pages"), [(EARLIEST, True, 2), (EARLIEST - 1, True, 1), (MADE, False, 1)])
async def test_it_is_looked_for_as_far_back_as_it_can_be(oldest: float, more: bool, pages: int) -> None:
    others = [{"id": "a", "created_at": oldest}, {"id": "b", "created_at": MADE}]
    batches, provider = openai({"data": others, "has_more": more}, {"data": [], "has_more": True})
    assert await batches.find(BATCH, ["a"]) == "" and len(provider.asked) == pages


async def test_other_batches_of_unknown_age_end_the_search() -> None:
    batches, provider = openai({"data": [{"id": "a"}], "has_more": True})
    assert await batches.find(BATCH, ["a"]) == "" and len(provider.asked) == 1


@pytest.mark.parametrize(
    ("word", "ended"),
    [("completed", True), ("failed", True), ("expired", True), ("cancelled", True), ("in_progress", False), ("finalizing", False)],
)  # fmt: skip
async def test_some_states_are_final(word: str, ended: bool) -> None:
    assert await openai({"status": word})[0].state(BATCH) == State(word, 0, ended)


async def test_a_state_counts_what_is_done_and_names_files_and_errors() -> None:
    errors = {"data": [{"message": f"wrong {n}"} for n in range(5)]}
    said = {"status": "failed", "request_counts": {"total": 9, "completed": 3, "failed": 2}, "errors": errors}
    said |= {"output_file_id": "", "error_file_id": "errors"}
    batches, provider = openai(said, said | {"output_file_id": "out", "request_counts": {"completed": None}})
    state = State("failed", 5, True, ("errors",), "wrong 0; wrong 1; wrong 2")
    assert await batches.state(BATCH) == state
    assert (await batches.state(BATCH)).places == ("out", "errors")
    assert provider.asked[0][:2] == ("GET", "/batches/batch-1")


async def test_results_come_from_every_file_and_a_request_without_answer_has_none() -> None:
    one = b'{"custom_id": "a", "response": {"status_code": 200, "body": {"n": 1}}}\n\n  \n'
    one += b'{"custom_id": "b", "response": {"status_code": 429, "body": {}}, "error": null}\n'
    two = b'{"custom_id": "c", "response": null, "error": {"message": "too late"}}\n{"custom_id": "d", "error": {"code": 1}}'
    batches, provider = openai(one, two)
    found = dict(await batches.results(BATCH, State("completed", 4, True, ("out", "errors"))))
    assert [path for _, path, _, _ in provider.asked] == ["/files/out/content", "/files/errors/content"]
    assert found["a"] == Result(200, b'{"n": 1}') and found["b"] == Result(429, b"{}")
    assert found["c"] == Result(0, b"too late") and found["d"].status == 0 and b"1" in found["d"].body


async def test_messages_are_sent_in_one_request_and_no_file() -> None:
    batches, provider = anthropic({"id": "batch-1"}, path="/v1/messages?beta=true")
    assert await batches.upload(BATCH, {"a": b"{}"}) == ""
    assert await batches.create(BATCH, {"a": b'{"n": 1}', "b": b'{"n": 2}'}) == "batch-1"
    ((how, path, content, _),) = provider.asked
    assert (how, path) == ("POST", "/v1/messages/batches?beta=true") and content is not None
    assert json.loads(content) == {
        "requests": [{"custom_id": key, "params": {"n": n}} for key, n in (("a", 1), ("b", 2))]
    }


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages?beta=true"])
async def test_a_batch_of_messages_is_found_by_what_its_results_answer(path: str) -> None:
    page = {"data": [made("other"), made("ours")], "has_more": True}
    batches, provider = anthropic(page, succeeded("x"), succeeded("b"), page, succeeded("b"), path=path)
    assert await batches.find(BATCH, ["a", "b"]) == "ours"
    query = path.partition("?")[1] + path.partition("?")[2]
    assert [where for _, where, _, _ in provider.asked][1:] == [f"/v1/messages/batches/{name}/results{query}"
                                                                for name in ("other", "ours")]  # fmt: skip
    assert provider.pages[0] == ({"beta": ["true"]} if query else {}) | {"limit": ["100"]}
    assert await batches.find(BATCH, ["a", "b"]) == "ours" and len(provider.asked) == 5  # the other one is known


async def test_a_batch_that_has_not_ended_may_be_ours() -> None:
    page = {"data": [made("running", status="in_progress"), made("ours")]}
    batches, _ = anthropic(page, succeeded("a"), page, succeeded("x"))
    assert await batches.find(BATCH, ["a"]) == "ours"
    with pytest.raises(Unsure):
        await batches.find(Batch("another", 2, MADE), ["a"])


@pytest.mark.parametrize(
    ("each", "asked"),
    [(made("a", size=3), 1), (made("a", at=EARLIEST - 1), 1), (made("a", at=EARLIEST), 2), ({**made("a"), "request_counts": None}, 1)],
)  # fmt: skip
async def test_batches_of_another_size_or_from_before_are_not_ours(each: dict[str, Any], asked: int) -> None:
    batches, provider = anthropic({"data": [each]}, b"")
    assert await batches.find(BATCH, ["a"]) == "" and len(provider.asked) == asked


@pytest.mark.parametrize(("at", "more", "pages"), [(EARLIEST, True, 2), (EARLIEST - 1, True, 1), (MADE, False, 1)])
async def test_messages_are_looked_for_as_far_back_as_they_can_be(at: float, more: bool, pages: int) -> None:
    first = {"data": [made("new", size=9), made("old", at=at, size=9)], "has_more": more}
    batches, provider = anthropic(first, {"data": [], "has_more": True})
    assert await batches.find(BATCH, ["a"]) == "" and len(provider.asked) == pages
    assert provider.pages[1:] == [{"limit": ["100"], "after_id": ["old"]}][: pages - 1]


async def test_a_batch_of_messages_counts_what_is_not_under_way() -> None:
    counts = {"processing": 10, "succeeded": 3, "errored": 2}
    batches, provider = anthropic(
        {"processing_status": "ended", "request_counts": counts}, {"processing_status": "canceling"}
    )
    assert await batches.state(BATCH) == State("ended", 5, ended=True)
    assert await batches.state(BATCH) == State("canceling", 0, ended=False)
    assert provider.asked[0][:2] == ("GET", "/v1/messages/batches/batch-1")


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, 529),
        ({"type": "errored", "error": {"type": "invalid_request_error"}}, 400),
        ({"type": "errored", "error": {"type": "of another kind"}}, 500),
        ({"type": "expired"}, 0),
        ({"type": "canceled"}, 0),
    ],
)
async def test_the_result_of_a_message_has_the_status_of_its_error(result: dict[str, Any], status: int) -> None:
    batches, _ = anthropic({"custom_id": "a", "result": result})
    ((key, found),) = await batches.results(BATCH, ENDED)
    assert (key, found.status) == ("a", status)
    if status:
        assert json.loads(found.body)["error"]["type"] == result["error"].get("error", result["error"])["type"]
    else:
        assert str(result["type"]).encode() in found.body


async def test_a_message_is_the_body_of_a_good_answer() -> None:
    batches, _ = anthropic(succeeded("a"))
    assert list(await batches.results(BATCH, ENDED)) == [("a", Result(200, b'{"said": "a"}'))]


KEYS = ["a" * 40, "b" * 40, "c" * 40]
DEEP = "[" * 50_000 + "]" * 50_000


async def test_a_line_that_cannot_be_read_costs_no_other_line() -> None:
    good = json.dumps({"custom_id": KEYS[0], "response": {"status_code": 200, "body": {}}})
    deep = f'{{"custom_id": "{KEYS[1]}", "response": {{"status_code": 200, "body": {DEEP}}}}}'
    odd = f'{{"custom_id": "{KEYS[2]}", "response": {{"status_code": Infinity, "body": {{}}}}}}'
    batches, _ = openai("\n".join((deep, good, odd)).encode())
    found = dict(await batches.results(BATCH, State("completed", 3, True, ("out",))))
    assert [found[key].status for key in KEYS] == [200, 0, 0]
    messages, _ = anthropic(
        f'{{"custom_id": "{KEYS[1]}", "result": {{"type": "succeeded", "message": {DEEP}}}}}'.encode()
    )
    assert next(await messages.results(BATCH, ENDED)) == (KEYS[1], found[KEYS[1]])


async def test_a_line_that_is_cut_off_is_no_answer_yet() -> None:
    line = json.dumps({"custom_id": KEYS[0], "response": {"status_code": 200, "body": {"n": 1}}}).encode()[:-9]
    batches, _ = openai(line)
    with pytest.raises(Unreached):
        dict(await batches.results(BATCH, State("completed", 1, True, ("out",))))


@pytest.mark.parametrize("answer", [{}, {"id": None}, {"id": ""}, {"id": ["x"]}, [], b"", DEEP.encode()])
async def test_what_was_made_must_be_named(answer: Any) -> None:
    for batches, _ in (openai(answer), anthropic(answer)):
        with pytest.raises(Unreached):
            await batches.create(BATCH, {"a": b"{}"})
    uploads, _ = openai(answer)
    with pytest.raises(Unreached):
        await uploads.upload(BATCH, {"a": b"{}"})


@pytest.mark.parametrize("count", [-1, 2**63, "many", None, True])
async def test_odd_counts_of_a_batch_count_nothing(count: Any) -> None:
    batches, _ = openai({"status": "in_progress", "request_counts": {"completed": count, "failed": 2}})
    assert (await batches.state(BATCH)).done == 2
    messages, _ = anthropic({"processing_status": "in_progress", "request_counts": {"succeeded": count, "errored": 2}})
    assert (await messages.state(BATCH)).done == 2


async def test_a_batch_is_found_by_its_metadata_too() -> None:
    batches, _ = openai({"data": [{"id": "b", "input_file_id": "renamed", "metadata": {"codechat": BATCH.name}}]})
    assert await batches.find(BATCH, []) == "b"
