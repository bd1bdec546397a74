"""Results of Harbor for tasks that `export format=harbor` wrote, as recorded sessions: a trial is a dialogue.

A step gives its turn the verifier's rewards, the agent's trajectory (ATIF), its tokens and, as an artifact, its file.
Scopes, changes and skipped turns come from the exported tasks. A trial without a verdict at each step is left out.
"""

import json
import operator
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError, model_validator

from codechat.base.config import original_option
from codechat.base.domain import Message, Outcome, Trajectory, Usage
from codechat.base.errors import UserError
from codechat.base.records import AskedRecord, InstructionRecord, SessionRecord
from codechat.base.template import counted
from codechat.datasets.importing import FORMATS, ImportConfig, Imported, PublishedTurn, dialogue
from codechat.datasets.reading.lines import problem_of
from codechat.models.agent.config import OutputConfig
from codechat.models.agent.turn import lines_changed, read_output

REMEDY = "source=FOLDER is a job of `harbor run` over exported tasks, tasks=FOLDER the tasks (docs/published.md)"
ATIF = OutputConfig(
    format="json",
    reply="steps[?source=='agent'].message | [-1]",
    steps="[steps[].tool_calls[].{id: tool_call_id, "
    "text: arguments.file_path || arguments.path || arguments.command || arguments.cmd || arguments.keystrokes || "
    "to_string(@), "
    "kind: (contains(['Edit', 'Write', 'NotebookEdit', 'apply_patch', 'write_file', 'replace'], function_name) || "
    "contains(['create', 'str_replace', 'insert'], arguments.command)) && 'edit' || "
    "!(arguments.path) && (arguments.command || arguments.cmd || arguments.keystrokes) && 'command'}, "
    "steps[].observation.results[].{id: source_call_id, "
    "output: (content[].text && join('\n', content[].text)) || content}][]",
)
"""Where a trajectory has the last message and the calls of tools, by the names of Harbor's agents."""
M = TypeVar("M", bound=BaseModel)


def _inner(*path: str) -> Any:
    """A field that lies deeper in the JSON; None without it."""
    return Field(None, validation_alias=AliasPath(*path))


class FrozenInstruction(InstructionRecord):
    """An instruction without what became of it."""

    model_config = ConfigDict(extra="ignore")


class FrozenTurn(BaseModel):
    """A turn of the exported dialogue; `asked` has several instructions, `instruction` one."""

    turn: int
    skipped: bool
    instruction: InstructionRecord | None = None
    asked: list[FrozenInstruction] = Field(default=[], exclude_if=operator.not_)

    @model_validator(mode="after")
    def _one_is_no_list(self) -> Self:
        if self.instruction is not None:
            self.asked = []
        return self


class Frozen(BaseModel):
    """The exported dialogue, as task.toml keeps it for the import; `file` is the path of the code."""

    file: str
    task_id: str
    dataset: str
    language: str
    agenda: list[str]
    seed: int
    turns: list[FrozenTurn]


class _Step(BaseModel):
    step_name: str
    rewards: dict[str, float] | None = _inner("verifier_result", "rewards")
    raised: str | None = _inner("exception_info", "exception_type")
    began: datetime | None = _inner("agent_execution", "started_at")
    ended: datetime | None = _inner("agent_execution", "finished_at")
    sent: int | None = _inner("agent_result", "n_input_tokens")
    received: int | None = _inner("agent_result", "n_output_tokens")
    cached: int | None = _inner("agent_result", "n_cache_tokens")


class _Trial(BaseModel):
    """A trial's result; a whole job's has no names."""

    task_name: str = ""
    trial_name: str = ""
    agent: str | None = _inner("agent_info", "name")
    model: str | None = _inner("agent_info", "model_info", "name")
    task_folder: str | None = _inner("task_id", "path")
    resumes: bool | None = _inner("config", "agent", "resume_trajectory")
    step_results: list[_Step] | None = None


class _Metrics(BaseModel):
    sent: int | None = _inner("metrics", "prompt_tokens")
    received: int | None = _inner("metrics", "completion_tokens")
    cached: int | None = _inner("metrics", "cached_tokens")
    llm_call_count: int | None = None


class _Atif(BaseModel):
    steps: list[dict[str, Any]]


class HarborImport(ImportConfig):
    """Options of `harbor`."""

    format: Literal["harbor"] = original_option("harbor", "what the source is")


@FORMATS.register("harbor", HarborImport)
def harbor(config: HarborImport) -> Imported:
    """Results of Harbor for exported dialogues; a file for each agent and attempt if there are several (out=FOLDER)."""
    found: dict[str, list[SessionRecord]] = defaultdict(list)
    attempts, unfinished = Counter[tuple[str, str]](), list[str]()
    for path in sorted(Path(config.source).rglob("result.json")):
        trial = _read(_Trial, path)
        if not trial.trial_name:
            continue
        name = trial.task_name.rpartition("/")[2]
        task = Path(config.tasks) / name if config.tasks else Path(trial.task_folder or name)
        frozen = _read(Frozen, task / "task.toml")
        steps = {step.step_name: step for step in trial.step_results or () if step.rewards is not None}
        if any(f"turn-{turn.turn}" not in steps for turn in frozen.turns if not turn.skipped):
            unfinished.append(trial.trial_name)
            continue
        model = config.model or "/".join(filter(None, (trial.agent, trial.model)))
        turns = list(_turns(frozen, steps, task, path.parent, remembers=bool(trial.resumes)))
        session = dialogue(frozen.task_id, frozen.dataset, model, turns, language=frozen.language, seed=frozen.seed)
        attempts[model, frozen.task_id] += 1
        found[f"{model}-{attempts[model, frozen.task_id]}"].append(session.model_copy(update={"agenda": frozen.agenda}))
    if not found:
        raise UserError(f"{config.source} holds no trial with a verdict at each step", REMEDY)
    remarks = []
    if unfinished:
        left = f"{counted(len(unfinished), 'trial')} without a verdict at each step left out"
        remarks.append(f"{left}: the first is {unfinished[0]}")
    sessions = [each for part in found.values() for each in part]
    return Imported(sessions, [], remarks, dict(found) if len(found) > 1 else {})


def _read(kind: type[M], path: Path) -> M:
    try:
        text = path.read_text(encoding="utf-8")
        whole = tomllib.loads(text)["metadata"]["codechat"] if path.suffix == ".toml" else json.loads(text)
        return kind.model_validate(whole)
    except ValidationError as error:
        raise UserError(f"{path}: not as Harbor writes it: {problem_of(error)}", REMEDY) from error
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot read {path}: {error}", REMEDY) from error


def _turns(
    frozen: Frozen, steps: dict[str, _Step], task: Path, trial: Path, *, remembers: bool
) -> Iterator[PublishedTurn]:
    last = PublishedTurn(None, None)
    earlier: list[dict[str, Any]] = []
    for turn in frozen.turns:
        if turn.skipped:
            yield PublishedTurn(last.code, last.passed, outcome=last.outcome, skipped=True)
            continue
        place = Path("steps", f"turn-{turn.turn}")
        step, rewards = steps[place.name], steps[place.name].rewards or {}
        atif, file = trial / place / "agent" / "trajectory.json", trial / place / "artifacts" / frozen.file.lstrip("/")
        told = _read(_Atif, atif).steps if atif.is_file() else []
        repeats = remembers and told[: len(earlier)] == earlier  # one conversation, continued
        new, earlier = told[len(earlier) :] if repeats else told, told
        code = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
        said = read_output(ATIF, json.dumps({"steps": new}).encode())
        counts = [_Metrics.model_validate(each) for each in new]
        added, removed = lines_changed(last.code, code)
        trajectory = Trajectory(
            code, said.steps, said.omitted, said.ran_code, lines_added=added, lines_removed=removed,
            ended="time" if step.raised == "AgentTimeoutError" else "error" if step.raised else "exit",
            requests=sum(each.llm_call_count or 0 for each in counts), remembers=remembers,
        )  # fmt: skip
        own = {
            "instruction": turn.instruction,
            "asked": [AskedRecord(**each.model_dump()) for each in turn.asked],
            "passed_base": rewards.get("passed_base", rewards.get("reward")) == 1,
            "usage": _usage(counts if remembers or any(each.sent for each in counts) else [step]),
            "latency_s": (step.ended - step.began).total_seconds() if step.began and step.ended else 0.0,
            "trajectory": trajectory,
        }
        request = [Message("user", (task / place / "instruction.md").read_text(encoding="utf-8"))]
        outcome: Outcome | None = "no_code" if code is None else None
        last = PublishedTurn(code, rewards.get("reward") == 1, None, outcome, request, said.reply, own=own)
        yield last


def _usage(counts: Sequence[_Metrics | _Step]) -> Usage:
    sums = {name: sum(getattr(each, name) or 0 for each in counts) for name in ("sent", "received", "cached")}
    return Usage(sums["sent"], sums["received"], sums["cached"])
