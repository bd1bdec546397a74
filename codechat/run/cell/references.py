"""The tests of tasks: the libraries that they import, and whether they can be passed at all.

Every snippet must parse, and every reference must pass its task's tests. Tests of requirements are only parsed: they
ask for more than the reference gives.
"""

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codechat.base.domain import Failure, Program
from codechat.base.environment import VERSION
from codechat.base.errors import BrokenTask, UserError
from codechat.base.files import content_hash
from codechat.base.template import counted
from codechat.datasets import DatasetConfig, select
from codechat.datasets.tasks import Dataset, Task
from codechat.run.protocols.services import Tests
from codechat.sandbox import SANDBOXES, Preloading, Sandbox, SandboxConfig, admit
from codechat.sandbox.languages.python.syntax import imported_modules
from codechat.sandbox.languages.python.target import reading_for
from codechat.sandbox.process import secret_folder
from codechat.sandbox.suites import HasSnippets, NeedsSetup, Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls.reference_results import machine

# TensorFlow starts threads, which a fork loses, and takes over 300 MB; NLTK imports tkinter, for which matplotlib then
# searches the frames of all threads.
LOADED_LATE = frozenset(("keras", "nltk", "tensorflow"))
OF_THE_TEST = frozenset(("candidate", "program"))  # names by which a test may import the program itself
EXCEL = ("read_excel(", ".to_excel(")  # pandas needs openpyxl for them
SHOWN = 3  # lines of a refusal, which has at most five
INSTALL = (
    "`codechat requirements dataset=…` prints what to install into an environment whose interpreter sandbox.python "
    "names; or take the tasks that run here: dataset.runnable=true"
)
MEND = "mend them, or name the tasks to take: dataset.tasks=[…]; `codechat verify dataset=…` lists all"
LONGEST = 120  # characters of a test or a value
AT_ONCE = 32  # more than a sandbox runs at once, few enough to stop
EVERY_S = 10.0
Progress = Callable[[int, int], None]


def modules_of(task: Task, *, certain: bool = True) -> list[str]:
    """The dotted names of the modules outside the standard library that a task's snippets and references import.

    If not `certain`, optional imports are included.
    """
    texts: list[str] = []
    for _, reference, suite in task.solutions():
        if isinstance(suite, Assertions):
            texts += [*suite.snippets, *([reference] if reference is not None else [])]
    modules = [module for text in texts for module in imported_modules(text, certain=certain)]
    if any(word in text for text in texts for word in EXCEL):
        modules.append("openpyxl")
    roots = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - OF_THE_TEST
    written = {root for root in roots if any(re.search(rf"\b{root}\.py['\"]", text) for text in texts)}
    return [module for module in dict.fromkeys(modules) if module.partition(".")[0] in roots - written]


def packages_by_task(tasks: Sequence[Task], *, certain: bool = True) -> dict[str, list[str]]:
    """The top-level modules that tasks import, each with the ids of its tasks, the most needed first."""
    users: dict[str, list[str]] = {}
    for task in tasks:
        for root in dict.fromkeys(module.partition(".")[0] for module in modules_of(task, certain=certain)):
            users.setdefault(root, []).append(task.task_id)
    return dict(sorted(users.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def lacking_packages(config: SandboxConfig, tasks: Sequence[Task]) -> dict[str, list[str]]:
    """The packages that programs cannot import, each with the ids of the tasks that need it."""
    wanted = packages_by_task([task for task in tasks if task.needs_libraries])
    return {name: wanted[name] for name in config.libraries().missing(wanted)}


def select_here(dataset: Dataset, config: DatasetConfig, sandbox: SandboxConfig) -> tuple[tuple[Task, ...], str]:
    """The tasks that a config names, with `dataset.runnable` only tasks that run here; and a remark on the others."""
    if not config.runnable:
        return select(dataset, config), ""
    tasks = select(dataset, config.model_copy(update={"limit": None}))
    lacking = lacking_packages(sandbox, tasks)
    out = {task_id for users in lacking.values() for task_id in users}
    named = ", ".join(f"{name} ({len(users)})" for name, users in lacking.items())
    remark = f"dataset.runnable: {len(out)} of {counted(len(tasks), 'task')} lack packages here: {named}" if out else ""
    return tuple(task for task in tasks if task.task_id not in out)[: config.limit], remark


def refuse_lacking(config: SandboxConfig, tasks: Sequence[Task]) -> None:
    """Raises `UserError` if programs cannot import the libraries of tasks that need them."""
    lacking = lacking_packages(config, tasks)
    if not lacking:
        return
    touched = {task_id for users in lacking.values() for task_id in users}
    where = "codechat's own interpreter" if config.python is None else f"sandbox.python={config.python}"
    head = f"{where} lacks packages that {len(touched)} of {counted(len(tasks), 'task')} import:"
    if len(lacking) <= SHOWN:
        lines = [f"{name}: {_listed(users, 8)}" for name, users in lacking.items()]
    else:
        first = [task.task_id for task in tasks if task.task_id in touched]
        counts = ", ".join(f"{name} ({len(users)})" for name, users in lacking.items())
        lines = [counts, f"the tasks: {_listed(first, SHOWN)}"]
    raise UserError("\n".join([head, *lines]), INSTALL)


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextlib.asynccontextmanager
async def sandbox_for(
    tasks: Sequence[Task], config: SandboxConfig, workers: int, note: Callable[[str], None], *, trusted: bool = False
) -> AsyncIterator[Sandbox]:
    """A sandbox with the imports of the tasks' tests; `trusted` programs may run in a weak one.

    `note` gets its notice. Raises `UserError` if libraries are missing, or if the sandbox is too weak.
    """
    refuse_lacking(config, tasks)
    sandbox, libraries = SANDBOXES.build(config, workers=workers), config.libraries()
    try:
        if not trusted:
            admit(sandbox, config)
        preload(sandbox, tasks)
        if sandbox.notice:
            note(sandbox.notice)
        with reading_for(libraries.program, libraries.version, libraries.minor):
            yield sandbox
    finally:
        await sandbox.aclose()


def preload(sandbox: Sandbox, tasks: Sequence[Task]) -> None:
    """Load the tasks' imports once for many programs, unless the interpreter is codechat's own."""
    if sandbox.config.python is not None and isinstance(sandbox, Preloading):
        names = {module for task in tasks for module in modules_of(task)}
        sandbox.preload(sorted(name for name in names if name.partition(".")[0] not in LOADED_LATE))


NAN = re.compile(r"\bnan\b", re.IGNORECASE)
OF_NAN = "NaN equals nothing, not even itself: leave such inputs out, or test by an assertion with math.isnan"


@dataclass(frozen=True, slots=True)
class Defect:
    """A test that no program can pass, or a reference that fails. `place` is FILE:LINE, empty if it is not known."""

    task_id: str
    place: str
    problem: str

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.place, self.task_id, self.problem]))


@dataclass(frozen=True, slots=True)
class _Run:
    """A reference and its tests; the file `mark` exists once it has passed them. `part` is its name in the task."""

    task: Task
    part: str
    program: Program
    suite: Suite
    mark: Path


@dataclass(frozen=True)
class References:
    """Checks the references of a dataset by `tests`, whose limits are in `config`.

    A reference that passed is not run again on this machine, unless `anew`. `note` gets remarks on the setup,
    `progress` the numbers of references done and in all; once `stopped`, no further reference is run.
    """

    dataset: Dataset
    tests: Tests
    config: SandboxConfig
    note: Callable[[str], None]
    progress: Progress
    stopped: Callable[[], bool] = lambda: False
    anew: bool = False

    async def make_ready(self, tasks: Sequence[Task]) -> None:
        """Set up what the tests need on this machine. Raises `UserError`."""
        for suite in {suite.key: suite for task in tasks for suite in task.suites}.values():
            if isinstance(suite, NeedsSetup):
                await asyncio.to_thread(suite.make_ready, self.config, self.note)

    async def refuse(self, tasks: Sequence[Task]) -> None:
        """Raises `UserError` if this machine lacks something that the tests need, or a task of the user has a defect.

        Published tasks keep their defects.
        """
        await self.make_ready(tasks)
        defects = await self.defects(tasks) if self.dataset.own else []
        if defects:
            raise UserError(_refusal(defects, len(tasks)), MEND)

    async def defects(self, tasks: Sequence[Task]) -> list[Defect]:
        """All defects of the tasks, in their order. Raises `InfrastructureError`, and `UserError` as `Suite.check`."""
        runs = [run for task in tasks for run in self._runs_of(task) if self.anew or not run.mark.exists()]
        places, failed = asyncio.Semaphore(AT_ONCE), dict[tuple[str, str], str]()

        async def check(run: _Run) -> None:
            async with places:
                if not self.stopped():
                    failed[run.task.task_id, run.part] = _within(run.part, await self._problem(run))
                    self.progress(len(failed), len(runs))

        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(check(run))
        defects: list[Defect] = []
        for task in tasks:
            problems: list[str] = []
            for part, _, suite in task.solutions():
                problems += [_within(part, problem) for problem in _unusable(suite, task)]
                problems.append(failed.get((task.task_id, part), ""))
            for each in task.requirements:
                problems += [f"requirement '{each.id}': {problem}" for problem in _unusable(each.suite, task)]
            place = self.dataset.places.get(task.task_id, "")
            defects += [Defect(task.task_id, place, problem) for problem in problems if problem]
        return defects

    def _runs_of(self, task: Task) -> Iterator[_Run]:
        """The checks for a task: none without a reference or tests, or with tests that cannot be run."""
        target = [task.target.language, task.target.entry_point, task.target.signature]
        here = [VERSION, machine(), self.config.identity()]
        for part, reference, suite in task.solutions():
            if reference is not None and not any(_unusable(suite, task)):
                program = Program(reference, task.target)
                key = content_hash([program.source, *target, suite.kind, suite.key, *here])
                yield _Run(task, part, program, suite, secret_folder("references") / key)

    async def _problem(self, run: _Run) -> str:
        """Why a reference fails its task's tests; empty if it passes, which is kept on disk."""
        try:
            verdict = await self.tests.check(run.program, run.suite)
        except BrokenTask as error:
            return error.message.replace(f"the reference of {run.task.task_id} ", "its reference ")
        if not verdict.passed:
            return describe(verdict.failure or Failure(verdict.outcome))
        run.mark.touch()
        return ""


def now_and_then(note: Callable[[str], None]) -> Progress:
    """A progress callback that notes every ten seconds how far the checks are."""
    shown = time.monotonic()

    def progress(done: int, of: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= EVERY_S:
            shown = time.monotonic()
            note(f"checking that references pass their own tests: {done} of {of}")

    return progress


def _unusable(suite: object, task: Task) -> Iterator[str]:
    """The tests of a suite that no program can pass."""
    if isinstance(suite, HasSnippets):
        yield from suite.unusable(task.target.entry_point)


def _within(part: str, problem: str) -> str:
    return f"{part}: {problem}" if part and problem else problem


def describe(failure: Failure) -> str:
    """The first failure of a reference, in one line."""
    number = "" if failure.index is None else f"[{failure.index}]"
    tests = f"{failure.suite}_input{number}" if failure.suite else f"tests{number}" if number else "its own tests"
    given = f" ({_short(failure.input)})" if failure.input else ""
    last, why = (failure.exception or "").splitlines()[-1:], failure.reason
    if failure.expected is not None:
        why = f"expected {_short(failure.expected)}, got {_short(failure.actual or '')}"
        if failure.expected == failure.actual and NAN.search(failure.expected):
            why += f". {OF_NAN}"
    elif last and failure.reason == "an exception":
        why = _short(last[0])
    elif failure.input and failure.reason == "an assertion does not hold" and NAN.search(failure.input):
        why += f". {OF_NAN}"
    elif last and failure.index is None:  # the last line of a compiler or of a whole run of tests
        why = f"{why}: {_short(last[0])}"
    return f"its reference fails {tests}{given}: {why}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _refusal(defects: Sequence[Defect], tasks: int) -> str:
    """The number of tasks with defects, and the first few defects."""
    count = len({defect.task_id for defect in defects})
    head = f"the tests of {count} of {counted(tasks, 'task')} fail on their own reference, or do not parse"
    more = f"; {counted(len(defects), 'problem')}, the first {SHOWN}:" if len(defects) > SHOWN else ":"
    return "\n".join([head + more, *map(str, defects[:SHOWN])])
