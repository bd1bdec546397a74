"""The environment that code must fit: its language and version, a library, a call, a construct (`language;value`)."""

import re
from functools import partial

from codechat.base.errors import UserError
from codechat.sandbox.languages import is_registered, language_of, languages, parses
from codechat.sandbox.languages.grammar import Compiled, Found, Parsed, Tree, version_of
from codechat.studies.multicodeif import constraints
from codechat.studies.multicodeif.classifier import Guess, guess, labels_of
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, blanked, register
from codechat.studies.multicodeif.constraints.published import construct_seen, imports_seen, operations_seen
from codechat.studies.multicodeif.constraints.structures import on_another

SURE = 0.9
"""The score from which a guess prevails over a grammar."""


def _read_language(raw: str) -> Answer:
    if not raw.strip() or ";" in raw:
        raise ValueError(f"the answer '{raw:.60}' is not a language")
    if not is_registered(raw):
        raise ValueError(f"no language is called '{raw:.60}'")
    return Answer(raw, language_of(raw).names[0])


def _official_language(answer: Answer, code: str) -> Finding:
    """The guess must be the language itself; code that is too short gets none."""
    guessed = _guess(code)
    if isinstance(guessed, Finding):
        return guessed
    return Finding(guessed.label == labels_of(language_of(answer.language))[0], _said(guessed))


def _guarded_language(answer: Answer, code: str) -> Finding:
    """The grammars help to decide if the guess is a language that contains the one asked for, or is not sure.

    Code that is too short for a guess is undecided.
    """
    guessed = _guess(code)
    if isinstance(guessed, Finding):
        return guessed
    own, *containing = labels_of(language_of(answer.language))
    if not guessed.label or guessed.label == own:
        return Finding(True if guessed.label else None, _said(guessed))
    if guessed.label not in containing and guessed.score >= SURE:
        return Finding(False, _said(guessed))
    asked, other = parses(answer.language, code), parses(guessed.label, code)
    if asked and (guessed.label in containing or not other):
        return Finding(True, f"{_said(guessed)}, but it parses as {answer.language}")
    if asked is None and other is False:
        return Finding(None, f"{_said(guessed)}, but it does not parse as that")
    return Finding(False, _said(guessed))


def _guess(code: str) -> Guess | Finding:
    """The guess, or the reason why there is none: no classifier is installed."""
    try:
        return guess(code)
    except UserError as error:
        return Finding(None, f"{error.message}: {error.remedy}")


def _said(guessed: Guess) -> str:
    if not guessed.label:
        return "the code is too short to tell its language"
    return f"the classifier takes it for {guessed.label} ({guessed.score:.2f})"


register(ConstraintType(
    "language_type", "environment", ("syntax", "language_type"), "classifier",
    _read_language, lambda answer: f"The code must be in {answer.raw.strip()}.",
    _official_language, _guarded_language, form="language", examples=("Rust",),
))  # fmt: skip


def _read_version(raw: str) -> Answer:
    language, _, version = (part.strip() for part in raw.partition(";"))
    if not language or not version or ";" in version:
        raise ValueError(f"the answer '{raw:.60}' is not of the form language;version")
    if not isinstance(language_of(language), Compiled):
        raise ValueError(f"no compiler checks versions of the language '{language}'")
    version_of(version)
    return Answer(raw, language_of(language).names[0], (version,))


register(ConstraintType(
    "language_version", "environment", ("syntax", "language_version"), "compiler", _read_version,
    lambda answer: f"The code must be valid in the version {answer.values[0]} of {answer.language}.",
    form="language;version", examples=("java;17", "python;3.11"),
))  # fmt: skip


def _official_library(answer: Answer, code: str) -> Finding:
    """Any part of a path counts, in the case that is asked for; in Python `import a.b` does not count as one of `a`."""
    name = answer.values[0]
    found = imports_seen(name, code, answer.language)
    return Finding(found, f"the published harness sees {'an' if found else 'no'} import of {name}")


def _guarded_library(answer: Answer, code: str) -> Finding:
    name, customs = answer.values[0], answer.grammar.customs
    for path in answer.tree(code).imports:
        if customs.imports(name, path.text.strip("\"'`<>")):
            return Finding(True, f"line {path.line} imports {name}")
    for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\s*\.", blanked(answer.tree(code))) if "." in name else ():
        head = found.string[: found.start()].rpartition("\n")[2].split()
        if head[:1] not in (["package"], ["namespace"]):
            return Finding(True, f"line {found.string.count(chr(10), 0, found.start()) + 1} uses {name}")
    for source, line in customs.sources(code):
        if name.lower() in re.split(r"[/@?]|(?:\.min)?\.js\b", source.lower()):
            return Finding(True, f"line {line} loads {name}")
    return Finding(False, f"nothing in the code imports {name}")


register(ConstraintType(
    "library", "environment", ("syntax", "library"), "rule",
    partial(constraints.read_values, count=1, form="language;library"),
    lambda answer: f"The code must use the library {answer.values[0]}.", _official_library, _guarded_library,
    unknown=constraints.lacks("import"), form="language;library", examples=("python;requests",),
))  # fmt: skip


# Holders of functions that no other object has; before other names (`str.upper`, `Vec::push`) is a type of values.
_HOLDERS = constraints.words_of(
    "Collections Math JSON Object File Files Arrays Objects Integer Double System Reflect Console Convert Path "
    "Directory Environment JsonSerializer console process fmt math strings os time"
)
_STATIC = constraints.words_of(
    "Array.from Array.isArray Array.of Date.now Number.isInteger Number.parseInt Number.parseFloat Promise.all "
    "Promise.allSettled Promise.any Promise.race Promise.resolve Promise.reject String.format String.fromCharCode "
    "String.join String.valueOf Task.Delay Task.FromResult Task.Run Task.WhenAll Task.WhenAny Thread.sleep "
    "string.Format string.Join string.IsNullOrEmpty"
)


def _official_call(answer: Answer, code: str) -> Finding:
    """In Java the object of a call counts as called too; macros, keywords and properties count in no language."""
    found = operations_seen(code, answer.language, [answer.values[0]])
    return Finding(found, f"the published harness sees {'a' if found else 'no'} call of {answer.values[0]}")


def _guarded_call(answer: Answer, code: str) -> Finding:
    name = answer.values[0].removesuffix("!")  # of a macro of Rust
    *before, wanted = re.split(r"\.|::", name)
    tree = answer.tree(code)
    called = (*tree.calls, *(found for _, found in tree.marked("property")))
    for call in sorted(called, key=lambda found: found.start):
        if call.text == wanted and _held(call, ".".join(before[-1:]), tree):
            return Finding(True, f"line {call.line} calls {name}")
    return Finding(False, f"nothing in the code calls {name}")


def _held(call: Found, holder: str, tree: Tree) -> bool:
    """Whether a call belongs to the holder, to a value that may be one, or to nothing, as after a static import."""
    before = constraints.text_of(tree, call.start - 200, call.start).rstrip()
    if not holder or not before.endswith((".", "::", "->")):
        return True
    found = re.search(r"(\w+)\s*(?:(?:::)?<[^;(){}]*>)?\s*[?!]{0,2}(?:\.|::|->)\Z", before)
    receiver = found[1] if found else ""
    if holder in (receiver, constraints.last_part(tree.aliases.get(receiver, ""))):
        return True
    imported = holder.islower() and any(constraints.last_part(each.text) == holder for each in tree.imports)
    if imported or holder in _HOLDERS or f"{holder}.{call.text}" in _STATIC:
        return False
    return not (before.endswith("::") and receiver[:1].isupper()) and not on_another(call, holder.lower(), tree)


register(ConstraintType(
    "invocation", "environment", ("syntax", "function"), "rule",
    partial(constraints.read_values, count=1, form="language;function"),
    lambda answer: f"The code must call {answer.values[0]}.",
    _official_call, _guarded_call, unknown=constraints.lacks("call"),
    form="language;function", examples=("csharp;Math.Abs",),
))  # fmt: skip


def _read_construct(raw: str) -> Answer:
    answer = constraints.read_values(raw, 1, "language;construct")
    known = {each.names[0]: each.grammar.customs.constructs for each in languages() if isinstance(each, Parsed)}
    if not known.get(answer.language):
        having = ", ".join(name for name, constructs in known.items() if constructs)
        raise ValueError(f"no construct of {answer.language} is known, but of {having}")
    return constraints.one_of(answer, answer.values[0], tuple(known[answer.language]))


def _official_construct(answer: Answer, code: str) -> Finding:
    found = construct_seen(answer.values[0].lower(), code, answer.language)
    return Finding(found, f"the published harness sees {'' if found else 'no '}{answer.values[0]}")


def _guarded_construct(answer: Answer, code: str) -> Finding:
    construct = answer.values[0]
    tree = answer.tree(code)
    lines: dict[str, int] = {}
    for feature, found in tree.marked("feature"):
        lines[feature] = min(found.line, lines.get(feature, found.line))
    needed = answer.grammar.customs.constructs[construct.lower()]
    missing = [feature.replace("_", " ") for feature in needed if feature not in lines]
    if missing:
        return Finding(False, f"the code has no {' and no '.join(missing)}")
    return Finding(True, f"line {min(lines[feature] for feature in needed)} has {construct}")


register(ConstraintType(
    "advanced_syntax", "environment", ("syntax", "advanced_syntax"), "rule",
    _read_construct, lambda answer: f"The code must use this construct of {answer.language}: {answer.values[0]}.",
    _official_construct, _guarded_construct, form="language;construct",
    examples=(
        "python;list comprehension", "rust;closures", "go;defer statement", "kotlin;when expression",
        "typescript;arrow functions",
    ),
))  # fmt: skip
