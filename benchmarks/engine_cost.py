"""What a turn costs the engine, in units of a fixed piece of work that is timed in the same minute.

    python benchmarks/engine_cost.py            # prints the ratio beside the kept one; exit status 1 if it has grown

A turn's CPU time (`scale.py --one`, no model, no sandbox) is divided by that of the fixed work below, which is what an
engine does most: syntax trees, JSON, hashes. Both alternate, and the least of each counts, so that a busy or a slow
machine moves the ratio little. `KEPT` is the figure of the tree that last changed it on purpose.
"""

import ast
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

KEPT = 0.82
"""The ratio that counts as today's. Lower it when the engine becomes cheaper; raise it only with a reason."""
TOLERANCE = 0.25
"""The share by which the ratio may exceed `KEPT`: two sittings on one tree differ by less."""
ROUNDS = 5
SESSIONS = 200

PROGRAM = "".join(
    f"def f{n}(items, limit={n}):\n    found = {{}}\n    for key, value in sorted(items):\n        if value > limit:\n"
    f"            found.setdefault(key, []).append(value * {n} + len(found))\n    return found\n"
    for n in range(10)
)


def fixed_work() -> float:
    """The CPU milliseconds of the fixed work."""
    began = time.process_time()
    for _ in range(10):
        tree = ast.parse(PROGRAM)
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        text = json.dumps({"names": names, "program": ast.unparse(tree)})
        hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest()
    return (time.process_time() - began) * 1000 / 10


def turn() -> float:
    """The CPU milliseconds of one turn, measured in a process of its own."""
    words = [sys.executable, str(Path(__file__).with_name("scale.py")), f"--one={SESSIONS}"]
    return float(json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)["cpu_ms_per_turn"])


def main() -> int:
    """Measure, compare and print."""
    turns, works = [], []
    for _ in range(ROUNDS):
        works += [fixed_work() for _ in range(3)]
        turns.append(turn())
    ratio = min(turns) / min(works)
    grown = ratio > KEPT * (1 + TOLERANCE)
    print(
        f"engine: {ratio:.3f} units of fixed work a turn, kept {KEPT:.3f} ({100 * (ratio / KEPT - 1):+.0f} %); "
        f"{min(turns):.2f} ms of CPU a turn here"
    )
    if grown:
        print(f"a turn has become dearer by more than {TOLERANCE:.0%}: find out why, or raise KEPT with the reason")
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
