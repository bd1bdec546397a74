"""Models of other providers by the command line: whole cells, resumed cells, judges, and mistakes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.testing import Call, OpenAIServer, Result, dataset_tasks, reference_solver
from support.provider_servers import AWS, SERVERS, Server

pytestmark = pytest.mark.long

KEY = "sk-very-secret-0123456789"
SMALL = ("dataset.limit=2", "agenda.turns=2", "tracking=none", "sandbox=auto")
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)
    for name, value in {**AWS, **dict.fromkeys(KEYS.values(), KEY)}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=sorted(SERVERS))
def served(request: pytest.FixtureRequest) -> Iterator[Server]:
    with SERVERS[request.param](reference_solver(dataset_tasks("starter"))) as server:
        yield server


def cell(served: Server, runs: str, *more: str) -> int:
    named = [f"model={served.provider}", "model.name=tested", f"model.base_url={served.base_url}", f"runs_dir={runs}"]
    return main([*named, *SMALL, *more])


def record(runs: str, name: str) -> Any:
    (folder,) = Path(runs).iterdir()
    return json.loads((folder / name).read_text())


def test_a_cell_runs_and_its_second_run_asks_nobody(served: Server, capsys: pytest.CaptureFixture[str]) -> None:
    solve = served.behaviour

    def with_faults(call: Call) -> Result:
        faults: list[Result] = [served.error(429, "slow", **{"retry-after": "0.01"}), served.error(500, "oops")]
        solved = solve(call)
        assert not hasattr(solved, "__await__")
        return faults[call.number] if call.number < len(faults) else solved

    served.behaviour = with_faults
    assert cell(served, "first", "model.max_concurrency=1") == 0
    metrics = record("first", "metrics.json")
    assert metrics["pass_at_1"] == [1.0] * 2
    assert len(served.calls) == 4 + 2
    assert cell(served, "first") == 0
    assert "nothing was run" in capsys.readouterr().out
    assert cell(served, "second") == 0
    assert len(served.calls) == 4 + 2
    assert record("second", "metrics.json")["pass_at_1"] == metrics["pass_at_1"]
    assert served.base_url in (next(Path("first").iterdir()) / "config.yaml").read_text()


def test_another_version_of_the_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with SERVERS["anthropic"](reference_solver(dataset_tasks("starter"))) as served:
        solve, versions = served.behaviour, ["tested-20250929", "tested-20261101"]

        def moving(call: Call) -> Any:
            served.fingerprint = versions[call.number >= 2]
            return solve(call)

        served.behaviour = moving
        assert cell(served, "runs", "model.max_concurrency=1", "hardware.workers=1") == 0
    shown = " ".join("".join(capsys.readouterr()).split())
    assert re.search("fingerprint tested-20261101.*tested-20250929", shown)


def test_a_wrong_key_ends_the_command_and_is_written_nowhere(
    served: Server, tmp_path: Path, cache_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message, kind = served.wrong_key
    secret = KEY if served.provider in KEYS else "aws-secret"
    said = f"{message} {KEY}" if served.provider in KEYS else message
    served.behaviour = lambda call: served.error(status, said, kind)
    assert cell(served, "runs") == 2
    shown = "".join(capsys.readouterr())
    assert KEYS.get(served.provider, "AWS credentials") in shown
    assert secret not in shown
    written = [file for folder in (tmp_path, cache_folder / "replies") for file in folder.rglob("*") if file.is_file()]
    assert written
    assert not [file for file in written if secret.encode() in file.read_bytes()]


def test_a_missing_key_or_name_is_told_before_any_call(
    served: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([f"model={served.provider}", *SMALL]) == 2
    assert "model.name=VALUE" in capsys.readouterr().err
    for name in (*AWS, *KEYS.values()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert cell(served, "runs") == 2
    told = KEYS.get(served.provider, "AWS_DEFAULT_REGION")
    assert told in capsys.readouterr().err
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    if served.provider == "bedrock":
        assert cell(served, "runs") == 2
        assert "credentials" in capsys.readouterr().err
    assert served.calls == []


def test_an_overflow_ends_sessions_and_completes_them() -> None:
    with SERVERS["bedrock"](reference_solver(dataset_tasks("starter"))) as served:
        solve, overflow = served.behaviour, served.error(400, served.overflow)
        served.behaviour = lambda call: overflow if len(call.messages) > 2 else solve(call)
        assert cell(served, "runs") == 0
    (folder,) = Path("runs").iterdir()
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert {session["ended"] for session in sessions} == {"context_overflow"}


def test_a_judge_may_be_of_another_provider() -> None:
    tasks = dataset_tasks("starter")
    with SERVERS["anthropic"](reference_solver(tasks)) as judge, OpenAIServer(reference_solver(tasks)) as other:
        words = [
            "model=echo", "judge=llm", "model@judge.adherence=anthropic", "judge.adherence.name=claude-judge",
            f"judge.adherence.base_url={judge.base_url}", f"judge.applicability.base_url={other.base_url}",
        ]  # fmt: skip
        assert main([*words, *SMALL, "runs_dir=runs"]) == 0
        asked = {call.body["model"] for call in judge.calls}
    assert asked == {"claude-judge"}
    assert record("runs", "metrics.json")["undecided"] == 0


def test_unknown_providers_and_options_they_do_not_take(capsys: pytest.CaptureFixture[str]) -> None:
    named = ["model=provider", "model.name=m", *SMALL]
    for words, told in (
        (["model.provider=nobody"], "model.provider: pydantic-ai knows no 'nobody'"),
        (["model.provider=bedrock", "model.api_key_env=GEMINI_API_KEY"], "set model.api_key_env=null"),
        (["model.provider=mistral"], "needs a package that is not installed"),
        ([], "model.provider is required"),
    ):
        assert main([*named, *words]) == 2
        assert told in capsys.readouterr().err


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "model"]) == 0
    shown = capsys.readouterr().out
    assert "keys of model=provider" in shown
    for preset in SERVERS:
        assert f"  {preset} " in shown
