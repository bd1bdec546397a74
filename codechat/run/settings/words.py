"""The words of a command line, made ready for Hydra: what is meant as a text need not be quoted for its grammar.

A prompt may be in a file, and all prompts of a protocol or judge may be a preset: a folder `conf/prompts/KIND/NAME`
with a file for each prompt that it has.
"""

import shlex
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codechat.base.environment import data_folder
from codechat.base.errors import UserError, nearest
from codechat.run.settings.config import GROUPS

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

FILE = "@"
"""Begins the value of a prompt that is in a file: `protocol.prompts.initial=@my.md`."""
SAMPLES = "samples"
"""The one option of a run that no cell has: how many seeds are run."""
PROMPTS = "prompts"
"""The option that holds prompts; `protocol.prompts=plain` names a preset for all of them."""


@dataclass
class Words:
    """Overrides for Hydra; the texts, and the presets of prompts, that take their places in the composed values."""

    overrides: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    presets: dict[str, str] = field(default_factory=dict)

    def place_texts(self, values: MutableMapping[Any, Any]) -> None:
        """Put presets, then texts, where they belong. Hydra has checked the texts' keys.

        Raises `UserError` for a preset that does not exist.
        """
        for key, name in self.presets.items():
            place_preset(key, name, values)
        for key, text in self.texts.items():
            *parents, last = key.split(".")
            node: Any = values
            for name in parents:
                node = node[name]
            node[last] = text


def read_words(words: Sequence[str]) -> Words:
    """Make every word readable for Hydra. Raises `UserError` that names the option and shows how to quote its value.

    A prompt is taken as it stands, or from a file, unless Hydra reads it as a text; so is any other value that
    Hydra cannot read, unless it begins as a list, a mapping or a quoted text does. A mapping given for a key replaces
    the old one; Hydra alone would merge the two. A name for all prompts, as in `protocol.prompts=plain`, is a preset.
    """
    ready = Words()
    for word in words:
        override = parse_word(word)
        preset = override.value() if override and override.key_or_group.rpartition(".")[2] == PROMPTS else None
        if override and isinstance(preset, str):
            ready.presets[override.key_or_group] = preset
            continue
        text = _text_of(word, override)
        key = word.partition("=")[0]
        if text is not None:
            ready.texts[key.lstrip("+")] = text
            ready.overrides.append(f"{key}=''")
            continue
        if override is None:
            raise _unreadable(word)
        if isinstance(override.value(), dict) and not word.startswith(("+", "~")):
            ready.overrides.append(f"{override.key_or_group}=null")
        ready.overrides.append(word)
    return ready


def _text_of(word: str, override: "Override | None") -> str | None:
    """The text that a word gives to its key; None if Hydra is to read it. Raises `UserError` for a missing file."""
    key, equals, value = word.partition("=")
    if not equals:
        return None
    # a group cannot hold a text, nor what Hydra reads as a package or a deletion
    if override is None and (key in GROUPS or not all(part.isidentifier() for part in key.split("."))):
        return None
    if PROMPTS in key.split(".")[:-1]:
        read = override.value() if override is not None else None
        written = read if isinstance(read, str) else value
        if written.startswith(FILE):
            return read_prompt(written.removeprefix(FILE))
        return None if isinstance(read, str) else value
    return value if override is None and not value.startswith(("'", '"', "[", "{", "$")) else None


@lru_cache(maxsize=1024)  # the words of a sweep's cells are the same few
def parse_word(word: str) -> "Override | None":
    """The override that Hydra reads in a word; None if it is not written by its grammar."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        return None


def _unreadable(word: str) -> UserError:
    key, equals, value = word.partition("=")
    if not equals:
        return UserError(f"cannot read '{word}'", "settings are written key=value")
    return UserError(
        f"cannot read the value of {key}: {value:.80}",
        f"close its brackets and quotes; one text is quoted for the shell and within: {quoted(key, value)}",
    )


def quoted(key: str, value: str) -> str:
    """The word that gives a key a text, as it is typed in a shell."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return shlex.quote(f'{key}="{escaped}"')


def presets_of(kind: str) -> list[str]:
    """The presets of the prompts of a kind of protocol or judge."""
    folder = _folder() / kind
    return sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


def place_preset(key: str, name: str, values: Mapping[Any, Any]) -> None:
    """Replace the prompts at a key by those of a preset; prompts that it does not have stay. Raises `UserError`."""
    owner: Any = values
    for part in key.split(".")[:-1]:
        owner = owner.get(part) if isinstance(owner, Mapping) else None
    prompts = owner.get(PROMPTS) if isinstance(owner, Mapping) else None
    if not isinstance(prompts, dict):
        raise UserError(f"there is no option {key}", "prompts are asked by every protocol and by judge=llm")
    known = presets_of(str(owner["kind"]))
    if name not in known:
        raise UserError(
            f"{key} has no preset '{name}'",
            f"{nearest(name, known)}; a prompt by itself: {key}.{next(iter(prompts))}=@FILE",
        )
    chosen = _folder() / str(owner["kind"]) / name
    prompts |= {path.stem: path.read_text(encoding="utf-8") for path in chosen.glob("*.md")}


def read_prompt(name: str) -> str:
    """The text of a prompt file: a path given by the user, else one in `conf/prompts`. Raises `UserError`."""
    own = Path(name).expanduser()
    for path in (own, _folder() / name):
        if path.is_file():
            try:
                return path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise UserError(f"the prompt file {path} is not UTF-8 text", "save it as UTF-8") from error
            except OSError as error:
                raise UserError(f"cannot read the prompt file {path}: {error.strerror}", "make it readable") from error
    known = own.parent.glob(f"*{own.suffix}") if own.parent.is_dir() else ()
    raise UserError(f"there is no prompt file {name}", nearest(own.name, [path.name for path in known]))


def _folder() -> Path:
    return data_folder("conf") / PROMPTS
