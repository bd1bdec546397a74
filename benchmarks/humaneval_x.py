"""HumanEval-X's own solutions beside HumanEval+'s inputs and results: what differs, and what is decided about it.

decide LANGUAGE FILE PLUS      writes the language's lines of codechat/datasets/humaneval_x.jsonl
own LANGUAGE FILE PLUS         HumanEval-X's own tests beside these, on references and on mutants
cost LANGUAGE FILE PLUS        CPU and memory a verdict, beside a fresh node, or javac and java, for each program
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.config import validate
from codechat.datasets import humaneval_x
from codechat.datasets.humaneval_x import DECISIONS, Decided, Kept
from codechat.sandbox import SANDBOXES, Box, SandboxConfig
from codechat.suites.calls import Driven, driven
from codechat.suites.calls.conform import conform
from codechat.suites.calls.drivers.java import Signature
from codechat.suites.calls.oracle import Comparison
from codechat.suites.calls.show import show
from codechat.suites.calls.truth import Recorder
from codechat.suites.claims import read_or_opaque

SHOWN = 60
INPUT_S, MOST_TIMEOUTS = 4.0, 5


def solutions(language: str, path: str, plus: str) -> Iterator[Driven]:
    """Every task's calls, with all inputs."""
    humaneval_x.keep = lambda calls, decided: Kept(calls, 1, 1)
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


def differences(calls: Driven, box: Box, config: SandboxConfig) -> Iterator[tuple[int, str, str]]:
    """The places of the inputs on which the results differ, with both results."""
    assert calls.model is not None
    bad = calls.inexpressible()
    able = [place for place in range(len(calls.inputs)) if place not in bad]
    expected = calls.model.find_prepared(box, config).truth.expected
    kept = tuple(calls.inputs[place] for place in able)
    own = dict(zip(able, own_results(never_raising(replace(calls, base=kept, plus=())), box, config), strict=True))
    for start, end in ((0, len(calls.base)), (len(calls.base), len(calls.inputs))):
        comparison = Comparison(calls.oracle, calls.atol)
        for place in range(start, end):
            if place in bad:
                yield place, "", "cannot express " + bad[place]
                continue
            if expected[place].size:
                yield place, f"a value of {expected[place].size:,} bytes", "too long"
                continue
            right = read_or_opaque(expected[place].data)
            if isinstance(own[place], tuple):
                yield place, show(right), own[place][0]
                continue
            actual = conform(read_or_opaque(own[place].data), right)
            if not comparison.holds(actual, right, calls.inputs[place]):
                yield place, show(right), show(actual)


async def main() -> None:
    driven.REFERENCE_INPUT_S = INPUT_S
    _, language, path, plus = sys.argv[1:5]
    config = SANDBOXES.validate({"kind": "process"})
    sandbox = SANDBOXES.build(config, workers=1)
    out = Path(f"/tmp/l34a/diff_{language}.jsonl").open("w")
    for calls in solutions(language, path, plus):
        if len(sys.argv) > 5 and int(calls.name.split("/")[1]) < int(sys.argv[5]):
            continue
        calls.make_ready(config, print)
        tools = calls.tools(config)
        found = await sandbox.lend(lambda box: list(differences(calls, box, config)), tools)
        for place, right, own in found:
            out.write(
                json.dumps([calls.name, place, right, own, show(calls.inputs[place])[:100], len(calls.inputs)]) + "\n"
            )
        out.flush()
        print(calls.name, len(calls.inputs), len(found), found[:2], flush=True)
    await sandbox.aclose()


asyncio.run(main())
