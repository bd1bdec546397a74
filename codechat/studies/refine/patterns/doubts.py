"""Reasons to doubt: the form that was asked for is there, but reading cannot show that it does anything.

Nothing here says that an instruction was violated. If there is a doubt the rule is undecided, and a judge who can read
more than form has to decide. Most changes that follow an instruction rework the existing code, and no doubt arises.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Clause, Rule, clause_of
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, docstring, walk

_DEFINES = (*FUNCTIONS, ast.ClassDef)
_AROUND_ON_PURPOSE = ("backward_iteration", "collection", "keyword_argument", "keyed_call")
"""Patterns that properly go around an existing value: `reversed(values)`, `tuple(values)`, one more argument."""
_JOINED = ("arithmetic", "augmented_assignment", "listed_membership", "mergeable_if", "old_formatting",
           "passing_variable")  # fmt: skip
"""Patterns of which several may properly merge into a single replacement."""
_WAYS_AROUND = ["__import__", "importlib.*", "slice", "AssertionError", "sys.std*.write", "os.write", "operator.not_",
                "operator.getitem", ".__*__", "exec", "globals", "locals", "vars"]  # fmt: skip
"""Ways to keep a construct under another name, which does not show what it does."""
_KIN: dict[str, tuple[Any, ...]] = {
    "nested_function": ("lambda",),
    "passing_variable": ("walrus", "assert"),
    "if_with_else": ("elif",),
    "list_comprehension": ("generator_expression",),
    "joined_import": ("joined_statements",),
    "collecting_loop": ({"pattern": "use", "names": [".extend", ".update"]},),
}
"""For some constructs that were to go: patterns that often replace them and may amount to the same."""


def doubt(rule: Rule, old: Code, new: Code) -> str:
    """The reason to doubt that a change follows the instruction although its form is there; empty if there is none."""
    if rule.change == "add":
        return _of_added_text(rule, new) if rule.counts_idle else _of_added_code(rule, old, new)
    return _of_other_forms(rule, old, new) or (_of_too_few(rule, rule.into, old, new) if rule.into else "")


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
        if not went.total() and 0 < came.total() < 4 and _asks_for_rework(rule.where, old):
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


def _asks_for_rework(where: Clause, old: Code) -> bool:
    """Whether the addition was asked for at certain statements or expressions, rather than at functions as a whole."""
    nodes = [one.node for one in where.present(old)]
    return any(node is not None and not isinstance(node, (*_DEFINES, ast.arg)) for node in nodes)


def _is_kept_whole(old: Code, went: Counter[str], new: Code, came: Counter[str]) -> bool:
    """Whether the values of all removed statements recur inside added statements, or are just `{}`.

    The added code then only has something around the old one.
    """
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
    for clause in _clauses(rule.subject.pattern.name):
        was, now = clause.present(old), clause.present(new)
        if len(now) > len(was):
            return f"there may be another form of it: {clause.count(len(now))}: {clause.list(now)}"
    gone = _texts_gone(rule, old)
    said = _words(new.text)
    kept = [one for one in gone if " " in one.strip() and one in said]
    moves = rule.into is not None and rule.into.pattern.name == "comment"
    return f"its text is still there: {kept[0].strip()[:60]}" if kept and not moves else ""


@cache
def _clauses(name: str) -> tuple[Clause, ...]:
    around = {"pattern": "use", "names": _WAYS_AROUND}
    return tuple(clause_of(one) for one in (around, *_KIN.get(name, ())))


def _words(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _texts_gone(rule: Rule, old: Code) -> Iterable[str]:
    """The words of comments and docstrings that were to go, without the phrase that the rule looks for.

    Of a docstring only the first line.
    """
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
