"""Why the guarded rules change a published verdict: one line for each kind of reason, found by what both rules say.

The text that a pattern looks at is `type direction language value | what official says | what guarded says`; the first
pattern that fits names the reason.
"""

import re

Change = tuple[str, str, str]
"""The type, what guarded does (`stricter`, `milder` or `undecided`), and why."""

_PATTERNS = [
    (re.compile(pattern, re.DOTALL), reason)
    for pattern, reason in (
        (r"advanced_syntax milder", "the code has the construct, though it does not parse as a whole"),
        (r"advanced_syntax stricter", "a rest parameter is no spread"),
        (r"brace undecided", "Python has no braces"),
        (r"brace stricter", "the reply breaks off before any block"),
        (
            r"brace milder [^|]*\| [^|]*objects to (?:fn|[^|]*->|[^|]*=>|[^|]*all\()",
            "a return type, an arrow or a closure's bar precedes the brace",
        ),
        (r"brace milder", "the brace is of a value, an import or a text"),
        (r"comment milder go", "a comment of several lines; local variables and `main` need none"),
        (r"comment milder (?:java|kotlin)", "`@return` without `@param`, where nothing is taken"),
        (r"comment milder python multi", "a docstring is a comment of several lines"),
        (r"comment milder python", "documented, though it does not parse as a whole"),
        (r"comment milder rust", "other comments, or a comment after a brace, are no fault"),
        (r"comment stricter .*no function or type", "the reply breaks off before any function"),
        (r"comment stricter", "a function or type has no documentation"),
        (
            r"data_structure_\w+ milder python (?:list|dict|set|tuple|heapq)",
            "Python: literals, comprehensions and annotations are uses; so is `heapq`",
        ),
        (
            r"data_structure_\w+ milder python",
            "Python: a class that is imported by its name (`deque`) is one with its package",
        ),
        (
            r"data_structure_\w+ milder go (?:map|slice|array|chan|struct)",
            "Go: `map`, slices, arrays, channels and structs are types too",
        ),
        (r"data_structure_\w+ milder go", "Go: types with a package (`sync.Map`, `list.List`)"),
        (r"data_structure_size milder rust", "Rust: names are compared in their own case"),
        (r"data_structure_size milder .*digits \d+: False", "a number with separators (`10_000`)"),
        (
            r"data_structure_\w+ milder cpp array|data_structure_size milder cpp",
            "C++: an array without a class is an array",
        ),
        (
            r"data_structure_\w+ milder rust .*sees \w+: False|data_structure_type milder rust",
            "Rust: a constructor's path (`HashSet::new()`) is a use",
        ),
        (r"data_structure_operation milder java tree_map", "`tree_map` is Java's `TreeMap`"),
        (r"data_structure_operation milder java", "`addfirst` is Java's `addFirst`"),
        (
            r"data_structure_operation milder rust",
            "Rust: an operation that the structure does not have is a function of the program, or stands in a macro",
        ),
        (r"data_structure_operation stricter", "the operation is called on another structure"),
        (r"data_structure_size undecided", "nothing tells whether the number bounds it, as a loop's"),
        (r"data_structure_size stricter", "the digits are of another number, of a text or of a value"),
        (r"indentation milder .*indentation of", "a line that goes on with an expression is aligned to it"),
        (r"indentation milder", "brackets of generic types are no operators; signs and strings neither"),
        (r"indentation stricter .*one level", "a level has twice the spaces"),
        (r"indentation stricter", "operators that were not looked at (`|`, `:=`)"),
        (r"invocation milder (?:csharp await|go go)", "`await` and `go` are keywords"),
        (r"invocation milder csharp", "C#: `List.Count` is a property"),
        (r"invocation milder", "a reference to the method"),
        (r"library milder javascript", "a page loads it by its address"),
        (r"library milder", "part of a path, a name in another case, or `-` written `_`"),
        (r"naming stricter .*none of the names", "the code defines nothing"),
        (r"naming stricter .*\| \D*line \d+: the variable", "parameters and fields are looked at"),
        (r"naming milder .*sees the function _", "a private name may begin with `_`"),
        (r"naming milder .*sees the function", "a constructor, a receiver's or another type's name is no function's"),
        (r"naming milder kotlin [^|]*kebab", "a name in backquotes may have hyphens"),
        (r"naming milder", "names of types, members and libraries are no variables"),
        (r"parameter_signature undecided|parameter_type undecided", "Python: the types are not written"),
        (r"parameter_\w+ milder .*graph", "a map of neighbours is a graph"),
        (r"parameter_signature milder .*linkedlist", "a list is given by its first node"),
        (r"parameter_\w+ milder .*struct:", "`Struct: Name` with a space"),
        (r"parameter_\w+ milder", "a slice is a list, `[][]` a matrix, `str` a String"),
        (r"parameter_\w+ stricter", "the type is a part of another one's text (`Vec<i32>` is no Integer)"),
        (r"return_\w+ undecided", "Python: the types are not written, and the statements do not tell them"),
        (
            r"return_cardinality milder python .*nothing returned|return_type milder python",
            "Python: the statements tell what is returned",
        ),
        (r"return_cardinality milder", "commas within a type divide nothing"),
        (r"return_type milder", "a pointer to it, or a map of neighbours"),
        (r"return_\w+ stricter", "a list or tuple of it is not it"),
    )
]


def why(kind: str, direction: str, place: str, official: str, guarded: str) -> Change:
    """The change's reason; `place` is the language and the constraint's values, the others what both rules say."""
    text = f"{kind} {direction} {place.lower()} | {official} | {guarded}"
    return kind, direction, next((reason for pattern, reason in _PATTERNS if pattern.search(text)), "another")
