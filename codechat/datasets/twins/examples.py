"""Examples in a statement: calls with their results, and other calls with the reference's results instead.

An example is replaced only if its text has been read for certain: the reference must give the shown result for the
shown arguments. The new arguments are inputs of the task's own tests, and the new texts read back equal.
The new example shows the same result if there is an input for it, or else a result of the same type that no example
shows: a statement must not say less than before.
"""

import ast
import asyncio
import random
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from codechat.base.errors import BrokenTask
from codechat.sandbox import SANDBOXES
from codechat.sandbox.auto import AutoConfig
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.reference_results import ReferenceResults, encode_expected
from codechat.sandbox.suites.calls.results import Expected
from codechat.sandbox.suites.calls.show import show_bytes

LONGEST = 80
"""Characters of the arguments and of the result in a new example."""
MOST_INPUTS = 40
"""Inputs that the examples of a task are chosen from."""
AT_ONCE = 2
"""Processes that run references."""
_BESIDE = re.compile(
    r"[ \t]*(?:[=-]*>|==?|➞|→|➔|#[ \t]*(?:=>|returns?|->)?|(?:,[ \t]*)?(?:should )?(?:returns?|be|is|gives?)\b:?)[ \t]*"
)
_BELOW = re.compile(r"[ \t]*\n[ \t]*(?=\S)(?!>>>)")
_VARIABLE = re.compile(r"[ \t]*[A-Za-z_]\w*[ \t]*[),]")
_EXPLAINED = re.compile(r"explanation|because|since", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its result in a statement, with their places: of the arguments, and of the result."""

    arguments: tuple[Any, ...]
    result: Any
    call: slice
    shown: slice


def find(text: str, prose: slice, entry_point: str) -> list[Example]:
    """The examples in a part of a text. There are none if the part also explains them, and no equations if it defines
    the function by an equation such as `f(n) == f(n - 1)`."""
    part = text[: prose.stop]
    if _EXPLAINED.search(part, prose.start):
        return []
    calls = re.compile(rf"(?<![\w.]){re.escape(entry_point)}\(")
    found = {match.end(): _read(part, match.end()) for match in calls.finditer(part, prose.start)}
    defined = any(each is None and _VARIABLE.match(part, start) for start, each in found.items())
    return [each for start, each in found.items() if each and (_is_doctest(part, start) or not defined)]


def _is_doctest(text: str, start: int) -> bool:
    return text[:start].rpartition("\n")[2].lstrip().startswith(">>>")


def _read(text: str, start: int) -> Example | None:
    """The example whose arguments begin at `start`."""
    line_end = _end(text, start)
    for stop in (place for place in range(start, min(line_end, start + 4 * LONGEST)) if text[place] == ")"):
        inner = text[start:stop].strip()
        if (read := _literal(f"({inner},)" if inner else "()")) is not None:
            break
    else:
        return None
    below = _is_doctest(text, start) and _BELOW.match(text, stop + 1)
    beside = below or _BESIDE.match(text, stop + 1)
    if not beside:
        return None
    begin, end = beside.end(), _end(text, beside.end())
    shown = text[begin:end].rstrip().removesuffix('"""').removesuffix("'''").rstrip()
    for shorter in (shown, shown[:-1] if shown[-1:] in (".", ",", ";") else ""):
        if (result := _literal(shorter)) is not None:
            return Example(read[0], result[0], slice(start, stop), slice(begin, begin + len(shorter)))
    return None


def _end(text: str, start: int) -> int:
    """The end of the line."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _literal(text: str) -> tuple[Any] | None:
    """The value of a literal, in a tuple."""
    try:
        return (ast.literal_eval(text),)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """The examples of a statement, the inputs that may take their places, and the calls that give all results."""

    examples: list[Example]
    inputs: list[tuple[Any, ...]]
    calls: Calls

    @classmethod
    def of(cls, examples: list[Example], calls: Calls, rng: random.Random) -> "Plan":
        """The inputs are drawn from the suite's base inputs, without the shown ones."""
        shown = {repr(each.arguments) for each in examples}
        other = {text: each for each in calls.base if (text := repr(each)) not in shown}  # each once
        fresh = [each for each in other.values() if _exact(_arguments(each), each)]
        inputs = rng.sample(fresh, min(len(fresh), MOST_INPUTS))
        every = (*(each.arguments for each in examples), *inputs)
        return cls(examples, inputs, replace(calls, base=every, plus=(), expected_base=None, expected_plus=None))

    def texts(self, results: ReferenceResults | None) -> list[tuple[slice, str]]:
        """The new texts by their places, in order."""
        if results is None:  # the reference refuses a shown call
            return []
        shown, other = results.expected[: len(self.examples)], results.expected[len(self.examples) :]
        texts = [(_arguments(each), _text(result)) for each, result in zip(self.inputs, other, strict=True)]
        left = [(result.data, pair) for result, pair in zip(other, texts, strict=True) if pair[1]]
        found, seen = list[tuple[slice, str]](), {right.data for right in shown}
        for example, right in zip(self.examples, shown, strict=True):
            kind, fixed = type(example.result), isinstance(example.result, bool | NoneType)
            same = [each for each in left if each[0] == right.data]
            fresh = [each for each in left if each[0] not in seen and type(ast.literal_eval(each[1][1])) is kind]
            chosen = next(iter(same or ([] if fixed else fresh)), None)
            if chosen is not None and encode_expected(example.result, elements=False).data == right.data:
                left.remove(chosen)
                found += zip((example.call, example.shown), chosen[1], strict=True)
        return found


def _arguments(values: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, values))


def _text(result: Expected) -> str:
    """A result as Python writes it; empty if that is long or does not read back equal."""
    text = show_bytes(result.data)
    read = _literal(text)
    same = read is not None and not result.size and encode_expected(read[0], elements=False).data == result.data
    return text if same and _fits(text) else ""


def _exact(text: str, values: tuple[Any, ...]) -> bool:
    """Whether the text of arguments is short and reads back equal."""
    read = _literal(f"({text},)") if text else None
    return read is not None and repr(read[0]) == repr(values) and _fits(text)


def _fits(text: str) -> bool:
    """Whether a text may stand in a docstring, in one short line."""
    return len(text) <= LONGEST and not re.search(r"\\|\"\"\"|'''", text)


def results_of(plans: Sequence[Plan]) -> list[ReferenceResults | None]:
    """The results of the plans' calls, by their references in the sandbox; None if one fails. Results are kept on
    disk, as the expected results of tests are."""
    config = AutoConfig()
    known = [plan.calls.known_results(config) for plan in plans]
    missing = [number for number, results in enumerate(known) if results is None]

    async def compute() -> None:
        sandbox = SANDBOXES.build(config, workers=AT_ONCE)

        async def one(number: int) -> None:
            try:
                prepared = await sandbox.lend(lambda box: plans[number].calls.find_prepared(box, config))
            except BrokenTask:
                return
            known[number] = prepared.results

        try:
            await asyncio.gather(*map(one, missing))
        finally:
            await sandbox.aclose()

    if missing:
        with ThreadPoolExecutor(1) as pool:  # an event loop may run in this thread
            pool.submit(lambda: asyncio.run(compute())).result()
    return known
