"""Python: extracts its code from replies and analyses its text.

`extraction` has the rules, `source` and `prose` read text that may be Python, `definitions` finds the names that it
binds, and `program` leaves out tests of it. `grammar` tells what constraints ask of its tree, and `compiling` how an
interpreter checks a version. `code_key` finds programs that compile to the same code. `syntax` and `assembly` are for
other parts of codechat.
"""

from codechat.domain import Extraction, Target
from codechat.languages import register
from codechat.languages.python.code_key import code_key
from codechat.languages.python.compiling import Interpreter
from codechat.languages.python.definitions import module_names
from codechat.languages.python.extraction import extract
from codechat.languages.python.grammar import GRAMMAR
from codechat.languages.python.source import parse, tidy


class Python:
    """Python 3 in the version of the interpreter that runs codechat."""

    names = (
        *("python", "py", "python3", "py3", "python2", "py2"),
        *("ipython", "ipython3", "ipy", "pycon", "python-repl", "py-repl"),
    )

    grammar = GRAMMAR
    compiler = Interpreter()

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply by the rules of `extraction`."""
        return extract(reply, target.entry_point)

    def defines(self, code: str) -> frozenset[str] | None:
        """The names that the module binds in its own scope, imports included; None if it is not valid Python."""
        tree = parse(tidy(code)).tree
        return None if tree is None else frozenset(module_names(tree))

    def code_key(self, program: str) -> str | None:
        """See `ComparesCode`: None if the program might read its own text or line numbers."""
        return code_key(program)


register(Python())
