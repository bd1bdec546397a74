"""Published verdicts beside ours: of cells that replay an imported recording, whatever their protocol."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.records import read_sessions
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Section, Table
from codechat.report.generic.tables import named_table

IMPORTED = "imported"
"""The id of the cell that imported sessions name."""
LONGEST_CODE = 400
"""Characters of a program in the list; the page and the records have it whole."""
KINDS = {
    (True, False): "published passes, ours fails",
    (False, True): "published fails, ours passes",
}
NOTE = (
    "Turns of imported recordings that have a published verdict (`official`) and one of ours. A difference is no error "
    "of either side before its cause is known: packages, versions and time limits differ."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A turn whose published verdict is not ours."""

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
    """A table of how many verdicts agree by cell, one by task and kind, and the list of differing programs."""
    prefix, group = f"{comparison.protocol}_", f"{comparison.protocol}_published"
    read = [(found, compared) for found in comparison.in_order() if (compared := _compare(found.cell)) is not None]
    if not read:
        return
    yield named_table(
        comparison,
        [
            Column("compared", "Turns compared", "d"),
            Column("agree", "Agree", "d"), Column("share", "Agreement", ".4f"),
            *(Column(f"kind_{place}", kind.capitalize(), "d") for place, kind in enumerate(KINDS.values())),
            Column("unsaid", "Without a published verdict", "d"),
        ],
        [
            (
                found,
                [
                    sum(counts.values()), counts["agree"], counts["agree"] / max(1, sum(counts.values())),
                    *(counts[kind] for kind in KINDS.values()), unsaid,
                ],
            )
            for found, (counts, _, unsaid) in read
        ],
        name=f"{prefix}published", title=f"{comparison.measures.name}: published against ours", group=group, note=NOTE,
    )  # fmt: skip
    every = [(found, difference) for found, (_, differences, _) in read for difference in differences]
    if not every:
        return
    by_task: Counter[tuple[int, str, str, str]] = Counter()
    cells: dict[int, SessionVerdicts] = {id(found): found for found, _ in every}
    for found, each in every:
        by_task[id(found), each.task, each.kind, each.ours] += 1
    yield named_table(
        comparison,
        [Column("task", "Task"), Column("kind", "Kind"), Column("ours", "Our outcome"), Column("turns", "Turns", "d")],
        [(cells[cell], [task, kind, ours, count]) for (cell, task, kind, ours), count in by_task.items()],
        name=f"{prefix}published_by_task", title=f"{comparison.measures.name}: differences by task", group=group,
        note=NOTE,
    )  # fmt: skip
    yield named_table(
        comparison,
        [
            Column("task", "Task"), Column("turn", "Turn", "d"), Column("kind", "Kind"), Column("ours", "Our outcome"),
            Column("reason", "Our reason"), Column("code", "Program"),
        ],
        [(found, [e.task, e.turn, e.kind, e.ours, e.reason, e.code]) for found, e in every],
        name=f"{prefix}published_programs", title=f"{comparison.measures.name}: the differing programs", group=group,
        note=f"{NOTE} Programs are cut at {LONGEST_CODE} characters.",
    )  # fmt: skip


def _compare(cell: LoadedCell) -> tuple[Counter[str], list[Difference], int] | None:
    """How many verdicts agree or differ by kind, the differences, and the turns without a published verdict.

    None if the cell replays no imported recording with verdicts, or that is no longer where it was.
    """
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
                        reason = turn.failure.reason if turn.failure else ""
                        code = (turn.code or "")[:LONGEST_CODE]
                        differences.append(
                            Difference(session.task_id, turn.turn, kind, str(turn.outcome), reason[:LONGEST_CODE], code)
                        )
    return (counts, differences, unsaid) if any_published else None


def _published(cell: LoadedCell) -> dict[tuple[str, int], bool | None]:
    """The published verdicts by task and turn, from the recording that the cell's model replays."""
    place = (cell.config.get("model") or {}).get("path")
    path = Path(place) if isinstance(place, str) else None
    if path is None or not path.is_file():
        return {}
    found: dict[tuple[str, int], bool | None] = {}
    for session in read_sessions(path):
        if session.cell_id != IMPORTED:
            return {}
        for turn in session.turns:
            found[session.task_id, turn.turn] = ((turn.model_extra or {}).get("official") or {}).get("passed")
    return found
