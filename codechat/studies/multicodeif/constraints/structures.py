"""The data structures that code must use: `language;name`, with `;['operation', …]` or `;size` behind it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from codechat.sandbox.languages.grammar import Found, Tree, Written
from codechat.studies.multicodeif import constraints
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, blanked, published, register
from codechat.studies.multicodeif.constraints.types import Types

# Concrete data structures; a variable declared as an interface, such as `List`, may hold any of several.
CONCRETE = constraints.words_of(
    "arraylist linkedlist hashmap linkedhashmap treemap concurrenthashmap hashset linkedhashset treeset arraydeque "
    "priorityqueue stack vector vec vecdeque btreemap btreeset binaryheap smallvec arrayvec deque list map "
    "unordered_map set unordered_set queue priority_queue multimap multiset dict tuple counter defaultdict ordereddict "
    "string"
)
_NAME = r"\b(?P<name>[^\W\d]\w{0,80})\b"
_PATH = r"(?:\w{1,80}(?:::|\.)){0,9}"
_WORD = r"(?P<word>[^\W\d]\w{0,80})\b"
_DECLARED = (
    # `ArrayList<A> name =`, `std::vector<int>& name)`
    re.compile(
        rf"(?<![<,\w.:])(?:std::)?{_WORD}\s?(?:<[^;(){{}}=]{{0,200}}?>)?[\s&*]{{1,9}}{_NAME}\s{{0,9}}(?=[=;,)\[{{])"
    ),
    # `name: &mut Vec<A>`, `name: dict[str, int]`
    re.compile(rf"{_NAME}\s?:\s{{0,9}}(?:&\s?(?:'\w{{1,80}}\s)?)?(?:mut\s)?{_PATH}{_WORD}"),
    # `name = new TreeMap<>()`, `name = collections.deque()`, `name = vec![`, `name = HashSet::new(`
    re.compile(rf"{_NAME}\s?(?::[^=\n;]{{0,200}})?:?=\s{{0,9}}(?:new\s)?(?P<path>{_PATH}){_WORD}\s?[!(<:\[{{]"),
)
_BEFORE = re.compile(
    r"(?<![\w.)\]>])(?:(?:self|this|cls)\s*(?:\.|->)\s*)?(?P<name>[^\W\d]\w*)\s*(?:\?|!!?)?(?:\.|->)\s*\Z"
)


def on_another(call: Found, wanted: str, tree: Tree) -> bool:
    """Whether a call is on a variable that surely holds another structure than the wanted one, given in lower case.

    Two interfaces differ if their kinds do, as of a list and a set.
    """
    before = constraints.code_of(tree)[max(0, call.start - 200) : call.start].decode("utf-8", "replace")
    receiver = _BEFORE.search(before)
    held = _held(tree).get(receiver["name"], set()) if receiver else set()
    if not held or wanted in held:
        return False
    if wanted in CONCRETE and not held.isdisjoint(CONCRETE):
        return True
    own, kinds = _kinds(tree, wanted), [_kinds(tree, name) for name in held]
    return bool(own) and all(kinds) and own.isdisjoint(set().union(*kinds))


def _is_bare(call: Found, tree: Tree, packages: Sequence[str]) -> bool:
    """Whether a function is called by its bare name, or in one of the packages."""
    text = constraints.code_of(tree)[max(0, call.start - 80) : call.start].decode("utf-8", "replace")
    before = re.search(r"(\w*)\s*\.\s*\Z", text)
    return before is None or before[1] in packages


def _kinds(tree: Tree, name: str) -> set[str]:
    """The kinds of collections of a structure, by its name in lower case; empty if none is known."""
    types = Types(tree.grammar.customs.types or Written())
    return {kind for kind in ("list", "set", "map", "tuple", "string") if name in types.names(kind)}


@lru_cache(maxsize=8)
def _held(tree: Tree) -> dict[str, set[str]]:
    """The concrete types that each variable is declared with or set to."""
    held: dict[str, set[str]] = {}
    own, builders = {found.text.lower() for found in tree.classes}, tree.grammar.customs.builders
    text = blanked(tree)
    for pattern in _DECLARED:
        for found in pattern.finditer(text):
            built = {made for made, names in builders.items() if found["word"] in names.split()}
            holder = re.search(r"(\w+)::\Z", found.groupdict().get("path") or "")
            named = [found["word"], *([holder[1]] if holder else [])]
            words = {word.lower() for word in named if word.lower() in CONCRETE or word[0].isupper()} | built
            if any(word not in own and (word in CONCRETE or _kinds(tree, word)) for word in words):
                within = re.split(r"[;={(\n]", text[found.start("word") : found.start("word") + 300], maxsplit=1)[0]
                words |= set(re.findall(r"\w+", within.lower()))
                words = {word for word in words if word in CONCRETE or _kinds(tree, word)}
                held.setdefault(found["name"], set()).update(words)
    for mark, made in tree.marked("makes"):
        variable = re.search(
            r"([^\W\d]\w*)\s*(?::[^=\n]*)?=\s*\Z", constraints.text_of(tree, made.start - 200, made.start)
        )
        if variable and mark in ("list", "dict", "set", "tuple"):
            held.setdefault(variable[1], set()).add(mark)
    return held


_SAME = {"tree_map": "treemap", "buffer.buffer": "bytes.buffer"}


def plain(name: str) -> str:
    """A structure's name without its package, in lower case: `deque` for `collections.deque`."""
    name = _SAME.get(name.lower(), name.lower())
    return re.split(r"\.|::|/", name)[-1]


def use_of(name: str, answer: Answer, code: str) -> Found | None:
    """The first use of a structure in a program: a type's name, a literal, or the program's own class of that name."""
    tree, customs = answer.tree(code), answer.grammar.customs
    if customs.structures_qualified:
        return _qualified_use(_SAME.get(name.lower(), name).rpartition("/")[2], tree, customs.packages)
    wanted = plain(name)
    if wanted in customs.modules:
        imported = any(found.text == wanted for found in tree.imports)
        return next((call for call in tree.calls if imported and re.match(customs.modules[wanted], call.text)), None)
    names = {
        wanted,
        *(called.lower() for called, own in tree.aliases.items() if constraints.last_part(own).lower() == wanted),
    }
    named = [found for found in (*tree.types, *tree.classes) if found.text.lower() in names]
    made = [found for mark, found in tree.marked("makes") if mark == wanted]
    made += [call for call in tree.calls if call.text in customs.builders.get(wanted, "").split()]
    return min((*named, *made), key=lambda found: found.start, default=None)


def _qualified_use(name: str, tree: Tree, packages: Sequence[str]) -> Found | None:
    """The first use in a language whose own `map` differs from `sync.Map` only by the package."""
    wanted, qualified = name.lower(), [found for _, found in tree.marked("qualified")]
    if "." in wanted:
        named = [found for found in qualified if found.text.lower() == wanted]
    elif wanted in packages:
        named = [found for found in qualified if found.text.lower().startswith(f"{wanted}.")]
    else:
        named = [found for found in (*tree.types, *tree.classes) if found.text == name]
        named += [found for mark, found in tree.marked("makes") if mark == wanted]
    return min(named, key=lambda found: found.start, default=None)


def operation_of(name: str, answer: Answer, code: str) -> int | None:
    """The line of an operation in a program: a call of that name, in any case, or the language's own form of it.

    Calls on variables that surely hold another structure do not count. A function of the program itself counts if the
    structure is a class of the program, or has no method of that name.
    """
    tree = answer.tree(code)
    wanted, structure = re.split(r"\.|::", name.lower())[-1], plain(answer.values[0])
    places = [found for found in tree.calls if found.text.lower() == wanted and not on_another(found, structure, tree)]
    own = any(found.text.lower() == structure for found in tree.classes)
    customs = answer.grammar.customs
    packages = customs.built_in.get(answer.values[0].lower())
    if packages is not None:
        places = [found for found in places if _is_bare(found, tree, packages.split())]
    elif customs.built_in:  # a bare call is of the language's own function, unless the program defines one
        defined = {function.name.text for function in tree.functions}
        places = [found for found in places if found.text in defined or not _is_bare(found, tree, ())]
    if own or not customs.has_method(structure, wanted):
        places += [function.name for function in tree.functions if function.name.text.lower() == wanted]
    query = customs.written.get(wanted)
    if not places and query:
        for match in answer.grammar.matches(query, tree):
            over = [tree.text(node) for node in match.get("over", ())]
            if all(_is_declared(tree, text, structure) for text in over):
                return int(match["set"][0].start_point[0]) + 1
    return min((found.line for found in places), default=None)


def _is_declared(tree: Tree, name: str, structure: str) -> bool:
    """Whether a variable or field is declared with a structure of the language, or made as one."""
    last = re.escape(re.split(r"\W+", name)[-1])
    made = rf"\b{last}\s*(?::?=\s*|:\s*|\s)(?:make\s*\(\s*)?(?:<-\s*)?{re.escape(structure)}\b"
    return re.search(made, blanked(tree)) is not None


def _spaced(answer: Answer) -> str:
    """Why no program can use a structure or call an operation: it is no name, as `exception handling` is none."""
    spaced = [value for value in answer.values if " " in value and value.lower() not in answer.grammar.customs.written]
    return f"'{spaced[0]:.40}' is no name that a program can use or call" if spaced else ""


def _official_type(answer: Answer, code: str) -> Finding:
    """A name with a package, such as `sync.Map`, equals no type's name: only four of Python's are seen with theirs."""
    found = published.structure_named(answer, code)
    return Finding(found, f"the published harness sees {'' if found else 'no '}{answer.values[0]}")


def _guarded_type(answer: Answer, code: str) -> Finding:
    name = answer.values[0]
    use = use_of(name, answer, code)
    return Finding(use is not None, f"line {use.line} uses {name}" if use else f"nothing in the code uses {name}")


register(ConstraintType(
    "data_structure_type", "data_structure", ("data_structure", "type"), "rule",
    partial(constraints.read_values, count=1, form="language;structure"),
    lambda answer: f"The code must use the data structure {answer.values[0]} of {answer.language}.",
    _official_type, _guarded_type, unknown=constraints.lacks("type"), impossible=_spaced,
    form="language;structure", examples=("typescript;Map",),
))  # fmt: skip


def _official_operation(answer: Answer, code: str) -> Finding:
    """A name without its package, such as `deque`, is never one of Python's, which are seen with theirs."""
    name, *operations = answer.values
    used = published.structure_named(answer, code)
    called = published.operations_seen(code, answer.language, operations)
    return Finding(used and called, f"the published harness sees {name}: {used}, all its operations: {called}")


def _guarded_operation(answer: Answer, code: str) -> Finding:
    name, *operations = answer.values
    use = use_of(name, answer, code)
    if use is None:
        return Finding(False, f"nothing in the code uses {name}")
    lines = {operation: operation_of(operation, answer, code) for operation in operations}
    missing = [operation for operation, line in lines.items() if line is None]
    if missing:
        return Finding(False, f"line {use.line} uses {name}, but nothing calls {' or '.join(missing)}")
    done = ", ".join(f"{operation} in line {line}" for operation, line in lines.items())
    return Finding(True, f"line {use.line} uses {name}: {done}")


register(ConstraintType(
    "data_structure_operation", "data_structure", ("data_structure", "operation"), "rule",
    partial(constraints.read_listed, form="language;structure;['operation', …]"),
    lambda answer: f"The code must use the data structure {answer.values[0]} of {answer.language} with its operations "
    f"{' and '.join(answer.values[1:])}.",
    _official_operation, _guarded_operation, unknown=constraints.lacks("type", "call"), impossible=_spaced,
    form="language;structure;['operation', …]", examples=("rust;Vec;['push', 'pop']",),
))  # fmt: skip


_NUMBER = re.compile(r"(?<![\w.])(\d[\d_']*)(?:[uUlL]{1,3}|[iu](?:8|16|32|64|128|size))?(?![\w.]|'\d)")

# Text before a number that bounds no size: a value to compare with, a time to wait, an element to insert.
_NO_SIZE = re.compile(
    r"\b(?:input|sum|score|grade|value|val|age|price|amount|year|percent\w*|temp\w*|\w*(?:Score|Price|Value|_score|_price"
    r"|_value))\s*(?:[<>]=?|[=!]=)\s*\Z"
    r"|\b(?:sleep\w*|setTimeout|delay|parse_?int|format_?int|from_str_radix|toString|toInt32|of(?:Seconds|Millis)|from_(?:secs|millis))\s*\((?:[^()]|\([^()]*\))*\Z"
    r"|\b(?:push|push_back|push_front|add|append|insert|put|offer|enqueue|addFirst|addLast)\s*\([^()]*\Z"
    r"|\d\s*[*/]\s*\Z",
    re.IGNORECASE,
)
_COMPUTED = re.compile(r"[\w)>]\s*(?:[-+*/%&^]|<<|>>)\s*\Z")
_MADE = re.compile(
    r"(\w+)\s*(?:<[^;(){}]*>)?(?:::(?:<[^;(){}]*>::)?(?:with_capacity|new))?\s*\((?:maxlen|maxsize)?\s*=?\s*\Z"
)
_SIZE = r"(?:max|limit|cap|size|bound|len|count|most|quota|threshold|full|num|width|depth)"
_SIZED = (
    r"(?:\b(?:len|cap|size|count)\s*\((?:[^()]|\([^()]{0,80}\)){0,80}\)|\b(?:total\w{1,40}|[nN])|"
    r"\b\w{0,40}(?:size|length|len|count|capacity)\w{0,9}(?:\.\w{1,20})?\s*(?:\(\s*\))?\)?)"
)
_COMPARISON = r"\s*(?:[<>]=?|[=!]==?)\s*"
# Text before a number that bounds a size: a size to compare with, or a name for a size.
_LIMITED = re.compile(
    rf"{_SIZED}{_COMPARISON}\Z"
    rf"|\b\w{{0,40}}{_SIZE}\w{{0,40}}\s*(?::[^=\n;{{}}]{{0,60}})?(?::?=|:|\(|\s)\s*\Z|\b[nN]\s*=\s*\Z"
    r"|\b(?:make|reserve|resize|truncate|take\w*|slice|splice|subList|islice|nlargest|nsmallest|first|last|drop\w*|min)"
    r"\s*(?:::<[^>]*>)?\s*\([^()]*(?:\([^()]*\)[^()]*)*\Z"
    r"|\[\s*-\Z|\[[^\[\]\n]*[:;]\s*-?\Z|\[[^\[\]\n]*\.\.=?\s*\Z|<[^<>=\n]*,\s*\Z|\]\s*\*\s*\Z|\btake\s+\Z"
    r"|\b(?!return\b)\w+[\s&*]+\w+(?:\[\w*\])*\s*\[\s*\Z|\bnew\s+[\w.]+\s*\[\s*\Z",
    re.IGNORECASE,
)
_LIMITS = re.compile(rf"{_COMPARISON}[\w.&>()-]{{0,60}}?{_SIZED}|\s*\]\s*[\w*\[]", re.IGNORECASE)
_DECLARES = re.compile(r"(\w+)\s*(?:<[^;(){}]*>)?\s+\w+\s*\(\s*\Z")
_NAMED = re.compile(r"\b([^\W\d]\w*)\s*(?::[^=\n;{}]{0,60})?:?=\s*\Z|#\s*define\s+(\w+)\s+\Z")


def _read_size(raw: str) -> Answer:
    answer = constraints.read_values(raw, 2, "language;structure;size")
    if not answer.values[1].isascii() or not answer.values[1].isdigit():
        raise ValueError(f"the size '{answer.values[1]}' is not a whole number")
    return replace(answer, values=(answer.values[0], str(int(answer.values[1]))))


def _official_size(answer: Answer, code: str) -> Finding:
    """The digits count anywhere, also in a text or in a longer number; Rust's and Go's names as they are written.

    Those are searched among names in lower case, so that `HashMap` is never found.
    """
    name, size = answer.values
    code = published.without_comments(code, answer.language)
    found, bounded = published.structure_seen(name, code, answer.language), size in code
    return Finding(found and bounded, f"the published harness sees {name}: {found}, the digits {size}: {bounded}")


def _guarded_size(answer: Answer, code: str) -> Finding:
    name, size = answer.values
    use = use_of(name, answer, code)
    if use is None:
        return Finding(False, f"nothing in the code uses {name}")
    tree = answer.tree(code)
    own = {found.text.lower() for found in (*tree.classes, *(function.name for function in tree.functions))}
    others, text, unsure = CONCRETE - {plain(name), *own}, blanked(tree), 0
    built_in = name.lower() in answer.grammar.customs.built_in
    for number in _NUMBER.finditer(text):
        if re.sub(r"[_']", "", number[1]).lstrip("0") == size:
            met = _bounds(text, number, others, own | {plain(name)})
            if built_in and met is not False and _of_another(text, number, plain(name)):
                met = False
            line = text.count("\n", 0, number.start()) + 1
            if met:
                return Finding(True, f"line {use.line} uses {name}, line {line} says {size}")
            unsure = unsure or (line if met is None else 0)
    if unsure:
        return Finding(
            None, f"line {use.line} uses {name}, but nothing tells whether {size} in line {unsure} bounds it"
        )
    return Finding(False, f"line {use.line} uses {name}, but no number that may bound it is {size}")


_KIND_MADE = re.compile(r"\bmake\s*\(\s*(map\b|chan\b|\[)[^;\n]*,\s*\Z")
_LENGTH_OF = re.compile(rf"\b(?:len|cap)\s*\(\s*(?:\w{{1,80}}\.)?(\w{{1,80}})\s*\){_COMPARISON}\Z")


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """The 120 characters before a place in a text, and the 80 after it."""
    return text[max(0, start - 120) : start], text[end : end + 80]


def _of_another(text: str, number: re.Match[str], wanted: str) -> bool:
    """Whether a number surely bounds another of the language's own structures, made with it or of its length."""
    before, after = _around(text, *number.span())
    kind = found[1] if (found := _KIND_MADE.search(before)) else ""
    if not kind and (compared := _LENGTH_OF.search(before)):
        declared = re.search(rf"\b{compared[1]}\s*(?::?=\s*(?:make\s*\(\s*)?|\s)\s*(map\b|chan\b|\[)", text)
        kind = declared[1] if declared else ""
    if re.search(r"\[\s*\Z", before) and re.match(r"\s*\]\s*[\w*\[]", after):
        kind = "["
    return bool(kind) and wanted not in (("slice", "array") if kind == "[" else (kind,))


def _bounds(text: str, number: re.Match[str], others: frozenset[str], made_by: set[str]) -> bool | None:
    """Whether a number bounds a structure, by its surroundings; None if these do not show it.

    A plain value and the size of other structures do not. A name with this value bounds the structure at every use.
    """
    before, after = _around(text, *number.span())
    made, declares = _MADE.search(before), _DECLARES.search(before)
    one_of_many = re.search(r"\d\s*,\s*\Z", before) and re.match(r"\s*,\s*\d|\s*[}\]]", after)
    if _NO_SIZE.search(before) or _COMPUTED.search(before) or one_of_many or (made and made[1].lower() in others):
        return False
    method = made is not None and before[: made.start()].endswith(".")
    if made and (made[1].lower() in made_by or (made[1][0].isupper() and not method)):
        return True
    if (declares and declares[1].lower() in made_by) or _LIMITED.search(before) or _LIMITS.match(after):
        return True
    named = _NAMED.search(before)
    if named is None:
        return False if re.search(r"[=!]=\s*\Z", before) else None
    for name in re.compile(rf"\b{named[1] or named[2]}\b").finditer(text, number.end()):
        before, after = _around(text, *name.span())
        made = _MADE.search(before)
        if _LIMITED.search(before) or _LIMITS.match(after) or (made and made[1].lower() in made_by):
            return True
    return False


register(ConstraintType(
    "data_structure_size", "data_structure", ("data_structure", "size"), "rule",
    _read_size,
    lambda answer: f"The code must use the data structure {answer.values[0]} of {answer.language}, and bound "
    f"its size by {answer.values[1]}.",
    _official_size, _guarded_size, unknown=constraints.lacks("type"), impossible=_spaced,
    form="language;structure;size", examples=("java;HashMap;100",),
))  # fmt: skip
