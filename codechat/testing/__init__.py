"""A stand-in for a real endpoint, to test components or to try codechat without a model.

Answers come from a function of the call, which returns the reply's text, an `Answer`, or a `Fault`::

    with OpenAIServer(lambda call: "hello") as server:
        ...  # server.base_url, server.calls

As a command it answers every task of a dataset with the task's reference solution::

    python -m codechat.testing.openai_server --dataset starter --port 8000

`cells.py` has small cells that run against such a server. The engine does not import this package.
"""

from codechat.testing.agents import Script, scripted_agent
from codechat.testing.apis import Answer, Call, ToolCall
from codechat.testing.batches import BatchServer
from codechat.testing.server import (
    CUT_SHORT,
    EMPTY_CHOICES,
    RESET,
    TRUNCATED_JSON,
    Behaviour,
    Fault,
    OpenAIServer,
    Result,
    dataset_tasks,
    drip,
    error,
    fading_solver,
    only_streams,
    overflow,
    rate_limited,
    reference_solver,
    refuses_temperature,
    stall,
)

__all__ = [
    "CUT_SHORT", "EMPTY_CHOICES", "RESET", "TRUNCATED_JSON", "Answer", "BatchServer", "Behaviour", "Call", "Fault",
    "OpenAIServer", "Result", "Script", "ToolCall", "dataset_tasks", "drip", "error", "fading_solver", "only_streams",
    "overflow", "rate_limited", "reference_solver", "refuses_temperature", "scripted_agent", "stall",
]  # fmt: skip
