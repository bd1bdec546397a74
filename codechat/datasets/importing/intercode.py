"""InterCode's logs: of each task the actions with their observations and rewards.

Each action is a turn, and what was observed before it its request. A reward of 1 is InterCode's success; a turn without
a reward has no verdict. The file is one JSON object, by the number of the task.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from codechat.base.config import original_option
from codechat.base.domain import Message
from codechat.base.errors import UserError
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.importing.dialogues import PublishedTurn, dialogue
from codechat.datasets.reading.lines import problem_of, rows_of

REMEDY = "source=FILE names a log of InterCode: a JSON object of tasks with actions, observations and rewards"
LANGUAGES = ("python", "bash", "sql")


class InterCodeImport(ImportConfig):
    """Options of `intercode`."""

    format: Literal["intercode"] = original_option("intercode", "what the source is")


class _Log(BaseModel):
    """A task's log; the lists stand in it, or in a part of it such as `turn_history`."""

    model_config = ConfigDict(frozen=True)

    actions: list[str]
    observations: list[Any] = []
    rewards: list[float | None] = []
    task_id: int | str | None = None
    query: str | None = None
    environment: str = ""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        inner = (
            [part for part in value.values() if isinstance(part, dict) and "actions" in part]
            if isinstance(value, dict)
            else []
        )
        return {**value, **inner[0]} if inner else value


@FORMATS.register("intercode", InterCodeImport)
def intercode(config: InterCodeImport) -> Imported:
    """InterCode's logs of one model and environment. Raises `UserError` naming the first wrong task."""
    path, sessions = Path(config.source), []
    try:
        logs = [value for _, value in rows_of(path)]
    except UserError as error:
        raise UserError(str(error).partition("\n")[0], REMEDY) from error
    by_task = len(logs) == 1 and isinstance(logs[0], dict) and all(isinstance(one, dict) for one in logs[0].values())
    for key, value in logs[0].items() if by_task else enumerate(logs):
        try:
            log = _Log.model_validate(value)
        except ValidationError as error:
            raise UserError(f"{path}: task {key}: {problem_of(error)}", REMEDY) from error
        language = next((name for name in LANGUAGES if name in log.environment.lower()), "python")
        name = f"intercode/{key if log.task_id is None else log.task_id}"
        model = config.model or path.name.split(".")[0]
        sessions.append(dialogue(name, "intercode", model, _turns(log), language=language))
    if not sessions:
        raise UserError(f"{path} holds no task", REMEDY)
    return Imported(sessions, [])


def _turns(log: _Log) -> list[PublishedTurn]:
    history = [] if log.query is None else [Message("user", log.query)]
    turns = []
    for number, action in enumerate(log.actions):
        reward = log.rewards[number] if number < len(log.rewards) else None
        passed = None if reward is None else reward == 1
        reason = None if reward is None else f"reward {reward:g}"
        turns.append(PublishedTurn(action, passed, reason, request=list(history), response=action))
        history.append(Message("assistant", action))
        if number < len(log.observations):
            history.append(Message("user", str(log.observations[number])))
    return turns or [PublishedTurn(None, None, outcome="no_code", request=history)]
