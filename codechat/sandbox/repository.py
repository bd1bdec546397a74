"""A repository's own tests, a program in the place of one of its functions: in a copy that lives in the sandbox."""

import functools
import importlib.util
import io
import re
import secrets
import tarfile
import textwrap
from pathlib import Path, PurePosixPath

from codechat.domain import RepositoryTests
from codechat.errors import UserError
from codechat.sandbox.scripts import Script

WALL_S = 60.0  # what the benchmark's own harness grants a group of tests
ROOM_MB = 64  # beside the copy: what tests write
MOST_MB = 512  # of a repository
LEFT_OUT = {".git", ".hg", "__pycache__", ".tox", ".venv", "node_modules"}
REMEDY = "dataset.repos names the folder of the repositories"
# What pytest prints goes where failures are told from. The token is shown once pytest has returned: a test run that
# ends before that is none.
RUN = """
import os
import sys
import pytest
os.dup2(2, 1)
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what is installed here is not what the repository asks for
told = (os.environ.pop("CODECHAT_TOKEN"), pytest.main(sys.argv[1:]))
sys.stdout.flush()
if told[1] == 0:
    os.write(2, told[0].encode())
sys.exit(int(told[1]))
"""
DEFINES = re.compile(r"^\s*(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
OPTIONS = ("-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "--override-ini=addopts=")


def in_repository(program: str, tests: RepositoryTests) -> Script:
    """The script that runs the tests in a copy of the repository, the program's code in the function's place.

    Raises `UserError` where there is no such repository, file or line, or no pytest.
    """
    if importlib.util.find_spec("pytest") is None:
        raise UserError("the tests of repositories need pytest, which is not installed", "pip install pytest")
    if tests.repository is None:
        raise UserError("the tests need their repository", "give the folder of the repositories: dataset.repos=DIR")
    root = Path(tests.repository)
    packed_before, defined = _packed(root)
    for node in tests.nodes:
        if "::" in node and _test_name(node) not in defined:
            raise UserError(f"{root} has no test {node}", "use the repositories that hold the benchmark's own tests")
    archive = io.BytesIO(packed_before)
    with tarfile.open(fileobj=archive, mode="a") as packed:
        _add(packed, PurePosixPath("repository", tests.file), replaced(root / tests.file, program, tests))
    data = archive.getvalue()
    return Script(
        RUN,
        WALL_S,
        ("../script.py", *OPTIONS, *tests.nodes),
        data,
        folder="repository",
        imports=(".", "src"),
        file_mb=(len(data) >> 20) + ROOM_MB,
        token=secrets.token_hex(16),
    )


def replaced(path: Path, program: str, tests: RepositoryTests) -> bytes:
    """The file's content with the program, indented as the function was, in the place of its lines."""
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", "dataset.repos names the folder of the repositories"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text", "leave the task out: dataset.tasks") from None
    first, last = tests.lines
    if not 1 <= first <= last <= len(lines):
        raise UserError(f"{path} has no lines {first} to {last}", "use the repositories that the tasks were made from")
    code = textwrap.indent(textwrap.dedent(program).strip("\n"), " " * tests.indent) + "\n"
    return "".join([*lines[: first - 1], code, *lines[last:]]).encode("utf-8", "surrogatepass")


def _test_name(node: str) -> str:
    """The function, or class, of a pytest id, parameters left out."""
    return node.partition("[")[0].rpartition("::")[2]


@functools.lru_cache(maxsize=4)
def _packed(root: Path) -> tuple[bytes, frozenset[str]]:
    """The repository as an archive, below the folder `repository`, and the names of its functions and classes.

    Built files and version control are left out.
    """
    if not root.is_dir():
        raise UserError(f"there is no repository {root}", REMEDY)
    archive, defined = io.BytesIO(), set[str]()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and not path.is_symlink() and not LEFT_OUT & set(inside.parts):
                data = path.read_bytes()
                _add(packed, PurePosixPath("repository", *inside.parts), data)
                if path.suffix == ".py":
                    defined.update(DEFINES.findall(data.decode("utf-8", "replace")))
                if archive.tell() > MOST_MB << 20:
                    raise UserError(f"{root} has more than {MOST_MB} MiB", "leave out what its tests do not need")
    return archive.getvalue(), frozenset(defined)


def _add(packed: tarfile.TarFile, name: PurePosixPath, data: bytes) -> None:
    entry = tarfile.TarInfo(str(name))
    entry.size, entry.mode = len(data), 0o755
    packed.addfile(entry, io.BytesIO(data))
