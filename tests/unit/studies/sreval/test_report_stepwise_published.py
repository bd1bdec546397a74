"""What SR-Eval's paper prints, as kept in the package, against itself: a slip of a digit would break one of these sums."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from codechat.cli.commands.listing import options_of
from codechat.studies.sreval.chapter.published import DATA, LEVELS, Figures, Setting, paper
from support.stepwise_cells import TURNS

RAW: dict[str, Any] = yaml.safe_load(DATA.read_text())
ROUNDING = 0.00005 + 1e-9  # of a figure with four decimals
# what the paper's own text contradicts (docs/sreval.md)
WRONG_MEAN = {("G5-M", Setting("sreval_python_repository", "full_history", "golden"))}
OF_88_TASKS = {  # a task is missing, and not the same one: of four turns, and of five
    ("OSS-20-T", Setting("sreval_python_repository", "full_history", "basic")): (88, 88, 88, 84, 25),
    ("OSS-20-T", Setting("sreval_python_repository", "full_history", "golden")): (88, 88, 88, 84, 24),
}
NO_SHARE = {("QW3-235", Setting("sreval_python_repository", "full_history", "basic"), 0)}


def in_rounds() -> Iterator[tuple[str, Setting, Figures]]:
    for model, figures in paper().figures.items():
        for setting, found in figures.items():
            if found.rounds:
                yield model, setting, found


def test_every_model_and_setting_is_there() -> None:
    datasets = [dataset for level in LEVELS.values() for dataset in level]
    assert set(datasets) == set(TURNS) == set(RAW["tasks"]) - {"total"}
    assert len(paper().figures) == len(paper().names) == len(paper().presets) == 11
    assert len(list(in_rounds())) == 11 * 4 * 2
    with_tokens = [(model, each) for model, found in paper().figures.items() for each in found.values() if each.atc]
    assert len(with_tokens) == 4 * 4 * 5 and len({model for model, _ in with_tokens}) == 4
    assert set(paper().presets) <= set(options_of("model"))


def test_a_mean_is_that_of_its_rounds() -> None:
    wrong = {
        (model, setting)
        for model, setting, found in in_rounds()
        if abs(math.fsum(filter(None, found.rounds)) / 5 - (found.avg_acc or 0)) > 2 * ROUNDING
    }
    assert wrong == WRONG_MEAN


def test_every_share_is_one_of_the_tasks_that_have_the_round() -> None:
    wrong = set()
    for model, setting, found in in_rounds():
        sizes = OF_88_TASKS.get((model, setting), TURNS[setting.dataset])
        shares = [*zip(found.rounds, sizes, strict=True), (found.complete_rate, TURNS[setting.dataset][0])]
        for place, (share, size) in enumerate(shares):
            assert share is not None
            if abs(round(share * size) / size - share) > ROUNDING:
                wrong.add((model, setting, place))
    assert wrong == NO_SHARE


def test_no_task_is_complete_that_fails_a_round() -> None:
    """The rates of complete tasks are at most those of the first round."""
    for model, setting, found in in_rounds():
        assert (found.complete_rate or 0) <= (found.rounds[0] or 0), (model, setting)


def test_full_history_is_printed_twice_alike() -> None:
    seen = 0
    for dataset, lines in RAW["prompting"].items():
        for line, (avg_acc, complete_rate, _) in lines.items():
            model, context, prompting = line.split()
            if prompting == "full_history":
                seen += 1
                assert RAW["rounds"][dataset][f"{model} {context}"][5:] == [avg_acc, complete_rate], (dataset, line)
    assert seen == 4 * 4 * 2


def test_what_the_text_says_of_its_tables() -> None:
    def of(model: str, dataset: str, prompting: str = "full_history", context: str = "basic") -> Figures:
        return paper().figures[model][Setting(dataset, prompting, context)]

    best = {
        (dataset, context, key): max(
            getattr(found, key) for _, setting, found in in_rounds() if setting[::2] == (dataset, context)
        )
        for dataset in TURNS
        for context in ("basic", "golden")
        for key in ("avg_acc", "complete_rate")
    }  # section 5.1
    assert [best["sreval_python", "basic", key] for key in ("avg_acc", "complete_rate")] == [0.5324, 0.2042]
    assert [best["sreval_java", "basic", key] for key in ("avg_acc", "complete_rate")] == [0.5645, 0.2267]
    assert [best["sreval_python", "golden", key] for key in ("avg_acc", "complete_rate")] == [0.6694, 0.2746]
    assert [best["sreval_java", "golden", key] for key in ("avg_acc", "complete_rate")] == [0.6832, 0.2384]
    assert [best["sreval_python_repository", "basic", key] for key in ("avg_acc", "complete_rate")] == [0.3945, 0.0674]
    assert [best["sreval_java_repository", "basic", key] for key in ("avg_acc", "complete_rate")] == [0.2339, 0.2]
    assert [best["sreval_python_repository", "golden", key] for key in ("avg_acc", "complete_rate")] == [0.4568, 0.0787]
    assert [best["sreval_java_repository", "golden", key] for key in ("avg_acc", "complete_rate")] == [0.6517, 0.225]
    # section 5.2: tokens that code edits save
    saved = {
        dataset: (of("QW3-Coder", dataset).atc or 0) - (of("QW3-Coder", dataset, "code_edit").atc or 0)
        for dataset in TURNS
    }
    assert saved == pytest.approx({
        "sreval_python": 1184.34, "sreval_java": 2224.82,
        "sreval_python_repository": 1132.11, "sreval_java_repository": 816.74,
    })  # fmt: skip


def test_statistics_of_the_tasks_add_up() -> None:
    parts, total = [RAW["tasks"][dataset] for dataset in TURNS], RAW["tasks"]["total"]
    for key in ("tasks", "turns", "repositories"):
        assert sum(part[key] or 0 for part in parts) == total[key], key
    for dataset, part in RAW["tasks"].items():
        assert round(part["turns"] / part["tasks"], 2) == part["mean"], dataset
        if dataset in TURNS:
            sizes = TURNS[dataset]
            least = sum(size == sizes[0] for size in sizes)
            found = (part["tasks"], part["turns"], part["least"], part["most"])
            assert found == (sizes[0], sum(sizes), least, 5)
    for key in ("characters", "lines"):
        for place in (1, 2):  # of code and tests; that of questions leaves the code around out, and cannot be computed
            mean = sum(part[key][place] * part["tasks"] for part in parts) / total["tasks"]
            assert abs(mean - total[key][place]) < 0.11, (key, place)
