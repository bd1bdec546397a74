"""The chapter of maintainers who explore a repository: the paper's table beside ours, and what its figures rest on."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codechat.report import drawing
from codechat.report.build import build_report, comparisons_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Board, ReportData
from codechat.report.drawing import Look, styled
from codechat.report.loading import load_cells
from codechat.report.metrics import Breakdown, Measures, points_of
from codechat.studies.cab.chapter.issues import counted_in
from codechat.studies.cab.chapter.tables import COHORTS, Judged, paper, paper_name
from codechat.studies.cab.metrics import ASSIST, GRADES
from support.cab import LANGUAGES, Assisted, sessions_of, write_assisted

MODELS = ("gpt-4.1-mini", "mine")


def report(folder: Path, *cells: Assisted) -> ReportData:
    for cell in cells:
        write_assisted(cell, folder / "runs")
    return build_report(load_cells([folder / "runs"]), folder / "out")


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "out" / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def metrics_of(folder: Path, model: str) -> dict[str, Any]:
    (path,) = (folder / "runs").glob(f"{model}-*/metrics.json")
    return dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportData]:
    """The folder of two cells with their report, and what the report holds."""
    folder = tmp_path_factory.mktemp("study")
    cells = (Assisted(model, undecided=7, good=0.4 + 0.2 * place) for place, model in enumerate(MODELS))
    return folder, report(folder, *cells)


@pytest.fixture
def comparison(built: tuple[Path, ReportData]) -> Path:
    return built[0]


def test_the_papers_table_stands_beside_ours(comparison: Path) -> None:
    rows = rows_of(comparison, "assist_correctness")
    named = [(row["cohort"], row["model"], row["source"]) for row in rows]
    assert named[:4] == [
        ("recent", "gpt-4.1-mini", "measured"), ("recent", "GPT-4.1 mini", "published"), ("recent", "mine", "measured"),
        ("recent", "DeepSeek R1", "published"),
    ]  # fmt: skip
    assert len(rows) == 2 * (len(MODELS) + 6)
    assert list(rows[1].values())[3:] == [
        "194", "16.49", "30.41", "53.09", "1.72", "2.17", "2.18", "", "", "", "2.94", "3.66", "5.7", rows[1]["differs"],
    ]  # fmt: skip
    measured = metrics_of(comparison, "mine")
    for cohort, row in (("recent", rows[2]), ("all_time", rows[10])):
        assert (row["cohort"], row["model"]) == (COHORTS[cohort], "mine")
        assert int(row["n"]) == measured["n"]["by_cohort"]["correct"][cohort] < 3 * len(LANGUAGES), "undecided ones"
        for name in GRADES:
            assert float(row[f"{name}_share"]) == pytest.approx(100 * measured["by_cohort"][name][cohort])
            for key in ("rounds", "thread_turns"):
                by_group = measured["by_verdict_cohort"][key]
                assert row[f"{key}_{name}"] == str(by_group.get(f"{name}, {cohort}", ""))
    note = (comparison / "out" / "tables" / "assist_correctness.md").read_text()
    assert "not like for like" in note and "sample" in note


PAPER = (
    "environment=docker", "environment.fallback=checkout", "protocol.prompts=paper", "protocol.judged=answer",
    "dataset.sample=paper", *(word for role in ("user", "judge") for word in (
        f"model@protocol.roles.{role}=anthropic", f"protocol.roles.{role}.name=claude-3-7-sonnet-20250219")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("issues", "more", "said"),
    [
        (28, (), ""),
        (1, (), "7 of 194 issues"),
        (28, ("dataset.sample=null",), "not drawn by dataset.sample=paper"),
        (28, ("environment=none",), "environment=none"),
        (28, ("protocol.prompts=plain",), "other prompts than protocol.prompts=paper"),
        (28, ("protocol.judged=dialogue", "protocol.rounds=3"), "protocol.judged=dialogue; protocol.rounds=3"),
        (28, ("protocol.roles.judge.name=gpt-5",), "judge gpt-5"),
    ],
)
def test_a_published_row_says_what_is_not_as_in_the_paper(
    tmp_path: Path, issues: int, more: tuple[str, ...], said: str
) -> None:
    words = tuple(word for word in PAPER if word.partition("=")[0] not in {each.partition("=")[0] for each in more})
    words = tuple(word for word in words if "environment=none" not in more or "environment" not in word)
    report(tmp_path, Assisted("gpt-4.1-mini", issues=issues, cohorts=("recent",), words=(*words, *more)))
    rows = [row for row in rows_of(tmp_path, "assist_correctness") if row["cohort"] == "recent"]
    assert {row["differs"] for row in rows if row["source"] == "published"} == {said}
    assert [row["differs"] for row in rows if row["source"] == "measured"] == [""]


def test_the_paper_stands_beside_its_own_issues_alone(tmp_path: Path) -> None:
    report(tmp_path, Assisted("gpt-4.1-mini", issues=1, cohorts=("recent",), dataset="assist_starter"))
    (row,) = rows_of(tmp_path, "assist_correctness")
    assert (row["cohort"], row["source"]) == ("recent", "measured")
    assert "none has" in (tmp_path / "out" / "tables" / "assist_correctness.md").read_text()


def test_what_figures_6_and_7_draw(comparison: Path) -> None:
    rows = rows_of(comparison, "assist_languages")
    assert len(rows) == len(MODELS) * len(LANGUAGES) * 2
    for row in rows:
        shares = [float(row[name] or "nan") for name in (*GRADES, "concise", "appropriate", "verbose")]
        assert sum(shares[:3]) == pytest.approx(100) and sum(shares[3:]) == pytest.approx(100)
        assert row["n"] == "3"


def test_issues_by_language_stand_beside_the_papers(comparison: Path) -> None:
    rows = rows_of(comparison, "assist_issues")
    own = {(row["what"], row["cohort"]): row for row in rows if row["source"] == "measured"}
    assert int(own["Issues retained", "total"]["total"]) == len(LANGUAGES) * 2 * 3
    assert {
        own["Issues retained", cohort][language] for cohort in ("recent", "all-time") for language in LANGUAGES
    } == {"3"}
    assert ("Filtered issues", "total") not in own, "a cell has the retained ones alone"
    printed = [row for row in rows if row["source"] == "published"]
    assert len(printed) == 4 * 3
    for row in printed:
        assert int(row["total"]) == sum(int(row[language]) for language in LANGUAGES), "the paper adds up"
    by_cohort = {(row["what"], row["cohort"]): row for row in printed}
    for what in {row["what"] for row in printed}:
        for language in (*LANGUAGES, "total"):
            parts = (int(by_cohort[what, cohort][language]) for cohort in ("recent", "all-time"))
            assert int(by_cohort[what, "total"][language]) == sum(parts)


def test_environments_that_were_needed_and_built_are_counted() -> None:
    found = Judged(cell=None)  # type: ignore[arg-type]
    own = next(sessions_of(Assisted("m", issues=1), "c"))
    for task, need, built in (("a", True, True), ("b", True, None), ("c", False, None), ("d", True, False)):
        judgement = {**(own.judgement or {}), "needs_build": need, "could_be_built": built}
        found.add(own.model_copy(update={"task_id": task, "judgement": judgement, "language": "zig"}))
    assert [counted_in(found, key, "recent", ["zig", "c"]) for key in ("docker", "built", "retained")] == [
        [3, 3, 0], [1, 1, 0], [4, 4, 0],
    ]  # fmt: skip


def test_threads_are_counted_by_language(comparison: Path) -> None:
    rows = rows_of(comparison, "assist_threads")
    assert [row["language"] for row in rows] == sorted(LANGUAGES) and {row["n"] for row in rows} == {"6"}
    for row in rows:
        assert sum(float(row[f"turns_{turns}"]) for turns in ("1", "2", "3", "4", "5+")) == pytest.approx(1)


def test_what_the_judge_holds_against_answers(comparison: Path) -> None:
    rows = rows_of(comparison, "assist_key_issues")
    measured = {model: metrics_of(comparison, model) for model in MODELS}
    for model, metrics in measured.items():
        wrong = metrics["n"]["verdicts"]["correct"] * (1 - metrics["verdicts"]["correct"])
        assert sum(row["model"] == model for row in rows) == round(wrong)
    assert rows[0]["verdict"] == "incorrect" and rows[-1]["verdict"] == "partially correct"
    for row in rows:
        assert (row["verdict"] == "incorrect") == (row["unmet"] == row["of"])
        said = row["key_issues"].split("; ") if row["key_issues"] else []
        assert {each.partition(": ")[2] for each in said} <= {"It says so.", "It does not."} and row[
            "reasoning"
        ] == "seen"


def test_user_and_judge(comparison: Path) -> None:
    for row in rows_of(comparison, "assist_user_judge"):
        counts = [int(row[key]) for key in ("satisfied_correct", "satisfied_other", "unsatisfied_correct",
                                            "unsatisfied_other")]  # fmt: skip
        assert sum(counts) == 42 - 6, "every seventh is undecided"
        assert float(row["same"]) == pytest.approx(100 * (counts[0] + counts[3]) / 36)


def test_figures_and_the_page(built: tuple[Path, ReportData]) -> None:
    folder, data = built
    (comparison,) = comparisons_of(load_cells([folder / "runs"]))
    with styled():
        drawn = {
            each.name: each.draw(comparison, Look(comparison))
            for each in chapter_of(comparison.protocol).drawings(comparison)
        }
    for name in ("figure_6_verdicts", "figure_7_verbosity", "assist_by_language"):
        assert drawn[name] is not None
    assert [table.name for table in data.opening] == ["assist_correctness", "assist_user_judge"]
    (section,) = data.sections
    board, _ = (part for part in section.parts if isinstance(part, Board))  # the second is by group
    titles = [column.title for column in board.columns]
    assert "Conditions met" in titles and "Outputs cut" not in titles
    assert section.groups == ("assist_paper", "assist")


def test_every_role_has_its_tokens_and_its_money_in_tables_on_the_page_and_in_mlflow(tmp_path: Path) -> None:
    """By its name, whatever the protocol calls it; a cell that asked no such role has a dash."""
    reader = {"input_tokens": 7, "cached_input_tokens": 3, "output_tokens": 2}
    for model in MODELS:
        write_assisted(Assisted(model, issues=1), tmp_path / "runs")
    (path,) = (tmp_path / "runs").glob("mine-*/metrics.json")
    mine = metrics_of(tmp_path, "mine")
    mine["tokens"]["second_reader"] = reader
    mine["cost_usd"] = {"model": 1.0, "judge": None, "user": 0.25, "second_reader": 0.5}
    path.write_text(json.dumps(mine))
    other = metrics_of(tmp_path, MODELS[0])
    other["cost_usd"] = {"model": 1.0, "judge": None, "user": None}
    next((tmp_path / "runs").glob(f"{MODELS[0]}-*/metrics.json")).write_text(json.dumps(other))
    data = report(tmp_path)
    (first, second) = rows_of(tmp_path, "assist_costs")
    assert [int(first[f"user_{key}"]) for key in reader] == [other["tokens"]["user"][key] for key in reader]
    assert int(first["user_input_tokens"]) >= 10 and first["user_usd"] == ""
    assert {first[key] for key in first if key.startswith("second_reader")} == {""}
    assert [second[f"second_reader_{key}"] for key in reader] == ["7", "3", "2"]
    assert (second["user_usd"], second["second_reader_usd"]) == ("0.25", "0.5")
    note = (tmp_path / "out" / "tables" / "assist_costs.md").read_text()
    assert "Second reader: US$" in note and "asked no such role" in note
    (section,) = data.sections
    board, _ = (part for part in section.parts if isinstance(part, Board))  # the second is by group
    used = {column.title: column for column in board.columns}
    sums = [sum(sum(map(each.get, ("input_tokens", "output_tokens"))) for each in metrics["tokens"].values())
            for metrics in (other, mine)]  # fmt: skip
    assert used["tokens"].values == sums
    assert used["cost $"].values == [None, 1.75], "the first one's user was asked, at a price that nobody knows"
    assert all(role in used["tokens"].hint for role in ("model", "judge", "user", "second_reader"))
    points = {point.key: point.value for point in points_of(ASSIST, mine)}
    assert points["cost/second_reader_input_tokens"] == 7 and points["cost/second_reader_usd"] == 0.5
    assert points["cost/user_input_tokens"] == mine["tokens"]["user"]["input_tokens"]


def test_a_cells_own_figures_are_few(comparison: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    panels = drawing.panels

    def counted(titles: Sequence[str], *words: Any, **options: Any) -> Any:
        drawn.extend(titles)
        return panels(titles, *words, **options)

    monkeypatch.setattr(drawing, "panels", counted)
    chapter_of("assist").write_figures(ASSIST, metrics_of(comparison, "mine"), "mine", tmp_path)
    names = {path.stem for path in tmp_path.glob("*.png")}
    assert names == {"turns", "by_verdict", "by_language", "by_cohort", "by_thread"}
    assert len(drawn) == 4 + 2 + 3, "series, rounds and thread turns by verdict, correct by each of three"


def test_numbers_have_a_scale_of_their_own_beside_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    panels = drawing.panels

    def kept(*words: Any, **options: Any) -> Any:
        figure, axes = panels(*words, **options)
        drawn.extend(axes)
        return figure, axes

    monkeypatch.setattr(drawing, "panels", kept)
    parts = (
        Breakdown("rate", "Rate", "kind", "by_kind"),
        Breakdown("rounds", "Rounds", "kind", "rounds", unit="number"),
    )
    metrics = {"by_kind": {"a": 0.5, "b": 0.7}, "rounds": {"a": 4.0, "b": 6.5}}
    drawing.write_cell_figures(Measures("own", "Own", breakdowns=parts), metrics, "m", tmp_path)
    rate, rounds = (panel.get_ylim()[1] for panel in drawn)
    assert rate <= 1.02 and rounds > 6.5, "no point lies outside its panel, and shares are not pressed to its floor"


@pytest.mark.parametrize(("groups", "there"), [(1, False), (16, True), (17, False)])
def test_a_breakdown_by_very_many_groups_is_not_drawn(tmp_path: Path, groups: int, there: bool) -> None:
    part = Breakdown("rate", "Rate", "kind", "by_kind")
    metrics = {"by_kind": {f"k{number}": 0.5 for number in range(groups)}}
    drawing.write_cell_figures(Measures("own", "Own", breakdowns=(part,)), metrics, "m", tmp_path)
    assert (tmp_path / "by_kind.png").is_file() == there


def test_the_published_shares_are_those_of_the_sample() -> None:
    """A slip of a digit would break a sum, or be no share of the sample: but one model has fewer issues."""
    fewer = {("recent", "Llama 3.3 70B"): 193, ("all_time", "Llama 3.3 70B"): 346}
    for cohort, models in ((cohort, paper()[cohort]) for cohort in COHORTS):
        assert len(models) == 6 and set(models) == set(paper()["models"])
        for model, (shares, *_) in models.items():
            size = fewer.get((cohort, model), paper()["issues"][cohort])
            assert sum(shares) == pytest.approx(100, abs=0.021), (cohort, model)
            for share in shares:
                assert share == pytest.approx(100 * round(share * size / 100) / size, abs=0.011), (cohort, model)


def test_models_are_known_by_their_names() -> None:
    assert paper_name("openai/gpt-4.1-mini (replay)") == "GPT-4.1 mini"
    assert paper_name("llama33_70b") == "Llama 3.3 70B"
    assert paper_name("claude-3-7-sonnet-20250219") == "Sonnet 3.7"
    assert paper_name("gpt5") == ""
