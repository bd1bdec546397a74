"""What starting costs: the CPU time of a cell of one task until its first call to the model, and to its end.

python benchmarks/start.py [TIMES [OVERRIDE…]]

Every time a new process runs the cell in a folder of its own, children included, with its own bytecode at hand. Prints
the medians, and which slow libraries were loaded by the first call and by the end. Overrides are added to
`dataset.limit=1 tracking=none`; the model stays `drifter`.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SLOW = (
    "aiohttp", "evalplus", "httpx2", "libcst", "matplotlib", "mlflow", "numpy", "openai", "pandas", "pyarrow",
    "requests", "scipy", "scipy.special", "scipy.stats", "sqlalchemy", "statsmodels",
)  # fmt: skip
INSIDE = "--inside"


def main(times: int, overrides: Sequence[str]) -> None:
    """Run the cell so many times, after one time that is not counted, and print the medians."""
    found = [_measure(overrides) for _ in range(times + 1)][1:]
    for name, meaning in (("first_call_s", "until the first call"), ("whole_s", "whole cell")):
        print(f"{meaning:22}{statistics.median(each[name] for each in found):.2f} s of CPU, {times} times")
    for name, meaning in (("at_first_call", "loaded at first call"), ("at_end", "loaded at the end")):
        print(f"{meaning:22}{' '.join(found[0][name]) or 'none'}")


def _measure(overrides: Sequence[str]) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = _used(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(Path(__file__).resolve()), INSIDE, "dataset.limit=1", "tracking=none", *overrides]
        subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        told: dict[str, Any] = json.loads(Path(folder, "told.json").read_text())
    return {**told, "whole_s": _used(resource.RUSAGE_CHILDREN) - before}


def _used(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _loaded() -> list[str]:
    return [name for name in SLOW if name in sys.modules]


def inside(words: Sequence[str]) -> None:
    """Run the cell in this process, as the command line does, and leave what was measured in told.json."""
    from codechat.cli.app import entry
    from codechat.studies.refine.model_baselines import Drifter

    told: dict[str, Any] = {}
    complete = Drifter.complete

    async def first(self: Drifter, request: Any) -> Any:
        told.setdefault("first_call_s", _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN))
        told.setdefault("at_first_call", _loaded())
        return await complete(self, request)

    Drifter.complete = first  # type: ignore[method-assign, assignment]
    sys.argv[1:] = words
    try:
        entry()
    finally:
        Path("told.json").write_text(json.dumps({**told, "at_end": _loaded()}))


if __name__ == "__main__":
    if sys.argv[1:2] == [INSIDE]:
        inside(sys.argv[2:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
