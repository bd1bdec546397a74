"""Small changes of the code that decides, drawn by chance: how many of them does a test notice?

    python benchmarks/mutations.py run JOURNAL [--count 200] [--seed 28] [--seconds S] [--again] [--limit 120]
    python benchmarks/mutations.py report JOURNAL

A mutant is one change of a comparison, a condition, a sum, a number, a returned value, or a statement that is left out,
in the rooms below. `run` draws COUNT of all there are, copies the repository to a temporary folder, makes one change
after the other there, and runs the tests nearest to the changed file, nearest first, until one fails: that mutant is
killed. A test that fails without the change too counts for nothing. A mutant that no test notices within LIMIT seconds
survives. Each result is a line of JOURNAL: the next `run` goes on behind it, `--seconds` ends one after that time, and
`--again` tries the survivors again, with the tests of now. `report` prints the share by room, with its 95 % interval
(Wilson), and the survivors; those that `mutations_equivalent.yaml` lists, with the reason, change nothing that a test
could see, and are left out of the share.

Every run is forked out of one process that has loaded the libraries already, and takes seconds.
"""

import argparse
import ast
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("metrics", "suites", "sandbox", "judges", "calls", "journal", "engine", "protocols")
EQUIVALENT = Path(__file__).with_name("mutations_equivalent.yaml")
MARKS = "not engines and not browser and not slurm and not postgres and not ray and not simulations"
LOADED = ("numpy", "pydantic", "pytest", "yaml")  # no plugin of pytest: those are loaded by it
BATCHES = (3, 6, 12, 24)
TEST_S = 60
NEAR = 3  # steps between a test and the changed file, over imports
COMPARED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
WORDS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
COUNTED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
}


@dataclass(frozen=True)
class Mutant:
    """A change of a file: the characters from `start` to `end` become `new`. `line` has it as it was."""

    file: str
    start: int
    end: int
    new: str
    kind: str
    row: int
    line: str

    @property
    def room(self) -> str:
        return self.file.split("/")[1]

    @property
    def key(self) -> str:
        """It and no other change, wherever its line stands."""
        return f"{self.file}: {self.kind}: {self.line.strip()} -> {self.changed().strip()}"

    def changed(self) -> str:
        """The first line as it becomes."""
        text = (ROOT / self.file).read_text()
        after = text[: self.start] + self.new + text[self.end :]
        return after[after.rfind("\n", 0, self.start) + 1 :].split("\n")[0]


# -- the changes that there are ------------------------------------------------------------------------------------


def mutants() -> list[Mutant]:
    """All of them, in the order of files and lines."""
    files = [path for room in ROOMS for path in sorted((ROOT / "codechat" / room).rglob("*.py"))]
    return [each for path in files for each in _mutants_of(path)]


def _mutants_of(path: Path) -> Iterator[Mutant]:
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()

    def place(row: int, column: int) -> int:
        return len(data[: starts[row - 1] + column].decode())

    for node in _decided(ast.parse(text)):
        for begin, end, new, kind in _changes(node):
            start = place(*begin)
            line = text[text.rfind("\n", 0, start) + 1 :].split("\n")[0]
            yield Mutant(str(path.relative_to(ROOT)), start, place(*end), new, kind, begin[0], line)


def _decided(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of code that runs: no annotations, decorators, base classes, texts or declared fields."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AnnAssign) and isinstance(tree, ast.ClassDef):
                continue  # a field: its default is an option's, held by the tests of the config
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.AST):
                yield node
                yield from _decided(node)


Change = tuple[tuple[int, int], tuple[int, int], str, str]


def _span(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _changes(node: Any) -> Iterator[Change]:
    """The changes of one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield (
            *_span(node),
            f"({ast.unparse(node.left)} {COMPARED[type(node.ops[0])]} {ast.unparse(node.comparators[0])})",
            "comparison",
        )
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield (*_span(node), f"({other.join(f'({ast.unparse(each)})' for each in node.values)})", "boolean")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield (*_span(node), f"({ast.unparse(node.operand)})", "not")
    elif isinstance(node, ast.BinOp) and type(node.op) in COUNTED and not _text(node):
        new = COUNTED[type(node.op)][1]
        yield (*_span(node), f"(({ast.unparse(node.left)}) {new} ({ast.unparse(node.right)}))", "arithmetic")
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value: Any = node.value
        yield (*_span(node), repr(not value if isinstance(value, bool) else value + 1), "constant")
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield (*_span(node), "return None", "return")
    elif (isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))) or isinstance(
        node, ast.AugAssign
    ):
        yield (*_span(node), "pass", "statement")
    elif isinstance(node, ast.Raise):
        yield (*_span(node), "pass", "raise")


def _text(node: ast.BinOp) -> bool:
    """Whether texts or lists are joined: without them the sum is no sum."""
    for side in (node.left, node.right):
        if isinstance(side, (ast.JoinedStr, ast.List, ast.Tuple)) or type(getattr(side, "value", 0)) in (str, bytes):
            return True
    return False


def drawn(count: int, seed: int) -> list[Mutant]:
    """COUNT of all, by chance, in the order in which they were drawn."""
    every = mutants()
    return random.Random(seed).sample(every, min(count, len(every)))


# -- the tests that are near ----------------------------------------------------------------------------------------


@cache
def _imports(path: Path) -> frozenset[Path]:
    """The files of the package and of the tests' support that a file imports, wherever in it."""
    found = set[Path]()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            for base in (ROOT, ROOT / "tests", path.parent):
                at = base.joinpath(*name.split("."))
                found.update(each for each in (at.with_suffix(".py"), at / "__init__.py") if each.is_file())
    return frozenset(found)


def nearest(file: Path) -> list[Path]:
    """The files of tests within NEAR imports of a file, nearest first; those of its own room are half a step nearer."""
    reached, edge, distance = {file: 0}, {file}, 0
    sources = [*(ROOT / "codechat").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    while edge and distance < NEAR:
        distance += 1
        edge = {each for each in sources if each not in reached and _imports(each) & edge}
        reached |= dict.fromkeys(edge, distance)
    room = file.relative_to(ROOT / "codechat").parts[0]
    order = {"unit": 0, "contract": 1, "golden": 2, "attacks": 3, "e2e": 4}

    def rank(test: Path) -> tuple[Any, ...]:
        parts = test.relative_to(ROOT / "tests").parts
        of_room = room in parts or (parts[0] != "unit" and room.rstrip("s") in test.stem)
        return reached.get(test, NEAR + 1) - 0.5 * of_room, order.get(parts[0], 5), str(test)

    tests = [test for test in sources if test.name.startswith("test_")]
    found = {test for test in tests if test in reached or f"tests/unit/{room}/" in str(test)}
    if not any(test in reached for test in tests):  # what runs in a box alone is imported by nothing
        found |= {
            test for test in tests if "attacks" in test.parts or test.stem.startswith(("test_sandbox", "test_suites"))
        }
    return sorted(found, key=rank)


# -- one run --------------------------------------------------------------------------------------------------------


class Failed:
    """A plugin that keeps the first test that failed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def run_tests(copy: Path, tests: Sequence[str], left_s: float, without: Sequence[str] = ()) -> str | None:
    """The first test that fails, empty if none does, None if time runs out. In a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reader)
        _child(copy, tests, writer, without)
    os.close(writer)
    until = time.monotonic() + left_s
    ended = False
    while not ended and time.monotonic() < until:
        ended = os.waitpid(child, os.WNOHANG)[0] == child
        time.sleep(0 if ended else 0.05)
    for _ in range(2):
        try:
            os.killpg(child, signal.SIGKILL)  # what its tests left behind, too
        except ProcessLookupError:
            break
        if not ended:
            os.waitpid(child, 0)
            break
    with os.fdopen(reader) as stream:
        said = stream.read() if ended else ""
    return None if not ended else said.partition("\n")[0] if said else "the run itself"


def _child(copy: Path, tests: Sequence[str], writer: int, without: Sequence[str]) -> None:
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONSAFEPATH": ""}
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    import pytest

    failed, words = Failed(), ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers", "-m", MARKS]
    words += ["-o", "pythonpath=. tests"]  # before what is installed
    words += ["-p", "no:randomly", f"--timeout={TEST_S}", "-o", "timeout_method=signal"]
    status = 1
    try:
        status = int(pytest.main([*words, *(f"--deselect={each}" for each in without), *tests], plugins=[failed]))
    finally:
        broken = failed.test or ("" if status in (0, 5) else f"pytest's status {status}")
        os.write(writer, f"{broken}\n".encode())
        os._exit(0)


class Trial:
    """A copy of the repository in which one file at a time is changed."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self.copy, self.limit_s = folder / "copy", limit_s
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", "runs")
        shutil.copytree(ROOT, self.copy, ignore=left_out, symlinks=True)
        words = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "codechat", "tests"]
        subprocess.run(words, cwd=self.copy, check=True)
        self._false: dict[str, bool] = {}
        if broken := run_tests(
            self.copy, [str(next((ROOT / "tests/unit/calls").glob("test_*.py")).relative_to(ROOT))], limit_s
        ):
            raise SystemExit(f"tests fail without any change: {broken}")

    def outcome(self, mutant: Mutant) -> tuple[str, str]:
        """`killed` and the test that does, or `survived` and how many files of tests ran."""
        path, began = self.copy / mutant.file, time.monotonic()
        text = path.read_text()
        tests = [str(test.relative_to(ROOT)) for test in nearest(ROOT / mutant.file)]
        ran, without = 0, list[str]()
        for size in BATCHES:
            batch = tests[ran : ran + size]
            while batch and (left := self.limit_s - (time.monotonic() - began)) > 0:
                path.write_text(text[: mutant.start] + mutant.new + text[mutant.end :])
                try:
                    failed = run_tests(self.copy, batch, left, without)
                finally:
                    path.write_text(text)
                if failed is None:
                    return "survived", f"{ran} files of tests, then the time ran out"
                if not failed:
                    break
                if not self._fails_anyway(failed):
                    return "killed", failed
                without.append(failed)
            ran += len(batch)
        return "survived", f"{ran} files of tests"

    def _fails_anyway(self, test: str) -> bool:
        if "::" not in test:
            return False
        if test not in self._false:
            self._false[test] = run_tests(self.copy, [test], self.limit_s) != ""
        return self._false[test]


# -- the journal and the report ----------------------------------------------------------------------------------------


def read(journal: Path) -> dict[str, dict[str, Any]]:
    """The last result of every mutant."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def run(options: argparse.Namespace) -> int:
    """Try what the journal does not have yet; with `--again`, what survived."""
    for name in LOADED:
        import_module(name)
    done, until = read(options.journal), time.monotonic() + options.seconds
    chosen = drawn(options.count, options.seed)
    known = equivalent()
    if options.again:
        todo = [
            each for each in chosen if done.get(each.key, {}).get("outcome") == "survived" and each.key not in known
        ]
    else:
        todo = [each for each in chosen if each.key not in done]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        trial = Trial(Path(folder), options.limit) if todo else None
        for mutant in todo:
            if time.monotonic() > until or trial is None:
                break
            began = time.monotonic()
            outcome, by = trial.outcome(mutant)
            row = {"key": mutant.key, "outcome": outcome, "by": by, "seconds": round(time.monotonic() - began, 1)}
            row |= asdict(mutant) | {"changed": mutant.changed()}
            with options.journal.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
            print(f"{row['seconds']:6.1f} s {outcome}: {mutant.file}:{mutant.row} {mutant.kind} ({by})", flush=True)
    return 0


def equivalent() -> dict[str, str]:
    """The mutants that change nothing a test could see, with the reasons."""
    import yaml

    return (yaml.safe_load(EQUIVALENT.read_text()) if EQUIVALENT.exists() else None) or {}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    z, share = 1.959964, hits / count
    middle, half = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def report(options: argparse.Namespace) -> int:
    """Print the shares and the survivors."""
    known, rows = equivalent(), list(read(options.journal).values())
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        outcome = "equivalent" if row["outcome"] == "survived" and row["key"] in known else row["outcome"]
        for place in (row["file"].split("/")[1], "all"):
            counts[place][outcome] += 1
        if outcome != "killed":
            print(f"{outcome}: {row['file']}:{row['row']} ({row['kind']}; {row['by']})")
            print(f"  - {row['line'].strip()}\n  + {row['changed'].strip()}")
            print(f"  {known[row['key']]}\n" if outcome == "equivalent" else "")
    for room, found in sorted(counts.items()):
        count = found["killed"] + found["survived"]
        low, high = wilson(found["killed"], count)
        share = f"{found['killed'] / count:.1%} ({low:.1%} to {high:.1%})" if count else "-"
        print(f"{room:10} killed {found['killed']} of {count}, {share}; {found['equivalent']} equivalent")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("journal", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    return run(options) if options.command == "run" else report(options)


if __name__ == "__main__":
    sys.exit(main())
