"""Checks that the parts of a cell fit each other, before anything runs."""

from collections.abc import Iterable

from codechat.engine.config import CellConfig
from codechat.errors import UserError
from codechat.instructions import Pool
from codechat.judges import JUDGES
from codechat.models import MODELS
from codechat.protocols import PROTOCOLS
from codechat.tasks import Dataset, Requirement, Task
from codechat.texts import problem_of_name, visible, writable


def check_fit(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the protocol, the model or the judge cannot work on a task."""
    protocol = PROTOCOLS.of(config.protocol)
    over = protocol.traits.over
    for task in tasks:
        if not isinstance(task, over):
            raise UserError(
                f"protocol={protocol.name} works on tasks of the kind {over.__name__}, and {task.task_id} of "
                f"{dataset.name} is a {type(task).__name__}",
                "choose a dataset that is made for the protocol: codechat list dataset",
            )
    _check_languages(f"model={MODELS.of(config.model).name}", MODELS.of(config.model).traits.languages, tasks)
    if "judge" in config.uses:
        _check_languages(f"judge={JUDGES.of(config.judge).name}", JUDGES.of(config.judge).traits.languages, tasks)


def check_texts(dataset: Dataset, tasks: Iterable[Task], pool: Pool | None) -> None:
    """Raises `UserError` for a name that no table could show, or a text that no file could hold."""
    instructions = pool.instructions if pool is not None else ()
    names = [("dataset", dataset.name), *(("task id", task.task_id) for task in tasks)]
    for what, name in (*names, *(("instruction's id", one.id) for one in instructions)):
        if problem := problem_of_name(name):
            raise UserError(
                f"the {what} '{visible(name)[:60]}' {problem}", "rename it: names stand in tables, pages and terminals"
            )
    texts = [(task.task_id, [task.prompt, task.target, task.level, *map(_asked, task.requirements)]) for task in tasks]
    texts += [(one.id, [one.text]) for one in instructions]
    for name, parts in texts:
        if writable(parts) is not parts:
            raise UserError(f"a text of {name} has half of a surrogate pair (\\ud800 to \\udfff)", "leave it out")


def _asked(requirement: Requirement) -> list[str]:
    return [requirement.id, requirement.strategy, requirement.text]


def _check_languages(part: str, languages: frozenset[str] | None, tasks: tuple[Task, ...]) -> None:
    if languages is None:
        return
    for task in tasks:
        if task.target.language not in languages:
            raise UserError(
                f"{part} knows only {', '.join(sorted(languages))}, and {task.task_id} is in {task.target.language}",
                "choose another, or tasks in a language it knows (dataset.tasks)",
            )
