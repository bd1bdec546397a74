"""The libraries that tests and references import: what programs lack of them, and what to load beforehand."""

import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.datasets.tasks import Task
from codechat.sandbox import SANDBOXES, Preloading, Sandbox, SandboxConfig, admit
from codechat.sandbox.languages.python.syntax import imported_modules
from codechat.sandbox.suites.assertions import Assertions

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
