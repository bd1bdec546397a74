"""The figures of a maintainer who explores a repository (CodeAssistBench, 4; definitions in docs/codeassist.md).

Undecided judgements are counted, and left out of all shares of judgements.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codechat.base.records import SessionRecord
from codechat.models.calls.answers import is_cut
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.statistics import phi
from codechat.report.metrics.sums import WHOLE, CellSums, Part, Tally, Value
from codechat.studies.cab.tasks import LONG_THREAD, RECENT_SINCE
from codechat.studies.cab.turns import AssistJudgement, AssistTurn

GRADES = ("correct", "partially_correct", "incorrect")
VERBOSITIES = ("concise", "appropriate", "verbose")
STATUSES = ("fully_satisfied", "partially_satisfied", "not_satisfied")

_SHARES: tuple[tuple[str, str, bool | None, str], ...] = (
    ("correct", "Correct", True, "issues whose verdict is CORRECT, of those decided"),
    ("partially_correct", "Partially correct", None, "issues whose verdict is PARTIALLY CORRECT, of those decided"),
    ("incorrect", "Incorrect", False, "issues whose verdict is INCORRECT, a failed build included, of those decided"),
    ("conditions_met", "Conditions met", True, "conditions that the judge finds met, of all that it decided"),
    ("satisfied", "Satisfied users", True, "dialogues that end with a fully satisfied user"),
    ("concise", "Terse", None, "answers that leave out something needed (CONCISE), of those judged"),
    ("appropriate", "Appropriate length", True, "answers of an appropriate length, of those judged"),
    ("verbose", "Verbose", False, "answers that say too much, of those judged"),
)
_ROUNDS = ("rounds", "Rounds", None, "replies of the user until the dialogue ends, averaged over issues")
_THREAD = ("thread_turns", "Turns of the thread", None, "the maintainers' turns of the real thread, averaged")
_REPLIES = ("thread_replies", "Comments of the thread", None, "the maintainers' comments in the real thread, averaged")
GROUPED = (*(key for key, *_ in _SHARES), "rounds")
BY_VERDICT = ("rounds", "thread_turns", "thread_replies")
OF_VERDICTS = ("verdict", "verdict_cohort")
_PLACES = {**{name: f"verdicts.{name}" for name in GRADES}, **{name: f"verbosity.{name}" for name in VERBOSITIES}}
_SHOWN: dict[str, tuple[str, ...]] = {
    "language": (*GRADES, *VERBOSITIES),
    "cohort": (*GRADES, *VERBOSITIES),
    "build": ("correct", "conditions_met", "satisfied", "rounds"),
    "thread": ("correct", "conditions_met", "satisfied", "rounds"),
    "kind": ("correct", "conditions_met", "satisfied", "rounds"),
    "language_cohort": (),
}  # by grouping: metrics.json has every share and the rounds of each group, tables and figures these
_FURTHER: tuple[tuple[str, str, bool | None, str], ...] = (
    ("conditions_by_issue", "Conditions met, by issue", True, "the share of an issue's conditions, averaged"),
    ("all_conditions", "All conditions met", True, "issues with every condition met, of those decided"),
    ("technical", "Technically correct", True, "answers that are technically CORRECT, of those judged"),
    ("agreement", "Verdict as implied", True, "judgements whose verdict is the one that their parts imply"),
    ("forced", "Answers asked for", None, "answers that came only when no step was left, of all turns"),
    ("commands_failed", "Commands that failed", None, "commands with another exit status than 0, of all"),
    ("commands_timed_out", "Commands out of time", None, "commands that ran past their limit of time, of all"),
    ("commands_cut", "Outputs cut", None, "commands whose output was cut, of all"),
    ("unread_user", "Unreadable users", False, "replies of the user that could not be read, of all"),
    ("unread_maintainer", "Steps without command", False, "steps with neither a command nor an answer, of all"),
)
_COUNTS = (
    ("undecided", "Undecided", "verdicts.undecided"),
    ("unvalidated", "Unvalidated builds", "counts.unvalidated"),
    ("cohort_by_issue", "Cohort by the issue's date", "counts.cohort_by_issue"),
    ("failed_builds", "Failed builds", "counts.failed_builds"),
    ("unanswered", "Without any answer", "counts.unanswered"),
    ("cut_answers", "Answers cut by a limit", "counts.cut_answers"),
    ("commands", "Commands", "counts.commands"),
    ("commands_unrun", "Commands not run", "counts.commands_unrun"),
)


def _finals() -> Iterator[Final]:
    for key, label, better, meaning in (*_SHARES, _ROUNDS, _THREAD, _REPLIES, *_FURTHER):
        yield Final(key, label, _PLACES.get(key, ""), "number" if key in BY_VERDICT else "share", better, meaning)


def _breakdowns() -> Iterator[Breakdown]:
    rows = {row[0]: row for row in (*_SHARES, _ROUNDS, _THREAD, _REPLIES)}
    for by, keys in {"verdict": BY_VERDICT, **_SHOWN}.items():
        for key, label, better, meaning in (rows[key] for key in keys):
            unit: Any = "number" if key in BY_VERDICT else "share"
            yield Breakdown(key, label, by, f"by_{by}.{key}", unit, better, meaning)


ASSIST = Measures(
    protocol="assist",
    title="CodeAssistBench: a maintainer who explores a repository",
    series=(
        Series("satisfied_by", "Satisfied by round", help="dialogues whose user is fully satisfied by this round"),
        *(
            Series(f"{name}_at", label, higher_is_better=better, help=f"{meaning}, of the dialogues that reach it")
            for name, label, better, meaning in (
                ("fully_satisfied", "Fully satisfied", True, "users who are fully satisfied at this round"),
                ("partially_satisfied", "Partially satisfied", True, "users who are partially satisfied at this round"),
                ("not_satisfied", "Not satisfied", False, "users who are not satisfied at this round"),
            )
        ),
    ),
    finals=tuple(_finals()),
    breakdowns=tuple(_breakdowns()),
    counts=tuple(Final(key, label, at, "count", None) for key, label, at in _COUNTS),
    passed="nothing is tested",
)


@dataclass
class _Seen(CellSums):
    rounds: int = 0
    overall: Tally = field(default_factory=Tally)
    at: list[Tally] = field(default_factory=list)
    groups: dict[str, dict[str, Tally]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    table: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.at = [Tally() for _ in range(self.rounds)]
        self.groups = {by: {} for by in (*OF_VERDICTS, *_SHOWN)}

    def count(self, session: SessionRecord) -> None:
        task, own = session.task_id, AssistJudgement.of(session)
        turns = [AssistTurn.of(turn) for turn in session.turns]
        parts = dict(judgement_parts(own))
        self.overall.count(task, {**parts, **further_parts(own, turns)})
        for by, name in groups_of(session.language, own):
            shown = parts if by not in OF_VERDICTS else {key: parts[key] for key in BY_VERDICT if key in parts}
            self.groups[by].setdefault(name, Tally()).count(task, shown)
        self._count(own, turns)
        self.counts["cut_answers"] += sum(is_cut(turn.finish_reason) for turn in session.turns)
        self._rounds(task, turns)

    def _count(self, own: AssistJudgement, turns: list[AssistTurn]) -> None:
        self.counts["undecided"] += own.verdict is None
        self.counts["unvalidated"] += own.unvalidated
        self.counts["cohort_by_issue"] += own.cohort_by != "repository"
        self.counts["failed_builds"] += own.build is False
        self.counts["unanswered"] += all(turn.answer is None for turn in turns)
        self.counts["commands"] += sum(len(turn.explored) for turn in turns)
        self.counts["commands_unrun"] += sum(turn.unrun for turn in turns)
        if own.verdict is not None:
            self.table[own.satisfied == "FULLY_SATISFIED", own.verdict == "CORRECT"] += 1

    def _rounds(self, task: str, turns: list[AssistTurn]) -> None:
        """Satisfaction by round. A dialogue that has ended keeps its last status."""
        replies = [turn.user for turn in turns if turn.user is not None]
        for place, tally in enumerate(self.at[: max(self.rounds, len(replies))]):
            done = any(reply.status == "FULLY_SATISFIED" for reply in replies[: place + 1])
            tally.count(task, {"satisfied_by": (done, 1)})
            if place < len(replies) and replies[place].status is not None:
                status = str(replies[place].status).lower()
                tally.count(task, {f"{name}_at": (status == name, 1) for name in STATUSES})

    def values(self, value: Value) -> dict[str, Any]:
        found: dict[str, Any] = {
            series.key: [value(tally[series.key]) for tally in self.at] for series in ASSIST.series
        }
        for final in ASSIST.finals:
            _put(found, final.at or final.key, value(self.overall[final.key]))
        for by, tallies in self.groups.items():
            for key in GROUPED if by not in OF_VERDICTS else BY_VERDICT:
                known = {name: value(tally[key]) for name, tally in sorted(tallies.items()) if key in tally.figures}
                _put(found, f"by_{by}.{key}", known)
        return found


def judgement_parts(own: AssistJudgement) -> Iterator[tuple[str, Part]]:
    """A dialogue's part of each figure that has groups."""
    if own.verdict is not None:
        yield from ((name, (own.verdict.lower() == name, 1)) for name in GRADES)
    if own.conditions_met is not None:
        yield "conditions_met", (own.conditions_met, len(own.conditions))
    if own.verbosity is not None:
        yield from ((name, (own.verbosity.lower() == name, 1)) for name in VERBOSITIES)
    yield "satisfied", (own.satisfied == "FULLY_SATISFIED", 1)
    yield "rounds", (own.rounds, 1)
    yield "thread_turns", (own.thread_turns, 1)
    if own.thread_replies is not None:
        yield "thread_replies", (own.thread_replies, 1)


def further_parts(own: AssistJudgement, turns: list[AssistTurn]) -> dict[str, Part]:
    """A dialogue's part of the figures without groups."""
    parts: dict[str, Part] = {}
    if own.conditions_met is not None:
        count = len(own.conditions)
        parts["conditions_by_issue"] = ((own.conditions_met * WHOLE + count // 2) // count, WHOLE)
        parts["all_conditions"] = (own.conditions_met == count, 1)
    if own.technical is not None:
        parts["technical"] = (own.technical == "CORRECT", 1)
    if own.judged is not None:
        parts["agreement"] = (own.judged == own.implied, 1)
    commands = [command for turn in turns for command in turn.explored]
    replies = [turn.user for turn in turns if turn.user is not None]
    ends = [command.ended for command in commands]
    return parts | {
        "forced": (sum(turn.forced for turn in turns), len(turns)),
        "commands_failed": (sum(command.status not in (0, None) for command in commands), len(commands)),
        "commands_timed_out": (ends.count("timeout"), len(commands)),
        "commands_cut": (sum(command.cut for command in commands), len(commands)),
        "unread_user": (sum(reply.status is None for reply in replies), len(replies)),
        "unread_maintainer": (sum(turn.unread for turn in turns), sum(turn.steps for turn in turns)),
    }


def cohort_of_record(own: AssistJudgement) -> str:
    """The cohort of a judged issue; of an older record, by the issue's date."""
    return own.cohort or ("recent" if own.created_at >= RECENT_SINCE else "all_time")


def groups_of(language: str, own: AssistJudgement) -> Iterator[tuple[str, str]]:
    """The groups of a dialogue, each a pair of grouping and name."""
    cohort = cohort_of_record(own)
    if own.verdict is not None:
        yield from (("verdict", own.verdict.lower()), ("verdict_cohort", f"{own.verdict.lower()}, {cohort}"))
    stands = "could_be_built" if own.could_be_built else "unvalidated"
    tried = {None: stands, True: "was_built", False: "build_failed"}
    build = tried[own.build] if own.needs_build else "none"
    yield from (("language", language), ("cohort", cohort), ("language_cohort", f"{language}, {cohort}"))
    yield from (("build", build), ("kind", "pull" if own.pull else "issue"))
    yield "thread", f"{own.thread_turns}" if own.thread_turns < LONG_THREAD else f"{LONG_THREAD}+"


def assist_metrics(
    sessions: Iterable[SessionRecord], *, rounds: int, seed: int, effort: Effort | None = None
) -> dict[str, Any]:
    """The content of metrics.json, as described by `ASSIST`; `rounds` is the most replies of the user."""
    seen = _Seen(rounds=rounds)
    found = seen.content(sessions, seed, effort)
    for key, _, place in _COUNTS:
        _put(found, place, seen.counts[key])
    return found | {"user_and_judge": _table(seen.table)}


def _table(table: Counter[tuple[bool, bool]]) -> dict[str, Any]:
    """Satisfied users against correct verdicts over decided dialogues, with Phi."""
    cells = [table[satisfied, correct] for satisfied in (True, False) for correct in (True, False)]
    names = ("satisfied_correct", "satisfied_other", "unsatisfied_correct", "unsatisfied_other")
    return {"phi": phi(*cells).value, **dict(zip(names, cells, strict=True))}


def _put(values: dict[str, Any], place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for name in parents:
        values = values.setdefault(name, {})
    values[last] = value
