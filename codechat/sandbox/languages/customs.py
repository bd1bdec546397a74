"""What constraints ask of a language besides its tree: how it documents, names libraries, and writes operations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


def is_dotted_part(library: str, path: str) -> bool:
    """Whether an imported path is the library or lies in it, parted by dots or slashes, in any case."""
    path, library = path.lower(), library.lower()
    return path == library or path.startswith((f"{library}.", f"{library}/"))


def parts(text: str, marks: str) -> list[str]:
    """The parts of a text between the marks, without blanks around them; marks within brackets divide nothing."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "[(<{") - (character in "])>}")
        if character in marks and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found if part.strip()]


def brackets_end(text: str) -> int:
    """The place behind the bracket that closes the one which the text begins with; 0 if it begins with none."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "[(<{") - (character in "])>}")
        if depth == 0:
            return place + 1 if place else 0
    return len(text)


@dataclass(frozen=True, eq=False)
class Written:
    """How a language writes types.

    `kinds` has its own names, in lower case, of each kind of data (`integer`, `list`, …), and of what may surround a
    type without changing what it is of (`wrapper`) or may be any (`inferred`). `form` gives a type in the common form:
    members of a union are parted by `|`, a tuple stands in round brackets, and arguments in pointed ones. `untold` are
    kinds that no text of a type tells: whether a pointer is of a list. `inferred` is a regular expression that begins a
    function whose result may be of any type though none is written; without it such a function returns nothing.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    form: Callable[[str], str] = str
    untold: str = ""
    inferred: str = ""


@dataclass(frozen=True)
class Customs:
    """The customs of one language; the defaults are those of most.

    `documentation` is the name of its documentation comments (`godoc`), and `documents` a regular expression of how one
    begins; if `named`, the name that it documents comes next. With `docstrings` a text within documents instead, and
    comments of several lines are lines of comments.
    `braces`: blocks stand in braces. `types` is how types are written, None if no rule knows. `typed`: results have
    written types.
    `results_named`: results in round brackets may have names. `results_listed`: several may stand in square brackets.
    `built_in` are structures without methods: by structure, the packages whose functions work on it.
    `constructs` are its own constructs, each with the features of the grammar that make it up.
    `structures_qualified`: data structures are told apart by what precedes a name; those of `packages` by that alone.
    `modules` are structures that functions of a module stand for, with a regular expression of these functions.
    `written` are operations without a call, each with a query whose capture `set` is the operation; what it walks
    through (`over`) must be declared as the structure. `methods` are those that structures have, in lower case: by
    structure, under `""` of all.
    `builders` are functions that make structures: by structure, in lower case, their names.
    `imports` says whether a path that code imports is of a library; `sources` are what a page of it loads, with lines.
    """

    documentation: str = ""
    documents: str = ""
    named: bool = False
    docstrings: bool = False
    braces: bool = True
    types: Written | None = None
    typed: bool = True
    results_named: bool = False
    results_listed: bool = False
    structures_qualified: bool = False
    packages: Sequence[str] = ()
    built_in: Mapping[str, str] = field(default_factory=dict)
    constructs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    builders: Mapping[str, str] = field(default_factory=dict)
    imports: Callable[[str, str], bool] = is_dotted_part
    sources: Callable[[str], list[tuple[str, int]]] = lambda _: []

    def has_method(self, structure: str, operation: str) -> bool:
        """Whether a structure has a method of that name, both in lower case."""
        return operation in f"{self.methods.get('', '')} {self.methods.get(structure, '')}".split()
