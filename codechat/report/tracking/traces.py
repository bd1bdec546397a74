"""The dialogues of a finished cell as MLflow traces: a span per turn, and in it the model, the judge and the sandbox.

Records know how long each part took but not when: in a trace the parts follow each other up to the time of logging.
"""

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.domain import Message, Usage
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord, TurnRecord, read_sessions

MOST = 200  # dialogues of a cell: people read the list of traces, and each dialogue takes some 40 spans
DIALOGUES_PER_BATCH = 20


@dataclass(frozen=True)
class Part:
    """A span to log; `seconds` is its own time, without that of its parts."""

    name: str
    kind: str
    inputs: Any
    outputs: Any
    seconds: float = 0.0
    parts: Sequence["Part"] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def duration_ns(self) -> int:
        """The time of the span with all its parts, in nanoseconds."""
        return int(self.seconds * 1e9) + sum(part.duration_ns for part in self.parts)


def log_traces(client: Any, uri: str, experiment_id: str, run_id: str, path: Path) -> str | None:
    """Log the dialogues of a sessions.jsonl beside a run, replacing their earlier traces in the experiment.

    Returns a notice if there are more than `MOST`: only the first are logged.
    """
    from mlflow.tracing.client import TracingClient

    tracing = TracingClient(uri)
    sessions = itertools.islice(read_sessions(path), MOST)
    while batch := list(itertools.islice(sessions, DIALOGUES_PER_BATCH)):
        traces = [_trace(session, experiment_id, run_id) for session in batch]
        client.delete_traces(experiment_id, trace_ids=[info.trace_id for info, _ in traces])
        for info, _ in traces:
            tracing.start_trace(info)
        tracing.log_spans(experiment_id, [span for _, spans in traces for span in spans])
    with path.open("rb") as lines:
        total = sum(1 for _ in lines)
    return f"traces of the first {MOST} of {total} dialogues only: the others are in {path}" if total > MOST else None


def _trace(session: SessionRecord, experiment_id: str, run_id: str) -> tuple[Any, list[Any]]:
    """A dialogue's trace and its spans. Ids are derived from the session, so that the trace is found again."""
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    number = content_hash([experiment_id, session.session_id])[:32]
    dialogue = _dialogue(session)
    used = [_tokens(turn.usage) for turn in session.turns]
    tokens = {kind: sum(each[kind] for each in used) for kind in _tokens(Usage())}
    start_ns = time.time_ns() - dialogue.duration_ns
    info = TraceInfo(
        trace_id=f"tr-{number}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=start_ns // 1_000_000,
        state=TraceState.ERROR if dialogue.failed else TraceState.OK,
        request_preview=session.task_id,
        response_preview=" ".join(turn.outcome or "-" for turn in session.turns),
        execution_duration=dialogue.duration_ns // 1_000_000,
        trace_metadata={"mlflow.sourceRun": run_id, "mlflow.trace.tokenUsage": json.dumps(tokens)},
        tags={"mlflow.traceName": session.task_id, "codechat.session_id": session.session_id},
        assessments=[verdict for turn in session.turns for verdict in _feedback(turn, number)],
    )
    return info, list(_spans(dialogue, number, None, start_ns))


def _dialogue(session: SessionRecord) -> Part:
    passing = sum(1 for _ in itertools.takewhile(lambda turn: turn.passed, session.turns))
    outputs = {"status": session.status, "turns passed from the start": passing, "error": session.error}
    turns = [_turn(turn, session.model) for turn in session.turns]
    inputs = {"task": session.task_id, "agenda": session.agenda}
    return Part("dialogue", "AGENT", inputs, outputs, parts=turns, failed=session.status == "errored")


def _turn(turn: TurnRecord, model: str) -> Part:
    parts = []
    calls = list(turn.calls())
    for number, call in enumerate(calls, 1):
        used: dict[str, Any] = {"mlflow.chat.tokenUsage": _tokens(call.usage)}
        parts.append(_chat(f"{call.role} {number}", call.request, call.response, call.latency_s, used))
    if turn.response is not None and not calls:
        used = {"mlflow.chat.tokenUsage": _tokens(turn.usage), "mlflow.llm.model": model}
        parts.append(_chat("model", turn.request, turn.response, turn.latency_s, used))
    if turn.response is not None and turn.outcome is not None:
        tested = {"passed_base": turn.passed_base, **_outcome(turn)}
        parts.append(Part("sandbox", "TOOL", {"code": turn.code}, tested, turn.cpu_s))
    if turn.candidates or turn.adherence:
        candidates = [candidate.model_dump() for candidate in turn.candidates]
        adherence = turn.adherence and turn.adherence.model_dump()
        judged = {"codechat.judge_tokens": _tokens(turn.judge_usage)}
        parts.append(
            Part("judge", "EVALUATOR", {"candidates": candidates}, {"adherence": adherence}, attributes=judged)
        )
    asked = turn.instruction.model_dump() if turn.instruction else {"skipped": turn.skipped}
    own = {name: value for name, value in (turn.model_extra or {}).items() if name != "calls"}  # of its protocol
    return Part(f"turn {turn.turn}", "CHAIN", asked, {**_outcome(turn), **own}, parts=parts)


def _chat(name: str, request: Sequence[Message], response: str | None, seconds: float, used: Mapping[str, Any]) -> Part:
    """A call of a model."""
    asked = {"messages": [asdict(message) for message in request]}
    reply = {"choices": [{"message": {"role": "assistant", "content": response}}]}
    return Part(name, "CHAT_MODEL", asked, reply, seconds, attributes=used)


def _outcome(turn: TurnRecord) -> dict[str, Any]:
    decided = {"decided": turn.decided} if turn.decided else {}
    return {"outcome": turn.outcome, **decided, "failure": turn.failure and turn.failure.given_fields()}


def _feedback(turn: TurnRecord, trace: str) -> Iterator[Any]:
    """The verdicts on a turn, pinned to its span."""
    from mlflow.entities import AssessmentSource, Feedback

    place: dict[str, Any] = {"trace_id": f"tr-{trace}", "span_id": f"{_span_number(trace, f'turn {turn.turn}'):016x}"}
    why = turn.failure.reason if turn.failure else None
    if turn.outcome is not None:
        yield Feedback("verdict", turn.outcome, source=AssessmentSource("CODE", "sandbox"), rationale=why, **place)
    if turn.adherence is not None:
        by = AssessmentSource("CODE" if turn.adherence.by == "rules" else "LLM_JUDGE", turn.adherence.by)
        yield Feedback("adherence", turn.adherence.verdict, source=by, rationale=turn.adherence.reason, **place)


def _spans(part: Part, trace: str, parent: str | None, start_ns: int) -> Iterator[Any]:
    """The spans of a part and of its parts. `parent` is the place of the enclosing one."""
    from mlflow.entities import Span
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode

    place = part.name if parent in (None, "dialogue") else f"{parent}/{part.name}"
    attributes = {
        "mlflow.traceRequestId": f"tr-{trace}",
        "mlflow.spanType": part.kind,
        "mlflow.spanInputs": part.inputs,
        "mlflow.spanOutputs": part.outputs,
        **part.attributes,
    }
    yield Span(
        ReadableSpan(
            name=part.name,
            context=SpanContext(int(trace, 16), _span_number(trace, place), is_remote=False),
            parent=SpanContext(int(trace, 16), _span_number(trace, parent), is_remote=False) if parent else None,
            start_time=start_ns,
            end_time=start_ns + part.duration_ns,
            attributes={key: json.dumps(value) for key, value in attributes.items()},
            status=Status(StatusCode.ERROR if part.failed else StatusCode.OK),
            resource=Resource.get_empty(),
        )
    )
    for inner in part.parts:
        yield from _spans(inner, trace, place, start_ns)
        start_ns += inner.duration_ns


def _span_number(trace: str, place: str) -> int:
    return int(content_hash([trace, place])[:16], 16)


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
