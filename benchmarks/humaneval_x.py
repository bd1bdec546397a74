"""HumanEval-X's own solutions beside HumanEval+'s inputs and results: what differs, and what is decided about it.

decide LANGUAGE FILE PLUS [NUMBER…]    writes the language's lines of codechat/datasets/humaneval_x.jsonl
own LANGUAGE FILE PLUS MANY            counts the mutants that HumanEval-X's own tests kill, and ours
cost LANGUAGE FILE PLUS MANY           compares the CPU time with that of HumanEval-X's own tests in a fresh process
again LANGUAGE FILE PLUS TIMES         checks all references some times: no verdict may move
"""

import asyncio
import functools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.base.config import validate
from codechat.base.domain import Program, Verdict
from codechat.datasets import humaneval_x
from codechat.datasets.humaneval_x import DECISIONS, Decided, Kept, Mended
from codechat.datasets.reading.lines import lines_of
from codechat.datasets.tasks import Task
from codechat.sandbox import SANDBOXES, Box, Ended, SandboxConfig
from codechat.sandbox.inside.decode import Opaque
from codechat.sandbox.suites.calls import Driven, driven
from codechat.sandbox.suites.calls.conform import conform
from codechat.sandbox.suites.calls.drivers.java import Signature
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.calls.reader import CallsReader
from codechat.sandbox.suites.calls.reference_results import Recorder
from codechat.sandbox.suites.calls.show import show
from codechat.sandbox.suites.values import Table, read_or_opaque

OWN = {"HumanEval/103": "a half is rounded up, as the task's own tests in the language say"}
READ = humaneval_x.decisions
SHOWN = 60
FRESH = {name: value for name, value in os.environ.items() if name != "NODE_EXTRA_CA_CERTS"}
"""Reading certificates would be most of what `node` takes; a box has no such variable."""
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
    expected = calls.model.find_prepared(box, config).results.expected
    kept = tuple(calls.inputs[place] for place in able)
    own = dict(zip(able, own_results(never_raising(replace(calls, base=kept, plus=())), box, config), strict=True))
    comparison = Comparison(calls.oracle, calls.atol)
    for place in able:
        comparison = Comparison(calls.oracle, calls.atol) if place == len(calls.base) else comparison
        if expected[place].size:
            yield place, "cannot", "a result of 256 KiB or more is not compared", f"{expected[place].size:,} bytes", ""
            continue
        right, found = read_or_opaque(expected[place].data), own[place]
        actual = Opaque(found[0]) if isinstance(found, tuple) else read_or_opaque(found.data)
        if right is None and actual is ...:  # of nothing the language's own counts
            continue
        actual = conform(actual, right)
        if not comparison.holds(actual, right, calls.inputs[place]):
            yield place, *reason(calls, calls.inputs[place], right, actual), short(show(right)), short(show(actual))


def listed(calls: Driven, config: SandboxConfig, box: Box) -> list[tuple[int, str, str, str, str]]:
    """The differences, found in a box's thread."""
    return list(differences(calls, box, config))


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
    driven.REFERENCE_INPUT_S = INPUT_S  # type: ignore[attr-defined]
    config = SANDBOXES.validate({"kind": "auto"})
    assert isinstance(config, SandboxConfig)
    sandbox = SANDBOXES.build(config, workers=1)
    found: dict[str, list[Decided]] = {}
    for calls in solutions(language, path, plus):
        if numbers and calls.name.rpartition("/")[2] not in numbers:
            continue
        calls.make_ready(config, print)
        groups: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
        work = functools.partial(listed, calls, config)
        for place, decision, why, right, own in await sandbox.lend(work, await calls.tools(config)):
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


SWAPS = (
    "<= <",
    ">= >",
    "< <=",
    "> >=",
    "+ -",
    "- +",
    "* +",
    "== !=",
    "!= ==",
    "&& ||",
    "|| &&",
    "true false",
    "0 1",
    "1 2",
    "2 3",
)
TOKEN = re.compile(r"[<>=!]=+|&&|\|\||\b(?:true|false|\d+)\b|(?<=\s)[-+*<>](?=\s)")


def mutants(task: Task, many: int) -> Iterator[str]:
    """Programs that differ from the task's reference by one token of the body that follows the prompt."""
    assert task.reference is not None
    start = len(task.prompt)
    places = [
        found for found in TOKEN.finditer(task.reference, start) if found[0][:2] in dict(each.split() for each in SWAPS)
    ]
    chance = random.Random(f"mutants of {task.task_id}")
    for found in chance.sample(places, min(many, len(places))):
        other = dict(each.split() for each in SWAPS)[found[0][:2]] + found[0][2:]
        yield task.reference[: found.start()] + other + task.reference[found.end() :]


def their_verdict(language: str, program: str, test: str) -> tuple[bool, float, int]:
    """Whether the published test passes, CPU seconds, and the peak memory in KiB: a fresh node, or javac and java."""
    with tempfile.TemporaryDirectory() as folder:
        if language == "javascript":
            strict = "console.assert = (holds) => { if (!holds) process.exit(1) };\n"
            Path(folder, "Main.js").write_text(strict + program + "\n" + test)
            commands = [["node", "Main.js"]]
        else:
            Path(folder, "Main.java").write_text(program + "\n" + test)
            commands = [["javac", "Main.java"], ["java", "Main"]]
        cpu, peak, passed = 0.0, 0, True
        for command in commands:
            process = subprocess.Popen(["timeout", "10", *command], cwd=folder, stdout=-3, stderr=-3, env=FRESH)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu, peak = cpu + used.ru_utime + used.ru_stime, max(peak, used.ru_maxrss)
            passed = passed and process.returncode == 0
        return passed, cpu, peak


def tasks_with_tests(language: str, path: str, plus: str) -> Iterator[tuple[Task, str]]:
    """The tasks of the dataset, each with the published test."""
    config = validate(
        humaneval_x.HumanEvalXConfig, {"language": language, "path": path, "plus": plus, "kind": "humaneval_x"}, "x"
    )
    tests = {}
    for _, line in lines_of(Path(path)):
        row = json.loads(line)
        tests[row["task_id"].rpartition("/")[2]] = row["test"]
    for task in humaneval_x.humaneval_x(config).tasks:
        yield task, tests[task.task_id.rpartition("/")[2]]


async def own(language: str, path: str, plus: str, many: str) -> None:
    """Count which mutants either tests kill, of `many`, and which references of their tasks, and show the mutants that
    theirs alone kill.

    Mutants of a task whose published test kills the right program, mended or not, are counted apart.
    """
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=2)
    gate, counts, mistaken = asyncio.Semaphore(2), Counter[tuple[str, str, str]](), set[str]()

    async def one(kind: str, task: Task, program: str, test: str) -> None:
        async with gate:
            theirs, _, _ = await asyncio.to_thread(their_verdict, language, program, test)
            assert task.suite is not None
            ours = (await task.suite.check(Program(program, task.target), sandbox)).passed
        if kind == "reference" and not theirs:
            mistaken.add(task.task_id)
        named = f"{kind}, its reference killed by theirs" if kind == "mutant" and task.task_id in mistaken else kind
        counts[named, "pass" if theirs else "kill", "pass" if ours else "kill"] += 1
        if kind == "mutant" and ours and not theirs:
            print(f"theirs alone kill a mutant of {task.task_id}:\n{program[len(task.prompt) :]}")

    chosen = list(tasks_with_tests(language, path, plus))
    made = [(task, program, test) for task, test in chosen for program in mutants(task, 9)]
    random.Random("mutants").shuffle(made)
    mutated = {task.task_id for task, _, _ in made[: int(many)]}
    async with asyncio.TaskGroup() as group:
        for task, test in (each for each in chosen if each[0].task_id in mutated):
            group.create_task(one("reference", task, task.reference or "", test))
    print("references that theirs kill:", *sorted(mistaken))
    async with asyncio.TaskGroup() as group:
        for task, program, test in made[: int(many)]:
            group.create_task(one("mutant", task, program, test))
    for (kind, theirs, ours), count in sorted(counts.items()):
        print(f"{kind}: theirs {theirs}, ours {ours}: {count}")
    await sandbox.aclose()


async def cost(language: str, path: str, plus: str, many: str) -> None:
    """The median CPU seconds and the largest memory of both, over the references of some tasks."""
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=1)
    peaks: list[int] = []
    conclude = CallsReader.conclude

    def noted(self: CallsReader, ended: Ended, limit: int) -> Verdict:
        peaks.append(ended.peak_kb)
        return conclude(self, ended, limit)

    CallsReader.conclude = noted  # type: ignore[assignment,method-assign]
    chosen = list(tasks_with_tests(language, path, plus))
    random.Random("cost").shuffle(chosen)
    ours, theirs = [], []
    for task, test in chosen[: int(many)]:
        assert task.suite is not None
        program = Program(task.reference or "", task.target)
        await task.suite.check(program, sandbox)  # which also finds the limits and starts what is kept warm
        ours.append((await task.suite.check(program, sandbox)).cpu_s)
        theirs.append(their_verdict(language, program.source, test)[1:])
    count = len(ours)
    mine, other = statistics.median(ours), statistics.median(cpu for cpu, _ in theirs)
    inputs = sum(len(task.suite.inputs) for task, _ in chosen[:count] if isinstance(task.suite, Driven))
    print(
        f"{count} references, {inputs / count:.0f} inputs each: {mine:.3f} s of CPU a verdict, {max(peaks) >> 10} MiB"
    )
    print(f"their tests: {other:.3f} s and {max(peak for _, peak in theirs) >> 10} MiB; ratio {mine / other:.2f}")
    await sandbox.aclose()


async def again(language: str, path: str, plus: str, times: str) -> None:
    """Check every reference, and show what each time took and the verdicts that differ from the first time's."""
    first: dict[str, Verdict] = {}
    for turn in range(int(times)):
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=2)
        found: dict[str, Verdict] = {}
        began = time.monotonic()
        for task, _ in tasks_with_tests(language, path, plus):
            assert task.suite is not None
            found[task.task_id] = await task.suite.check(Program(task.reference or "", task.target), sandbox)
        await sandbox.aclose()
        first = first or found
        moved = [name for name, verdict in found.items() if verdict.outcome != first[name].outcome]
        failed = [name for name, verdict in found.items() if not verdict.passed]
        print(
            f"run {turn + 1}: {len(found) - len(failed)} of {len(found)} pass, {time.monotonic() - began:.0f} s by the "
            f"clock, {sum(each.cpu_s for each in found.values()):.1f} s of CPU, load {os.getloadavg()[0]:.1f}; "
            f"moved: {moved or 'none'}; failed: {failed or 'none'}",
            flush=True,
        )


COMMANDS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "decide": decide,
    "own": own,
    "cost": cost,
    "again": again,
}

if __name__ == "__main__":
    asyncio.run(COMMANDS[sys.argv[1]](*sys.argv[2:]))
