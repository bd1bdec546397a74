"""Published completions of CodeIF-Bench through import, replay and the static conversation: the published verdicts.

The whole of them is `python benchmarks/codeif.py DATA`; here is a sample.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.studies.codeif.metrics import Exchange

pytestmark = pytest.mark.long

MODEL = "gpt-4o"
TASKS = (15, 27, 54)  # a test that does not parse, which nothing passes; the usual; an extension in mid-dialogue


@pytest.fixture(scope="module")
def data() -> Path:
    named = os.environ.get("CODECHAT_TEST_DATA")
    if not named or not (Path(named) / f"codeif_l1_n_round_{MODEL}.jsonl.gz").is_file():
        pytest.skip("CODECHAT_TEST_DATA names no folder with CodeIF-Bench's completions")
    return Path(named)


def replay(data: Path, mode: str, context: str, folder: Path) -> list[SessionRecord]:
    recording = folder / "recording.jsonl"
    assert (
        main(["import", "format=codeif", f"source={data / f'codeif_l1_{mode}_{MODEL}.jsonl.gz'}", f"out={recording}"])
        == 0
    )
    words = ["dataset=codeif_bench", f"dataset.path={next(data.glob('codeif_l1_tasks_v0_*'))}", "tracking=none"]
    words += [f"dataset.tasks=[{','.join(f'CodeIF/{task}' for task in TASKS)}]", f"runs_dir={folder / 'runs'}"]
    words += ["protocol=static", f"protocol.context={context}", "protocol.harness=official"]
    assert main([*words, "model=replay", f"model.path={recording}"]) == 0
    return list(read_sessions(next((folder / "runs").glob("*/sessions.jsonl"))))


def published(data: Path, mode: str) -> dict[tuple[str, str], dict[str, Any]]:
    with gzip.open(data / f"codeif_l1_{mode}_{MODEL}.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream]
    return {(f"CodeIF/{row['task_id']}", row["instruction_type"]): row for row in rows}


@pytest.mark.parametrize(("mode", "context"), [("multi_round", "multi"), ("n_round", "n_round")])
def test_the_published_verdicts_come_out(data: Path, tmp_path: Path, mode: str, context: str) -> None:
    known = published(data, "base") | published(data, mode)
    compared, verdicts = 0, set()
    for session in replay(data, mode, context, tmp_path):
        assert session.status == "completed", session.error
        for turn in session.turns:
            exchange = Exchange.of(turn)
            row = known[session.task_id, exchange.requirement.strategy if exchange.requirement else "Base"]
            if row["known_issue"] or row["official_passed"] is None:
                continue
            assert exchange.official is not None
            assert exchange.official.passed == row["official_passed"], (session.task_id, row["instruction_type"])
            assert turn.passed == row["official_passed"], (session.task_id, row["instruction_type"])
            compared += 1
            verdicts.add(turn.passed)
    assert compared >= 15
    assert verdicts == {True, False}
