"""For every test: a response cache of its own, so that none answers another's question or writes into the user's.

What the sandbox worked out about references is shared, as is its Java runtime: both are dear, and the same for every
test.
"""

import gc
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import hypothesis
import pytest

from codechat.base.environment import cache_root
from support import machine
from support.undrawn import copied_stores

LOCATION = "CODECHAT_CACHE_DIR"
# Said in pyproject.toml. A test that is left out counts by the first of its marks.
MARKS = (
    "engines", "browser", "slurm", "postgres", "ray", "real", "agents", "simulations", "data", "tools", "namespaces", "long",
)  # fmt: skip
BY_BUBBLEWRAP = {"bubblewrap", "checkout"}  # parameters of tests that need user namespaces
LONGER_S = 900  # the time limit of a test that has one of them
UNDRAWN = Path(__file__).parent / "support" / "undrawn"  # put before all that processes import
LEFT_OUT = pytest.StashKey[Counter[str]]()
NEED = re.compile(r"(CODECHAT_\w+)|\b(?:needs|no|without) (?:the (?:packages?|program) )?([^:;,(\n]+)|^(\S+) does not")
LONGEST_NEED = 60  # characters of a reason that says none

# A commit passes or fails for what is in it, not for the examples that were drawn this time. To look for new ones:
# `pytest --hypothesis-profile=search`; what it finds becomes an `@example`.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("same")

# Tests start hundreds of processes: if none may keep its bytecode, each compiles all of codechat again, and each worker
# all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
copied_stores.install()
# Tests and what they import are many objects that all stay: collecting garbage would look at them over and over again.
gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: a worker more than cores, since many tests wait for processes, servers and limits of time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by what they ask for, and all attacks; the marked get more time, others `short`."""
    for item in items:
        for name in marks_of(item):
            item.add_marker(name)
        if any(item.get_closest_marker(name) for name in MARKS):
            item.add_marker(pytest.mark.timeout(LONGER_S))
        else:
            item.add_marker("short")


def marks_of(item: pytest.Item) -> Iterator[str]:
    """The marks that a test has by its folder, its fixtures, its parameters, and what it is skipped without."""
    fixtures, given = getattr(item, "fixturenames", ()), getattr(item, "callspec", None)
    params = given.params if given else {}
    values = [each for each in params.values() if isinstance(each, str)]
    if item.path.parent.name == "attacks":
        yield "long"
    if "engine" in fixtures or "docker" in values:
        yield "engines"
    if "data" in fixtures and "data" not in params:
        yield "data"
    if not BY_BUBBLEWRAP.isdisjoint(values) and machine.lacking_namespaces():
        yield "namespaces"
    for mark in item.iter_markers("skipif"):
        reason = mark.kwargs.get("reason", "")
        if "CODECHAT_TEST_DATA" in reason:
            yield "data"
        elif reason.startswith(("needs ", "CODECHAT_")):
            yield "tools"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collects garbage from here on, as codechat does, among what tests make."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    gc.enable()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Counts the tests that are left out, each by the first of its marks."""
    for item in items:
        counts = item.config.stash.setdefault(LEFT_OUT, Counter())
        counts.update([name for name in MARKS if item.get_closest_marker(name)][:1])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Gives the counts of a worker to the process that reports."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes a worker's counts, which are every worker's: all collect the same tests."""
    if counts := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(counts)


def need_of(reason: str) -> str:
    """What a skipped test needs, by its reason: `needs X`, `needs X: why`, `there is no X`, or a variable of codechat's."""
    found = NEED.search(reason)
    return found[found.lastindex or 0].strip() if found else reason.partition("\n")[0][:LONGEST_NEED]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Says last how many tests were left out: what skipped ones need, and by which marks, with how to run them."""
    yield
    skipped = [str(each.longrepr[2]).removeprefix("Skipped: ") for each in terminalreporter.stats.get("skipped", [])]
    needs, marks = Counter(map(need_of, skipped)), terminalreporter.config.stash.get(LEFT_OUT, Counter())
    said = []
    if needs:
        (first, most), *others = needs.most_common()
        said.append(", ".join([f"{most} tests that need {first}", *(f"{number} {need}" for need, number in others)]))
    if marks:
        listed = ", ".join(f"{number} {name}" for name, number in marks.most_common())
        said.append(f"{marks.total()} by marks ({listed}), run by: pytest -m 'not short'")
    if said:
        terminalreporter.write_line(f"left out: {'; '.join(said)}")


@pytest.fixture(scope="session")
def engine() -> Iterator[None]:
    """A real container engine with the image `tiny`, one for all tests of the process."""
    if why := machine.lacking_engine():
        pytest.skip(why)
    with machine.engine():
        yield


@pytest.fixture(scope="session")
def python_image(engine: None) -> str:
    """An image of the engine that has this machine's Python."""
    machine.make_python_image()
    return machine.PYTHON


@pytest.fixture(scope="module")
def of_kind(request: pytest.FixtureRequest) -> Callable[[str], dict[str, str]]:
    """The options of a kind of sandbox, with an image for `docker`, whose tests are skipped if there is no engine."""

    def options(kind: str) -> dict[str, str]:
        image = {"image": request.getfixturevalue("python_image")} if kind == "docker" else {}
        return {"kind": kind, **image}

    return options


@pytest.fixture(scope="session")
def new_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a cache folder with nothing in it but the sandbox's truths and its Java runtime."""
    shared = [cache_root() / "expected", cache_root() / "java"]
    for folder in shared:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folders, numbers = tmp_path_factory.mktemp("caches"), itertools.count()

    def make() -> Path:
        folder = folders / str(next(numbers))
        folder.mkdir()
        for each in shared:
            (folder / each.name).symlink_to(each.resolve())
        return folder

    return make


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(new_cache: Callable[[], Path]) -> Iterator[None]:
    """For fixtures that live longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCATION, str(new_cache()))
        yield


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store is, or is going to be, of which new ones are copies."""
    return tmp_path_factory.mktemp("made") / "store.db"


@pytest.fixture(autouse=True, scope="module")
def _copied_stores(request: pytest.FixtureRequest, made_store: Path) -> Iterator[None]:
    """New stores of MLflow are copies of one, unless the module says `MIGRATED = True`: its subject is how one is made."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "MIGRATED", False):
            patch.setenv(copied_stores.NAME, str(made_store))
        yield


@pytest.fixture(autouse=True)
def cache_folder(new_cache: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test, and of processes that it starts."""
    folder = new_cache()
    monkeypatch.setenv(LOCATION, str(folder))
    return folder


@pytest.fixture(autouse=True, scope="module")
def left_out_figures(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Drawing figures takes longer than a small cell, and most of a report's time: they are left out unless the module
    says `RENDERED = True`, a test asks for `rendered`, or the module says `DRAWN = True` for a report's figures that
    are drawn and written to empty files. What was left out, by its name.
    """
    own: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:

        def replace(name: str, instead: Any) -> None:
            module = name.rpartition(".")[0]
            if module in sys.modules or "unit" not in request.path.parts:  # most unit tests need neither
                own[name] = resolve_name(name)
                patch.setattr(name, instead)

        if not getattr(request.module, "RENDERED", False):
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(UNDRAWN), os.environ.get("PYTHONPATH")])))
            replace("codechat.run.run.write_figures", lambda *_, **__: [])
            if getattr(request.module, "DRAWN", False):
                replace("codechat.report.build.save", save_nothing)
            else:
                replace("codechat.report.build._figures", lambda *_: iter(()))
        yield own


@pytest.fixture
def rendered(left_out_figures: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells and reports of this test have figures."""
    for name, own in left_out_figures.items():
        monkeypatch.setattr(name, own)


def save_nothing(figure: Any, folder: Path, name: str) -> tuple[Path, Path]:
    """What stands for a figure's two files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    for path in paths:
        path.touch()
    return paths
