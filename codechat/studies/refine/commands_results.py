"""The results of `codechat probe` in `codechat report` and `codechat export`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codechat.run.extensions import AddedColumn, Results, add_results
from codechat.studies.refine.probe.figures import PROBE, records_in

ADDED = (
    AddedColumn("probed_inputs", "int64", "fresh inputs on which code and reference were compared; missing if none"),
    AddedColumn("probe_differs", "int64", "fresh inputs on which the code differs from the reference"),
    AddedColumn("probe_differs_from_before", "int64", "fresh inputs on which it differs from the passing code before"),
    AddedColumn("probe_undecided", "int64", "fresh inputs on which the code met a limit"),
    AddedColumn("probe_input", "string", "the smallest fresh input on which the code differs from the reference"),
    AddedColumn("probe_expected", "string", "the reference's result there"),
    AddedColumn("probe_actual", "string", "the code's result there"),
)


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
