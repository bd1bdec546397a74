"""A cell's dialogues as multi-step tasks of Harbor: agenda and instructions frozen as recorded, a step a request.

A step is verified in a container apart, to which Harbor brings the file alone: the tests are never where the agent is.
They are the task's own, run by `codechat.sandbox.suites.calls.standalone`, of which each task has a copy.
"""

import asyncio
import json
import marshal
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast

from codechat.base.config import original_option
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.base.records import SessionRecord, read_sessions
from codechat.base.template import counted
from codechat.datasets import DATASETS, DatasetConfig, load
from codechat.datasets.tasks import Task
from codechat.models.agent.config import HERE, AgentLimits
from codechat.models.agent.turn import prompt_of
from codechat.report.exporting import EXPORTS, ExportConfig, Exported
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.sandbox.languages import file_for
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.standalone import MODULES
from codechat.studies.refine.format_harbor import Frozen

WORK = "/app"
START_S = 120  # seconds that a verifier may take beyond its program
TEST = """#!/bin/sh
cd /tests && exec python3 -B -m codechat.sandbox.suites.calls.standalone {file} /logs/verifier
"""
SOLVE = "#!/bin/sh\ncat > {file} <<'END_OF_THE_REFERENCE'\n{reference}\nEND_OF_THE_REFERENCE\n"
Files = dict[str, str | bytes]


class HarborExport(ExportConfig):
    """Options of `harbor`."""

    format: Literal["harbor"] = original_option("harbor", "the tool that is to read it")


@EXPORTS.register("harbor", HarborExport)
def harbor_tasks(config: HarborExport) -> Exported:
    """Multi-step tasks for agents in Harbor (out=FOLDER), for `harbor run -p FOLDER`."""
    cell = from_yaml((Path(config.run) / "config.yaml").read_text(encoding="utf-8"))
    dataset = load(cast(DatasetConfig, DATASETS.validate(cell["dataset"], "dataset")))
    tasks = {task.task_id: task for task in dataset.tasks}
    every = list(read_sessions(config.sessions))
    sessions = [each for each in every if each.status == "completed" and each.ended is None]
    if not sessions:
        raise UserError(f"no dialogue of {config.run} is complete", "finish the cell first")
    for session in sessions:
        _require_exportable(session, tasks.get(session.task_id))
    sandbox = cast(SandboxConfig, SANDBOXES.validate(cell["sandbox"], "sandbox"))
    made = asyncio.run(_made([(each, tasks[each.task_id]) for each in sessions], sandbox))
    remarks = ["the instructions were found to apply to this cell's code: an agent may be asked for what its code has"]
    if left := len(every) - len(sessions):
        remarks.append(f"{counted(left, 'dialogue')} left out: errored, or ended by the model's context")
    return Exported((), counted(len(sessions), "task"), remarks, files=made)


def _require_exportable(session: SessionRecord, task: Task | None) -> None:
    if session.protocol != "refine":
        raise UserError(f"protocol={session.protocol} cannot be frozen", "export cells of protocol=refine")
    if task is None:
        raise UserError(f"the cell's dataset has no task {session.task_id}", "dataset.path named another file then")
    if type(task.suite) is not Calls:  # a subclass calls programs of another language
        kind = task.suite.kind if task.suite is not None else "none"
        problem = f"{task.task_id}: tests of the kind {kind} for {task.target.language} cannot be written as a script"
        raise UserError(problem, "export tasks in Python with inputs and results (suite.kind=calls)")


async def _made(dialogues: Sequence[tuple[SessionRecord, Task]], config: SandboxConfig) -> Files:
    """The files of all tasks. Raises `UserError` for a reference that fails."""
    package = files("codechat")
    code: Files = {}
    for place in (f"{each.replace('.', '/')}.py" for each in MODULES):
        code |= {f"codechat/{folder}/__init__.py": b"" for folder in Path(place).parents}
        code[f"codechat/{place}"] = package.joinpath(place).read_bytes()
    made: Files = {}
    sandbox = SANDBOXES.build(config, workers=1)
    try:
        for session, task in dialogues:
            suite = cast(Calls, task.suite)
            prepared = await sandbox.lend(partial(suite.find_prepared, config=config))
            seconds = math.ceil(2 * (prepared.cpu + config.total_cpu_s))  # it may wait too, and shares the processor
            limits = {"memory": config.memory_mb << 20, "file": config.file_mb << 20, "wall_s": seconds}
            job = suite.job("", prepared, config) | limits
            expected: dict[str, Any] = {"base": len(suite.base), "oracle": suite.oracle, "atol": suite.atol}
            expected |= {"expected": [astuple(each) for each in prepared.results.expected]}
            tests: Files = {**code, "job": marshal.dumps(job, 2), "expected": marshal.dumps(expected, 2)}
            name = re.sub(r"[^A-Za-z0-9._-]+", "-", session.task_id).strip("-.")
            own = _task(name, session, task, seconds) | {f"tests/{file}": content for file, content in tests.items()}
            made |= {f"{name}/{file}": content for file, content in own.items()}
    finally:
        await sandbox.aclose()
    return made


def _task(name: str, session: SessionRecord, task: Task, seconds: int) -> Files:
    """The files of a task without codechat's modules; `seconds` is the most that a program takes."""
    file = f"{WORK}/{file_for(session.language)}"
    asked = [turn for turn in session.turns if not turn.skipped]
    frozen = Frozen.model_validate({**session.model_dump(), "file": file}).model_dump(exclude_none=True)
    tables: list[tuple[str, Mapping[str, Any]]] = [
        ("", {"schema_version": "1.4", "artifacts": [file], "multi_step_reward_strategy": "mean"}),
        ("[task]", {"name": f"codechat/{name}", "description": f"{session.task_id}, {counted(len(asked), 'request')}"}),
        ("[metadata.codechat]", frozen),
        ("[agent]", {"timeout_sec": AgentLimits().seconds}),
        ("[verifier]", {"environment_mode": "separate", "timeout_sec": seconds + START_S}),
        ("[environment]", {"workdir": WORK}),
        *(("[[steps]]", {"name": f"turn-{turn.turn}"}) for turn in asked),
    ]
    image = f"python:{sys.version_info[0]}.{sys.version_info[1]}-slim"
    made: Files = {
        "task.toml": "\n".join(line for table, values in tables for line in (table, *_toml(values))).lstrip() + "\n",
        "environment/Dockerfile": f"FROM {image}\nWORKDIR {WORK}\n",
        "tests/test.sh": TEST.format(file=file),
    }
    for turn in asked:
        told = prompt_of(turn.request, turn.turn, HERE, file_for(session.language))
        made[f"steps/turn-{turn.turn}/instruction.md"] = f"{told}\n"
    if task.reference is not None:
        made["solution/solve.sh"] = SOLVE.format(file=file, reference=task.reference)
    return made


def _toml(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} = {_inline(value)}" for name, value in values.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(_toml(value))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
