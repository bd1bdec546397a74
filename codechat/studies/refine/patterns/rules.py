"""From a pattern to both decisions: does an instruction apply, and was it followed (paper III-D1, III-E1).

A rule is data. `pattern` names the construct that the instruction is about, and `quantifier` says how much of it is
asked for:

- *remove* applies if the pattern is present; it is followed if none is left (`all`) or fewer are (`fewer`);
- *add* applies if there is a place for it (`where`); with `some` the pattern must be absent before and present after,
  with `more` there must be more of it after, with `all` no place that lacks it may be left;
- *modify* applies if the pattern is present; it is followed if none is left (`all`) or fewer are (`fewer`), and, if the
  rule has `into`, if there is more of that than before.

An addition or replacement has to be used, comments and layout excepted (`reading.use`). A rule reads form: if the form
is there and its use cannot be seen, the rule is undecided (`doubt`): a judge who can read more than form has to
decide. Most changes that follow an instruction rework the existing code, and no doubt arises.

In another language than Python a rule has the patterns of its neutral tree (`trees`). A rule whose patterns are not
among them cannot be stated there, and the instruction has none.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from codechat.base.domain import Adherence, Applicability, Change, Instruction, Scope
from codechat.base.errors import UserError, nearest
from codechat.sandbox.languages.python.syntax import parameters
from codechat.sandbox.languages.python.target import unread
from codechat.studies.refine.patterns.base import Clause, Readable, Rule, clause_of
from codechat.studies.refine.patterns.finders.functions import helper
from codechat.studies.refine.patterns.reading.code import Code, read
from codechat.studies.refine.patterns.reading.neutral import TreeCode, read_tree
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, docstring, walk
from codechat.studies.refine.patterns.trees import tree_clause
from codechat.studies.refine.patterns.trees.flow import doubt_in

PYTHON = "python"
BY = "rules"
_QUANTIFIERS: dict[Change, tuple[str, ...]] = {
    "add": ("some", "more", "all"), "remove": ("all", "fewer"), "modify": ("all", "fewer"),
}  # fmt: skip
KEYS = ("pattern", "quantifier", "where", "into", "at_least", "keeps")
_DEFINES = (*FUNCTIONS, ast.ClassDef)
_AROUND_ON_PURPOSE = ("backward_iteration", "collection", "keyword_argument", "keyed_call")
"""Patterns that properly go around an existing value: `reversed(values)`, `tuple(values)`, one more argument."""
_JOINED = ("arithmetic", "augmented_assignment", "listed_membership", "mergeable_if", "old_formatting",
           "passing_variable")  # fmt: skip
"""Patterns of which several may properly merge into a single replacement."""
_WAYS_AROUND = ["__import__", "importlib.*", "slice", "AssertionError", "sys.std*.write", "os.write", "operator.not_",
                "operator.getitem", ".__*__", "exec", "globals", "locals", "vars"]  # fmt: skip
"""Ways to keep a construct under another name, which does not show what it does."""
_MOVING = [".insert", ".pop", ".remove", "heapq.*", "bisect.*"]
"""Ways in which a sorting algorithm moves elements, as do recursion and assignments to an index."""
_KIN: dict[str, tuple[Any, ...]] = {
    "nested_function": ("lambda",), "passing_variable": ("walrus", "assert"), "if_with_else": ("elif",),
    "forward_loop": ("comprehension",),
    "list_comprehension": ("generator_expression",), "joined_import": ("joined_statements",),
    "collecting_loop": ({"pattern": "use", "names": [".extend", ".update"]},),
}  # fmt: skip
"""For some constructs that were to go: patterns that often replace them and may amount to the same."""


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
    if rule.get("pattern") == "passing_variable" and into is not None:  # of `x = []; return x` a literal is left
        into = [*(into if isinstance(into, list) else [into]), "literal_return"]
    if quantifier == "all" and change == "add" and "where" not in rule:
        raise UserError("adding to all places needs 'where', the pattern of the places that lack it", "add `where: …`")
    if rule.get("keeps") not in (None, "parameters"):
        raise UserError(f"keeps '{rule['keeps']}' is unknown", "the only one is 'parameters'")
    at_least = rule.get("at_least", 1)
    if not isinstance(at_least, int) or at_least < 1:
        raise UserError(f"at_least {at_least!r} is no count", "give a whole number from 1")
    options = {key: value for key, value in rule.items() if key not in KEYS}
    return Rule(
        clause({"pattern": rule.get("pattern"), **options}), change, quantifier,
        where=clause(where) if where is not None else None, into=clause(into) if into is not None else None,
        at_least=at_least, keeps_parameters="keeps" in rule,
        counts_idle=scope == "cosmetic" or language != PYTHON,  # a tree's patterns ask for the use themselves
    )  # fmt: skip


def applicable(code: str, instruction: Instruction) -> Applicability:
    """Whether the instruction fits the code; undecided (None) if it has no rule."""
    rule = rule_of(instruction)
    if rule is None:
        return Applicability(None, BY, "no rule decides this instruction")
    if unseen := _unread(instruction, code):
        return Applicability(None, BY, unseen)
    fits, reason = _applies(_read(code, instruction), rule)
    return Applicability(fits, BY, reason)


def readable(code: str, language: str) -> bool:
    """Whether code parses in a language of rules, or may where it runs."""
    if language == PYTHON:
        return not read(code).problem or bool(unread(code))
    tree = read_tree(code, language)
    return not tree.problem or bool(tree.unread)


def decidable(code: str, instruction: Instruction) -> bool:
    """Whether the instruction's rule can read this code; some patterns are found in code that does not parse."""
    rule = rule_of(instruction)
    return rule is None or not rule.unreadable(_read(code, instruction))


def _unread(instruction: Instruction, *codes: str) -> str:
    """Why the rules cannot read code that may be of its language where it runs; else empty."""
    if instruction.language == PYTHON:
        return next(filter(None, map(unread, codes)), "")
    problems = (read_tree(code, instruction.language).unread for code in codes)
    return next((f"the code {problem}" for problem in problems if problem), "")


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
    if unseen := _unread(instruction, before, after):
        return Adherence("undecided", BY, unseen)
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


def doubt(rule: Rule, old: Code, new: Code) -> str:
    """The reason to doubt that a change follows the instruction although its form is there; empty if there is none."""
    if rule.change == "add":
        return _of_added_text(rule, new) if rule.counts_idle else _of_added_code(rule, old, new)
    if rule.subject.pattern.name == "listed_membership" and not clause_of("membership_test").present(new):
        return "nothing is tested for membership any more"
    if rule.into is not None and "sorted" in rule.subject.options.get("names", ()) and not _moves_elements(new):
        return "nothing moves elements as sorting does"
    return _of_other_forms(rule, old, new) or (_of_too_few(rule, rule.into, old, new) if rule.into else "")


def _moves_elements(code: Code) -> bool:
    stored = any(isinstance(one.ctx, ast.Store) for one in code.find(ast.Subscript))
    return stored or bool(clause_of(["recursion", {"pattern": "use", "names": _MOVING}]).present(code))


def _of_added_text(rule: Rule, new: Code) -> str:
    """A doubt if the added comment contains nothing but the words that the instruction asked for."""
    mark = rule.subject.options.get("matches", "")
    if rule.subject.pattern.name not in ("comment", "header_comment") or rule.quantifier != "some":
        return ""
    found = {one.line for one in rule.subject.present(new)}
    lines = found | {line + 1 for line in found}  # an example continues in the next line
    texts = [
        re.sub(mark, lambda found: re.sub(r"\D", "", found[0]), one.text, flags=re.IGNORECASE)
        for one in new.comments
        if one.line in lines
    ]
    said = any(re.search(r"\w", one) for one in texts) or (mark and not re.search(r"[A-Za-z]{3}", mark))
    return "" if said else "the comment says nothing"


def _of_added_code(rule: Rule, old: Code, new: Code) -> str:
    """A doubt if the added code only stands around or next to the old code, which does all the work as before."""
    went, came = _statements(old), _statements(new)
    went, came = went - came, came - went
    made = rule.made(rule.subject, new, old)
    name = rule.subject.pattern.name
    if rule.quantifier == "some" and rule.where is not None and name != "guard":
        places = [one.node for one in rule.where.present(old)]  # statements and expressions, or functions as a whole?
        rework = any(node is not None and not isinstance(node, (*_DEFINES, ast.arg)) for node in places)
        if not went.total() and 0 < came.total() < 4 and rework:
            return "what was there stayed as it was"
        around = went.total() == 1 == came.total() and name not in _AROUND_ON_PURPOSE
        if around and not rule.subject.options.get("in_hint") and _is_kept_whole(old, went, new, came):
            return "what was there only has something around it"
    there = {one.node for one in rule.subject.present(old)}
    for one in made:
        if one.node is not None and one.node not in there and (why := _of_one(new, one.node, name)):
            return why
    return ""


def _statements(code: Code) -> Counter[str]:
    """How often each statement occurs, written out; of a compound one the first line only. Imports are left out."""
    if _statements not in code.found:
        code.found[_statements] = Counter(
            _head(node) for node in code.find(ast.stmt) if not isinstance(node, ast.Import | ast.ImportFrom)
        )
    found: Counter[str] = code.found[_statements]
    return found


def _head(statement: ast.stmt) -> str:
    kind = type(statement).__name__
    if isinstance(statement, ast.For | ast.AsyncFor):
        return f"{kind} {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}"
    if isinstance(statement, ast.If | ast.While):
        return f"{kind} {ast.unparse(statement.test)}"
    return f"{kind} {getattr(statement, 'name', '')}" if hasattr(statement, "body") else ast.unparse(statement)


def _is_kept_whole(old: Code, went: Counter[str], new: Code, came: Counter[str]) -> bool:
    """Whether the values of all removed statements recur inside added statements, or are just `{}`."""
    values = [_value(one) for one in old.find(ast.stmt) if _head(one) in went]
    inner = {
        ast.unparse(part) for one in new.find(ast.stmt) if _head(one) in came
        for value in [_value(one)] if value is not None for part in walk(value) if isinstance(part, ast.expr)
    }  # fmt: skip
    return any(values) and all(value is None or ast.unparse(value) in {*inner, "{}"} for value in values)


def _value(statement: ast.stmt) -> ast.expr | None:
    """The value, condition or iterable of a statement."""
    found = (getattr(statement, name, None) for name in ("value", "iter", "test"))
    return next((one for one in found if isinstance(one, ast.expr)), None)


def _of_one(code: Code, node: ast.AST, name: str) -> str:
    """A doubt about one added construct, looked at by itself."""
    call = code.parents.get(node) if isinstance(node, ast.Name | ast.Attribute) else node
    function, why = code.function_of(node), ""
    if isinstance(call, ast.Call):
        why = _of_call(code, call)
    elif isinstance(node, ast.Try):
        why = _of_try(node)
    elif name == "with" and "nullcontext(" in ast.unparse(node):
        why = "it manages nothing"
    elif name == "finally" and isinstance(node, ast.Pass):
        why = "nothing stands in it"
    elif isinstance(node, ast.Match):
        first = node.cases[0].pattern
        decides = len(node.cases) > 1 or not isinstance(first, ast.MatchAs) or first.pattern is not None
        why = "" if decides else "it decides nothing between cases"
    elif name == "decorated" and isinstance(node, FUNCTIONS):
        heads = {ast.unparse(one) for one in node.decorator_list}
        makers = [one for one in code.functions if one.name in heads]
        inside = [each for one in makers for each in walk(one) if isinstance(each, ast.stmt)]
        idle = bool(inside) and all(isinstance(one, (ast.Return, ast.Expr, *FUNCTIONS)) for one in inside)
        why = "the decorator may do nothing of its own" if idle else ""
    if function is None and name == "assert" and code.functions:
        why = "it stands outside of the functions, which it may just test"
    if function is not None and (name == "assert" or (name == "call" and ".debug" in ast.unparse(node))):
        computed = {one.id for one in walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        computed -= {one.arg for one in parameters(function)}
        if not any(isinstance(one, ast.Name) and one.id in computed for one in walk(node)):
            why = "it looks at nothing that the function computed"
    return why


def _of_call(code: Code, call: ast.Call) -> str:
    origin, function = code.called(call.func), code.function_of(call)
    if origin == "functools.partial" and len(call.args) + len(call.keywords) < 2:
        return "it fixes no argument"
    if origin in ("threading.Lock", "threading.RLock"):
        made = function is not None and function.name != "__init__"
        taken = any(code.find(ast.With)) or any(one.attr == "acquire" for one in code.find(ast.Attribute))
        return "it is made anew at each call" if made else "" if taken else "nothing takes it"
    return ""


def _of_try(node: ast.Try) -> str:
    kinds = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Attribute, ast.Compare, ast.Raise, ast.For)
    if not any(isinstance(one, kinds) for each in node.body for one in walk(each)):
        return "there is hardly anything in it that could fail"
    again = [isinstance(one.body[-1], ast.Raise) and one.body[-1].exc is None for one in node.handlers]
    return "" if all(again) else "it may hide an exception or raise another one"


def _of_other_forms(rule: Rule, old: Code, new: Code) -> str:
    """A doubt if more of a related construct is found than before, or if the removed text is still in the program."""
    for clause in _kin_of(rule.subject.pattern.name):
        was, now = clause.present(old), clause.present(new)
        if len(now) > len(was):
            return f"there may be another form of it: {clause.count(len(now))}: {clause.list(now)}"
    gone = _texts_gone(rule, old)
    said = _words(new.text)
    kept = [one for one in gone if " " in one.strip() and one in said]
    moves = rule.into is not None and rule.into.pattern.name == "comment"
    return f"its text is still there: {kept[0].strip()[:60]}" if kept and not moves else ""


@cache
def _kin_of(name: str) -> tuple[Clause, ...]:
    around = {"pattern": "use", "names": _WAYS_AROUND}
    return tuple(map(clause_of, (around, *_KIN.get(name, ()))))


def _words(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _texts_gone(rule: Rule, old: Code) -> Iterable[str]:
    """The words of removed comments and first lines of docstrings, without the phrase of the rule."""
    name, mark = rule.subject.pattern.name, rule.subject.options.get("matches", "")
    if rule.change != "remove" or rule.quantifier != "all":
        return
    lines = {one.line for one in rule.subject.present(old)}
    if name == "comment":
        yield from (_words(re.sub(mark, "", one.text, flags=re.I)) for one in old.comments if one.line in lines)
    elif name in ("any_docstring", "module_docstring"):
        texts = [docstring(one) for one in old.find(ast.Module, *_DEFINES)]
        found = [str(one.value).strip() for one in texts if one is not None and one.lineno in lines]
        yield from (_words(text.partition("\n")[0]) for text in found)


def _of_too_few(rule: Rule, into: Clause, old: Code, new: Code) -> str:
    """A doubt if fewer replacements came than constructs went: the rest may have become something else."""
    made = rule.made(into, new, old)
    lost = len(rule.subject.present(old)) - len(rule.subject.present(new))
    gained = len(made) - len(rule.made(into, old))
    whole = any(isinstance(one.node, _DEFINES) for one in made)  # one function may do the work of several loops
    if rule.quantifier != "all" or gained >= lost or whole or rule.subject.pattern.name in _JOINED:
        return ""
    return f"only {gained} took the place of {lost}"
