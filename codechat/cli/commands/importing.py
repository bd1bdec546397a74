"""`codechat import`: published completions as a sessions.jsonl, for `model=replay`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from codechat.base.errors import UserError
from codechat.base.records import write_sessions
from codechat.base.template import counted
from codechat.cli.terminal import out, parse_words
from codechat.datasets.importing import FORMATS, ImportConfig


def run_import(words: list[str]) -> int:
    """Write the sessions; returns the exit status. Raises `UserError`."""
    values = parse_words(words, _keys(words), required=("format", "source", "out"))
    target = Path(values.pop("out"))
    if target.resolve() == Path(values["source"]).resolve():
        raise UserError("out is the source itself", "choose another out=FILE")
    config = FORMATS.validate(_nested(values))
    said = list(FORMATS[values["format"]].traits.preview(config))
    for remark in said:
        out.print(f"note        {remark}", markup=False, soft_wrap=True)
    imported = FORMATS.build(config)
    for path in imported.companions:
        out.print(f"with        {path}", markup=False, soft_wrap=True)
    for remark in [each for each in imported.remarks if each not in said]:
        out.print(f"note        {remark}", markup=False, soft_wrap=True)
    if imported.parts:
        for name, sessions in imported.parts.items():
            write_sessions(target / f"{name.replace('/', '_')}.jsonl", sessions)
    else:
        write_sessions(target, imported.sessions)
    turns = sum(len(session.turns) for session in imported.sessions)
    found = f"{counted(len(imported.sessions), 'session')}, {counted(turns, 'reply', 'replies')}"
    out.print(f"{found}: {target}", markup=False, soft_wrap=True)
    broken = [session for session in imported.sessions if session.error]
    if broken:
        out.print(
            f"{counted(len(broken), 'session is', 'sessions are')} not whole: {broken[0].task_id}: {broken[0].error}",
            markup=False,
        )
    return 0


def _keys(words: Sequence[str]) -> dict[str, str]:
    """The settings of the chosen format, with their descriptions. Raises `UserError` for an unknown format."""
    chosen = next((word.removeprefix("format=") for word in words if word.startswith("format=")), "")
    keys: dict[str, str] = {}
    for name, option in (FORMATS[chosen].config if chosen else ImportConfig).model_fields.items():
        inner = get_args(get_args(option.annotation)[0]) if get_origin(option.annotation) is dict else ()
        keys |= dict.fromkeys([f"{name}.{key}" for key in inner] or [name], option.description or "")
    keys["format"] = f"what the source is: {', '.join(each.name for each in FORMATS)}"
    return {**keys, "out": "the sessions.jsonl to write; of a source with several models, the folder"}


def _nested(values: Mapping[str, str]) -> dict[str, Any]:
    """The values, with `columns.code=x` as an entry of the mapping `columns`."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        group, dot, inner = key.partition(".")
        if dot:
            nested.setdefault(group, {})[inner] = value
        else:
            nested[key] = value
    return nested
