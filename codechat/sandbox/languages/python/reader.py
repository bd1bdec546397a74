"""Reads replies by the interpreter that runs this file, whose grammar decides; `target` starts it.

A line of JSON asks, [words of a reply, an entry point] or [a program], and a line answers: the parts of an
`Extraction`, or the error of the program, which is empty if it parses. No line of the texts is run.
"""

import json
import resource
import sys
from types import ModuleType
from typing import Any

MEMORY = 2 << 30  # bytes of address space


def main(folder: str) -> None:
    """Answer until the input ends. `folder` is codechat's: of it only what reads text is loaded, which needs no other
    package, except for a mark of pydantic's in a type of records."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, place in (("codechat", folder), ("codechat.sandbox", f"{folder}/sandbox")):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [place]
    pydantic: Any = ModuleType("pydantic")
    pydantic.Field = lambda **_: None
    sys.modules["pydantic"] = pydantic
    from codechat.sandbox.languages.python.extraction import extract
    from codechat.sandbox.languages.python.source import parse

    for line in sys.stdin:
        text, *more = json.loads(line)
        if more:
            found = extract(text, more[0])
            answer: Any = [found.code, found.program, found.problem, found.reason, found.lacks_name]
        else:
            answer = parse(text).error
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
