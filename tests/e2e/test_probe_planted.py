"""A probe finds the defects that a drifter put outside of the tests' reach, and nothing in right programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.commands.probe import run_probe
from codechat.run.run import run
from codechat.run.settings.compose import compose

pytestmark = pytest.mark.long

GUARD = "return None"  # of the guard, whose condition may have been named or its numbers replaced by constants


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_probe_finds_planted_defects(tmp_path: Path) -> None:
    rates = [f"model.regression.{scope}=0.5" for scope in ("cosmetic", "structural", "semantic")]
    common = ["judge=rules", "tracking=none", "dataset.limit=12", f"runs_dir={tmp_path / 'runs'}"]
    drifter = run(compose(["model=drifter", "model.unseen=1", *rates, *common]))
    refactorer = run(compose(["model=refactorer", *common]))
    assert run_probe([f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'probe'}"]) == 0
    records = {(t["cell_id"], t["session_id"], t["turn"]): t for t in lines(tmp_path / "probe" / "turns.jsonl")}

    def turns(folder: Path) -> list[tuple[bool, bool]]:
        """Whether a probed passing turn has a planted defect, and whether it differs."""
        return [
            (
                turn["code"].count(GUARD) > session["turns"][0]["code"].count(GUARD),
                record["reference"]["differs"] > 0,
            )
            for session in lines(folder / "sessions.jsonl")
            for turn in session["turns"]
            if not turn["skipped"] and turn["passed"]
            for record in [records[session["cell_id"], session["session_id"], turn["turn"]]]
        ]

    found = [differs for planted, differs in turns(drifter.folder) if planted]
    assert len(found) > 30
    assert sum(found) >= 0.9 * len(found)
    assert not any(differs for planted, differs in turns(drifter.folder) if not planted)
    assert not any(differs for _, differs in turns(refactorer.folder))
