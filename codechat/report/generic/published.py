"""Results that a paper prints, shown with measured ones: helpers, the table of people's labels, and published verdicts.

Published verdicts are compared with ours for cells that replay an imported recording, of any protocol.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from codechat.base.records import read_sessions
from codechat.report.comparison import REPLAYED, Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Interval, Section, Table, Value, columns_of
from codechat.report.generic.tables import named_table

T = TypeVar("T")
MEASURED, PUBLISHED = "measured", "published"
NOWHERE = " No cell here has."
MOST_APART = 3  # cells in a note
ALL = "all"
LABELS_NOTE = (
    "Share: the mean over the people who labelled; its interval is Wilson's, for the labels of one of them. Same: what "
    "two people label alike, of what both label; kappa is Cohen's; both are means over pairs, and the interval is a "
    "single pair's."
)
IMPORTED = "imported"  # the id of the cell that imported sessions name
LONGEST_CODE = 400  # characters of a program in the list; the page and the records have the whole
KINDS = {(True, False): "published passes, ours fails", (False, True): "published fails, ours passes"}
NOTE = (
    "Turns of imported recordings that have a published verdict (`official`) and one of ours. A difference is no error "
    "of either side before its cause is known: packages, versions and time limits differ."
)


def plain_name(model: str) -> str:
    """A model's name without publisher, capitals and signs."""
    return re.sub(r"[^a-z0-9]", "", model.removesuffix(REPLAYED).rpartition("/")[2].lower())


def beside(measured: Iterable[tuple[str, Iterable[T]]], printed: Mapping[str, T]) -> list[T]:
    """Measured rows in order, each with the paper's name of the model, and the printed rows by this name. A printed row
    follows the last measured row of the same model; printed rows of other models come last."""
    entries, left = list(measured), dict(printed)
    last = {name: number for number, (name, _) in enumerate(entries)}
    rows: list[T] = []
    for number, (name, group) in enumerate(entries):
        rows += group
        if last[name] == number and name in left:
            rows.append(left.pop(name))
    return [*rows, *left.values()]


def per_cent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def said_apart(cells: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The differences of cells from a paper's setup, by the cell's label, for a table's note; the first three cells."""
    found = [f"{label}: {', '.join(apart)}" for label, apart in cells if apart]
    return f" What differs: {'; '.join(found[:MOST_APART])}{'; …' if len(found) > MOST_APART else ''}." if found else ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that people label: its title, the meaning of the share, and the paper's figures.

    `printed` has by group (`all`, a language) the number of labels and the share in per cent; `same` is the part that
    two people labelled alike, in per cent, None if the paper does not print it.
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
    """The results of people's labels by question, if the report has any; `by` is the title of the column of groups. The
    paper's rows follow the rows of a question, each with the number of labels that are missing here."""
    scored: Mapping[str, Any] = next((found.cell.scored for found in comparison.in_order() if found.cell.scored), {})
    rows: list[tuple[Value, ...]] = []
    for question, about in asked.items():
        if question not in scored:
            continue
        found = scored[question]
        for place, share in found["labelled"].items():
            ends = None if share["value"] is None else Interval(100 * share["low"], 100 * share["high"])
            between: tuple[Value, ...] = (None, None, None)
            if place == ALL:
                between = (per_cent(found["same"]), found["kappa"], Interval.of(found["kappa_interval"]))
            row = (about.title, place, MEASURED, share["of"], per_cent(share["value"]), ends, *between, None)
            rows.append(row)
        for place, (size, value) in about.printed.items():
            ours = found["labelled"].get(place, {"of": 0})["of"]
            less = f"{ours} of {size} labels" if ours < size else None
            same = about.same if place == ALL else None
            rows.append((about.title, place, PUBLISHED, size, value, None, same, None, None, less))
    if rows:
        columns = (
            *columns_of(question="What", group=by, source="Source"),
            *(
                Column("n", "Labels", "d"),
                Column("share", "Share, %", ".2f"),
                Column("interval", "95 % interval", ".1f"),
            ),
            *(Column("same", "Same, %", ".2f"), *columns_of(".3f", kappa="Kappa", kappa_interval="95 % interval")),
            Column("differs", "Not as in the paper"),
        )
        meant = "; ".join(f"{each.title.lower()}: {each.counts}" for each in asked.values())
        yield Table(name, title, columns, tuple(rows), f"{meant[0].upper()}{meant[1:]}. {LABELS_NOTE}{note}", group)


class Difference(NamedTuple):
    """A turn whose published verdict differs from ours."""

    task: str
    turn: int
    kind: str
    ours: str
    reason: str
    code: str


def section(comparison: Comparison[Any]) -> Section:
    """The section of the page that shows these tables."""
    key = f"{comparison.protocol}_published"
    return Section(key, f"{comparison.measures.name}: published verdicts and ours", "Published", groups=[key])


def tables(comparison: Comparison[Any]) -> Iterator[Table]:
    """The number of equal verdicts by cell, the differences by task and kind, and the list of differing programs."""
    name, measured = f"{comparison.protocol}_published", comparison.measures.name
    read = [(found, compared) for found in comparison.in_order() if (compared := _compare(found.cell)) is not None]
    if not read:
        return
    columns = columns_of("d", compared="Turns compared", agree="Agree"), Column("share", "Agreement", ".4f")
    kinds = columns_of("d", **{f"kind_{place}": kind.capitalize() for place, kind in enumerate(KINDS.values())})
    rows: list[tuple[SessionVerdicts, Sequence[Value]]] = []
    for found, (counts, _, unsaid) in read:
        whole, by_kind = sum(counts.values()), [counts[kind] for kind in KINDS.values()]
        rows.append((found, (whole, counts["agree"], counts["agree"] / max(1, whole), *by_kind, unsaid)))
    yield named_table(
        comparison, (*columns[0], columns[1], *kinds, Column("unsaid", "Without a published verdict", "d")), rows,
        name=name, title=f"{measured}: published against ours", group=name, note=NOTE,
    )  # fmt: skip
    every = [(found, difference) for found, (_, differences, _) in read for difference in differences]
    if not every:
        return
    by_task = [(found, Counter((e.task, e.kind, e.ours) for e in differences)) for found, (_, differences, _) in read]
    task, kind, ours = columns_of(task="Task", kind="Kind", ours="Our outcome")
    yield named_table(
        comparison, (task, kind, ours, Column("turns", "Turns", "d")),
        [(found, (*where, count)) for found, counts in by_task for where, count in counts.items()],
        name=f"{name}_by_task", title=f"{measured}: differences by task", group=name, note=NOTE,
    )  # fmt: skip
    yield named_table(
        comparison, (task, Column("turn", "Turn", "d"), kind, ours, *columns_of(reason="Our reason", code="Program")),
        every, name=f"{name}_programs", title=f"{measured}: the differing programs", group=name,
        note=f"{NOTE} Programs are cut at {LONGEST_CODE} characters.",
    )  # fmt: skip


def _compare(cell: LoadedCell) -> tuple[Counter[str], list[Difference], int] | None:
    """The numbers of verdicts that agree or differ by kind, the differences, and the turns without a published verdict.
    None if the cell replays no imported recording with verdicts, or the recording is gone."""
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    unsaid, any_published = 0, False
    for part in cell.parts:
        published = _published(part)
        any_published |= any(passed is not None for passed in published.values())
        for session in part.sessions() if published else ():
            for turn in session.turns if session.status == "completed" else ():
                said = published.get((session.task_id, turn.turn))
                if said is None:
                    unsaid += 1
                elif turn.passed is not None:
                    kind = KINDS.get((said, turn.passed), "agree")
                    counts[kind] += 1
                    if kind != "agree":
                        texts = (turn.failure.reason if turn.failure else "", turn.code or "")
                        reason, code = (text[:LONGEST_CODE] for text in texts)
                        where = (session.task_id, turn.turn, kind, str(turn.outcome))
                        differences.append(Difference(*where, reason, code))
    return (counts, differences, unsaid) if any_published else None


def _published(cell: LoadedCell) -> dict[tuple[str, int], bool | None]:
    """The published verdicts by task and turn, from the recording that the cell's model replays."""
    model = cell.config.get("model") or {}
    place = model.get("path")
    path = Path(place) if isinstance(place, str) and model.get("kind") == "replay" else None
    if path is None or not path.is_file():
        return {}
    found: dict[tuple[str, int], bool | None] = {}
    for session in read_sessions(path):
        if session.cell_id != IMPORTED:
            return {}
        for turn in session.turns:
            found[session.task_id, turn.turn] = ((turn.model_extra or {}).get("official") or {}).get("passed")
    return found
