"""MBPP+ (EvalPlus): 378 tasks with prose prompts and with inputs of types that JSON lacks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from codechat.base.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.release import Release
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Dataset
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.oracle import Oracle

RELEASE = Release(
    "MbppPlus",
    "v0.2.0",
    "MBPP_OVERRIDE_PATH",
    "49d439b03507a1a0a572ee065e8bd415f522ea978dde0648f496258364d659b2",
    r"Mbpp/\d+",
)


class MbppConfig(DatasetConfig):
    """Options of `mbpp`."""

    kind: Literal["mbpp"] = original_option("mbpp", "which dataset")
    path: str | None = place_option(None, "a local MbppPlus .jsonl or .jsonl.gz; null: its cache", min_length=1)
    url: str | None = place_option(None, "the download if no path is given; null: its release", min_length=1)


@DATASETS.register("mbpp", MbppConfig)
def mbpp(config: MbppConfig) -> Dataset:
    """MBPP+ v0.2.0: 378 tasks by EvalPlus, downloaded to its cache on first use."""
    return RELEASE.compared(load_rows("mbpp", RELEASE.locate(config.path, config.url), _adapt))


def _adapt(calls: Calls) -> Calls:
    digits = calls.name.rpartition("/")[2]
    if not digits.isdecimal():
        raise ValueError(f"task_id '{calls.name}' is not of the form Mbpp/NUMBER")
    base, plus = calls.base, calls.plus
    if int(digits) in _TYPES:
        first, others = _TYPES[int(digits)]
        try:
            base, plus = (
                tuple((*map(first, call[:1]), *map(others, call[1:])) for call in given) for given in (base, plus)
            )
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"the inputs do not fit {calls.name}: {error}") from error
    return replace(calls, base=base, plus=plus, oracle=_ORACLES.get(int(digits), calls.oracle))


Convert = Callable[[Any], Any]


def _each(convert: Convert, into: Convert = list) -> Convert:
    return lambda values: into(map(convert, values))


def _same(value: Any) -> Any:
    return value


def _set(value: Any) -> Any:
    return set(value) if isinstance(value, list) and value else {}


def _tuple_values(value: Any) -> dict[Any, Any]:
    return {key: tuple(item) for key, item in value.items()}


def _deep_tuple(value: Any) -> Any:
    return tuple(map(_deep_tuple, value)) if isinstance(value, list) else value


def _tuple_if_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_TUPLES, _TUPLE_OF_TUPLES = _each(tuple), _each(tuple, tuple)

# How to restore arguments that JSON changed, by task number: the first argument, and the others. The facts are from
# EvalPlus (evalplus.data.mbpp.mbpp_deserialize_inputs); a test compares every input with EvalPlus's loader.
_TYPES: dict[int, tuple[Convert, Convert]] = {
    number: (first, rest)
    for first, rest, numbers in (
        (tuple, tuple, "2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809"),
        (_TUPLES, _TUPLES, "63 64 70 94 120 237 272 299 400 409 417 438 473 614 780"),
        (_TUPLES, _same, "75 413 444 753"),
        (_same, tuple, "106 750"),
        (_each(_set), _same, "115"),
        (float, complex, "124"),
        (tuple, _same, "250 307 405 446 617 720 763 808"),
        (complex, _same, "252"),
        (_TUPLE_OF_TUPLES, _TUPLE_OF_TUPLES, "259 401 445"),
        (_each(_tuple_if_list, tuple), _same, "278"),
        (_deep_tuple, _deep_tuple, "580 615 791"),
        (_tuple_values, _same, "722"),
    )
    for number in map(int, numbers.split())
}

# Tasks with more than one right answer (evalplus.eval): results without order, results that count only as a match or
# none, and statements that can be read in two ways. Mbpp/164, 249 and 295 are only in earlier releases.
_ORACLES: dict[int, Oracle] = {
    **dict.fromkeys((2, 7, 111, 140, 232, 249, 579, 769), "set_equal"),
    **dict.fromkeys((737, 787, 794), "not_none"),
    164: "anything",
    295: "equal_or_zero",
    558: "digit_distance",
    581: "surface_area",
}
