"""Small changes of the code that decides, drawn by chance: how many of them does a test notice?

    python benchmarks/mutations.py map LINES [TESTS ...]
    python benchmarks/mutations.py run LINES JOURNAL [--count 200] [--seed 28] [--seconds S] [--again] [--limit 120]
    python benchmarks/mutations.py report JOURNAL

A mutant is one change of a comparison, a condition, a sum, a number, a returned value, or a statement that is left out,
in the rooms below. What no verdict hangs on is not changed: annotations, declared fields, texts and what is printed in
them, `__repr__`, limits of time. `map` runs the tests once and writes down which lines each test executes, in its own
process and in those of boxes, and how long it takes; files of tests that LINES has already are left out. `run` draws
COUNT of all mutants, copies the repository to a temporary folder, makes one change after the other there, and runs the
tests that execute the changed line, quickest first, until one fails: that mutant is killed. All tests are collected
once, and each change is tried in a fork of that process, in which the changed function has its new code: this takes
seconds. What no test notices so is tried again with everything loaded anew, for what is computed when a module is
imported; a mutant that no test notices then within LIMIT seconds survives. Each result is a line of JOURNAL: the next
`run` goes on behind it, `--seconds` ends one after that time, and `--again` tries the survivors again with every test
as it is now. `report` prints the share by room, with its 95 % interval (Wilson), the survivors, and what was not tried;
those that `mutations_equivalent.yaml` lists, with the reason, change nothing that a test could see, and are counted
apart.
"""

import argparse
import ast
import contextlib
import gc
import hashlib
import json
import math
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from inspect import CO_OPTIMIZED
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from codechat.base.environment import cache_root

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("report/metrics", "sandbox", "judging", "models/calls", "run")
EQUIVALENT = Path(__file__).with_name("mutations_equivalent.yaml")
MARKS = "not engines and not browser and not slurm and not postgres and not ray and not simulations"
LOADED = (
    "numpy", "pydantic", "yaml", "omegaconf", "hydra", "openai", "scipy.stats", "statsmodels.api", "libcst", "mlflow",
    "hypothesis",
)  # fmt: skip
TEST_S = 30  # one that hangs fails
BATCH_S, FEW, MOST = 15.0, 8, 40  # tests that run together, at first and then
SURE = "tests/unit/"  # who fails there does so because of the change
PASSED = "passed"
Mapped = dict[str, tuple[float, dict[str, list[int]]]]
"""Of every test its seconds, and by file the lines that it executes."""
FOLLOWED = 40  # calls of a function that are followed in one test
EXAMPLES = 5  # of a property, as long as lines are noted
LONGEST = 1024  # lines of a file
INSIDE = "codechat/sandbox/inside"
# What the copy's package of that name begins with while the map is made. A zygote, and nothing else, finds it under an
# empty `codechat`; its forks have the trace and the memory, as they have all that it loaded.
TRACED = """
import mmap, os, sys
if not sys.modules["codechat"].__path__:
    try:
        memory = mmap.mmap(os.open({path!r}, os.O_RDWR), 0)
    except OSError:  # a box that does not see the file
        memory = None
    starts = {starts!r}
    def entered(frame, event, argument):
        start = starts.get(frame.f_code.co_filename)
        if start is None:
            return None
        memory[start + frame.f_lineno] = 1
        def inside(frame, event, argument):
            memory[start + frame.f_lineno] = 1
            return inside
        return inside
    if memory is not None:
        sys.settrace(entered)
"""
BOXED = (
    "tests/unit/sandbox/",
    "tests/unit/sandbox/suites/",
    "tests/contract/test_s",
    "tests/contract/test_a",
    "tests/attacks/",
)
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
    nth: int  # among equal changes of equal lines

    @property
    def room(self) -> str:
        return next(room for room in ROOMS if self.file.startswith(f"codechat/{room}/"))

    @property
    def key(self) -> str:
        """It and no other change, wherever its line stands."""
        which = f" ({self.nth + 1})" if self.nth else ""
        return f"{self.file}: {self.kind}: {self.line.strip()} -> {self.changed().strip()}{which}"

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        return text[: self.start] + self.new + text[self.end :]

    def changed(self) -> str:
        """The first line as it becomes."""
        after = self.applied((ROOT / self.file).read_text())
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

    equal = Counter[tuple[str, str, str]]()
    for node in _decided(ast.parse(text)):
        for begin, end, new, kind in _changes(node):
            start = place(*begin)
            line = text[text.rfind("\n", 0, start) + 1 :].split("\n")[0]
            this = Mutant(str(path.relative_to(ROOT)), start, place(*end), new, kind, begin[0], line, 0)
            same = this.kind, this.line.strip(), this.changed().strip()
            yield replace(this, nth=equal[same])
            equal[same] += 1


def _decided(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a verdict or a figure may hang on."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_declared(node, tree):
                yield node
                if not isinstance(node, (ast.JoinedStr, ast.Raise)):  # what a message shows
                    yield from _decided(node)


def _is_declared(node: ast.AST, parent: ast.AST) -> bool:
    """Fields of classes, texts of objects, imports for types, limits of time, and the kernel's numbers."""
    match node:
        case ast.AnnAssign():
            return isinstance(parent, ast.ClassDef) or _is_time(node.target)
        case ast.FunctionDef(name=name):
            return name in ("__repr__", "__str__")
        case ast.If(test=test):
            return ast.unparse(test) == "TYPE_CHECKING"
        case ast.Assign(targets=[target, *_]):
            return _is_time(target) or (isinstance(parent, ast.Module) and isinstance(target, (ast.Tuple, ast.Name)) and
                                        not any(isinstance(each, ast.Call) for each in ast.walk(node.value)) and
                                        ast.unparse(target).replace(", ", "_").isupper())  # fmt: skip
        case ast.keyword(arg=str(name)):
            return name.endswith(("_s", "timeout"))
    return False


def _is_time(target: ast.expr) -> bool:
    return ast.unparse(target).lower().endswith("_s")


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
    """COUNT of all, by chance, in the order drawn; they stay the same if the code changes elsewhere."""
    return sorted(mutants(), key=lambda each: hashlib.sha256(f"{seed} {each.key}".encode()).digest())[:count]


# -- which tests execute a line -------------------------------------------------------------------------------------


class Boxed:
    """The lines that are executed in the processes of boxes, in memory that these share with this process."""

    def __init__(self, copy: Path) -> None:
        path = copy.with_name("boxed")
        self._files = [str(file.relative_to(copy)) for file in sorted((copy / INSIDE).glob("*.py"))]
        path.write_bytes(bytes(len(self._files) * LONGEST))
        starts = {str(copy / name): at * LONGEST for at, name in enumerate(self._files)}
        with path.open("r+b") as stream:
            self._memory = mmap.mmap(stream.fileno(), 0)
        with (copy / INSIDE / "__init__.py").open("a") as package:
            package.write(TRACED.format(path=str(path), starts=starts))

    def take(self) -> dict[str, set[int]]:
        """Those of each file since the last time."""
        size = len(self._memory)
        executed = {name: {row for row in range(LONGEST) if self._memory[at * LONGEST + row]}
                    for at, name in enumerate(self._files)}  # fmt: skip
        self._memory[:] = bytes(size)
        return {name: rows for name, rows in executed.items() if rows}


class Lines:
    """A plugin that notes of every test how long it took and which lines of the rooms it executed, here or in a box."""

    def __init__(self, root: Path, notes: Path, boxed: Boxed) -> None:
        self._start, self._notes, self._boxed = f"{root}/", notes, boxed
        self._names: dict[Any, str] = {}
        self._failed = set[str]()

    def pytest_collection(self) -> None:
        import hypothesis

        hypothesis.settings.register_profile("lines", derandomize=True, deadline=None, max_examples=EXAMPLES)
        hypothesis.settings.load_profile("lines")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed or report.skipped:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        lines: dict[str, set[int]] = defaultdict(set)
        calls = Counter[Any]()

        def entered(frame: Any, event: str, argument: Any) -> Any:
            code = frame.f_code
            if code not in self._names:
                name = code.co_filename.removeprefix(self._start)
                self._names[code] = name if name.startswith(tuple(f"codechat/{room}/" for room in ROOMS)) else ""
            if not (name := self._names[code]) or calls[code] >= FOLLOWED:
                return None
            calls[code] += 1
            executed = lines[name]
            executed.add(frame.f_lineno)

            def inside(frame: Any, event: str, argument: Any) -> Any:
                executed.add(frame.f_lineno)
                return inside

            return inside

        began = time.monotonic()
        self._boxed.take()
        threading.settrace(entered)
        sys.settrace(entered)
        try:
            answer = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
        if item.nodeid not in self._failed:
            for name, executed in self._boxed.take().items():
                lines[name] |= executed
            rows = {name: sorted(each) for name, each in lines.items()}
            with self._notes.open("a") as stream:
                stream.write(json.dumps((item.nodeid, round(time.monotonic() - began, 3), rows)) + "\n")
        return answer


def map_lines(options: argparse.Namespace) -> int:
    """Run the files of tests that are not in the map yet, each in a fork."""
    known = options.lines.read_text() if options.lines.exists() else ""
    named = [ROOT / "tests" / each for each in options.tests]
    files = [test for each in named for test in ([each] if each.is_file() else sorted(each.rglob("test_*.py")))]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        trial = Trial(Path(folder), options.limit, {})
        lines = Lines(trial.copy, options.lines.resolve(), Boxed(trial.copy))
        for name in dict.fromkeys(str(test.relative_to(ROOT)) for test in files):
            if json.dumps(name) not in known:
                ended = forked(partial(noted, trial.copy, name, lines), options.limit)
                with options.lines.open("a") as stream:
                    stream.write(json.dumps((name, 0, {})) + "\n")
                print(f"{name}{'' if ended is not None else ': not all of its tests'}", flush=True)
    return 0


def noted(copy: Path, name: str, lines: Lines) -> str:
    """Run a file of tests, whose lines are noted."""
    return str(start_pytest(copy, [name], lines))


def read_lines(path: Path) -> Mapped:
    """Of every test of the map its seconds and its lines by file."""
    noted = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: (seconds, rows) for name, seconds, rows in noted if "::" in name}


def chosen(mutant: Mutant, mapped: Mapped) -> list[str]:
    """The tests that execute the changed line; if none does, those of the file or of boxes. Quickest first."""
    text = (ROOT / mutant.file).read_text()
    rows = range(mutant.row, mutant.row + text[mutant.start : mutant.end].count("\n") + 1)
    on_line, on_file, rest = list[str](), list[str](), list[str]()
    for name in sorted(mapped, key=lambda name: mapped[name][0]):
        lines = mapped[name][1]
        if any(row in lines.get(mutant.file, ()) for row in rows):
            on_line.append(name)
        elif mutant.file in lines:
            on_file.append(name)
        elif name.startswith(BOXED):
            rest.append(name)
    return on_line or on_file + rest


# -- one run --------------------------------------------------------------------------------------------------------


class Failed:
    """A plugin that keeps the first test that failed."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


def forked(work: Callable[[], str], left_s: float) -> str | None:
    """What a fork of this process answers, `the run itself` if it ends without an answer, None if time runs out."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            answer = ""
            try:
                answer = work()
            finally:
                os.write(said.fileno(), answer.encode())
                os._exit(0)
        until = time.monotonic() + left_s
        while not (ended := os.waitpid(child, os.WNOHANG)[0] == child) and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests left behind, too
        if not ended:
            os.waitpid(child, 0)
            return None
        said.seek(0)
        return said.read().decode() or "the run itself"


def start_pytest(copy: Path, tests: Sequence[str], *plugins: Any, words: Sequence[str] = ()) -> int:
    """Run tests of the copy in this process, which has done nothing else so far: pytest's status."""
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONSAFEPATH": "", "CODECHAT_CACHE_DIR": str(copy.with_name("caches"))}
    for name in [name for name in sys.modules if name.partition(".")[0] == "codechat"]:
        del sys.modules[name]  # the copy's is loaded
    options = ["addopts=--strict-markers", "pythonpath=. tests", "timeout_method=signal"]  # before what is installed
    words = [*words, "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", MARKS, f"--timeout={TEST_S}"]
    words += ["-W", "ignore:Module already imported so cannot be rewritten"]
    for option in options:
        words += ["-o", option]
    return int(pytest.main([*words, *tests], plugins=list(plugins)))


def run_tests(copy: Path, tests: Sequence[str], left_s: float) -> str | None:
    """The first test that fails, empty if none does, None if time runs out. In a fork of this process."""

    def work() -> str:
        failed = Failed()
        status = start_pytest(copy, tests, failed, words=["-x"])
        return failed.test or (PASSED if status in (0, 5) else f"pytest's status {status}")

    answer = forked(work, left_s)
    return "" if answer == PASSED else answer


class Trial:
    """A copy of the repository, with caches of its own, in which one file at a time is changed."""

    def __init__(self, folder: Path, limit_s: float, mapped: Mapped) -> None:
        self.copy, self.limit_s, self.mapped = folder / "copy", limit_s, mapped
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "runs")
        shutil.copytree(ROOT, self.copy, ignore=left_out, symlinks=True)
        words = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "codechat", "tests"]
        subprocess.run(words, cwd=self.copy, check=True)
        (folder / "caches").mkdir()
        for name in ("java", "expected"):  # files are replaced there, never written in place
            if (kept := cache_root() / name).is_dir():
                subprocess.run(["cp", "-al", str(kept), str(folder / "caches" / name)], check=True)
        self._fails: dict[str, bool] = {}

    def outcome(self, mutant: Mutant) -> tuple[str, str]:
        """`killed` and the test that does, or `survived` and how many tests ran."""
        until, tests, ran = time.monotonic() + self.limit_s, chosen(mutant, self.mapped), 0
        while tests and (left := until - time.monotonic()) > 0:
            batch = [name for name, total in zip(tests, accumulate(self.mapped[name][0] for name in tests), strict=True)
                     if total < BATCH_S][: MOST if ran else FEW] or tests[:1]  # fmt: skip
            with self.changed(mutant):
                failed = run_tests(self.copy, batch, left)
            if failed is None:
                return "survived", f"{ran} tests, then the time ran out"
            if failed and not self._fails_anyway(failed, batch):
                return "killed", failed
            done = [failed] if failed in batch else batch
            tests, ran = [name for name in tests if name not in done], ran + len(done)
        return "survived", f"{ran} tests"

    def _fails_anyway(self, test: str, batch: Sequence[str]) -> bool:
        """Whether a test of several processes fails without the change too, as some do on a busy machine.

        A status of pytest's own, as of a test that the map names and that is no more, is that of the whole batch.
        """
        if test.startswith(SURE):
            return False
        if test not in batch:
            return run_tests(self.copy, batch, self.limit_s) == test
        if test not in self._fails:
            self._fails[test] = run_tests(self.copy, [test], self.limit_s) != ""
        return self._fails[test]

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """The copy with a change."""
        path = self.copy / mutant.file
        text = path.read_text()
        path.write_text(mutant.applied(text))
        try:
            yield
        finally:
            path.write_text(text)


class Quick:
    """A plugin that collects all tests once, and tries every change in a fork in which the function has its new code.

    Of what is computed at import nothing changes there, so that only what is killed is known. What is changed outside
    functions is not tried.
    """

    def __init__(self, trial: Trial, todo: Sequence[Mutant], record: Callable[[Mutant, str, float], None]) -> None:
        self._trial, self._todo, self._record = trial, todo, record

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions: dict[Any, list[Any]] = defaultdict(list)
        for each in gc.get_objects():
            if type(each) is FunctionType:
                functions[_place(each.__code__)].append(each)
        gc.freeze()
        for mutant in self._todo:
            began = time.monotonic()
            tests = [items[name] for name in chosen(mutant, self._trial.mapped) if name in items]
            new = new_code(self._trial.copy / mutant.file, mutant)
            change = [(each, new) for each in functions[_place(new)]] if new is not None else []
            if (change or mutant.file.startswith(INSIDE)) and (killed := self._try(session, mutant, tests, change)):
                self._record(mutant, killed, began)
        return True

    def _try(self, session: Any, mutant: Mutant, tests: list[Any], change: Sequence[tuple[Any, Any]]) -> str:
        """The first test that fails because of the change; empty if none does in time."""
        until = time.monotonic() + self._trial.limit_s
        while tests and (left := until - time.monotonic()) > 0:
            with self._trial.changed(mutant):  # boxes load files
                failed = forked(partial(self._run, session, tests, change), left) or PASSED
            if failed in (PASSED, "the run itself"):
                return ""
            at = [item.nodeid for item in tests].index(failed)
            if failed.startswith(SURE) or forked(partial(self._run, session, [tests[at]], ()), left) == PASSED:
                return failed
            tests = tests[at + 1 :]
        return ""

    def _run(self, session: Any, tests: list[Any], change: Sequence[tuple[Any, Any]]) -> str:
        for function, code in change:
            function.__code__ = code
        failed, plugins = Failed(), session.config.pluginmanager
        plugins.register(failed)
        plugins.getplugin("capturemanager").read_global_capture()  # what another fork left there
        session.config._tmp_path_factory._given_basetemp = self._trial.copy.with_name("temporary")
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failed.test:
                return failed.test
        return PASSED


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def new_code(path: Path, mutant: Mutant) -> CodeType | None:
    """The code of the function that a change of a file changes; None if it changes something outside of functions.

    It has the place of the function's old code: lines before it are as many in both texts.
    """
    different: list[CodeType] = []

    def same(one: Any, other: Any, *, inside: bool) -> bool:
        if not isinstance(one, CodeType) or not isinstance(other, CodeType):
            return type(one) is type(other) and repr(one) == repr(other)
        shapes = [
            (each.co_code, each.co_names, each.co_varnames, each.co_freevars, each.co_cellvars, len(each.co_consts))
            for each in (one, other)
        ]
        function = not inside and one.co_flags & CO_OPTIMIZED and not one.co_name.startswith("<")
        equal = shapes[0] == shapes[1] and all(
            same(mine, its, inside=inside or bool(function))
            for mine, its in zip(one.co_consts, other.co_consts, strict=True)
        )
        if not equal and function and one.co_freevars == other.co_freevars:
            different.append(other)
            return True
        return equal

    text = path.read_text()
    rest = same(*(compile(each, path, "exec") for each in (text, mutant.applied(text))), inside=False)
    return different[0] if rest and len(different) == 1 else None


# -- the journal and the report ----------------------------------------------------------------------------------------


def read(journal: Path) -> dict[str, dict[str, Any]]:
    """The last result of every mutant."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def run(options: argparse.Namespace) -> int:
    """Try what the journal does not have yet; with `--again`, what survived."""
    done, until, known = read(options.journal), time.monotonic() + options.seconds, equivalent()
    todo = [each for each in drawn(options.count, options.seed) if each.room in options.rooms and each.key not in known
            and done.get(each.key, {}).get("outcome") == ("survived" if options.again else None)]  # fmt: skip
    shown = os.fdopen(os.dup(1), "w", buffering=1)

    def record(mutant: Mutant, outcome: str, by: str, began: float) -> None:
        row = {"key": mutant.key, "outcome": outcome, "by": by, "seconds": round(time.monotonic() - began, 1)}
        row |= asdict(mutant) | {"changed": mutant.changed()}
        with options.journal.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        print(f"{row['seconds']:6.1f} s {outcome}: {mutant.file}:{mutant.row} {mutant.kind} ({by})", file=shown)

    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        trial = Trial(Path(folder), options.limit, read_lines(options.lines))
        quick = Quick(trial, todo, lambda mutant, by, began: record(mutant, "killed", by, began))
        files = sorted({name.partition("::")[0] for each in todo for name in chosen(each, trial.mapped)})
        forked(lambda: str(start_pytest(trial.copy, files, quick)), until - time.monotonic())
        killed = {key for key, row in read(options.journal).items() if row["outcome"] == "killed"}
        for mutant in [each for each in todo if each.key not in killed]:
            if time.monotonic() > until:
                break
            began = time.monotonic()
            record(mutant, *trial.outcome(mutant), began)
    return 0


def equivalent() -> dict[str, str]:
    """The mutants that change nothing a test could see, with the reasons."""

    from codechat.base.files import from_yaml

    return (from_yaml(EQUIVALENT.read_text()) if EQUIVALENT.exists() else None) or {}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    z, share = 1.959964, hits / count
    middle, half = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def report(options: argparse.Namespace) -> int:
    """Print the shares of what was drawn and tried, and what no test noticed."""
    known, rows = equivalent(), read(options.journal)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in drawn(options.count, options.seed):
        row = rows.get(each.key, {"outcome": "not tried", "by": "-"})
        outcome = "equivalent" if each.key in known and row["outcome"] != "killed" else row["outcome"]
        for place in (each.room, "all"):
            counts[place][outcome] += 1
        if outcome != "killed":
            print(f"{outcome}: {each.file}:{each.row} ({each.kind}; {row['by']})")
            print(f"  - {each.line.strip()}\n  + {each.changed().strip()}")
            print(f"  {known[each.key]}\n" if outcome == "equivalent" else "")
    for room, found in sorted(counts.items()):
        count = found["killed"] + found["survived"]
        low, high = wilson(found["killed"], count)
        share = f"{found['killed'] / count:.1%} ({low:.1%} to {high:.1%})" if count else "-"
        rest = f"{found['equivalent']} equivalent, {found['not tried']} not tried"
        print(f"{room:14} killed {found['killed']} of {count}, {share}; {rest}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    mapping, running, reporting = (commands.add_parser(name) for name in ("map", "run", "report"))
    mapping.set_defaults(command=map_lines)
    running.set_defaults(command=run)
    reporting.set_defaults(command=report)
    for command in (mapping, running):
        command.add_argument("lines", type=Path)
        command.add_argument("--limit", type=float, default=120.0)
    mapping.add_argument("tests", nargs="*", default=["unit", "contract", "golden", "e2e", "attacks"])
    for command in (running, reporting):
        command.add_argument("journal", type=Path)
        command.add_argument("--count", type=int, default=200)
        command.add_argument("--seed", type=int, default=28)
    running.add_argument("--seconds", type=float, default=math.inf)
    running.add_argument("--again", action="store_true")
    running.add_argument("--rooms", nargs="+", default=ROOMS, help="only those of the drawn that are in these rooms")
    options = parser.parse_args()
    for name in LOADED:
        import_module(name)
    return int(options.command(options))


if __name__ == "__main__":
    sys.exit(main())
