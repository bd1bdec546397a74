"""Rounds until there are items enough, parts of an item that end when it becomes several, and rules that examine code."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Spread, Stage, Waits
from codechat.studies.multicodeif.checking import examine
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination
from support.construction import run, written


def numbered(first: int, count: int) -> list[Item]:
    return [Item(f"s{number}", {"number": number}) for number in range(first, first + count)]


def more(begun: Sequence[Item], kept: Sequence[Item]) -> Iterable[Item]:
    """Of six wanted ones those that are missing, of twenty at most."""
    return numbered(len(begun), 6 - len(kept)) if len(begun) < 20 else ()


async def odd(item: Item, kit: Kit) -> Outcome:
    return Kept(item) if item.data["number"] % 3 else Dropped("a third")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rounds_begin_when_all_have_ended_and_see_what_was_kept(tmp_path: Path) -> None:
    seen: list[tuple[list[str], list[str]]] = []

    async def together(items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
        seen.append(([item.id for item in kit.kept], [item.id for item in items]))
        return [Dropped("the first") if item.id == "s1" else Kept(item) for item in items]

    stages = [Stage("odd", odd), Stage("all", together=together)]
    outcome = run(tmp_path / "o", stages, numbered(0, 6), recipe={"more": more})
    assert outcome.yields is not None and (outcome.yields["seeds"], outcome.yields["kept"]) == (11, 6)
    assert [row["id"] for row in read(tmp_path / "o" / "items.jsonl")] == ["s2", "s4", "s5", "s7", "s8", "s10"]
    assert seen == [
        ([], ["s1", "s2", "s4", "s5"]),
        (["s2", "s4", "s5"], ["s7", "s8"]),
        (["s2", "s4", "s5", "s7", "s8"], ["s10"]),
    ]
    first = written(tmp_path / "o")
    run(tmp_path / "o", stages, numbered(0, 6), recipe={"more": more})
    assert written(tmp_path / "o") == first


def test_no_round_begins_while_somebody_waits_or_before_the_last_stage(tmp_path: Path) -> None:
    async def asked(item: Item, kit: Kit) -> Outcome:
        return Waits("Is it good?") if item.id == "s1" else Kept(item)

    stages = [Stage("odd", odd), Stage("asked", asked)]
    outcome = run(tmp_path / "o", stages, numbered(0, 3), recipe={"more": more})
    assert outcome.yields is not None and (outcome.yields["seeds"], outcome.yields["waiting"]) == (3, 1)
    outcome = run(tmp_path / "p", stages, numbered(0, 3), recipe={"more": more}, until="odd")
    assert outcome.yields is not None and outcome.yields["seeds"] == 3


def test_parts_that_end_at_once_stand_among_the_dropped_ones(tmp_path: Path) -> None:
    async def split(item: Item, kit: Kit) -> Outcome:
        parts = [Item(f"{item.id}/{name}", {**item.data, "part": name}, {"of": item.id}) for name in "abc"]
        return Spread(parts[:1], [(parts[1], Dropped("too late")), (parts[2], Dropped("too long", "by far"))])

    stages = [Stage("split", split), Stage("odd", odd)]
    outcome = run(tmp_path / "o", stages, numbered(0, 2))
    assert [row["id"] for row in read(tmp_path / "o" / "items.jsonl")] == ["s1/a"]
    dropped = read(tmp_path / "o" / "dropped.jsonl")
    assert [(row["id"], row["stage"], row["reason"], row["detail"]) for row in dropped] == [
        ("s0/a", "odd", "a third", ""),
        ("s0/b", "split", "too late", ""),
        ("s0/c", "split", "too long", "by far"),
        ("s1/b", "split", "too late", ""),
        ("s1/c", "split", "too long", "by far"),
    ]
    assert dropped[1]["seed"] == "s0" and dropped[1]["data"] == {"number": 0, "part": "b"}
    assert dropped[1]["provenance"] == {"of": "s0"}
    assert outcome.yields is not None
    row = outcome.yields["stages"]["split"]
    assert (row["reached"], row["passed"], row["dropped"]) == (6, 2, {"too late": 2, "too long": 2})
    first = written(tmp_path / "o")
    run(tmp_path / "o", stages, numbered(0, 2))
    assert written(tmp_path / "o") == first


def test_rules_examine_code_once(tmp_path: Path) -> None:
    kind = constraint_type("naming")
    constraint = Constraint("naming", kind.read("python;function:snake_case"))

    async def examined(item: Item, kit: Kit) -> Outcome:
        codes = [f"def do_{item.data['number']}(): pass\n", "def Do(): pass\n", ""]
        found = await examine(kit, kit.stage, [Examination(constraint, code, "guarded") for code in codes])
        return Kept(item.having(met=[each.met for each in found], new=kit.new))

    run(tmp_path / "o", [Stage("look", examined)], numbered(0, 1))
    assert read(tmp_path / "o" / "items.jsonl")[0]["met"] == [True, False, False]
