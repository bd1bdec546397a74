"""Type checks of components of other packages.

A wrong type would show up as an `AttributeError` far from its cause. So a plugin's component is checked when it is made
and at every result, and the error names the plugin and the expected type.
"""

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from codechat.base.errors import UserError

HOME = __name__.partition(".")[0]
GUIDE = "docs/write-your-own.md shows one of each that runs"
ALSO: Mapping[Any, Any] = {float: (int, float), tuple: (tuple, list), list: (tuple, list), Iterator: Iterable}
"""The types that are accepted for another type."""
_hints = functools.cache(get_type_hints)


@functools.lru_cache(maxsize=256)  # asked about the same few for every program
def is_plugin(maker: Hashable) -> bool:
    """Whether a function or class belongs to another package: mypy checks codechat's."""
    return str(getattr(maker, "__module__", "")).partition(".")[0] != HOME


def kept_to_type(component: Any, promise: Any, who: str) -> Any:
    """The component, wrapped to check its results if the promise is a protocol. Raises `UserError`."""
    check_type(component, promise, who)
    return _Checked(component, promise, who) if _is_protocol(promise) else component


def check_type(value: Any, hint: Any, who: str, what: str = "") -> None:
    """Raise `UserError` if a value of another package does not fit a type hint."""
    if found := _problem(value, hint):
        place, _, expected = found.removeprefix(".").partition(" must be ")
        raise UserError(f"{who}: {' of '.join(filter(None, (place, what))) or 'it'} must be {expected}", GUIDE)


def check_call(who: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise `UserError` if a factory does not accept its arguments."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        given = ", ".join([*(type(each).__name__ for each in arguments), *(f"{name}=…" for name in named)])
        raise UserError(f"{who}: its factory must take ({given}), and takes {signature}: {error}", GUIDE) from error


def _problem(value: Any, hint: Any) -> str:
    """The place in a value that does not fit a type hint, and the expected type; empty if there is none."""
    kind, parameters = get_origin(hint) or hint, get_args(hint)
    if kind is Any or isinstance(kind, TypeVar):
        return ""
    if kind is Literal:
        listed = ", ".join(map(repr, parameters))
        return "" if value in parameters else f" must be one of {listed}, and is {value!r}"
    if kind in (Union, UnionType):
        found = [_problem(value, each) for each in parameters if each is not NoneType or value is None]
        return found[0] if all(found) else ""
    if _is_protocol(kind):
        return _lacking(value, kind)
    if not isinstance(value, ALSO.get(kind, kind)) or (isinstance(value, bool) and kind in (int, float)):
        return f" must be {_article(kind)}, and is {_article(type(value))}"
    parts: Iterable[tuple[str, Any, Any]] = ()
    if kind in (list, tuple) and set(parameters[1:]) <= {..., parameters[0]}:
        parts = ((f"[{index}]", each, parameters[0]) for index, each in enumerate(value))
    elif hasattr(kind, "__dataclass_fields__") and not is_plugin(kind):
        parts = ((f".{each.name}", getattr(value, each.name), _hints(kind)[each.name]) for each in fields(kind))
    inside = ((place, _problem(each, inner)) for place, each, inner in parts)
    return next((place + wrong for place, wrong in inside if wrong), "")


def _lacking(component: Any, promise: Any) -> str:
    """As `_problem`, for the members of a protocol: methods, attributes, and properties with their types."""
    declared = dict.fromkeys(vars(promise).get("__annotations__", {})) | dict(vars(promise))
    members = {name: member for name, member in declared.items() if not name.startswith("_")}
    if missing := [name for name in members if not hasattr(component, name)]:
        listed = " and ".join(f"{name}()" if callable(members[name]) else name for name in missing)
        return f" must be {_article(promise)}, and {_article(type(component))} has no {listed}"
    for name, member in members.items():
        value = getattr(component, name)
        if callable(member) and not callable(value):
            return f".{name} must be a method"
        if isinstance(member, property) and (found := _problem(value, _hints(member.fget)["return"])):
            return f".{name}{found}"
    return ""


class _Checked:
    """A component whose results are checked."""

    def __init__(self, component: Any, promise: Any, who: str) -> None:
        self._component, self._promise, self._who = component, promise, who

    def __getattr__(self, name: str) -> Any:
        value, declared = getattr(self._component, name), vars(self._promise).get(name)
        if not inspect.isfunction(declared):
            return value
        hint = _hints(declared).get("return", Any)
        method = self._await if inspect.iscoroutinefunction(declared) else self._call
        return functools.partial(method, name, value, hint)

    def _call(self, name: str, method: Callable[..., Any], hint: Any, *arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        check_type(result, hint, self._who, f"the result of {name}()")
        return result

    async def _await(self, name: str, method: Callable[..., Any], hint: Any, *arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        if not inspect.isawaitable(result):
            raise UserError(f"{self._who}: {name}() is not async", f"write `async def {name}(…)`; {GUIDE}")
        result = await result
        if hint is not NoneType:
            check_type(result, hint, self._who, f"the result of {name}()")
        return result


def _is_protocol(hint: Any) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def _article(kind: Any) -> str:
    name: str = kind.__name__
    return "None" if kind is NoneType else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


__all__ = ["check_call", "check_type", "is_plugin", "kept_to_type"]
