"""Calls whose results must equal the reference's (EvalPlus style): compared outside the program's process.

`python.py` calls Python programs, `driven.py` programs of any other language by its driver (`drivers/`); `reader.py`
compares, by the rules of `oracle.py`, with the results in `reference_results.py`.
"""

from typing import Any, Literal, Self

from pydantic import model_validator

from codechat.base.config import Config, result_option, run_option
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.calls.driven import Driven, only_expressible
from codechat.sandbox.suites.calls.oracle import Oracle
from codechat.sandbox.suites.calls.python import PREPARED, PYTHON, Calls


def require_results(name: str, calls: list[Any], results: list[Any] | None, source: str, reference: str | None) -> None:
    """Raise `ValueError` unless every call has a result: in the field `name`, or by the reference in `source`."""
    if results is not None and len(results) != len(calls):
        raise ValueError(f"{name} has {len(results)} results for {len(calls)} inputs")
    if results is None and calls and reference is None:
        raise ValueError(f"give {source} or {name}: without them no result is right")


class CallsConfig(Config):
    """Fields of `calls`."""

    kind: Literal["calls"] = result_option("calls", "which kind of tests")
    name: str = run_option("this task", "what messages call the task")
    language: str = result_option(PYTHON, "the language of the program", min_length=1)
    entry_point: str = result_option(..., "the function that is called", min_length=1)
    signature: str = result_option("", "its head, of which a typed language takes the types")
    reference: str | None = result_option(None, "a complete right program; null: the results are given")
    base_input: list[list[Any]] = result_option(..., "one list of arguments a call", min_length=1)
    plus_input: list[list[Any]] = result_option([], "further calls, left out of passed_base")
    atol: float = result_option(0.0, "the absolute tolerance for floats", ge=0, allow_inf_nan=False)
    oracle: Oracle = result_option("equal", "how results are compared")
    base_output: list[Any] | None = result_option(None, "the results of base_input; null: the reference's")
    plus_output: list[Any] | None = result_option(None, "the results of plus_input; null: the reference's")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        require_results("base_output", self.base_input, self.base_output, "reference", self.reference)
        require_results("plus_output", self.plus_input, self.plus_output, "reference", self.reference)
        return self


@SUITES.register("calls", CallsConfig)
def calls(config: CallsConfig) -> Calls:
    """Calls whose results must equal the reference's, compared outside the program's process."""
    called = Calls(
        config.entry_point,
        config.reference,
        tuple(map(tuple, config.base_input)),
        tuple(map(tuple, config.plus_input)),
        config.atol,
        config.oracle,
        None if config.base_output is None else tuple(config.base_output),
        None if config.plus_output is None else tuple(config.plus_output),
        config.name,
    )
    return called if config.language == PYTHON else Driven.of(called, config.language, config.signature)


__all__ = ["PREPARED", "Calls", "Driven", "calls", "only_expressible", "require_results"]
