"""Tables 7 and 8 of SR-Eval's paper: what the stages of validation do to a benchmark, and what people say of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from codechat.base.files import from_yaml
from codechat.report.data import Column, Table, Value
from codechat.report.study import Study
from codechat.studies.sreval.chapter.published import (
    DATA,
    MEASURED,
    OWN,
    PUBLISHED,
    level_of,
    paper,
    setting_of,
    told,
    unmarked,
)

OURS = "ours"
SUFFIXES = {"_without_alignment": "w/o Evaluator", "_without_both": "w/o DC & Evaluator"}
"""The ends of `dataset.name` of tasks made with `skip=[alignment]` and with `skip=[alignment,distinctiveness]`."""
METHODS = (OURS, *SUFFIXES.values())


def ablation_tables(study: Study[Any], group: str) -> Iterator[Table]:
    """Both tables, if the report has cells over tasks made with all stages, and over the same made without some."""
    found: dict[tuple[str, str, str], dict[str, tuple[float | None, float | None]]] = {}
    for cell in (each.cell for each in study.in_order() if level_of(each.cell) == OWN):
        name, method = unmarked(cell), OURS
        for suffix, named in SUFFIXES.items():
            if name.endswith(suffix):
                name, method = name.removesuffix(suffix), named
        model = ", ".join([cell.model, *told(cell), *(part.replace("_", " ") for part in setting_of(cell)[1:])])
        figures = (cell.metrics["avg_acc"], cell.metrics["complete_rate"])
        found.setdefault((model, name, MEASURED), {})[method] = figures
    measured = {key: methods for key, methods in found.items() if OURS in methods and len(methods) > 1}
    if not measured:
        return
    data = from_yaml(DATA.read_text(encoding="utf-8"))
    for model, languages in data["ablations"].items():
        for language, methods in languages.items():
            measured[paper().names[model], language, PUBLISHED] = {each: tuple(methods[each]) for each in METHODS}
    yield _ablations(measured, group)
    columns = (Column("level", "Level"), Column("dimension", "Dimension"), Column("source", "Source"))
    counts = (Column("count", "Ratings", "d"), Column("mean", "Mean", ".3f"), Column("deviation", "SD", ".3f"))
    rows = tuple(
        (level, dimension, PUBLISHED, *figures)
        for level, dimensions in data["people"].items()
        for dimension, figures in dimensions.items()
    )
    title = "What people said of the paper's tasks, of 5 points (SR-Eval's Table 8)"
    yield Table(
        "stepwise_people", title, (*columns, *counts), rows, "Three developers, 80 tasks with 333 turns.", group
    )


def _ablations(
    found: Mapping[tuple[str, str, str], Mapping[str, tuple[float | None, float | None]]], group: str
) -> Table:
    texts = [Column("model", "Model"), Column("tasks", "Tasks"), Column("source", "Source"), Column("method", "Method")]
    columns = [Column("avg_acc", "AvgAcc", ".4f"), Column("delta_1", "Δ₁", ".2f")]
    columns += [Column("complete_rate", "CR", ".4f"), Column("delta_2", "Δ₂", ".2f")]
    rows: list[tuple[Value, ...]] = []
    for names, methods in found.items():
        for method in filter(methods.__contains__, METHODS):
            pairs = zip(methods[method], methods[OURS], strict=True)
            rows.append((*names, method, *(part for one, ours in pairs for part in (one, _points(one, ours)))))
    note = (
        "Δ₁, Δ₂: points of a hundred above the tasks that all stages let through: the more, the less the tests of the "
        "others discriminate. Evaluator: semantic alignment; DC: distinctiveness. The published tasks are the paper's."
    )
    title = "Tasks made without stages of validation (as SR-Eval's Table 7)"
    return Table("stepwise_ablations", title, (*texts, *columns), tuple(rows), note, group)


def _points(one: float | None, ours: float | None) -> float | None:
    return None if one is None or ours is None else 100 * (one - ours)
