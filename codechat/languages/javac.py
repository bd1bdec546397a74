"""Java's compiler: how it checks a version, and what of its errors comes from libraries that are not there."""

import re
from dataclasses import dataclass

from codechat.languages.compiling import Attempt, Version, at_line

_ERROR = re.compile(r"(?m)^[^\n:]+\.java:(\d+): error: (.*)((?:\n {2}.*)*)")
_IMPORT = re.compile(r"(?m)^[ \t]*import\s+(static\s+)?([\w.]+?)\.(\w+|\*)\s*;")
_PACKAGE = re.compile(r"package ([\w.]+) does not exist")
_SYMBOL = re.compile(r"symbol:\s+(\w+) (\S+)")
_LOCATION = re.compile(r"location:\s+(?:variable \S+ of type|\w+) ([\w.]+)")
_JDK = re.compile(r"(?:java|javax(?!\.annotation$)|jdk|sun)\.")
_JDK_ALONE = re.compile(r"(?:java|jdk|sun)(?:\.|$)")  # packages of javax are libraries too
_PUBLIC = re.compile(
    r"public\s+(?:(?:final|abstract|sealed|strictfp)\s+)*(?:class|interface|enum|record)\s+(\w{1,100})\b"
)
_FILE = re.compile(r"class \S+ is public, should be declared in a file")
_OVERRIDES = "method does not override or implement a method from a supertype"


@dataclass(frozen=True)
class Javac:
    """javac. It goes on to check types where a library is missing, but not what a program does in what order."""

    program = "javac"
    suffix = ".java"
    asks_version = ("-version",)
    asks_home: Attempt = ()
    exact = False
    sample = "class Program { }\n"
    bounds: Attempt = (
        *("-J-Xmx512m", "-J-Xss8m", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData"),
        *("-J-XX:-UseContainerSupport", "-J-XX:CompressedClassSpaceSize=128m", "-J-XX:ErrorFile=/dev/null"),
        *("-J-Duser.language=en", "-J-Duser.country=US", "-encoding", "UTF-8"),
        *("-proc:none", "-implicit:none", "-nowarn", "-Xlint:none", "-d", "."),
    )
    checks: Attempt = (
        *("-Xmaxerrs", "10000", "-XDdiags.showSource=false", "-XDdiags.formatterOptions=-simpleNames,-where"),
        *("-XDshould-stop.ifError=ATTR", "-XDshould-stop.ifNoError=FLOW"),
    )

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The release: 8 of 1.8."""
        release = version[1] if version[0] == 1 and len(version) > 1 else version[0]
        return (("--release", str(release)),)

    def file_name(self, code: str) -> str:
        """That of the first public type."""
        public = _PUBLIC.search(code)
        return f"{public[1] if public and public[1].isascii() else 'Program'}.java"

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        """The name of a further public type's file is a matter of files, and no error of the language (JLS 7.6)."""
        found = [match.groups() for match in _ERROR.finditer(output)]
        missing = _Missing.of(code, [said + more for _, said, more in found])
        sorted_out: tuple[list[str], list[str]] = ([], [])
        for line, said, more in found:
            outside = bool(_FILE.match(said)) or missing.explains(said, more)
            sorted_out[outside].append(at_line(line, f"{said} {more}"))
        return sorted_out


@dataclass(frozen=True)
class _Missing:
    """The packages that are not there, the names imported from them, whether these may be any, and whether a type of
    the program's own has members from them, because it extends or is annotated by one."""

    packages: frozenset[str]
    names: frozenset[str]
    every: bool
    members: bool

    @classmethod
    def of(cls, code: str, errors: list[str]) -> "_Missing":
        absent = {package for each in errors for package in _PACKAGE.findall(each)}
        poorer = {_place(each) for each in errors if "location: package" in each}
        packages = {package for package in absent if not _JDK_ALONE.match(package)}
        packages |= {package for package in poorer if not _JDK.match(package)}
        gone = [
            (static, name)
            for static, package, name in _IMPORT.findall(code)
            if any(f"{package}.".startswith(f"{each}.") for each in packages)
        ]
        names = frozenset(name for _, name in gone if name != "*")
        every = any(static or name == "*" for static, name in gone)
        return cls(frozenset(packages), names, every, every or _builds_on(code, names))

    def explains(self, said: str, more: str) -> bool:
        """Whether an error comes of what is missing."""
        if package := _PACKAGE.match(said):
            return package[1] in self.packages
        if said == _OVERRIDES:
            return self.members
        symbol = _SYMBOL.search(more)
        if said != "cannot find symbol" or symbol is None:
            return False
        place, name = _place(more), re.split(r"[<(]", symbol[2])[0]
        if "location: package" in more:
            return place in self.packages
        if _JDK.match(place):
            return False  # the version's own library lacks it
        return name in self.names or self.every or (symbol[1] != "class" and self.members)


def _place(text: str) -> str:
    found = _LOCATION.search(text)
    return "" if found is None else found[1]


def _builds_on(code: str, names: frozenset[str]) -> bool:
    """Whether a type extends, implements or is annotated by one of the names."""
    headers = re.findall(r"(?:\b(?:extends|implements)\s+([^{;]{1,500})|@(\w+))", code)
    return any(not names.isdisjoint(re.findall(r"\w+", part)) for header in headers for part in header)
