"""Tables of the documentation as the code has them."""

import dataclasses
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from codechat.base.domain import (
    Adherence,
    Applicability,
    Build,
    Compliance,
    Extraction,
    Failure,
    Instruction,
    Message,
    Output,
    Program,
    Reply,
    Target,
    Usage,
    Verdict,
)
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets.tasks import Dataset, Requirement, Task, Workspace
from codechat.judging import ConstraintQuestion
from codechat.judging.deciding import Decision, Filled, Form, Question
from codechat.models import Request
from codechat.report.metrics import Breakdown, Final, Measures, Series
from codechat.run.construct import Dropped, Item, Kept, Recipe, Spread, Stage, Waits
from codechat.run.protocols import Ask
from codechat.sandbox import Command, Ran
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.studies.multicodeif.constraints import Answer, Constraint, ConstraintType, Finding
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from codechat.studies.refine.instructions.pool import VERBS
from codechat.studies.refine.patterns import Pattern, patterns
from codechat.studies.sreval.rows import Step, StepTask


def verb_rows() -> Iterator[str]:
    """The leading verbs of each change."""
    verbs: dict[str, list[str]] = defaultdict(list)
    for verb, change in VERBS.items():
        verbs[change].append(verb)
    for change, known in verbs.items():
        yield f"| `{change}` | {', '.join(known)} |"


def pattern_rows() -> Iterator[str]:
    """Every pattern with its options and its noun; a star marks those that need no syntax tree."""
    for name, pattern in sorted(patterns().items()):
        star = "\\*" if pattern.on_tokens else ""
        noun = re.sub(r"\{(\w+)\}", r"*\1*", pattern.noun)
        options = _options(pattern)
        yield f"| `{name}`{star}{options and f' ({options})'} | {noun} |"


def _options(pattern: Pattern) -> str:
    taken = list(inspect.signature(pattern.find).parameters.values())[1:]
    return "; ".join(
        f"`{one.name}`: {_kind(one.annotation)}{'' if one.default is one.empty else _default(one.default)}"
        for one in taken
    )


def _default(value: Any) -> str:
    return ", or none" if value in (None, "") else f" (`{str(value).lower() if isinstance(value, bool) else value}`)"


def _kind(kind: Any) -> str:
    choices = [each for each in get_args(kind) if isinstance(each, str)]
    if choices:
        return "/".join(f"`{each}`" for each in choices)
    if hasattr(kind, "__metadata__"):
        return "regular expression"
    inner = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) is list:
        return "list of texts"
    if inner:
        return _kind(inner[0])
    return {bool: "`true`/`false`", int: "number", str: "text"}[kind]


VALUES = {
    "codechat.base.domain": (
        Message,
        Reply,
        Usage,
        Target,
        Program,
        Extraction,
        Verdict,
        Failure,
        Instruction,
        Applicability,
        Adherence,
        Compliance,
        Output,
        Build,
    ),
    "codechat.datasets.tasks": (Dataset, Task, Requirement, Workspace),
    "codechat.studies.sreval.rows": (StepTask, Step),
    "codechat.studies.multicodeif.rows": (ConstrainedTask, Level),
    "codechat.studies.cab.tasks": (AssistTask, Comment),
    "codechat.studies.multicodeif.constraints": (Constraint, Answer, ConstraintType, Finding),
    "codechat.models": (Request,),
    "codechat.sandbox": (Command, Ran),
    "codechat.run.protocols": (Ask,),
    "codechat.judging": (ConstraintQuestion,),
    "codechat.judging.deciding": (Question, Decision, Form, Filled),
    "codechat.run.construct": (Item, Kept, Spread, Dropped, Waits, Stage, Recipe),
    "codechat.report.metrics": (Measures, Series, Final, Breakdown),
    "codechat.base.records": (SessionRecord, TurnRecord),
}


def value_rows() -> Iterator[str]:
    """A row for each value: where it is, its required fields, and the others."""
    for module, kinds in VALUES.items():
        for kind in kinds:
            required, others = [], []
            for name, needed in _fields(kind):
                (required if needed else others).append(f"`{name}`")
            yield f"| `{kind.__name__}` | `{module.strip()}` | {', '.join(required)} | {', '.join(others)} |"


def _fields(kind: type) -> Iterator[tuple[str, bool]]:
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            missing = dataclasses.MISSING
            yield field.name, field.default is missing and field.default_factory is missing
    else:
        for name, known in kind.model_fields.items():  # type: ignore[attr-defined]
            yield name.rstrip("_"), known.is_required()
