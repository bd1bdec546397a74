"""HumanEval-X's own solutions beside HumanEval+'s inputs and results: what differs, and what is decided about it.

decide LANGUAGE FILE PLUS [NUMBER…]    writes the language's lines of codechat/datasets/humaneval_x.jsonl
"""

import asyncio
import functools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codechat.config import validate
from codechat.datasets import humaneval_x
from codechat.datasets.humaneval_x import DECISIONS, Decided, Kept, Mended
from codechat.sandbox import SANDBOXES, Box, SandboxConfig
from codechat.sandbox.inside.decode import Opaque
from codechat.suites.calls import Driven, driven
from codechat.suites.calls.conform import conform
from codechat.suites.calls.drivers.java import Signature
from codechat.suites.calls.oracle import Comparison
from codechat.suites.calls.show import show
from codechat.suites.calls.truth import Recorder
from codechat.suites.claims import Table, read_or_opaque

OWN = {"HumanEval/103": "a half is rounded up, as the task's own tests in the language say"}
READ = humaneval_x.decisions
SHOWN = 60
INPUT_S, MOST_TIMEOUTS = 4.0, 5


def solutions(language: str, path: str, plus: str) -> Iterator[Driven]:
    """Every task's calls, with all inputs."""
    humaneval_x.keep = lambda calls, decided: Kept(calls, len(calls.inputs), 1, 1)
    config = validate(
        humaneval_x.HumanEvalXConfig, {"language": language, "path": path, "plus": plus, "kind": "humaneval_x"}, "x"
    )
    for task in humaneval_x.humaneval_x(config).tasks:
        assert isinstance(task.suite, Driven)
        yield task.suite


def short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def never_raising(calls: Driven) -> Driven:
    """The same with a function around the reference's, which returns an exception as an object that equals nothing."""
    name, reference = calls.entry_point, calls.reference or ""
    if calls.language == "java":
        types = [each.text for each in Signature.of(calls.signature).parameters]
        head = ", ".join(f"{each} a{place}" for place, each in enumerate(types))
        given = ", ".join(f"a{place}" for place in range(len(types)))
        body = f"try {{ return {name}({given}); }} catch (Throwable t) {{ return t; }}"
        made = f"{reference.rstrip().removesuffix('}')} public Object codechatSafe({head}) {{ {body} }} }}"
        return replace(calls, entry_point="codechatSafe", signature=f"Object codechatSafe({head})", reference=made)
    made = (
        f"{reference}\nfunction codechatSafe(...all) {{ try {{ return {name}(...all) }} catch (e) {{ return e }} }}\n"
    )
    return replace(calls, entry_point="codechatSafe", reference=made)


def own_results(calls: Driven, box: Box, config: SandboxConfig) -> list[Any]:
    """The language's result on each input; a text in a tuple of one if it raises or takes too long."""
    found: list[Any] = []
    stops = 0
    while len(found) < len(calls.inputs):
        left = calls.inputs[len(found) :]
        rest = replace(calls, base=left, plus=())
        recorder = Recorder()
        why = rest.run_reference(box, rest._bytes(), config, recorder)
        found += recorder.values
        if not recorder.done:
            found.append((recorder.problem or why or "it ends early",))
            stops += 1
        if stops > MOST_TIMEOUTS:
            found += [("not run",)] * (len(calls.inputs) - len(found))
    return found


def differences(calls: Driven, box: Box, config: SandboxConfig) -> Iterator[tuple[int, str, str, str, str]]:
    """The places of the inputs on which the results differ: decision and reason, and both results."""
    assert calls.model is not None
    bad = calls.inexpressible()
    able = [place for place in range(len(calls.inputs)) if place not in bad]
    expected = calls.model.find_prepared(box, config).truth.expected
    kept = tuple(calls.inputs[place] for place in able)
    own = dict(zip(able, own_results(never_raising(replace(calls, base=kept, plus=())), box, config), strict=True))
    comparison = Comparison(calls.oracle, calls.atol)
    for place in able:
        comparison = Comparison(calls.oracle, calls.atol) if place == len(calls.base) else comparison
        if expected[place].size:
            yield place, "cannot", "a result of 256 KiB or more is not compared", f"{expected[place].size:,} bytes", ""
            continue
        right, found = read_or_opaque(expected[place].data), own[place]
        actual = Opaque(found[0]) if isinstance(found, tuple) else conform(read_or_opaque(found.data), right)
        if not comparison.holds(actual, right, calls.inputs[place]):
            yield place, *reason(calls, calls.inputs[place], right, actual), short(show(right)), short(show(actual))


def reason(calls: Driven, arguments: tuple[Any, ...], right: Any, actual: Any) -> tuple[str, str]:
    """What is decided about an input on which the results differ, and why."""
    javascript = calls.language == "javascript"
    bits = 53 if javascript else 64 if Signature.of(calls.signature).returns.name == "long" else 32
    largest = 2**53 - 1 if javascript else 2 ** (bits - 1) - 1
    raised = actual.name.removeprefix("an object of ").rpartition(".")[2] if isinstance(actual, Opaque) else ""
    texts = "".join(each for each in (*flat(arguments), *flat(right)) if isinstance(each, str))
    floats = [each for each in flat(arguments) if type(each) is float]
    reasons = (
        (
            any(type(each) is int and abs(each) > largest for each in flat(right)),
            ("cannot", f"the result has an integer of more than {bits} bits"),
        ),
        (
            javascript and any(each.is_integer() for each in floats),
            ("cannot", "a float without a fraction is not told from an integer"),
        ),
        ("CPU" in raised or raised == "not run", ("drop", "the solution takes too long")),
        (raised, ("drop", f"the solution raises {raised}")),
        (calls.name in OWN, ("own", OWN.get(calls.name, ""))),
        (not texts.isascii(), ("drop", "characters beyond ASCII are treated otherwise")),
        (
            any(each.isspace() and each != " " for each in texts),
            ("drop", "other white space than blanks is treated otherwise"),
        ),
    )
    return next((said for holds, said in reasons if holds), ("drop", "the solution gives another result"))


def flat(value: Any) -> Iterator[Any]:
    """Every value within a value of Python or a decoded one."""
    if isinstance(value, Table):
        value = value.items
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from flat(each)
    else:
        yield value


async def decide(language: str, path: str, plus: str, *numbers: str) -> None:
    """Replace the language's decisions, or those on the tasks of some numbers; what is mended stays."""
    config = SANDBOXES.validate({"kind": "process"})
    assert isinstance(config, SandboxConfig)
    sandbox = SANDBOXES.build(config, workers=1)
    found: dict[str, list[Decided]] = {}
    for calls in solutions(language, path, plus):
        if numbers and calls.name.rpartition("/")[2] not in numbers:
            continue
        calls.make_ready(config, print)
        groups: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
        work = functools.partial(differences, calls, config=config)
        for place, decision, why, right, own in await sandbox.lend(
            lambda box, work=work: list(work(box)), calls.tools(config)
        ):
            groups.setdefault((decision, why), []).append((place, right, own))
        found[calls.name] = [
            Decided.model_validate(
                {
                    **{"language": language, "task": calls.name, "decision": decision, "why": why},
                    **{"inputs": [place for place, _, _ in rows], "results": rows[0][1:]},
                }
            )
            for (decision, why), rows in groups.items()
        ]
        print(calls.name, len(calls.inputs), {key: len(rows) for key, rows in groups.items()}, flush=True)
    await sandbox.aclose()
    kept = [
        one
        for ones in READ().values()
        for one in ones
        if isinstance(one, Mended) or one.language != language or one.task not in found
    ]
    lines = [*kept, *(one for ones in found.values() for one in ones)]
    lines.sort(key=lambda one: (one.language, int(one.task.rpartition("/")[2]), isinstance(one, Decided)))
    DECISIONS.write_text("".join(json.dumps(one.model_dump(), ensure_ascii=False) + "\n" for one in lines), "utf-8")


COMMANDS = {"decide": decide}

if __name__ == "__main__":
    driven.REFERENCE_INPUT_S = INPUT_S  # type: ignore[attr-defined]
    asyncio.run(COMMANDS[sys.argv[1]](*sys.argv[2:]))
