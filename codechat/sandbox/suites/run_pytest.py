"""Runs the pytest ids of its arguments, in a box, where hostile code replaces a function.

A script for a repository's own interpreter and pytest. It prints the token of the file `token`, deleted before anything
of the repository is loaded, if every named test passed: a test that was skipped, deselected, expected to fail or never
reached did not. A test with such a mark of its author does not count while another test of the same name passes.

Guarded: the builtins, pytest, unittest, the plugins, and the files with the tests and their conftest.py are the same as
before the program was loaded. Code that reaches this script's frames still passes.
"""
# Older Pythons run this too, and nothing is loaded that is not needed.
# ruff: noqa: PTH100, PTH108, PTH109, PTH112, PTH118, PTH123, UP006, UP035

import builtins
import os
import sys
from io import FileIO
from types import FunctionType, ModuleType
from typing import Any, Dict, Iterator, List, Set, Tuple

OPTIONS = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "--override-ini=addopts="]
MARKS = ("skip", "skipif", "xfail")
RUNNERS = ("_pytest", "pluggy", "pytest", "unittest")
PLAIN = (bool, int, str, type(None))
METHODS = (FunctionType, staticmethod, classmethod, property)


def content(path: str) -> bytes:
    """A file's content; a file that is not there has none."""
    try:
        with FileIO(path) as stream:
            return stream.read()
    except OSError:
        return b""


def runners() -> Iterator[Tuple[Any, Any]]:
    """All functions, classes and methods of what runs tests, each with its place."""
    yield from (((name,), value) for name, value in vars(builtins).items() if not name.startswith("_"))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in RUNNERS:
            for key, value in list(vars(module).items()):
                if isinstance(value, (type, *METHODS)):
                    yield (name, key), value
                if isinstance(value, type) and value.__module__ == name:
                    yield from (((name, key, k), v) for k, v in vars(value).items() if isinstance(v, METHODS))


def members() -> Dict[Any, Set[str]]:
    """The names that can act in each class that runs tests, without the names of every Python class."""
    return {
        place: {name for name, own in vars(value).items() if not (name.startswith("__") or isinstance(own, PLAIN))}
        for place, value in runners()
        if isinstance(value, type) and len(place) == 2
    }


class Watch:
    """A plugin that notes which of the named tests passed, which did not, and manipulations of the run."""

    def __init__(self, nodes: List[str]) -> None:
        self.start, self.named = os.getcwd(), {os.path.normpath(node) for node in nodes}
        self.passed: Set[str] = set()
        self.missed: Set[str] = set()
        self.marked: Set[str] = set()
        files = {os.path.abspath(node.partition("::")[0]) for node in nodes}
        for folder, _, names in os.walk(self.start):
            files.update(os.path.join(folder, name) for name in names if name == "conftest.py")
        self.files = {name: content(name) for name in files if not os.path.isdir(name)}
        self.before: Dict[Any, Any] = {}
        self.members: Dict[Any, Set[str]] = {}

    def pytest_collection(self) -> None:
        """Nothing of the repository is loaded yet but what conftest.py loads."""
        self.before, self.members = dict(runners()), members()

    def pytest_plugin_registered(self, plugin: Any) -> None:
        """No plugin comes later, except a conftest.py from before and what is installed."""
        path = os.path.abspath(getattr(plugin, "__file__", None) or self.start)
        known = not path.startswith(self.start) or self.files.get(path) == content(path)
        if self.before and (type(plugin) is not ModuleType or not known):
            self.missed.add("a plugin that was not there before")

    def pytest_collectstart(self, collector: Any) -> None:
        """A file with tests is the one from before."""
        path = str(getattr(collector, "path", None) or getattr(collector, "fspath", ""))
        if self.files.get(path, b"") != content(path if path in self.files else ""):
            self.missed.add(f"{os.path.relpath(path, self.start)}, which was changed")

    def pytest_collection_finish(self, session: Any) -> None:
        """Tests that their author marked, before one is run."""
        for item in session.items:
            owners = (getattr(item, "obj", None), getattr(item, "cls", None))
            unittest = any(getattr(owner, "__unittest_skip__", False) for owner in owners)
            if unittest or any(item.get_closest_marker(mark) for mark in MARKS):
                self.marked.add(item.nodeid)

    def check(self) -> None:
        """Note whether anything that runs tests was replaced, or one of its classes has a name more."""
        now, more = dict(runners()), members()
        replaced = any(now.get(place) is not value for place, value in self.before.items())
        if replaced or any(more.get(place, known) - known for place, known in self.members.items()):
            self.missed.add("what runs the tests, which was changed")

    def note(self, item: Any, call: Any, report: Any) -> None:
        """Note a part of a test: only a test that was called and ended without any exception passed."""
        path = os.path.relpath(str(getattr(item, "path", None) or item.fspath), self.start)
        place = "::".join([path, *item.nodeid.split("::")[1:]])
        if report.when == "call" and report.passed and call.excinfo is None:
            self.passed.update(name for name in self.named if (place + "[").startswith((name + "[", name + "::")))
        elif item.nodeid not in self.marked and (report.when == "call" or not report.passed):
            self.missed.add(place)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test that reports itself passes, too."""
        if hasattr(report, "context") and not report.passed:
            self.missed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """See `check`."""
        self.check()


def main() -> None:
    """Run the tests, and print the token if all passed."""
    with open("../token", "rb") as stream:
        token = stream.read()
    os.unlink("../token")
    os.dup2(2, 1)  # pytest prints to standard error, where failures are read
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what is installed here is not what the repository asks for
    import pytest

    class Hooks(Watch):
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self) -> None:
            self.check()

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
            outcome: Any = yield
            self.note(item, call, outcome.get_result())

    watch, write, leave = Hooks(sys.argv[1:]), os.write, os._exit
    status = int(pytest.main([*OPTIONS, *sys.argv[1:]], plugins=[watch]))
    sys.stdout.flush()
    if status == 0 and not watch.missed and watch.passed >= watch.named:
        write(2, token)
    elif status == 0:
        write(2, f"not passed: {sorted(watch.missed | (watch.named - watch.passed))}".encode("utf-8", "replace"))
    leave(status or (not watch.passed >= watch.named) or bool(watch.missed))


if __name__ == "__main__":
    main()
