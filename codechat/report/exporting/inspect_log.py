"""A cell as a log of Inspect AI (its JSON format, version 2), for `inspect view`: dialogues, scores, metadata."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from codechat.base.config import original_option
from codechat.base.domain import Message, Usage
from codechat.base.files import from_yaml
from codechat.base.records import UNDER_TEST, SessionRecord, TurnRecord, read_sessions
from codechat.base.template import counted
from codechat.base.texts import read_json
from codechat.report.exporting import EXPORTS, ExportConfig, Exported

VERSION = 2
STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
TEXTS = ("request", "response", "calls")
"""Fields of a turn that the log has as messages."""


class InspectExport(ExportConfig):
    """Options of `inspect`."""

    format: Literal["inspect"] = original_option("inspect", "the tool that is to read it")


@EXPORTS.register("inspect", InspectExport)
def inspect_log(config: InspectExport) -> Exported:
    """A log for Inspect's viewer, `inspect view --log-dir FOLDER`."""
    folder = Path(config.run)
    sessions, metrics = list(read_sessions(config.sessions)), _read(folder / "metrics.json")
    # records hold no time: the cell ended when they were written, and began the metrics' `wall_s` earlier
    ended = datetime.fromtimestamp((folder / "sessions.jsonl").stat().st_mtime, UTC)
    began = ended - timedelta(seconds=(metrics or {}).get("wall_s") or 0.0)
    times = {"started_at": began.isoformat(timespec="seconds"), "completed_at": ended.isoformat(timespec="seconds")}
    ids, first = [session.task_id for session in sessions], next(iter(sessions), None)
    log = {
        "version": VERSION,
        "status": "success" if metrics is not None else "cancelled",
        "eval": {
            **dict.fromkeys(("eval_id", "run_id", "task_id"), first.cell_id if first else ""),
            "created": times["started_at"],
            "task": first.protocol if first else folder.name,
            "dataset": {"name": first.dataset if first else "", "samples": len(ids), "sample_ids": ids},
            "model": first.model if first else "",
            "config": {},
            "metadata": {"config": _read(folder / "config.yaml"), "metrics": metrics},
        },
        "plan": {},
        "results": {
            "total_samples": len(sessions),
            "completed_samples": sum(session.status == "completed" for session in sessions),
            "scores": list(_means(sessions)),
        },
        "stats": {**times, "model_usage": _used_by_model(sessions)},
        "samples": [_sample(session) for session in sessions],
    }
    return Exported((json.dumps(log, ensure_ascii=False),), counted(len(sessions), "dialogue"), suffix=".json")


def _read(path: Path) -> Any:
    """A YAML or JSON file's content; None if the file is missing."""
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    return read_json(text) if path.suffix == ".json" else from_yaml(text)


def _sample(session: SessionRecord) -> dict[str, Any]:
    messages = list(_dialogue(session.turns))
    first = next((turn.first_request for turn in session.turns), [])
    sample = {
        "id": session.task_id,
        "epoch": 1,
        "input": [_message(each) for each in first],
        "target": "",
        "messages": messages,
        "output": _output(session),
        "scores": _scores(session),
        "metadata": {
            **session.model_dump(mode="json", exclude={"turns", "judgement"}),
            "turns": [turn.model_dump(mode="json", exclude=set(TEXTS)) for turn in session.turns],
        },
        "model_usage": _used_by_model([session]),
    }
    if session.error:
        sample["error"] = {"message": session.error, "traceback": "", "traceback_ansi": ""}
    return sample


def _dialogue(turns: Iterable[TurnRecord]) -> Iterator[dict[str, str]]:
    """The new messages of every request, and the reply. A request repeats all, some or none of the earlier messages."""
    said: set[Message] = set()
    for turn in turns:
        # the calls of the model under test, if a turn has several; else the turn's request and response
        calls = [(call.request, call.response) for call in turn.calls() if call.role == UNDER_TEST]
        for request, response in calls or ([] if turn.skipped else [(turn.request, turn.response)]):
            replies = [place for place, each in enumerate(request) if each.role == "assistant"]
            new = request[replies[-1] + 1 :] if said and replies else request
            yield from (_message(each) for each in new if each.role != "system" or each not in said)
            said.update(new)
            if response is not None:
                yield {"role": "assistant", "content": response}


def _message(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


def _output(session: SessionRecord) -> dict[str, Any]:
    answered = next((turn for turn in reversed(session.turns) if turn.response is not None), None)
    if answered is None:
        return {"model": session.model, "choices": []}
    choice = {
        "message": {"role": "assistant", "content": answered.response},
        "stop_reason": STOPS.get(answered.finish_reason or "", "unknown"),
    }
    return {"model": session.model, "choices": [choice]}


def _scores(session: SessionRecord) -> dict[str, Any]:
    """By name: 1 or 0 at each turn that was decided, and the judgement on the whole dialogue if there is one."""
    decided = _decided(session)
    scores: dict[str, Any] = {
        name: {"value": values, "explanation": _reasons(session, name)} for name, values in decided.items() if values
    }
    if isinstance(session.judgement, Mapping) and "verdict" in session.judgement:
        judgement = session.judgement
        scores["judgement"] = {
            "value": str(judgement["verdict"]),
            "explanation": judgement.get("reason"),
            "metadata": dict(judgement),
        }
    return scores


def _decided(session: SessionRecord) -> dict[str, dict[str, int]]:
    passed = {f"passed_{turn.turn}": int(turn.passed) for turn in session.turns if turn.passed is not None}
    adhered = {
        f"adhered_{turn.turn}": int(turn.followed == "adhered")
        for turn in session.turns
        if turn.followed in ("adhered", "violated")
    }
    return {"passed": passed, "adherence": adhered}


def _reasons(session: SessionRecord, name: str) -> str:
    """The reasons of failures or of the judge, a line a turn."""
    found: Iterator[tuple[int, str | None, str]]
    if name == "passed":
        found = ((turn.turn, turn.outcome, turn.failure.reason if turn.failure else "") for turn in session.turns)
    else:
        judged = ((turn.turn, each) for turn in session.turns for _, each in turn.judged)
        found = ((turn, each.verdict, each.reason) for turn, each in judged if each)
    return "\n".join(f"turn {turn}: {word}{f': {reason}' if reason else ''}" for turn, word, reason in found if word)


def _means(sessions: Sequence[SessionRecord]) -> Iterator[dict[str, Any]]:
    """The share of ones at each turn, over the completed sessions with a decision."""
    decided = [_decided(session) for session in sessions if session.status == "completed"]
    for name in ("passed", "adherence"):
        turns = sorted({turn for each in decided for turn in each[name]}, key=lambda turn: int(turn.partition("_")[2]))
        for turn in turns:
            values = [each[name][turn] for each in decided if turn in each[name]]
            mean = {"name": "mean", "value": fmean(values)}
            yield {"name": turn, "scorer": name, "scored_samples": len(values), "metrics": {"mean": mean}}


def _used_by_model(sessions: Sequence[SessionRecord]) -> dict[str, dict[str, int]]:
    if not sessions:
        return {}
    used = sum((turn.usage for session in sessions for turn in session.turns), Usage())
    return {
        sessions[0].model: {
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "total_tokens": used.input_tokens + used.output_tokens,
            "input_tokens_cache_read": used.cached_input_tokens,
        }
    }
