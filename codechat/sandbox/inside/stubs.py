"""Functions that stand for those of a program in another process."""

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from codechat.sandbox.inside.text import NotPlain, Text

Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
PROGRAM_OF = "function of the program"  # an attribute that marks a stub with its name there


def make_stub(name: str, path: str, call: Call) -> Any:
    """A function whose calls go to `call`, and whose source is in the file `path`."""

    def stub(*positional: Any, **named: Any) -> Any:
        return call(name, positional, named)

    stub.__name__ = stub.__qualname__ = name
    stub.__module__, stub.__annotations__, stub.__doc__ = "candidate", {}, None
    stub.__dict__[PROGRAM_OF] = name
    stub.__code__ = stub.__code__.replace(co_name=name, co_qualname=name, co_filename=path)
    return stub


def describe_stub(stub: Any, text: Text, reads: Sequence[str], inside: Callable[[str], NoReturn]) -> None:
    """Give a stub what the program's text says of it, as far as the snippets read it: `inside` is told if it does not
    say so plainly."""
    try:
        name = stub.__name__
        node = text.plain_function(name) if "definition" in reads else text.function(name)
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        stub.__code__ = stub.__code__.replace(co_firstlineno=first)
        stub.__doc__ = text.documentation(node)
        if "annotations" in reads:
            stub.__annotations__ = text.annotations(node)
        if "signature" in reads:
            stub.__signature__ = text.signature(node)
    except NotPlain as error:
        inside(str(error))
    except Exception as error:  # noqa: BLE001  too deep a text, for one
        inside(f"the program's text: {type(error).__name__}")


def reading_hints(hints: Callable[[str], dict[str, Any]]) -> None:
    """Let `typing.get_type_hints` and `inspect.get_annotations` evaluate no string of the program's text."""
    if hasattr(typing.get_type_hints, "__wrapped__"):
        return
    by_typing, by_inspect = typing.get_type_hints, inspect.get_annotations

    @functools.wraps(by_typing)
    def get_type_hints(one: Any, *rest: Any, **options: Any) -> Any:
        name = vars(one).get(PROGRAM_OF) if callable(one) and hasattr(one, "__dict__") else None
        return by_typing(one, *rest, **options) if name is None else hints(name)

    @functools.wraps(by_inspect)
    def get_annotations(one: Any, **options: Any) -> Any:
        name = vars(one).get(PROGRAM_OF) if callable(one) and hasattr(one, "__dict__") else None
        return hints(name) if name is not None and options.get("eval_str") else by_inspect(one, **options)

    typing.get_type_hints = get_type_hints  # type: ignore[assignment]
    inspect.get_annotations = get_annotations  # type: ignore[assignment]
