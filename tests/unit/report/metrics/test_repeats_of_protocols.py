"""Repeats of any protocol are pooled, told of, and reported, whether or not its turns are tested."""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, read_sessions
from codechat.report.build import build_report
from codechat.report.loading import load_cells
from codechat.studies.cab.metrics import assist_metrics
from codechat.studies.cab.turns import AssistJudgement
from codechat.studies.codeif.metrics import conversation_metrics
from codechat.studies.multicodeif.metrics import levels_metrics, repair_metrics
from codechat.studies.sreval.metrics import stepwise_metrics
from support.cab import Assisted, write_assisted
from support.codeif import MEASURES, Talk, write_talk
from support.multicodeif import Constrained, write_constrained
from support.sreval import Steps, write_steps

DRAWN = True

TALK, STEPS, ASSISTED = (
    Talk("m", tasks=8, errored=1),
    Steps("m", by_turn=(9, 9, 4)),
    Assisted("m", good=0.8, undecided=5),
)
CELLS: Mapping[str, tuple[Any, Callable[[Any, Path], Path], Callable[..., dict[str, Any]]]] = {
    "static": (TALK, write_talk, partial(conversation_metrics, measures=MEASURES["static"], converses=True)),
    "dynamic": (
        replace(TALK, protocol="dynamic"),
        write_talk,
        partial(conversation_metrics, measures=MEASURES["dynamic"], converses=True),
    ),
    "stepwise": (STEPS, write_steps, stepwise_metrics),
    "repair": (Constrained("m", share=0.1), write_constrained, partial(repair_metrics, rounds=4, rejudge=False)),
    "levels": (Constrained("m", "levels"), write_constrained, levels_metrics),
    "assist": (ASSISTED, write_assisted, partial(assist_metrics, rounds=10)),
}


def report(protocol: str, runs: Path, out: Path) -> tuple[list[Path], Any]:
    """A report over three repeats, and their folders."""
    made, write, metrics = CELLS[protocol]
    folders = [write(replace(made, seed=seed), runs) for seed in (0, 1, 2)]

    def measured(config: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any]:
        return metrics(sessions, seed=config["seed"])

    return folders, build_report(load_cells([runs], lambda *_: None, measured), out)


def rows(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("protocol", CELLS)
def test_repeats_of_every_protocol_are_one_entrant(protocol: str, tmp_path: Path) -> None:
    folders, made = report(protocol, tmp_path / "runs", tmp_path)
    (pooled,) = rows(tmp_path, f"{protocol}_repeats")
    assert (pooled["samples"], pooled["seeds"]) == ("3", "0, 1, 2")
    held = [session for folder in folders for session in read_sessions(folder / "sessions.jsonl")]
    completed = [session for session in held if session.status == "completed"]
    assert int(pooled["sessions"]) == len(completed)
    assert int(pooled["tasks"]) == len({session.task_id for session in completed})
    names = {table.name for table in made.tables}
    assert (f"{protocol}_repeats_turns" in names) == (protocol != "assist"), "an assistant's turns are not tested"
    assert any(figure.of.name == f"{protocol}_repeats" for figure in made.figures) == (protocol != "assist")


def test_correct_in_one_and_in_all_of_k_samples(tmp_path: Path) -> None:
    folders, _ = report("assist", tmp_path / "runs", tmp_path)
    correct: dict[str, list[bool]] = {}
    for folder in folders:
        for session in read_sessions(folder / "sessions.jsonl"):
            if (verdict := AssistJudgement.of(session).verdict) is not None:
                correct.setdefault(session.task_id, []).append(verdict == "CORRECT")
    whole = [own for own in correct.values() if len(own) == 3]
    one, _, three = rows(tmp_path, "assist_repeats_correct")
    assert (one["k"], three["k"], int(three["tasks"])) == ("1", "3", len(whole))
    assert float(three["correct_any"]) == pytest.approx(sum(map(any, whole)) / len(whole), abs=1e-9)
    assert float(three["correct_all"]) == pytest.approx(sum(map(all, whole)) / len(whole), abs=1e-9)
    assert float(one["correct_any"]) == float(one["correct_all"])
    shares = [sum(own) / len(own) for own in correct.values()]
    assert float(one["correct_any"]) == pytest.approx(sum(shares) / len(shares), abs=1e-9)
    assert 0 < float(three["correct_all"]) < float(three["correct_any"])
