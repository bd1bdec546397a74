"""The results of a probe in the report: passing turns on fresh inputs, next to the verdicts of the tests."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report import drawing
from codechat.report.comparison import LoadedCell
from codechat.report.data import Board, BoardColumn, Chart, Drawing, Ends, Line, Section, Table
from codechat.report.drawing import Look
from codechat.report.generic import overview
from codechat.report.generic.tables import Naming
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison
from codechat.studies.refine.probe.figures import NOTE, PROBE, Probed, records_in, tables_of

TITLE = "Regressions that tests do not see"
GROUPS = {PROBE: TITLE}
CURVES: Mapping[str, str] = {"tests": "passing", "tests and fresh inputs": "strict"}
"""The curves of Pass@1: the name, and the field of `Probed` with a figure per turn."""
CURVES_NOTE = (
    "Pass@1 by the tests, and by the stricter reading: the code also differs from the reference on no fresh input."
)
DIFFERS = "differs on a fresh input"


@lru_cache(maxsize=1)
def probed_in(comparison: RefineComparison) -> list[tuple[Outcomes, Probed]]:
    """The probed cells of a report with their figures, dataset by dataset."""
    folders = {found.cell.results[PROBE] for found in comparison.cells if PROBE in found.cell.results}
    records = {folder: records_in(folder) for folder in folders}
    every = [found for found in comparison.in_order() if PROBE in found.cell.results]
    figures = [Probed.of(found.cell.sessions(), records[found.cell.results[PROBE]]) for found in every]
    for found, probed in zip(every, figures, strict=True):
        probed.dataset = found.cell.dataset  # which is marked if other tasks have the name, too
    return list(zip(every, figures, strict=True))


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """All tables, if a cell was probed; an entrant of several datasets has a row for all of them in the first."""
    every, naming = probed_in(comparison), Naming(comparison)
    if not every:
        return
    parts: dict[str, list[tuple[Outcomes, Probed]]] = defaultdict(list)
    for found, probed in every:
        parts[found.cell.label].append((found, probed))
    whole = []
    for members in parts.values():
        pooled = Probed.together([probed for _, probed in members])
        named = zip(naming.columns, naming.of(members[0][0]), strict=True)
        names = tuple(pooled.dataset if column.key == "dataset" else value for column, value in named)
        whole += [(names, pooled)] if len(members) > 1 else []
    yield from tables_of(naming.columns, [(naming.of(found), probed) for found, probed in every], whole)


def sections(comparison: RefineComparison) -> list[Section]:
    """The page's section, if a cell was probed."""
    every = probed_in(comparison)
    if not every:
        return []
    charts = [
        Chart("", "Pass@1", [Line(found.cell, name, *_curve(probed, field)) for name, field in CURVES.items()],
              ", ".join(filter(None, (found.cell.label, found.cell.dataset))))
        for found, probed in every
    ]  # fmt: skip
    return [Section(PROBE, TITLE, "Unseen", (NOTE, _board(comparison), CURVES_NOTE, charts), (PROBE,))]


def shown(cell: LoadedCell) -> Iterator[SessionRecord]:
    """The sessions of a probed cell, with the smallest difference among the fields of every turn that differs."""
    records = records_in(cell.results[PROBE])
    for session in cell.sessions():
        turns = list(session.turns)
        for place, turn in enumerate(session.turns):
            record = records.get((session.cell_id, session.session_id, turn.turn))
            if record is not None and not turn.skipped and record.reference.differs:
                smallest = record.reference.smallest
                found = {DIFFERS: True, "fresh input": smallest and smallest.model_dump()}
                turns[place] = turn.model_copy(update=found)
        yield session.model_copy(update={"turns": turns})


def _curve(probed: Probed, field: str) -> tuple[list[float | None], list[Ends]]:
    figures: list[TaskRatio] = getattr(probed, field)
    return [figure.rate for figure in figures], [probed.share(figure)[1] for figure in figures]


def _board(comparison: RefineComparison) -> Board:
    every = probed_in(comparison)
    cells = [found.cell for found, _ in every]

    def shares(pick: Any) -> list[float | None]:
        return [pick(probed).rate for _, probed in every]

    hidden = [probed.share(probed.hidden.overall) for _, probed in every]
    before = "of the follow-up turns whose code before passed and differed nowhere"
    columns = [
        BoardColumn("Model", cells, "cell"),
        *overview.if_it_varies("Dataset", [cell.dataset for cell in cells]),
        *overview.if_it_varies("Setting", [cell.setting for cell in cells]),
        BoardColumn("hidden", [value for value, _ in hidden], "share", "Regressions", before, strong=True),
        BoardColumn("95 % interval", hidden, "share", "Regressions", most=1.0, ends=True),
        BoardColumn("seen", shares(lambda probed: probed.seen.overall), "share", "Regressions", f"by tests, {before}"),
        BoardColumn("differ", shares(lambda probed: probed.differs.overall), "share", "Passing turns",
                    "from the reference on at least one fresh input"),
        BoardColumn("probed", [size(probed.differs.overall) for _, probed in every], "count", "Passing turns"),
        BoardColumn("MST", shares(lambda probed: probed.mst), "number", "Sustained turns", "by the tests"),
        BoardColumn("stricter", shares(lambda probed: probed.strict_mst), "number", "Sustained turns",
                    "without a difference on fresh inputs"),
    ]  # fmt: skip
    return Board(TITLE, columns, sort="hidden")


def drawings(comparison: RefineComparison) -> Iterator[Drawing]:
    """The two curves of every probed cell, if there are not too many."""
    if 0 < len(probed_in(comparison)) <= drawing.MOST_LINES:
        title = "Pass@1 by the tests and by fresh inputs too"
        yield Drawing("probe_curves", title, f"{CURVES_NOTE} Bands: 95 % by task.", PROBE, _draw, on_page=False)


def _draw(comparison: RefineComparison, look: Look) -> Any:
    every = probed_in(comparison)
    titles = [f"{found.cell.label}, {found.cell.dataset}" for found, _ in every]
    figure, axes = drawing.panels(titles, columns=3, width=3.4, height=2.5)
    heights: list[float] = []
    for panel, (found, probed) in zip(axes, every, strict=True):
        for dash, (name, field) in zip(drawing.DASHES, CURVES.items(), strict=False):
            points = drawing.known((turn, *each) for turn, each in enumerate(zip(*_curve(probed, field), strict=True)))
            turns, values, ends = zip(*points, strict=True)
            low, high = zip(*ends, strict=True)
            colour = look.model(found.cell.model)
            panel.plot(turns, values, color=colour, marker="o", markersize=3.5, linestyle=dash, label=name)
            panel.fill_between(turns, low, high, color=colour, alpha=0.12, linewidth=0)
            heights += [*low, *high]
        panel.set(xlabel="Turn", xticks=sorted(turns)[:: max(1, round(len(turns) / 12))])
    axes[0].set_ylabel("Pass@1")
    for panel in axes:
        panel.set_ylim(drawing.share_range(heights))
    axes[-1].legend(loc="lower left")
    return figure
