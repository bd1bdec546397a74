"""The known content of variables, so that a call on another data structure is not taken for one on the wanted one."""

import re
from functools import lru_cache

from codechat.constraints.blanking import blanked
from codechat.languages.grammar import Found, Tree

# Data structures with a name of their own; what is declared as an interface, such as `List`, may be any of several.
CONCRETE = frozenset({
    "arraylist", "linkedlist", "hashmap", "linkedhashmap", "treemap", "concurrenthashmap", "hashset",
    "linkedhashset", "treeset", "arraydeque", "priorityqueue", "stack", "vector", "vec", "vecdeque", "btreemap",
    "btreeset", "binaryheap", "smallvec", "arrayvec", "deque", "list", "map", "unordered_map", "set",
    "unordered_set", "queue", "priority_queue", "multimap", "multiset", "dict", "tuple", "counter", "defaultdict",
    "ordereddict", "string",
})  # fmt: skip
_NAME = r"\b(?P<name>[^\W\d]\w{0,80})\b"
_PATH = r"(?:\w{1,80}(?:::|\.)){0,9}"
_WORD = r"(?P<word>[^\W\d]\w{0,80})\b"
_DECLARED = (
    # `ArrayList<A> name =`, `std::vector<int>& name)`
    re.compile(
        rf"(?<![<,\w.:])(?:std::)?{_WORD}\s?(?:<[^;(){{}}=]{{0,200}}>)?[\s&*]{{1,9}}{_NAME}\s{{0,9}}(?=[=;)\[{{])"
    ),
    # `name: &mut Vec<A>`, `name: dict[str, int]`
    re.compile(rf"{_NAME}\s?:\s{{0,9}}(?:&\s?(?:'\w{{1,80}}\s)?)?(?:mut\s)?{_PATH}{_WORD}"),
    # `name = new TreeMap<>()`, `name = collections.deque()`, `name = vec![`
    re.compile(rf"{_NAME}\s?(?::[^=\n;]{{0,200}})?:?=\s{{0,9}}(?:new\s)?{_PATH}{_WORD}\s?[!(<:\[{{]"),
)
_BEFORE = re.compile(r"(?<![\w.)\]>])(?:(?:self|this|cls)\s*(?:\.|->)\s*)?(?P<name>[^\W\d]\w*)\s*(?:\.|->)\s*\Z")
_LITERALS = {"list", "dict", "set", "tuple"}


def on_another(call: Found, wanted: str, tree: Tree) -> bool:
    """Whether a call is on a variable that surely holds another structure than the wanted one, given in lower case."""
    if wanted not in CONCRETE:
        return False
    before = tree.data[max(0, call.start - 200) : call.start].decode("utf-8", "replace")
    receiver = _BEFORE.search(before)
    held = _held(tree).get(receiver["name"], set()) if receiver else set()
    return bool(held) and wanted not in held


@lru_cache(maxsize=8)
def _held(tree: Tree) -> dict[str, set[str]]:
    """The words of the types that each variable is declared with or set to, if these are concrete."""
    held: dict[str, set[str]] = {}
    own = {found.text.lower() for found in tree.classes}
    text = blanked(tree)
    for pattern in _DECLARED:
        for found in pattern.finditer(text):
            if found["word"].lower() in CONCRETE - own:
                within = re.split(r"[;={(\n]", text[found.start("word") : found.start("word") + 300], maxsplit=1)[0]
                held.setdefault(found["name"], set()).update(re.findall(r"\w+", within.lower()))
    for mark, made in tree.marked("makes"):
        before = tree.data[max(0, made.start - 200) : made.start].decode("utf-8", "replace")
        named = re.search(r"([^\W\d]\w*)\s*(?::[^=\n]*)?=\s*\Z", before)
        if named and mark in _LITERALS:
            held.setdefault(named[1], set()).add(mark)
    return held
