"""Python snippets that follow a program and make assertions about it."""

import builtins
import functools
import marshal
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from codechat.base.config import Config, result_option
from codechat.base.domain import Failure, Outcome, Program, Target, Verdict
from codechat.base.errors import BrokenTask, UserError
from codechat.base.files import content_hash
from codechat.sandbox import NAMESPACES, Box, Ended, Job, Sandbox, SandboxConfig, WorkerDied
from codechat.sandbox.command import COMMANDS, PROC
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.snippets import NotRun, imports_of, names_read, refuse_unrun, shares_names, uses_of
from codechat.sandbox.inside.text import bound_names
from codechat.sandbox.inside.wire import BY_PROGRAM
from codechat.sandbox.suites import NOTHING_OUTSIDE, SUITES, syntax_problem
from codechat.sandbox.suites.assertions.constructs import Constructs, describe_all, find_all
from codechat.sandbox.suites.endings import ADDRESS, SHOWN, explain_end, read_exception, run_in_box
from codechat.sandbox.watch import Frames, Malformed

TOKEN_BYTES = 16
REASONS = {
    "object": "an object of the program's own class, or an attribute of one",
    "entry": "a class or a variable in the place of a function: it is no function",
    "plain": "a result that is not plain data",
    "array": "an array of NumPy, or a number of a type that tests ask for",
    "kept": "a list or the like that the program keeps",
    "exception": "an exception with attributes, a group or a base class of its own",
    "builtins": "a name of the program that is also a builtin's",
    "names": "a name of the program that is not the function under test",
    "text": "a text that is no plain definition of a plain function",
    "argument": "an argument that is not plain data, such as a function or an iterator",
    "world": "a call by a test that uses {world}",
    "attribute": "the attribute {attributes} of a function",
}
"""The words for each reason in `wire`: the only ones that a run can bring about."""


@dataclass(frozen=True)
class SharedProcess:
    """Why program and snippets share a process; `by_program`: the program brought it about when it ran."""

    reason: str
    by_program: bool = False


class AssertionsReader:
    """Reads one run's stream.

    If program and snippets share a process (`shared` has the reason), frames are mere claims: only the token proves
    that the last snippet ran to its end. Else `must_share` is a reason in `wire` for a run in one process, if there is
    one. `index` is the snippet that was reached.
    """

    def __init__(
        self, snippets: tuple[str, ...], entry_point: str, output_limit: int, shared: SharedProcess | None = None
    ) -> None:
        self._snippets, self._entry_point, self._bytes_left = snippets, entry_point, output_limit
        self._frames = Frames()
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self._shared, self._parted = shared, shared is None
        self.must_share: str | None = None
        self._starts = 0
        self._loaded = False
        self.index = -1
        self._outcome: Outcome | None = None
        self._failure: Failure | None = None

    @property
    def started(self) -> bool:
        """Whether every process of the run was confined."""
        return self._starts == (2 if self._parted else 1)

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return an empty answer, and whether the verdict is decided."""
        self._bytes_left -= len(data)
        try:
            if self._bytes_left < 0:
                raise Malformed("more output than is read")
            for kind, payload in self._frames.feed(data):
                self._frame(kind, payload)
                if self._outcome is not None:
                    break
        except Malformed as error:
            self._fail("crash", f"the results cannot be read: {error}")
        return b"", self._outcome is not None

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.STARTED and not self.started:
            self._starts += 1
        elif kind == wire.SYNTAX and not self._loaded:
            self._fail("syntax_error", "the program does not parse: " + payload.decode(errors="replace")[:SHOWN])
        elif kind == wire.MISSING and not self._loaded:
            self._fail("fail", f"the program does not define {self._entry_point}")
        elif kind == wire.LOADED and self.started and not self._loaded:
            self._loaded = True
        elif kind == wire.AT and self._loaded and payload == wire.INDEX.pack(self.index + 1):
            self.index += 1
        elif kind == wire.ERROR:
            outcome, reason, described = read_exception(payload)
            self._fail(outcome, reason, exception=described)
        elif kind == wire.DONE and secrets.compare_digest(payload, self.token):
            self._outcome = "pass"
        elif kind == wire.INSIDE and self._parted:
            self.must_share = payload.decode(errors="replace")
            if self.must_share not in REASONS:
                raise Malformed("an unknown reason")
            self._fail("crash", "undecided")
        else:
            said = payload.decode(errors="replace") if kind == wire.GARBLED else "a frame out of order"
            raise Malformed(said)

    def _fail(self, outcome: Outcome, reason: str, **details: Any) -> None:
        self._outcome = outcome
        if 0 <= self.index < len(self._snippets):
            details |= {"index": self.index, "input": self._snippets[self.index][: 2 * SHOWN]}
            if details.get("exception", "").rpartition("\n")[2].startswith("AssertionError"):
                reason = "an assertion does not hold"
        self._failure = Failure(reason, **details)

    def conclude(self, ended: Ended, cpu_limit: int) -> Verdict:
        """The verdict, once the processes are gone."""
        if self._outcome is None:
            self._fail(*explain_end(ended, cpu_limit))
        failure = self._failure
        if failure is not None and (printed := ended.stdout[: self._frames.printed]):
            failure = replace(failure, stdout=ADDRESS.sub("0x…", printed.decode(errors="replace")))
        passed = self._outcome == "pass"
        shared = self._shared or SharedProcess("")
        cpu_s = round(ended.cpu_s, 4)
        return Verdict(self._outcome or "crash", passed, failure, cpu_s, shared.reason, by_program=shared.by_program)


REMEDY = "call the test in its snippet, or write it as a unittest.TestCase or a function without parameters"
NO_BOX = f"{NAMESPACES} for bubblewrap, which has to be installed, or leave the tasks out: dataset.tasks"
IDLE_SHARE = 0.125  # of `cpu_s`: who computes for minutes waits for threads and files in between
THREADS_SHARE = 0.5  # the same for threads: sleeping and waiting for a processor look alike
BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("__"))
FAILS = ("object", "entry")
MET: dict[str, int] = {}  # how many assertions a reference passes outside, by suite, entry point and sandbox
WEAK = "this sandbox, which cannot part two processes"
Need = Literal["code", "commands", "native", "network", "processes", "threads"]
"""Things that tests may need.

Code objects made at run time; the system's commands; libraries by way of ctypes; the loopback interface; a /proc;
threads that outlive a statement.
"""
TOOLS: dict[Need, tuple[str, ...]] = {"commands": COMMANDS, "processes": (PROC,)}


@dataclass(frozen=True)
class Assertions:
    """Snippets that make assertions about a program, and about its source text if they read it.

    They run in another process, in which the program's functions are stubs. If a construct does not allow that, program
    and snippets share an interpreter, and the verdict says so: docs/sandbox.md lists the promises for both ways. An
    entry point of the program's target must be defined; it is the only builtin name that the program may redefine for
    the snippets. A program that exits early never passes.

    `load_cpu_s` limits the program's code and every snippet. `needs` are requirements of the snippets
    (docs/sandbox.md); each makes both share a process. `cpu_s`: at least so many CPU seconds for loading, every snippet
    and all together, even if the sandbox allows less. `one_file`: the program comes before the snippets in a file; they
    use its imports, and share its variables if they name them (`global`). `reference` is a right program: if it passes
    an assertion in another process, a program fails there that returns an object of a class it defines, which could
    answer for itself.
    """

    snippets: tuple[str, ...]
    needs: frozenset[Need] = frozenset()
    cpu_s: float | None = None
    one_file: bool = False
    reference: str | None = field(default=None, compare=False)
    kind, language, outside = "assertions", "python", NOTHING_OUTSIDE

    @functools.cached_property
    def key(self) -> str:
        asked = [sorted(self.needs), self.cpu_s, self.one_file, *filter(None, [self.reference])]
        return content_hash([self.kind, *([asked] if any(asked) else []), *self.snippets])

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `HasTestCounts`: a snippet is a test."""
        return len(self.snippets), 0

    @functools.cached_property
    def constructs(self) -> tuple[Constructs, ...]:
        """For each snippet the constructs that decide where it can run."""
        return find_all(self.snippets)

    @functools.cached_property
    def shares_variables(self) -> bool:
        """Whether the snippets read or set the variables of the file that they are meant to share with the program."""
        return self.one_file and shares_names(self.snippets)

    def names_used(self, entry_point: str) -> frozenset[str]:
        """The names that the snippets use. Raises `NotRun`, a `ValueError`, if some tests would never run: every
        program would pass those."""
        return _names_used(self.snippets, entry_point)

    def unusable(self, entry_point: str) -> Iterator[str]:
        """See `HasSnippets.unusable`."""
        for number, snippet in enumerate(self.snippets):
            if problem := syntax_problem(snippet):
                yield f"tests[{number}] does not parse: {problem}"
        try:
            self.names_used(entry_point)
        except NotRun as error:
            yield f"a test is never run: {error}"

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        entry_point = program.target.entry_point
        if not self.snippets:
            raise UserError("there are no assertions to run: every program would pass", "add tests to the requirement")
        try:
            self.names_used(entry_point)
        except NotRun as error:
            raise BrokenTask(f"the tests of {entry_point or 'a task'} cannot be run: {error}", REMEDY) from None
        tools = [tool for need, several in TOOLS.items() if need in self.needs for tool in several]
        return await run_in_box(sandbox, lambda box: self._run(box, program, sandbox.config), tools)

    def _run(self, box: Box, program: Program, config: SandboxConfig) -> Verdict:
        if self.needs and not box.parts_processes(self.needs):
            raise UserError(f"tests need {', '.join(sorted(self.needs))}, which only namespaces make safe", NO_BOX)
        words = f"what the tests need ({', '.join(sorted(self.needs))})" if self.needs else ""
        if self.shares_variables:
            words = words or "the variables of the program's file"
        words = words or next((snippet.inside for snippet in self.constructs if snippet.inside), "")
        if not words and not box.parts_processes():
            words = WEAK
        if words:
            return self._inside(box, program, config, SharedProcess(words))
        verdict, reader = self._outside(box, program, config)
        if reader.must_share is None:
            return verdict
        attributes = sorted({name for snippet in self.constructs for _, name in snippet.attributes})
        world = self.constructs[max(reader.index, 0)].world
        words = REASONS[reader.must_share].format(world=world, attributes=" or ".join(attributes))
        if reader.must_share in FAILS and reader.index < self._met(box, program.target, config):
            failure = Failure(f"{words}, unlike the reference's", index=reader.index, input=self.snippets[reader.index])
            return Verdict("fail", False, failure, verdict.cpu_s, inside="")
        return self._inside(box, program, config, SharedProcess(words, reader.must_share in BY_PROGRAM))

    def _inside(self, box: Box, program: Program, config: SandboxConfig, shared: SharedProcess) -> Verdict:
        """The verdict in one process. Tests that use both the function under test and a builtin whose name the program
        has, too, hold with the builtin first, and then as in one namespace: neither alone may excuse the program."""
        entry_point, read = program.target.entry_point, _names_read(self.snippets)[0]
        names = read & BUILTINS - {entry_point} & bound_names(program.source)
        if names and entry_point and not self.shares_variables:
            verdict = self._start(program, config, shared, hidden=sorted(names)).follow(box)
            if not verdict.passed:
                return verdict
        return self._start(program, config, shared).follow(box)

    def _outside(self, box: Box, program: Program, config: SandboxConfig) -> "tuple[Verdict, AssertionsReader]":
        """The verdict of a run in two processes; none if its reader says that they must share one."""
        run = self._start(program, config)
        tester = describe_all(self.constructs)
        candidate = {name: run.job[name] for name in ("program", "load_cpu_s", "cpu", "lent")}
        verdict = run.follow(box, tester | {"output_limit": config.output_mb << 20}, marshal.dumps(candidate, 2))
        return verdict, run.reader

    def _met(self, box: Box, target: Target, config: SandboxConfig) -> int:
        """The number of snippets that the reference passes in another process; 0 without a reference."""
        if self.reference is None:
            return 0
        key = content_hash([self.key, target.entry_point, config.model_dump(mode="json")])
        if key not in MET:
            verdict, reader = self._outside(box, Program(self.reference, target), config)
            MET[key] = len(self.snippets) if verdict.passed else max(reader.index, 0)
        return MET[key]

    def _start(
        self, program: Program, config: SandboxConfig, shared: SharedProcess | None = None, hidden: Sequence[str] = ()
    ) -> "_Run":
        source, entry_point = program.source, program.target.entry_point
        reader = AssertionsReader(self.snippets, entry_point, config.output_mb << 20, shared)
        least, share = self.cpu_s or 0.0, THREADS_SHARE if "threads" in self.needs else IDLE_SHARE
        load_s = max(config.load_cpu_s, least)
        read, free = _names_read(self.snippets)
        used = self.names_used(entry_point)
        uses = uses_of(self.snippets, entry_point, used) if entry_point else [False] * len(self.snippets)
        job = {
            "program": source if source.endswith("\n") else source + "\n",  # a style checker requires it
            "entry": entry_point,
            "snippets": list(self.snippets),
            "used": tuple(sorted(used)),
            "read": tuple(sorted(read)),
            "free": free,
            "uses": uses,
            "hidden": list(hidden),
            "token": reader.token,
            "load_cpu_s": load_s,
            "cpu": math.ceil(load_s + max(config.total_cpu_s, least)) + 1,
            "needs": sorted(self.needs),
            "lent": imports_of(self.snippets) if self.one_file else "",
            "shared": self.shares_variables,
        }
        return _Run(reader, job, config, max(config.idle_s, least * share))


_names_read = functools.lru_cache(maxsize=10_000)(names_read)


@functools.lru_cache(maxsize=10_000)
def _names_used(snippets: tuple[str, ...], entry_point: str) -> frozenset[str]:
    return frozenset(refuse_unrun(snippets, entry_point))


@dataclass(frozen=True)
class _Run:
    reader: AssertionsReader
    job: dict[str, Any]
    config: SandboxConfig
    idle_s: float

    def follow(self, box: Box, extra: Mapping[str, Any] | None = None, candidate: bytes = b"") -> Verdict:
        """Run program and snippets, in two processes if the candidate's job is given. Raises `WorkerDied`."""
        cpu = self.job["cpu"]
        data = marshal.dumps(self.job | dict(extra or {}), 2)
        job = Job(data, self.idle_s, max(self.config.total_cpu_s, self.idle_s), cpu, warm=True, candidate=candidate)
        ended = box.python(job, self.reader.read)
        if not self.reader.started:
            raise WorkerDied("the program could not be confined")
        return self.reader.conclude(ended, cpu)


class AssertionsConfig(Config):
    """Fields of `assertions`."""

    kind: Literal["assertions"] = result_option("assertions", "which kind of tests")
    tests: list[str] = result_option(..., "Python snippets that follow the program", min_length=1)
    needs: list[Need] = result_option([], "what they cannot do without, such as commands or network")
    cpu_s: float | None = result_option(None, "CPU seconds that they may take at least; null: the sandbox's", gt=0)
    one_file: bool = result_option(False, "the program stands before them in one file: its imports are theirs")


@SUITES.register("assertions", AssertionsConfig)
def assertions(config: AssertionsConfig) -> Assertions:
    """Python snippets that follow the program and make assertions about it."""
    return Assertions(tuple(config.tests), frozenset(config.needs), config.cpu_s, config.one_file)
