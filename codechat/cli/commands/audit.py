"""`codechat audit`: draw decisions for labelling, score the labels."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codechat.base.environment import shell_command
from codechat.base.errors import UserError, nearest
from codechat.cli.terminal import err, out, parse_words

if TYPE_CHECKING:
    from codechat.report.audit.kinds import Kind


def run_audit(words: list[str]) -> int:
    """`audit export` or `audit score`, each with key=value settings. Raises `UserError`."""
    commands: Mapping[str, Callable[[list[str]], int]] = {"export": _export, "score": _score}
    name = words[0] if words else ""
    if name not in commands:
        raise UserError(f"there is no audit '{name}'" if name else "audit what?", nearest(name, commands))
    return commands[name](words[1:])


def _export(words: list[str]) -> int:
    from codechat.report.audit.kinds import DEFAULT, kinds, whole

    keys = {
        "runs": "folders of cells, or folders that hold such: DIR[,DIR]",
        "out": "folder for sample.csv and label.html",
        **kinds()[DEFAULT].settings,
        **{name: text for kind in kinds().values() for name, text in kind.settings.items()},
        "seed": "seed of the draw (default 0)",
    }
    values = parse_words(words, keys, required=("runs", "out"))
    from codechat.base.files import write_atomically
    from codechat.cli.commands.report import options_of
    from codechat.report.audit.kinds import sample_csv
    from codechat.report.audit.page import labelling_page

    kind = _chosen(values)
    runs = [Path(folder) for folder in values["runs"].split(",")]
    drawn = kind.draw(runs, values, whole("seed", values.get("seed", "0"), 0), options_of)
    for note in drawn.notes:
        err.print(f"note: {note}", markup=False)
    folder, table = Path(values["out"]), sample_csv(drawn.rows)
    path = folder / "sample.csv"
    if path.is_file() and path.read_bytes() != table.encode():
        raise UserError(f"{path} is there already, and holds another sample or labels", "choose another out=DIR")
    files = {"sample.csv": table, "label.html": labelling_page(drawn.rows), **drawn.files}
    for name, content in files.items():
        write_atomically(folder / name, content)
    out.print(drawn.summary)
    out.print(f"label       {folder / 'label.html'} in a browser (or {path})", markup=False)
    then = f"{shell_command('codechat')} audit score labels=FILE[,FILE] out={shlex.quote(str(folder))}"
    out.print(f"then        {then}", markup=False)
    return 0


def _chosen(values: Mapping[str, str]) -> "Kind":
    """The kind of decisions whose settings are given. Raises `UserError` if they are of several kinds."""
    from codechat.report.audit.kinds import DEFAULT, kinds

    given = [(key, kind) for kind in kinds().values() for key in kind.settings if key in values]
    given.sort(key=lambda each: each[1].name == DEFAULT)
    for key, kind in given[1:]:
        if kind is not given[0][1]:
            raise UserError(f"{given[0][0]} draws {given[0][1].several}, {key} {kind.several}", "leave one out")
    return given[0][1] if given else kinds()[DEFAULT]


def _score(words: list[str]) -> int:
    allowed = {
        "labels": "the labels of one annotator, or of several: FILE[,FILE]",
        "out": "folder for the tables and the disagreements",
    }
    values = parse_words(words, allowed, required=("labels", "out"))
    from codechat.report.audit.scoring import audit, markdown, write_audit

    found = audit([Path(name) for name in values["labels"].split(",")])
    write_audit(found, Path(values["out"]))
    out.print(markdown(found), markup=False)
    out.print(f"written to  {values['out']}", markup=False)
    return 0
