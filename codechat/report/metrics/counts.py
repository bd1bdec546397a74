"""Counts that the engine adds to every metrics.json, and the cautions that follow from them.

They cover where verdicts were decided, replies without an answer, and the size of the cell. A report needs no dataset.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, get_args

from codechat.base.domain import Decided
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import counted
from codechat.datasets.tasks import Task
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT
from codechat.judging.deciding import UNREADABLE
from codechat.models.calls.answers import is_cut
from codechat.sandbox.suites import HasTestCounts

# Keys in metrics.json: verdicts by where they were decided, counts of replies, the cell's size. Older cells lack them.
DECIDED, REPLIES, LOADED = "decided", "replies", "loaded"
# Of language models as judges: right answers of twelve by role, and decisions without a readable answer, if any.
EXAMINED, UNREAD = "judge_check", "unreadable"
TEMPERATURES, SERVERS = "temperatures", "servers"
# Of coding agents: `codechat.report.metrics.agents`.
AGENT = "agent"
OF_ENGINE = (DECIDED, REPLIES, LOADED, TEMPERATURES, SERVERS, EXAMINED, UNREAD, AGENT)
"""The keys of metrics.json that cells of every protocol may have."""
MOVED = "by_program"
ONLY_REASONING, TRUNCATED, TRUNCATED_SESSIONS = "only_reasoning", "truncated", "truncated_sessions"
LACKS_NAME, SKIPPED_UNPARSABLE = "lacks_name", "skipped_unparsable"
INSIDE_MEANS = "the program shared a process with its tests: read a surprising pass"
MOST = 0.2
"""The share of unusable sessions, turns or replies above which a caution precedes all figures."""


def count_decided(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """The scored turns of completed sessions by where their verdict was decided.

    A verdict is decided outside if the program had no access to the process that decided it, and inside if both shared
    a process, so that the program could have forged the verdict. Skipped turns and turns of old records, which lack
    this field, do not count. `by_program`, if not zero, counts verdicts decided inside because of what the program
    returned or defined.
    """
    found = Counter[str | None]()
    for turn in _scored(sessions):
        found[turn.decided] += 1
        found[MOVED] += turn.moved
    return {place: found[place] for place in (*get_args(Decided), *([MOVED] if found[MOVED] else []))}


def constructs_in(sessions: Iterable[SessionRecord]) -> Counter[str]:
    """How often each construct forced program and tests into one process, over the turns that are counted."""
    return Counter(turn.forced_by for turn in _scored(sessions) if turn.forced_by)


def inside_in(metrics: Mapping[str, Any]) -> int:
    """The verdicts of a metrics.json that were decided inside; 0 if it has no such count."""
    return int((metrics.get(DECIDED) or {}).get("inside", 0))


def moved_words(moved: int) -> str:
    """The number of programs that caused a verdict inside, in words; empty for 0."""
    return f"; {counted(moved, 'program')} brought that about by what they returned or defined" if moved else ""


def _scored(sessions: Iterable[SessionRecord]) -> Iterator[TurnRecord]:
    for session in sessions:
        if session.status == "completed":
            yield from (turn for turn in session.turns if turn.outcome is not None and not turn.skipped)


def count_replies(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """Replies of the model under test in completed sessions that were no whole answers.

    `all`: replies at scored turns; `cut`: replies ended by a limit of tokens or a filter; `no_code`: replies without
    code that has the name asked for; `overflowed`: sessions that outgrew the model's context. If there are any:
    `lacks_name`, replies of `no_code` that have other code; `only_reasoning`, replies with text in the field of the
    reasoning alone; `truncated`, turns with a request that the endpoint did not read as a whole, in so many
    `truncated_sessions`.
    """
    found = dict.fromkeys(("all", "cut", "no_code", "overflowed"), 0)
    if_any = dict.fromkeys((LACKS_NAME, ONLY_REASONING, TRUNCATED, TRUNCATED_SESSIONS), 0)
    for session in sessions:
        if session.status != "completed":
            continue
        found["overflowed"] += session.ended == "context_overflow"
        if_any[TRUNCATED_SESSIONS] += any(turn.truncated for turn in session.turns)
        for turn in session.turns:
            if_any[ONLY_REASONING] += turn.only_reasoning
            if_any[TRUNCATED] += bool(turn.truncated)
            if turn.response is not None and turn.outcome is not None:
                found["all"] += 1
                found["cut"] += is_cut(turn.finish_reason)
                found["no_code"] += turn.outcome == "no_code"
                if_any[LACKS_NAME] += turn.outcome == "no_code" and bool(turn.lacks_name)
    return found | {name: count for name, count in if_any.items() if count}


def unreadable_by_role(judged: Mapping[tuple[str, bool], int]) -> dict[str, dict[str, int]]:
    """Of counted decisions (`judged_in`) the ones without a readable answer, by role: only roles with such a one."""
    return {
        role: {"unreadable": count, "of": count + judged.get((role, False), 0)}
        for (role, unreadable), count in judged.items()
        if unreadable
    }


def judged_in(session: SessionRecord) -> Iterator[tuple[str, bool]]:
    """The decisions of language models as judges, each with its role and whether no answer could be read.

    None of a session that was not completed. Records before `unreadable` do not say it of applicability.
    """
    if session.status != "completed":
        return
    for turn in session.turns:
        for candidate in turn.candidates:
            if candidate.by == "llm":
                yield APPLICABILITY, candidate.unreadable
        for adherence in (asked.adherence for asked in turn.asked):
            if adherence is not None and adherence.by == "llm":
                yield ADHERENCE, adherence.verdict == "undecided" and adherence.reason.startswith(UNREADABLE)
        for constraint in (turn.model_extra or {}).get("constraints", ()):
            if isinstance(constraint, Mapping) and constraint.get("by") == "judge":
                yield CONSTRAINT, constraint["met"] is None and UNREADABLE in constraint["reason"]


def count_loaded(tasks: Sequence[Task]) -> dict[str, Any]:
    """The tasks, the tasks with countable tests, and their original and added tests (paper, Table III).

    Tests of requirements belong to a turn and are not counted. `lengths`, if tasks have any, holds the mean characters
    and lines of a turn's question, code and tests, three each.
    """
    texts = [each for task in tasks for each in task.lengths()]
    units = {"characters": len, "lines": lambda text: text.count("\n") + 1}
    means = {
        unit: [round(fmean(map(measure, column)), 2) for column in zip(*texts, strict=True)]
        for unit, measure in units.items()
    }
    suites: Iterator[object] = (task.suite for task in tasks)
    known = [suite.test_counts for suite in suites if isinstance(suite, HasTestCounts)]
    return {
        "tasks": len(tasks),
        "counted": len(known),
        "original_tests": sum(original for original, _ in known),
        "added_tests": sum(added for _, added in known),
        **({"lengths": means} if texts else {}),
    }


def caution_of(metrics: Mapping[str, Any], departure: str = "") -> str:
    """Warnings to read before the figures of a metrics.json, as sentences; empty if there is none. `departure` says how
    the tasks differ from the release that their dataset is named after; empty if they do not."""
    of_sessions = (*_session_cautions(metrics), *_member_cautions(metrics))
    cautions = (*_server_cautions(metrics), *of_sessions, *_reply_cautions(metrics))
    return "; ".join(filter(None, (*_judge_cautions(metrics), departure, *cautions)))


def _judge_cautions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A judge that cannot be read leaves no figure that it decides: this comes first."""
    unread = metrics.get(UNREAD) or {}
    if any(each["unreadable"] > MOST * each["of"] for each in unread.values()):
        roles = (f"{each['unreadable']} of {each['of']} decisions on {role}" for role, each in unread.items())
        yield f"the judge's answers could not be read: {', '.join(roles)}"


def _server_cautions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """What the server withholds, from the model or from its reply, is no result of the model."""
    found, completed = metrics.get(REPLIES) or {}, metrics.get("completed") or 0
    if truncated := found.get(TRUNCATED, 0):
        yield (
            f"the endpoint counted fewer input tokens than it was sent at {counted(truncated, 'turn')} of "
            f"{found.get(TRUNCATED_SESSIONS, 0)} of {counted(completed, 'session')}: it drops the beginning of "
            "dialogues (raise the context that it serves, Ollama's num_ctx), or does not count what its cache holds"
        )
    if silent := found.get(ONLY_REASONING, 0):
        yield (
            f"{counted(silent, 'reply', 'replies')} had all text in reasoning_content, and none as an answer: "
            "check the server's reasoning parser, and model.max_tokens"
        )


def _session_cautions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Errored sessions, skipped turns and undecided constraints are in no rate and need not be like the others."""
    errored, completed = metrics.get("errored"), metrics.get("completed")
    skipped, undecided, curve = (metrics.get(name) for name in ("skipped_turns", "undecided", "pass_at_1"))
    if isinstance(errored, int) and isinstance(completed, int) and errored > MOST * (errored + completed):
        basis = f"the figures rest on the other {completed}" if completed else "there are no figures"
        yield f"{errored} of {errored + completed} sessions errored: {basis}"
    if isinstance(skipped, int) and isinstance(undecided, int) and isinstance(completed, int) and curve:
        turns, lost = completed * (len(curve) - 1), skipped + undecided
        unparsable = metrics.get(SKIPPED_UNPARSABLE)
        broken = f", {unparsable} of them since the code does not parse" if unparsable else ""
        if lost > MOST * turns:
            yield (
                f"{lost} of {turns} follow-up turns were skipped ({skipped}{broken}) or undecided ({undecided}): "
                "the figures rest on the others, and skipped turns repeat the verdict before them"
            )
    if isinstance(undecided, float) and undecided > MOST:
        yield f"{100 * undecided:.0f} % of the tasks are undecided: the rates rest on the others"
    groups = [each.get("by_check") or {} for each in (metrics, metrics.get("n") or {})]
    shares, sizes = (each.get("undecided") or {} for each in groups)
    for by, share in shares.items():  # a task counts as decided once one of its constraints is unmet
        if isinstance(share, float) and share > MOST:
            yield f"{round(share * sizes.get(by, 0))} of {sizes.get(by, 0)} decisions by {by} are undecided"


def _member_cautions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """The first share over turns is the first chart: it must not rise unsaid because the failing ones have left it."""
    from codechat.report.metrics.measures import changing_sizes, measures_in  # it imports this module

    measures = measures_in(metrics)
    for series in measures.series[:1] if measures is not None else ():
        sizes = changing_sizes(metrics, series)
        if sizes and min(sizes) < (1 - MOST) * max(sizes):
            yield f"{series.key} by turn is of {sizes[0]} at first and of {sizes[-1]} at last: not the same ones"


def _reply_cautions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Replies that fail because of a setting or a server look like replies of a model that cannot program."""
    found, completed = metrics.get(REPLIES) or {}, metrics.get("completed") or 0
    replies = found.get("all", 0)
    if found.get("cut", 0) > MOST * replies:
        yield f"{found['cut']} of {replies} replies were cut off by a limit of tokens (model.max_tokens) or a filter"
    if found.get("no_code", 0) > MOST * replies:
        lacking = f", and {other} have other code" if (other := found.get(LACKS_NAME, 0)) else ""
        without = f"no code {'with the name asked for ' if other else ''}was found in {found['no_code']}"
        yield f"{without} of {replies} replies{lacking}: read some in sessions.jsonl"
    for place, used in (metrics.get(TEMPERATURES) or {}).items():
        sent = ", ".join(dict.fromkeys(map(str, used["sent"])))
        refused = f"the endpoint refuses {place}.temperature={used['configured']}"
        yield f"{refused}: replies are decoded with another ({sent})"
    agent = metrics.get(AGENT) or {}
    if agent.get("limited", 0) > MOST:
        yield f"a limit ended {100 * agent['limited']:.0f} % of the agent's turns (model.limits_of_turn)"
    if unmetered := agent.get("unmetered", 0):
        yield f"{counted(unmetered, 'request')} of the agent came back without usage: tokens and costs are too low"
    if found.get("overflowed", 0) > MOST * completed:
        sessions = f"{found['overflowed']} of {completed} sessions"
        yield f"{sessions} outgrew the context that the endpoint serves: all their further turns count as failed"
