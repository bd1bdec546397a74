"""Read the files of an answer: `CREATE_FILE[path]:` to `END_FILE`, `MODIFY_DOCKERFILE:` to `END_DOCKERFILE`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

DOCKERFILE = "Dockerfile"
"""The name under which a changed Dockerfile is recorded."""
_OPENING = re.compile(r"[ \t>*_`]*(?:CREATE_FILE\[(?P<path>[^\n]*)\]|MODIFY_DOCKERFILE)[*_`]*:[*_`]*[ \t]*$")
_ENDS = {"END_FILE", "END_DOCKERFILE"}
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LONGEST_PATH = 1_000


@dataclass(frozen=True, slots=True)
class Changes:
    """Files by their path in the build context, the whole text of a changed Dockerfile, and what does not count."""

    files: Mapping[str, str] = field(default_factory=dict)
    dockerfile: str | None = None
    refused: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The paths of what is changed."""
        return [*sorted(self.files), *([DOCKERFILE] if self.dockerfile is not None else [])]

    def then(self, later: "Changes") -> "Changes":
        """These changes followed by later ones: of a file or Dockerfile that both have, the later counts."""
        dockerfile = self.dockerfile if later.dockerfile is None else later.dockerfile
        return Changes({**self.files, **later.files}, dockerfile, later.refused)


def read_changes(answer: str) -> Changes:
    """The changes of an answer. A block without its end, and a path that leaves the build context, is refused."""
    files: dict[str, str] = {}
    dockerfile: str | None = None
    refused: list[str] = []
    lines = answer.split("\n")
    place = 0
    while place < len(lines):
        opening = _OPENING.match(lines[place])
        place += 1
        if opening is None:
            continue
        path = opening["path"]
        what = "MODIFY_DOCKERFILE" if path is None else f"CREATE_FILE[{path[:200]}]"
        end = _end(lines, place, "END_DOCKERFILE" if path is None else "END_FILE")
        if end is None:
            refused.append(f"{what}: its end is missing")
            continue
        content, place = _content(lines[place:end]), end + 1
        problem = "" if path is None else _problem_of(path.strip())
        if problem:
            refused.append(f"{what}: {problem}")
        elif path is None:
            dockerfile = content
        else:
            files[str(PurePosixPath(path.strip()))] = content
    return Changes(files, dockerfile, tuple(refused))


def _end(lines: list[str], start: int, word: str) -> int | None:
    """The line that ends a block; None if another block begins, or ends, before."""
    for place in range(start, len(lines)):
        said = lines[place].strip(" \t>*_`")
        if said == word:
            return place
        if said in _ENDS or _OPENING.match(lines[place]):
            return None
    return None


def _content(lines: list[str]) -> str:
    """The text of a block, without a fence around the whole of it."""
    inner = [place for place, line in enumerate(lines) if line.strip()]
    if len(inner) > 1:
        first, last = lines[inner[0]], lines[inner[-1]]
        opened = _FENCE.match(first)
        if opened and last.strip() == opened[1]:
            lines = lines[inner[0] + 1 : inner[-1]]
    return "".join(line + "\n" for line in lines)


def _problem_of(path: str) -> str:
    """Why a path cannot be written; empty if it can."""
    parts = PurePosixPath(path).parts
    if not parts or len(path) > _LONGEST_PATH or any(ord(letter) < 32 or letter == "\\" for letter in path):
        return "it names no file"
    if path.startswith(("/", "~")) or ".." in parts:
        return "it leaves the repository"
    if ".git" in (part.lower() for part in parts):
        return "it is a part of git's own folder"
    return ""
