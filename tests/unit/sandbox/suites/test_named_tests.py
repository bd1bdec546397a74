"""Which of the named tests of a repository passed, by what pytest reports, and what the program changed meanwhile."""

import unittest
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from codechat.sandbox.suites.run_pytest import Watch


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "part").mkdir()
    for name in ("test_a.py", "part/conftest.py", "part/other.py"):
        (tmp_path / name).write_text("# as it was\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("attribute", ["path", "fspath"])  # pytest's older versions have the latter alone
@pytest.mark.parametrize(
    ("name", "missed"), [("test_a.py", True), ("part/conftest.py", True), ("part/other.py", False), ("part", False)]
)
def test_a_file_with_tests_is_the_one_from_before(repository: Path, attribute: str, name: str, missed: bool) -> None:
    watch = Watch(["test_a.py::test_it", "part::test_it"])
    collector = SimpleNamespace(**{attribute: repository / name})
    watch.pytest_collectstart(collector)
    assert watch.missed == set()
    if (repository / name).is_file():
        (repository / name).write_text("# as the program likes it\n")
    watch.pytest_collectstart(collector)
    watch.pytest_collectstart(SimpleNamespace())
    assert watch.missed == ({f"{name}, which was changed"} if missed else set())


def module(file: Path | None) -> ModuleType:
    made = ModuleType("plugin")
    made.__file__ = None if file is None else str(file)
    return made


def test_no_plugin_comes_once_tests_are_collected(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    installed, own = tmp_path_factory.mktemp("installed") / "plugin.py", repository / "part" / "conftest.py"
    watch = Watch(["test_a.py"])
    watch.pytest_plugin_registered(object())
    watch.pytest_collection()
    for known in (module(installed), module(own)):
        watch.pytest_plugin_registered(known)
    assert watch.missed == set()
    own.write_text("# as the program likes it\n")
    for stranger in (
        module(own),
        module(repository / "part" / "other.py"),
        object(),
        SimpleNamespace(__file__=installed),
    ):
        watch.missed.clear()
        watch.pytest_plugin_registered(stranger)
        assert watch.missed == {"a plugin that was not there before"}


def test_what_runs_the_tests_is_not_changed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(["test_a.py"])
    watch.pytest_collection()
    watch.pytest_sessionfinish()
    assert watch.missed == set()
    for change in (
        lambda patch: patch.setattr("builtins.repr", lambda value: ""),
        lambda patch: patch.setattr(unittest.TestCase, "assertEqual", lambda self, one, other: None),
        lambda patch: patch.setattr(unittest.TestCase, "assertNothing", lambda self: None, raising=False),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            watch.check()
        assert watch.missed == {"what runs the tests, which was changed"}
        watch.missed.clear()
        watch.check()
        assert watch.missed == set()


def item(nodeid: str, **attributes: Any) -> Any:
    path = Path.cwd() / nodeid.partition("::")[0]
    return SimpleNamespace(nodeid=nodeid, path=path, get_closest_marker=lambda mark: None, **attributes)


@pytest.mark.parametrize(
    ("node", "when", "passed", "raised", "result"),
    [
        ("test_a.py::test_it", "call", True, None, "passed"), ("test_a.py::test_it[1]", "call", True, None, "passed"),
        ("test_a.py::test_it", "setup", True, None, ""), ("test_a.py::test_it", "teardown", True, None, ""),
        ("test_a.py::test_it", "setup", False, None, "missed"), ("test_a.py::test_it", "teardown", False, None, "missed"),
        ("test_a.py::test_it", "call", False, None, "missed"), ("test_a.py::test_it", "call", True, "error", "missed"),
        ("test_a.py::test_it2", "call", True, None, ""), ("test_a.py::test_it::inner", "call", True, None, "passed"),
    ],
)  # fmt: skip
def test_a_test_passed_if_it_was_called_and_ended(
    repository: Path, *, node: str, when: str, passed: bool, raised: Any, result: str
) -> None:
    watch = Watch(["./test_a.py::test_it"])
    report = SimpleNamespace(when=when, passed=passed)
    watch.note(item(node), SimpleNamespace(excinfo=raised), report)
    assert watch.passed == ({"test_a.py::test_it"} if result == "passed" else set())
    assert watch.missed == ({node} if result == "missed" else set())


def test_what_its_author_marked_counts_for_nothing(repository: Path) -> None:
    watch = Watch(["test_a.py"])
    one, other = item("test_a.py::one", obj=SimpleNamespace(__unittest_skip__=True)), item("test_a.py::other")
    marked = item("test_a.py::marked")
    marked.get_closest_marker = lambda mark: mark == "xfail"
    of_class = item("test_a.py::T::it", cls=SimpleNamespace(__unittest_skip__=True), obj=None)
    watch.pytest_collection_finish(SimpleNamespace(items=[one, other, marked, of_class]))
    assert watch.marked == {"test_a.py::one", "test_a.py::marked", "test_a.py::T::it"}
    for each in (one, other, marked):
        watch.note(each, SimpleNamespace(excinfo=None), SimpleNamespace(when="call", passed=False))
    assert watch.missed == {"test_a.py::other"}


def test_a_part_that_reports_itself_passes_too(repository: Path) -> None:
    watch = Watch(["test_a.py"])
    for report in (
        SimpleNamespace(nodeid="whole", passed=False), SimpleNamespace(nodeid="good part", passed=True, context=1),
        SimpleNamespace(nodeid="part", passed=False, context=1),
    ):  # fmt: skip
        watch.pytest_runtest_logreport(report)
    assert watch.missed == {"part"}
