"""A plugin that is not what its group promises is told by its name, what was expected, and what it gave instead."""

import asyncio
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import create_model

import codechat.sandbox.languages
from codechat.base.config import Config, result_option
from codechat.base.domain import Adherence, Extraction, Message, Program, Reply, Target, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.plugins import import_all
from codechat.base.promises import kept_to_type
from codechat.cli.app import main
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.tasks import Dataset, Task
from codechat.judging import JUDGES, Judge, JudgeConfig
from codechat.models import MODELS, Model, ModelConfig, Request
from codechat.report.metrics import Final, Measures
from codechat.run.protocols import PROTOCOLS
from codechat.run.settings.config import GROUPS
from codechat.sandbox import SANDBOXES
from codechat.sandbox.languages import extract
from codechat.sandbox.suites import SUITES, Suite
from codechat.sandbox.suites.checker import Checker
from support.mistakes import mistake

HERE = __name__
GUIDE = "docs/write-your-own.md shows one of each that runs"
Register = Callable[..., None]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers a factory as `mine` until the end of the test."""
    taken: list[dict[str, Any]] = []

    def take(registry: Any, config: Any, factory: Any, **traits: Any) -> None:
        list(registry)
        factory.__doc__ = "Mine."
        registry.register("mine", config, **traits)(factory)
        taken.append(registry._components)

    yield take
    for components in taken:
        del components["mine"]


def config_of(base: type[Config], **more: Any) -> type[Config]:
    fields: dict[str, Any] = {"kind": (Literal["mine"], result_option("mine", "which")), **more}
    name = ("name", (str, result_option("mine", "its name")))
    return create_model("MineConfig", __base__=base, **{**fields, **dict([name] if base is ModelConfig else [])})


class Mine:
    """A language of another package."""

    names = ("minelang",)
    found: Any = None

    def extract(self, reply: str, target: Target) -> Any:
        return self.found

    def defines(self, code: str) -> None:
        return None


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (Extraction("x", 5, None, ""), r"program .*extract\(\).* str.* int"),  # type: ignore[arg-type]
        (Extraction("x", "x", "odd", ""), r"problem .*extract\(\).* 'no_code', 'syntax_error'"),  # type: ignore[arg-type]
        ("x", r"extract\(\).* Extraction.* str"),
        (None, r"extract\(\).* Extraction.* None"),
    ],
)  # fmt: skip
def test_what_a_language_of_a_plugin_gives_is_held_to_its_type(
    found: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mine, "found", found)
    monkeypatch.setitem(codechat.sandbox.languages._REGISTERED, "minelang", Mine())
    with pytest.raises(UserError) as caught:
        extract("```\nx\n```", Target(language="minelang"))
    assert re.search(wrong, str(caught.value)) and f"Mine of {HERE}" in str(caught.value)


def test_a_plugin_registers_nothing_that_is_no_language() -> None:
    class Named(Mine):
        names = "minelang"  # type: ignore[assignment]

    for wrong, said in ((Named(), "names must be a tuple, and is a str"), (object(), "it must be a Language")):
        with pytest.raises(UserError, match=said):
            codechat.sandbox.languages.register(wrong)  # type: ignore[arg-type]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The message of a command that must end with exit status 2."""

    def told(*words: str) -> str:
        usual = [
            "dataset.limit=1",
            "agenda.turns=2",
            "tracking=none",
            f"runs_dir={tmp_path}",
            "sandbox.allow_weak=true",
        ]
        status = main([*usual, *words])
        printed = capsys.readouterr().err
        assert status == 2, printed
        assert "Traceback" not in printed
        return printed[printed.index("error: ") :].rstrip("\n")

    return told


class Parts:
    """What every component has."""

    def __init__(self, *parts: Any) -> None: ...

    async def check(self) -> None: ...

    async def aclose(self) -> None: ...


def model_of(complete: Any) -> type:
    return type("Mine", (Parts,), {"complete": complete, "__module__": HERE})


async def gives_text(self: Any, request: Request) -> Any:
    return "```python\npass\n```"


async def gives_nothing(self: Any, request: Request) -> Any: ...


async def gives_half(self: Any, request: Request) -> Any:
    return Reply(None)  # type: ignore[arg-type]


def is_not_async(self: Any, request: Request) -> Any:
    return Reply("x")


MODEL = f"error: model=mine of {HERE}: "
MODELS_TOLD = {
    gives_text: f"{MODEL}the result of complete() must be a Reply, and is a str\n{GUIDE}",
    gives_nothing: f"{MODEL}the result of complete() must be a Reply, and is None\n{GUIDE}",
    gives_half: f"{MODEL}text of the result of complete() must be a str, and is None\n{GUIDE}",
    is_not_async: f"{MODEL}complete() is not async\nwrite `async def complete(…)`; {GUIDE}",
    None: f"{MODEL}it must be a Model, and a Mine has no complete()\n{GUIDE}",
}


@pytest.mark.parametrize("complete", MODELS_TOLD, ids=lambda one: one.__name__ if one else "none")
def test_a_model(register: Register, told: Callable[..., str], complete: Any) -> None:
    kind = model_of(complete) if complete else type("Mine", (Parts,), {"__module__": HERE})
    register(MODELS, config_of(ModelConfig), kind)
    assert told("model=mine") == MODELS_TOLD[complete]


def test_a_factory_that_takes_something_else(register: Register, told: Callable[..., str]) -> None:
    def mine() -> Dataset:
        raise AssertionError

    register(DATASETS, config_of(DatasetConfig), mine)
    said = told("dataset=mine", "model=echo")
    assert said.startswith(f"error: dataset=mine of {HERE}: ") and said.endswith(GUIDE)
    assert "(MineConfig)" in said and "() -> codechat.datasets.tasks.Dataset" in said


class Untested:
    """A suite without `check`."""

    kind = "untested"
    key = "k"
    outside: Mapping[str, str] = {}


DATA = f"error: dataset=mine of {HERE}: "
DATASETS_TOLD: list[tuple[Any, str]] = [
    ([Task("a", "b")], f"{DATA}it must be a Dataset, and is a list\n{GUIDE}"),
    (Dataset("d", ({"task_id": "a"},), "h"), f"{DATA}tasks[0] must be a Task, and is a dict\n{GUIDE}"),  # type: ignore[arg-type]
    (
        Dataset("d", (Task("a", "b", suite=Untested()),), "h"),  # type: ignore[arg-type]
        f"{DATA}tasks[0].suite must be a Suite, and an Untested has no check()\n{GUIDE}",
    ),
    (Dataset("d", (Task(1, "b"),), "h"), f"{DATA}tasks[0].task_id must be a str, and is an int\n{GUIDE}"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("given", "message"), DATASETS_TOLD)
def test_a_dataset(register: Register, told: Callable[..., str], given: Any, message: str) -> None:
    register(DATASETS, config_of(DatasetConfig), lambda config: given)
    assert told("dataset=mine", "model=echo") == message


def test_a_judge(register: Register, told: Callable[..., str]) -> None:
    async def applicable(self: Any, code: str, instruction: Any) -> Any:
        return True

    async def adherence(self: Any, before: str, after: str, instruction: Any) -> Any:
        return Adherence("adhered", "me", "so")

    members = {"applicable": applicable, "adherence": adherence, "__module__": HERE}
    register(JUDGES, config_of(JudgeConfig), type("Mine", (Parts,), members), offline=True)
    said = told("judge=mine", "model=echo")
    assert said.startswith(f"error: judge=mine of {HERE}: ") and said.endswith(GUIDE)
    assert all(named in said for named in ("applicable()", "Applicability", "bool"))


class Checks(Untested):
    """A suite whose `check` gives what it is told."""

    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict

    async def check(self, program: Program, sandbox: Any) -> Any:
        return self.verdict


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (True, r"check\(\).* Verdict.* bool"),
        (Verdict("ok", True), r"outcome .*check\(\).* 'pass', 'fail', "),  # type: ignore[arg-type]
    ],
)
def test_a_suite(register: Register, told: Callable[..., str], verdict: Any, message: str) -> None:
    task = Task("a", "b", suite=Checks(verdict), reference="def f(): ...")
    register(DATASETS, config_of(DatasetConfig), lambda config: Dataset("d", (task,), content_hash("d")))
    said = told("dataset=mine", "model=echo", "protocol=refine")
    assert said.startswith(f"error: suite=untested of {HERE}: ") and re.search(message, said)


class Dialogue:
    """A protocol that records nothing and measures nothing."""

    measures = Measures("mine", "Mine", finals=(Final("x", "X"),))

    def __init__(self, config: Any, parts: Any) -> None: ...

    def turns(self, task: Task) -> int:
        return 1

    def agenda(self, generator: Any) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Any]:
        return iter(())

    async def run(self, task: Task, kit: Any) -> None: ...

    def metrics(self, sessions: Any, *, seed: int, effort: Any) -> Any: ...


async def says_and_ends(self: Any, task: Task, kit: Any) -> None:
    kit.log.ended = "context_overflow"


PROTOCOL = f"error: protocol=mine of {HERE}: "
METRICS = "error: protocol=mine: the result of metrics()"
COUNTS = {"sessions": 1, "completed": 1, "errored": 0}
PROTOCOLS_TOLD: list[tuple[dict[str, Any], str]] = [
    ({}, "error: protocol=mine recorded no turn of starter/"),
    ({"run": says_and_ends}, f"{PROTOCOL}the result of metrics() must be a dict, and is None\n{GUIDE}"),
    ({"run": lambda self, task, kit: None}, f"{PROTOCOL}run() is not async\nwrite `async def run(…)`; {GUIDE}"),
    ({"turns": lambda self, task: None}, f"{PROTOCOL}the result of turns() must be an int, and is None\n{GUIDE}"),
    ({"measures": {}}, f"{PROTOCOL}measures must be a Measures, and is a dict\n{GUIDE}"),
    ({"agenda": None}, f"{PROTOCOL}agenda must be a method\n{GUIDE}"),
    ({"run": says_and_ends, "metrics": lambda *_, **__: {}}, f"{METRICS} must have 'sessions', a count\n"),
    ({"run": says_and_ends, "metrics": lambda *_, **__: COUNTS}, f"{METRICS} must have 'outcomes', the turns by"),
    (
        {"run": says_and_ends, "metrics": lambda *_, **__: {**COUNTS, "outcomes": {}, "x": "very"}},
        f"{METRICS} must have a number or None as 'x', and has 'very'\n",
    ),
    *(
        (
            {
                "run": says_and_ends,
                "metrics": lambda *_, value=value, **__: {**COUNTS, "outcomes": {}, "x": 0, **value},
            },
            f"{METRICS} must have finite numbers, and has {said}\n",
        )
        for value, said in (
            ({"x": math.nan}, "nan at 'x'"),
            ({"ci": {"x": [0.0, math.inf]}}, "inf at 'ci.x.1'"),
            ({"series": ({"a": -math.inf},)}, "-inf at 'series.0.a'"),
            ({"cost_usd": {"model": 10**400}}, "a huge integer at 'cost_usd.model'"),
        )
    ),
]


@pytest.mark.parametrize(("members", "message"), PROTOCOLS_TOLD)
def test_a_protocol(register: Register, told: Callable[..., str], members: dict[str, Any], message: str) -> None:
    register(PROTOCOLS, config_of(Config), type("Mine", (Dialogue,), {**members, "__module__": HERE}))
    assert told("protocol=mine", "model=echo").startswith(message)


class Loose(Config):
    kind: Literal["mine"] = result_option("mine", "which")
    size: int = 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (dict, r"model 'mine': .*codechat\.models\.ModelConfig.*<class 'dict'>"),
        (config_of(Config), r"model 'mine': .*codechat\.models\.ModelConfig"),
    ],
)
def test_a_wrong_config_class(config: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        MODELS.register("mine", config)


def test_an_option_that_is_not_declared() -> None:
    with pytest.raises(TypeError, match=r"'mine'.*'size'.*result_option"):
        PROTOCOLS.register("mine", Loose)
    with pytest.raises(TypeError, match=r"'mine'.*'kind'"):
        SUITES.register("mine", Config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(.*broken_mine\.py:2\)"),
        ("x = 1\nunknown()\n", r"NameError: name 'unknown' is not defined \(.*broken_mine\.py:2\)"),
        ("from codechat.models import MODELS\nMODELS.register('mine', dict)\n", "TypeError: model 'mine': its config"),
    ],
)
def test_a_plugin_that_raises_at_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "broken_mine.py").write_text(text)
    info = tmp_path / "broken_mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[codechat.mine]\nmine = broken_mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=f"'mine'.*broken-mine.*{message}") as caught:
        import_all("codechat.models.hardware", "mine")
    assert caught.value.remedy


def test_what_keeps_its_promise_works_as_before() -> None:
    class Good(Parts):
        extra = 3

        async def complete(self, request: Request) -> Reply:
            return Reply("x", latency_s=1)

    model = kept_to_type(Good(), Model, "model=good")
    request = Request((Message("user", "?"),), "t", 0)
    assert asyncio.run(model.complete(request)) == Reply("x", latency_s=1)
    assert model.extra == 3
    verdict = Verdict("pass", True)
    assert asyncio.run(Checker(None).check(Program("x"), Checks(verdict))) is verdict  # type: ignore[arg-type]


def test_every_group_has_a_type_for_what_it_makes() -> None:
    assert set(GROUPS) == {"model", "dataset", "instructions", "agenda", "protocol", "judge", "sandbox", "hardware",
                           "environment", "tracking"}  # fmt: skip
    for registry in (*GROUPS.values(), SUITES):
        with mistake(f"{registry.group}: ", registry._makes.__name__):
            kept_to_type(object(), registry._makes, registry.group)
    assert SANDBOXES._makes.__name__ == "Sandbox" and JUDGES._makes is Judge and SUITES._makes is Suite
