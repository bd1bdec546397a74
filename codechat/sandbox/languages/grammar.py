"""A language's grammar: its parser, loaded on first use, and the questions that a program's tree answers.

`QUESTIONS` of a language is a tree-sitter query. A pattern's outer capture names a part of the program, inner captures
the parts of it:

- `class`, `variable`, `type`: a name; `class` is any declared type, `type` a type that is used;
- `function` with `.name`, and if the language has them `.parameters` and `.returns`;
- `parameter` with `.name` and, unless it is the rest of the parameter, `.type`; or, of many, `.many`;
- `call` with `.name`; keywords that work like calls (`await`) may be captured too;
- `import` with `.path`; `alias`, a name given to an import, with `.of`, the imported name; `comment`; `string`;
- `feature.NAME`: a use of the syntax NAME; `makes.NAME`: a literal or type expression of the data structure NAME;
- `qualified.NAME`: a name with its qualifiers; `operator`: a binary operator, and `bracket`: a part of a generic type
  that the grammar reads as an operator; `block`: the code within braces, with `.open` for a first brace further on;
- `doc`: a string that documents the function, class or module around it.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import count
from typing import Any, Protocol, runtime_checkable

from codechat.base.errors import UserError


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

    `kinds` has the language's names, in lower case, of each kind of data (`integer`, `list`, …), of wrappers that do
    not change the kind of a type (`wrapper`), and of types that may be any (`inferred`). `form` returns a type in the
    common form: `|` between members of a union, a tuple in round brackets, arguments in pointed ones. `untold` are
    kinds that no type text shows: a pointer may be a list. `inferred` is a regular expression at the beginning of
    functions that may return any type although none is written; other such functions return nothing.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    form: Callable[[str], str] = str
    untold: str = ""
    inferred: str = ""


@dataclass(frozen=True)
class Customs:
    """The conventions of one language; the defaults fit most languages.

    `documentation` is the name of its documentation comments (`godoc`), and `documents` a regular expression of how one
    begins; if `named`, the documented name comes next. With `docstrings` a text within documents instead, and comments
    of several lines are lines of comments. `braces`: blocks have braces. `types`: how types are written, None if no
    rule reads them. `hyphened`: how a name with a hyphen is written, empty if none may have one. `capitalised`: names
    of types begin with a capital letter, and no others. `lone_braces`: a function's brace may stand alone in a line.
    `typed`: results have written types. `results_named`: results in round brackets may have names.
    `results_listed`: several may be in square brackets. `built_in`: by structure without methods, the packages whose
    functions work on it. `constructs`: by construct of the language, its features in the grammar.
    `structures_qualified`: a qualifier separates data structures; in `packages` it is enough. `modules`: by module with
    functions for a structure, a regular expression of these. `written`: by operation without a call, a query with the
    operation as capture `set`; the sequence of a loop (`over`) must be declared as the structure. `methods` of
    structures, in lower case: by structure, or under `""` of all. `builders`: by structure, in lower case, the
    functions that make it. `imports(library, path)`: whether an imported path is of a library; `sources`: what a page
    of code loads, with lines.
    """

    documentation: str = ""
    documents: str = ""
    named: bool = False
    docstrings: bool = False
    braces: bool = True
    lone_braces: bool = True
    hyphened: str = ""
    capitalised: bool = False
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


REMEDY = "pip install 'codechat[constraints]'"
# `Grammar.kinds` of languages like Java.
KINDS_OF_BRACES = {
    **{kind: f"{kind}_statement" for kind in ("if", "return", "throw", "break", "continue", "expression")},
    **{kind: f"{kind}_expression" for kind in ("ternary", "assignment", "update", "binary", "unary")},
    **{"parameters": "formal_parameters", "while": "while_statement do_statement", "finally": "finally_clause"},
    **{"declarator": "variable_declarator", "parentheses": "parenthesized_expression"},
}


@dataclass(frozen=True)
class Grammar:
    """A grammar: the module of its wheel, the function in it that returns the grammar, and the query.

    `lexer` is the language's name in Pygments. `within` is for a language within another, such as scripts in a page: it
    replaces all other text by blanks, so that the length stays. `customs` answer further questions of constraints.
    `kinds` are names of nodes by a kind common to all languages, such as `loop`, for readers of the tree; may be empty.
    """

    module: str
    questions: str
    lexer: str
    function: str = "language"
    within: Callable[[str], str] = str
    customs: Customs = field(default=Customs(), compare=False)
    kinds: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def release(self) -> str:
        """The package of the grammar with its version, such as `tree-sitter-go 0.25.0`; empty if it is not installed.
        Two versions may read one code differently."""
        package = self.module.replace("_", "-")
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
        return ""

    def answers(self, question: str) -> bool:
        """Whether the query asks a question, such as `call`."""
        return re.search(rf"@{question}\b", self.questions) is not None

    def require(self, part: str = "") -> None:
        """Raises `UserError` if something is not installed that checks need, or that `part` needs; loads nothing."""
        _require(self.module, f"{part} needs" if part else "constraints need")

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        try:
            import tree_sitter

            language = tree_sitter.Language(getattr(importlib.import_module(self.module), self.function)())
        except ModuleNotFoundError as error:
            raise UserError(f"constraints need the package {error.name}, which is not installed", REMEDY) from error
        return tree_sitter.Parser(language), tree_sitter.Query(language, self.questions)

    def parse(self, code: str) -> "Tree":
        """The tree of a code, also of a broken one; equal codes share it. Broken code may take half a minute. Raises
        `UserError` without the wheel."""
        tree = _parse(self, code, None)
        assert tree is not None
        return tree

    def parse_within(self, code: str, steps: int) -> "Tree | None":
        """The tree as `parse` returns it; None if that takes more steps, of which every machine counts the same."""
        return _parse(self, code, steps)

    def matches(self, query: str, tree: "Tree") -> list[dict[str, list[Any]]]:
        """The captures of each match of a further query on a tree, by name."""
        import tree_sitter

        compiled = _compiled(self, query)
        return [captures for _, captures in tree_sitter.QueryCursor(compiled).matches(tree.root)]


@cache
def _require(module: str, who: str) -> None:
    for name in ("tree_sitter", "pygments", module):
        if importlib.util.find_spec(name) is None:
            raise UserError(f"{who} the package {name}, which is not installed", REMEDY)


@lru_cache(maxsize=256)
def _compiled(grammar: Grammar, query: str) -> Any:
    import tree_sitter

    return tree_sitter.Query(grammar._loaded[0].language, query)


@lru_cache(maxsize=32)
def _parse(grammar: Grammar, code: str, steps: int | None) -> "Tree | None":
    parser, query = grammar._loaded
    data = code.encode("utf-8", "surrogatepass")
    if steps is None:
        return Tree(grammar, parser.parse(data).root_node, data, query)
    taken = count(1)
    try:  # a parser reports every 100 operations, and only of a text that it reads by a function
        parsed = parser.parse(lambda place, _: data[place:], progress_callback=lambda *_: next(taken) > steps)
    except ValueError:
        parser.reset()  # or the next text would be read as the rest of this one
        return None
    return Tree(grammar, parsed.root_node, data, query)


@runtime_checkable
class Parsed(Protocol):
    """A `Language` that also has a grammar."""

    @property
    def grammar(self) -> Grammar:
        """The grammar of the language."""


@dataclass(frozen=True, slots=True)
class Found:
    """A part of a program: its text, the line that it begins in, from 1, and its first and last byte."""

    text: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function; `type` is empty if none is written."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function: `parameters` in order, `returns` its return type as written, empty if none is."""

    name: Found
    parameters: tuple[Parameter, ...]
    returns: str
    whole: Found


class _Captured:
    """An attribute of `Tree`: what the query captures of one kind; `bare` names lose the backticks around them."""

    def __init__(self, kind: str, bare: bool = False) -> None:
        self._kind, self._bare = kind, bare

    def __get__(self, tree: "Tree | None", owner: "type[Tree]") -> tuple[Found, ...]:
        assert tree is not None
        matches = tree._matches.get(self._kind, ())
        found = (tree._found(nodes.get(f"{self._kind}.name", nodes[self._kind])) for nodes in matches)
        return tuple(replace(name, text=name.text.strip("`")) if self._bare else name for name in found)


@dataclass(frozen=True, eq=False)
class Tree:
    """A parsed program. `root` is its tree-sitter node."""

    grammar: Grammar
    root: Any
    data: bytes
    _query: Any

    classes = _Captured("class", bare=True)  # names of declared types
    variables = _Captured("variable", bare=True)  # names of variables, parameters and fields at their declarations
    calls = _Captured("call", bare=True)  # called names, without qualifiers
    types = _Captured("type", bare=True)  # names of used types, each part by itself: `Map` and `List` of `Map<List>`
    comments = _Captured("comment")  # whole comments
    strings = _Captured("string")  # string and character literals, with quotes
    docs = _Captured("doc")  # strings that document the function, class or module around them
    _brackets, _operators = _Captured("bracket"), _Captured("operator")

    @property
    def broken(self) -> bool:
        """Whether the program does not parse as a whole."""
        return bool(self.root.has_error)

    @cached_property
    def _matches(self) -> dict[str, list[dict[str, Any]]]:
        """The matches of each kind in order, by their captures; of two for one thing, the one that says more."""
        import tree_sitter

        found: dict[tuple[str, int, int, int], dict[str, Any]] = {}
        for _, captures in tree_sitter.QueryCursor(self._query).matches(self.root):
            nodes = {name: each[0] for name, each in captures.items() if name[0] != "_"}
            kind = min(nodes, key=len)
            whole, name = nodes[kind], nodes.get(f"{kind}.name", nodes.get(f"{kind}.path", nodes[kind]))
            key = (kind, whole.start_byte, name.start_byte, whole.end_byte)
            if len(nodes) > len(found.get(key, ())):
                found[key] = nodes
        kinds: dict[str, list[dict[str, Any]]] = {}
        for key in sorted(found, key=lambda key: key[1:]):
            kinds.setdefault(key[0], []).append(found[key])
        return kinds

    def text(self, node: Any) -> str:
        """The text of a node."""
        return self._between(node.start_byte, node.end_byte)

    def _between(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def _found(self, node: Any) -> Found:
        return Found(self.text(node), node.start_point[0] + 1, node.start_byte, node.end_byte)

    @property
    def imports(self) -> tuple[Found, ...]:
        """The paths that are imported, with their quotes if they have any."""
        return tuple(
            self._found(nodes.get("import.path", nodes["import"])) for nodes in self._matches.get("import", [])
        )

    @property
    def aliases(self) -> dict[str, str]:
        """The own names of imported things, by the names that the program gives them."""
        return {self.text(nodes["alias"]): self.text(nodes["alias.of"]) for nodes in self._matches.get("alias", [])}

    @property
    def blocks(self) -> tuple[Found, ...]:
        """The blocks of code within braces, with them; none in a language that has no braces."""
        found = []
        for nodes in self._matches.get("block", []):
            whole, first = nodes["block"], nodes.get("block.open", nodes["block"])
            text = self._between(first.start_byte, whole.end_byte)
            found.append(Found(text, first.start_point[0] + 1, first.start_byte, whole.end_byte))
        return tuple(found)

    @property
    def operators(self) -> tuple[Found, ...]:
        """Binary operators, assignments and commas; no words such as `and`."""
        brackets = {found.start for found in self._brackets}
        found = (each for each in self._operators if not each.text[:1].isalpha())
        return tuple(each for each in found if each.start not in brackets)

    def marked(self, kind: str) -> Iterator[tuple[str, Found]]:
        """The NAME and the place of every `makes.NAME`, `qualified.NAME` or `feature.NAME`."""
        for name, matches in self._matches.items():
            if name.startswith(f"{kind}."):
                yield from ((name.removeprefix(f"{kind}."), self._found(nodes[name])) for nodes in matches)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions and methods that are defined, with a body or without."""
        return tuple(self._function(nodes) for nodes in self._matches.get("function", []))

    def _function(self, nodes: dict[str, Any]) -> Function:
        given, listed = nodes.get("function.returns"), nodes.get("function.parameters")
        head = nodes.get("function.head")
        whole = nodes["function"]
        before = self._between(whole.start_byte, head.start_byte) if head is not None else ""
        inside = [] if listed is None else self._parameters.get((listed.start_byte, listed.end_byte), [])
        name = self._found(nodes["function.name"])
        name = replace(name, text=name.text.strip("`"))
        returns = self.text(given) if given is not None else before
        return Function(name, tuple(inside), returns.strip(" \t\n:"), self._found(whole))

    @cached_property
    def _parameters(self) -> dict[tuple[int, int], list[Parameter]]:
        lists: dict[tuple[int, int], list[Parameter]] = {}
        for nodes in self._matches.get("parameter", []):
            whole, kind, name = nodes["parameter"], nodes.get("parameter.type"), nodes.get("parameter.name")
            above, each = whole.parent, nodes.get("parameter.many")
            if each is not None:
                written = f"Array<{self.text(each)}>"
            elif kind is not None:
                written = self.text(kind)
            elif name is not None:
                behind = self._between(name.end_byte, whole.end_byte).partition("=")[0]  # the rest is its default
                written = self._between(whole.start_byte, name.start_byte) + behind
            else:
                written = self.text(whole)
            called = "" if name is None else self.text(name)
            lists.setdefault((above.start_byte, above.end_byte), []).append(Parameter(called, written.strip(" \t\n:")))
        return lists


Version = tuple[int, ...]
Attempt = tuple[str, ...]

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_LONGEST = 200  # characters of a compiler's message


class Compiler:
    """The compiler of a language: its command, and how its output is read. The methods are pure."""

    program: str  # the name of its file; `{version}` stands for the first two numbers of the version
    suffix: str  # the end of its programs' file names
    sample: str  # a program that is valid in every version
    asks_version: Attempt  # arguments that print the compiler's own version
    asks_home: Attempt = ()  # arguments that print the folder of all its files; empty: the program is in `bin` of it
    exact = False  # whether only a compiler of the very version can check it; else any compiler that is not older
    bounds: Attempt  # arguments that run nothing of a program and limit the use of the machine
    checks: Attempt = ()  # further arguments for a check: go on if libraries are missing, write no files
    newest: Attempt | None = None
    """Arguments for the newest version that it knows, if an error that looks like a missing library may be an error of
    an older version: the newest version does not report it. None if the errors alone decide."""

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The arguments for a version: a program is valid if it is under any of them."""
        raise NotImplementedError

    def file_name(self, code: str) -> str:
        """The name of a code's file: at most 200 plain letters, digits and underscores, and the suffix."""
        return f"program{self.suffix}"

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        """The errors, each in one line: first errors of the language, then of missing libraries."""
        raise NotImplementedError


@runtime_checkable
class Compiled(Protocol):
    """A `Language` that also has a compiler."""

    @property
    def compiler(self) -> Compiler:
        """The compiler of the language."""


def version_of(text: str) -> Version:
    """The first version in a text, such as `jdk11` or `rustc 1.86.0`. Raises `ValueError` if there is none."""
    found = _NUMBERS.search(text)
    if found is None or len(found[0]) > 20:
        raise ValueError(f"'{text:.60}' names no version")
    return tuple(int(number) for number in found[0].split("."))


def shown(version: Version) -> str:
    """A version as text, such as `3.11`."""
    return ".".join(map(str, version))


def at_line(line: str | int, message: str) -> str:
    """An error in one line of bounded length."""
    return f"line {line}: {' '.join(message.split())}"[:_LONGEST]
