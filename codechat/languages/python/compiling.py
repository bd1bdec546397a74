"""The compiler of Python: an interpreter of the very version, which runs nothing of what it compiles."""

import re
from dataclasses import dataclass

from codechat.languages.compiling import Attempt, Version, at_line

_LINE = re.compile(r'(?m)^ *File "[^"\n]*", line (\d+)')
_SAID = re.compile(r"(?m)^(?:(SyntaxError|IndentationError|TabError)|Sorry: (?:ValueError|UnicodeDecodeError)): (.*)")


@dataclass(frozen=True)
class Interpreter:
    """CPython's `py_compile`. It imports nothing that a program imports: libraries need not be there."""

    program = "python{version}"
    suffix = ".py"
    asks_version = ("-V",)
    asks_home = ("-c", "import sys; print(sys.base_prefix)")
    exact = True
    sample = "x = 1\n"
    bounds: Attempt = ("-I", "-m", "py_compile")
    checks: Attempt = ()

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """None: the interpreter is of the version."""
        return ((),)

    def file_name(self, code: str) -> str:
        return "program.py"

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        found = list(_SAID.finditer(output))
        if not found:
            return [], []
        lines = _LINE.findall(output)
        return [at_line(lines[-1] if lines else "?", found[-1][2])], []
