"""From a pattern to both decisions: does an instruction apply, and was it followed (paper III-D1, III-E1).

A rule is data. `pattern` says what the instruction is about and `quantifier` how much of it is asked for:

- *remove* applies where the pattern is present; adhered to when none is left (`all`) or fewer are (`fewer`);
- *add* applies where there is a place (`where`): with `some` the pattern must be absent before and present after, with
  `more` there must be more of it after, with `all` no place that lacks it may be left;
- *modify* applies where the pattern is present; adhered to when none is left (`all`) or fewer are (`fewer`), and where
  the rule has `into`, when there is more of that than before.

What is added or takes a place has to be used, comments and layout aside (see `codechat.patterns.idle`), and has to do
more than to hand a value through (see `codechat.patterns.carrying`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from codechat.domain import Adherence, Applicability, Change, Instruction, Scope
from codechat.errors import UserError, nearest
from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, Pattern, patterns
from codechat.patterns.carrying import carriers
from codechat.patterns.code import Code, read
from codechat.patterns.idle import idle
from codechat.patterns.tree import FUNCTIONS

BY = "rules"
_QUANTIFIERS: dict[Change, tuple[str, ...]] = {
    "add": ("some", "more", "all"),
    "remove": ("all", "fewer"),
    "modify": ("all", "fewer"),
}
KEYS = ("pattern", "quantifier", "where", "into", "at_least", "keeps")
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Clause:
    """A pattern with its options. One object is one key of what it finds."""

    pattern: Pattern
    options: Mapping[str, Any]

    def present(self, code: Code) -> tuple[Occurrence, ...]:
        if self not in code.found:
            code.found[self] = self.pattern.present(code, self.options)
        found: tuple[Occurrence, ...] = code.found[self]
        return found

    def used(self, code: Code, earlier: Code | None = None) -> tuple[Occurrence, ...]:
        """Its occurrences but for idle ones; with `earlier`, new definitions that nothing names are idle too."""
        found = self.present(code)
        unused = idle(code, earlier) if any(one.node is not None for one in found) else frozenset()
        return tuple(one for one in found if one.node not in unused)

    def working(self, code: Code, earlier: Code | None = None) -> tuple[Occurrence, ...]:
        """Its occurrences that are used and do more than to carry a value."""
        found = self.used(code, earlier)
        carrying = carriers(code) if any(one.node is not None for one in found) else frozenset()
        return tuple(one for one in found if one.node not in carrying)

    def count(self, number: int) -> str:
        """`1 comment`, `2 comments`, `no comment`."""
        noun = self.pattern.noun if number < 2 else self.pattern.plural
        named = {key: ", ".join(value) if isinstance(value, list) else value for key, value in self.options.items()}
        return f"{number or 'no'} {noun.format(**named)}"

    def list(self, found: tuple[Occurrence, ...]) -> str:
        """`2 comments: lines 3, 9`."""
        shown = [f"{one.what} (line {one.line})" if one.what else str(one.line) for one in found[:_SHOWN]]
        more = ", …" if len(found) > _SHOWN else ""
        lines = "" if found and found[0].what else "line " if len(found) == 1 else "lines "
        return f"{lines}{', '.join(shown)}{more}"


@dataclass(frozen=True)
class Rule:
    """What decides an instruction.

    `keeps_parameters`: a changed parameter name of an outer function violates it. `counts_idle`: what is added need not
    be used.
    """

    subject: Clause
    change: Change
    quantifier: str
    where: Clause | None
    into: Clause | None
    at_least: int
    keeps_parameters: bool
    counts_idle: bool

    @property
    def on_tokens(self) -> bool:
        """Whether code that does not parse can still be decided."""
        clauses = (self.subject, self.where, self.into)
        return all(clause.pattern.on_tokens for clause in clauses if clause is not None)

    def unreadable(self, code: Code) -> str:
        """Why the rule cannot be decided on this code, or nothing."""
        return code.tokens_problem if self.on_tokens else code.problem

    def already(self, code: Code) -> tuple[Occurrence, ...]:
        """What is there already of what would be added: what is used, even if it only carries a value."""
        return self.subject.present(code) if self.counts_idle else self.subject.used(code)

    def made(self, clause: Clause, code: Code, earlier: Code | None = None) -> tuple[Occurrence, ...]:
        """What counts as added, or as having taken a place."""
        return clause.present(code) if self.counts_idle else clause.working(code, earlier)


@lru_cache(maxsize=1024)
def rule_of(instruction: Instruction) -> Rule | None:
    """The instruction's rule, None where only an LLM can judge. Raises `UserError` for a rule that makes no sense."""
    if instruction.rule is None:
        return None
    try:
        return _compile(instruction.rule, instruction.scope, instruction.change)
    except UserError as error:
        raise UserError(f"the rule of instruction '{instruction.id}': {error.message}", error.remedy) from error


def _compile(rule: Mapping[str, Any], scope: Scope, change: Change) -> Rule:
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
        subject=_clause({"pattern": rule.get("pattern"), **options}),
        change=change,
        quantifier=quantifier,
        where=_clause(where) if where is not None else None,
        into=_clause(into) if into is not None else None,
        at_least=at_least,
        keeps_parameters="keeps" in rule,
        counts_idle=scope == "cosmetic",
    )


def _clause(value: Any) -> Clause:
    options = {"pattern": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
    name = options.pop("pattern", None)
    known = patterns()
    if name not in known:
        raise UserError(f"no pattern is called '{name}'", nearest(str(name), known))
    known[name].check_options(options)
    return Clause(known[name], options)


def applicable(code: str, instruction: Instruction) -> Applicability:
    """Whether the instruction fits the code; undecided (None) where it has no rule."""
    rule = rule_of(instruction)
    if rule is None:
        return Applicability(None, BY, "no rule decides this instruction")
    fits, reason = _applies(read(code), rule)
    return Applicability(fits, BY, reason)


def _applies(code: Code, rule: Rule) -> tuple[bool, str]:
    if not code.text.strip():
        return False, "there is no code"
    problem = rule.unreadable(code)
    if problem:
        return False, f"the code {problem}"
    if rule.change != "add":
        found = rule.subject.present(code)
        enough = len(found) >= rule.at_least
        return enough, f"{rule.subject.count(len(found))}" + (f": {rule.subject.list(found)}" if found else "")
    found = rule.already(code) if rule.quantifier == "some" else ()
    if found:
        return False, f"already there: {rule.subject.list(found)}"
    assert rule.where is not None
    places = rule.where.present(code)
    enough = len(places) >= rule.at_least
    return enough, f"{rule.where.count(len(places))}" + (f": {rule.where.list(places)}" if places else "")


def adherence(before: str, after: str, instruction: Instruction) -> Adherence:
    """Whether the change did what was asked, correctness aside; undecided where the instruction has no rule."""
    rule = rule_of(instruction)
    if rule is None:
        return Adherence("undecided", BY, "no rule decides this instruction")
    old, new = read(before), read(after)
    fault = _not_a_revision(old, new, rule) or _unmet(old, new, rule)
    if fault:
        return Adherence("violated", BY, fault)
    return Adherence("adhered", BY, _done(old, new, rule))


def _not_a_revision(old: Code, new: Code, rule: Rule) -> str:
    if old.text.strip("\n") == new.text.strip("\n"):
        return "the code is unchanged"
    if not new.text.strip():
        return "there is no code"
    problem = rule.unreadable(new)
    if problem:
        return f"the code {problem}"
    was, now = _outer(old), _outer(new)
    if was and new.tree is not None and not was.keys() & now.keys():
        return f"the function {next(iter(was))} is gone"
    if rule.keeps_parameters:
        for name in was.keys() & now.keys():
            if was[name] != now[name]:
                return f"the parameters of {name} changed from ({', '.join(was[name])}) to ({', '.join(now[name])})"
    return ""


def _outer(code: Code) -> dict[str, list[str]]:
    """The parameter names of every function that stands at module level or in a class there."""
    found: dict[str, list[str]] = {}
    for node in code.tree.body if code.tree else []:
        inner: list[Any] = getattr(node, "body", []) if type(node).__name__ == "ClassDef" else [node]
        for function in inner:
            if isinstance(function, FUNCTIONS):
                found[function.name] = [parameter.arg for parameter in parameters(function)]
    return found


def _unmet(old: Code, new: Code, rule: Rule) -> str:
    """What of the request is not done, or nothing."""
    if rule.change == "add":
        assert rule.where is not None
        left = rule.where.present(new) if rule.quantifier == "all" else ()
        if left:
            return f"{rule.where.count(len(left))} left: {rule.where.list(left)}"
        return _not_more(rule, rule.subject, old, new, "nothing was added")
    was, now = rule.subject.present(old), rule.subject.present(new)
    if not was and not rule.unreadable(old):
        return f"there was {rule.subject.count(0)} to begin with"
    if rule.quantifier == "all" and now:
        return f"{rule.subject.count(len(now))} left: {rule.subject.list(now)}"
    if len(now) >= len(was) and was:
        return f"no fewer than before: {rule.subject.count(len(now))}"
    return _not_more(rule, rule.into, old, new, "nothing took its place") if rule.into is not None else ""


def _not_more(rule: Rule, clause: Clause, old: Code, new: Code, fault: str) -> str:
    was, now = len(rule.made(clause, old)), rule.made(clause, new, old)
    if len(now) > was:
        return ""
    unused = tuple(one for one in clause.present(new) if one not in now)
    if len(now) + len(unused) > was:
        carried = all(one.node in carriers(new) for one in unused)
        why = "what was added only passes a value on" if carried else "nothing uses what was added"
        return f"{why}: {clause.count(len(unused))}: {clause.list(unused)}"
    return f"{fault}: {clause.count(was)} before, {len(now) or 'none'} after"


def _done(old: Code, new: Code, rule: Rule) -> str:
    clause = rule.subject
    if rule.change == "add":
        made = rule.made(clause, new, old)
        return f"{clause.count(len(made))}: {clause.list(made)}"
    was, now = clause.present(old), clause.present(new)
    if rule.into is not None:
        made = rule.made(rule.into, new, old)
        return f"{clause.count(len(now))} left; {rule.into.count(len(made))}: {rule.into.list(made)}"
    return f"{clause.count(len(now))} left of {len(was)}"
