"""Sessions of several lengths, offline: one long cell holds the short ones, and learned agendas end where they end.

The figures of the report are recomputed here from sessions.jsonl.
"""

import csv
import json
import random
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from support.refine_cells import of

pytestmark = pytest.mark.long
WORDS = ("tracking=none", "hardware.workers=1", "model=drifter")
PAGE = (Path(__file__).parents[2] / "docs" / "beyond.md").read_text(encoding="utf-8")
PAGE = PAGE.partition("## Agendas from dialogues")[2].partition("\n## ")[0]
SHOWN = {"mst": 3, "mst_share": 3, "pass_last": 3, "delta_pct": 1, "regression": 3}
CUTS = (4, 6, 8, 10, 15, 20)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sessions_of(pattern: str) -> list[dict[str, Any]]:
    (path,) = Path("runs").glob(f"{pattern}/sessions.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(name: str) -> list[dict[str, str]]:
    with Path("out/tables", f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


def untimed(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in turn.items() if key not in ("cpu_s", "latency_s")} for turn in turns]


def figures(sessions: Sequence[dict[str, Any]], cut: int) -> dict[str, float]:
    """MST, Pass@1 at the last turn, its change and regression of sessions that are cut."""
    sustained = last = first = met = broke = 0
    for session in sessions:
        turns = session["turns"][:cut]
        failed = [turn["turn"] for turn in turns if not turn["passed"]]
        sustained += min([*failed, len(turns)])
        first, last = first + turns[0]["passed"], last + turns[cut - 1]["passed"]
        for before, turn in pairwise(turns):
            met += before["passed"] and not turn["skipped"]
            broke += before["passed"] and not turn["skipped"] and not turn["passed"]
    count = len(sessions)
    return {
        "mst": sustained / count, "mst_share": sustained / count / cut, "pass_last": last / count,
        "delta_pct": 100 * (last - first) / first, "regression": broke / met,
    }  # fmt: skip


def interval(sessions: Sequence[dict[str, Any]], cut: int, key: str) -> tuple[float, float]:
    """The 95 % interval of a figure by resampling sessions, one of each task."""
    draws = random.Random(cut)
    values = sorted(figures(draws.choices(sessions, k=len(sessions)), cut)[key] for _ in range(1000))
    return values[24], values[974]


def test_a_cell_of_ten_turns_in_blocks_is_the_beginning_of_the_one_of_twenty() -> None:
    for turns in (10, 20):
        assert main([*WORDS, "agenda=blocks", f"agenda.turns={turns}", "dataset.limit=12"]) == 0
    short, long = sessions_of("*blocks-12-tasks-*"), sessions_of("*blocks-20-turns-*")
    assert len(short) == len(long) == 12
    for one, other in zip(short, long, strict=True):
        assert one["task_id"] == other["task_id"] and one["agenda"] == other["agenda"][:9]
        assert untimed(one["turns"]) == untimed(other["turns"][:10])
    assert main(["report", "runs=runs", "out=out"]) == 0
    rows = {(row["n"] if "n" in row else row["turns"], row["cut"]): row for row in table("session_length")}
    for key in ("mst", "pass_last", "delta_pct", "regression"):
        assert rows["10", "10"][key] == rows["20", "10"][key], "the metrics of the short cell are those of the cut"
    assert [row["turns"] for row in table("ablation_turns")] == ["10", "20"]


def test_the_sweep_is_one_cell_whose_figures_are_cut(rendered: None) -> None:
    sweep, report = PAGE.split("```console\n")[1].split("```")[0].splitlines()
    assert main([*sweep.split()[1:], "tracking=none"]) == 0
    sessions = sessions_of("*")
    assert len(sessions) == 50 and all(len(session["turns"]) == 20 for session in sessions)
    assert main([*report.split()[1:-1], "out=out"]) == 0
    rows = table("session_length")
    for row in (row for row in rows if row["cut"] in ("4", "10", "20")):
        rounded = [f"{float(row[key]):.{places}f}".replace("-", "−") for key, places in SHOWN.items()]
        assert f"| {' | '.join([row['cut'], *rounded])} |" in PAGE, "what the page shows"
    assert [int(row["cut"]) for row in rows] == list(CUTS)
    for row in rows:
        cut = int(row["cut"])
        expected = figures(sessions, cut)
        for key, value in expected.items():
            assert float(row[key]) == pytest.approx(value, abs=1e-9), f"{key} at {cut}"
        for key in ("mst", "pass_last", "delta_pct", "regression"):
            low, high = interval(sessions, cut, key)
            reach = 0.25 * (high - low)
            assert float(row[f"{key}_ci_low"]) == pytest.approx(low, abs=reach), f"{key} at {cut}"
            assert float(row[f"{key}_ci_high"]) == pytest.approx(high, abs=reach), f"{key} at {cut}"
    whole = json.loads(next(Path("runs").glob("*/metrics.json")).read_text())
    assert float(rows[-1]["mst"]) == pytest.approx(whole["mst"]) and "learned" not in whole and "n" not in whole
    assert float(rows[-1]["regression"]) == pytest.approx(whole["regression"]["overall"])
    listed = json.loads(Path("out/contents.json").read_text())
    assert "session_length" in listed["figures"] and Path("out/figures/session_length.svg").is_file()


def test_it_costs_twenty_turns_a_task_where_six_cells_cost_sixty_three(capsys: pytest.CaptureFixture[str]) -> None:
    planned = []
    for words in (["+sweep=session_length"], ["agenda=balanced", f"agenda.turns={','.join(map(str, CUTS))}"]):
        assert main(["-m", *words, *WORDS, "dataset.limit=5", "dry_run=true"]) == 0
        told = re.findall(r"would hold (\d+) sessions?, (\d+) turns", capsys.readouterr().out)
        planned.append(sum(int(turns) for _, turns in told[: 1 if "+sweep" in words[0] else 6]) / 5)
    assert planned == [20, 63]


def test_sessions_with_learned_agendas_end_where_their_dialogue_would(capsys: pytest.CaptureFixture[str]) -> None:
    add, remove, recur = (
        of(*kind)[0].text for kind in (("cosmetic", "add"), ("structural", "add"), ("semantic", "add"))
    )
    dialogues = [{"turns": [add, remove]}, {"turns": [add, "Thank you!", recur, remove, add]}, {"turns": [recur]}]
    Path("d.jsonl").write_text("".join(json.dumps(each) + "\n" for each in dialogues))
    words = [*WORDS, "agenda=learned", "agenda.from=d.jsonl", "dataset.limit=20"]
    assert main([*words, "agenda.turns=5"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "3 dialogues with 8 follow-up requests, 88 % recognised" in told and "not the same ones" in told
    sessions = sessions_of("*learned*")
    lengths = {len(session["turns"]) for session in sessions}
    assert lengths == {2, 3, 5}, "6 is cut"
    assert all(len(session["turns"]) == len(session["agenda"]) + 1 for session in sessions)
    metrics = json.loads(next(Path("runs").glob("*/metrics.json")).read_text())
    for turn in range(5):
        had = [session["turns"][turn]["passed"] for session in sessions if len(session["turns"]) > turn]
        assert metrics["n"]["pass_at_1"][turn] == len(had)
        assert metrics["pass_at_1"][turn] == pytest.approx(sum(had) / len(had))
    alive = [min([t["turn"] for t in s["turns"] if not t["passed"]] + [len(s["turns"])]) for s in sessions]
    assert metrics["mst"] == pytest.approx(sum(alive) / len(alive))
    assert main([*words, "agenda.turns=5", "seed=1"]) == 0
    assert main(["report", "runs=runs", "out=out"]) == 0, "two seeds of it are pooled"
    rows = {row["after"]: row for row in table("learned")}
    # 3 add, 2 structural and 2 semantic of 7; after cosmetic one structural, and one more request as all are
    assert float(rows["all requests"]["cosmetic"]) == pytest.approx(3 / 7)
    assert float(rows["after cosmetic"]["structural"]) == pytest.approx((1 + 2 / 7) / 2)
    assert float(rows["at first"]["semantic"]) == pytest.approx((1 + 2 / 7) / 4)
    assert "88 % recognised" in Path("out/index.html").read_text(encoding="utf-8")
    assert main([*words, "agenda.turns=5", "stop.width=0.5"]) == 2, "its intervals are of one length"


def test_every_arm_of_the_agendas_runs() -> None:
    assert main(["-m", "+sweep=agenda_distribution", *WORDS, "dataset.limit=3"]) == 0
    cells = [path.parent for path in Path("runs").glob("*/metrics.json")]
    assert len(cells) == 11
    asked = {tuple(map(tuple, (one["agenda"] for one in sessions_of(cell.name)))) for cell in cells}
    assert len(asked) == 11, "no two arms are equal"
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert {"additions", "changes", "cells"} < {row["agenda"] for row in table("ablation_agenda")}
