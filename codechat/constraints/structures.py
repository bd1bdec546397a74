"""The data structures that a program uses, as the published harness sees them and as they are."""

import ast
import re

from codechat.constraints.answers import Answer
from codechat.constraints.published import calls, captured, without_comments
from codechat.constraints.receivers import on_another
from codechat.languages.grammar import Found, Tree
from codechat.languages.python.syntax import parse

_PYTHON_BUILT_IN = {"list", "dict", "set", "tuple", "heapq"}
_PYTHON_LIBRARY = {
    *("collections.deque", "collections.defaultdict", "collections.OrderedDict", "collections.Counter", "queue.Queue"),
}
_SAME = {"tree_map": "treemap", "buffer.buffer": "bytes.buffer"}
_ELEMENT_SET = """[(assignment left: (subscript)) (augmented_assignment left: (subscript))] @set"""
_GO_ELEMENT_SET = "(assignment_statement left: (expression_list (index_expression))) @set"
# Operations that a language writes without a call: query of the statements that are the operation.
_WRITTEN = {
    ("python", "insert"): _ELEMENT_SET,
    ("python", "assign"): _ELEMENT_SET,
    ("python", "add"): _ELEMENT_SET,
    ("python", "delete"): "(delete_statement (subscript)) @set",
    ("python", "remove"): "(delete_statement (subscript)) @set",
    ("go", "assign"): _GO_ELEMENT_SET,
    ("go", "insert"): _GO_ELEMENT_SET,
    ("go", "update"): _GO_ELEMENT_SET,
}

# Methods that structures have, by language and, where it is not of all, by structure. A program that only defines a
# function of such a name does not use the operation; where no structure has it, such a function is what was asked for.
_METHODS = {
    "java": """add addall addfirst addlast clear contains containskey entryset get getfirst getlast isempty iterator
        keyset offer peek peekfirst peeklast poll pollfirst polllast pop push put putifabsent remove removefirst
        removelast set size sort values""",
    "cpp": """at back begin clear count emplace emplace_back empty end erase find front insert merge pop_back pop_front
        push_back push_front reserve resize reverse size sort swap""",
    "rust": """append clear contains contains_key drain extend get get_mut insert iter len pop_back pop_front push_back
        push_front remove retain truncate""",
    **dict.fromkeys(("cpp stack", "cpp queue", "cpp priority_queue"), "push pop top front back"),
    **dict.fromkeys(("rust vec", "rust smallvec", "rust arrayvec", "rust binaryheap"), "push pop peek"),
}


def seen(code: str, language: str) -> set[str]:
    """The names, in lower case, that the published harness takes for data structures in a code without comments.

    In Python these are only calls of a few names, and imports from `collections`; elsewhere type names without what
    precedes them. So Python's `[]` and `{}`, and Go's own `map` and slices, are never seen.
    """
    if language == "python":
        return {name.lower() for name in _python_seen(code)}
    nodes = captured(language, "(type_identifier) @type", code, "type")
    return {node.text.decode("utf-8", "replace").lower() for node in nodes}


def _python_seen(code: str) -> set[str]:
    tree = parse(code)
    if tree is None:
        return set()
    nodes = list(ast.walk(tree))
    aliases = {
        alias.asname or alias.name: "collections"
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "collections"
    }
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module="collections"):
                found |= {f"collections.{alias.name}" for alias in node.names}
            case ast.Call(func=ast.Name(id=name)) if name in _PYTHON_BUILT_IN:
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                found |= {f"{aliases.get(module, module)}.{name}"} & _PYTHON_LIBRARY
    return found


def operations_seen(code: str, language: str, names: list[str]) -> bool:
    """Whether the published harness finds a call of every name."""
    code = without_comments(code, language)
    if language != "python":
        found = calls(language, code)
    else:
        tree = parse(code)
        nodes = [] if tree is None else [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found = {node.id for node in nodes if isinstance(node, ast.Name)}
        found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        if tree is None:
            return False
    mark = ":" if language in ("rust", "cpp") else "."
    return all(name.split(mark)[-1] in found for name in names)


def plain(name: str) -> str:
    """A structure's name without what leads to it, in lower case: `deque` for `collections.deque`."""
    name = _SAME.get(name.lower(), name.lower())
    return re.split(r"\.|::", name)[-1]


def use_of(name: str, answer: Answer, code: str) -> Found | None:
    """The first place where a program uses a structure: by a type's name, a literal, or its own class of that name."""
    tree = answer.tree(code)
    if answer.language == "go":
        return _go_use(_SAME.get(name.lower(), name), tree)
    wanted = plain(name)
    if answer.language == "python" and wanted == "heapq":
        heap = any(found.text == "heapq" for found in tree.imports)
        return next(
            (call for call in tree.calls if heap and re.match("heap|nlargest|nsmallest|merge", call.text)), None
        )
    names = {wanted, *(called.lower() for called, own in tree.aliases.items() if own.lower() == wanted)}
    named = [found for found in (*tree.types, *tree.classes) if found.text.lower() in names]
    made = [found for mark, found in tree.marked("makes") if mark == wanted]
    return min((*named, *made), key=lambda found: found.start, default=None)


def _go_use(name: str, tree: Tree) -> Found | None:
    """Go tells its own `map` from `sync.Map` by what precedes the name."""
    wanted = name.lower()
    if "." in wanted:
        named = [found for _, found in tree.marked("qualified") if found.text.lower() == wanted]
    elif wanted in ("list", "ring", "heap"):
        named = [found for _, found in tree.marked("qualified") if found.text.lower().startswith(f"{wanted}.")]
    else:
        named = [found for found in (*tree.types, *tree.classes) if found.text == name]
        named += [found for mark, found in tree.marked("makes") if mark == wanted]
    return min(named, key=lambda found: found.start, default=None)


def operation_of(name: str, answer: Answer, code: str) -> int | None:
    """The line of an operation in a program: a call of that name, in any case, or what the language writes instead.

    Calls of variables that surely hold another structure do not count. A function that the program itself defines
    counts if the structure is a class of it, or has no method of that name.
    """
    tree = answer.tree(code)
    wanted, structure = re.split(r"\.|::", name.lower())[-1], plain(answer.values[0])
    places = [found for found in tree.calls if found.text.lower() == wanted and not on_another(found, structure, tree)]
    own = any(found.text.lower() == structure for found in tree.classes)
    methods = f"{_METHODS.get(answer.language, '')} {_METHODS.get(f'{answer.language} {structure}', '')}".split()
    if own or wanted not in methods:
        places += [function.name for function in tree.functions if function.name.text.lower() == wanted]
    query = _WRITTEN.get((answer.language, wanted))
    if not places and query:
        for match in answer.grammar.matches(query, tree):
            return int(match["set"][0].start_point[0]) + 1
    return min((found.line for found in places), default=None)
