"""`requirements dataset=D`: prints what to install for the tests and references of a dataset's tasks."""

from collections.abc import Sequence

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import out
from codechat.cli.words import parse_words
from codechat.datasets import DATASETS, select
from codechat.run.cell.libraries import packages_by_task
from codechat.run.settings.compose import compose
from codechat.sandbox.languages.python.syntax import requirements

VERSIONS = ("fitting", "newest")
SETTINGS = {"versions": f"{' or '.join(VERSIONS)}: those that the tests are known to fit, or none"}


def print_requirements(words: Sequence[str]) -> int:
    """Print a line for pip a package; returns the exit status. Raises `UserError`."""
    settings = [word for word in words if word.partition("=")[0].partition(".")[0] == "dataset"]
    given = parse_words([word for word in words if word not in settings], {**SETTINGS, "dataset": "the tasks"})
    versions = given.get("versions", VERSIONS[0])
    if versions not in VERSIONS:
        raise UserError(f"there are no versions '{versions}'", SETTINGS["versions"])
    if not settings:
        raise UserError("dataset is required", "codechat requirements dataset=NAME dataset.path=FILE")
    config = compose(settings).config.dataset
    dataset = DATASETS.build(config)
    tasks = select(dataset, config)
    wanted = packages_by_task(tasks, certain=False)
    fitting = {} if versions == "newest" else {p: v for task in tasks for p, v in task.fitting_versions.items()}
    for line in requirements(wanted, fitting):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    touched = {task_id for ids in wanted.values() for task_id in ids}
    others = sorted({task.target.language for task in tasks} - {"python"})
    if others:
        out.print(f"# only Python's packages are known: what {', '.join(others)} needs, the docs say", markup=False)
    if touched:
        out.print(f"# for {len(touched)} of {len(tasks)} tasks; the others need none of them", markup=False)
    elif not others:
        out.print(f"# nothing to install for {counted(len(tasks), 'task')}", markup=False)
    return 0
