"""A turn of an agent as its record has it: what it said, the steps that it took, and the files that it changed."""

import hashlib
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any

import jmespath

from codechat.base.domain import STEP_KINDS, AgentStep, Message, StepKind
from codechat.base.template import fill
from codechat.base.texts import writable
from codechat.models.agent.config import OutputConfig
from codechat.sandbox.languages import LONGEST_REPLY

WORKSPACE, HOME = "workspace/", "home/"
"""The folders in an archive of a room."""
MOST_STEPS, LONGEST_TEXT, LONGEST_SAID = 100, 2000, 100_000
"""Steps of a turn that are kept, characters of each of their texts, and of the last message."""
LONGEST_NOTE = 16 << 20
"""Bytes of an agent's output, or of the file in place of it."""
LONGEST_DIFF, LONGEST_COMPARED, MOST_LINES = 20_000, 100_000, 2_000
"""Characters of a turn's diff, and characters and lines of a file in it."""
LEFTOVERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".git"})
"""Folders whose changes are no edits."""
RUNS_CODE = re.compile(
    r"(?:\A|[;&|(\n'\"])[ \t]*(?:[\w./-]*/)?"
    r"(?:python[\d.]*|pytest|node|deno|bun|tsx?|java|javac|kotlinc?|go|cargo|rustc|gcc|g\+\+|clang|make|mvn|dotnet|ruby)\b"
)
"""A command that starts an interpreter, a compiler or a test runner."""


def prompt_of(messages: Sequence[Message], turn: int, here: str, file: str) -> str:
    """The prompt of an agent: the newest message, after the system's at the first turn, and the sentence `here`."""
    system = [each.content for each in messages if each.role == "system" and not turn]
    return "\n\n".join((*system, messages[-1].content.strip("\n"), fill(here, file=file)))


@dataclass(frozen=True, slots=True)
class Said:
    """The last message, the conversation's name, and the steps. `omitted` steps are left out."""

    reply: str
    session: str
    steps: tuple[AgentStep, ...]
    omitted: int

    @property
    def ran_code(self) -> bool:
        """Whether a command ran code."""
        return any(each.kind == "command" and RUNS_CODE.search(each.text) for each in self.steps)


def read_output(config: OutputConfig, output: bytes) -> Said:
    """What an agent printed. Lines that are no JSON, as where a long output was cut, are left out."""
    text = output.decode("utf-8", "replace")
    if config.format == "text":
        return Said(_bounded(text.strip(), LONGEST_SAID), "", (), 0)
    reply = session = ""
    parts: dict[str, dict[str, Any]] = {}
    for value in _values(text, lines=config.format == "jsonl"):
        reply = _text(jmespath.search(config.reply, value)) or reply
        session = _text(jmespath.search(config.session, value)) or session
        found = jmespath.search(config.steps, value)
        for step in found if isinstance(found, list) else ():
            if isinstance(step, Mapping):
                known = parts.setdefault(str(step.get("id") or f"unnamed {len(parts)}"), {})
                known |= {
                    name: part for name, part in step.items() if not (part is None or part is False or part == "")
                }
    steps = [_step(each) for each in parts.values() if each.get("text")]
    return Said(_bounded(reply, LONGEST_SAID), session, tuple(steps[:MOST_STEPS]), max(0, len(steps) - MOST_STEPS))


def _values(text: str, *, lines: bool) -> Iterator[Any]:
    for part in text.split("\n") if lines else (text,):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue


def _text(value: Any) -> str:
    return str(writable(value)) if isinstance(value, str) else ""


def _step(parts: Mapping[str, Any]) -> AgentStep:
    status = parts.get("status")
    kind: StepKind = next((each for each in STEP_KINDS if each == parts.get("kind")), "tool")
    return AgentStep(
        kind,
        _bounded(parts["text"]),
        _bounded(parts.get("output", "")),
        status if isinstance(status, int) and not isinstance(status, bool) else None,
    )


def _bounded(value: Any, most: int = LONGEST_TEXT) -> str:
    text = str(writable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Files:
    """The regular files in an archive of a room, by path in the archive."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._entries: dict[str, tuple[bytes, int, int]] = {}  # hash, place in the archive, length
        with tarfile.open(archive) as opened:
            for entry in opened:
                if entry.isreg() and (data := opened.extractfile(entry)):
                    self._entries[entry.name] = hashlib.sha256(data.read()).digest(), entry.offset_data, entry.size

    def text(self, path: str, folder: str = WORKSPACE, most: int = LONGEST_REPLY + 1) -> str | None:
        """A file's text, cut after so many bytes: by default where no reply is that long; None without such a file."""
        if f"{folder}{path}" not in self._entries:
            return None
        _, place, length = self._entries[f"{folder}{path}"]
        with self._archive.open("rb") as stream:
            stream.seek(place)
            return str(writable(stream.read(min(length, most)).decode("utf-8", "replace")))

    def changed(self, after: "Files") -> list[str]:
        """The paths of files that another state lacks, or has otherwise, without leftovers of tools."""
        old, new = ({path: entry[0] for path, entry in each._entries.items()} for each in (self, after))
        paths = (path for path in {**old, **new} if path.startswith(WORKSPACE) and old.get(path) != new.get(path))
        return sorted(path.removeprefix(WORKSPACE) for path in paths if not LEFTOVERS & {*PurePosixPath(path).parts})


@dataclass(frozen=True, slots=True)
class Changes:
    """What a turn did to the files: the code's file with the numbers of its added and removed lines, and the others.

    `noted` is the file in HOME that the agent wrote in the turn, if any.
    """

    file: str | None
    added: int
    removed: int
    elsewhere: int
    diff: str
    noted: str

    @classmethod
    def between(cls, old: Files, new: Files, file: str, note: str | None) -> "Changes":
        """The changes from one state to another, in time that is linear in their size."""
        text, earlier = new.text(file), old.text(file)
        paths = [path for path in old.changed(new) if path != file]
        notes = [each.text(note, HOME, LONGEST_NOTE) or "" for each in (old, new)] if note else ["", ""]
        noted = notes[1] if notes[0] != notes[1] else ""
        return cls(text, *lines_changed(earlier, text), len(paths), _diff(old, new, paths), noted)


def lines_changed(before: str | None, after: str | None) -> tuple[int, int]:
    """The numbers of lines that were added and removed; a moved line is neither."""
    old, new = (Counter((text or "").splitlines()) for text in (before, after))
    return (new - old).total(), (old - new).total()


def _diff(before: Files, after: Files, paths: list[str]) -> str:
    """The changes of text files, bounded; of long ones the name alone."""
    whole = ""
    for path in paths:
        texts = before.text(path) or "", after.text(path) or ""
        old, new = (text.splitlines() for text in texts)
        if sum(map(len, texts)) > LONGEST_COMPARED or len(old) + len(new) > MOST_LINES:
            part = f"--- {path}: too long to be compared\n"
        else:
            lines = unified_diff(old, new, f"before/{path}", f"after/{path}", lineterm="")
            part = "\n".join(lines) + "\n"
        if len(whole) + len(part) > LONGEST_DIFF:
            return f"{whole}{part[: LONGEST_DIFF - len(whole)]}…"
        whole += part
    return whole
