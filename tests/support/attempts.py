"""Programs made to keep one constraint, without a model: if a rule accepts none of them, no program may pass it.

They are read by rules, never run. `attempts.yaml` has what they are made of.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from codechat.base.files import from_yaml
from codechat.studies.multicodeif.constraints import Constraint

_CASES: Mapping[str, Callable[[Sequence[str]], str]] = {
    "snake_case": "_".join,
    "kebab-case": "-".join,
    "camelCase": lambda words: words[0] + "".join(word.title() for word in words[1:]),
    "PascalCase": lambda words: "".join(word.title() for word in words),
}
_NAMES = {"class": ("order", "book"), "function": ("count", "items"), "variable": ("total", "price")}
_USUAL = {"class": "PascalCase", "function": "camelCase", "variable": "camelCase"}
_SPACED = re.compile(r" ([-+*/%=<>!&|:?]+) ")
_MARKS = re.compile(r"[§¶¤].*|^[ \t]*§.*\n", re.MULTILINE)
_OPENS = re.compile(r"^([ \t]*)(.*?) \{$", re.MULTILINE)
_SAME = {
    "int": "Integer", "integer": "Integer", "str": "String", "bool": "Boolean", "dict": "Map", "node": "Node",
    "linkedlist": "LinkedList", "jsonobject": "JSONObject",
}  # fmt: skip


@cache
def _parts() -> Mapping[str, Mapping[str, Any]]:
    """What programs are made of, by language."""
    text = Path(__file__).with_name("attempts.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = from_yaml(text)
    return found


def attempts(constraint: Constraint) -> Iterator[str]:
    """Programs that try to keep the constraint; none for a type that no rule decides, or an unknown language."""
    answer = constraint.answer
    parts = _parts().get(answer.language)
    if parts is None:
        return
    match constraint.type:
        case "data_structure_type" | "data_structure_size" | "data_structure_operation":
            size = answer.values[1] if constraint.type == "data_structure_size" else "10"
            operations = answer.values[1:] if constraint.type == "data_structure_operation" else ()
            yield from _structures(parts, answer.values[0], size, operations)
        case "parameter_type" | "parameter_signature" | "return_type" | "return_cardinality":
            yield from _functions(parts, constraint)
        case "library":
            yield from _naming(parts.get("import", ()), answer.values[0])
        case "invocation":
            yield from _naming(parts.get("call", ()), answer.values[0].removesuffix("!"))
        case "advanced_syntax":
            yield str(parts.get("constructs", ""))
        case "naming":
            asked = dict(part.split(":") for part in answer.values[0].split(","))
            yield _program(parts, {**asked, "class": asked.get("struct", asked.get("class", "PascalCase"))})
            yield "\n"
        case "indentation":
            unit, spacing = answer.values
            yield _program(parts, {}, unit, spaced=spacing == "spacing")
        case "brace":
            program = _program(parts, {})
            yield from (program, _allman(program))
        case "comment":
            yield from _commented(parts)
        case _:
            return


def plain_programs(language: str) -> Sequence[str]:
    """Programs that have nothing in common: a rule that accepts them all accepts any. None of an unknown language."""
    parts = _parts().get(language)
    if parts is None:
        return ()
    other = {"class": "snake_case", "function": "PascalCase", "variable": "PascalCase"}
    snake = dict.fromkeys(_NAMES, "snake_case")
    two = _program(parts, snake, "  ")
    tabs = _allman(_program(parts, other, "\t", spaced=False, comment=parts["comments"][0]))
    commented = (_program(parts, {}, comment=each) for each in parts["comments"])
    return [*([parts["least"]] if "least" in parts else []), _program(parts, {}), two, tabs, *commented]


def _program(
    parts: Mapping[str, Any],
    cases: Mapping[str, str],
    unit: str = "    ",
    *,
    spaced: bool = True,
    comment: str = "",
    beside: bool = False,
) -> str:
    """The language's program with names in some cases, indented and spaced in a way, with or without comments.

    A comment stands in lines of its own above every class and function, or `beside` code.
    """
    text = str(parts["program"])
    if not spaced:
        text = _SPACED.sub(r"\1", text).replace(", ", ",")
    names = {kind: _CASES[cases.get(kind, usual)](_NAMES[kind]) for kind, usual in _USUAL.items()}
    lines = []
    for line in text.replace("→", unit).split("\n"):
        indent, mark, documented = line.partition("§")
        if mark and comment and not beside:
            own = comment.replace("NAME", documented)
            lines += [indent + each for each in own.split("\n")]
        elif "¶" in line:
            lines += [line.replace("¶", comment.replace("NAME", "It"))] if comment.startswith('"') else []
        elif not mark:
            lines.append(line.replace("¤", f" {comment.splitlines()[0]}" if comment and beside else ""))
    text = "\n".join(lines)
    case = _CASES[cases.get("variable", _USUAL["variable"])]
    for place in ("first", "second"):
        text = text.replace(place.upper(), case((place, "item")))
    for kind, name in names.items():
        text = text.replace(kind.upper(), name)
    return text


def _allman(program: str) -> str:
    """A program whose braces end lines, with every opening brace in a line of its own."""
    program = re.sub(r"^([ \t]*)\} (\w.*)$", r"\1}\n\1\2", program, flags=re.MULTILINE)
    return _OPENS.sub(r"\1\2\n\1{", program)


def _commented(parts: Mapping[str, Any]) -> Iterator[str]:
    """The program with each kind of comment, above and beside code, and with a docstring."""
    for comment, beside in product((*parts["comments"], '"""NAME does it."""'), (False, True)):
        yield _program(parts, {}, comment=comment, beside=beside)


def _naming(templates: Sequence[str], name: str) -> Iterator[str]:
    """Programs that import or call a name: as it is written, and by its last part or with what no name may hold."""
    last = re.split(r"\.|::|/", name)[-1]
    for template, written in product(templates, dict.fromkeys((name, name.replace("-", "_")))):
        yield template.replace("NAME", written).replace("LAST", last)


def _structures(parts: Mapping[str, Any], name: str, size: str, operations: Sequence[str]) -> Iterator[str]:
    """Programs that use a structure, bound by a size, with all operations called in one way or another."""
    last = re.split(r"\.|::|/", name)[-1]
    written = dict.fromkeys((name, last, "".join(word.title() for word in name.split("_"))))
    forms = [*parts.get("calls", ())] if operations else [""]
    for template, form, structure in product(parts.get("structure", ()), ["\n".join(forms), *forms], written):
        program, (before, mark, rest) = "", template.partition("CALLS")
        indent = before[before.rfind("\n") + 1 :] if mark else ""
        own = (re.split(r"\.|::", each)[-1] for each in operations)
        calls = "\n".join(form.replace("OP", each) for each in own).replace("\n", f"\n{indent}")
        program = before + calls + rest
        for key, value in (("NAME", structure), ("LAST", last), ("TITLE", last.title()), ("SIZE", size)):
            program = program.replace(key, value)
        yield program.replace("MAX_" + size, "MAX_SIZE")


def _functions(parts: Mapping[str, Any], constraint: Constraint) -> Iterator[str]:
    """Functions that take or return the wanted types, as the language writes them and as the answer does."""
    name, *wanted = constraint.answer.values
    own = [_written(parts, kind) for kind in wanted]
    for types in (own, wanted, [f"&mut {kind}" for kind in own], [kind[:1] for kind in wanted]):
        several = str(parts.get("tuple", "")).replace("TYPES", ", ".join(types))
        returns = constraint.type in ("return_type", "return_cardinality")
        listed = [
            str(parts.get("parameter", "")).replace("NAME", f"a{place}", 1).replace("TYPE", kind, 1)
            for place, kind in enumerate([] if returns else types)
        ]
        results = [several, types[0]] if returns and len(types) > 1 else [types[0]] if returns else ["int", "bool"]
        for result in results:
            program = str(parts.get("function", "")).replace("PARAMETERS", ", ".join(listed)).replace("RESULT", result)
            yield program.replace("FUNCTION", name)


def _written(parts: Mapping[str, Any], kind: str) -> str:
    """A kind of data as the language writes it, with the own name of a struct; what is no kind stays as it is."""
    types: Mapping[str, str] = parts.get("types", {})
    if kind.startswith("Struct:"):
        return types.get("Struct", "OWN").replace("OWN", kind.partition(":")[2].strip())
    named = _SAME.get(kind.lower(), kind)
    known = {each.lower(): each for each in types}
    return types.get(known.get(named.lower(), named), kind).replace("OWN", kind)
