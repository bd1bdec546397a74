"""Exceptions that were raised in another process, raised again by type and text."""

import builtins
import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from codechat.sandbox.inside.text import SHARED

LINES = "lines_of_the_program"  # an attribute of such exceptions
Inside = Callable[[str], NoReturn]


def make_exception(tree: Any, build: Callable[[Any], Any], inside: Inside) -> BaseException:
    """The exception of a tree: its class, arguments, text, and the lines of the program that its traceback shows.

    Raises `ValueError` and the like if it is none.
    """
    described, arguments, text, lines = tree
    if type(text) is not str or not all(type(line) is str for line in lines):
        raise ValueError("not an exception")
    kind = exception_class(described, inside)
    if issubclass(kind, BaseExceptionGroup):
        inside("a group of exceptions")
    given = (text,) if arguments is None else build(arguments)
    if type(given) is not tuple:
        raise ValueError("not an exception's arguments")
    error = _instance(kind, given, text)
    vars(error)[LINES] = tuple(lines[:12])
    return error


def as_called(error: BaseException, expected: bool) -> BaseException:
    """The exception as a call raises it. `expected`: the snippets know of `StopIteration`; if they do not, it counts as
    an error, as it does in a generator, because what iterates over calls, such as `map`, would take it for its end."""
    if expected or not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    stopped = RuntimeError(f"the program raised {type(error).__name__}")
    vars(stopped)[LINES] = vars(error)[LINES]
    return stopped


def _instance(kind: type[BaseException], given: tuple[Any, ...], text: str) -> BaseException:
    try:
        error = kind(*given)
        if str(error) == text:
            return error
    except Exception:  # noqa: BLE001, S110  it wants other arguments than it kept
        pass
    same = type(kind.__name__, (kind,), {"__str__": lambda self: text, "__init__": lambda self, *rest: None})
    error = same.__new__(same, *given)
    error.args = given
    return error  # type: ignore[no-any-return]


def exception_class(described: Any, inside: Inside) -> type[BaseException]:
    """The class of a module's name and of its built-in base classes: the real one, or one that stands for it."""
    module, name, bases = described
    if not all(type(one) is str for one in (module, name, *bases)):
        raise ValueError("not an exception's class")
    if module == "builtins" or module.partition(".")[0] in SHARED:
        real: Any = sys.modules.get(module)
        real = getattr(real, name, None)
        if isinstance(real, type) and issubclass(real, BaseException):
            return real
    known = [vars(builtins).get(base) for base in bases]
    classes = [one for one in known if isinstance(one, type) and issubclass(one, BaseException)] or [Exception]
    if not all(issubclass(classes[0], one) for one in classes):
        inside(f"the exception class {name}, which has several base classes")
    return _own_class(module, name, classes[0].__name__, inside)


@functools.cache
def _own_class(module: str, name: str, base: str, inside: Inside) -> type[BaseException]:
    """A class of the program's own, by its names."""

    def ask(error: BaseException, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        inside(f"the attribute {attribute} of the exception {name}")

    members = {"__getattr__": ask, "__module__": module}
    try:
        return type(name.rpartition(".")[2], (vars(builtins)[base],), members)
    except TypeError as error:
        raise ValueError("not an exception's class") from error
