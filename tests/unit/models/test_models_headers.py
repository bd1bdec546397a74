"""Headers of one's own: sent with every request, from variables, and found nowhere afterwards."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.base.domain import Message
from codechat.base.errors import InfrastructureError, UserError
from codechat.models import MODELS, Request
from codechat.testing import Answer, BatchServer, Call, Fault, OpenAIServer, Result, error
from support.mistakes import mistake
from support.provider_servers import AWS, SERVERS

QUESTION = Request((Message("user", "Write x."),), "T/0", 0)
SECRET = 'pk "gate-way"  0123456789'
HEADERS = {"X-Auth": "GATE_KEY", "Helicone-Property-Run": "GATE_RUN"}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)
    monkeypatch.setattr("codechat.models.remote.BATCH_AGE_S", 0.0)
    monkeypatch.setenv("GATE_KEY", SECRET)
    monkeypatch.setenv("GATE_RUN", "night")


def config(**values: Any) -> Any:
    return MODELS.validate({"kind": "openai", "name": "m", "cache": False, "max_retries": 0, **values})


async def ask(url: str, **values: Any) -> str:
    model = MODELS.build(config(base_url=url, headers=HEADERS, **values))
    try:
        return (await model.complete(QUESTION)).text
    finally:
        await model.aclose()


class Noting(BatchServer):
    """Keeps the headers of every message."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.got: list[tuple[str, dict[str, str]]] = []

    async def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault:
        self.got.append((f"{method} {path}", headers))
        return await super()._respond(method, path, headers, body)


@pytest.mark.parametrize(
    "options", [{}, {"api": "responses"}, {"stream": True}, {"tier": "batch", "batch_poll_s": 0.01}]
)
async def test_every_request_has_the_headers(options: dict[str, Any]) -> None:
    with Noting(lambda call: "x", models=["m"]) as server:
        assert await ask(server.base_url, **options) == "x"
    asked = {event.partition("?")[0] for event, _ in server.got}
    assert "GET /v1/models" in asked
    assert len(asked) >= (5 if "tier" in options else 2)
    for event, headers in server.got:
        assert (headers.get("x-auth"), headers.get("helicone-property-run")) == (SECRET, "night"), event


async def test_a_header_replaces_the_clients_own() -> None:
    with OpenAIServer(lambda call: "x") as server:
        model = MODELS.build(config(base_url=server.base_url, headers={"authorization": "GATE_RUN"}))
        await model.complete(QUESTION)
        await model.aclose()
        assert server.calls[0].headers["authorization"] == "night"


@pytest.mark.long
@pytest.mark.parametrize("provider", sorted(SERVERS))
async def test_providers_send_them_too(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    for name, value in {**AWS, "TEST_KEY": "k"}.items():
        monkeypatch.setenv(name, value)
    key = {} if provider == "bedrock" else {"api_key_env": "TEST_KEY"}
    with SERVERS[provider](lambda call: "x") as server:
        assert await ask(server.base_url, kind="provider", provider=provider, max_tokens=9, **key) == "x"
        headers = {name.lower(): value for name, value in server.calls[0].headers.items()}
        assert (headers["x-auth"], headers["helicone-property-run"]) == (SECRET, "night")


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "ümlaut"])
async def test_a_variable_without_a_usable_value_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("GATE_KEY") if value is None else monkeypatch.setenv("GATE_KEY", value)
    with OpenAIServer(lambda call: "x") as server:
        with mistake("GATE_KEY") as caught:
            await ask(server.base_url)
        assert not server.calls
    assert not (value or "").strip() or value not in str(caught.value)


@pytest.mark.parametrize("name", ["", "X Auth", "X-Auth:", "Content-Length", "host", "X-Ä", "X\nY"])
def test_a_name_that_cannot_be_a_header_is_a_mistake(name: str) -> None:
    with mistake("model.headers"):
        config(headers={name: "GATE_KEY"})
    with mistake("model.headers"):
        config(headers={"X-A": "GATE_KEY", "x-a": "GATE_RUN"})


@pytest.mark.parametrize(
    "headers",
    [{"X-Auth": "sk-secret-123"}, {"X Auth": "sk-secret-123"}, {"X-Auth": {"a": "sk-secret-123"}}, "sk-secret-123",
     {"X-Auth": None}, {"X-Auth": 7355608}, {"X-A": "sk_secret", "x-a": "sk_secret"}],
)  # fmt: skip
def test_a_value_in_place_of_a_variable_is_not_repeated(headers: Any) -> None:
    with mistake("model.headers") as caught:
        config(headers=headers)
    said = f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
    assert not any(part in said for part in ("sk-secret", "sk_secret", "7355608"))


def test_they_are_no_part_of_the_identity() -> None:
    assert config(headers=HEADERS).identity() == config().identity()


FORMS = [
    "no such key: {}",
    "no such key: {!r}",
    f"{'x' * 280} {{}}",
    f"{'x' * 190} {{}}",
]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 418, 429, 500])
@pytest.mark.parametrize("form", FORMS)
async def test_an_endpoint_that_repeats_them_does_not_bring_them_into_a_message(status: int, form: str) -> None:
    said = form.format(SECRET)
    faults = [error(status, said), Fault(status, said), Fault(status, {"error": {"message": {"key": said}}})]
    for fault in faults:
        with OpenAIServer(lambda call, fault=fault: fault) as server:
            with pytest.raises((UserError, InfrastructureError)) as caught:
                await ask(server.base_url)
            for n in range(8, len(SECRET)):
                assert SECRET[:n] not in f"{caught.value}{caught.value.__cause__}"


def test_nothing_of_a_run_holds_the_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(call: Call) -> Result:
        return error(500, f"bad key {call.headers['x-auth']}") if call.number % 2 else Answer("```python\npass\n```")

    with OpenAIServer(answer) as server, caplog.at_level(logging.DEBUG):
        where = [f"model.base_url={server.base_url}", f"runs_dir={tmp_path / 'runs'}", "model.max_retries=0"]
        words = [
            "model=openai",
            "model.name=m",
            "model.headers={X-Auth: GATE_KEY}",
            "dataset.limit=3",
            "agenda.turns=2",
        ]
        outcome = run(compose([*words, *where, "judge=rules", f"tracking.uri=sqlite:///{tmp_path / 'store.db'}"]))
        assert server.calls and all(call.headers["x-auth"] == SECRET for call in server.calls)
    assert "GATE_KEY" in (outcome.folder / "config.yaml").read_text()
    parts = [SECRET.encode(), b"0123456789", json.dumps(SECRET)[1:-1].encode()]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert not any(part in held for part in parts), path
    printed = capfd.readouterr()
    assert not any(part.decode() in f"{caplog.text}{printed}" for part in parts)
