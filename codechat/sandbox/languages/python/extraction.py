"""Extract the Python code of a model's reply and the program to run. Nothing is executed here.

Paper III-E2: a reply counts only if it contains code that follows the predefined signature. The rules, in order (the
first that finds the entry point decides):

1. a whole reply that is valid Python is the code;
2. else, after removal of thoughts, the last fenced Python block that parses and defines the entry point with a body
   (models revise themselves, and show usage last); a block that only imports it, or shows its signature, counts
   only if there is nothing better. Blocks that define missing names are joined with it, in the reply's order;
3. else the joined Python blocks; blocks with another tag; the statements among the prose of an unclosed block; the
   statements outside all blocks.

Of an interactive session only the input lines count. A patch is never applied: the whole code was asked for. A function
bound by assignment or import, or under `if` or `try`, is defined; one in a main guard is not.

A reply is an attempt only if its code has the entry point's name: it defines it or, where it does not parse, has the
head of a definition of it outside comments and strings (`syntax_error`). All else is `no_code`, parsed or not. A fence
with no code in it behind code without a fence is a stray one: it hides nothing.

Without an entry point, the same rules look for code that does something. A function or a class with a body that is no
test replaces the entry point; statements that define none count less, and mere signatures least. Statements next to a
definition that does not parse are no answer, nor are statements of a block with another tag. The program is then the
whole code, because its output or trial may be the answer.
"""

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from codechat.base.domain import Extraction
from codechat.sandbox.languages import no_code
from codechat.sandbox.languages.python import source as reading
from codechat.sandbox.languages.python.source import (
    Definition,
    Source,
    Strength,
    Wrapper,
    module_names,
    parse,
    read,
    tidy,
)
from codechat.sandbox.languages.python.syntax import LONGEST_SOURCE
from codechat.sandbox.languages.replies import Block, Fences, Markdown, split, untag
from codechat.sandbox.languages.thoughts import begins_with_thought, without_thinking

MAX_CHUNKS = 2000
"""Pieces of one reply that are tried, `LONGEST_SOURCE` characters in all; one with more is no answer to a task."""

_CODE_LINE = re.compile(
    r"(?m)^([ \t]*)(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]|import[ \t]+\w|@\w)"
)
_FROM_LINE = re.compile(r"(?m)^([ \t]*)from[ \t]+[\w.]+[ \t]+import\b")
_SURELY_CODE = re.compile(r"(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]")
_FIRST_LINE = re.compile(
    r"(?:async|def|class|import|from|if|for|while|try|with)\b|[@#]|[\w.\[\], ]+[-+*/|&]?=[^=]|\w+\("
)
_CONTINUATION = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]")
_TOKEN = re.compile(r"\\.|'''|\"\"\"|['\"#()\[\]{}]")


@dataclass(slots=True)
class _OpenStatement:
    """Whether a line belongs to a statement begun above, because a triple quote or a bracket is open."""

    quote: str = ""
    depth: int = 0

    @property
    def inside(self) -> bool:
        return bool(self.quote) or self.depth > 0

    def take(self, line: str) -> None:
        short = ""
        for match in _TOKEN.finditer(line):
            token = match[0]
            if self.quote:
                self.quote = "" if token == self.quote else self.quote
            elif short:
                short = "" if token == short else short
            elif len(token) == 3:
                self.quote = token
            elif token in "'\"":
                short = token
            elif token == "#":
                return
            elif token in "([{":
                self.depth += 1
            elif token in ")]}":
                self.depth = max(0, self.depth - 1)


def code_start(text: str) -> int | None:
    """The position of the first line that can only be code, or None."""
    found = [match.start() for pattern in (_CODE_LINE, _FROM_LINE) if (match := pattern.search(text))]
    return min(found, default=None)


def gather(text: str) -> Source | None:
    """The statements of a text that is partly prose, without the prose, or None. A function or class that is not valid
    Python is broken code, not prose: the result is None. All code is taken to have the indentation of its first line.
    Each piece is parsed once: linear."""
    start = code_start(text)
    if start is None:
        return None
    margin = len(text[start:]) - len(text[start:].lstrip(" \t"))
    kept: list[str] = []
    comments: list[str] = []
    left = LONGEST_SOURCE
    for number, chunk in enumerate(_chunks(text, margin)):
        piece = "\n".join(chunk)
        left -= len(piece)
        if number == MAX_CHUNKS or left < 0:
            break
        if piece.startswith("#") and len(chunk) == 1:
            comments.append(piece)
        elif _is_code(piece):
            kept += [*comments, piece]
            comments = []
        elif _SURELY_CODE.match(piece):
            return None
        else:
            comments = []
    return read("\n".join(kept)) if kept else None


def _chunks(text: str, margin: int) -> Iterator[list[str]]:
    chunk: list[str] | None = None
    reader = _OpenStatement()
    for raw in text.split("\n"):
        indented = not raw[:margin].strip()
        line = raw[margin:] if indented else raw.lstrip()
        starts = bool(line.strip()) and (not indented or line[0] not in " \t")
        decorated = chunk is not None and chunk[-1].startswith("@")
        if starts and not reader.inside and not decorated and not (indented and _CONTINUATION.match(line)):
            if chunk is not None:
                yield chunk
            begins = _FIRST_LINE.match if indented else _SURELY_CODE.match  # the first line's indentation may be a slip
            chunk = [] if begins(line) else None
            reader = _OpenStatement()
        if chunk is not None:
            chunk.append(line)
            reader.take(line)
    if chunk is not None:
        yield chunk


def _is_code(piece: str) -> bool:
    tree = parse(piece).tree
    return tree is not None and bool(tree.body) and all(acts(node) for node in tree.body)


def strength(tree: ast.Module, name: str) -> Strength:
    """How well `name` is defined at module level, else as a method of the only class that has it. If `name` is empty:
    how well the module defines anything at all."""
    if not name:
        return max(map(_strength_of, reading.module_level(tree)), default=Strength.NONE)
    at_module_level = max((_binds(node, name) for node in reading.module_level(tree)), default=Strength.NONE)
    if at_module_level:
        return at_module_level
    found = wrapper(tree, name)
    return found.strength if found and not found.obstacle else Strength.NONE


def wrapper(tree: ast.Module, name: str) -> Wrapper | None:
    """The class whose method answers the task (`class Solution:`), if exactly one top-level class has it."""
    found = [
        (node, method)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name == name
    ]
    classes = {node.name for node, _ in found}
    if not found:
        return None
    node, method = found[-1]
    decorators = {inner.id for inner in method.decorator_list if isinstance(inner, ast.Name)}
    unbound = bool(decorators & {"staticmethod", "classmethod"})
    obstacle = ""
    if len(classes) > 1:
        obstacle = f"several classes have a method '{name}': {', '.join(sorted(classes))}"
    elif not unbound and _needs_arguments(node):
        obstacle = f"'{name}' is a method of class {node.name}, whose constructor needs arguments"
    return Wrapper(node.name, not unbound, _body_strength(method.body), obstacle)


def _needs_arguments(node: ast.ClassDef) -> bool:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__new__"):
            arguments = method.args
            positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
            itself = 1 if arguments.posonlyargs or arguments.args else 0
            if positional > itself or any(default is None for default in arguments.kw_defaults):
                return True
    return False


def acts(node: ast.stmt) -> bool:
    """Whether a statement does something; prose that parses by chance is a name, a tuple or a bare annotation."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return not (isinstance(node, ast.AnnAssign) and node.value is None)


def _strength_of(node: ast.stmt) -> Strength:
    if isinstance(node, Definition):
        return Strength.PARTIAL if reading.is_test(node) else _body_strength(node.body)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Strength.STUB
    return Strength.PARTIAL if acts(node) and not isinstance(node, ast.Pass) else Strength.NONE


def _binds(node: ast.stmt, name: str) -> Strength:
    if name not in reading.bound_names(node) or reading.is_main_guard(node):
        return Strength.NONE
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Strength.PARTIAL
    return _body_strength(node.body) if isinstance(node, Definition) else Strength.FULL


def _body_strength(body: list[ast.stmt]) -> Strength:
    return Strength.STUB if all(_says_nothing(statement) for statement in body) else Strength.FULL


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(error, ast.Name) and error.id == "NotImplementedError"
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


def missing_names(text: str) -> set[str]:
    """Global names that a valid module reads, in any scope, and that are neither bound in it nor builtins."""
    module = symtable.symtable(text, "<reply>", "exec")
    bound = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    return reading.global_reads(module) - bound - _BUILTINS


MAX_BLOCKS, MAX_CHARACTERS = 500, 2 * LONGEST_SOURCE
"""Blocks of one reply that are read, from the end, and all their characters; longer replies are no answer to a task."""

_TAG = re.compile(r"(?:i?py(?:thon)?[\d.]*|pycon|python-repl|py-repl)\Z", re.IGNORECASE)
_CODE_START = re.compile(r"(?:async\s+def|def|class|import)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_FENCES = Fences(lambda tag: bool(_TAG.match(tag)), _CODE_START)
_DEFINITION = re.compile(r"(?m)^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w")
_OF_PYTHON = re.compile(r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+\w[^\n]*:[ \t]*$")  # Ruby and Scala have heads like it
_FUTURE = re.compile(r"(?m)^from __future__ import .*$")


def extract(reply: str, entry_point: str) -> Extraction:
    """The code of a reply, and the program that defines `entry_point` at module level; it may be empty. `code` is the
    reply's text (with Unix line ends, without the fence's indentation); `program` has the same lines without test code,
    and binds the method of a class-wrapped answer. Never raises, for any text; linear in the reply's length."""
    with warnings.catch_warnings():  # warnings about the model's code are of no interest
        warnings.simplefilter("ignore")
        text = tidy(untag(tidy(reply), _FENCES.is_tag)[1])
        if not text:
            return no_code("the reply is empty")
        # a line that begins with a fence is no Python, unless a string is open there
        before, fence, _ = f"\n{text}".partition("\n```")
        inside = any(mark in f"{before}\n" for mark in ('"""', "'''", "\\\n"))
        whole = parse(text) if (inside or not fence) and not begins_with_thought(text) else None
        if whole is not None and whole.tree is not None and strength(whole.tree, entry_point):
            return _runnable(whole, entry_point, "the whole reply is code")
        answer = without_thinking(reply)
        markdown = _without_stray_fences(_last_blocks(split(answer, _FENCES)), entry_point)
        return (
            _from_blocks(markdown, entry_point)
            or _from_remnants(markdown, entry_point, whole)
            or _nothing(answer, markdown, entry_point, whole)
        )


def _last_blocks(markdown: Markdown) -> Markdown:
    """The reply with the blocks that are read; a block that is too long to be parsed costs nothing."""
    kept: list[Block] = []
    left = MAX_CHARACTERS
    for block in reversed(markdown.blocks[-MAX_BLOCKS:]):
        left -= len(block.text) if len(block.text) <= LONGEST_SOURCE else 0
        if left < 0:
            break
        kept.append(block)
    return Markdown(tuple(reversed(kept)), markdown.outside)


def _without_stray_fences(markdown: Markdown, entry_point: str) -> Markdown:
    """The reply without the blocks that hold no code, if there is code outside: models close fences that they never
    opened. Without an entry point a closed block may be the output of a trial, and stays."""
    if _begin(markdown.outside, entry_point) is None:
        return markdown

    def stays(block: Block) -> bool:
        return _holds_code(block) or (block.closed and not entry_point)

    return Markdown(tuple(filter(stays, markdown.blocks)), markdown.outside)


def _begin(text: str, entry_point: str) -> int | None:
    """The position of the first line that can only be code, else of the first that binds the entry point, or None."""
    start = code_start(text)
    if start is None and entry_point:
        bound = re.search(rf"(?m)^{re.escape(entry_point)}[ \t]*(?::[^=\n]*)?=(?!=)", text)
        start = bound and bound.start()
    return start


def _holds_code(block: Block) -> bool:
    if block.diff or code_start(block.text) is not None:
        return True
    tree = read(block.text, block.indent).tree
    return tree is not None and any(map(acts, tree.body))


def _is_python(block: Block) -> bool:
    return not block.diff and (not block.tag or _FENCES.is_tag(block.tag))


def _from_blocks(markdown: Markdown, entry_point: str) -> Extraction | None:
    blocks = [block for block in markdown.blocks if _is_python(block)]
    best, best_index, best_strength = None, -1, Strength.NONE
    broken_definition = False
    for index, block in reversed([*enumerate(blocks)]):
        source = read(block.text, block.indent)
        found = strength(source.tree, entry_point) if source.tree else Strength.NONE
        if found == Strength.PARTIAL and not entry_point and not block.tag:  # it may be output
            found = Strength.STUB
        broken_definition |= source.tree is None and bool(_DEFINITION.search(source.text))
        if found > best_strength:
            best, best_index, best_strength = source, index, found
        if found == Strength.FULL:
            break
    only_tries = not entry_point and broken_definition and best_strength < Strength.FULL
    if best is None or only_tries:
        return None
    where = "a fenced block" if len(blocks) == 1 else f"fenced block {best_index + 1} of {len(blocks)}"
    joined = _with_missing(best, best_index, blocks, entry_point)
    return _runnable(joined or best, entry_point, f"{where}, with what it lacks from others" if joined else where)


def _with_missing(chosen: Source, position: int, blocks: list[Block], entry_point: str) -> Source | None:
    """The chosen block joined with blocks that define missing names, the nearest before it first; None if none."""
    if len(blocks) == 1 or not missing_names(chosen.text):
        return None
    providers: dict[str, int] = {}
    sources: dict[int, Source] = {position: chosen}
    for index in [*range(position - 1, -1, -1), *range(position + 1, len(blocks))]:
        source = read(blocks[index].text, blocks[index].indent)
        names = module_names(source.tree) if source.tree else set()
        if index < position or entry_point not in names:
            sources[index] = source
            for name in names:
                providers.setdefault(name, index)
    used, queue = {position}, [position]
    while queue:
        for name in missing_names(sources[queue.pop()].text):
            index = providers.get(name, position)
            if index not in used:
                used.add(index)
                queue.append(index)
    joined = _join([sources[index].text for index in sorted(used)]) if len(used) > 1 else None
    return joined if joined and joined.tree and strength(joined.tree, entry_point) else None


def _join(texts: list[str]) -> Source:
    text = "\n\n".join(texts)
    futures = list(dict.fromkeys(match[0] for match in _FUTURE.finditer(text)))
    return read("\n".join([*futures, _FUTURE.sub("", text)]) if futures else text)


def _from_remnants(markdown: Markdown, entry_point: str, whole: Source | None) -> Extraction | None:
    blocks = markdown.blocks
    least = Strength.FULL if blocks and not entry_point else Strength.STUB
    for source, how in _remnants(blocks, markdown.outside, whole):
        if source is not None and source.tree is not None and strength(source.tree, entry_point) >= least:
            return _runnable(source, entry_point, how)
    return None


def _remnants(blocks: tuple[Block, ...], outside: str, whole: Source | None) -> Iterator[tuple[Source | None, str]]:
    texts = [tidy(block.text) for block in blocks if _is_python(block)]
    if len(texts) > 1:
        yield _join(texts), f"{len(texts)} fenced blocks joined"
    for block in reversed(blocks):
        if not _is_python(block) and not block.diff:
            yield read(block.text, block.indent), f"a fenced block tagged {block.tag}"
    if blocks and not blocks[-1].closed and _is_python(blocks[-1]):
        yield gather(blocks[-1].text), "the statements of an unclosed fence"
    if not blocks:
        outside = untag(outside, _FENCES.is_tag)[1]
        yield read(outside, known=whole), "the whole reply is code"
    yield gather(outside), "the statements among the prose"


def _runnable(source: Source, entry_point: str, where: str) -> Extraction:
    assert source.tree is not None
    at_module_level = entry_point in module_names(source.tree)
    wrapped = None if at_module_level else wrapper(source.tree, entry_point)
    text, dropped = reading.program(source, entry_point, wrapped)
    notes = [where, source.how]
    notes.append(f"'{entry_point}' is bound to the method of class {wrapped.name}" if wrapped else "")
    notes.append(f"{dropped} statements of test code left out" if dropped else "")
    return Extraction(source.text, text, None, "; ".join(note for note in notes if note))


def _nothing(answer: str, markdown: Markdown, entry_point: str, whole: Source | None) -> Extraction:
    """An extraction without a program: code that does not parse is kept, code that lacks the entry point is not."""
    if not answer.strip():
        return no_code("the reply holds nothing but what it thinks")
    blocks = [block for block in markdown.blocks if _is_python(block)]
    sources = [read(block.text, block.indent) for block in blocks]
    start = _begin(markdown.outside, entry_point) if entry_point or not markdown.blocks else None
    outside = [] if start is None else [read(markdown.outside[start:], known=whole)]
    sources += outside if not markdown.blocks else []
    broken = [source for source in sources if source.tree is None]
    if entry_point:
        tagged = [block for block in markdown.blocks if not block.diff and not _is_python(block)]
        others = [read(block.text, block.indent) for block in tagged if _OF_PYTHON.search(block.text)]
        broken = [*(each for each in (*others, *outside) if each.tree is None), *broken]
        attempts = [source for source in broken if _has_head(source.text, entry_point)]
    else:
        attempts = [source for source in broken if _DEFINITION.search(source.text)]
    parsed = [source for source in sources if source.tree is not None and source.tree.body]
    if not entry_point and not attempts and not parsed:
        attempts = [source for source in broken if code_start(source.text) is not None]
    if attempts:
        return Extraction(attempts[-1].text, None, "syntax_error", f"does not parse: {attempts[-1].error}")
    said = any(block.tag and block.text.strip() for block in blocks)
    unnamed = bool(entry_point) and (said or any(code_start(source.text) is not None for source in broken))
    if parsed or unnamed:
        return no_code(_lacks(parsed, entry_point), lacks_name=bool(entry_point))
    if any(block.diff for block in markdown.blocks):
        return no_code("the reply gives a patch, not the whole code")
    if blocks:
        return no_code("no fenced block holds Python code")
    tags = sorted({block.tag for block in markdown.blocks})
    return no_code(f"no Python code: only {', '.join(tags)}" if tags else "no code in the reply")


def _has_head(text: str, name: str) -> bool:
    """Whether code that does not parse has a definition of a name: a head at any depth, or an assignment that is not
    indented. Texts in triple quotes count only if one of them is never closed: then none is known to be a text."""
    name, margin = re.escape(name), len(text) - len(text.lstrip(" \t"))
    head = re.compile(rf"\A[^#\"'\n]*?\b(?:def|class)[ \t]+{name}\b")
    value = re.compile(rf"\A(?:\w+[ \t]*[=,][ \t]*){{0,3}}{name}[ \t]*(?:[:,][^=\n]*)?=(?!=)")
    reader, outside, inside = _OpenStatement(), False, False
    for line in text.split("\n"):
        if head.match(line) or value.match(line if line[:margin].strip() else line[margin:]):
            outside, inside = outside or not reader.quote, True
        reader.take(line)
    return inside if reader.quote else outside


def _lacks(sources: list[Source], entry_point: str) -> str:
    if not sources:
        return f"the code does not parse, and does not define '{entry_point}'"
    if not entry_point:
        return "the code parses, but does nothing"
    trees = [source.tree for source in sources if source.tree is not None]
    for tree in trees:
        if (wrapped := wrapper(tree, entry_point)) and wrapped.obstacle:
            return wrapped.obstacle
    names = sorted({name for tree in trees for name in module_names(tree)})
    defined = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"the code parses, but does not define '{entry_point}' (it defines {defined or 'nothing'})"
