"""Six kills (`benchmarks/endurance.py crash` makes thirty) and a fifth of all requests failing change no record."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]


def endurance(*words: str) -> dict[str, Any]:
    """What the benchmark reports, run as a command."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "endurance.py"), *words],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report, verdict = done.stdout.splitlines()
    assert verdict == "held"
    found: dict[str, Any] = json.loads(report)
    return found


def test_kills_lose_nothing_and_pay_nothing_twice() -> None:
    report = endurance("crash", "--kills", "6", "--tasks", "16")
    assert report["kills"] == 6
    assert report["committed_asked_again"] == 0, "a reply that was on disk was paid for again"
    assert report["asked_again"] <= report["in_flight_at_most"]
    assert report["requests"] == report["needed"] + report["asked_again"] > 0
    assert report["same_records"]


def test_faults_change_no_record() -> None:
    report = endurance("faults", "--share", "0.2", "--tasks", "12")
    assert report["faults"] > 9, "every kind of fault was met"
    assert report["completed"] == report["sessions"] == 12
    assert report["same_records"]
    assert report["retries"] > 0
