"""From cells to a report: every table and figure, computed once, written under one folder."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.texts import read_json
from codechat.report.chapters import Chapter, chapter_of, leads, study_of
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Drawing, FigureFile, Headline, ReportData, Section, Table
from codechat.report.drawing import Look, save, styled
from codechat.report.formats import FORMATS, write_table
from codechat.report.generic import agents, factors, published
from codechat.report.generic.overview import facts_of
from codechat.report.metrics.measures import merge

CONTENTS = "contents.json"


def build_report(cells: Sequence[LoadedCell], out: Path, notes: Sequence[str] = ()) -> ReportData:
    """Write `out/tables` (CSV, Markdown, LaTeX) and `out/figures` (PNG, SVG) by protocol. Raises `UserError` if no cell
    has a completed session, or if records and metrics of a cell contradict each other."""
    comparisons = comparisons_of(cells)
    read = {found.cell.folder for comparison in comparisons for found in comparison.cells}
    if not read:
        raise UserError("no session of these cells is completed", "run the cells again: only errored ones are retried")
    _clear(out)
    shown = [(comparison, chapter_of(comparison.protocol)) for comparison in comparisons if comparison.cells]
    effects = [factors.tables(study_of(comparison)) for comparison, _ in shown]
    tables = [list(chapter.tables(comparison)) for comparison, chapter in shown]
    worked = [list(agents.tables(comparison)) for comparison, _ in shown]
    printed = [(published.section(comparison), list(published.tables(comparison))) for comparison, _ in shown]
    found = (
        *(each for all_of in zip(effects, tables, worked, strict=True) for each in all_of),
        *(each for _, each in printed),
    )
    every = tuple(table for each in found for table in each)
    for table in every:
        write_table(table, out / "tables")
    empty = [cell.folder.name for cell in cells if cell.folder not in read]
    left_out = [f"Left out, as no session is completed: {', '.join(empty)}."] if empty else []
    figures = tuple(
        figure for comparison, chapter in shown for figure in _figures(comparison, chapter, out / "figures")
    )
    titles = {each.group: factors.TITLE for first in effects for each in first}
    titles |= {key: title for comparison, chapter in shown for key, title in chapter.groups(comparison).items()}
    titles |= {each.group: agents.TITLE for found in worked for each in found}
    titles |= {section.key: section.title for section, found in printed if found}
    filled = {table.group for table in every} | {figure.of.group for figure in figures}
    data = ReportData(
        cells=cells,
        tables=every,
        figures=figures,
        groups={key: title for key, title in titles.items() if key in filled},
        headline=headline_of(comparisons, every),
        sections=(*sections_of(comparisons), *(section for section, found in printed if found)),
        opening=tuple(
            table
            for (comparison, chapter), first, own in zip(shown, effects, tables, strict=True)
            for table in (*(first if study_of(comparison).leads else ()), *chapter.opening(own))
        ),
        notes=(*notes, *left_out, *(note for comparison in comparisons for note in _uneven(comparison))),
    )
    # the names and titles of all tables and figures: for scripts, and for the next report in this folder
    named: dict[str, Sequence[Table | Drawing]] = {"tables": data.tables, "figures": [each.of for each in data.figures]}
    listed = {kind: {each.name: each.title for each in found} for kind, found in named.items()}
    write_atomically(out / CONTENTS, json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
    return data


def comparisons_of(cells: Sequence[LoadedCell]) -> list[Comparison[Any]]:
    """The cells by protocol: first protocols whose chapter leads, then in the order of their first cells."""
    protocols = sorted(dict.fromkeys(cell.protocol for cell in cells), key=lambda name: not leads(name))
    comparisons: list[Comparison[Any]] = []
    for protocol in protocols:
        loaded = tuple(cell for cell in cells if cell.protocol == protocol)
        found = [chapter_of(protocol).reads.of(cell) for cell in loaded]
        measured = merge(cell.measures for cell in loaded if cell.measures is not None)
        comparisons.append(Comparison(measured, tuple(each for each in found if each.tasks), loaded))
    return comparisons


def sections_of(comparisons: Sequence[Comparison[Any]]) -> tuple[Section, ...]:
    """The sections of the page. What settings change comes first if the cells were run to learn that."""
    found: list[Section] = []
    for each in comparisons:
        study, (first, *others) = study_of(each), chapter_of(each.protocol).sections(each)
        answer = [factors.section(study)] if study.questions else []
        found += [*answer, first, *others] if study.leads else [first, *answer, *others]
        found += agents.sections(each)
    return tuple(found)


def headline_of(comparisons: Sequence[Comparison[Any]], tables: Sequence[Table]) -> Headline:
    """The claim of the protocol with the most cells to compare, out of the leading ones if there are any."""
    leading = max(
        comparisons,
        key=lambda comparison: (leads(comparison.protocol), sum(not cell.is_baseline for cell in comparison.loaded)),
    )
    study = study_of(leading)
    if study.leads:
        return factors.headline(study, facts_of(leading))
    claim = chapter_of(leading.protocol).headline(leading, tables)
    return replace(claim, kicker=claim.kicker or " · ".join(comparison.measures.name for comparison in comparisons))


def _uneven(comparison: Comparison[Any]) -> Iterator[str]:
    """A sentence for every dataset with different completed tasks in its cells, by a limit or by errors."""
    for dataset in comparison.datasets:
        tasks = {found.cell.label: set(found.tasks) for found in comparison.on(dataset)}
        shared = set.intersection(*tasks.values())
        if any(completed != shared for completed in tasks.values()):
            counts = ", ".join(f"{label} {len(completed)}" for label, completed in tasks.items())
            yield (
                f"The figures on {dataset} rest on different tasks: {counts}; {len(shared)} in all of them. "
                "Ranks compare unlike with unlike; only the tables of pairs keep to shared tasks."
            )


def _figures(comparison: Comparison[Any], chapter: Chapter, folder: Path) -> Iterator[FigureFile]:
    look = Look(comparison)
    with styled():
        for drawing in chapter.drawings(comparison):
            figure = drawing.draw(comparison, look)
            if figure is not None:
                yield FigureFile(drawing, *save(figure, folder, drawing.name))


def _clear(out: Path) -> None:
    """Remove the files of an earlier report, whose names this report may not overwrite."""
    try:
        listed = read_json((out / CONTENTS).read_bytes())
    except (OSError, ValueError):
        return
    if not isinstance(listed, dict):
        return
    for kind, suffixes in (("tables", FORMATS), ("figures", ("png", "svg"))):
        names = listed.get(kind)
        for name in names if isinstance(names, dict | list) else ():
            for suffix in suffixes:
                (out / kind / f"{Path(str(name)).name}.{suffix}").unlink(missing_ok=True)
