"""The simulations behind docs/statistics.md: their truths by another way, their commands in small."""

import math
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest

pytestmark = pytest.mark.simulations

ROOT = Path(__file__).parents[2]
RATES = [0.08] * 3 + [0.13] * 3 + [0.22] * 3
MENDS = 0.08


def rows(name: str, *words: str) -> list[list[str]]:
    """The cells of the table that a benchmark prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "benchmarks" / name), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]


def symmetric_mean(values: list[float], size: int) -> float:
    """The mean product of so many of the values, over all choices: of a random order's first ones, or its last."""
    return fmean(math.prod(chosen) for chosen in combinations(values, size))


def test_the_truths_by_sums_over_all_choices(tmp_path: Path) -> None:
    """Alive after t turns are E[Π(1 − p)]; with a = 1 − p − s, Pass@1 at the end is E[Π a] + s · Σ E[Π of the last m a]."""
    picture = tmp_path / "coverage.png"
    found = rows("coverage.py", "--studies", "30", "--tasks", "25", "--picture", str(picture))
    assert len(found) == 2 * 3 * 3
    assert picture.stat().st_size > 10_000

    def expected(factor: float) -> tuple[float, float]:
        lost = [factor * rate for rate in RATES]
        mst = sum(symmetric_mean([1 - rate for rate in lost], size) for size in range(10))
        kept = [1 - rate - MENDS for rate in lost]
        last = symmetric_mean(kept, 9) + MENDS * sum(symmetric_mean(kept, size) for size in range(9))
        return mst, 100 * (last - 1)

    for process, factors in (("even", [1.0]), ("uneven", [0.3, 1.7])):
        mst, delta = (fmean(each) for each in zip(*map(expected, factors), strict=True))
        told = {row[2]: float(row[3]) for row in found if row[0] == process}
        assert told["MST"] == pytest.approx(mst, rel=1e-3)
        assert told["Δ"] == pytest.approx(delta, rel=1e-3)
    for row in found:
        assert 70 <= float(row[4].removesuffix(" %")) <= 100, row


def test_the_power_simulation_runs() -> None:
    found = rows("power.py", "--studies", "20", "--tasks", "25")
    assert len(found) == 2 * 3 * 4  # by samples, by what is shared, by figure
    assert all(0 <= float(cell.removesuffix(" %")) <= 100 for row in found for cell in row[4:])


def test_corrected_adherence_covers_the_truth_and_the_raw_one_does_not() -> None:
    found = rows("powered.py", "--studies", "40", "--tasks", "60")
    assert len(found) == 3 * 6
    for column in (2, 3):
        shares = [float(row[column].partition("%")[0]) for row in found]
        assert fmean(shares) > 90
        assert min(shares) >= 75
    raw = {(row[0], row[1]): float(row[4].partition("%")[0]) for row in found}
    assert all(share < 50 for (judge, _), share in raw.items() if judge.startswith("0.7")), "a judge that misses much"


def test_stopping_when_known_is_seldom_wrong_and_saves_sessions() -> None:
    """Of 60 studies 3 would be 5 %: more than 8 are by chance once in 400."""
    found = [row for row in rows("stopping.py", "--studies", "60") if len(row) == 8 and row[0] in ("164", "378")]
    assert [row[1] for row in found] == ["0", "0", "0.3", "0.3", "0.6", "0.6", "1", "1"]
    saved = {(row[0], row[1]): float(row[3].rstrip("%")) for row in found}
    assert saved["378", "1"] > saved["378", "0.6"] > 40 > saved["378", "0.3"] > saved["378", "0"]
    for row in found:
        assert all(float(share.rstrip("%")) <= 100 * 8 / 60 for share in row[5:])
