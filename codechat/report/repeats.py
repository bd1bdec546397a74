"""Cells that differ in the seed alone are one entrant of a report: their sessions are several samples of every task."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codechat.metrics.decided import DECIDED
from codechat.metrics.loaded import LOADED
from codechat.metrics.measures import FIELD
from codechat.metrics.replies import REPLIES
from codechat.records import GROUP_TAG, SessionRecord, tags_in
from codechat.report.chapters import chapter_of
from codechat.report.study import LoadedCell
from codechat.report.variants import RESCORED, Options, settings_of, without_seed

Measure = Callable[[Mapping[str, Any], Iterable[SessionRecord]], Mapping[str, Any] | None]
"""The metrics of sessions, by the content of a config.yaml; None if its protocol or an option of it is not known."""
POOL_TAG = "codechat.pool_hash"
ADDED = ("retries", "rate_limited", "cached_replies", "wall_s")
PAID = ("cost_usd", "spent_usd")


def pool_repeats(cells: Sequence[LoadedCell], options: Options, measure: Measure) -> list[LoadedCell]:
    """The entrants: each group of repeats as one cell in the place of its first, and every other cell as it is."""
    first = {group[0].folder: group for group in repeats_in(cells, options)}
    later = {cell.folder for group in first.values() for cell in group[1:]}
    found: list[LoadedCell] = []
    for cell in (cell for cell in cells if cell.folder not in later):
        entrant = _pooled(first[cell.folder], measure) if cell.folder in first else None
        found += [entrant] if entrant is not None else first.get(cell.folder, [cell])
    return found


def repeats_in(cells: Sequence[LoadedCell], options: Options) -> list[list[LoadedCell]]:
    """The groups of two or more cells that differ in the seed, or that of the agenda, alone; by seed.

    Cells of the same seeds that nothing else tells apart stay apart: it is not known which of them is meant.
    """
    alike: dict[Hashable, list[LoadedCell]] = defaultdict(list)
    for cell in cells:
        alike[_all_but_seed(cell, options)].append(cell)
    groups = [group for members in alike.values() for group in _by_tag(members)]
    return [
        sorted(group, key=lambda cell: (cell.draw, cell.seed))
        for group in groups
        if 1 < len(group) == len({(cell.seed, cell.draw) for cell in group})
    ]


def _all_but_seed(cell: LoadedCell, options: Options) -> Hashable:
    """What repeats have in common."""
    settings = settings_of(without_seed(cell.config), options)
    pool = tags_in(cell.folder).get(POOL_TAG, "")
    return (cell.protocol, cell.model, cell.dataset, cell.agenda, settings, pool, RESCORED in cell.config)


def _by_tag(cells: Sequence[LoadedCell]) -> list[list[LoadedCell]]:
    """Told apart by what only their tags say, such as the version of the rules; cells without a tag belong to all."""
    tags = [tags_in(cell.folder).get(GROUP_TAG, "") for cell in cells]
    known = {tag for tag in tags if tag}
    if len(known) < 2:
        return [list(cells)]
    return [[cell for cell, own in zip(cells, tags, strict=True) if own == tag] for tag in known]


def _pooled(group: Sequence[LoadedCell], measure: Measure) -> LoadedCell | None:
    """The entrant of some repeats, measured over all their sessions; None if nothing can measure them."""
    first = group[0]
    if any(cell.measures is None for cell in group):
        return None
    measured = measure(first.config, (session for cell in group for session in cell.sessions()))
    if measured is None:
        return None
    every = [cell.metrics for cell in group]
    metrics = {**measured, **{key: sum(each.get(key) or 0 for each in every) for key in ADDED}}
    metrics |= {key: _dollars([each.get(key) or {} for each in every]) for key in PAID}
    for key in (DECIDED, REPLIES):
        if all(key in each for each in every):
            metrics[key] = {name: sum(each[key][name] for each in every) for name in every[0][key]}
    metrics |= {key: every[0][key] for key in (LOADED, FIELD) if key in every[0]}
    checked = chapter_of(first.protocol).checked(metrics, first.folder / "metrics.json")
    turns = max(cell.turns for cell in group)
    return replace(first, metrics=dict(checked), turns=turns, edited="", repeats=tuple(group))


def _dollars(costs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The sums by payer; None where a cell's is not known."""
    found: dict[str, float | None] = {}
    for payer in dict.fromkeys(payer for each in costs for payer in each):
        amounts = [each[payer] for each in costs if payer in each]
        known = [amount for amount in amounts if amount is not None]
        found[payer] = sum(known) if len(known) == len(amounts) else None
    return found
