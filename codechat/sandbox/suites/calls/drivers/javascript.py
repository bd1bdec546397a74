"""JavaScript, by Node: a program is a CommonJS module, or one with import and export."""

import json
import marshal
import os
import shutil
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from codechat.base.config import place_option
from codechat.base.errors import UserError
from codechat.sandbox import AddedOptions, Box, Command, SandboxConfig
from codechat.sandbox.suites.calls.drivers import ARGUMENTS, Called, Ready, leaves, register

LARGEST = 2**53 - 1
RUNNER = Path(__file__).with_suffix(".js")
REMEDY = "install it (Debian: nodejs), or name it: sandbox.node=PATH"


class NodeOptions(AddedOptions):
    """Options for tests of programs in JavaScript."""

    node: str | None = place_option(None, "the program node, version 20 or later", min_length=1)


class JavaScript:
    """Numbers are doubles, so that integers are exact up to 53 bits; null is None, as is undefined within a value;
    arrays are lists, a Map or an object of no class a dictionary, a Set a set."""

    language, version = "javascript", 2

    def tools(self, config: SandboxConfig, note: Callable[[str], None]) -> Sequence[str]:
        named = NodeOptions.of(config).node
        found = shutil.which(named or "node")
        if found is None:
            raise UserError(f"tests in JavaScript need {named or 'Node'}, and there is none", REMEDY)
        return (os.path.abspath(found),)  # noqa: PTH100  a link stays one

    def inexpressible(self, arguments: Sequence[Any], signature: str) -> str:
        for leaf in leaves(arguments):
            if type(leaf) is int and abs(leaf) > LARGEST:
                return f"{leaf:.3e} exactly" if abs(leaf) < 1e300 else "an integer of so many digits"
            if not isinstance(leaf, (int, float, str, type(None))):
                return f"a value of the type {type(leaf).__name__}"
        return ""

    def ready(self, called: Called, box: Box, config: SandboxConfig) -> Ready:
        node, *_ = self.tools(config, lambda text: None)
        argv = (node, "runner.js", called.entry_point, *(["timed"] if called.timed else []))
        source = called.source.encode("utf-8", "replace")
        files = {"runner.js": RUNNER.read_bytes(), "program.js": source, ARGUMENTS: _as_json(called.arguments)}
        return Ready(Command(argv=argv, files=files, tools=(node,)))


@lru_cache(maxsize=64)
def _as_json(arguments: bytes) -> bytes:
    """The arguments as JSON after a blank, which Node reads ten times as fast, if JSON can say them; else as given."""
    calls = marshal.loads(arguments)
    try:
        return b" " + json.dumps(calls, allow_nan=False).encode() if _keys_are_texts(calls) else arguments
    except (TypeError, ValueError):
        return arguments


def _keys_are_texts(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _keys_are_texts(each) for key, each in value.items())
    return not isinstance(value, (list, tuple)) or all(map(_keys_are_texts, value))


register(JavaScript())
