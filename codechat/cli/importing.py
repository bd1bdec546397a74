"""`codechat import`: published completions as a sessions.jsonl, for `model=replay`."""

from pathlib import Path

from codechat.cli.terminal import out
from codechat.cli.words import parse_words
from codechat.errors import UserError, nearest
from codechat.records import write_sessions
from codechat.template import counted

KEYS = {
    "format": "what the source is: codeif",
    "source": "the published completions of one mode of one model",
    "out": "the sessions.jsonl to write",
    "tasks": "the task file, if no fitting one is in the source's folder",
    "model": "the model's name for the records, if the file's name does not have it",
}
FORMATS = ("codeif",)


def run_import(words: list[str]) -> int:
    """Write the sessions; returns the exit status. Raises `UserError`."""
    values = parse_words(words, KEYS, required=("format", "source", "out"))
    if values["format"] not in FORMATS:
        raise UserError(f"there is no format '{values['format']}'", nearest(values["format"], FORMATS))
    from codechat.importing.codeif import import_codeif

    source, target = Path(values["source"]), Path(values["out"])
    if target.resolve() == source.resolve():
        raise UserError("out is the source itself", "choose another out=FILE")
    imported = import_codeif(source, Path(values["tasks"]) if "tasks" in values else None, values.get("model"))
    write_sessions(target, imported.sessions)
    for path in imported.companions:
        out.print(f"with        {path}", markup=False, soft_wrap=True)
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
