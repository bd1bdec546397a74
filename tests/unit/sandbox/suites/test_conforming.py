"""Values of other languages in Python's types, inputs with results, and Maven's options, by hand."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.inside.decode import DICT, SET
from codechat.sandbox.inside.encode import encode
from codechat.sandbox.suites import syntax_problem
from codechat.sandbox.suites.calls import require_results
from codechat.sandbox.suites.calls.conform import conform
from codechat.sandbox.suites.values import Table, decode_value
from codechat.studies.sreval import suite_maven as maven
from codechat.studies.sreval.suite_maven import Maven, Part


def claimed(value: Any) -> Any:
    return decode_value(encode(value, False)[0])


def plain(value: Any) -> Any:
    """A value without tables, by which types can be compared."""
    if isinstance(value, Table):
        return ("dict" if value.is_dict else "set", [plain(each) for each in value.items])
    return [type(value), [plain(each) for each in value]] if isinstance(value, (list, tuple)) else (type(value), value)


@pytest.mark.parametrize(
    ("actual", "expected", "found"),
    [
        (1, 2.0, 1.0), (1.0, 2, 1), (1.5, 2, 1.5), (1, 2, 1), (True, 2.0, True), (1, True, 1), (1.0, True, 1.0), ("1", 2, "1"),
        ((1 << 1000) - 1, 2.0, float((1 << 1000) - 1)), (1 << 1000, 2.0, 1 << 1000), (-(1 << 1000), 2.0, -(1 << 1000)),
        ([1, 2], (1.0, 2), (1.0, 2)), ([1, 2, 3], [1.0], [1.0, 2, 3]), ([1], (1.0, 2.0), (1.0,)), (1, (1,), 1), ((1,), [1.0], (1,)),
        ([[1]], ([2.0],), ([1.0],)),
        (None, ..., ...), (..., ..., ...), (1, ..., 1), (..., None, ...), (..., 1, None), ([...], [None], [...]),
    ],
)  # fmt: skip
def test_a_value_has_the_types_of_the_expected_one_as_far_as_it_says_the_same(
    actual: Any, expected: Any, found: Any
) -> None:
    assert plain(conform(actual, expected)) == plain(found)


@pytest.mark.parametrize(
    ("actual", "expected", "found"),
    [
        ({"1": 2}, {1: 2.0}, {1: 2.0}),
        ({"1": 2}, {1.0: 2}, {1: 2}),
        ({"1": 2}, {"1": 2.0}, {"1": 2.0}),
        ({"01": 2}, {1: 2}, {"01": 2}),
        ({"-0": 2}, {0: 2}, {"-0": 2}),
        ({"1\u0663": 2, "0": 1}, {13: 2, 0: 1}, {"1\u0663": 2, 0: 1}),
        ({"-7": 2, "x": 1}, {-7: 2.0}, {-7: 2, "x": 1}),
        ({"b": 1, "a": 2}, {"a": 2.0, "b": 1.0}, {"b": 1.0, "a": 2.0}),
        ({"1" * 19: 1}, {1: 1}, {int("1" * 19): 1}),
        ({"1" * 20: 1}, {1: 1}, {"1" * 20: 1}),
        ({1, 2}, {1.0, 2.0}, {1, 2}),
        ({1: 2}, {1}, {1: 2}),
        ({1}, {1: 2}, {1}),
    ],
)
def test_tables_have_the_keys_of_the_expected_ones(actual: Any, expected: Any, found: Any) -> None:
    assert plain(conform(claimed(actual), claimed(expected))) == plain(claimed(found))


def test_an_element_is_never_a_list() -> None:
    found = conform(Table(SET, [[1, [2]], 3]), Table(SET, []))
    assert plain(found) == ("set", [plain((1, (2,))), plain(3)])
    found = conform(Table(DICT, [[1], 2]), Table(DICT, [(1,), 2.0]))
    assert plain(found) == ("dict", [plain((1,)), plain(2.0)])


@pytest.mark.parametrize(
    ("calls", "results", "reference", "told"),
    [([1], [1], None, ""), ([1], None, "x", ""), ([], None, None, ""), ([1], None, None, "give R or n"),
     ([1], [], None, "0 results for 1"), ([1], [1, 2], "x", "2 results for 1")],
)  # fmt: skip
def test_every_call_has_a_result(calls: list[Any], results: Any, reference: str | None, told: str) -> None:
    if told:
        with pytest.raises(ValueError, match=told):
            require_results("n", calls, results, "R", reference)
    else:
        require_results("n", calls, results, "R", reference)


@pytest.mark.parametrize(
    ("text", "told"), [("x = 1", ""), ("x =", "line 1: "), ("x = 1\ny =", "line 2: "), ("'\\d'", ""), ("x\0", "null bytes")]
)  # fmt: skip
def test_what_is_no_python_is_told_with_its_line(text: str, told: str) -> None:
    found = syntax_problem(text)
    assert (told in found) if told else found == ""


def suite(*words: str, folder: str | None = None) -> Maven:
    part = Part("A.java", (2, 3), "int f() {\n  return 1; }")
    return Maven("p", folder, part, part, "tests", words)


@pytest.mark.parametrize(
    ("words", "count"),
    [(("test",), 1), (("-Dtest=A",), 1), (("-Dtest=A,B",), 2), (("-Dtest=A#b+c",), 2), (("-Dtest=A#b+c,B#d",), 3),
     (("-Dtest=!A",), 1), (("-Dtest=A,!B",), 1), (("-Dtest=A,",), 1), (("-Dtest=A", "-Dtest=B"), 2)],
)  # fmt: skip
def test_the_words_name_at_least_so_many_tests(words: tuple[str, ...], count: int) -> None:
    assert suite(*words).named == count


def test_code_is_replaced_where_it_is_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "A.java").write_text("class A {\n int f() {\n    return 1; }\n}\n")
    part = Part("A.java", (2, 3), "int f() {\n  return 1; }")
    assert part.replaced(tmp_path, "\nint g() { }\n\n") == b"class A {\nint g() { }\n}\n"
    for lines in ((1, 3), (2, 2), (2, 4), (3, 3)):
        with pytest.raises(UserError, match=rf"{lines[0]} to {lines[1]}"):
            Part("A.java", lines, part.code).replaced(tmp_path, "x")
    suite(folder=str(tmp_path)).place()
    (tmp_path / "A.java").write_text("")
    with pytest.raises(UserError, match="does not hold"):
        suite(folder=str(tmp_path)).place()


def limits(**options: Any) -> Any:

    return SANDBOXES.validate({"kind": "process", **maven.LEAST, **options})


def test_maven_needs_its_repository_and_more_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    monkeypatch.setattr(maven, "toolchain", asked.append)
    with pytest.raises(UserError, match="without network"):
        suite().make_ready(limits(), print)
    with pytest.raises(UserError, match="cannot read"):
        suite().make_ready(limits(maven_repository=str(tmp_path / "nowhere")), print)
    monkeypatch.setattr(maven.os, "getuid", lambda: 0)
    for mode, readable in ((0o755, True), (0o751, False), (0o754, False), (0o750, False)):
        tmp_path.chmod(mode)
        if readable:
            suite().make_ready(limits(maven_repository=str(tmp_path)), print)
        else:
            with pytest.raises(UserError, match="cannot read"):
                suite().make_ready(limits(maven_repository=str(tmp_path)), print)
    monkeypatch.setattr(maven.os, "getuid", lambda: 1)
    suite().make_ready(limits(maven_repository=str(tmp_path)), print)
    tmp_path.chmod(0o755)
    for name, least in maven.LEAST.items():
        with pytest.raises(UserError, match=name):
            suite().make_ready(limits(maven_repository=str(tmp_path), **{name: least - 1}), print)
    assert asked == [None, None]


def test_maven_and_a_jdk_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven.toolchain.cache_clear()
    monkeypatch.setattr(maven.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="mvn"):
        maven.toolchain(None)
    (tmp_path / "m" / "bin").mkdir(parents=True)
    (tmp_path / "m" / "bin" / "mvn").write_text("")
    monkeypatch.setattr(maven.shutil, "which", lambda name: str(tmp_path / "m" / "bin" / "mvn"))
    monkeypatch.setattr(maven, "find_home", lambda jdk: tmp_path / "jdk")
    found = maven.toolchain(None)
    maven.toolchain.cache_clear()
    assert (found.maven, found.java_home) == (str(tmp_path / "m" / "bin" / "mvn"), str(tmp_path / "jdk"))
    assert {str(tmp_path / "m"), str(tmp_path / "jdk")} <= {*found.tools} and len({*found.tools}) == len(found.tools)
