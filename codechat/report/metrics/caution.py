"""Warnings to read before a cell's figures: that they rest on little, or on replies that were no answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from codechat.report.metrics.counts import REPLIES

MOST = 0.2
"""The share of unusable sessions, turns or replies above which a warning precedes all figures."""


def caution_of(metrics: Mapping[str, Any], departure: str = "") -> str:
    """The warnings about a metrics.json, as sentences; empty if there is nothing to warn of.

    `departure` says that the tasks are not what their dataset's name says; empty if they are.
    """
    found = (*_sessions(metrics), *_turns(metrics), *_constraints(metrics), *_replies(metrics))
    return "; ".join(filter(None, (departure, *found)))


def _sessions(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Errored sessions are in no figure, and the remaining tasks need not be like theirs."""
    errored, completed = metrics.get("errored"), metrics.get("completed")
    if isinstance(errored, int) and isinstance(completed, int) and errored > MOST * (errored + completed):
        rest = f"the figures rest on the other {completed}" if completed else "there are no figures"
        yield f"{errored} of {errored + completed} sessions errored: {rest}"


def _turns(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A skipped turn repeats the code of the turn before: Pass@1 and sustained turns look better than they are."""
    skipped, undecided = (metrics.get(name) for name in ("skipped_turns", "undecided"))
    curve, completed = metrics.get("pass_at_1"), metrics.get("completed")
    if not (isinstance(skipped, int) and isinstance(undecided, int) and isinstance(completed, int) and curve):
        return
    turns = completed * (len(curve) - 1)
    if skipped + undecided > MOST * turns:
        yield (
            f"{skipped + undecided} of {turns} follow-up turns were skipped ({skipped}) or undecided ({undecided}): "
            "the figures rest on the others, and skipped turns repeat the verdict before them"
        )


def _constraints(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Undecided tasks, levels and constraints are in no rate, and they are harder than those that rules decide."""
    undecided = metrics.get("undecided")
    if isinstance(undecided, float) and undecided > MOST:
        yield f"{100 * undecided:.0f} % of the tasks are undecided: the rates rest on the others"
    groups = [each.get("by_check") or {} for each in (metrics, metrics.get("n") or {})]
    shares, sizes = (each.get("undecided") or {} for each in groups)
    for by, share in shares.items():  # a task counts as decided once one of its constraints is unmet
        if isinstance(share, float) and share > MOST:
            yield f"{round(share * sizes.get(by, 0))} of {sizes.get(by, 0)} decisions by {by} are undecided"


def _replies(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Replies that fail because of a setting or a server look like those of a model that cannot program."""
    found, completed = metrics.get(REPLIES) or {}, metrics.get("completed") or 0
    whole = found.get("all", 0)
    if found.get("cut", 0) > MOST * whole:
        yield f"{found['cut']} of {whole} replies were cut off by a limit of tokens (model.max_tokens) or a filter"
    if found.get("no_code", 0) > MOST * whole:
        yield f"no code was found in {found['no_code']} of {whole} replies: read some in sessions.jsonl"
    if found.get("overflowed", 0) > MOST * completed:
        sessions = f"{found['overflowed']} of {completed} sessions"
        yield f"{sessions} outgrew the context that the endpoint serves: all their further turns count as failed"
