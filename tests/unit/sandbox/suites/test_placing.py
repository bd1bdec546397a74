"""Functions and tests placed in a repository's files, everything else byte for byte as it was."""

from pathlib import Path

import pytest

from codechat.studies.sreval.suite_inserted import Inserted, function_at, insert_tests, names_of_tests, place_function
from support.mistakes import mistake

FILE = b"""# caf\xc3\xa9 \x0c a page\r\nRATE = 2\r
\r
class Basket:\r
\t@loud\r
\t@wide(\r
\t\t2)\r
\tdef total(self):\r
\t\treturn RATE\r
\t\t# a remark\r
\r
\tdef last(self): return 1"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "basket.py"
    path.write_bytes(FILE)
    return path


def placed(file: Path, program: str, name: str = "total", lines: tuple[int, int] = (8, 9)) -> bytes:
    return place_function(function_at(file, name, lines), name, program)


BEFORE, AFTER = FILE[: FILE.index(b"\t@loud")], FILE[FILE.index(b"\t\t# a remark") :]
DECORATORS = b"\t@loud\r\n\t@wide(\r\n\t\t2)\r\n"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("def total(self):\n    return 3\n", DECORATORS + b"\tdef total(self):\n\t    return 3\n"),
        ("    def total(self):\n        return 3", DECORATORS + b"\tdef total(self):\n\t    return 3\n"),
        ("@quiet\ndef total(self):\n    return 3\n", b"\t@quiet\n\tdef total(self):\n\t    return 3\n"),
        (
            "LEAST = 1\n\ndef total(self):\n    return LEAST\n",
            b"\tLEAST = 1\n\n" + DECORATORS + b"\tdef total(self):\n\t    return LEAST\n",
        ),
        ("def total(self)\n", DECORATORS + b"\tdef total(self)\n"),
        (
            'def total(self):\n    """One\ntwo.\n    """\n    return f"""a\n{self}\n"""\n',
            DECORATORS + b'\tdef total(self):\n\t    """One\ntwo.\n    """\n\t    return f"""a\n{self}\n"""\n',
        ),
    ],
    ids=["plain", "indented", "decorated", "with a helper", "no Python", "texts of several lines"],
)
def test_a_program_takes_the_functions_place_and_decorators_go_with_it(file: Path, program: str, code: bytes) -> None:
    assert placed(file, program) == BEFORE + code + AFTER


def test_comments_behind_the_function_are_its_own_if_the_lines_say_so(file: Path) -> None:
    assert placed(file, "def total(self): pass", lines=(8, 11)).endswith(
        b"\tdef total(self): pass\n\tdef last(self): return 1"
    )


def test_the_code_above_ends_before_the_decorators(file: Path) -> None:
    assert function_at(file, "total", (8, 9)).above.encode() == BEFORE


@pytest.mark.parametrize(
    ("name", "lines"), [("other", (8, 9)), ("total", (7, 9)), ("total", (8, 12)), ("total", (8, 8)), ("total", (8, 99))]
)
def test_a_file_whose_lines_do_not_hold_the_function_is_told(file: Path, name: str, lines: tuple[int, int]) -> None:
    with mistake("basket.py", name, str(lines[0]), str(lines[1])):
        function_at(file, name, lines)


@pytest.mark.parametrize("content", [b"def total(:\n", b"x = '\xff'\n", b"\0"])
def test_a_file_that_is_no_python_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.py").write_bytes(content)
    with mistake("odd.py"):
        function_at(tmp_path / "odd.py", "total", (1, 2))


TESTS = b"""class Outer:
  class Inner:
    def test_a(self):
      pass

    # the end of Inner

  x = 1

def test_b():
    pass"""
NEW = 'def test_c(self):\n    text = """\nx"""\n    assert text'


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        (
            ["Outer", "Inner"],
            TESTS.replace(
                b"      pass\n", b'      pass\n\n    def test_c(self):\n        text = """\nx"""\n        assert text\n'
            ),
        ),
        (
            ["Outer"],
            TESTS.replace(b"  x = 1\n", b'  x = 1\n\n  def test_c(self):\n      text = """\nx"""\n      assert text\n'),
        ),
        ([], TESTS + b"\n\n" + NEW.encode() + b"\n"),
    ],
    ids=["a class in a class", "a class", "the file"],
)
def test_tests_are_inserted_into_what_the_id_names(tmp_path: Path, owners: list[str], expected: bytes) -> None:
    (tmp_path / "test_it.py").write_bytes(TESTS)
    assert insert_tests(tmp_path / "test_it.py", owners, NEW) == expected


def test_a_class_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_bytes(TESTS)
    with mistake("Outer::Other"):
        insert_tests(tmp_path / "test_it.py", ["Outer", "Other"], NEW)


def test_names_of_tests() -> None:
    assert names_of_tests("  def test_a(): pass\n  async def test_b(): pass\n  def test_a(): pass") == [
        "test_a",
        "test_b",
    ]
    for text in ("def helper(): pass", "def test_a(:", ""):
        with pytest.raises(ValueError, match="its test"):
            names_of_tests(text)


def test_new_tests_count_by_their_functions() -> None:
    tests = "def test_a(): pass\ndef helper(): pass\nasync def test_b(): pass"
    assert Inserted("project", None, "a.py", "f", (1, 2), "test_a.py", tests).test_counts == (2, 0)
