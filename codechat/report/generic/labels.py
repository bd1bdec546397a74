"""A table of what people's labels come to, question by question, beside what a paper prints of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codechat.report.comparison import Comparison
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.generic.beside import MEASURED, PUBLISHED, per_cent

ALL = "all"
NOTE = (
    "Share: the mean over the people who labelled; its interval is Wilson's, for the labels of one of them. Same: what "
    "two people label alike, of what both label; kappa is Cohen's; both are means over pairs, and the interval is that "
    "of a single pair."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that people label: its title, what the share counts, and what a paper prints of it.

    `printed` has by group (`all`, a language) how many labels there were, and the share in per cent; `same` is what two
    people labelled alike, in per cent, None if the paper does not print it.
    """

    title: str
    counts: str
    printed: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    same: float | None = None


def labels_table(
    comparison: Comparison[Any],
    asked: Mapping[str, Asked],
    by: str,
    *,
    name: str,
    title: str,
    group: str,
    note: str = "",
) -> Iterator[Table]:
    """The table, if the report was given labels of one of the questions; `asked` is by the question's name, `by` the
    title of the column of groups.

    Below the rows of a question stand those that the paper prints, each with what it rests on that these labels do not.
    """
    scored: Mapping[str, Any] = next((found.cell.scored for found in comparison.in_order() if found.cell.scored), {})
    rows: list[tuple[Value, ...]] = []
    for question in (name for name in asked if name in scored):
        one, about_it = scored[question], asked[question]
        for place, share in one["labelled"].items():
            ends = None if share["value"] is None else Interval(100 * share["low"], 100 * share["high"])
            between: tuple[Value, ...] = (None, None, None)
            if place == ALL:
                between = (per_cent(one["same"]), one["kappa"], Interval.of(one["kappa_interval"]))
            value = per_cent(share["value"])
            rows.append((about_it.title, place, MEASURED, share["of"], value, ends, *between, None))
        for place, (size, value) in about_it.printed.items():
            own = one["labelled"].get(place, {"of": 0})["of"]
            less = f"{own} of {size} labels" if own < size else None
            same = about_it.same if place == ALL else None
            rows.append((about_it.title, place, PUBLISHED, size, value, None, same, None, None, less))
    if rows:
        columns = [Column("question", "What"), Column("group", by), Column("source", "Source")]
        columns += [Column("n", "Labels", "d"), Column("share", "Share, %", ".2f")]
        columns += [Column("interval", "95 % interval", ".1f"), Column("same", "Same, %", ".2f")]
        columns += [Column("kappa", "Kappa", ".3f"), Column("kappa_interval", "95 % interval", ".3f")]
        columns += [Column("differs", "Not as in the paper")]
        meant = "; ".join(f"{each.title.lower()}: {each.counts}" for each in asked.values())
        yield Table(name, title, tuple(columns), tuple(rows), f"{meant[0].upper()}{meant[1:]}. {NOTE}{note}", group)
