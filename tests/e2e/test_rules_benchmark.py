"""`benchmarks/rules.py`, the command that holds the rules to triples of a user's own."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from support.triples import Triple

pytestmark = pytest.mark.long

COMMAND = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "rules.py")]
REMOVE = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}["cosmetic-remove-comments"]
BEFORE, AFTER = "x = 1  # one\n", "x = 1\n"
OWN = {"text": "Remove all comments.", "scope": "cosmetic", "change": "remove", "rule": None}
LINES = [
    {"before": BEFORE, "instruction": REMOVE.id, "after": AFTER, "applicable": True, "adherence": "adhered"},
    {"before": BEFORE, "instruction": REMOVE.id, "after": BEFORE, "adherence": "adhered", "hard": "mislabelled"},
    {"before": BEFORE, "instruction": OWN, "after": AFTER, "adherence": "adhered"},
]
CASES = """
programs:
  plain: "y = 1\\n"
  noted: "y = 1  # one\\n"
cases:
- instruction: cosmetic-remove-comments
  fits: [noted]
  unfit: [plain]
  adhered: [[noted, "  # one", ""]]
  violated: [{hard: partial, revision: [noted, one, two]}]
"""


def test_rules_labels_and_a_second_reader(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    (tmp_path / "mine.yaml").write_text(CASES)
    triple = Triple("", REMOVE, BEFORE, AFTER, True, "adhered")
    with (tmp_path / "second.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("instruction", "triple", "applicable", "adherence"), (REMOVE.id, triple.digest, "yes", "violated")]
        )
    done = subprocess.run(
        [*COMMAND, str(tmp_path), "--second", str(tmp_path / "second.csv")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, rules, labels = (" ".join(part.split()) for part in done.stdout.split("\n\n"))
    assert "7 labelled triples" in first
    assert "overall 1.000 [0.439, 1.000] (3 of 3) 0.750 [0.301, 0.954] (3 of 4)" in first
    assert "hard: mislabelled — 0.000" in first and "hard: partial — 1.000" in first and "undecided 0 1" in first
    assert re.search("mine.jsonl:2: Remove all comments.* adhered, .* violated:", first)
    for part in (rules, labels):
        assert "(1 of 1) 0.000 [0.000, 0.793] (0 of 1) kappa 0.000" in part
