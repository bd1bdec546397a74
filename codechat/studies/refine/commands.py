"""`codechat list instructions`: the pool's instructions, their distribution, rejected candidates and mistakes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codechat.base.domain import CHANGES, SCOPES
from codechat.base.errors import UserError
from codechat.run.extensions import Listing, Section, add_topic
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool, WrongPool


def list_instructions(values: Mapping[str, Any] | None) -> Listing:
    """The readable instructions of a pool, with all mistakes of its file."""
    options = {"kind": "default"} if values is None else values["instructions"]
    try:
        return Listing([*_sections(INSTRUCTIONS.build(INSTRUCTIONS.validate(options)))])
    except WrongPool as wrong:
        return Listing([*_sections(wrong.understood, wrong.mistakes)], faulty=True)


def _sections(pool: Pool, mistakes: Sequence[UserError] = ()) -> Iterator[Section]:
    accepted = sorted(pool.instructions, key=lambda each: (SCOPES.index(each.scope), CHANGES.index(each.change)))
    rows = [
        (str(number), each.scope, each.change, "rules" if each.rule is not None else "LLM", each.text, each.id)
        for number, each in enumerate(accepted, 1)
    ]
    yield Section(columns=("", "scope", "change", "decided by", "instruction", "id"), rows=rows)
    ruled = sum(each.rule is not None for each in accepted)
    decided = f"decided by their rules: {ruled}; without a rule, for an LLM: {len(accepted) - ruled}"
    yield _distribution(pool, f"of {len(accepted)} accepted instructions ({decided})")
    if pool.others:
        held = [(", ".join(sorted(pool.languages[each.id])), each) for each in pool.others]
        others = [(languages, each.scope, each.change, each.text, each.id) for languages, each in held]
        columns = ("languages", "scope", "change", "instruction", "id")
        yield Section("for other languages", f"than Python alone: {len(pool.others)}", columns, others)
    if pool.rejected:
        rejected = [(each.scope, each.text, each.reason) for each in pool.rejected]
        words = f"by curation: {len(pool.rejected)}, never drawn"
        yield Section("rejected", words, ("scope", "instruction", "why"), rejected)
    if pool.warnings:
        yield Section("warnings", f": {len(pool.warnings)}", lines=pool.warnings)
    if mistakes:
        lines = [str(mistake).replace("\n", "; ") for mistake in mistakes]
        yield Section("mistakes", f": {len(mistakes)}; no cell runs with this file until they are mended", lines=lines)


def _distribution(pool: Pool, words: str) -> Section:
    cells = Counter((each.scope, each.change) for each in pool.instructions)
    rows = []
    for scope in SCOPES:
        row = [cells[scope, change] for change in CHANGES]
        rows.append((scope, *map(str, row), str(sum(row)), _share(sum(row), cells.total())))
    columns = [sum(cells[scope, change] for scope in SCOPES) for change in CHANGES]
    rows.append(("all", *map(str, columns), str(cells.total()), ""))
    rows.append(("share", *(_share(count, cells.total()) for count in columns), "", ""))
    return Section("distribution", words, ("scope", *CHANGES, "all", "share"), rows)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "—"


add_topic("instructions", list_instructions)
