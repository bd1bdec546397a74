"""`codechat audit`: draw decisions for labelling, score the labels, compare the rules with labelled triples."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from codechat.cli.terminal import err, out
from codechat.cli.words import parse_words
from codechat.environment import shell_command
from codechat.errors import UserError, nearest
from codechat.template import counted

if TYPE_CHECKING:
    from codechat.audit.conditions import DrawnConditions
    from codechat.audit.constraints import DrawnConstraints
    from codechat.audit.sampling import DrawnSample
    from codechat.audit.triples import RulesScore, Triple

_SHOWN = 50
_OTHERS = {"constraints": "verdicts on constraints", "conditions": "decisions on conditions"}


def run_audit(words: list[str]) -> int:
    """`audit export`, `audit score` or `audit rules`, each with key=value settings. Raises `UserError`."""
    commands: Mapping[str, Callable[[list[str]], int]] = {"export": _export, "score": _score, "rules": _rules}
    name = words[0] if words else ""
    if name not in commands:
        raise UserError(f"there is no audit '{name}'" if name else "audit what?", nearest(name, commands))
    return commands[name](words[1:])


def _export(words: list[str]) -> int:
    allowed = {
        "runs": "folders of cells, or folders that hold such: DIR[,DIR]",
        "out": "folder for sample.csv and label.html",
        "n": "decisions to draw for both questions at once (default 100)",
        "applicability": "instead of n: decisions to draw for applicability alone (the paper: 100)",
        "adherence": "instead of n: judged changes to draw for adherence, apart from those (the paper: 100)",
        "constraints": "instead of n: verdicts on constraints to draw, of cells of repair and levels",
        "conditions": "instead of n: decisions on satisfaction conditions to draw, of cells of assist",
        "seed": "seed of the draw (default 0)",
    }
    values = parse_words(words, allowed, required=("runs", "out"))
    from codechat.audit.labels import sample_csv
    from codechat.audit.page import labelling_page
    from codechat.files import write_atomically

    sample = _draw(values)
    for note in sample.notes:
        err.print(f"note: {note}", markup=False)
    folder, table = Path(values["out"]), sample_csv(sample.decisions)
    path = folder / "sample.csv"
    if path.is_file() and path.read_bytes() != table.encode():
        raise UserError(f"{path} is there already, and holds another sample or labels", "choose another out=DIR")
    write_atomically(path, table)
    write_atomically(folder / "label.html", labelling_page(sample.decisions))
    out.print(_drawn(sample))
    out.print(f"label       {folder / 'label.html'} in a browser (or {path})", markup=False)
    then = f"{shell_command('codechat')} audit score labels=FILE[,FILE] out={shlex.quote(str(folder))}"
    out.print(f"then        {then}", markup=False)
    return 0


def _draw(values: Mapping[str, str]) -> "DrawnSample | DrawnConstraints | DrawnConditions":
    """One sample for both questions about instructions, or one for each that is named; or one of another kind."""
    for key, what in _OTHERS.items():
        others = sorted({"n", "applicability", "adherence", *_OTHERS} & {*values} - {key})
        if key in values and others:
            other = _OTHERS.get(others[0], "decisions on instructions")
            raise UserError(f"{key} draws {what}, {others[0]} {other}", "leave one out")
    apart = {key: _whole(key, values[key], 1) for key in ("applicability", "adherence") if key in values}
    if apart and "n" in values:
        raise UserError(f"n draws for both questions at once, {next(iter(apart))} for one alone", "leave one out")
    size, seed = _whole("n", values.get("n", "100"), 1), _whole("seed", values.get("seed", "0"), 0)
    from codechat.audit.conditions import draw_conditions
    from codechat.audit.constraints import draw_constraints
    from codechat.audit.sampling import draw_apart, draw_sample

    runs = [Path(folder) for folder in values["runs"].split(",")]
    if "constraints" in values:
        return draw_constraints(runs, _whole("constraints", values["constraints"], 1), seed)
    if "conditions" in values:
        return draw_conditions(runs, _whole("conditions", values["conditions"], 1), seed)
    if not apart:
        return draw_sample(runs, size, seed)
    return draw_apart(runs, apart.get("applicability", 0), apart.get("adherence", 0), seed)


def _drawn(sample: "DrawnSample | DrawnConstraints | DrawnConditions") -> str:
    """What was drawn, of how many."""
    from codechat.audit.conditions import DrawnConditions
    from codechat.audit.constraints import DrawnConstraints

    if isinstance(sample, DrawnConditions):
        return f"{len(sample.decisions)} of {counted(sample.population, 'decision')} on conditions drawn"
    if isinstance(sample, DrawnConstraints):
        return f"{len(sample.decisions)} of {counted(sample.population, 'verdict')} on constraints drawn"
    left = f"\n{sample.unknown} were left out: the pool no longer has their instruction" if sample.unknown else ""
    return _drawn_decisions(sample) + left


def _drawn_decisions(sample: "DrawnSample") -> str:
    counts = Counter(one.counts_for for one in sample.decisions)
    of = counted(sample.population, "decision")
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
        "labels": "one annotator's labels, or two's: FILE[,FILE]",
        "out": "folder for the tables and the disagreements",
    }
    values = parse_words(words, allowed, required=("labels", "out"))
    from codechat.audit.result import audit, markdown, write_audit

    found = audit([Path(name) for name in values["labels"].split(",")])
    write_audit(found, Path(values["out"]))
    out.print(markdown(found), markup=False)
    out.print(f"written to  {values['out']}", markup=False)
    return 0


def _rules(words: list[str]) -> int:
    allowed = {
        "labels": "labelled triples: a JSONL or YAML file, or a folder of such",
        "second": "a second reader's labels of these triples (CSV), to hold rules and labels to as well",
        "instructions": "pool that the triples name instructions of, as instructions.path (default: the embedded one)",
    }
    values = parse_words(words, allowed, required=("labels",))
    from codechat.audit.triples import read_triples, score_rules
    from codechat.instructions.pool import EMBEDDED, read_pool

    pool = read_pool(Path(values["instructions"]) if "instructions" in values else EMBEDDED, {})
    triples = read_triples(Path(values["labels"]), {one.id: one for one in pool.instructions})
    _print_score(score_rules(triples), len(triples))
    if "second" in values:
        _print_second(triples, Path(values["second"]))
    return 0


def _print_score(score: "RulesScore", triples: int) -> None:
    from codechat.audit.result import show

    table = Table(box=None, padding=(0, 3, 0, 0))
    for header in (f"{triples} labelled triples", "applicability", "adherence"):
        table.add_column(header)
    for name in score.accuracy["adherence"]:
        table.add_row(name, *(escape(show(groups[name])) for groups in score.accuracy.values()))
    table.add_row("undecided", *(str(count) for count in score.undecided.values()))
    out.print(table)
    out.print(f"{counted(len(score.disagreements), 'disagreement')}", markup=False)
    for one in score.disagreements[:_SHOWN]:
        out.print(f"  {one.place}\n    {one.instruction}", markup=False)
        out.print(f"    labelled {one.label}, the rule says {one.decided}: {one.reason}", markup=False)
    if len(score.disagreements) > _SHOWN:
        out.print(f"  … and {len(score.disagreements) - _SHOWN} more", markup=False)


def _print_second(triples: "Sequence[Triple]", path: Path) -> None:
    from codechat.audit.result import show
    from codechat.audit.second import by_second, read_second

    readings = read_second(path)
    out.print(f"the second reader labelled {len(readings)} of them", markup=False)
    for who, accords in by_second(triples, readings).items():
        table = Table(box=None, padding=(0, 3, 0, 0))
        for header in (f"{who} as second reader", "applicability", "kappa", "adherence", "kappa"):
            table.add_column(header)
        for name in accords["adherence"]:
            found = [groups[name] for groups in accords.values()]
            kappas = [f"{one.kappa.value:.3f}" if one.kappa else "–" for one in found]
            table.add_row(name, escape(show(found[0].same)), kappas[0], escape(show(found[1].same)), kappas[1])
        out.print(table)


def _whole(key: str, text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise UserError(f"{key} is a whole number of at least {least} (got '{text}')", f"e.g. {key}={max(least, 100)}")
    return number
