"""How much code one trivial cell walks through, and how often its configuration is handed on between functions.

    python benchmarks/walk.py [KEY=VALUE …]      # model=echo dataset.limit=1 tracking=none unless words are given

Counted from `cli/run.py:run_cell` on, in the thread that runs the cell: the files of codechat of which a function ran,
by room; and the calls that got the composed configuration (`CellConfig`, or `Composed` around it) as an argument. "All
that carry it" counts a `Cell` too, and methods, which get it as `self`. An arrow is a pair of caller and called
function, however often it calls. To compare trees: PYTHONPATH=TREE.
"""

import collections
import inspect
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import codechat
from codechat import compose
from codechat.cli.run import run_cell

PACKAGE = f"{Path(codechat.__file__).parent}/"
CONFIG = {"CellConfig", "Composed"}
CARRIERS = CONFIG | {"Cell"}

files: set[str] = set()
calls: dict[bool, collections.Counter[tuple[str, str]]] = {False: collections.Counter(), True: collections.Counter()}
waiting: dict[int, FrameType] = {}  # of coroutines and generators, which are entered again when they go on


def name_of(frame: FrameType | None) -> str:
    """A function as FILE:NAME, the file within the package if it is one of codechat's."""
    return f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_code.co_qualname}" if frame else ""


def watch(frame: FrameType, event: str, _: Any) -> None:
    """Note a call of one of codechat's functions."""
    code = frame.f_code
    runs = event == "call" and code.co_flags & inspect.CO_OPTIMIZED and waiting.get(id(frame)) is not frame
    if not runs or not code.co_filename.startswith(PACKAGE):  # CO_OPTIMIZED: a function's code, no module's or class's
        return
    files.add(code.co_filename.removeprefix(PACKAGE))
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = {name: type(frame.f_locals.get(name)).__name__ for name in names}
    for whole, kinds in ((False, CONFIG), (True, CARRIERS)):
        if any(kind in kinds and (whole or name != "self") for name, kind in given.items()):
            calls[whole][name_of(frame.f_back), name_of(frame)] += 1
            waiting[id(frame)] = frame


if __name__ == "__main__":
    composed = compose(sys.argv[1:] or ["model=echo", "dataset.limit=1", "tracking=none"])
    os.chdir(tempfile.mkdtemp())
    sys.setprofile(watch)
    run_cell(composed, ["codechat"], None)
    sys.setprofile(None)
    rooms = collections.Counter(path.split("/")[0].removesuffix(".py") for path in files)
    print(f"\n{len(files)} files in {len(rooms)} rooms: {', '.join(f'{n} {room}' for room, n in rooms.most_common())}")
    for whole, found in calls.items():
        into = collections.Counter(called.split(":")[0] for _, called in found)
        print(f"{'all that carry it' if whole else 'the configuration'}: {found.total()} calls, {len(found)} arrows")
        print("   arrows into", ", ".join(f"{path} {count}" for path, count in into.most_common()))
