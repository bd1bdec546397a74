"""A snapshot of the modules that assertions use, restored after whatever the candidate's code changed in them.

Program and assertions share an interpreter here. The checkers and the standard library are loaded beforehand and their
bindings remembered; before every snippet, all changes are undone. Ways around that (the collector's view of all
objects, raw memory, tracing, replaced code of known functions) are refused by an audit hook, which cannot be removed.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, without the wrapping
import _thread
import ctypes
import gc
import re
import signal
import sys
import unittest
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from operator import is_
from types import FunctionType, ModuleType
from typing import Any

from codechat.sandbox.inside import isolate

CHECKERS = ("radon.complexity", "radon.metrics", "radon.raw", "mccabe", "pycodestyle")
RELIED_ON = (*CHECKERS, "ast", "dis", "inspect", "io", "linecache", "tokenize", "traceback", "typing", "unittest")

HEAP_TYPE = 1 << 9  # type.__flags__: a class whose attributes can be set
CODE = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
REFUSED = frozenset(
    (
        *("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames", "sys._current_exceptions"),
        *("sys.settrace", "sys.setprofile", "sys.addaudithook", "sys.monitoring.register_callback", "code.__new__"),
        *("ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function", "ctypes.addressof"),
        *("ctypes.cdata", "ctypes.cdata/buffer", "ctypes.string_at", "ctypes.wstring_at"),
    )
)
NEEDED = {"native": "ctypes.", "code": "code."}  # what tests may need, and the events that it lets pass
RAW_MEMORY = (("ctypes", ("memmove", "memset")), ("_ctypes", ("_memmove_addr", "_memset_addr")))

KINDS: dict[type, Callable[[Any, Any], None]] = {dict: dict.update, list: list.extend, set: set.update}
Names = tuple[Any, tuple[str, ...], tuple[Any, ...]]  # a live view, its names, what they were bound to


class Refused(RuntimeError):
    """An action that is forbidden to a program tested by assertions."""


@dataclass(frozen=True)
class Snapshot:
    """Modules, the bindings of their names and of their classes' attributes, the contents of some containers, and the
    functions whose code must not change. `packages` are further snapshots by package, for assertions that import it."""

    modules: dict[str, ModuleType]
    spaces: list[Names]
    classes: list[tuple[type, Names]]
    contents: list[tuple[Any, Any]]
    functions: frozenset[FunctionType]
    packages: dict[str, "Snapshot"] = field(default_factory=dict)

    def __or__(self, other: "Snapshot") -> "Snapshot":
        return Snapshot(
            self.modules | other.modules,
            self.spaces + other.spaces,
            self.classes + other.classes,
            self.contents + other.contents,
            self.functions | other.functions,
            self.packages | other.packages,
        )


def warm() -> Snapshot:
    """Load and remember the modules that assertions use, as far as they are installed."""
    for name in RELIED_ON:
        try_import(name)
    if "pycodestyle" in sys.modules:  # the program could write its settings file
        sys.modules["pycodestyle"].USER_CONFIG = None  # type: ignore[attr-defined]
    containers: list[Any] = [sys.path, sys.meta_path, sys.path_hooks, sys.path_importer_cache, gc.callbacks]
    containers += [getattr(re, name) for name in ("_cache", "_cache2") if hasattr(re, name)]
    for name in CHECKERS:
        if name in sys.modules:
            containers += [value for value in vars(sys.modules[name]).values() if type(value) in KINDS]
    containers.append(vars(unittest.defaultTestLoader))
    remembered = remember(("builtins", "sys", *RELIED_ON), {})
    remembered.contents.extend(pair for one in containers for pair in _contents(one))
    return remembered


def try_import(name: str) -> None:
    """Import a module if possible: an error is raised again if it is needed."""
    try:
        __import__(name)
    except Exception:  # noqa: BLE001
        return


def remember(names: Iterable[str], known: Collection[str]) -> Snapshot:
    """The state of modules and of all modules they use, except the `known` ones."""
    modules: dict[str, ModuleType] = {}
    classes: dict[type, Names] = {}
    functions: set[FunctionType] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in modules or name in known or type(module) is not ModuleType:
            continue
        modules[name] = module
        for value in vars(module).values():
            if isinstance(value, type) and value.__flags__ & HEAP_TYPE:
                classes[value] = _names(vars(value))
                functions.update(one for one in vars(value).values() if type(one) is FunctionType)
            elif type(value) is FunctionType:
                functions.add(value)
            owner = value.__name__ if type(value) is ModuleType else getattr(value, "__module__", None)
            waiting += [owner] if type(owner) is str else []
    spaces = [_names(vars(module)) for module in modules.values()]
    return Snapshot(modules, spaces, list(classes.items()), [], frozenset(functions))


def preload(names: Iterable[str], remembered: Snapshot) -> Snapshot:
    """The snapshot, with packages that are loaded now. To look at all of them for changes would cost each run more
    than the rest of it, so each is a snapshot of its own."""
    for name in names:
        try_import(name)
    loaded = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names]
    found = remember(loaded, remembered.modules)
    packages: dict[str, Snapshot] = {}

    def of(name: Any) -> Snapshot:
        root = str(name).partition(".")[0]
        return packages.setdefault(root, Snapshot({}, [], [], [], frozenset()))

    for (name, module), space in zip(found.modules.items(), found.spaces, strict=True):
        of(name).modules[name] = module
        of(name).spaces.append(space)
    for kind, attributes in found.classes:
        of(kind.__module__).classes.append((kind, attributes))
    functions: dict[Any, set[FunctionType]] = {}
    for function in found.functions:
        functions.setdefault(str(function.__module__).partition(".")[0], set()).add(function)
    packages = {root: replace(one, functions=frozenset(functions.get(root, ()))) for root, one in packages.items()}
    return replace(remembered, packages=packages)


def _names(view: Any) -> Names:
    return view, tuple(view), tuple(view.values())


def _contents(container: Any) -> list[tuple[Any, Any]]:
    """A container and the containers in it, each with a copy."""
    inner = container.values() if type(container) is dict else container
    found = [(container, container.copy())]
    for one in inner:
        if type(one) in KINDS:
            found += _contents(one)
    return found


def restorer(remembered: Snapshot, limit: float, threads: bool = False) -> Callable[[], None]:
    """A function that restores everything and grants `limit` CPU seconds; make it before the candidate's code runs.

    `threads`: the program's threads may go on. All that the function uses is bound beforehand, because the program may
    have replaced what it would look up.
    """
    bindings, classes, process = _bindings(remembered), _classes(remembered), _process(limit, threads)

    def restore() -> None:
        bindings()
        classes()
        process()

    return restore


def _bindings(remembered: Snapshot) -> Callable[[], None]:
    """Restores the names of modules, the loaded modules, and the contents of containers."""
    spaces = (*(names for names in remembered.spaces if names[0] is not vars(sys)), _names(vars(sys)))
    contents = tuple((KINDS[type(one)], one.clear, one, copy.copy()) for one, copy in remembered.contents)
    loaded, modules, update, pairs, changed = (
        sys.modules,
        tuple(remembered.modules.items()),
        dict.update,
        zip,
        _comparison(),
    )

    def restore() -> None:
        for view, names, values in spaces:
            if changed(view, names, values):
                update(view, pairs(names, values))
        for name, module in modules:
            if loaded.get(name) is not module:
                loaded[name] = module
        for fill, clear, container, copy in contents:
            clear()
            fill(container, copy)

    return restore


def _classes(remembered: Snapshot) -> Callable[[], None]:
    """Restores the attributes of classes, and drops added ones."""
    classes, changed = tuple(remembered.classes), _comparison()
    assign, drop, pairs = type.__setattr__, type.__delattr__, zip

    def restore() -> None:
        for kind, (view, names, values) in classes:
            if changed(view, names, values):
                for name in [name for name in view if name not in names]:
                    drop(kind, name)
                for name, value in pairs(names, values):
                    if view.get(name) is not value:
                        assign(kind, name, value)

    return restore


def _comparison() -> Callable[[Any, tuple[str, ...], tuple[Any, ...]], bool]:
    size, every, each, same = len, all, map, is_

    def changed(view: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
        return size(view) != size(names) or not every(each(same, view.values(), values))

    return changed


def _process(limit: float, allowed: bool) -> Callable[[], None]:
    """Takes away the program's signal handlers and timers, and sets the timer of the limit.

    Raises `Refused` if the program has a thread, which could interfere at any time, unless threads are `allowed`.
    """
    handler, handle, timer, threads, refused = (
        _signal.getsignal,
        _signal.signal,
        _signal.setitimer,
        _thread._count,
        Refused,
    )
    signals = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
    untouched, default = (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler, None), signal.SIG_DFL
    ring, end = isolate.libc.signal, ctypes.cast(isolate.libc._exit, ctypes.c_void_p)
    number, real, virtual, profile = int(signal.SIGPROF), signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF

    def restore() -> None:
        for one in signals:
            if handler(one) not in untouched:
                handle(one, default)
        if not allowed and threads():
            raise refused("a thread of the program still runs")
        ring(number, end)
        timer(real, 0)
        timer(virtual, 0)
        timer(profile, limit)

    return restore


def forbid(remembered: Snapshot, needs: Collection[str] = ()) -> None:
    """Refuse from now on, in this process, all ways around `restorer`, but those that the tests need."""
    known, code = remembered.functions, CODE
    allowed = tuple(event for need, event in NEEDED.items() if need in needs)
    refused_events = frozenset(event for event in REFUSED if not event.startswith(allowed))
    function, refused, kind_of = FunctionType, Refused, type
    for name, attributes in RAW_MEMORY:
        for attribute in attributes:
            vars(sys.modules[name]).pop(attribute, None)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in refused_events:
            raise refused(f"{event} is refused to a program that assertions test")
        of_function = event == "object.__setattr__" and arguments[1] in code and kind_of(arguments[0]) is function
        if of_function and arguments[0] in known:
            raise refused("the code of a library's function stays as it is")

    sys.addaudithook(hook)
