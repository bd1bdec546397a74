"""What a cell loaded (paper, Table III): counts of tasks and tests, kept in metrics.json, as a table of the report."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Target
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Requirement, Task
from codechat.report.build import comparisons_of
from codechat.report.loading import load_cells
from codechat.report.metrics.counts import count_loaded
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.sandbox.suites import HasTestCounts
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.exit_status import ExitStatus
from codechat.sandbox.suites.repository import Repository
from codechat.studies.refine.chapter.tables import datasets
from codechat.studies.sreval.rows import Step, StepTask
from support.refine_cells import Made, write_cell

DATA = os.environ.get("CODECHAT_TEST_DATA")


def test_tests_are_counted_by_kind_whatever_the_language() -> None:
    calls = Calls("f", None, base=((1,), (2,)), plus=((3,),) * 5)
    snippets = Assertions(("assert f(1)", "assert f(2)", "assert f(3)"))
    status = ExitStatus()
    asked = Requirement("1", "type", "text", snippets)
    tasks = [
        Task("a", "", suite=calls),
        Task("b", "", suite=snippets, requirements=(asked,)),
        Task("c", "", Target("perl"), suite=status),
        Task("d", "", suite=Repository("p", None, "f.py", (1, 2), 0, ("t.py::a", "t.py::b"))),
        Task("e", ""),
    ]
    assert not isinstance(status, HasTestCounts)
    assert count_loaded(tasks) == {"tasks": 5, "counted": 3, "original_tests": 2 + 3 + 2, "added_tests": 5}
    assert count_loaded(()) == {"tasks": 0, "counted": 0, "original_tests": 0, "added_tests": 0}


def test_the_lengths_of_turns_are_kept_where_a_paper_gives_them() -> None:
    steps = (Step("Ask.\nMore.", Assertions(()), "a = 1", "assert a"), Step("Ask", Assertions(()), "b", "assert\nb\n"))
    counts = count_loaded([StepTask("a", "Ask.", steps=steps, above="x")])
    assert counts["lengths"] == {"characters": [(13 + 6) / 2, (5 + 1) / 2, (8 + 9) / 2], "lines": [3.5, 1.0, 2.0]}


def cell_with(runs: Path, dataset: str, counts: dict[str, int] | None, **options: Any) -> None:
    folder = write_cell(Made("m", dataset, tasks=3, turns=3, **options), runs)
    metrics = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps(metrics | ({"loaded": counts} if counts else {})))


def test_the_table_has_a_row_per_dataset_and_choice_of_tasks(tmp_path: Path) -> None:
    counts = {"tasks": 4, "counted": 3, "original_tests": 6, "added_tests": 24}
    cell_with(tmp_path, "one", counts)
    cell_with(tmp_path, "one", counts, seed=1)
    cell_with(tmp_path, "one", counts | {"tasks": 2}, seed=2)
    cell_with(tmp_path, "two", {"tasks": 5, "counted": 0, "original_tests": 0, "added_tests": 0})
    cell_with(tmp_path, "old", None)
    (comparison,) = comparisons_of(load_cells([tmp_path]))
    table = datasets(comparison)
    assert table is not None
    assert table.rows == (
        ("one", 4, 3, 2.0, 8.0, 10.0),
        ("one", 2, 3, 2.0, 8.0, 10.0),
        ("two", 5, 0, None, None, None),
    )
    assert (
        datasets(replace(comparison, cells=tuple(found for found in comparison.cells if found.cell.dataset == "old")))
        is None
    )


def test_a_cell_keeps_the_counts_of_the_tasks_that_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.run.run.write_figures", lambda *_: None)  # they are tested elsewhere
    words = ["model=echo", "dataset.limit=2", "agenda.turns=2", "tracking=none", f"runs_dir={tmp_path}"]
    outcome = run(compose(words))
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert outcome.metrics["loaded"] == count_loaded(outcome.cell.tasks)
    assert outcome.metrics["loaded"]["tasks"] == 2
    (comparison,) = comparisons_of(load_cells([tmp_path]))
    assert datasets(comparison) is not None


@pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA is unset: no benchmark files")
@pytest.mark.parametrize(
    ("dataset", "file", "counts"),
    [
        # the paper: 164 tasks, 10 and 784 tests; 378 tasks, 3 and 105
        ("humaneval", "HumanEvalPlus.jsonl.gz", (164, 164, 1570, 122_683)),
        ("mbpp", "MbppPlus.jsonl.gz", (378, 378, 1174, 39_841)),
    ],
)
def test_the_counts_of_the_published_datasets(dataset: str, file: str, counts: tuple[int, ...]) -> None:
    config = DATASETS.validate({"kind": dataset, "path": str(Path(str(DATA)) / file)})
    assert tuple(count_loaded(DATASETS.build(config).tasks).values()) == counts
