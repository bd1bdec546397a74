"""The chapter of conversations in which tests choose the next instruction: pairs of rounds, as in the paper.

CodeIF-Bench's Tables 6 and 7 have a column for rounds 1-2, 3-4 and so on, in which the turns of both rounds count
alike, and a mean in which the columns count alike, however few dialogues are left in the last ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison, SessionVerdicts
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.generic.tables import INTERVALS, SPECS, named_table
from codechat.report.metrics.statistics import mean_of, percentile_interval
from codechat.report.metrics.sums import Tally, size
from codechat.studies.codeif.metrics import DYNAMIC, Conversations

MEAN, ALL = "mean of the pairs", "all rounds"
SHOWN = ("ia", "ca", "ife_asked", "ifr")
NOTE = (
    "Rounds in twos, as in the paper's Tables 6 and 7 and its Figure 4; the initial round is round 1. In a pair every "
    f"turn counts alike. {MEAN.capitalize()}: every pair counts alike, which is the paper's Avg. {ALL.capitalize()}: "
    "every turn counts alike, as in all other tables of this report. n: turns; of IFR, instructions that had been met. "
    f"{INTERVALS} A resample leaves pairs out of the mean that none of its dialogues reaches."
)


@dataclass
class Rounds(SessionVerdicts):
    """The sessions of a cell, and the sums of the rounds."""

    counted: Conversations = field(default_factory=Conversations)

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        self.counted.add(session)


@register(DYNAMIC.protocol)
class DynamicChapter(Chapter):
    reads = Rounds
    leads = False

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        for table in super().tables(comparison):
            yield table
            if table.name == f"{comparison.protocol}_turns":
                yield _in_pairs(comparison)


def pairs_of(rounds: Sequence[Tally]) -> list[Tally]:
    """The rounds in pairs; the last is alone if their number is odd."""
    return [Tally.union(rounds[place : place + 2]) for place in range(0, len(rounds), 2)]


def _in_pairs(comparison: Comparison[Rounds]) -> Table:
    """A row for every pair of rounds of a cell's levels, then their mean, then all rounds at once."""
    measures = {series.key: series for series in DYNAMIC.series}
    columns = [Column("level", "Level"), Column("rounds", "Rounds")]
    for name in SHOWN:
        spec = SPECS[measures[name].unit]
        columns += [Column(name, measures[name].label, spec), Column(f"{name}_ci", "95 % interval", spec)]
        columns += [Column(f"{name}_n", "n", "d")]
    rows = [
        (found, [level, *values])
        for found in comparison.in_order()
        for level, rounds in sorted(found.counted.level_turns.items())
        for values in _rows(found, pairs_of(rounds), found.counted.levels[level])
    ]
    return named_table(
        comparison, columns, rows, name=f"{comparison.protocol}_rounds", group=comparison.protocol, note=NOTE,
        title=f"{comparison.measures.name}: rounds in twos",
    )  # fmt: skip


def _rows(found: Rounds, pairs: Sequence[Tally], whole: Tally) -> Iterator[list[Value]]:
    for number, pair in enumerate(pairs):
        yield [f"{2 * number + 1}–{2 * number + 2}", *_values(found, pair)]
    yield [MEAN, *(value for name in SHOWN for value in (*_mean(found, pairs, name), None))]
    yield [ALL, *_values(found, whole)]


def _values(found: Rounds, tally: Tally) -> Iterator[Value]:
    """The value, interval and size of each measure."""
    for ratio in (tally[name] for name in SHOWN):
        yield from (ratio.rate, Interval.of(found.resamples.shown(ratio)), size(ratio))


def _mean(found: Rounds, pairs: Sequence[Tally], name: str) -> tuple[float | None, Interval | None]:
    """The unweighted mean of the pairs that have a value, with its interval."""
    mean = mean_of([pair[name].rate for pair in pairs])
    resampled = zip(*(found.resamples.ratios(pair[name]) for pair in pairs), strict=True)
    return mean, Interval.of(percentile_interval(map(mean_of, resampled)))
