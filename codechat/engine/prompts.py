"""Prompts in files: one by itself, or all prompts of a protocol or judge as a preset.

A preset is a folder `conf/prompts/KIND/NAME` with a file for each prompt that it has.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codechat.environment import data_folder
from codechat.errors import UserError, nearest

FILE = "@"
"""Begins the value of a prompt that is in a file: `protocol.prompts.initial=@my.md`."""
PROMPTS = "prompts"
"""The option that holds prompts; `protocol.prompts=plain` names a preset for all of them."""


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
