"""What the start of a small cell costs, as `benchmarks/start.py` measures it, and which libraries it loads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

RENDERED = True
START = Path(__file__).parents[2] / "benchmarks" / "start.py"
FIRST_CALL_S, WHOLE_S = 2.5, 4.5  # three times what an idle core takes


@pytest.fixture(scope="module")
def told() -> str:
    """What the benchmark prints of one time."""
    done = subprocess.run([sys.executable, str(START), "1"], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_a_small_cell_starts_in_little_time(told: str) -> None:
    first, whole = map(float, re.findall(r"([\d.]+) s of CPU", told))
    assert 0 < first < whole
    assert first < FIRST_CALL_S
    assert whole < WHOLE_S


def test_no_slow_library_is_loaded_before_the_first_call(told: str) -> None:
    assert re.search(r"^loaded at first call +none$", told, re.MULTILINE)


def test_a_small_cell_loads_only_what_refactors_tests_trends_and_draws(told: str) -> None:
    loaded = re.search(r"^loaded at the end +(.*)$", told, re.MULTILINE)
    assert loaded is not None
    assert loaded[1].split() == ["libcst", "matplotlib", "numpy", "scipy", "scipy.special"]
