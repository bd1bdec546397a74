"""CodeIF-Bench's published completions through the whole engine, held to the verdicts that were published with them.

    python benchmarks/codeif.py DATA [MODEL,MODEL]

DATA holds `codeif_l1_tasks_v0_*.jsonl.gz` and `codeif_l1_<mode>_<model>.jsonl.gz`. Every file is imported and replayed
with `protocol=static protocol.harness=official`, in the context that its mode is. Rows with a known issue and rows that
were not scored are left out of the agreement, as DATA's README says; pass counts are of all scored rows. Prints every
difference of the benchmark's own harness, and exits 1 where less than 99 % of its verdicts agree.
"""

import gzip
import importlib.metadata
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.records import TurnRecord, read_sessions
from codechat.studies.codeif.metrics import Exchange

CONTEXTS = {"single_round": "single", "multi_round": "multi", "n_round": "n_round"}
LIBRARIES = ("radon", "mccabe", "pycodestyle", "numpy", "scipy", "sympy")
LEAST = 0.99
Key = tuple[str, str]  # task and strategy


@dataclass(frozen=True)
class Row:
    """One published reply with its verdict, and what both harnesses say of it here."""

    mode: str
    model: str
    published: dict[str, Any]
    turn: TurnRecord

    @property
    def strategy(self) -> str:
        return str(self.published["instruction_type"])

    @property
    def theirs(self) -> bool | None:
        return self.published["official_passed"]  # type: ignore[no-any-return]

    @property
    def official(self) -> bool | None:
        verdict = Exchange.of(self.turn).official
        return None if verdict is None else verdict.passed

    @property
    def compared(self) -> bool:
        return self.published["known_issue"] is None and self.theirs is not None


def published(data: Path, mode: str, model: str) -> dict[Key, dict[str, Any]]:
    with gzip.open(data / f"codeif_l1_{mode}_{model}.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream]
    return {(f"CodeIF/{row['task_id']}", row["instruction_type"]): row for row in rows}


def replayed(data: Path, mode: str, model: str, folder: Path) -> Iterator[tuple[Key, TurnRecord]]:
    """Import and replay one file; the turns by task and strategy."""
    recording, runs = folder / f"{mode}-{model}.jsonl", folder / f"{mode}-{model}"
    tasks = next(data.glob("codeif_l1_tasks_v0_*.jsonl.gz"))
    source = data / f"codeif_l1_{mode}_{model}.jsonl.gz"
    codechat("import", "format=codeif", f"source={source}", f"out={recording}", f"tasks={tasks}")
    codechat(
        *("dataset=codeif_bench", f"dataset.path={tasks}", "protocol=static", "protocol.harness=official"),
        *(f"protocol.context={CONTEXTS[mode]}", "model=replay", f"model.path={recording}"),
        *("tracking=none", f"runs_dir={runs}"),
    )
    for session in read_sessions(next(runs.glob("*/sessions.jsonl"))):
        assert session.status == "completed", session.error
        for turn in session.turns:
            requirement = Exchange.of(turn).requirement
            yield (session.task_id, requirement.strategy if requirement else "Base"), turn


def codechat(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "codechat", *words], check=True, stdout=subprocess.DEVNULL)


def rows_of(data: Path, model: str, folder: Path) -> list[Row]:
    """Every published reply of a model; the base replies, which all contexts begin with, once."""
    rows = []
    for mode in CONTEXTS:
        turns = dict(replayed(data, mode, model, folder))
        known = published(data, mode, model)
        rows += [Row(mode, model, row, turns[key]) for key, row in known.items()]
        if mode == "n_round":
            base = published(data, "base", model)
            rows += [Row("base", model, row, turns[key]) for key, row in base.items()]
    return rows


def show_agreement(rows: list[Row]) -> float:
    compared = [row for row in rows if row.compared]
    print(f"\n{'model':22}{'mode':14}{'compared':>9}{'official':>9}{'guarded':>9}{'passes':>8}{'theirs':>8}")
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.model, row.mode].append(row)
    for (model, mode), own in groups.items():
        held = [row for row in own if row.compared]
        scored = [row for row in own if row.theirs is not None]
        cells = (
            *(len(held), sum(row.official == row.theirs for row in held)),
            *(sum(row.turn.passed == row.theirs for row in held),),
            *(sum(bool(row.official) for row in scored), sum(bool(row.theirs) for row in scored)),
        )
        print(f"{model:22}{mode:14}{cells[0]:9}{cells[1]:9}{cells[2]:9}{cells[3]:8}{cells[4]:8}")
    official = sum(row.official == row.theirs for row in compared) / len(compared)
    guarded = sum(row.turn.passed == row.theirs for row in compared) / len(compared)
    print(f"\nof {len(compared)} verdicts: the benchmark's own harness agrees in {100 * official:.2f} %, ", end="")
    print(f"the guarded one, on the same program, in {100 * guarded:.2f} %")
    known = [row for row in rows if row.published["known_issue"] is not None and row.theirs is not None]
    again = sum(row.official == row.published["rerun_passed"] for row in known)
    print(f"of {len(known)} verdicts with a known issue, {again} are those of DATA's own re-execution with Python 3.9")
    return official


def show_decided(rows: list[Row]) -> None:
    """How many checks of single instructions were decided out of the program's reach, and why the others were not."""
    checks = [check for row in rows for check in Exchange.of(row.turn).checks if check.decided]
    outside = sum(check.decided == "outside" for check in checks)
    print(f"\nof {len(checks)} checks of one instruction, {outside} ({outside / len(checks):.1%}) were decided outside")
    reasons = [why for row in rows if (why := getattr(row.turn, "inside", None))]
    for reason, count in Counter(reasons).most_common(12):
        print(f"  {count:5d}  turns inside: {reason}")


def show_rates(rows: list[Row]) -> None:
    """Pass rates of the benchmark's own harness, as run here and as published."""
    for mode, by, name in (("multi_round", "strategy", "type"), ("n_round", "turn", "turn")):
        groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            if row.mode == mode and row.theirs is not None:
                label = row.strategy if by == "strategy" else f"T{row.published['turn']}"
                groups[row.model, label].append(row)
        print(f"\n{mode} by {name}: passes here, published, of")
        for (model, label), own in sorted(groups.items()):
            here, theirs = sum(bool(row.official) for row in own), sum(bool(row.theirs) for row in own)
            print(f"  {model:22}{label:28}{here:4}{theirs:5}{len(own):5}{100 * here / len(own):8.1f} %")


def show_differences(rows: list[Row]) -> None:
    differing = [row for row in rows if row.compared and row.official != row.theirs]
    print(f"\n{len(differing)} verdicts of the benchmark's own harness differ")
    for row in differing:
        verdict = Exchange.of(row.turn).official
        said = str(row.published["official_result"]).strip().splitlines()[-1]
        print(f"  {row.mode} {row.model} task {row.published['task_id']} {row.strategy}: published {said!r}, ", end="")
        print(f"here {verdict.outcome if verdict else None!r} {verdict.reason if verdict else ''!r}")
    guarded = Counter(
        (
            row.strategy,
            "passes" if row.turn.passed else "fails",
            row.turn.failure.reason[:70] if row.turn.failure else "",
        )
        for row in rows
        if row.compared and row.turn.passed != row.theirs
    )
    print(f"\n{sum(guarded.values())} guarded verdicts differ from the published ones")
    for (strategy, here, reason), count in guarded.most_common():
        print(f"  {count:4}  {strategy}: here it {here} {reason}".rstrip())


def main() -> int:
    data = Path(sys.argv[1])
    bases = sorted(data.glob("codeif_l1_base_*.jsonl.gz"))
    models = [path.name.removeprefix("codeif_l1_base_").removesuffix(".jsonl.gz") for path in bases]
    if len(sys.argv) > 2:
        models = sys.argv[2].split(",")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    print(f"Python {platform.python_version()}, {versions}", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            rows += rows_of(data, model, Path(folder))
            print(f"{model} done", flush=True)
    agreed = show_agreement(rows)
    show_decided(rows)
    show_rates(rows)
    show_differences(rows)
    return 0 if agreed >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
