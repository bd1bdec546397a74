"""The tree's drifter: what it changes computes the same, what it breaks does not, and it refuses what it cannot be sure of."""

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import codechat.studies.refine
from codechat.base.domain import Instruction
from codechat.studies.refine.baselines.drifting import CHANGES, add_tree_defect, refactor_tree
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns.reading.neutral import read_tree
from support.machine import needs_node
from support.spoken import COUNT, SHOUT

POOL = read_pool(EMBEDDED, {})
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(codechat.studies.refine.__path__[0]) / "dataset_starter_javascript.jsonl")
    .read_text()
    .splitlines()
]
HELPED = """class Solution {
    // a part
    private int part(int number) {
        return number * 2;
    }

    public int whole(int number) {
        int a = part(number);
        a += 3;
        if (a > 10) { return a; } else { return part(a); }
    }
}
"""


def instructions(language: str) -> dict[str, Instruction]:
    return {one.id: one for one in POOL.of(language)}


def results(row: dict[str, Any], programs: list[str]) -> list[Any]:
    """What programs give for the inputs of a task, in one process of Node; None for one that ends in an error."""
    calls = json.dumps([*row["base_input"], *row["plus_input"]])
    script = f"""
const results = [];
for (const text of {json.dumps(programs)}) {{
  try {{
    const called = new Function(text + "\\nreturn {row["entry_point"]};")();
    results.push(JSON.parse({json.dumps(calls)}).map((each) => called(...each)));
  }} catch (error) {{ results.push(null); }}
}}
console.log(JSON.stringify(results));
"""
    return list(json.loads(subprocess.run(["node"], input=script, capture_output=True, text=True, check=True).stdout))


@needs_node
@pytest.mark.parametrize("row", ROWS[::3], ids=lambda row: row["entry_point"])
def test_changes_compute_the_same_one_by_one_and_after_each_other(row: dict[str, Any]) -> None:
    known, code, name = instructions("javascript"), row["canonical_solution"], row["entry_point"]
    made = {refactor_tree(code, known[each], "javascript", name) for each in CHANGES if each in known} - {code}
    whole = code
    for each in random.Random(name).sample(sorted(CHANGES.keys() & known.keys()), 25):
        whole = refactor_tree(whole, known[each], "javascript", name)
    expected = [*row["base_output"], *row["plus_output"]]
    assert len(made) > 15
    assert results(row, [*sorted(made), whole]) == [expected] * (len(made) + 1)


@needs_node
def test_nearly_every_defect_is_seen() -> None:
    seen = Counter[bool]()
    for row in ROWS[::2]:
        draw = random.Random(row["entry_point"])
        broken = [add_tree_defect(row["canonical_solution"], "javascript", draw) for _ in range(5)]
        assert None not in broken
        expected = [*row["base_output"], *row["plus_output"]]
        seen.update(result == expected for result in results(row, [text for text in broken if text]))
    assert seen[False] >= 9 * seen[True]


def test_every_change_belongs_to_an_instruction_and_is_made_somewhere() -> None:
    known = {**instructions("javascript"), **instructions("java")}
    assert CHANGES.keys() <= known.keys()
    assert all(known[each].rule is not None for each in CHANGES)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("cosmetic-move-helpers-below", "    }\n\n    // a part\n    private int part"),
        ("cosmetic-rename-single-letter-locals", "int first = part(number);"),
        ("structural-define-outer-constant", "private static final int NUMBER_2 = 2;"),
        ("structural-rewrite-augmented-assignments", "a = a + 3;"),
        ("structural-convert-if-else-to-ternary", "return a > 10 ? a : part(a);"),
        ("cosmetic-remove-comments", "{\n    private int part"),
        ("semantic-add-try", "catch (RuntimeException error) { throw error; }"),
    ],
)
def test_changes_in_java(change: str, part: str) -> None:
    assert part in refactor_tree(HELPED, instructions("java")[change], "java", "whole")


def test_what_is_not_sure_stays_as_it_is() -> None:
    known = instructions("java")
    shared = "class A { int f(int n) { int s = n; long t = 1; t += s; return s; } int g(int s) { return s; } }\n"
    assert refactor_tree(shared, known["cosmetic-rename-single-letter-locals"], "java", "f") == shared
    assert refactor_tree(shared, known["structural-rewrite-augmented-assignments"], "java", "f") == shared
    assert refactor_tree("class {", known["cosmetic-add-comment"], "java", "f") == "class {"
    assert refactor_tree(COUNT, known["structural-define-class"], "java", "countEven") == COUNT


@pytest.mark.parametrize("code", [COUNT, SHOUT])
def test_defects_in_java_parse_and_depend_on_the_draw_alone(code: str) -> None:
    made = [add_tree_defect(code, "java", random.Random(seed)) for seed in range(20)]
    assert made == [add_tree_defect(code, "java", random.Random(seed)) for seed in range(20)]
    assert code not in made and (len(set(made)) > 1) is (code == COUNT), "the other has one place alone"
    assert all(text is not None and not read_tree(text, "java").problem for text in made)
    assert not any("void " in str(text) for text in made)
    assert add_tree_defect("class A { }\n", "java", random.Random(0)) is None
