"""The keys of a judge's models are listed, and a mistake in one names the whole key."""

import socket
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.testing import OpenAIServer, dataset_tasks, reference_solver

SMALL = ("model=echo", "dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)


def closed() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_every_key_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "judge"]) == 0
    shown = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines() if len(line.split()) > 1}
    assert (
        shown["judge.applicability.base_url"] == shown["judge.llm.applicability.base_url"] == "http://127.0.0.1:8001/v1"
    )
    assert shown["judge.adherence.name"] == "openai/gpt-oss-120b"
    assert {"judge.llm.adherence.api_key_env", "judge.adherence.weights.revision", "judge.llm.max_reasks"} <= set(shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("judge=llm", "judge.applicability.temperature=9"), "judge.applicability.temperature: "),
        (("judge=hybrid", "judge.llm.adherence.temperature=9"), "judge.llm.adherence.temperature: "),
        (("judge=hybrid", "judge.llm.adherence.prices={inpt: 1, output: 2}"), "judge.llm.adherence.prices.inpt is not"),
        (("judge=llm", "judge.adherence.prices={inpt: 1, output: 2}"), "did you mean 'input' or 'cached_input'?"),
        (("judge=hybrid", "judge.llm.adherence.base_url=http://u:p@h/v1"), "judge.llm.adherence.base_url holds a user"),
        (("judge=llm", "judge.adherence.api_key_env=sk-1 2"), "judge.adherence.api_key_env is not the name"),
        (("judge=llm", "judge.base_url=x"), "set judge.applicability.base_url or judge.adherence.base_url"),
        (("judge=hybrid", "model@judge.llm.adherence=openai"), "judge.llm.adherence.name is required"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_the_whole_key(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_judge_that_cannot_be_asked_names_the_whole_key(capsys: pytest.CaptureFixture[str]) -> None:
    dead = closed()
    words = [f"judge.llm.{role}.base_url={dead}" for role in ("applicability", "adherence")]
    assert main([*SMALL, "judge=hybrid", "judge.rules_first=false", *words]) == 2
    told = capsys.readouterr().err.splitlines()
    assert dead in told[0] and "judge.llm.applicability.base_url" in told[-1]
    with OpenAIServer(reference_solver(dataset_tasks("starter"))) as server:
        keyed = [f"judge.applicability.base_url={server.base_url}", "judge.applicability.api_key_env=NO_SUCH_KEY"]
        assert main([*SMALL, "judge=llm", *keyed]) == 2
    assert "set judge.applicability.api_key_env=null" in capsys.readouterr().err
