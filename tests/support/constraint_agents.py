"""A scripted author, solver and judge for `recipe=constraints`, with defects planted by the snippet of a request."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.testing.server import Call
from support.attempts import attempts, plain_programs

ROLES = ("author", "solver", "judge")
QUOTED = re.compile(r"<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)
TAG = re.compile(r"\bs(\d+)x\b")


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
