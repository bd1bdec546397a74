"""Whether tests can be passed at all: every snippet parses, and every reference passes its task's own tests.

The tests of requirements are only parsed: they ask for more than the reference gives.
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
from codechat.datasets.tasks import Dataset, Task
from codechat.run.protocols.services import Tests
from codechat.sandbox import SANDBOXES, Preloading, Sandbox, SandboxConfig, admit
from codechat.sandbox.languages.python.syntax import imported_modules
from codechat.sandbox.process import secret_folder
from codechat.sandbox.suites import HasSnippets, NeedsSetup, Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls.reference_results import machine

# TensorFlow starts threads, which a fork does not take along, and takes over 300 MB; NLTK brings tkinter, for which
# matplotlib then looks through the frames of all threads.
LOADED_LATE = frozenset(("keras", "nltk", "tensorflow"))
OF_THE_TEST = frozenset(("candidate", "program"))  # names by which a test may import the program itself
EXCEL = ("read_excel(", ".to_excel(")  # with which pandas needs openpyxl
SHOWN = 3  # of a refusal, which has at most five lines
REMEDY = (
    "`codechat requirements dataset=…` prints what to install into an environment whose interpreter sandbox.python "
    "names; or take other tasks: dataset.tasks=[…]"
)


def modules_of(task: Task, *, certain: bool = True) -> list[str]:
    """The dotted names of the modules besides the standard library that a task's snippets and references import; if
    they are not `certain`, those too that they can do without."""
    texts: list[str] = []
    for _, reference, suite in task.solutions():
        if isinstance(suite, Assertions):
            texts += [*suite.snippets, *([reference] if reference is not None else [])]
    found = [module for text in texts for module in imported_modules(text, certain=certain)]
    if any(word in text for text in texts for word in EXCEL):
        found.append("openpyxl")
    roots = {module.partition(".")[0] for module in found} - sys.stdlib_module_names - OF_THE_TEST
    own = {root for root in roots if any(re.search(rf"\b{root}\.py['\"]", text) for text in texts)}
    return [module for module in dict.fromkeys(found) if module.partition(".")[0] in roots - own]


def packages_by_task(tasks: Sequence[Task], *, certain: bool = True) -> dict[str, list[str]]:
    """The modules without dots that tasks import, each with the ids of its tasks, the most needed first. `certain` as
    above."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        for root in dict.fromkeys(module.partition(".")[0] for module in modules_of(task, certain=certain)):
            found.setdefault(root, []).append(task.task_id)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def refuse_lacking(config: SandboxConfig, tasks: Sequence[Task]) -> None:
    """Raises `UserError` if programs cannot import what tests and references of tasks that grow by steps do."""
    growing = [task for task in tasks if task.needs_libraries]
    wanted = packages_by_task(growing)
    lacking = config.libraries().missing(wanted)
    if not lacking:
        return
    touched = {task_id for name in lacking for task_id in wanted[name]}
    where = "codechat's own interpreter" if config.python is None else f"sandbox.python={config.python}"
    head = f"{where} lacks packages that {len(touched)} of {counted(len(tasks), 'task')} import"
    if len(lacking) <= SHOWN:
        lines = [f"{head}:", *(f"{name}: {', '.join(wanted[name][:8])}{_more(wanted[name][8:])}" for name in lacking)]
    else:
        counts = ", ".join(f"{name} ({len(wanted[name])})" for name in lacking)
        first = [task.task_id for task in growing if task.task_id in touched]
        lines = [f"{head}:", counts, f"the tasks: {', '.join(first[:SHOWN])}{_more(first[SHOWN:])}"]
    raise UserError("\n".join(lines), REMEDY)


@contextlib.asynccontextmanager
async def sandbox_for(
    tasks: Sequence[Task], config: SandboxConfig, workers: int, note: Callable[[str], None], *, trusted: bool = False
) -> AsyncIterator[Sandbox]:
    """A sandbox with what the tests of the tasks import; `trusted` programs may run in a weak one.

    `note` gets its notice. Raises `UserError` if libraries are missing, or if the sandbox is too weak.
    """
    refuse_lacking(config, tasks)
    sandbox = SANDBOXES.build(config, workers=workers)
    try:
        if not trusted:
            admit(sandbox, config)
        preload(sandbox, tasks)
        if sandbox.notice:
            note(sandbox.notice)
        yield sandbox
    finally:
        await sandbox.aclose()


def preload(sandbox: Sandbox, tasks: Sequence[Task]) -> None:
    """Have what the tasks import loaded once for many programs, if it is not codechat's own interpreter's."""
    if sandbox.config.python is None or not isinstance(sandbox, Preloading):
        return
    names = dict.fromkeys(module for task in tasks for module in modules_of(task))
    sandbox.preload(sorted(name for name in names if name.partition(".")[0] not in LOADED_LATE))


def _more(rest: Sequence[str]) -> str:
    return f" and {len(rest)} more" if rest else ""


REMEDY = "mend them, or name the tasks to take: dataset.tasks=[…]; `codechat verify dataset=…` lists all"
SHOWN = 3  # defects of a refusal, which has at most five lines
LONGEST = 120  # characters of a test or a value
AT_ONCE = 32  # more than a sandbox runs; the rest can still be stopped
EVERY_S = 10.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Defect:
    """A test that no program can pass, or a reference that fails. `place` is FILE:LINE, empty if it is not known."""

    task_id: str
    place: str
    problem: str

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.place, self.task_id, self.problem]))


@dataclass(frozen=True)
class References:
    """Checks the references of a dataset by `tests`, whose limits are those of `config`.

    A reference that passed is not run again on this machine, unless `anew`. `note` gets remarks on what is made ready,
    `progress` how many references are done, and of how many; once `stopped`, no further reference is run.
    """

    dataset: Dataset
    tests: Tests
    config: SandboxConfig
    note: Callable[[str], None]
    progress: Progress
    stopped: Callable[[], bool] = lambda: False
    anew: bool = False

    async def make_ready(self, tasks: Sequence[Task]) -> None:
        """See that this machine has what the tests need. Raises `UserError`."""
        for suite in {suite.key: suite for task in tasks for suite in task.suites}.values():
            if isinstance(suite, NeedsSetup):
                await asyncio.to_thread(suite.make_ready, self.config, self.note)

    async def refuse(self, tasks: Sequence[Task]) -> None:
        """Raises `UserError` if this machine lacks something that the tests need, or one of the user's own tasks has a
        defect; published ones keep theirs."""
        await self.make_ready(tasks)
        found = await self.defects(tasks) if self.dataset.own else []
        if found:
            raise UserError(_refusal(found, len(tasks)), REMEDY)

    async def defects(self, tasks: Sequence[Task]) -> list[Defect]:
        """All defects of the tasks, in their order. Raises `InfrastructureError`, and `UserError` as `Suite.check`."""
        runs = [run for task in tasks for run in self._runs_of(task)]
        runs = [run for run in runs if self.anew or not run.mark.exists()]
        places, failed = asyncio.Semaphore(AT_ONCE), dict[tuple[str, str], str]()

        async def check(run: "_Run") -> None:
            async with places:
                if not self.stopped():
                    failed[run.task.task_id, run.part] = _within(run.part, await self._problem(run))
                    self.progress(len(failed), len(runs))

        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(check(run))
        found: list[Defect] = []
        for task in tasks:
            problems: list[str] = []
            for part, _, suite in task.solutions():
                problems += [_within(part, problem) for problem in _unusable(suite, task)]
                problems.append(failed.get((task.task_id, part), ""))
            for each in task.requirements:
                problems += [f"requirement '{each.id}': {problem}" for problem in _unusable(each.suite, task)]
            place = self.dataset.places.get(task.task_id, "")
            found += [Defect(task.task_id, place, problem) for problem in problems if problem]
        return found

    def _runs_of(self, task: Task) -> Iterator["_Run"]:
        """The checks for a task: none without a reference or tests of its own, or with tests that cannot be run."""
        target = [task.target.language, task.target.entry_point, task.target.signature]
        here = [VERSION, machine(), self.config.identity()]
        for part, reference, suite in task.solutions():
            if reference is not None and not any(_unusable(suite, task)):
                program = Program(reference, task.target)
                key = content_hash([program.source, *target, suite.kind, suite.key, *here])
                yield _Run(task, part, program, suite, secret_folder("references") / key)

    async def _problem(self, run: "_Run") -> str:
        """Why a reference fails its task's own tests, empty if it passes: that is kept."""
        try:
            verdict = await self.tests.check(run.program, run.suite)
        except BrokenTask as error:
            return error.message.replace(f"the reference of {run.task.task_id} ", "its reference ")
        if not verdict.passed:
            return describe(verdict.failure or Failure(verdict.outcome))
        run.mark.touch()
        return ""


@dataclass(frozen=True, slots=True)
class _Run:
    """A reference and its tests; the file `mark` exists once it has passed them. `part` names it in the task."""

    task: Task
    part: str
    program: Program
    suite: Suite
    mark: Path


def now_and_then(note: Callable[[str], None]) -> Progress:
    """A progress callback that notes in words how far the checks are, every ten seconds."""
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
    why = failure.reason
    if failure.expected is not None:
        why = f"expected {_short(failure.expected)}, got {_short(failure.actual or '')}"
    elif failure.exception and failure.reason == "an exception":
        why = _short(failure.exception.splitlines()[-1])
    elif failure.exception and failure.index is None:  # what a compiler or a whole run of tests said last
        why = f"{why}: {_short(failure.exception.splitlines()[-1])}"
    return f"its reference fails {tests}{given}: {why}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _refusal(found: Sequence[Defect], tasks: int) -> str:
    """How many tasks have defects, and the first few of these."""
    count = len({defect.task_id for defect in found})
    head = f"the tests of {count} of {counted(tasks, 'task')} fail on their own reference, or do not parse"
    more = f"; {counted(len(found), 'problem')}, the first {SHOWN}:" if len(found) > SHOWN else ":"
    return "\n".join([head + more, *(str(defect) for defect in found[:SHOWN])])
