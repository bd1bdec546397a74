"""Java, by the warm compiler and the virtual machine of `junit`: a program has a class `Solution` with the method."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from codechat.base.domain import Failure, Verdict
from codechat.sandbox import Box, Command, SandboxConfig
from codechat.sandbox.suites.calls.drivers import ARGUMENTS, Called, Ready, leaves, register
from codechat.sandbox.suites.compilers import JavaOptions
from codechat.sandbox.suites.junit import REFUSED, THREADS, refuse_little
from codechat.sandbox.suites.junit.toolchain import Compiler, Kind, toolchain

MODIFIERS = re.compile("public|protected|private|static|final|synchronized")
PIECES = re.compile(r"[\w.]+|[<>,()]|\[\s*\]|\S")
OF_UTIL = re.compile(
    r"(?:Array|Linked)?List|Collection|(?:Hash|Tree|LinkedHash|Sorted)?(?:Map|Set)|Optional(?:Int|Long|Double)?"
    r"|(?:Array)?Deque|Queue|Stack|Vector"
)
LISTS = frozenset(("List", "ArrayList", "Collection"))
MAPS = frozenset(("Map", "HashMap", "LinkedHashMap"))
SETS = frozenset(("Set", "HashSet", "LinkedHashSet"))


def _fits(bits: int) -> Callable[[Any], bool]:
    most = 1 << bits - 1
    return lambda value: type(value) is int and -most <= value < most


PLAIN: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("boolean", "Boolean"), lambda value: type(value) is bool),
    **dict.fromkeys(
        ("char", "Character"), lambda value: type(value) is str and len(value) == 1 and value < "\U00010000"
    ),
    **dict.fromkeys(("String", "CharSequence"), lambda value: type(value) is str),
    **dict.fromkeys(
        ("double", "Double"), lambda value: type(value) is float or (type(value) is int and abs(value) <= 2**53)
    ),
    **dict.fromkeys(("byte", "Byte"), _fits(8)),
    **dict.fromkeys(("short", "Short"), _fits(16)),
    **dict.fromkeys(("int", "Integer"), _fits(32)),
    **dict.fromkeys(("long", "Long"), _fits(64)),
    "BigInteger": lambda value: type(value) is int,
}


@dataclass(frozen=True)
class Typed:
    """A type: its name, its parameters, and of how many dimensions an array of it is."""

    name: str
    inner: tuple["Typed", ...] = ()
    arrays: int = 0

    @property
    def text(self) -> str:
        """The type as any source can name it."""
        name = f"java.util.{self.name}" if OF_UTIL.fullmatch(self.name) else self.name
        inner = f"<{', '.join(each.text for each in self.inner)}>" if self.inner else ""
        return name + inner + "[]" * self.arrays

    def holds(self, value: Any) -> bool:
        """Whether a value of Python can be one of this type."""
        if self.arrays or self.name in LISTS:
            each = Typed(self.name, self.inner, self.arrays - 1) if self.arrays else self._inner(0)
            return isinstance(value, (list, tuple)) and all(map(each.holds, value))
        if value is None:
            return not self.name[:1].islower()
        return self._holds_one(value)

    def _holds_one(self, value: Any) -> bool:
        """The same of what is neither null nor a list."""
        if self.name == "Optional":
            return self._inner(0).holds(value)
        if self.name in MAPS:
            pairs = value.items() if isinstance(value, dict) else ()
            fits = all(self._inner(0).holds(key) and self._inner(1).holds(each) for key, each in pairs)
            return isinstance(value, dict) and fits
        if self.name in SETS:
            return isinstance(value, (set, frozenset)) and all(map(self._inner(0).holds, value))
        if self.name == "Object":
            kinds = (bool, float, str, type(None))
            return all(type(leaf) in kinds or PLAIN["long"](leaf) for leaf in leaves(value))
        return self.name in PLAIN and PLAIN[self.name](value)

    def _inner(self, place: int) -> "Typed":
        return self.inner[place] if place < len(self.inner) else Typed("Object")


@dataclass(frozen=True)
class Signature:
    """A method's head: its name, the type that it returns, and the types of its parameters."""

    name: str
    returns: Typed
    parameters: tuple[Typed, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """The head in a line of Java. Raises `ValueError` if it shows none."""
        words = [word for word in PIECES.findall(text) if not MODIFIERS.fullmatch(word)]
        try:
            returns = _type(words)
            name = words.pop(0)
            _take(words, "(")
            parameters: list[Typed] = []
            while words[0] != ")":
                parameters.append(_type(words))
                words.pop(0)  # its name
                words[:1] = [] if words[0] == "," else words[:1]
            return cls(name, returns, tuple(parameters))
        except (IndexError, ValueError):
            raise ValueError(
                f"signature: '{text}' is no head of a method, such as 'int f(List<Integer> all)'"
            ) from None


def _take(words: list[str], wanted: str) -> None:
    if words.pop(0) != wanted:
        raise ValueError(wanted)


def _type(words: list[str]) -> Typed:
    name = words.pop(0).removeprefix("java.util.")
    if not re.fullmatch(r"[\w.]+", name):
        raise ValueError(name)
    inner: list[Typed] = []
    if words[0] == "<":
        while words.pop(0) != ">":  # what is dropped is "<" or ","
            inner.append(_type(words))
    arrays = 0
    while words[0].startswith("["):
        words.pop(0)
        arrays += 1
    return Typed(name, tuple(inner), arrays)


class Java:
    """Arguments have the types of the signature; `Optional` and null are None, arrays are lists."""

    language, version = "java", 1

    def tools(self, config: SandboxConfig, note: Callable[[str], None]) -> Sequence[str]:
        refuse_little(config)
        return toolchain(JavaOptions.of(config).java, note=note).tools

    def inexpressible(self, arguments: Sequence[Any], signature: str) -> str:
        types = Signature.of(signature).parameters
        if len(types) != len(arguments):
            return f"{len(arguments)} arguments for {len(types)} parameters"
        misfit = (each for each, given in zip(types, arguments, strict=True) if not each.holds(given))
        return next((f"an argument as {each.text.replace('java.util.', '')}" for each in misfit), "")

    def ready(self, called: Called, box: Box, config: SandboxConfig) -> Ready | Verdict:
        tools = toolchain(JavaOptions.of(config).java)
        compiler: Compiler = box.keep(str(tools.folder), tools.compiler)
        compiled = compiler.compile(called.source, _caller(called), (), limit_s=config.load_cpu_s)
        if compiled.kind is not Kind.COMPILED:
            outcome, reason = REFUSED[compiled.kind]
            if compiled.kind is Kind.TESTS_DO_NOT_FIT:
                reason = f"Solution has no method {called.entry_point} with the types of its signature"
            failure = Failure(reason, exception=compiled.text.strip() or None)
            return Verdict(outcome, False, failure, compiled.cpu_s, inside="")
        command = Command(
            argv=tuple(tools.call(config.memory_mb, (ARGUMENTS, *(["timed"] if called.timed else [])))),
            files={"unit": compiled.unit},
            environment=tools.environment,
            processes=THREADS,
            tools=tools.tools,
        )
        return Ready(command, compiled.cpu_s)


def _caller(called: Called) -> str:
    """The source by which the method is called: it does not compile unless the method takes and gives these types."""
    signature = Signature.of(called.signature)
    names = [f"a{place}" for place in range(len(signature.parameters))]
    given = ", ".join(f"{each.text} {name}" for each, name in zip(signature.parameters, names, strict=True))
    return f"""final class CodechatCaller {{
    private static final Solution SOLUTION = new Solution();
    static {signature.returns.text} call({given}) throws Throwable {{
        return SOLUTION.{called.entry_point}({", ".join(names)});
    }}
}}
"""


register(Java())
