"""What every registered model owes to the runner, whatever answers behind it."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import is_identity
from codechat.base.domain import Message, Reply
from codechat.datasets.tasks import Start
from codechat.judging.deciding import quote
from codechat.models import MODELS, BaselineView, Desk, Model, ModelConfig, Request
from codechat.models.calls.limits import dialogue_ended
from codechat.run.protocols.services import Opened
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.testing import OpenAIServer
from support.benches import task_of
from support.machine import skip_without
from support.provider_servers import AnthropicServer

KINDS = [component.name for component in MODELS]
RUN_OPTIONS = {
    "base_url",
    "api_key_env",
    "max_concurrency",
    "timeout_s",
    "call_timeout_s",
    "max_retries",
    "path",
    "prices",
    "requests_per_minute",
    "tokens_per_minute",
    "adaptive_concurrency",
    "cache",
    "neutral",
    "served_by",
    "weights_gb",
    "tier",
    "tier_fallback",
    "batch_poll_s",
    "prompt_cache",
    "headers",
    "stream",
    "slots",
    "expected",
    "shown",
    "version_command",
}
TASK = task_of("T/0", "def add(a, b):", "def add(a, b):\n    return a + b\n", prompt="Add.")
ISSUE = AssistTask("a/b#1", "Help.", author="user", thread=(Comment("ann", "2025-01-01T00:00:00Z", "Set it."),))
RECORDING = (
    '{"schema":1,"cell_id":"c","session_id":"s","task_id":"T/0","dataset":"d","model":"m","protocol":"refine","agenda":[],'
    '"seed":0,"status":"completed","turns":[{"turn":0,"response":"x","outcome":"fail","passed":false,"passed_base":false}]}'
)


@pytest.fixture
def minimal(tmp_path: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """The least that must be said to get a working model of each kind. A new kind needs its line here."""
    recording = tmp_path / "sessions.jsonl"
    recording.write_text(RECORDING + "\n", encoding="utf-8")
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    with OpenAIServer(lambda call: "x") as server, AnthropicServer(lambda call: "x") as other:
        yield {
            "agent": {"name": "m", "base_url": server.base_url, "command": ["sh", "-c", "echo x"]},
            "echo": {},
            "maintainer": {},
            "maintainer_by_turns": {},
            "reference": {},
            "rehearsed_judge": {},
            "rehearsed_user": {},
            "previous": {},
            "refactorer": {},
            "drifter": {},
            "gguf": {"path": str(file), "base_url": server.base_url},
            "openai": {"name": "m", "base_url": server.base_url},
            "provider": {"provider": "anthropic", "name": "m", "base_url": other.base_url},
            "replay": {"path": str(recording)},
            "scripted": {"replies": ["x"]},
        }


def config_of(kind: str, minimal: dict[str, dict[str, Any]]) -> ModelConfig:
    config = MODELS.validate({"kind": kind, **minimal[kind]})
    assert isinstance(config, ModelConfig)
    return config


def build(kind: str, minimal: dict[str, dict[str, Any]]) -> Model:
    config = config_of(kind, minimal)
    return MODELS.build(config)


def request(kind: str) -> Request:
    task = ISSUE if kind.startswith("maintainer") else TASK
    view = BaselineView(task, None, None, 0) if MODELS[kind].traits.baseline else None
    prompt = quote("{{conditions}}", conditions="1. Says why") if kind.startswith("rehearsed") else "Write add."
    return Request((Message("user", prompt),), task.task_id, 0, view)


@pytest.mark.parametrize("kind", KINDS)
def test_its_options_are_classified_and_described(kind: str, minimal: dict[str, dict[str, Any]]) -> None:
    config = config_of(kind, minimal)
    for name, field in type(config).model_fields.items():
        assert field.description, name
        assert is_identity(field) == (name not in RUN_OPTIONS), name


@pytest.mark.parametrize("kind", KINDS)
def test_its_identity_is_json_and_free_of_where_it_runs(kind: str, minimal: dict[str, dict[str, Any]]) -> None:
    config = config_of(kind, minimal)
    identity = config.identity()
    assert json.loads(json.dumps(identity)) == identity
    assert identity["kind"] == kind
    assert not RUN_OPTIONS & set(identity)
    assert config.model_copy(update={"max_concurrency": 3}).identity() == identity


@pytest.mark.parametrize("kind", KINDS)
async def test_it_answers_alike_alone_together_and_after_closing(
    kind: str, minimal: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    model, desks, opened = build(kind, minimal), itertools.count(), list[Opened]()

    async def complete() -> Reply:
        """The reply in a session of its own, if it works in a folder."""
        asked, name = request(kind), f"desk{next(desks)}"
        if MODELS[kind].traits.has_desk:
            opened.append(Opened())
            asked = replace(asked, desk=Desk(name, lambda: Start("solution.py"), tmp_path / name, opened[-1].get))
        try:
            return await model.complete(asked)
        finally:
            dialogue_ended(name)

    if MODELS[kind].traits.has_desk:
        skip_without()
    try:
        await model.check()
        first = await complete()
        together = await asyncio.gather(*(complete() for _ in range(5)))
        await model.aclose()
        later = await complete()
    finally:
        for each in opened:
            await each.aclose()
        await model.aclose()
        await model.aclose()
    assert isinstance(first, Reply)
    assert first.text
    assert {reply.text for reply in (*together, later)} == {first.text}


@pytest.mark.parametrize("kind", KINDS)
def test_building_it_raises_nothing_without_loop_endpoint_or_file(kind: str) -> None:
    """Only `check` and `complete` may mind that there is none."""
    needed = {
        "agent": {"name": "m", "base_url": "http://127.0.0.1:9/v1", "command": ["nothing-of-this-name"]},
        "gguf": {"path": "nowhere.gguf"},
        "openai": {"name": "m"},
        "provider": {"provider": "anthropic", "name": "m"},
        "replay": {"path": "nowhere.jsonl"},
        "scripted": {"replies": ["x"]},
    }
    build(kind, {kind: needed.get(kind, {})})


def test_naming_the_kinds_imports_no_heavy_library() -> None:
    script = (
        "import sys; from codechat.models import MODELS; list(MODELS); from codechat.judging import JUDGES; list(JUDGES)\n"
        "print(sorted({'openai', 'httpx2', 'httpx', 'pydantic_ai', 'boto3', 'mlflow', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == "[]\n"
