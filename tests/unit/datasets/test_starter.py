"""The embedded tasks: examples that hold, references that run alone, and values worked out by hand."""

import doctest
import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets import DATASETS, starter
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.suites.calls import Calls

DATASET: Dataset = DATASETS.build(DATASETS.validate({"kind": "starter"}))
TASKS: dict[str, Task] = {task.target.entry_point: task for task in DATASET.tasks}
BY_HAND: dict[str, list[tuple[tuple[Any, ...], Any]]] = {
    "mask_middle": [(("wonderful", 3), "won***ful"), (("aé日b", 1), "a**b"), (("ok", 0), "**")],
    "name_initials": [(("rosa  von-luxemburg",), "R.V-L."), (("- x",), "X.")],
    "wrap_words": [(("to be or not", 5), ["to be", "or", "not"]), (("abcd ef", 3), ["abcd", "ef"])],
    "limit_repeats": [(("bookkeeper", 1), "bokeper"), (("aaaAA", 2), "aaAA"), (("abc", 0), "")],
    "number_lines": [(("x\n", 99), " 99: x\n100: ")],
    "interleave": [(("ace", "bdfgh"), "abcdefgh")],
    "rotate_blocks": [(([1, 2, 3, 4, 5, 6, 7], 3), [2, 3, 1, 5, 6, 4, 7])],
    "run_lengths": [(([2, 2, 3, 2],), [2, 1, 1])],
    "merge_bookings": [(([[6, 9], [1, 3], [3, 4], [7, 8]],), [[1, 4], [6, 9]])],
    "podium_ranks": [(([3, 9, 9, 7, 3],), [3, 1, 1, 2, 3])],
    "find_summits": [(([0, 2, 2, 1, 3, 3],), [1]), (([1, 2, 3, 1, 2, 1],), [2, 4])],
    "deal_cards": [((["1", "2", "3", "4", "5", "6", "7"], 3), [["1", "4"], ["2", "5"], ["3", "6"], ["7"]])],
    "digit_persistence": [((77,), 4), ((-25,), 2)],  # 77, 49, 36, 18, 8
    "fewest_coins": [((63, [21, 25, 10]), 3), ((9, [4, 6]), -1)],
    "mixed_fraction": [((22, 8), "2 3/4"), ((3, -6), "-1/2"), ((0, -4), "0"), ((-8, -2), "4")],
    "balanced_ternary": [((13,), "+++"), ((-5,), "-++"), ((6,), "+-0")],
    "trimmed_mean": [(([1.0, 5.0, 9.0, 3.0, 7.0], 1), 5.0)],
    "unit_fractions": [((4, 13), [4, 18, 468])],
    "word_index": [((["b a", "", "a c a"],), {"b": [1], "a": [1, 3], "c": [3]})],
    "update_stock": [(({"a": 1, "b": 2}, {"b": -1, "c": 0}), {"a": 1, "b": 1})],
    "look_up": [(({"a": [{"b": [5, 6]}]}, "a.0.b.1", 0), 6), (({"a": [1]}, "a.1", "no"), "no")],
    "group_by_initial": [((["bee", "Bat", "ant", "bee", ""],), {"B": ["Bat", "bee"], "A": ["ant"]})],
    "election_winner": [(([" bo", "al", "bo ", "al", ""],), "al")],
    "settle_balances": [(([["a", "b", 3], ["b", "c", 3], ["c", "d", 1]],), {"a": -3, "c": 2, "d": 1})],
    "depth_weighted_sum": [(([5, [[1, -2]], [3]],), 5 - 3 + 6)],
    "climb_plans": [((4, [3, 1]), [[3, 1], [1, 3], [1, 1, 1, 1]])],
    "leaf_paths": [(({"b": {"x": {"y": {}}}, "a": {}},), ["b/x/y", "a"])],
    "expand_braces": [(("{1,{2,3}4}-{,5}",), ["1-", "1-5", "24-", "24-5", "34-", "34-5"])],
    "gray_codes": [((3,), ["000", "001", "011", "010", "110", "111", "101", "100"])],
    "count_partitions": [((6, 6), 11), ((6, 2), 4)],
    "parse_duration": [(("1d1m",), 86460), (("5m5",), -1), (("2h0s",), 7200)],
    "evaluate_postfix": [(("2 3 4 * - 5 +",), -5), (("4 -",), None)],
    "parse_query": [(("x=1=2&=z&y&x=+",), {"x": ["1=2", " "], "y": [""]})],
    "split_csv_line": [(('a,"b,""c""",',), ["a", 'b,"c"', ""])],
    "expand_ranges": [(("3 - 1,,10-11",), [3, 2, 1, 10, 11])],
    "compare_versions": [(("1.0.0-rc", "1"), -1), (("2.1", "2.0.9"), 1), (("1-b", "1.0-a"), 1)],
    "days_apart": [(("2100-02-28", "2100-03-01"), 1), (("2024-01-01", "2025-01-01"), 366)],
    "shift_clock": [(("06:45", -1000), "14:05")],
    "count_weekday": [(("2024-01-01", "2024-01-31", 2), 5), (("2024-01-06", "2024-01-05", 5), 0)],
    "last_weekday": [((2024, 12, 2), "2024-12-25"), ((2100, 2, 6), "2100-02-28")],
    "shared_minutes": [(("08:30-12:15", "11:45-13:00"), 30)],
    "fiscal_quarter": [(("2024-01-31", 2), "2023-Q4"), (("2024-11-01", 10), "2024-Q1")],
    "walk_inwards": [(([[1, 2], [3, 4], [5, 6], [7, 8]],), [1, 2, 4, 6, 8, 7, 5, 3])],
    "lake_sizes": [((["##.#", "#..#", "...#", "#..."],), [1, 3, 3])],
    "fewest_moves": [((["..#", "#..", "##."],), 4), (([".#.", "#..", "..."],), -1)],
    "next_generation": [((["**.", "*..", "..."],), ["**.", "**.", "..."])],
    "drive_robot": [(("BLFF",), [-2, -1])],
    "replay_cache": [((1, [["put", "k", 5], ["get", "k"], ["put", "m", 6], ["get", "k"], ["get", "m"]]), [5, None, 6])],
    "bowling_score": [(([10, 2, 3] + [0] * 16,), 20), (([6, 4, 5] + [0] * 17,), 20), (([0] * 18 + [6, 4, 9],), 19)],
    "plan_steps": [(({"b": ["d"], "c": [], "a": ["d"]},), ["c", "d", "a", "b"]), (({"a": ["b"], "b": ["b"]},), [])],
}


def reference_of(name: str) -> Callable[..., Any]:
    """The entry point of a reference that is executed with nothing around it."""
    space: dict[str, Any] = {}
    exec(compile(TASKS[name].reference or "", name, "exec"), space)
    return space[name]


def suite_of(name: str) -> Calls:
    suite = TASKS[name].suite
    assert isinstance(suite, Calls)
    return suite


def test_the_tasks_are_those_of_every_cell_so_far() -> None:
    assert [task.task_id for task in DATASET.tasks] == [f"starter/{name}" for name in BY_HAND]
    assert len(DATASET.tasks) == 50
    assert DATASET.content_hash == "7e1beddb8e8ad96c53ae6740271e09a72afcc52b0a252aae5a5bf8032d8c7ccf"


def test_they_are_tasks_of_your_own_if_the_file_is_copied(tmp_path: Path) -> None:
    shutil.copy(Path(starter.__file__).with_suffix(".jsonl"), tmp_path / "mine.jsonl")
    mine = DATASETS.build(DATASETS.validate({"kind": "jsonl", "path": str(tmp_path / "mine.jsonl")}))
    assert mine.own and mine.name == "mine" and mine.content_hash == DATASET.content_hash


@pytest.mark.parametrize("name", BY_HAND)
def test_examples_in_the_docstring_hold(name: str) -> None:
    function = reference_of(name)
    (examples,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={name: function})
    report: list[str] = []
    failed, tried = doctest.DocTestRunner().run(examples, out=report.append)
    assert tried >= 1 and failed == 0, "".join(report)


@pytest.mark.parametrize("name", BY_HAND)
def test_values_worked_out_by_hand(name: str) -> None:
    for arguments, expected in BY_HAND[name]:
        assert reference_of(name)(*arguments) == expected


@pytest.mark.parametrize("name", BY_HAND)
def test_inputs_are_enough_and_references_leave_them_alone_and_are_quick(name: str) -> None:
    suite, function = suite_of(name), reference_of(name)
    assert 3 <= len(suite.base) <= 8 and 10 <= len(suite.plus) <= 40
    before = repr(suite.inputs)
    assert len({repr(call) for call in suite.inputs}) == len(suite.inputs), "an input is there twice"
    begin = time.process_time()
    for call in suite.inputs:
        function(*call)
    assert time.process_time() - begin < 0.1
    assert repr(suite.inputs) == before, "the reference changes its arguments"


def test_a_prompt_begins_with_the_imports_that_its_task_needs() -> None:
    for task in DATASET.tasks:
        assert task.reference is not None and task.reference.startswith(task.prompt) and ">>> " in task.prompt
    prompts = {name: task.prompt for name, task in TASKS.items()}
    assert prompts["count_weekday"].startswith("from datetime import date, timedelta\n\n\ndef count_weekday(")
    assert prompts["days_apart"].startswith("from datetime import date\n\n\ndef ")
    assert prompts["look_up"].startswith("from typing import Any\n")
    assert prompts["mask_middle"].startswith("def mask_middle(")


def test_properties() -> None:
    """Laws that hold for every input of a task, whatever the reference does to get there."""
    calls = {name: suite_of(name).inputs for name in TASKS}
    of = {name: reference_of(name) for name in TASKS}
    for (number,) in calls["balanced_ternary"]:
        value = 0
        for digit in of["balanced_ternary"](number):
            value = 3 * value + {"+": 1, "0": 0, "-": -1}[digit]
        assert value == number
    for numerator, denominator in calls["unit_fractions"]:
        units = of["unit_fractions"](numerator, denominator)
        assert sum(1 / unit for unit in units) == pytest.approx(numerator / denominator) and len(set(units)) == len(
            units
        )
    for first, second in calls["compare_versions"]:
        assert of["compare_versions"](first, second) == -of["compare_versions"](second, first)
    for (bits,) in calls["gray_codes"]:
        codes = of["gray_codes"](bits)
        assert len(set(codes)) == 2 ** max(bits, 0)
        for here, after in pairwise(codes):
            assert sum(a != b for a, b in zip(here, after, strict=True)) == 1
    for (transfers,) in calls["settle_balances"]:
        assert sum(of["settle_balances"](transfers).values()) == 0
    for text, width in calls["wrap_words"]:
        assert " ".join(of["wrap_words"](text, width)).split() == text.split()
    for (grid,) in calls["walk_inwards"]:
        assert sorted(of["walk_inwards"](grid)) == sorted(value for row in grid for value in row)
    for (needs,) in calls["plan_steps"]:
        plan = of["plan_steps"](needs)
        for step in plan:
            assert all(plan.index(other) < plan.index(step) for other in needs.get(step, []))
