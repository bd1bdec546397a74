"""The datasets that the cells loaded (paper, Table III)."""

from collections.abc import Mapping

from codechat.metrics.loaded import loaded_in
from codechat.metrics.statistics import rate
from codechat.report.data import Column, Table, Value, columns_of
from codechat.studies.refine.chapter.outcomes import RefineStudy

NOTE = (
    "Of the tasks that the cells ran. Tests are means over the counted tasks, whose kind of tests can be counted. "
    "Original: the tests that the dataset's authors wrote; added: those of EvalPlus, or plus_input of your own tasks. "
    "Requirements' tests are left out. A cell of an earlier version kept no counts; run again, it adds them and calls "
    "no model."
)


def datasets(study: RefineStudy) -> Table | None:
    """A row per dataset, and per choice of tasks if cells of one dataset differ in it; None if no cell kept counts."""
    found: dict[tuple[Value, ...], None] = {}
    for each in study.in_order():
        counts = loaded_in(each.cell.metrics)
        if counts is not None:
            found[each.cell.dataset, *_row(counts)] = None
    if not found:
        return None
    columns = (
        Column("seed_dataset", "Dataset"), *columns_of("d", tasks="Tasks", counted="Counted"),
        *columns_of(",.1f", original_tests="Original tests", added_tests="Added tests", all_tests="All tests"),
    )  # fmt: skip
    return Table("table_3_datasets", "Datasets (paper, Table III)", columns, tuple(found), note=NOTE, group="data")


def _row(counts: Mapping[str, int]) -> tuple[Value, ...]:
    counted, original, added = (counts[key] for key in ("counted", "original_tests", "added_tests"))
    return (counts["tasks"], counted, *(rate(tests, counted) for tests in (original, added, original + added)))
