"""What a cell would take, before anything is spent: counted from its tasks and prompts by stated assumptions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from codechat.cell import Cell, session_id
from codechat.config import Config
from codechat.domain import Task, Usage
from codechat.journal import Journal
from codechat.metrics.spending import Payer, Tariff, models_in, spent_usd
from codechat.protocols import PROTOCOLS

CHARS_PER_TOKEN = 4
PROSE = 200
"""Characters of a reply around its code."""
UNKNOWN_CODE = 1_000
"""Characters of the code for a task without a reference."""
CHECKS = 2
"""Candidates that are checked for each instruction: every second one applies."""
JUDGEMENT = 200
"""Tokens of a judge's answer."""

ASSUMPTIONS = (
    f"{CHARS_PER_TOKEN} characters are a token",
    f"a reply is the reference solution and {PROSE} characters of prose, no reasoning, at most max_tokens",
    "every session has all its turns, and each request holds the whole conversation so far",
    f"a judge checks {CHECKS} candidates a turn (rounded up to judge.lookahead) and answers in {JUDGEMENT} tokens",
    "no retries, no re-asks, nothing from the response cache",
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Sessions and turns that are missing, calls and tokens by payer; `usd` as far as prices are known."""

    sessions: int
    turns: int
    calls: dict[Payer, int]
    tokens: dict[Payer, Usage]
    model_usd: float | None
    judge_usd: float | None

    def __add__(self, other: "Estimate") -> "Estimate":
        """The sum; a cost that is not known of one is not known of the sum, unless that one asks nobody."""
        return Estimate(
            self.sessions + other.sessions,
            self.turns + other.turns,
            {payer: self.calls[payer] + other.calls[payer] for payer in self.calls},
            {payer: self.tokens[payer] + other.tokens[payer] for payer in self.tokens},
            _sum(self.model_usd, other.model_usd),
            _sum(self.judge_usd, other.judge_usd),
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def estimate_of(cell: Cell, tariff: Tariff) -> Estimate:
    """What is missing of a cell; what its journal holds already costs nothing. Writes nothing, asks nobody."""
    replies = _recorded(cell)
    protocol, assumed = cell.protocol(), _assume(cell)
    missing = [(task, protocol.turns(task), replies.get(task.task_id, 0)) for task in cell.tasks]
    each = [_session(task, turns, known, assumed) for task, turns, known in missing if known < turns]
    calls: dict[Payer, int] = {"model": 0, "applicability": 0, "adherence": 0}
    tokens: dict[Payer, Usage] = dict.fromkeys(calls, Usage())
    for used in each:
        for payer, (count, usage) in used.items():
            calls[payer] += count
            tokens[payer] += usage
    costs = spent_usd(tokens, tariff)
    turns = sum(used["model"][0] for used in each)
    model_usd = 0.0 if not assumed.asks else costs.model
    judge_usd = 0.0 if not assumed.judged else costs.judge
    if not assumed.asks:
        calls["model"], tokens["model"] = 0, Usage()
    return Estimate(len(each), turns, calls, tokens, model_usd, judge_usd)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several cells."""
    return reduce(lambda one, other: one + other, estimates)


def _recorded(cell: Cell) -> dict[str, int]:
    """The replies in the cell's journal, by task; all of them for a session that is finished."""
    path = cell.folder / "journal.db"
    if not path.exists():
        return {}
    journal, found = Journal(path), dict[str, int]()
    for task in cell.tasks:
        identity = session_id(cell.id, task.task_id)
        done = journal.outline(identity, completed=True) is not None
        found[task.task_id] = 1_000_000 if done else journal.replies(identity)
    journal.close()
    return found


@dataclass(frozen=True, slots=True)
class _Assumed:
    """Characters of the texts around a task's own, and what the judge is asked."""

    asks: bool
    initial: int
    followup: int
    most_tokens: float
    judged: float
    """The share of follow-up turns that a language model judges."""
    checks: int
    applicability: int
    adherence: int


def _assume(cell: Cell) -> _Assumed:
    experiment = cell.experiment
    texts = _prompts(experiment.protocol)
    uses = PROTOCOLS.of(experiment.protocol).uses
    wording = [len(one.text) for one in cell.pool.instructions] if "instructions" in uses else []
    wording = wording or [len(need.text) for task in cell.tasks for need in task.requirements]
    asked = round(sum(wording) / len(wording)) if wording else 0
    judge, lookahead = experiment.judge, experiment.judge.lookahead
    judging = "judge" in uses and any(True for _ in models_in(judge, "judge"))
    unruled = sum(one.rule is None for one in cell.pool.instructions) / max(1, len(cell.pool.instructions))
    questions = _prompts(judge) or _prompts(getattr(judge, "llm", judge))
    return _Assumed(
        asks=hasattr(experiment.model, "base_url") or experiment.model.prices is not None,
        initial=texts.get("initial", max(texts.values(), default=0)),
        followup=texts.get("followup", min(texts.values(), default=0)) + asked,
        most_tokens=getattr(experiment.model, "max_tokens", None) or math.inf,
        judged=(unruled if getattr(judge, "rules_first", False) else 1.0) if judging else 0.0,
        checks=math.ceil(CHECKS / lookahead) * lookahead,
        applicability=questions.get("applicability", 0) + asked,
        adherence=questions.get("adherence", 0) + asked,
    )


def _prompts(config: Config) -> dict[str, int]:
    """The lengths of a component's prompts, by their names."""
    prompts = getattr(config, "prompts", None)
    if not isinstance(prompts, Config):
        return {}
    return {name: len(text) for name, text in prompts.model_dump().items() if isinstance(text, str)}


def _session(task: Task, turns: int, known: int, assumed: _Assumed) -> dict[Payer, tuple[int, Usage]]:
    """Calls and tokens of what a session still has to ask for."""
    code = len(task.reference) if task.reference else UNKNOWN_CODE
    reply = min((code + PROSE) / CHARS_PER_TOKEN, assumed.most_tokens)
    sent = 0.0
    for turn in range(known, turns):
        sent += (assumed.initial + len(task.prompt) + turn * assumed.followup) / CHARS_PER_TOKEN + turn * reply
    later = (turns - max(known, 1)) * assumed.judged
    choosing, following = round(later * assumed.checks), round(later)
    return {
        "model": (turns - known, Usage(round(sent), round((turns - known) * reply))),
        "applicability": (choosing, _judging(choosing, assumed.applicability + code)),
        "adherence": (following, _judging(following, assumed.adherence + 2 * code)),
    }


def _judging(calls: int, characters: int) -> Usage:
    return Usage(round(calls * characters / CHARS_PER_TOKEN), calls * JUDGEMENT)
