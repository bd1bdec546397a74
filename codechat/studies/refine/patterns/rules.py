"""From a pattern to both decisions: does an instruction apply, and was it followed (paper III-D1, III-E1).

A rule is data. `pattern` names the construct that the instruction is about, and `quantifier` says how much of it is
asked for:

- *remove* applies if the pattern is present; it is followed if none is left (`all`) or fewer are (`fewer`);
- *add* applies if there is a place for it (`where`); with `some` the pattern must be absent before and present after,
  with `more` there must be more of it after, with `all` no place that lacks it may be left;
- *modify* applies if the pattern is present; it is followed if none is left (`all`) or fewer are (`fewer`), and, if the
  rule has `into`, if there is more of that than before.

An addition or replacement has to be used, comments and layout excepted (`reading.use`). A rule reads form: if the form
is there and its use cannot be seen, the rule is undecided (`doubts`).

In another language than Python a rule has the patterns of its neutral tree (`trees`). A rule whose patterns are not
among them cannot be stated there, and the instruction has none.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from codechat.base.domain import Adherence, Applicability, Change, Instruction, Scope
from codechat.base.errors import UserError, nearest
from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Clause, Readable, Rule, clause_of
from codechat.studies.refine.patterns.doubts import doubt
from codechat.studies.refine.patterns.finders.functions import helper
from codechat.studies.refine.patterns.reading.code import Code, read
from codechat.studies.refine.patterns.reading.neutral import TreeCode, read_tree
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS
from codechat.studies.refine.patterns.trees import tree_clause
from codechat.studies.refine.patterns.trees.flow import doubt_in

PYTHON = "python"
BY = "rules"
_QUANTIFIERS: dict[Change, tuple[str, ...]] = {
    "add": ("some", "more", "all"),
    "remove": ("all", "fewer"),
    "modify": ("all", "fewer"),
}
KEYS = ("pattern", "quantifier", "where", "into", "at_least", "keeps")


@lru_cache(maxsize=1024)
def rule_of(instruction: Instruction) -> Rule | None:
    """The instruction's rule; None if only a language model can judge it. Raises `UserError` for an invalid rule."""
    if instruction.rule is None:
        return None
    try:
        return _compile(instruction.rule, instruction.scope, instruction.change, instruction.language)
    except UserError as error:
        raise UserError(f"the rule of instruction '{instruction.id}': {error.message}", error.remedy) from error


def states(instruction: Instruction) -> bool:
    """Whether the instruction has a rule that can be stated in its language."""
    try:
        return rule_of(instruction) is not None
    except UserError:
        return False


def _compile(rule: Mapping[str, Any], scope: Scope, change: Change, language: str) -> Rule:
    clause = clause_of if language == PYTHON else tree_clause
    quantifier = rule.get("quantifier", "some" if change == "add" else "all")
    if quantifier not in _QUANTIFIERS[change]:
        raise UserError(f"quantifier '{quantifier}' does not fit '{change}'", nearest("", _QUANTIFIERS[change]))
    where, into = rule.get("where"), rule.get("into")
    if where is None and change == "add":
        where = "function"
    if quantifier == "all" and change == "add" and "where" not in rule:
        raise UserError("adding to all places needs 'where', the pattern of the places that lack it", "add `where: …`")
    if rule.get("keeps") not in (None, "parameters"):
        raise UserError(f"keeps '{rule['keeps']}' is unknown", "the only one is 'parameters'")
    at_least = rule.get("at_least", 1)
    if not isinstance(at_least, int) or at_least < 1:
        raise UserError(f"at_least {at_least!r} is no count", "give a whole number from 1")
    options = {key: value for key, value in rule.items() if key not in KEYS}
    return Rule(
        subject=clause({"pattern": rule.get("pattern"), **options}),
        change=change,
        quantifier=quantifier,
        where=clause(where) if where is not None else None,
        into=clause(into) if into is not None else None,
        at_least=at_least,
        keeps_parameters="keeps" in rule,
        counts_idle=scope == "cosmetic" or language != PYTHON,  # a tree's patterns ask for the use themselves
    )


def applicable(code: str, instruction: Instruction) -> Applicability:
    """Whether the instruction fits the code; undecided (None) if it has no rule."""
    rule = rule_of(instruction)
    if rule is None:
        return Applicability(None, BY, "no rule decides this instruction")
    fits, reason = _applies(_read(code, instruction), rule)
    return Applicability(fits, BY, reason)


def _read(code: str, instruction: Instruction) -> Readable:
    return read(code) if instruction.language == PYTHON else read_tree(code, instruction.language)


def _applies(code: Readable, rule: Rule) -> tuple[bool, str]:
    if not code.text.strip():
        return False, "there is no code"
    if problem := rule.unreadable(code):
        return False, f"the code {problem}"
    if rule.change != "add":
        found = rule.subject.present(code.whole)
        enough = len(found) >= rule.at_least
        return enough, f"{rule.subject.count(len(found))}" + (f": {rule.subject.list(found)}" if found else "")
    found = rule.made(rule.subject, code.whole) if rule.quantifier == "some" else ()
    if found:
        return False, f"already there: {rule.subject.list(found)}"
    assert rule.where is not None
    places = rule.where.present(code.whole if rule.quantifier == "all" else code)
    enough = len(places) >= rule.at_least
    return enough, f"{rule.where.count(len(places))}" + (f": {rule.where.list(places)}" if places else "")


def adherence(before: str, after: str, instruction: Instruction) -> Adherence:
    """Whether the change follows the instruction, correctness aside; undecided if the instruction has no rule."""
    rule = rule_of(instruction)
    if rule is None:
        return Adherence("undecided", BY, "no rule decides this instruction")
    old, new = _read(before, instruction), _read(after, instruction)
    fault = _not_a_revision(old, new, rule) or _unmet(old, new, rule)
    if fault:
        return Adherence("violated", BY, fault)
    done = _done(old, new, rule)
    if isinstance(old, TreeCode) and isinstance(new, TreeCode):
        unseen = doubt_in(old, new)
    else:
        assert isinstance(old, Code) and isinstance(new, Code)
        unseen = doubt(rule, old, new)
    if unseen:
        return Adherence("undecided", BY, f"{done}, but {unseen}")
    return Adherence("adhered", BY, done)


def _not_a_revision(old: Readable, new: Readable, rule: Rule) -> str:
    if old.text.strip("\n") == new.text.strip("\n"):
        return "the code is unchanged"
    if not new.text.strip():
        return "there is no code"
    problem = rule.unreadable(new)
    if problem:
        return f"the code {problem}"
    was, now = _outer(old), _outer(new)
    if was and not new.problem and not was.keys() & now.keys():
        return f"the function {next(iter(was))} is gone"
    if rule.keeps_parameters:
        for name in was.keys() & now.keys():
            if was[name] != now[name] and not _renames_within(old, name, was[name], now[name], rule):
                return f"the parameters of {name} changed from ({', '.join(was[name])}) to ({', '.join(now[name])})"
    return ""


def _renames_within(old: Readable, name: str, was: list[str], now: list[str], rule: Rule) -> bool:
    """Whether only matching parameters of a function without outside callers were renamed."""
    matches = rule.subject.options.get("matches")
    inner = isinstance(old, Code) and name.startswith("_") and any(one.what == name for one in helper(old))
    if matches is None or not inner or len(was) != len(now):
        return False
    return all(one == other or re.fullmatch(matches, one) for one, other in zip(was, now, strict=True))


def _outer(code: Readable) -> dict[str, list[str]]:
    """The parameter names of every function at module level or in a class at module level."""
    if isinstance(code, TreeCode):
        return code.outer
    found: dict[str, list[str]] = {}
    for node in code.tree.body if code.tree else []:
        inner: list[Any] = getattr(node, "body", []) if type(node).__name__ == "ClassDef" else [node]
        for function in inner:
            if isinstance(function, FUNCTIONS):
                found[function.name] = [parameter.arg for parameter in parameters(function)]
    return found


def _unmet(old: Readable, new: Readable, rule: Rule) -> str:
    """The part of the request that is not done; empty if all is done."""
    if rule.change == "add":
        assert rule.where is not None
        places = rule.where.present(new.whole) if rule.quantifier == "all" else ()
        if places:
            return f"{rule.where.count(len(places))} left: {rule.where.list(places)}"
        return _not_more(rule, rule.subject, old, new, "nothing was added")
    left = _left(rule, old, new)
    if left or rule.into is None:
        return left
    return _not_more(rule, rule.into, old, new, "nothing took its place")


def _left(rule: Rule, old: Readable, new: Readable) -> str:
    """The occurrences left, here or under the main guard; empty if none is."""
    clause = rule.subject
    was, now = clause.present(old.whole), clause.present(new)
    guarded = clause.present(new.whole)
    if not was and not rule.unreadable(old):
        return f"there was {clause.count(0)} to begin with"
    if rule.quantifier == "all" and now:
        return f"{clause.count(len(now))} left: {clause.list(now)}"
    moved = len(guarded) - len(now) > len(was) - len(clause.present(old))
    if moved or (rule.quantifier == "all" and guarded):
        how = "moved" if moved else "left"
        return f"{how} under the main guard: {clause.count(len(guarded))}: {clause.list(guarded)}"
    return f"no fewer than before: {clause.count(len(guarded))}" if len(guarded) >= len(was) > 0 else ""


def _not_more(rule: Rule, clause: Clause, old: Readable, new: Readable, fault: str) -> str:
    was, now = len(rule.made(clause, old)), rule.made(clause, new, old)
    if len(now) > was and (rule.quantifier != "more" or len(clause.present(new)) > len(clause.present(old))):
        return ""
    unused = tuple(one for one in clause.present(new) if one not in now)
    if len(now) + len(unused) > was:
        return f"nothing uses what was added: {clause.count(len(unused))}: {clause.list(unused)}"
    return f"{fault}: {clause.count(was)} before, {len(now) or 'none'} after"


def _done(old: Readable, new: Readable, rule: Rule) -> str:
    clause = rule.subject
    if rule.change == "add":
        made = rule.made(clause, new, old)
        return f"{clause.count(len(made))}: {clause.list(made)}"
    was, now = clause.present(old), clause.present(new)
    if rule.into is not None:
        made = rule.made(rule.into, new, old)
        return f"{clause.count(len(now))} left; {rule.into.count(len(made))}: {rule.into.list(made)}"
    return f"{clause.count(len(now))} left of {len(was)}"
