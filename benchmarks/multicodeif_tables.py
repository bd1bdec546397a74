"""MultiCodeIF's published outputs through the whole engine, held to the figures that were published.

    python benchmarks/multicodeif_tables.py DATA

DATA holds `multicodeif_tasks.jsonl.gz` and the outputs of three models. Every file is imported and replayed with
`protocol.harness=official`; what a judge decides is taken from the published verdicts (`judge=recorded`). Prints ours,
the published figure and whether they agree: Table V, the verdicts by category beside Table IV, self-repair with and
without the categories whose feedback is a solution, and how often the published judge fails a reply that it passed
before; and beside them what the guarded harness finds. Exits 1 if a figure that the published outputs can give
disagrees, or if less than 99.9 % of the verdicts of rules and judge agree. The language's type and version are shown
apart: upstream's tools for them are not at hand.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.records import SessionRecord, read_sessions
from codechat.studies.multicodeif.chapter.published import paper
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord
from codechat.studies.multicodeif.metrics_repair import repair_metrics

MODELS = ("gpt-4o", "deepseek-v3-0324", "Qwen3-1.7B")
REPAIRED = "gpt-4o"
LEAKING = frozenset(kind.category for kind in constraint_types() if kind.solved)
"""The categories whose published answer is a whole solution."""
ROUNDS = (0, 1, 3)  # round 2 was round 1 again, and round 4 has verdicts of rules alone
OFFICIAL = {"ifrepair": (60.2, 70.6, 72.8), "ifrepair_without_leaks": (63.3, 68.1, 70.3)}
LEAST = 0.999


@dataclass
class Held:
    """The comparisons so far: how many failed."""

    failed: int = 0

    def hold(self, name: str, ours: Sequence[float], published: Sequence[float], spread: float = 0.05) -> None:
        """Print a comparison, and remember if a figure is off by more than its rounding."""
        agree = len(ours) == len(published) and all(
            abs(one - other) <= spread + 1e-9 for one, other in zip(ours, published, strict=True)
        )
        self.failed += not agree
        print(f"  {name:44}{_row(ours)}  {_row(published)}  {'agree' if agree else 'DISAGREE'}")


def _row(values: Iterable[float]) -> str:
    return " ".join(f"{value:6.1f}" for value in values)


@dataclass(frozen=True)
class Data:
    """The published files, and a folder for what is made of them."""

    source: Path
    folder: Path
    made: dict[str, Path] = field(default_factory=dict)

    def recording(self, mode: str, model: str) -> Path:
        """The sessions of a published file."""
        out = self.folder / f"{mode}_{model}.jsonl"
        if not out.exists():
            source = self.source / f"multicodeif_{mode}_{model}.jsonl.gz"
            codechat("import", "format=multicodeif", f"source={source}", f"out={out}", "missing=empty")
        return out

    def replay(self, mode: str, model: str, *words: str) -> Path:
        """The folder of a cell that replays a published file with the published harness."""
        recording, runs = self.recording(mode, model), self.folder / f"{mode}_{model}"
        codechat(
            *("dataset=multicodeif", f"dataset.path={self.source / 'multicodeif_tasks.jsonl.gz'}", *words),
            *("protocol.harness=official", "model=replay", f"model.path={recording}"),
            *("judge=recorded", f"judge.path={recording}", "tracking=none", f"runs_dir={runs}"),
        )
        return next(runs.glob("*/sessions.jsonl")).parent

    def published(self, mode: str, model: str) -> Iterator[dict[str, Any]]:
        """The lines of a published file."""
        with gzip.open(self.source / f"multicodeif_{mode}_{model}.jsonl.gz", "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def codechat(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "codechat", *words], check=True, stdout=subprocess.DEVNULL)


def levels(data: Data, held: Held) -> None:
    print("\nTable V, levels 1 to 4: ours, published (the two replies that DeepSeek-V3 lacks count as empty ones)")
    for model in MODELS:
        cell = data.replay("multi", model, "dataset.part=levels", "protocol=levels")
        found = json.loads((cell / "metrics.json").read_text())
        printed = paper().satisfaction[paper().name_of(model)]
        for key, published in (("ssr", printed[:4]), ("hsr", printed[5:9])):
            held.hold(f"{model} {key.upper()}", [100 * value for value in found[f"{key}_official"]], published)
            print(f"  {'':44}{_row(100 * value for value in found[f'{key}_guarded'])}  by the guarded harness")


@dataclass
class Verdicts:
    """Verdicts of a replay beside the published ones on the same replies, by what decides them."""

    pairs: list[tuple[ConstraintRecord, ConstraintRecord]] = field(default_factory=list)

    def add(self, cell: Path, recording: Path) -> None:
        known = {session.task_id: session for session in read_sessions(recording)}
        for session in read_sessions(cell / "sessions.jsonl"):
            assert session.status == "completed", session.error
            for turn in session.turns:
                theirs = ConstrainedTurn.of(known[session.task_id].turns[turn.turn]).constraints
                self.pairs += zip(ConstrainedTurn.of(turn).constraints, theirs, strict=True)

    def show(self, title: str, held: Held) -> None:
        print(f"\n{title}: verdicts decided here and published, and how many agree")
        kinds = sorted({ours.by for ours, _ in self.pairs})
        counts = Counter(
            (ours.by, theirs.met is ours.official) for ours, theirs in self.pairs if _decided(ours, theirs)
        )
        for by in kinds:
            agree, count = counts[by, True], counts[by, True] + counts[by, False]
            print(f"  {by:12}{agree:6} of {count:6}", end="\n" if count else "  (undecided here, or no verdict)\n")
        agree = sum(counts[by, True] for by in ("rule", "judge"))
        count = agree + sum(counts[by, False] for by in ("rule", "judge"))
        print(f"  rules and judge agree in {100 * agree / count:.2f} %")
        held.failed += agree < LEAST * count


def _decided(ours: ConstraintRecord, theirs: ConstraintRecord) -> bool:
    return ours.official is not None and theirs.met is not None


def first_replies(data: Data, held: Held) -> None:
    """The first replies by category: decided here, by the published verdicts on the same, and in Table IV."""
    for model in MODELS:
        cell, recording = data.replay("single", model, "protocol=repair", "protocol.rounds=0"), Verdicts()
        recording.add(cell, data.recording("single", model))
        recording.show(f"{model}, first replies", held)
        print("  category                    of  undecided    ours  published verdicts  Table IV  guarded")
        for category, printed in zip(paper().categories, paper().accuracy[paper().name_of(model)], strict=False):
            own = [(ours, theirs) for ours, theirs in recording.pairs if ours.category == category]
            both = [(ours, theirs) for ours, theirs in own if _decided(ours, theirs)]
            ours = _share(one.official for one, _ in both)
            theirs = _share(one.met for _, one in both)
            guarded = _share(one.guarded for one, _ in own)
            print(
                f"  {category:25}{len(own):5}{len(own) - len(both):11}{ours:>8}{theirs:>20}{printed:10.1f}{guarded:>9}"
            )
        official = [ours.official for ours, _ in recording.pairs if ours.official is not None]
        right = [ours.guarded for ours, _ in recording.pairs if ours.guarded is not None]
        print(f"  all that is decided here: official {_share(official)} of {len(official)}, ", end="")
        print(f"guarded {_share(right)} of {len(right)}")


def _share(values: Iterable[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * sum(map(bool, known)) / len(known):.1f}" if known else "-"


def self_repair(data: Data, held: Held) -> None:
    recording = data.recording("selfrepair", REPAIRED)
    found = repair_metrics(read_sessions(recording), rounds=3, rejudge=True, seed=0)
    print("\nIFRepair@0, 1, 3 of the published verdicts: ours, published")
    for key, published in OFFICIAL.items():
        held.hold(key, [100 * found[key][number] for number in ROUNDS], published)
    printed = paper().ifrepair[paper().name_of(REPAIRED)]
    print(f"  {'as Table VI prints it':44}{_row(printed[number] for number in ROUNDS)}")
    gained, lost = _changes(read_sessions(recording))
    net = sum(gained.values()) - sum(lost.values())
    held.hold("gained and lost in round 1", [sum(gained.values()), sum(lost.values())], (178, 18))
    leaking = sum(gained[name] - lost[name] for name in LEAKING)
    held.hold("net gain, and that of the leaking categories", [net, leaking], (160, 101))
    cell = data.replay("selfrepair", REPAIRED, "protocol=repair", "protocol.rejudge=true", "protocol.rounds=3")
    verdicts = Verdicts()
    verdicts.add(cell, recording)
    verdicts.show(f"{REPAIRED}, rounds 0 to 3", held)
    for harness in ("official", "guarded"):
        for name, leaving in (("", frozenset[str]()), (" without the leaking categories", LEAKING)):
            rates, count = _rounds(read_sessions(cell / "sessions.jsonl"), harness, leaving)
            print(f"  {f'{harness}, decided here{name}':57}{_row(rates)}  of {count} tasks")


def _rounds(sessions: Iterable[SessionRecord], harness: str, leaving: Collection[str]) -> tuple[list[float], int]:
    """The share of tasks that are met in each of the rounds, by a harness, of those decided in all of them."""
    found = []
    for session in sessions:
        turns = [ConstrainedTurn.of(session.turns[number]) for number in ROUNDS]
        met = [turn.all_met(harness) for turn in turns]
        if None not in met and turns[0].constraints[0].category not in leaving:
            found.append(met)
    return [100 * sum(map(bool, each)) / len(found) for each in zip(*found, strict=True)], len(found)


def _changes(sessions: Iterable[SessionRecord]) -> tuple[Counter[str], Counter[str]]:
    """The tasks that round 1 gains and loses, by category."""
    gained: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for session in sessions:
        first, second = session.turns[:2]
        category = ConstrainedTurn.of(first).constraints[0].category
        gained[category] += bool(second.passed and not first.passed)
        lost[category] += bool(first.passed and not second.passed)
    return gained, lost


def judge_noise(data: Data, held: Held) -> None:
    """Replies that passed and were carried over unchanged, and how many the judge of the next round failed."""
    with gzip.open(data.source / "multicodeif_tasks.jsonl.gz", "rt", encoding="utf-8") as file:
        judged = {task["task_id"]: task for task in map(json.loads, file) if task["check"] == "llm"}
    carried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for row in data.published("selfrepair", REPAIRED):
        if row["task_id"] in judged and row["feedback_prompt"] is None and row["official_verdict"] is not None:
            assert row["previous_round_verdict"], "what is carried over had passed"
            kind = judged[row["task_id"]]["constraint_type"]
            carried[kind] += 1
            failed[kind] += not row["official_verdict"]
    print("\nThe published judge on replies that it had passed and that were carried over unchanged")
    held.hold("carried over, failed", [carried.total(), failed.total()], (891, 43))
    quality = "non_functional_requirements"
    held.hold("of quality", [carried[quality], failed[quality]], (89, 11))
    for kind in sorted(carried):
        print(f"  {kind:44}{carried[kind]:6} {failed[kind]:6}  {100 * failed[kind] / carried[kind]:.1f} %")
    same = 100 * (1 - failed.total() / carried.total())
    print(f"  It agrees with itself in {same:.1f} % of passing replies: no judge can be held to agree with it in more.")


def main() -> int:
    held = Held()
    with tempfile.TemporaryDirectory() as folder:
        data = Data(Path(sys.argv[1]), Path(folder))
        levels(data, held)
        first_replies(data, held)
        self_repair(data, held)
        judge_noise(data, held)
    print(f"\n{held.failed or 'none'} of the comparisons disagree" if held.failed else "\nall comparisons agree")
    return 1 if held.failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
