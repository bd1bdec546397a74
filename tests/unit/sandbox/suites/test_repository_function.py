"""A program that takes a function's place in a repository: where it stands, and what is refused before anything runs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Target
from codechat.base.errors import UserError
from codechat.sandbox import PYTHON, Ran
from codechat.sandbox.suites import repository as suite
from codechat.sandbox.suites.repository import WRITABLE_MB, Repository, packed_with, read_contents, root_of, writable_mb
from codechat.sandbox.suites.run_pytest import main

SOURCE = "import a\n\nclass C:\n    def f(self):\n        return 1\n\nlast = 2\n"


def repository(folder: Path, lines: tuple[int, int] = (4, 5), nodes: tuple[str, ...] = ("t.py::test_f",)) -> Repository:
    return Repository("p", str(folder), "m.py", lines, 4, nodes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(SOURCE)
    (tmp_path / "t.py").write_text("def test_f(): ...\nclass T:\n    def test_g(self): ...\n")
    read_contents.cache_clear()
    return tmp_path


def replaced(folder: Path, program: str, lines: tuple[int, int] = (4, 5)) -> str:
    return repository(folder, lines).replace_function(folder / "m.py", program).decode("utf-8", "surrogatepass")


def test_the_program_stands_where_the_function_stood(folder: Path) -> None:
    for program in ("def f(self):\n    return 3", "\n\n  def f(self):\n      return 3\n\n"):
        assert replaced(folder, program) == SOURCE.replace("return 1", "return 3")
    assert replaced(folder, "x", (1, 7)) == "    x\n"
    assert replaced(folder, "x", (7, 7)).endswith("return 1\n\n    x\n")
    assert replaced(folder, "\ud800", (1, 1)).startswith("    \ud800\n\n")


@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (7, 8), (8, 8)])
def test_lines_that_are_not_there_are_refused(folder: Path, lines: tuple[int, int]) -> None:
    with pytest.raises(UserError, match=r"m\.py has no lines"):
        replaced(folder, "x", lines)


@pytest.mark.parametrize("mark", ["\f", "\v", "\x1c", "\u2028", "\x85"])
def test_lines_are_those_that_python_counts(folder: Path, mark: str) -> None:
    source = SOURCE.replace("import a", f"import a  # {mark} a section").replace("last", f"# {mark}\nlast")
    (folder / "m.py").write_text(source)
    assert replaced(folder, "def f(self):\n    return 3") == source.replace("return 1", "return 3")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_end_as_in_the_file(folder: Path, end: str) -> None:
    (folder / "m.py").write_bytes(SOURCE.replace("\n", end).encode())
    found = replaced(folder, "def f(self):\n    return 3")
    assert found.startswith(f"import a{end}{end}class C:{end}    def f") and found.endswith(f"{end}last = 2{end}")


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "m.py").write_bytes(b"\xff")
    with pytest.raises(UserError, match="UTF-8"):
        replaced(folder, "x", (1, 1))
    (folder / "m.py").unlink()
    with pytest.raises(UserError, match="cannot read"):
        replaced(folder, "x", (1, 1))


@pytest.mark.parametrize(
    ("node", "there"),
    [("t.py::test_f", True), ("t.py::test_f[a::b]", True), ("t.py::T::test_g", True), ("t.py", True),
     ("t.py::test_h", False), ("t.py::test_h[test_f]", False)],
)  # fmt: skip
def test_a_test_that_the_repository_does_not_have_is_refused(folder: Path, node: str, there: bool) -> None:
    one = repository(folder, nodes=("t.py::test_f", node))
    if there:
        command = one.command("x")
        assert command.argv[0] == PYTHON and command.argv[2:] == one.nodes
        assert command.folder and command.file_mb is not None and command.file_mb >= WRITABLE_MB
        assert (
            len(command.files[suite.TOKEN]) == 32 and one.command("x").files[suite.TOKEN] != command.files[suite.TOKEN]
        )
    else:
        with pytest.raises(UserError, match="has no test"):
            one.command("x")


def test_without_pytest_or_a_repository_nothing_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"dataset\.repos"):
        root_of(None)
    with pytest.raises(UserError, match="no repository"):
        read_contents(folder / "nowhere")
    suite.require_pytest()
    monkeypatch.setattr(suite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pytest"):
        repository(folder).command("x")


async def test_only_the_token_says_that_all_tests_passed(folder: Path) -> None:
    class Room:
        says = True

        async def lend(self, work: Any, tools: Any) -> Any:
            return work(self)

        def run(self, command: Any) -> Ran:
            return Ran(0, stderr=command.files[suite.TOKEN].decode() if self.says else "token")

    room: Any = Room()
    one, program = repository(folder), Program("def f(self): return 1", Target("python"))
    verdict = await one.check(program, room)
    assert verdict.passed and verdict.inside == suite.INSIDE
    room.says = False
    assert not (await one.check(program, room)).passed


def test_what_is_built_or_kept_by_version_control_is_no_content(folder: Path) -> None:
    before, packed = read_contents(folder), packed_with(folder, {})
    for left in (".git/x.py", "sub/__pycache__/x.py", ".venv/x.py"):
        (folder / left).parent.mkdir(parents=True)
        (folder / left).write_text("def other(): ...\n")
    (folder / "link.py").symlink_to(folder / "m.py")
    read_contents.cache_clear()
    assert read_contents(folder) == before and before.names == {"C", "f", "test_f", "T", "test_g"}
    (folder / "m.py").write_text("x = 1\n")
    read_contents.cache_clear()
    assert read_contents(folder).digest != before.digest
    assert len(packed_with(folder, {"m.py": b"x" * 10_000})) > len(packed)


@pytest.mark.parametrize(("size", "mb"), [(0, 0), ((1 << 20) - 1, 0), (1 << 20, 1), (3 << 20, 3)])
def test_a_run_may_write_as_much_as_its_archive_and_more(size: int, mb: int) -> None:
    assert writable_mb(bytes(size)) == WRITABLE_MB + mb


def test_a_repository_that_is_too_large_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.sandbox.suites.repository.MOST_MB", 1)
    rest = sum(path.stat().st_size for path in folder.iterdir())
    for more, refused in ((0, False), (1, True)):
        (folder / "large").write_bytes(bytes((1 << 20) - rest + more))
        read_contents.cache_clear()
        if refused:
            with pytest.raises(UserError, match="1 MiB"):
                read_contents(folder)
        else:
            read_contents(folder)


@pytest.mark.parametrize(
    ("tests", "status", "passed"),
    [
        ("def test_f(): ...\n", 0, True),
        ("def test_f(): assert 0\n", 1, False),
        ("import pytest\n@pytest.mark.skip\ndef test_f(): ...\n", 1, False),
        ("import pytest\n@pytest.mark.xfail\ndef test_f(): assert 0\n", 1, False),
        ("def test_g(): ...\n", 4, False),
    ],
)
def test_the_script_prints_the_token_if_every_named_test_passed(
    tmp_path: Path, tests: str, status: int, passed: bool
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "t.py").write_text(tests)
    (tmp_path / "token").write_text("secret")
    done = subprocess.run(
        [sys.executable, main.__code__.co_filename, "t.py::test_f"], cwd=tmp_path / "r", capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ("secret" in done.stderr) is passed and not (tmp_path / "token").exists()
    assert (done.returncode == 0) is passed and done.returncode == status
    assert done.stdout == ""
