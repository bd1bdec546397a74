"""From cells to a report: every table and figure, computed once, written under one folder."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codechat.errors import UserError
from codechat.files import write_atomically
from codechat.metrics import REFINE
from codechat.report.cells import LoadedCell
from codechat.report.data import FigureFile, ReportData, Table
from codechat.report.figures import ablations as ablation_figures
from codechat.report.figures import curves, rates
from codechat.report.figures.style import Look, save, styled
from codechat.report.formats import FORMATS, write_table
from codechat.report.measured import pairs as measured_pairs
from codechat.report.measured.figures import figures_of
from codechat.report.measured.found import Group, groups_of
from codechat.report.measured.tables import Sheet
from codechat.report.measured.tables import tables_of as measured_tables
from codechat.report.outcomes import Study, gather
from codechat.report.tables import ablations, breaks, counts, headline, pairs, trends
from codechat.report.tables.entrants import Naming

GROUPS = {
    "leaderboard": "Who keeps code working longest",
    "trend": "How much is lost over the turns",
    "breaks": "Where code breaks, and where it heals",
    "adherence": "Do models do what they are asked",
    "pairs": "Are the differences real",
    "ablations": "What agenda, session length and judge change",
    "data": "What the figures rest on",
}


@dataclass(frozen=True)
class Drawing:
    """A figure to be drawn: `draw` returns None where the study has nothing for it."""

    name: str
    title: str
    caption: str
    group: str
    draw: Callable[[Study, Look], Any]


DRAWINGS = (
    Drawing(
        "figure_3_pass_at_1", "Pass@1 over the turns (paper, Fig. 3)",
        "The share of sessions whose code passes the whole test suite at each turn; bands or whiskers: 95 % by task.",
        "trend", curves.pass_at_1,
    ),
    Drawing(
        "survival", "Survival: sessions still passing since turn 0",
        "The share of sessions that have passed at every turn so far; bands or whiskers: 95 % by task.",
        "trend", curves.survival,
    ),
    Drawing(
        "figure_4_regression_by_scope", "Regression by scope (paper, Fig. 4)",
        "The share of turns that broke passing code, by the scope of the instruction; whiskers: 95 % by task.",
        "breaks", rates.regression_by_scope,
    ),
    Drawing(
        "figure_5_regression_by_change", "Regression by change (paper, Fig. 5)",
        "The share of turns that broke passing code, by the change asked for; whiskers: 95 % by task.",
        "breaks", rates.regression_by_change,
    ),
    Drawing(
        "regression_heat_map", "Regression by scope and change",
        "The regression rate of each cell of the taxonomy; n: turns whose code had passed before.",
        "breaks", rates.heat_map,
    ),
    Drawing(
        "regression_by_turn", "Regression by turn position",
        "The share of passing code that each turn breaks; bands or whiskers: 95 % by task.",
        "breaks", curves.regression_by_turn,
    ),
    Drawing(
        "breaking_instructions", "The most breaking instructions",
        "Over all cells, ordered by the lower end of the interval; one label counts broken turns of those met.",
        "breaks", rates.instructions,
    ),
    Drawing(
        "figure_7_self_correction", "Self-correction (paper, Fig. 7)",
        "The share of turns that mended failing code: by model, scope and change; whiskers: 95 % by task.",
        "breaks", rates.self_correction,
    ),
    Drawing(
        "figure_6_adherence", "Instruction adherence over the turns (paper, Fig. 6)",
        "The share of judged turns that did what was asked, correctness aside; bands or whiskers: 95 % by task.",
        "adherence", curves.adherence,
    ),
    Drawing(
        "pass_against_adherence", "Pass@1 against adherence",
        "Each entrant's Pass@1 at the last turn against its adherence over all turns; whiskers: 95 % by task.",
        "adherence", rates.pass_against_adherence,
    ),
    *(
        Drawing(
            f"ablation_{axis}", f"{words}, side by side",
            "Cells that differ in this choice alone; whiskers: 95 % by task.",
            "ablations", partial(ablation_figures.ablation, axis=axis),
        )
        for axis, words in ablations.AXES.items()
    ),
)  # fmt: skip

CONTENTS = "contents.json"


def build_report(cells: Sequence[LoadedCell], out: Path, notes: Sequence[str] = ()) -> ReportData:
    """Write `out/tables` (CSV, Markdown, LaTeX) and `out/figures` (PNG, SVG): refinement cells first, then the others.

    Raises `UserError` where no cell has a completed session, or records and metrics of a cell don't belong together.
    """
    refined = [gather(cell) for cell in cells if cell.protocol == REFINE.protocol]
    study = Study(tuple(found for found in refined if found.tasks))
    groups = groups_of([cell for cell in cells if cell.protocol != REFINE.protocol])
    read = {found.cell.folder for found in study.cells}
    read |= {found.cell.folder for group in groups for found in group.study.cells}
    empty = [cell.folder.name for cell in cells if cell.folder not in read]
    if not read:
        raise UserError("no session of these cells is completed", "run the cells again: only errored ones are retried")
    _clear(out)
    tables = [*(tables_of(study) if study.cells else ()), *(table for group in groups for table in group_tables(group))]
    for table in tables:
        write_table(table, out / "tables")
    figures = list(_figures(study, out / "figures")) if study.cells else []
    figures += [figure for group in groups for figure in figures_of(group, out / "figures")]
    chapters = dict(GROUPS if study.cells else {})
    chapters |= {group.measures.protocol: group.measures.title for group in groups}
    left_out = [f"Left out, as no session is completed: {', '.join(empty)}."] if empty else []
    data = ReportData(tuple(tables), tuple(figures), chapters, (*notes, *left_out))
    write_atomically(out / CONTENTS, _contents(data))
    return data


def _contents(data: ReportData) -> str:
    """The names of all tables and figures with their titles: for scripts, and for the next report in this folder."""
    listed = {
        "tables": {table.name: table.title for table in data.tables},
        "figures": {figure.name: figure.title for figure in data.figures},
    }
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"


def _clear(out: Path) -> None:
    """Remove what an earlier report of other cells left under names that this one may not write."""
    try:
        listed = json.loads((out / CONTENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for kind, suffixes in (("tables", FORMATS), ("figures", ("png", "svg"))):
        for name in listed.get(kind, ()):
            for suffix in suffixes:
                (out / kind / f"{Path(name).name}.{suffix}").unlink(missing_ok=True)


def group_tables(group: Group) -> Iterator[Table]:
    """Every table of a protocol other than the refinement, in reading order."""
    study, measures = group.study, group.measures
    naming = Naming(study)
    names = {"prefix": f"{measures.protocol}_", "group": measures.protocol}
    cells = [(naming.of(found), found.cell.metrics) for found in study.in_order()]
    yield from measured_tables(Sheet(measures, naming.columns, cells, **names))
    compared = pairs.pairs(study)
    if compared:
        yield measured_pairs.differences(measures, compared, **names)
    yield counts.counts(study, measures, **names)
    yield counts.costs(study, **names)


def tables_of(study: Study) -> Iterator[Table]:
    """Every table that the study has something for, in reading order."""
    yield headline.leaderboard(study)
    yield headline.mst(study)
    yield trends.decay(study)
    yield trends.sensitivity(study)
    yield trends.turns(study)
    yield breaks.transitions(study)
    yield breaks.instructions(study)
    yield trends.adherence(study)
    yield counts.phi(study)
    compared = pairs.pairs(study)
    if compared:
        yield pairs.differences(compared)
        yield pairs.turns(compared)
        yield pairs.survival(study, compared)
    for axis in ablations.AXES:
        table = ablations.ablation(study, axis)
        if table is not None:
            yield table
    yield counts.counts(study, REFINE)
    yield counts.costs(study)


def _figures(study: Study, folder: Path) -> Iterator[FigureFile]:
    look = Look(study)
    with styled():
        for drawing in DRAWINGS:
            figure = drawing.draw(study, look)
            if figure is not None:
                png, svg = save(figure, folder, drawing.name)
                yield FigureFile(drawing.name, drawing.title, drawing.caption, png, svg, drawing.group)
