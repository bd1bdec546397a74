"""What the start of a small cell costs, as `benchmarks/start.py` measures it, and which libraries it loads."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

RENDERED = True
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FIRST_CALL, WHOLE = 1000, 2500  # pieces of fixed work that take as much CPU time: twice what it takes


@pytest.fixture(scope="module")
def told() -> str:
    """What the benchmark prints of one time."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "start.py"), "1"], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_a_small_cell_starts_in_little_time(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    work_s = min(import_module("engine_cost").fixed_work() for _ in range(20)) / 1000
    first, whole = map(float, re.findall(r"([\d.]+) s of CPU", told))
    assert 0 < first < whole
    assert first < FIRST_CALL * work_s
    assert whole < WHOLE * work_s


def test_no_slow_library_is_loaded_before_the_first_call(told: str) -> None:
    assert re.search(r"^loaded at first call +none$", told, re.MULTILINE)


def test_a_small_cell_loads_only_what_refactors_tests_trends_and_draws(told: str) -> None:
    loaded = re.search(r"^loaded at the end +(.*)$", told, re.MULTILINE)
    assert loaded is not None
    assert loaded[1].split() == ["libcst", "matplotlib", "numpy", "scipy", "scipy.special"]
