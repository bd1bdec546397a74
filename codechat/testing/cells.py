"""A small cell that runs against a local server, its records, and a sandbox that runs nothing."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import run_option
from codechat.base.domain import Verdict
from codechat.base.files import content_hash
from codechat.sandbox import SANDBOXES, Command, Ran, SandboxConfig
from codechat.testing.apis import Call

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


class Instant(SandboxConfig):
    """Options of the sandbox that runs nothing."""

    kind: Literal["instant"] = run_option("instant", "passes everything")


class InstantSandbox:
    """Every verdict is a pass; nothing is run."""

    weak, notice = False, None

    def __init__(self, config: Instant) -> None:
        self.config = config

    async def lend(self, work: Any, tools: Any = ()) -> Any:
        return Verdict("pass", passed_base=True)

    async def run(self, command: Command) -> Ran:
        return Ran(0)

    async def aclose(self) -> None: ...


def register_instant() -> None:
    """Make `sandbox=instant` known in this process."""

    @SANDBOXES.register("instant", Instant)
    def instant(config: Instant, workers: int) -> InstantSandbox:
        """Passes everything at once."""
        return InstantSandbox(config)
