"""MINT's published dialogues, one `results.jsonl` of one model and setting, as sessions of the protocol `recorded`.

A dialogue alternates between the agent, which runs code or proposes a solution, and the environment, which shows
output, rejects a proposal, and may give feedback. Each proposal is a turn: all its `<solution>` parts, stripped and
joined by a newline, as MINT tests them. A proposal that is followed by "Your answer is wrong." was rejected; the
verdict on the last one is the dialogue's `success`. A dialogue without a proposal is one turn without code.
"""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from codechat.base.config import original_option
from codechat.base.domain import Message
from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.datasets.importing import FORMATS, ImportConfig, Imported, PublishedTurn, dialogue
from codechat.datasets.reading.lines import problem_of, rows_of
from codechat.studies.refine.dataset_mint import MintTask, dataset_name, mint_tasks

REMEDY = "source=FILE or DIR names a results.jsonl of MINT (docs/published.md)"
RESULTS = "results.jsonl"
_SOLUTION = re.compile(r"<solution>(.*?)</solution>", re.DOTALL)
_WRONG = "Your answer is wrong."


class _Said(BaseModel):
    role: str
    content: str


class _State(BaseModel):
    history: list[_Said]
    success: bool | None = None
    terminate_reason: str | None = None


class _Result(BaseModel):
    state: _State
    task: MintTask


class MintImport(ImportConfig):
    """Options of `mint`."""

    format: Literal["mint"] = original_option("mint", "what the source is")


@FORMATS.register("mint", MintImport)
def mint(config: MintImport) -> Imported:
    """MINT's published dialogues of one model and setting. Raises `UserError` naming the first wrong row."""
    source = Path(config.source)
    path = source / RESULTS if source.is_dir() else source
    known = None if config.tasks is None else {task.name(): task for _, task in mint_tasks(Path(config.tasks))}
    sessions: dict[str, list[PublishedTurn]] = {}
    contrary: list[str] = []
    for place, row in rows_of(path):
        try:
            result = _Result.model_validate(row)
        except ValidationError as error:
            raise UserError(f"{place}: not a dialogue of MINT: {problem_of(error)}", REMEDY) from error
        if result.task.id is None and result.task.task_id is None:
            raise UserError(f"{place}: not a dialogue of MINT: its task has no id", REMEDY)
        name = result.task.name()
        if known is not None and name not in known:
            raise UserError(f"{place}: there is no task {name} in {config.tasks}", "tasks=FILE names its tasks")
        if name in sessions:
            raise UserError(f"{place}: a second dialogue of {name}", "import one model and setting at a time")
        sessions[name] = turns = _turns(result.state)
        if result.state.success and turns[-1].passed is not True:
            contrary.append(place)
    if not sessions:
        raise UserError(f"{path} holds no dialogue", REMEDY)
    order = [name for name in known if name in sessions] if known else list(sessions)
    silent = sum(turns[0].code is None for turns in sessions.values())
    remarks = [f"{counted(silent, 'dialogue')} proposed no solution: one turn without code each"] if silent else []
    if contrary:
        said = counted(len(contrary), "dialogue says", "dialogues say")
        remarks.append(
            f"{said} success without a last solution that was accepted: not passed; the first is {contrary[0]}"
        )
    model, dataset = config.model or _model_of(path), dataset_name(order)
    made = [dialogue(name, dataset, model, sessions[name]) for name in order]
    return Imported(made, [Path(config.tasks)] if config.tasks else [], remarks)


def _model_of(path: Path) -> str:
    """The model by the published folders: MODEL/SETTING/…/results.jsonl; else by the file."""
    if path.name == RESULTS:
        folders = [folder.name for folder in path.resolve().parents if folder.name]
        return "/".join(reversed(folders[:3])) or "imported"
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removeprefix("mint_raw_")


def _turns(state: _State) -> list[PublishedTurn]:
    said = [Message("assistant" if one.role == "assistant" else "user", one.content) for one in state.history]
    proposals = [
        (place, "\n".join(part.strip() for part in _SOLUTION.findall(message.content)))
        for place, message in enumerate(said)
        if place and message.role == "assistant" and _SOLUTION.search(message.content)
    ]
    turns, earlier = [], 0
    for place, code in proposals:
        rejected = place + 1 < len(said) and _WRONG in said[place + 1].content
        last = place == proposals[-1][0]
        passed = False if rejected else state.success if last else None
        reason = None if passed else _WRONG if rejected else state.terminate_reason
        steps = sum(message.role == "assistant" for message in said[earlier:place])
        own = {"executed": steps}
        turns.append(PublishedTurn(code, passed, reason, None, said[:place], said[place].content, own=own))
        earlier = place + 1
    if not turns:
        last_said = max((place for place, message in enumerate(said) if message.role == "assistant"), default=None)
        response = None if last_said is None else said[last_said].content
        passed, why = False if state.success is False else None, state.terminate_reason
        turns.append(PublishedTurn(None, passed, why, "no_code", said[:last_said], response, own={"executed": 0}))
    return turns
