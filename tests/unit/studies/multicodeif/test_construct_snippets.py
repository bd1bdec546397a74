"""Snippets of code that tasks are thought of by, and what is drawn for the n-th task of a type."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from codechat.base.errors import UserError
from codechat.run.construct import Item, Kept, Kit
from codechat.run.construct.kit import People
from codechat.studies.multicodeif.construct.sources import choose_pools, read_pools, read_snippets
from codechat.studies.multicodeif.construct.task import Demanded, Made
from codechat.studies.multicodeif.construct.writing import Draw

BODY = "def double(values):\n    found = [2 * each for each in values]\n    return found\n"


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_of_snippets_and_of_references(tmp_path: Path) -> None:
    path = write(
        tmp_path / "seeds.jsonl",
        {"id": "mine", "code": BODY, "language": "Py", "origin": "https://example.org/a", "license": "MIT"},
        {"id": "lib/b.rs", "code": "fn a() {\n    let x = 1;\n}\n"},
        {"code": f"\n{BODY}\n", "language": "python"},
        {"code": "x = 1", "language": "python"},
        {"code": "x = 1\n" * 401, "language": "python"},
        {"code": "x = [\n0,\n" + "1, " * 9000 + "]\n", "language": "python"},
        {"task_id": "HumanEval/0", "prompt": "def add(a, b):\n", "canonical_solution": "    c = a\n    return c + b\n", "language": "python"},
        {"task_id": "made/0", "prompt": "Write it.", "witness": BODY.replace("2", "3"), "language": "python"},
    )  # fmt: skip
    found = read_snippets(path)
    assert [(each.id, each.language, each.origin, each.licence) for each in found.used] == [
        ("mine", "python", "https://example.org/a", "MIT"),
        ("lib/b.rs", "rust", "", ""),
        ("HumanEval/0", "python", "", ""),
        ("made/0", "python", "", ""),
    ]
    assert found.used[2].code.startswith("def add(a, b):\n    c = a")
    assert found.left_out == {"duplicate": 1, "too long": 2, "too short": 1}


def test_a_folder_of_source_files(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("\nMIT License\n\nDo as you please.\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text(BODY)
    (tmp_path / "lib" / "notes.txt").write_text(BODY)
    (snippet,) = read_snippets(tmp_path).used
    assert (snippet.id, snippet.language, snippet.origin, snippet.licence) == (
        "lib/a.py",
        "python",
        "lib/a.py",
        "MIT License",
    )


@pytest.mark.long
def test_a_language_that_nobody_says_is_recognised(tmp_path: Path) -> None:
    program = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Println(i)\n\t}\n}\n'
    path = write(tmp_path / "seeds.jsonl", {"code": program}, {"code": "one\ntwo\nthree words of nothing\n"})
    found = read_snippets(path)
    assert [each.language for each in found.used] == ["go"] and found.left_out == {"language not recognised": 1}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"code": " "}, "it has no code"),
        ({"code": BODY, "language": "cobol"}, "cobol"),
        ({"code": 3}, "seeds.jsonl:1"),
        ({"code": "x = 1", "language": "python"}, "1 too short"),
    ],
)
def test_seeds_that_do_not_serve_are_told(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        read_snippets(write(tmp_path / "seeds.jsonl", row))


def kit_of(item: str, seed: int = 0) -> Kit:
    return Kit("unit", item, seed, cast(Any, None), People())


def drawn(draw: Draw, name: str, number: int, seed: int = 0) -> tuple[str, str]:
    item = Item(f"{name}/{number}", Made(name, number, 1, {}).data())
    outcome = asyncio.run(draw.work(item, kit_of(item.id, seed)))
    assert isinstance(outcome, Kept)
    found = outcome.item.data["drawn"]
    return found["value"], found["language"]


def test_each_value_is_drawn_once_a_round_in_a_language_that_it_fits() -> None:
    pools = read_pools()
    for name in ("data_structure_size", "brace", "language_type"):
        draw, pairs = Draw(pools), set(pools[name].pairs())
        values = {value for value, _ in pairs}
        found = [drawn(draw, name, number) for number in range(2 * len(values))]
        assert set(found) <= pairs
        assert set(Counter(value for value, _ in found).values()) == {2}, "even over values"
        first, second = found[: len(values)], found[len(values) :]
        assert {value for value, _ in first} == values and (
            [v for v, _ in first] != [v for v, _ in second] or len(values) < 5
        )
        assert found == [drawn(draw, name, number) for number in range(2 * len(values))]
        assert found != [drawn(draw, name, number, seed=1) for number in range(2 * len(values))]


def test_a_further_constraint_neither_repeats_nor_contradicts() -> None:
    pools = choose_pools(read_pools(), ["data_structure_size", "data_structure_type", "return_type"], ["rust"])
    sized = Demanded("data_structure_size", "Vec;128", "rust", "rust;Vec;128")
    returned = Demanded("return_type", "List", "rust", "rust;collect;List")
    made = Made("data_structure_size", 0, 1, {}, demanded=(sized, returned), chain="c", level=2)
    draw = Draw(pools)
    found = {draw.further(made, [*pools], kit_of(f"c/{number}")) for number in range(60)}
    structures = {(each.type, each.value.partition(";")[0]) for each in found if each}
    assert None not in found and len(found) > 5 and not any(name == "Vec" for _, name in structures)
    assert {kind for kind, _ in structures} == {"data_structure_size", "data_structure_type"}, (
        "one result of one function"
    )
    assert draw.further(made, ["return_type"], kit_of("c/0")) is None
