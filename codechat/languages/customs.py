"""What constraints ask of a language besides its tree: how it documents, names libraries, and writes operations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


def is_dotted_part(library: str, path: str) -> bool:
    """Whether an imported path is the library or lies in it, parted by dots or slashes, in any case."""
    path, library = path.lower(), library.lower()
    return path == library or path.startswith((f"{library}.", f"{library}/"))


@dataclass(frozen=True)
class Customs:
    """The customs of one language; the defaults are those of most.

    `documentation` is the name of its documentation comments (`godoc`), and `documents` a regular expression of how one
    begins; if `named`, the name that it documents comes next. With `docstrings` a text within documents instead, and
    comments of several lines are lines of comments.
    `braces`: blocks stand in braces. `typed`: results have written types.
    `results_named`: results in round brackets may have names. `results_listed`: several may stand in square brackets.
    `constructs` are its own constructs, each with the features of the grammar that make it up.
    `structures_qualified`: data structures are told apart by what precedes a name; those of `packages` by that alone.
    `modules` are structures that functions of a module stand for, with a regular expression of these functions.
    `written` are operations without a call, each with a query whose capture `set` is the operation. `methods` are those
    that structures have, in lower case: by structure, under `""` of all.
    `imports` says whether a path that code imports is of a library; `sources` are what a page of it loads, with lines.
    """

    documentation: str = ""
    documents: str = ""
    named: bool = False
    docstrings: bool = False
    braces: bool = True
    typed: bool = True
    results_named: bool = False
    results_listed: bool = False
    structures_qualified: bool = False
    packages: Sequence[str] = ()
    constructs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    imports: Callable[[str, str], bool] = is_dotted_part
    sources: Callable[[str], list[tuple[str, int]]] = lambda _: []

    def has_method(self, structure: str, operation: str) -> bool:
        """Whether a structure has a method of that name, both in lower case."""
        return operation in f"{self.methods.get('', '')} {self.methods.get(structure, '')}".split()
