"""Checks that the parts of a cell fit each other, before anything runs."""

from codechat.engine.config import CellConfig
from codechat.errors import UserError
from codechat.judges import JUDGES
from codechat.models import MODELS
from codechat.protocols import PROTOCOLS
from codechat.tasks import Dataset, Task


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


def _check_languages(part: str, languages: frozenset[str] | None, tasks: tuple[Task, ...]) -> None:
    if languages is None:
        return
    for task in tasks:
        if task.target.language not in languages:
            raise UserError(
                f"{part} knows only {', '.join(sorted(languages))}, and {task.task_id} is in {task.target.language}",
                "choose another, or tasks in a language it knows (dataset.tasks)",
            )
