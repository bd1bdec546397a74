"""A program's text, read without running it: the places, documentation, annotations and parameters of functions."""

import ast
import builtins
import functools
import inspect
import io
import operator
import typing
from collections.abc import Iterator
from typing import Any

# Modules, and parts of NumPy's and others', whose names in the program stand for the modules themselves.
_STANDARD = "collections datetime decimal fractions functools itertools json math numbers operator re statistics"
SHARED = frozenset(f"{_STANDARD} numpy string types typing".split())
TYPES_OF = frozenset(("collections", "collections.abc", "datetime", "decimal", "fractions", "typing"))
CUSTOMARY = {"numpy": "np"}
PARTS = frozenset(("collections.abc", "numpy.linalg", "numpy.typing"))
CACHES = (functools.cache, functools.lru_cache)  # decorators that leave a function what its text says
Function = ast.FunctionDef | ast.AsyncFunctionDef
KINDS = inspect.Parameter
SIMPLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class NotPlain(Exception):
    """The text is not plain enough to be read without running it."""


def split_lines(source: str) -> list[str]:
    """The lines of a text as Python counts them (a form feed ends none), with their ends."""
    return io.StringIO(source, newline="").readlines()


class Text:
    """A program's text. Nothing of it is ever run, and its strings are never evaluated."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._bound = list(_bindings(tree))
        self._functions = {node.name: node for node in tree.body if isinstance(node, Function)}
        self._imports = dict(_imports(tree))
        self._deferred = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)

    def function(self, name: str) -> Function:
        """The definition of a function. Raises `NotPlain` if there are other bindings, or decorators but caches."""
        ways = [way for bound, way in self._bound if bound in (name, "*")]
        if name not in self._functions or any(way != "def" for way in ways):
            raise NotPlain(f"{name} is not bound by one plain definition")
        for decorator in self._functions[name].decorator_list:
            node = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not any(self._of_name(node) is cache for cache in CACHES):
                raise NotPlain(f"{name} has a decorator")
        return self._functions[name]

    def plain_function(self, name: str) -> Function:
        """The definition of a function without a decorator that is neither a generator nor async."""
        node = self.function(name)
        waits = any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) for part in ast.walk(node))
        if waits or node.decorator_list or isinstance(node, ast.AsyncFunctionDef):
            raise NotPlain(f"{name} is no plain function")
        return node

    def imported(self, name: str) -> Any:
        """The module, or the member of a module, that the text imports by this name; raises `NotPlain`."""
        ways = {way for bound, way in self._bound if bound == name}
        if name not in self._imports or ways != {"import"}:
            raise NotPlain(f"{name} is no import of the program")
        module, member = self._imports[name]
        if module not in SHARED | PARTS or member.startswith("_"):
            raise NotPlain(f"the program imports {name}")
        try:
            found = __import__(module, fromlist=["*"])
            return getattr(found, member) if member else found
        except (ImportError, AttributeError) as error:
            raise NotPlain(f"the program imports {name}") from error

    def meant(self, name: str) -> Any:
        """The import of a name that means the same in every program: a module by its own name, a type of `collections`
        and the like. Raises `NotPlain` for others: a function could replace another one."""
        value = self.imported(name)
        module, member = self._imports[name]
        usual = name in (module, CUSTOMARY.get(module)) if not member else name == member and module in TYPES_OF
        if not usual or (member and not isinstance(value, type) and type(value).__module__ != "typing"):
            raise NotPlain(f"the program imports {name}")
        return value

    def documentation(self, node: Function) -> str | None:
        """The function's `__doc__` as the compiler writes it."""
        first = node.body[0] if isinstance(node.body[0], ast.Expr) else None
        if first is None or not isinstance(first.value, ast.Constant) or not isinstance(first.value.value, str):
            return None
        bare = ast.parse("def bare(): pass")
        definition = bare.body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.body = [first]
        space: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(bare), "<documentation>", "exec"), space)
        return space["bare"].__doc__  # type: ignore[no-any-return]

    def annotations(self, node: Function, strings: bool = False) -> dict[str, Any]:
        """The function's `__annotations__`; `strings`: strings are evaluated. Raises `NotPlain`."""
        extra = [node.args.vararg, *node.args.kwonlyargs, node.args.kwarg]
        ordered = [*node.args.posonlyargs, *node.args.args, *filter(None, extra)]
        given = {parameter.arg: parameter.annotation for parameter in ordered if parameter.annotation is not None}
        if node.returns is not None:
            given["return"] = node.returns
        if self._deferred and not strings:
            for value in given.values():
                self._evaluate(value, True)
            return {name: ast.unparse(value) for name, value in given.items()}
        found = {name: self._evaluate(value, strings) for name, value in given.items()}
        return {name: type(None) if strings and value is None else value for name, value in found.items()}

    def signature(self, node: Function) -> inspect.Signature:
        """The function's signature. Raises `NotPlain` for a default that is no literal."""
        notes = self.annotations(node)
        defaults = _defaults(node)
        parameters = []
        for name, kind in _kinds(node):
            default = _literal(defaults[name]) if name in defaults else KINDS.empty
            parameters.append(KINDS(name, kind, default=default, annotation=notes.get(name, KINDS.empty)))
        return inspect.Signature(parameters, return_annotation=notes.get("return", KINDS.empty))

    def _evaluate(self, node: ast.expr, strings: bool) -> Any:
        if isinstance(node, ast.Constant):
            return self._constant(node.value, strings)
        if isinstance(node, ast.Name):
            return self._type(node.id)
        if isinstance(node, ast.Tuple | ast.List):
            items = [self._evaluate(item, strings) for item in node.elts]
            return tuple(items) if isinstance(node, ast.Tuple) else items
        return self._of_parts(node, strings)

    def _of_parts(self, node: ast.expr, strings: bool) -> Any:
        try:
            if isinstance(node, ast.Subscript):
                return self._parametrized(node, strings)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                return operator.or_(self._evaluate(node.left, strings), self._evaluate(node.right, strings))
            if isinstance(node, ast.Attribute):
                return self._of_name(node)
        except (TypeError, AttributeError, SyntaxError, LookupError, ValueError) as error:
            raise NotPlain(f"the annotation {ast.unparse(node)[:100]}") from error
        raise NotPlain(f"the annotation {ast.unparse(node)[:100]}")

    def _parametrized(self, node: ast.Subscript, strings: bool) -> Any:
        of = self._evaluate(node.value, strings)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if of is typing.Literal and all(isinstance(item, ast.Constant) for item in items):
            return typing.Literal[tuple(item.value for item in items if isinstance(item, ast.Constant))]
        if of in (typing.Annotated, typing.Literal) or not (isinstance(of, type) or type(of).__module__ == "typing"):
            raise NotPlain(f"the annotation {ast.unparse(node)[:100]}")
        return operator.getitem(of, self._evaluate(node.slice, strings))

    def _of_name(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self.imported(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and not node.attr.startswith("_"):
            return getattr(self.imported(node.value.id), node.attr, None)
        raise NotPlain(f"the expression {ast.unparse(node)[:100]}")

    def _constant(self, value: Any, strings: bool) -> Any:
        """A constant; a string only if it could be evaluated here, too, since a snippet may do that."""
        if not isinstance(value, str):
            return value
        try:
            meant = self._evaluate(ast.parse(value.strip(), mode="eval").body, True)
        except (SyntaxError, ValueError) as error:
            raise NotPlain(f"the annotation {value[:100]!r}") from error
        return meant if strings else value

    def _type(self, name: str) -> Any:
        if any(bound == name for bound, _ in self._bound):
            return self.imported(name)
        value = vars(builtins).get(name)
        if not isinstance(value, type):
            raise NotPlain(f"the annotation {name}")
        return value


def bound_names(source: str) -> set[str]:
    """The names that a program's text binds at top level; with a star import also the names of all builtins."""
    try:
        found = {name for name, _ in _bindings(ast.parse(source))}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return found | set(vars(builtins)) if "*" in found else found


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every name bound at the top level or by a `global` statement, and the way."""
    for node in tree.body:
        yield from _bound_by(node, "def" if isinstance(node, Function) else "otherwise")
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            yield from ((name, "otherwise") for name in inner.names)


def _bound_by(node: ast.AST, way: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, SIMPLE):
        if not isinstance(node, ast.Lambda):
            yield node.name, way
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], "import"
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, "otherwise"
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, "otherwise"
    for inner in ast.iter_child_nodes(node):
        yield from _bound_by(inner, "otherwise")


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that the text imports at its top level, and what they stand for: a module, or a member of one."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, (whole, "")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)


def _kinds(node: Function) -> Iterator[tuple[str, Any]]:
    yield from ((parameter.arg, KINDS.POSITIONAL_ONLY) for parameter in node.args.posonlyargs)
    yield from ((parameter.arg, KINDS.POSITIONAL_OR_KEYWORD) for parameter in node.args.args)
    if node.args.vararg:
        yield node.args.vararg.arg, KINDS.VAR_POSITIONAL
    yield from ((parameter.arg, KINDS.KEYWORD_ONLY) for parameter in node.args.kwonlyargs)
    if node.args.kwarg:
        yield node.args.kwarg.arg, KINDS.VAR_KEYWORD


def _defaults(node: Function) -> dict[str, ast.expr]:
    given = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(given[len(given) - len(node.args.defaults) :], node.args.defaults, strict=True)]
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return {parameter.arg: default for parameter, default in (*pairs, *named) if default is not None}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise NotPlain(f"the default {ast.unparse(node)[:100]}") from error
