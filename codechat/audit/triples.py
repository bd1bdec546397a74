"""Triples (code before, instruction, code after) with labels, and the rules' score on them.

Two formats. JSONL, one triple a line: `before`, `instruction` (the id of one in the pool, or a mapping with text,
scope, change and rule), `after`, `applicable` (true or false), `adherence` (adhered or violated); `after` and either
label may be left out. Or YAML, for many triples over few programs: `programs` by name, and `cases`, each naming an
instruction, the programs it `fits` and is `unfit` for, and revisions that are `adhered` or `violated`, a revision being
a program's name followed by pairs of a text and its replacement, `*` standing for the whole program. The triple's label
of applicability is that of the revision's program in the same case.

A triple may say what makes it hard, by a word of your choice: `hard` in JSONL, `{hard: WORD, revision: [...]}` in YAML.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codechat.audit.scoring import QUESTIONS, Question, Share, share
from codechat.domain import CHANGES, SCOPES, Change, Instruction, Scope
from codechat.errors import UserError, nearest
from codechat.patterns import adherence, applicable

Steps = Annotated[list[str], Field(min_length=1)]
_REMEDY = "docs/audit.md describes both formats, JSONL and YAML"


@dataclass(frozen=True, slots=True)
class Triple:
    """A labelled triple; a missing label is None. `hard` says what makes it hard, None if it is easy."""

    place: str
    instruction: Instruction
    before: str
    after: str | None
    applicable: bool | None
    adherence: str | None
    hard: str | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A decision of a rule that differs from the label."""

    place: str
    question: Question
    instruction: str
    label: str
    decided: str
    reason: str


@dataclass(frozen=True)
class RulesScore:
    """Accuracy of the rules' decisions per question and group of triples, and the undecided ones.

    Groups are `overall`, scope, change and, for triples with a change if any is hard, `hard`, `the rest` and
    `hard: WORD`. Applicability to a program counts once, however many changes of it there are.
    """

    accuracy: dict[Question, dict[str, Share]]
    undecided: dict[Question, int]
    disagreements: list[Disagreement]


@dataclass(frozen=True, slots=True)
class _Decision:
    triple: Triple
    question: Question
    label: str
    decided: str | None
    reason: str

    @property
    def key(self) -> Hashable:
        """Equal for decisions with the same question and label."""
        after = self.triple.after if self.question == "adherence" else None
        return self.question, self.triple.instruction.id, self.triple.before, after, self.label


class _Wording(BaseModel):
    """A user's own instruction."""

    model_config = ConfigDict(extra="forbid")

    text: str
    scope: Scope
    change: Change
    rule: dict[str, Any] | None = None


class _TripleLine(BaseModel):
    """A line of a JSONL file."""

    model_config = ConfigDict(extra="forbid")

    before: str
    instruction: str | _Wording
    after: str | None = None
    applicable: bool | None = None
    adherence: Literal["adhered", "violated"] | None = None
    hard: str | None = None


class _Hard(BaseModel):
    """A revision that is hard to judge."""

    model_config = ConfigDict(extra="forbid")

    hard: str
    revision: Steps


class _Case(BaseModel):
    """The labels of one instruction."""

    model_config = ConfigDict(extra="forbid")

    instruction: str
    fits: list[str] = []
    unfit: list[str] = []
    adhered: list[Steps | _Hard] = []
    violated: list[Steps | _Hard] = []


class _Cases(BaseModel):
    """A YAML file."""

    model_config = ConfigDict(extra="forbid")

    programs: dict[str, str]
    cases: list[_Case]


def read_triples(path: Path, pool: Mapping[str, Instruction]) -> list[Triple]:
    """The triples of a file, or of all JSONL and YAML files of a folder. Raises `UserError` naming file and place."""
    files = [path] if path.is_file() else sorted(each for each in path.glob("*") if each.suffix in (".yaml", ".jsonl"))
    triples = [one for file in files for one in (_of_yaml if file.suffix == ".yaml" else _of_jsonl)(file, pool)]
    if not triples:
        raise UserError(f"{path} holds no labelled triples", _REMEDY)
    return triples


def score_rules(triples: Iterable[Triple]) -> RulesScore:
    """Compare the rules with the labels."""
    decisions = [one for triple in triples for one in _decide(triple)]
    decided = [one for one in decisions if one.decided is not None]
    kinds = sorted({one.triple.hard for one in decisions if one.triple.hard})
    names = ["overall", *SCOPES, *CHANGES, *(("hard", "the rest") if kinds else ()), *map("hard: {}".format, kinds)]
    accuracy = {
        question: {
            name: _accuracy({one.key: one for one in decided if one.question == question and name in _groups(one)})
            for name in names
        }
        for question in QUESTIONS
    }
    undecided = {q: len({one.key for one in decisions if one.question == q and one.decided is None}) for q in QUESTIONS}
    wrong = [
        Disagreement(one.triple.place, one.question, one.triple.instruction.text, one.label, one.decided, one.reason)
        for one in {one.key: one for one in decided}.values()
        if one.decided is not None and one.decided != one.label
    ]
    return RulesScore(accuracy, undecided, wrong)


def _groups(one: _Decision) -> tuple[str, ...]:
    triple = one.triple
    groups = ("overall", triple.instruction.scope, triple.instruction.change)
    if triple.adherence is None:
        return groups
    return (*groups, "hard", f"hard: {triple.hard}") if triple.hard else (*groups, "the rest")


def _accuracy(decisions: Mapping[Hashable, _Decision]) -> Share:
    return share(sum(one.decided == one.label for one in decisions.values()), len(decisions))


def _decide(triple: Triple) -> Iterator[_Decision]:
    if triple.applicable is not None:
        fits = applicable(triple.before, triple.instruction)
        words = {True: "applicable", False: "not applicable", None: None}
        yield _Decision(triple, "applicability", words[triple.applicable] or "", words[fits.applicable], fits.reason)
    if triple.adherence is not None and triple.after is not None:
        done = adherence(triple.before, triple.after, triple.instruction)
        verdict = None if done.verdict == "undecided" else done.verdict
        yield _Decision(triple, "adherence", triple.adherence, verdict, done.reason)


def _of_jsonl(path: Path, pool: Mapping[str, Instruction]) -> Iterator[Triple]:
    for number, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        place = f"{path}:{number}"
        try:
            line = _TripleLine.model_validate(json.loads(text))
        except ValidationError as error:
            raise _mistake(place, error) from error
        except ValueError as error:
            raise UserError(f"{place}: not JSON: {error}", _REMEDY) from error
        if line.adherence is not None and line.after is None:
            raise UserError(f"{place}: adherence is labelled, but there is no `after`", _REMEDY)
        one = line.instruction
        known = _known(one, pool, place) if isinstance(one, str) else Instruction(place, **one.model_dump())
        yield Triple(place, known, line.before, line.after, line.applicable, line.adherence, line.hard)


def _of_yaml(path: Path, pool: Mapping[str, Instruction]) -> Iterator[Triple]:
    try:
        file = _Cases.model_validate(yaml.load(_text(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except ValidationError as error:
        raise _mistake(str(path), error) from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {str(error).splitlines()[0]}", _REMEDY) from error
    for case in file.cases:
        place = f"{path}: {case.instruction}"
        instruction = _known(case.instruction, pool, place)
        fits = dict.fromkeys(case.fits, True) | dict.fromkeys(case.unfit, False)
        revisions = [(one, verdict) for verdict in ("adhered", "violated") for one in getattr(case, verdict)]
        for one, verdict in revisions:
            (name, *steps), hard = (one.revision, one.hard) if isinstance(one, _Hard) else (one, None)
            before = _program(file, name, place)
            after = _revise(before, steps, f"{place}: {name}")
            shown = f"{place}: {' '.join((name, *steps))[:80]!r}"
            yield Triple(shown, instruction, before, after, fits.get(name), verdict, hard)
        for name, label in fits.items():
            yield Triple(f"{place}: {name}", instruction, _program(file, name, place), None, label, None)


def _program(file: _Cases, name: str, place: str) -> str:
    if name not in file.programs:
        raise UserError(f"{place}: there is no program '{name}'", nearest(name, file.programs))
    return file.programs[name]


def _revise(program: str, steps: Sequence[str], place: str) -> str:
    if len(steps) % 2:
        raise UserError(f"{place}: a revision is pairs of a text and its replacement", _REMEDY)
    for old, new in zip(steps[::2], steps[1::2], strict=True):
        if old != "*" and old not in program:
            raise UserError(f"{place}: {old[:60]!r} is not in the program", "replace a text that is there")
        program = new if old == "*" else program.replace(old, new)
    return program


def _known(name: str, pool: Mapping[str, Instruction], place: str) -> Instruction:
    if name not in pool:
        raise UserError(f"{place}: no instruction is called '{name}'", nearest(name, pool))
    return pool[name]


def _mistake(place: str, error: ValidationError) -> UserError:
    first = error.errors()[0]
    return UserError(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}", _REMEDY)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", _REMEDY) from error
