"""The files of a build: a Dockerfile, refused if it would reach beyond its own container, and a maintainer's files.

A Dockerfile is read as the engine reads it. A maintainer's file is also written in the worktree, by a command there
that has the rights of the maintainer's own commands.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

HEAD = re.compile(r"\s*(?:#[^\n]*\s*)*")
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(syntax|escape)[ \t]*=[ \t]*\S", re.IGNORECASE | re.MULTILINE)
CONTINUED = re.compile(r"\\[ \t]*(?:\n|$)")
FROM = re.compile(r"^(?P<flags>(?:--\S+\s+)*)(?P<base>\S+)(?P<rest>\s+as\s+(?P<name>\S+))?\s*$", re.IGNORECASE)
VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
FLAGS = re.compile(r"(?:--\S*\s*)*")
PIECE = 20_000  # characters that one command writes: quoted, they fit into the argument of a shell


class Refused(Exception):
    """A build is refused. The message has the reason."""


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile's text with its bases mapped, and the images that it needs."""

    text: str
    bases: tuple[str, ...]


def recipe(text: str, images: Mapping[str, str], *, network: bool) -> Recipe:
    """Check a Dockerfile and replace its base images by `images`. Raises `Refused`.

    Comments at the top that choose another reader of the file, which would be downloaded and run, are refused.
    """
    head = HEAD.match(text.removeprefix("\ufeff"))
    if head and (directive := DIRECTIVE.search(head[0])):
        raise Refused(f"the line '# {directive[1].lower()}=' chooses another reader of the file")
    reader = _Reader(images, network)
    made = [reader.read(instruction) for instruction in instructions(text)]
    if not reader.started:
        raise Refused("it has no FROM")
    return Recipe("\n".join(made) + "\n", tuple(dict.fromkeys(reader.bases)))


def instructions(text: str) -> list[str]:
    """The instructions as single lines, without comments, each with one space after its first word."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    code = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    whole = CONTINUED.sub("", code).split("\n")
    return [" ".join(line.strip().split(maxsplit=1)) for line in whole if line.strip()]


class _Reader:
    def __init__(self, images: Mapping[str, str], network: bool) -> None:
        self._images, self._network = images, network
        self._defaults: dict[str, str] = {}
        self._stages: set[str] = set()
        self.bases: list[str] = []
        self.started = False

    def read(self, instruction: str) -> str:
        """The instruction with its images mapped. Raises `Refused`."""
        word, _, rest = instruction.partition(" ")
        while word.upper() == "ONBUILD":
            word, _, rest = rest.strip().partition(" ")
        word, rest = word.upper(), rest.strip()
        if word == "FROM":
            return self._from(rest)
        if word == "ARG" and not self.started:
            name, equals, value = rest.partition("=")
            if equals:
                self._defaults[name.strip()] = value.strip().strip("\"'")
        if word == "RUN" and rest.startswith("--"):
            raise Refused(f"RUN {rest[:80]}: a build has no mounts, no rights and no network of the host")
        if word in ("ADD", "COPY"):
            return self._copied(word, rest, instruction)
        return instruction

    def _from(self, rest: str) -> str:
        self.started = True
        match = FROM.match(VARIABLE.sub(self._value, rest))
        if match is None or "$" in match["base"]:
            raise Refused(f"FROM {rest[:80]}: the base cannot be told")
        base, name = self._image(match["base"]), match["name"]
        if not name:
            return f"FROM {base}"
        self._stages.add(name.lower())
        return f"FROM {base} AS {name}"

    def _copied(self, word: str, rest: str, instruction: str) -> str:
        if word == "ADD" and not self._network and re.search(r"://|git@|\$", rest):
            raise Refused("ADD downloads, and builds have no network (environment.build_network=true)")
        flags = FLAGS.match(rest)
        for source in re.findall(r"--from=(\S+)", flags[0] if flags else ""):
            if "$" in source:
                raise Refused(f"{word} --from={source[:80]}: the image cannot be told")
            if not source.isdigit():
                instruction = instruction.replace(f"--from={source}", f"--from={self._image(source)}", 1)
        return instruction

    def _image(self, name: str) -> str:
        """The name of a stage, or of the image to be used, which is then one of the bases."""
        if name.lower() in self._stages or name == "scratch":
            return name
        self.bases.append(self._images.get(name, name))
        return self.bases[-1]

    def _value(self, match: re.Match[str]) -> str:
        value = self._defaults.get(match[1] or match[3], match[2])
        return match[0] if value is None else value


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a file's path below the repository's root. Raises `Refused` for paths outside it or in `.git`."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or ".git" in path.parts:
        raise Refused(f"'{name[:200]}' is no path of a file in the repository")
    return path.parts


def commands_writing(files: Mapping[str, str]) -> Iterator[str]:
    """Shell commands for the repository's root that write files as a build gets them.

    Refused paths are left out. A file that leads through a link, or has the name of a folder, is not written.
    """
    for name, text in files.items():
        try:
            parts = parts_of(name)
        except Refused:
            continue
        pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)] or [""]
        for number, piece in enumerate(pieces):
            yield _command(parts, piece, more=number > 0)


def _command(parts: tuple[str, ...], text: str, *, more: bool) -> str:
    """The command that writes a file or, for `more`, appends to it."""
    places = [shlex.quote("./" + "/".join(parts[:length])) for length in range(1, len(parts) + 1)]
    *folders, place = places
    steps = [f"test ! -L {folder}" for folder in folders]
    steps += [f"mkdir -p {folders[-1]}"] if folders and not more else []
    steps.append(f"test ! -L {place}" if more else f"{{ test ! -L {place} || rm -f {place}; }}")
    prints = [f"printf %s {shlex.quote(part)}" if part != "\0" else r"printf '\000'" for part in re.split("(\0)", text)]
    return " && ".join([*steps, f"{{ {'; '.join(prints)}; }} {'>>' if more else '>'} {place}"])
