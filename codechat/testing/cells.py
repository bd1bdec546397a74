"""A small cell that runs against a local server, and its records."""

import json
import sys
from pathlib import Path
from typing import Any

from codechat.base.files import content_hash
from codechat.testing.behaviour import Call

CONCURRENCY = 4


def command(url: str, tasks: int, runs: str, *more: str) -> list[str]:
    """The words that run the first `tasks` starter tasks against the server at `url`, with `CONCURRENCY` calls at once.

    The model's name is for `fading_solver`; no reply comes from the response cache.
    """
    return [
        sys.executable, "-m", "codechat", "tracking=none", "model=openai", f"model.base_url={url}",
        "model.name=fading-12", f"model.max_concurrency={CONCURRENCY}", f"dataset.limit={tasks}", f"runs_dir={runs}",
        "model.cache=false", *more,
    ]  # fmt: skip


def digest(call: Call) -> str:
    """The journal's digest of the request."""
    return content_hash([[message["role"], message["content"]] for message in call.messages])


def without_times(value: Any) -> Any:
    """A record without the fields whose names end in `_s`: it must be equal in two runs of one cell."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not key.endswith("_s")}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def records(runs: Path) -> list[Any]:
    """The sessions of the one cell in a folder, without times."""
    (cell,) = runs.iterdir()
    return [without_times(json.loads(line)) for line in (cell / "sessions.jsonl").read_text().split("\n")[:-1]]
