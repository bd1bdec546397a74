"""Whether a component of another package keeps what the type of its group promises.

A wrong type would show up as an `AttributeError` far from its cause. So a component of a plugin is held to its type
where it enters and at each of its answers, and its author reads which plugin gave what instead of what.
"""

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from codechat.base.errors import UserError

HOME = __name__.partition(".")[0]
WHOLE = "it"
GUIDE = "docs/write-your-own.md shows one of each that runs"


@functools.lru_cache(maxsize=256)  # asked about the same few for every program
def is_plugin(maker: Hashable) -> bool:
    """Whether a function or class is another package's: codechat's own are held to their types by its type checker."""
    return str(getattr(maker, "__module__", "")).partition(".")[0] != HOME


def kept_to_type(component: Any, promise: Any, who: str) -> Any:
    """The component, whose answers are checked from now on if the promise is a protocol. Raises `UserError`."""
    _refuse(problem(component, promise), who, WHOLE)
    return _Checked(component, promise, who) if _is_protocol(promise) else component


def check_type(value: Any, hint: Any, who: str, what: str) -> None:
    """Raise `UserError` if a value that another package gives is not what a type hint says."""
    _refuse(problem(value, hint), who, what)


def check_call(who: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise `UserError` if a factory does not take what it is called with."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        given = ", ".join([*(type(each).__name__ for each in arguments), *(f"{name}=…" for name in named)])
        raise UserError(f"{who}: its factory must take ({given}), and takes {signature}: {error}", GUIDE) from error


def problem(value: Any, hint: Any, what: str = "") -> str:
    """Why a value is not what a type hint says, or nothing."""
    found = _check_of(hint)(value)
    return f"{what}{found}".lstrip(".") if found else ""


@functools.cache  # every answer of a model and of a sandbox is checked
def _check_of(hint: Any) -> Callable[[Any], str]:
    """The check of a type hint: it gives the place in a value and what must be there, or nothing."""
    origin, parameters = get_origin(hint), get_args(hint)

    def one_of(value: Any) -> str:
        listed = ", ".join(map(repr, parameters))
        return "" if value in parameters else f" must be one of {listed}, and is {value!r}"

    def any_of(value: Any) -> str:
        found = [_check_of(each)(value) for each in parameters if each is not type(None) or value is None]
        return found[0] if all(found) else ""

    if hint is Any or isinstance(hint, TypeVar):
        return lambda _: ""
    if origin is Literal:
        return one_of
    if origin in (Union, types.UnionType):
        return any_of
    return functools.partial(_lacking, promise=hint) if _is_protocol(hint) else _whole(origin or hint, parameters)


def _whole(kind: Any, parameters: tuple[Any, ...]) -> Callable[[Any], str]:
    """The check of a class, with a collection's elements or the fields of one of codechat's dataclasses."""
    accepted, element, named = _accepted(kind), Any, list[tuple[str, Any]]()
    if kind in (tuple, list) and len(parameters) in (1, 2) and parameters[-1] in (..., parameters[0]):
        element = parameters[0]
    elif hasattr(kind, "__dataclass_fields__") and not is_plugin(kind):
        named = [(field.name, _hints(kind)[field.name]) for field in fields(kind)]
    number = accepted in (int, (int, float))

    def check(value: Any) -> str:
        if type(value) is not kind and (not isinstance(value, accepted) or (number and isinstance(value, bool))):
            return f" must be {_article(kind)}, and is {_shown(value)}"
        for name, hint in named:
            if found := _check_of(hint)(getattr(value, name)):
                return f".{name}{found}"
        for index, each in enumerate(value if element is not Any else ()):
            if found := _check_of(element)(each):
                return f"[{index}]{found}"
        return ""

    return check


def _accepted(kind: Any) -> Any:
    """The types that stand for one: a list does for a tuple, a whole number for a number, a list for an iterator."""
    return {float: (int, float), tuple: (tuple, list), list: (tuple, list), Iterator: Iterable}.get(
        kind, {"Iterator": Iterable}.get(getattr(kind, "__name__", ""), kind)
    )


def _lacking(component: Any, promise: Any) -> str:
    missing = [name for name in _members(promise) if not hasattr(component, name)]
    if missing:
        listed = " and ".join(f"{name}()" if callable(_member(promise, name)) else name for name in missing)
        return f" must be {_article(promise)}, and {_shown(component)} has no {listed}"
    for name in _members(promise):
        declared = _member(promise, name)
        if callable(declared) and not callable(getattr(component, name)):
            return f".{name} must be a method"
        if isinstance(declared, property):
            found = _check_of(_hints(declared.fget)["return"])(getattr(component, name))
            if found:
                return f".{name}{found}"
    return ""


_hints = functools.cache(get_type_hints)
"""The type hints of a class or function, read once: that costs more than a check."""


@functools.cache
def _members(promise: Any) -> list[str]:
    declared = (*vars(promise), *vars(promise).get("__annotations__", {}))
    return [name for name in dict.fromkeys(declared) if not name.startswith("_")]


def _member(promise: Any, name: str) -> Any:
    return vars(promise).get(name)


@functools.cache
def _result_of(promise: Any, name: str) -> tuple[str | None, Any]:
    """The method of `_Checked` that calls a promised method, None if it is none, and the type of the result."""
    declared = _member(promise, name)
    if not inspect.isfunction(declared):
        return None, Any
    return "_await" if inspect.iscoroutinefunction(declared) else "_call", _hints(declared).get("return", Any)


class _Checked:
    """A component whose answers are checked; everything else of it is as it is."""

    def __init__(self, component: Any, promise: Any, who: str) -> None:
        self._component, self._promise, self._who = component, promise, who

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._component, name)
        how, hint = _result_of(self._promise, name)
        return value if how is None else functools.partial(getattr(self, how), name, value, hint)

    def _call(self, name: str, method: Callable[..., Any], hint: Any, *arguments: Any, **named: Any) -> Any:
        answer = method(*arguments, **named)
        _refuse(problem(answer, hint), self._who, f"the result of {name}()")
        return answer

    async def _await(self, name: str, method: Callable[..., Any], hint: Any, *arguments: Any, **named: Any) -> Any:
        answer = method(*arguments, **named)
        if not inspect.isawaitable(answer):
            raise UserError(f"{self._who}: {name}() is not async", f"write `async def {name}(…)`; {GUIDE}")
        answer = await answer
        if hint is not type(None):
            _refuse(problem(answer, hint), self._who, f"the result of {name}()")
        return answer


def _refuse(found: str, who: str, what: str) -> None:
    if found:
        place, must, rest = found.partition(" must be ")
        whole = "" if place and what == WHOLE else what
        raise UserError(f"{who}: {' of '.join(filter(None, (place, whole)))}{must}{rest}", GUIDE)


def _is_protocol(hint: Any) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def _article(kind: Any) -> str:
    name = "None" if kind in (None, type(None)) else kind.__name__
    return name if name == "None" else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _shown(value: Any) -> str:
    return "None" if value is None else _article(type(value))


__all__ = ["check_call", "check_type", "is_plugin", "kept_to_type", "problem"]
