"""Constructions in this process, with scripted agents."""

import contextlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import SerializeAsAny

from codechat.base.config import original_option, result_option
from codechat.base.files import from_yaml
from codechat.models import ModelConfig
from codechat.models.calls import Brake
from codechat.models.roles import role
from codechat.run.construct import RECIPES, Item, Recipe, RecipeConfig, RecipeRoles, Stage
from codechat.run.construct.recipe import ConstructionConfig, compose_construction
from codechat.run.construct.run import Outcome, construct
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.testing import OpenAIServer
from codechat.testing.apis import Call


class TrialRoles(RecipeRoles):
    poet: SerializeAsAny[ModelConfig] | None = role("openai", "whom the stages ask", default=None)


class TrialConfig(RecipeConfig):
    kind: Literal["trial"] = original_option("trial", "which recipe")
    roles: TrialRoles = result_option(TrialRoles(), "who takes part")
    prompts: dict[str, str] = result_option({}, "what is asked")


@contextlib.contextmanager
def trial(recipe: Recipe) -> Iterator[None]:
    """While it lasts, `recipe=trial` is this one."""
    RECIPES.discover()

    @RECIPES.register("trial", TrialConfig)
    def made(config: TrialConfig) -> Recipe:
        """A test's own."""
        return recipe

    try:
        yield
    finally:
        RECIPES._components.pop("trial")


@dataclass
class Quiet:
    """Keeps the remarks."""

    notes: list[str] = field(default_factory=list)
    brake: Brake | None = None

    def begin(self, made: Any, budget: Any) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def watching(self, counts: Any, ledger: Any) -> Any:
        return contextlib.nullcontext()

    def interruptible(self, brake: Brake) -> Any:
        self.brake = brake
        return contextlib.nullcontext()


@cache
def _usual() -> ConstructionConfig:
    with trial(Recipe(lambda: (), ())):
        words = ["recipe=trial", "out=nowhere", "tracking=none", "sandbox.allow_weak=true"]
        return compose_construction([*words, "construct.roles.poet.name=x"])[0]


def _poet() -> ModelConfig:
    recipe = _usual().recipe
    assert isinstance(recipe, TrialConfig) and recipe.roles.poet is not None
    return recipe.roles.poet


def config_of(out: Path, server: OpenAIServer | None, options: Mapping[str, Any], **top: Any) -> ConstructionConfig:
    """The config of a trial, without composing: `options` are the recipe's, `top` the others."""
    poet = None
    if server is not None:
        usual = _poet()
        changed = {"base_url": server.base_url, "name": "x", "api_key_env": None, "cache": False, "max_concurrency": 4}
        poet = usual.model_copy(update={**changed, **options.get("poet", {})})
    own = {name: value for name, value in options.items() if name != "poet"}
    recipe = TrialConfig(roles=TrialRoles(poet=poet), **own)
    return _usual().model_copy(update={"recipe": recipe, "out": str(out), **top})


def run(
    out: Path,
    stages: Sequence[Stage],
    items: Sequence[Item],
    server: OpenAIServer | None = None,
    *,
    watcher: Quiet | None = None,
    recipe: Mapping[str, Any] | None = None,
    top: Mapping[str, Any] | None = None,
    **options: Any,
) -> Outcome:
    """Run a trial; `recipe` are further fields of the recipe, `top` keys beside it, `options` the recipe's keys."""
    roles = ("poet",) if server is not None else ()
    made = Recipe(**{"seeds": lambda: items, "stages": stages, "roles": roles, **(recipe or {})})
    config = config_of(out, server, options, **(top or {}))
    with trial(made):
        return construct(config, {}, watcher or Quiet(), ["codechat"])


def seeds(number: int) -> list[Item]:
    return [Item(f"s{index}", {"number": index}) for index in range(number)]


def written(folder: Path) -> dict[str, bytes]:
    """What the same seeds and replies must make the same."""
    names = ("items.jsonl", "dropped.jsonl", "questions.jsonl", "yield.json", "card.md")
    return {name: (folder / name).read_bytes() for name in names}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ends(folder: Path) -> dict[str, tuple[str, str]]:
    """Where the dropped items ended, and for which reason."""
    return {row["id"]: (row["stage"], row["reason"]) for row in read(folder / "dropped.jsonl")}


PLACE, ROLES = "construct.roles", ("author", "solver", "judge")
QUOTED = re.compile(r"<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)
TAG = re.compile(r"\bs(\d+)x\b")


def words_of(url: str, *words: str) -> list[str]:
    """The words of the command, with all roles at one server."""
    models = [f"model@{PLACE}.{role}=openai" for role in ROLES]
    keys = ("base_url=" + url, "api_key_env=null", "max_concurrency=16", "cache=false")
    at = [f"{PLACE}.{role}.{key}" for role in ROLES for key in keys]
    named = [f"{PLACE}.{role}.name={role}" for role in ROLES]
    given = [
        "recipe=constraints",
        "seeds=seeds.jsonl",
        "tracking=none",
        "languages=[python]",
        "sandbox.allow_weak=true",
    ]
    return ["construct", *given, *models, *named, *at, *words]


def snippet(number: int) -> dict[str, str]:
    """A seed by which its number is known."""
    code = f"def s{number}x(values):\n    total = sum(values)\n    return total * {number}\n"
    return {"id": f"snippet/{number}", "code": code, "language": "python", "origin": f"https://example.org/{number}", "licence": "MIT"}  # fmt: skip


def story(key: object) -> str:
    """Words that no other story has."""
    dice = random.Random(f"story {key}")
    letters = "bcdfghklmnprstvw"
    return " ".join("".join(dice.choice(letters) + dice.choice("aeiou") for _ in range(3)) for _ in range(30))


def fenced(code: str) -> str:
    return f"Here it is.\n\n```python\n{code.rstrip()}\n```\n"


@dataclass
class Asked:
    """What an author's request says."""

    number: int
    value: str
    answer: str
    base: str | None

    @classmethod
    def of(cls, text: str, parts: Mapping[str, str]) -> "Asked":
        """The request; `parts` are its quoted ones."""
        found = TAG.search(parts["code"])
        value = re.search(r"your task must have: (.*)", text)
        answer = re.search(r"the same name in the task: (.*)", text)
        assert found and value and answer
        return cls(int(found[1]), value[1], answer[1].replace("{function}", "solve"), parts.get("base"))


@dataclass
class Agents:
    """Who answers; `defects` has the planted defect of a snippet's number, `copied` whose story it tells instead."""

    defects: Mapping[int, str] = field(default_factory=dict)
    copied: Mapping[int, object] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    before: Callable[[], object] = lambda: None

    def __call__(self, call: Call) -> str:
        self.before()
        role, text = call.body["model"], call.messages[0]["content"]
        self.asked[role] += 1
        parts = {name.lower(): said for name, _, said in QUOTED.findall(text)}
        if role == "author":
            if "concepts" not in parts:
                return json.dumps({"concepts": ["sums", "lists"]})
            return self.write(Asked.of(text, parts))
        if role == "judge":
            kept = self.defect(parts["task"]) == "vacuous" or "kept" in parts["code"]
            return f"REASON: it says so.\nVERDICT: {'KEPT' if kept else 'BROKEN'}"
        return self.solve(parts)

    def defect(self, text: str) -> str:
        found = TAG.search(text)
        assert found
        return self.defects.get(int(found[1]), "")

    def write(self, asked: Asked) -> str:
        defect, value, answer = self.defects.get(asked.number, ""), asked.value, asked.answer
        if asked.base is not None:
            return self.expand(asked, defect)
        if defect == "malformed":
            return "A fine task comes to my mind."
        said = " ".join(re.split(r"[;:,]", value)) if defect != "silent" else "care"
        prompt = f"Write a Python program s{asked.number}x: {story(self.copied.get(asked.number, asked.number))}. Use {said}."
        answer = {
            "other value": re.sub(r"[^;]+$", _other, answer),
            "other language": answer.replace("python", "java", 1),
            "unreadable": f"python;{'x;' * 5}y",
        }.get(defect, answer)
        return json.dumps({"prompt": prompt, "answer": answer})

    def expand(self, asked: Asked, defect: str) -> str:
        earlier = re.search(r"Use (\w+) (\d+)\.", asked.base or "")
        prompt, answer = (
            f"{asked.base} Also use {' '.join(asked.value.split(';'))}. {story(('more', asked.number))}",
            asked.answer,
        )
        if defect == "related" and earlier:
            sized = asked.value.count(";") == 1
            answer = f"python;{earlier[1]};{int(earlier[2]) + 7}" if sized else f"python;{earlier[1]}"
        if defect == "lost":
            prompt = re.sub(r"Use [^.]*\.", "", prompt, count=1)
        return json.dumps({"prompt": prompt, "answer": answer})

    def solve(self, parts: Mapping[str, str]) -> str:
        """Programs that the package itself tries; what it must keep is told by its words."""
        task = parts["task"]
        constraints = [
            _constraint(words) for words in parts.get("constraints", parts.get("constraint", "")).split("\n")
        ]
        rules = [each for each in constraints if each is not None]
        if "constraint" in parts:
            refused = (code for code in plain_programs("python") if not any(each.check(code).met for each in rules))
            return fenced(next(refused))
        if self.defect(task) == "unpassable":
            return fenced("class bad_name:\n    def Bad_Name(self):\n        Bad_Value = 1\n        return Bad_Value\n")
        found = [next(code for code in attempts(each) if each.check(code).met) for each in rules]
        return fenced("\n\n".join([*found, *["KEPT = 'kept'\n"] * (not rules)]))


def _other(found: re.Match[str]) -> str:
    """A value that no pool has, in the form of a drawn one."""
    return "4321" if found[0].isdigit() else "class:snake_case" if ":" in found[0] else "elsewhere"


_WORDS = {
    "data_structure_type": r"use the data structure (\S+) of python\.",
    "data_structure_size": r"use the data structure (\S+) of python, and bound its size by (\d+)\.",
    "invocation": r"must call (\S+)\.",
    "library": r"library (\S+?)\.?$",
}


def _constraint(words: str) -> Constraint | None:
    """The constraint that is so worded; None if no rule decides it."""
    for name, pattern in _WORDS.items():
        if found := re.search(pattern, words):
            return Constraint(name, constraint_type(name).read(";".join(("python", *found.groups()))))
    if found := re.search(r"use the data structure (\S+) of python with its operations (.*)\.", words):
        operations = found[2].split(" and ")
        return Constraint(
            name := "data_structure_operation", constraint_type(name).read(f"python;{found[1]};{operations}")
        )
    if cases := re.findall(r"(class|function|variable) names in (\w+)", words):
        listed = ",".join(f"{kind}:{case}" for kind, case in cases)
        return Constraint("naming", constraint_type("naming").read(f"python;{listed}"))
    return None


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
