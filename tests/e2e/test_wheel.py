"""What is installed: an installed codechat runs from any folder, so its configs and data must travel with it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def test_configs_sweeps_and_data_reach_the_wheel(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("conf", "sweeps"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                assert f"codechat/_data/{path.relative_to(ROOT)}" in names
    for path in (ROOT / "codechat").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT)) in names
    assert not [name for name in names if name.startswith(("mlflow/", "tests/", "runs/"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)
