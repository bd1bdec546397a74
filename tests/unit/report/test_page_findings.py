"""What the report page claims in words: it follows from the figures, and says how sure it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codechat.report.build import comparisons_of, headline_of
from codechat.report.data import Headline, Table
from codechat.report.generic.paired import pairs
from codechat.studies.refine.chapter.comparisons import differences
from support.pages import MadeCell, made_cell


def rival(model: str, mst: float, **labels: Any) -> MadeCell:
    cell = made_cell(model, tasks=3)
    return replace(cell, metrics={**cell.metrics, "mst": mst}, **labels)


def compared(*cells: MadeCell) -> tuple[Table, ...]:
    """The report's own table of paired comparisons."""
    (comparison,) = comparisons_of(cells)
    return (differences(pairs(comparison)),)


def findings(cells: Sequence[MadeCell], tables: Sequence[Table]) -> Headline:
    return headline_of(comparisons_of(cells), tables)


def test_the_headline_names_the_model_that_lasts() -> None:
    told = findings([rival("a", 5.0), rival("b", 7.25)], ())
    assert told.title.startswith("b ") and "7.25 of 10 turns" in told.title
    assert told.text.endswith("Next is a with 5.00."), "no word on a difference that was not tested"
    assert findings([rival("a", 7.0), rival("b", 7.0)], ()).title.startswith("a and b ")
    assert findings([rival("a", 7.0)], ()).title == "a sustains 7.00 of 10 turns"
    unranked = replace(rival("a", 7.0), metrics={**rival("a", 7.0).metrics, "mst": None})
    assert findings([unranked], ()).title == "Nothing to rank"


def test_a_lead_is_told_as_the_paired_comparison_has_it() -> None:
    cells = [made_cell("a", tasks=60, breaks=0.3), made_cell("b", tasks=60, breaks=0.02)]
    tables = compared(*cells)
    row = dict(zip([column.key for column in tables[0].columns], tables[0].rows[0], strict=True))
    assert (row["a"], row["b"]) == ("a", "b")
    told = findings(cells, tables).text
    assert f"b is ahead by {-row['mst_difference']:+.2f} turns on humaneval" in told
    assert f"interval {-row['mst_difference_ci'].high:+.2f} to {-row['mst_difference_ci'].low:+.2f})" in told
    assert "more than chance" in told and "Wilcoxon, Holm" in told


def test_a_lead_that_may_be_chance_is_told_as_such() -> None:
    cells = [made_cell("a", tasks=8, breaks=0.1), made_cell("b", tasks=8, breaks=0.1)]
    told = findings(cells, compared(*cells)).text
    assert "may be chance" in told and "humaneval" in told


def test_models_are_compared_on_the_same_datasets_in_the_same_setting() -> None:
    both = [rival("a", 6.0), rival("a", 8.0, dataset="mbpp")]
    half = [rival("b", 9.0)]
    other = [rival("c", 10.0, agenda="cosmetic")]
    assert findings([*both, *half, *other], ()).title == "a sustains 7.00 of 10 turns"


def test_baselines_are_no_rivals() -> None:
    echo = rival("echo", 10.0, config={"model": {"kind": "echo"}})
    model = rival("gpt", 4.0, config={"model": {"kind": "openai"}})
    assert findings([echo, model], ()).title == "gpt sustains 4.00 of 10 turns"
    assert findings([echo], ()).title == "echo sustains 10.00 of 10 turns"
