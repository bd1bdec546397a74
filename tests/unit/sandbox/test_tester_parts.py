"""What snippets see of the program in another process: its exceptions, its functions, its arrays."""

import inspect
import typing
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.sandbox.inside import tester
from codechat.sandbox.inside.tester import as_called, describe_stub, exception_class, make_exception, make_stub


class Inside(Exception):
    """Raised for what needs the program in the snippets' process."""


def inside(reason: str) -> typing.NoReturn:
    raise Inside(reason)


@pytest.mark.parametrize(
    ("described", "kind"),
    [
        (("builtins", "ValueError", ["ValueError"]), ValueError),
        (("decimal", "InvalidOperation", ["ArithmeticError"]), None),
        (("builtins", "int", ["ValueError"]), None),
        (("builtins", "nothing", []), None),
    ],
)
def test_a_known_exception_is_the_real_one(described: Any, kind: type[BaseException] | None) -> None:
    found = exception_class(described, inside)
    assert found is kind if kind else issubclass(found, Exception)


def test_an_exception_of_the_programs_own_has_its_names_and_bases() -> None:
    found = exception_class(("candidate", "Outer.Own", ["KeyError", "LookupError"]), inside)
    assert (found.__name__, found.__module__, found.__bases__) == ("Own", "candidate", (KeyError,))
    assert exception_class(("candidate", "Outer.Own", ["KeyError", "LookupError"]), inside) is found
    assert exception_class(("candidate", "Bare", ["int", "nothing"]), inside).__bases__ == (Exception,)
    error = found("x")
    with pytest.raises(Inside, match="exception"):
        error.code  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        error.__wrapped__  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(Inside, match="exception"):
        exception_class(("candidate", "Both", ["KeyError", "ValueError"]), inside)
    for wrong in ((1, "a", []), ("a", 1, []), ("a", "b", [1])):
        with pytest.raises(ValueError, match="class"):
            exception_class(wrong, inside)


def made(described: Any, arguments: Any, text: Any, lines: Any = ("one",)) -> BaseException:
    return make_exception((described, arguments, text, lines), lambda part: part, inside)


VALUE = ("builtins", "ValueError", ["ValueError"])


def test_an_exception_has_the_arguments_and_the_text_that_it_had() -> None:
    error = made(VALUE, ("a", 1), "('a', 1)")
    assert type(error) is ValueError and error.args == ("a", 1) and vars(error)[tester.LINES] == ("one",)
    assert made(VALUE, None, "said").args == ("said",)
    other = made(VALUE, ("a",), "said otherwise")
    assert isinstance(other, ValueError) and str(other) == "said otherwise" and other.args == ("a",)
    assert type(other).__name__ == "ValueError"
    decoding = made(("builtins", "UnicodeDecodeError", ["ValueError"]), ("x",), "x")
    assert isinstance(decoding, UnicodeDecodeError) and str(decoding) == "x" and decoding.args == ("x",)
    assert len(vars(made(VALUE, None, "x", ["line"] * 20))[tester.LINES]) == 12


def test_what_is_no_exception_is_refused() -> None:
    for arguments, text, lines in ((None, 1, []), (None, "x", [1]), (["a"], "x", [])):
        with pytest.raises(ValueError, match="exception"):
            made(VALUE, arguments, text, lines)
    with pytest.raises(Inside, match="exception"):
        made(("builtins", "ExceptionGroup", ["Exception"]), None, "x")


def test_the_end_of_an_iteration_is_an_error_unless_the_snippets_know_of_it() -> None:
    for kind in (StopIteration, StopAsyncIteration):
        error = kind("x")
        vars(error)[tester.LINES] = ("line",)
        assert as_called(error, True) is error
        found = as_called(error, False)
        assert type(found) is RuntimeError and kind.__name__ in str(found) and vars(found)[tester.LINES] == ("line",)
    plain = ValueError("x")
    assert as_called(plain, False) is plain


class Program:
    """A program's text, as far as it is asked."""

    node = SimpleNamespace(lineno=7, decorator_list=[SimpleNamespace(lineno=5)])

    def function(self, name: str) -> Any:
        return self.node

    def plain_function(self, name: str) -> Any:
        raise ValueError("not plain")

    def documentation(self, node: Any) -> str:
        return "documented"

    def annotations(self, node: Any) -> dict[str, Any]:
        return {"x": int}

    def signature(self, node: Any) -> Any:
        return inspect.Signature()


def test_a_stub_stands_for_the_programs_function() -> None:
    calls = list[Any]()
    text: Any = Program()
    stub = make_stub("f", "/path", lambda *given: calls.append(given) or "result")
    assert stub(1, x=2) == "result" and calls == [("f", (1,), {"x": 2})]
    assert (stub.__name__, stub.__qualname__, stub.__module__, stub.__doc__) == ("f", "f", "candidate", None)
    assert (stub.__code__.co_filename, stub.__code__.co_name, stub.__annotations__) == ("/path", "f", {})
    describe_stub(stub, text, ["other"], inside)
    assert (stub.__code__.co_firstlineno, stub.__doc__, stub.__annotations__) == (5, "documented", {})
    assert not hasattr(stub, "__signature__")
    describe_stub(stub, text, ["annotations", "signature"], inside)
    assert stub.__annotations__ == {"x": int} and inspect.signature(stub) == inspect.Signature()
    with pytest.raises(Inside, match="text"):
        describe_stub(stub, text, ["definition"], inside)


def test_strings_of_the_programs_annotations_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typing, "get_type_hints", typing.get_type_hints)
    monkeypatch.setattr(inspect, "get_annotations", inspect.get_annotations)
    tester.reading_hints(lambda name: {"hints of": name})
    again = typing.get_type_hints
    tester.reading_hints(lambda name: {"other": name})
    assert typing.get_type_hints is again

    def own(x: "int") -> None: ...

    stub = make_stub("f", "/path", lambda *given: None)
    stub.__annotations__ = {"x": "int"}
    assert typing.get_type_hints(stub) == inspect.get_annotations(stub, eval_str=True) == {"hints of": "f"}
    assert inspect.get_annotations(stub) == {"x": "int"}
    assert typing.get_type_hints(own)["x"] is int and inspect.get_annotations(own, eval_str=True)["x"] is int
    assert inspect.get_annotations(own)["x"] == "int"
    assert typing.get_type_hints(SimpleNamespace) is not None


def test_an_empty_array_is_not_compared_with_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    import numpy.testing  # noqa: F811

    for module in (numpy, numpy.testing):
        for name in [*vars(module)]:
            if name in tester.snippets.CLOSE or name.startswith("assert_a"):
                monkeypatch.setattr(module, name, getattr(module, name))
    tester.refuse_empty()
    assert numpy.allclose([1.0], [1.0]) and numpy.allclose([], []) and not numpy.allclose([1.0], [2.0])
    numpy.testing.assert_array_equal([], [])
    for one, other in (([], [1.0]), ([1.0], [])):
        with pytest.raises(AssertionError, match="empty"):
            numpy.allclose(one, other)
        with pytest.raises(AssertionError, match="empty"):
            numpy.testing.assert_array_equal(actual=one, desired=other)
