"""`codechat audit`: draw decisions for labelling, score the labels."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codechat.base.environment import shell_command
from codechat.base.errors import UserError, nearest
from codechat.base.template import counted
from codechat.cli.terminal import err, out
from codechat.cli.words import parse_words

if TYPE_CHECKING:
    from codechat.report.audit.judged import Drawn
    from codechat.report.audit.sampling import DrawnSample
    from codechat.report.metrics.powered import JudgeLabels


def run_audit(words: list[str]) -> int:
    """`audit export` or `audit score`, each with key=value settings. Raises `UserError`."""
    commands: Mapping[str, Callable[[list[str]], int]] = {"export": _export, "score": _score}
    name = words[0] if words else ""
    if name not in commands:
        raise UserError(f"there is no audit '{name}'" if name else "audit what?", nearest(name, commands))
    return commands[name](words[1:])


def _keys_of_export() -> dict[str, str]:
    from codechat.report.audit.judged import kinds

    return {
        "runs": "folders of cells, or folders that hold such: DIR[,DIR]",
        "out": "folder for sample.csv and label.html",
        "n": "decisions to draw for both questions at once (default 100)",
        "applicability": "instead of n: decisions to draw for applicability alone (the paper: 100)",
        "adherence": "instead of n: judged changes to draw for adherence, apart from those (the paper: 100)",
        "correction": "instead of n: judged changes to draw by which `report … audit=DIR` corrects adherence best",
        "pilot": "with correction: the folder of an earlier audit, whose labels say how often the judge errs",
        **{name: f"instead of n: {kind.several} to draw, of {kind.sources}" for name, kind in kinds().items()},
        "seed": "seed of the draw (default 0)",
    }


def _export(words: list[str]) -> int:
    values = parse_words(words, _keys_of_export(), required=("runs", "out"))
    from codechat.base.files import write_atomically
    from codechat.cli.commands.report import options_of
    from codechat.report.audit.labels import sample_csv
    from codechat.report.audit.page import labelling_page
    from codechat.report.audit.people import POPULATION, population_json
    from codechat.report.audit.sampling import DrawnSample

    sample = _draw(values)
    for note in sample.notes:
        err.print(f"note: {note}", markup=False)
    folder, table = Path(values["out"]), sample_csv(sample.decisions)
    path = folder / "sample.csv"
    if path.is_file() and path.read_bytes() != table.encode():
        raise UserError(f"{path} is there already, and holds another sample or labels", "choose another out=DIR")
    write_atomically(path, table)
    write_atomically(folder / "label.html", labelling_page(sample.decisions))
    if isinstance(sample, DrawnSample):
        write_atomically(folder / POPULATION, population_json(sample.cells, sample.changes, options_of))
    out.print(_summary(sample))
    out.print(f"label       {folder / 'label.html'} in a browser (or {path})", markup=False)
    then = f"{shell_command('codechat')} audit score labels=FILE[,FILE] out={shlex.quote(str(folder))}"
    out.print(f"then        {then}", markup=False)
    return 0


def _draw(values: Mapping[str, str]) -> "DrawnSample | Drawn":
    """One sample for both questions about instructions, or one for each that is named; or one of another kind."""
    from codechat.report.audit.judged import draw, kinds
    from codechat.report.audit.sampling import draw_apart, draw_sample

    runs, seed = [Path(folder) for folder in values["runs"].split(",")], _whole("seed", values.get("seed", "0"), 0)
    for key in (name for name in kinds() if name in values):
        others = sorted({"n", "applicability", "adherence", "correction", *kinds()} & {*values} - {key})
        if others:
            other = kinds()[others[0]].several if others[0] in kinds() else "decisions on instructions"
            raise UserError(f"{key} draws {kinds()[key].several}, {others[0]} {other}", "leave one out")
        return draw(kinds()[key], runs, _whole(key, values[key], 1), seed)
    if "correction" in values:
        return _draw_for_correction(values)
    if "pilot" in values:
        raise UserError("pilot goes with correction", "such as correction=200 pilot=audit")
    apart = {key: _whole(key, values[key], 1) for key in ("applicability", "adherence") if key in values}
    if apart and "n" in values:
        raise UserError(f"n draws for both questions at once, {next(iter(apart))} for one alone", "leave one out")
    if not apart:
        return draw_sample(runs, _whole("n", values.get("n", "100"), 1), seed)
    return draw_apart(runs, apart.get("applicability", 0), apart.get("adherence", 0), seed)


def _draw_for_correction(values: Mapping[str, str]) -> "DrawnSample":
    """Changes of every verdict and scope, as many as make the corrected adherence most precise."""
    others = sorted({"n", "applicability", "adherence"} & {*values})
    if others:
        raise UserError(f"correction draws by verdict, {others[0]} by the decisions' shares", "leave one out")
    from codechat.cli.commands.report import options_of
    from codechat.report.audit.allocation import allocation
    from codechat.report.audit.people import judge_of, read_people
    from codechat.report.audit.sampling import draw_for_correction
    from codechat.report.loading import load_cells

    runs = [Path(folder) for folder in values["runs"].split(",")]
    pilots: Mapping[str, JudgeLabels] = {}
    if "pilot" in values:
        pilots = read_people(Path(values["pilot"]), load_cells(runs), options_of).by_judge
    return draw_for_correction(
        runs, _whole("correction", values["correction"], 1), _whole("seed", values.get("seed", "0"), 0),
        lambda cell: judge_of(cell, options_of),
        lambda judge, sizes, number: allocation(sizes, number, pilots.get(judge)),
    )  # fmt: skip


def _summary(sample: "DrawnSample | Drawn") -> str:
    """How many decisions were drawn, of how many."""
    from codechat.report.audit.judged import Drawn

    if isinstance(sample, Drawn):
        one, on = sample.kind.what
        return f"{len(sample.decisions)} of {counted(sample.population, one)} on {on} drawn"
    left = f"\n{sample.unknown} were left out: the pool no longer has their instruction" if sample.unknown else ""
    return _summary_of_decisions(sample) + left


def _summary_of_decisions(sample: "DrawnSample") -> str:
    counts = Counter(one.counts_for for one in sample.decisions)
    of = counted(sample.population, "decision")
    if counts["correction"]:
        return f"drawn: {counts['correction']} of {counted(sample.judged, 'judged change')}, to correct adherence"
    if not counts["applicability"] and not counts["adherence"]:
        judged = sum(one.adherence is not None for one in sample.decisions)
        return f"{len(sample.decisions)} of {of} drawn, {judged} with an adherence judgement"
    both = counts["both"]
    drawn = [
        (counts["applicability"] + both, of, "applicability"),
        (counts["adherence"] + both, counted(sample.judged, "judged change"), "adherence"),
    ]
    text = "drawn: " + ", ".join(f"{number} of {all_} for {name}" for number, all_, name in drawn if number)
    return text + (f"; {counted(both, 'row')} in both draws, to be labelled once" if both else "")


def _score(words: list[str]) -> int:
    allowed = {
        "labels": "the labels of one annotator, or of several: FILE[,FILE]",
        "out": "folder for the tables and the disagreements",
    }
    values = parse_words(words, allowed, required=("labels", "out"))
    from codechat.report.audit.result import audit, markdown, write_audit

    found = audit([Path(name) for name in values["labels"].split(",")])
    write_audit(found, Path(values["out"]))
    out.print(markdown(found), markup=False)
    out.print(f"written to  {values['out']}", markup=False)
    return 0


def _whole(key: str, text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise UserError(f"{key} is a whole number of at least {least} (got '{text}')", f"e.g. {key}={max(least, 100)}")
    return number
