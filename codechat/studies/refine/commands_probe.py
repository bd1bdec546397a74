"""`codechat probe`: recorded code on fresh inputs, and its results in `codechat report` and `codechat export`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codechat.base.records import read_sessions
from codechat.base.template import counted
from codechat.run.extensions import AddedColumn, Probing, Results, View, add_prober, add_results
from codechat.studies.refine.probe.figures import PROBE, Figure, ProbeFigures, records_in, write_figures
from codechat.studies.refine.probe.probing import cells_in, probe

ADDED = (
    AddedColumn("probed_inputs", "int64", "fresh inputs on which code and reference were compared; missing if none"),
    AddedColumn("probe_differs", "int64", "fresh inputs on which the code differs from the reference"),
    AddedColumn("probe_differs_from_before", "int64", "fresh inputs on which it differs from the passing code before"),
    AddedColumn("probe_undecided", "int64", "fresh inputs on which the code met a limit"),
    AddedColumn("probe_input", "string", "the smallest fresh input on which the code differs from the reference"),
    AddedColumn("probe_expected", "string", "the reference's result there"),
    AddedColumn("probe_actual", "string", "the code's result there"),
)


async def _probe(asked: Probing, view: View) -> list[str]:
    """See `Prober`."""
    await probe(asked, view)
    probed, cells = _cells(asked.out), cells_in(asked.cells)
    times = Counter(folder.name for folder in cells.values())
    sessions = {
        folder.name if times[folder.name] == 1 else str(folder): read_sessions(folder / "sessions.jsonl")
        for cell_id, folder in cells.items()
        if cell_id in probed
    }
    report, _ = write_figures(sessions, asked.out)
    return [line for each in report.cells for line in _summary(each)]


def _summary(cell: ProbeFigures) -> Iterator[str]:
    differ = _share(cell.differs.overall, "passing turn")
    yield f"{cell.name}: {differ} differ from the reference on fresh inputs"
    yield f"  hidden regressions: {_share(cell.hidden_regression.overall, 'turn')} whose code before was equal"
    if cell.undecided:
        yield f"  {counted(cell.undecided, 'turn')} met a limit on all inputs: these are undecided"


def _share(figure: Figure, unit: str) -> str:
    return f"{100 * (figure.value or 0):.1f} % of {counted(figure.n, unit)}"


def _cells(folder: Path) -> frozenset[str]:
    return frozenset(cell for cell, _, _ in records_in(folder))


def _columns(folder: Path) -> Mapping[tuple[str, str, int], Sequence[str | int | None]]:
    found: dict[tuple[str, str, int], Sequence[str | int | None]] = {}
    for key, turn in records_in(folder).items():
        against, before = turn.reference, None if turn.before is None else turn.before.differs
        shown = against.smallest
        texts = (shown.input, shown.expected, shown.actual) if shown else (None, None, None)
        found[key] = (against.inputs, against.differs, before, against.undecided, *texts)
    return found


MEANING = "a folder of `codechat probe`: passing turns on fresh inputs, for changes that the tests do not see"
add_results(PROBE, Results(MEANING, _cells, ADDED, _columns))
add_prober("refine", _probe)
