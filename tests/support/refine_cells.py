"""Made-up refinement cells: the files of a finished cell, without a model, a sandbox or a dataset."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codechat.base.domain import (
    CHANGES,
    SCOPES,
    AgentStep,
    Failure,
    Instruction,
    Message,
    Trajectory,
    TurnEnd,
    Usage,
)
from codechat.base.files import write_atomically
from codechat.base.records import (
    AdherenceRecord,
    CandidateRecord,
    InstructionRecord,
    SessionRecord,
    TurnRecord,
    write_sessions,
)
from codechat.report.metrics import Effort
from codechat.report.metrics.agents import AgentSums
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.metrics import refine_metrics

WEIGHT = {"cosmetic": 0.4, "structural": 1.0, "semantic": 1.8, "add": 1.4, "remove": 0.9, "modify": 0.7}
POOL = [
    InstructionRecord(
        id=f"{scope[:3]}-{change}-{number}", text=f"{change.capitalize()} a {scope} thing, the {number}th of its kind",
        scope=scope, change=change,
    )
    for scope in SCOPES for change in CHANGES for number in range(6)
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """One cell to be made: `first` is Pass@1 at turn 0, `breaks` the regression rate, `mends` self-correction's.

    `agent` makes the model a coding agent with so many commands a turn, at most; 0 is none.
    """

    model: str
    dataset: str = "humaneval"
    tasks: int = 40
    turns: int = 10
    agenda: str = "balanced"
    judge: str = "rules"
    seed: int = 0
    first: float = 0.8
    breaks: float = 0.08
    mends: float = 0.06
    adheres: float = 0.85
    errored: int = 0
    overflows: int = 0
    code: str = "def f(x):\n    return x\n"
    agent: int = 0

    @property
    def cell_id(self) -> str:
        """An id made of the options."""
        return f"{self.model}/{self.dataset}/{self.agenda}/{self.turns}/{self.judge}/{self.seed}"


def write_cell(made: Made, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    folder = runs / made.cell_id.replace("/", "-")
    folder.mkdir(parents=True)
    sessions = list(sessions_of(made))
    write_sessions(folder / "sessions.jsonl", sessions)
    metrics = refine_metrics(sessions, seed=made.seed, effort=Effort(wall_s=12.5, retries=3))
    agents = AgentSums()
    for one in sessions:
        agents.add(one)
    (folder / "metrics.json").write_text(json.dumps(metrics | agents.content(made.seed)))
    (folder / "config.yaml").write_text(yaml.safe_dump(config_of(made)))
    return folder


def config_of(made: Made) -> dict[str, Any]:
    """The content of config.yaml, as far as a report reads it."""
    return {
        "model": {"kind": "openai", "name": made.model, "base_url": "http://127.0.0.1:1/v1"},
        "dataset": {"kind": made.dataset, "limit": None},
        "agenda": {"turns": made.turns, "sampling": "quota"},
        "protocol": {"kind": "refine"},
        "judge": {"kind": made.judge},
        "seed": made.seed,
        "runs_dir": "runs",
        "choices": {"model": made.model, "dataset": made.dataset, "agenda": made.agenda, "judge": made.judge},
    }


def sessions_of(made: Made) -> Iterator[SessionRecord]:
    """The sessions, in dataset order; the same for the same cell."""
    for number in range(made.tasks):
        task = f"{made.dataset}/{number}"
        draws = random.Random(f"{made.cell_id}/{number}")
        hard = random.Random(task).random()  # a task is hard for every model
        overflow = draws.randrange(3, made.turns) if number < made.overflows else None
        turns = list(_turns(made, draws, hard, overflow))
        errored = number >= made.tasks - made.errored
        yield SessionRecord(
            cell_id=made.cell_id, session_id=f"{made.cell_id}/{number}", task_id=task, dataset=made.dataset,
            model=made.model, protocol="refine", agenda=["cosmetic"] * (made.turns - 1), seed=made.seed,
            status="errored" if errored else "completed", error="the endpoint is down" if errored else None,
            ended="context_overflow" if overflow is not None and not errored else None,
            turns=turns[: made.turns // 2] if errored else turns,
        )  # fmt: skip


def _turns(made: Made, draws: random.Random, hard: float, overflow: int | None) -> Iterator[TurnRecord]:
    passed = 0.5 * hard + 0.5 * draws.random() < made.first
    history: list[Message] = [Message(role="user", content=f"Write f.\n{made.code}")]
    pool = draws.sample(POOL, len(POOL))
    for number in range(made.turns):
        instruction = pool[number % len(pool)] if number else None
        if overflow is not None and number >= overflow:
            yield TurnRecord(turn=number, instruction=instruction, outcome="no_code", passed=False, passed_base=False)
            continue
        if number and draws.random() < 0.02:
            tried = [CandidateRecord(id=pool[0].id, applicable=draws.choice([False, None]), by="rules")]
            outcome = "pass" if passed else "fail"
            yield TurnRecord(turn=number, skipped=True, candidates=tried, code=made.code, outcome=outcome,
                             passed=passed, passed_base=passed)  # fmt: skip
            continue
        if instruction is not None:
            weight = WEIGHT[instruction.scope] * WEIGHT[instruction.change]
            passed = draws.random() >= made.breaks * weight if passed else draws.random() < made.mends
            history.append(Message(role="user", content=instruction.text))
        yield _answered_turn(made, draws, instruction, passed=passed, request=list(history), number=number)
        history.append(Message(role="assistant", content=made.code))


def _answered_turn(
    made: Made, draws: random.Random, instruction: InstructionRecord | None, *, passed: bool,
    request: Sequence[Message], number: int,
) -> TurnRecord:  # fmt: skip
    luck = draws.random()
    verdict = "undecided" if luck < 0.02 else "adhered" if luck < made.adheres else "violated"
    outcome = "pass" if passed else draws.choice(["fail", "fail", "fail", "timeout", "syntax_error", "crash"])
    return TurnRecord(
        turn=number, instruction=instruction, request=list(request), response=f"```python\n{made.code}```",
        candidates=[CandidateRecord(id=instruction.id, applicable=True, by="rules")] if instruction else [],
        finish_reason="stop", code=f"{made.code}# turn {number}\n", outcome=outcome, passed=passed,
        passed_base=passed or draws.random() < 0.4,
        failure=None if passed else Failure(reason="wrong result", suite="plus", index=3, input="(1,)",
                                                  expected="1", actual="None"),
        cpu_s=0.01,
        adherence=AdherenceRecord(verdict=verdict, by="rules", reason="a rule") if instruction else None,
        usage=Usage(input_tokens=100 * (number + 1), output_tokens=50, cached_input_tokens=10),
        judge_usage=Usage(input_tokens=30, output_tokens=5) if instruction else Usage(),
        latency_s=0.5, trajectory=_trajectory(made, number, draws.random()) if made.agent else None,
    )  # fmt: skip


DIFF = """--- /dev/null
+++ b/test_solution.py
@@ -0,0 +1,3 @@
+from solution import f
+
+assert f(1) == 1
"""


def _trajectory(made: Made, number: int, seed: float) -> Trajectory:
    """What an agent did in a turn: it reads, edits, runs the code now and then, and sometimes writes a test."""
    draws = random.Random(f"{made.model}/{seed}")
    commands = [AgentStep("command", "cat solution.py", made.code, 0)] * draws.randrange(made.agent + 1)
    ran = draws.random() < 0.7
    if ran:
        failed = draws.random() < 0.3
        text = "Traceback (most recent call last):\n  NameError: g\n" if failed else "ok\n"
        commands.append(AgentStep("command", "python - <<'X'\nimport solution\nsolution.f(1)\nX", text, int(failed)))
    elsewhere = draws.choice([0, 0, 0, 1, 2])
    ended: TurnEnd = draws.choice(["exit"] * 12 + ["error", "time", "tokens"])  # type: ignore[assignment]
    again = draws.random() < 0.1
    return Trajectory(
        file=f"{made.code}# turn {number}\n", steps=(*commands, AgentStep("edit", "solution.py")), ran_code=ran,
        omitted=draws.choice([0, 0, 0, 4]), lines_added=draws.randrange(9), lines_removed=draws.randrange(5),
        elsewhere=elsewhere, diff=DIFF if elsewhere else "", ended=ended, status=1 if ended == "error" else None,
        requests=2 + len(commands), unmetered=draws.choice([0] * 9 + [1]), replayed=3 if again else 0,
        attempts=2 if again else 1, remembers=made.agent > 2,
    )  # fmt: skip


PAPER_MODELS = {
    "gpt5": (0.93, 0.045), "gpt5_nano": (0.86, 0.05), "deepseek_v3": (0.88, 0.07), "gpt_oss_20b": (0.84, 0.075),
    "llama33_70b": (0.82, 0.09), "qwen25_coder_32b": (0.86, 0.085), "qwen25_coder_7b": (0.78, 0.13),
    "llama31_8b": (0.66, 0.2),
}  # fmt: skip


def paper(tasks: tuple[int, int] = (164, 378), **options: Any) -> list[Made]:
    """Eight models on two datasets; by default as many tasks as in the paper."""
    return [
        Made(model, dataset, count, first=first - (0.05 if dataset == "mbpp" else 0.0), breaks=breaks, **options)
        for model, (first, breaks) in PAPER_MODELS.items()
        for dataset, count in zip(("humaneval", "mbpp"), tasks, strict=True)
    ]


AUDIT_POOL: tuple[Instruction, ...] = read_pool(EMBEDDED, {}).instructions
CODE = "def double(x):\n    # twice\n    return x * 2\n"


def turn(number: int, chosen: Instruction, tried: Sequence[Instruction] = (), **values: Any) -> TurnRecord:
    """A follow-up turn: what was tried in vain, then what was chosen; judged as adhered unless told otherwise."""
    candidates = [CandidateRecord(id=one.id, applicable=False, by="rules") for one in tried]
    candidates.append(CandidateRecord(id=chosen.id, applicable=True, by="rules"))
    given = {"id": chosen.id, "text": chosen.text, "scope": chosen.scope, "change": chosen.change}
    fields = {
        "turn": number, "instruction": InstructionRecord.model_validate(given), "candidates": candidates,
        "response": "…", "code": CODE + f"# {number}\n", "outcome": "pass", "passed": True, "passed_base": True,
        "adherence": {"verdict": "adhered", "by": "rules", "reason": "seen"}, **values,
    }  # fmt: skip
    return TurnRecord.model_validate(fields)


def session(cell: str, task: str, turns: Sequence[TurnRecord], **values: Any) -> SessionRecord:
    """A completed session, whose turn 0 is `CODE`."""
    first = TurnRecord(turn=0, response="…", code=CODE, outcome="pass", passed=True, passed_base=True)
    fields = {
        "cell_id": cell, "session_id": f"{cell}-{task}", "task_id": task, "dataset": "d", "model": "m",
        "protocol": "refine", "agenda": ["cosmetic"] * len(turns), "seed": 0, "status": "completed",
        "turns": [first, *turns], **values,
    }  # fmt: skip
    return SessionRecord.model_validate(fields)


def write_audit_cell(folder: Path, sessions: Sequence[SessionRecord], **config: Any) -> Path:
    """A finished cell's folder."""
    metrics = refine_metrics(list(sessions), seed=0, effort=Effort(wall_s=1.0))
    values = {"instructions": {"kind": "default"}, "seed": 0, **config}
    write_atomically(folder / "config.yaml", yaml.safe_dump(values))
    write_atomically(folder / "sessions.jsonl", "".join(one.line() + "\n" for one in sessions))
    write_atomically(folder / "metrics.json", json.dumps(metrics))
    return folder


def of(scope: str, change: str) -> list[Instruction]:
    """The embedded pool's instructions of one type."""
    return [one for one in AUDIT_POOL if (one.scope, one.change) == (scope, change)]
