"""A model that knows half of the tasks by heart: the twins show it, and the report's figures are those of the sessions."""

import csv
import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, quantiles

import pytest

from codechat import compose, run
from codechat.cli.app import main
from codechat.datasets import DATASETS, load
from codechat.testing import Call, OpenAIServer

pytestmark = pytest.mark.long
TASKS, TURNS = 12, 3
WORDS = [f"dataset.limit={TASKS}", f"agenda.turns={TURNS}", "tracking=none", "sandbox.allow_weak=true"]


@pytest.fixture
def memoriser() -> Iterator[str]:
    """Answers every second task with its solution as published, under its published name; solves the others."""
    kinds = ({"kind": "starter"}, {"kind": "starter", "twin": "renamed"})
    originals, twins = (load(DATASETS.validate(kind)).tasks for kind in kinds)  # type: ignore[arg-type]
    answers = {each.prompt.strip(): each.reference for each in originals}
    answers |= {
        twin.prompt.strip(): (original if number % 2 else twin).reference
        for number, (original, twin) in enumerate(zip(originals, twins, strict=True))
    }

    def answer(call: Call) -> str:
        (text,) = (program for prompt, program in answers.items() if prompt in call.messages[0]["content"])
        return f"```python\n{text}```"

    with OpenAIServer(answer, models=["memory"]) as server:
        yield server.base_url


def sessions_of(cell: Path) -> dict[str, list[bool]]:
    rows = [json.loads(line) for line in (cell / "sessions.jsonl").read_text().splitlines()]
    return {row["task_id"]: [turn["passed"] for turn in row["turns"]] for row in rows if row["status"] == "completed"}


def sustained(passed: list[bool]) -> int:
    return next((turn for turn, verdict in enumerate(passed) if not verdict), len(passed))


def test_the_twins_show_memory_and_no_baseline_moves(
    memoriser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rendered: None
) -> None:
    monkeypatch.chdir(tmp_path)
    models = {
        "memory": ["model=openai", "model.name=memory", f"model.base_url={memoriser}", "model.api_key_env=null"],
        **{name: [f"model={name}"] for name in ("reference", "echo", "refactorer", "drifter")},
    }
    for words in models.values():
        for twin in ([], ["dataset.twin=renamed"]):
            assert run(compose([*words, *twin, *WORDS])).status == 0
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert Path("out/figures/twins.png").stat().st_size > 5_000
    with Path("out/tables/twins.csv").open() as stream:
        rows = {row["model"]: row for row in csv.DictReader(stream)}
    assert {*rows} == {*models}
    for name, row in rows.items():
        (original,) = Path("runs").glob(f"{name}-starter-balanced-*")
        (twin,) = Path("runs").glob(f"{name}-starter-renamed-balanced-*")
        before, after = sessions_of(original), sessions_of(twin)
        assert before.keys() == after.keys() and int(row["tasks"]) == len(before) == TASKS
        for key, figure in (("pass_first", lambda passed: int(passed[0])), ("mst", sustained)):
            pairs = [(figure(before[task]), figure(after[task])) for task in before]
            means = [fmean(values) for values in zip(*pairs, strict=True)]
            assert [float(row[f"{key}_{side}"]) for side in ("original", "twin")] == pytest.approx(means)
            assert float(row[f"{key}_difference"]) == pytest.approx(means[1] - means[0])
            apart = [twin - original for original, twin in pairs]
            drawn = [fmean(random.Random(n).choices(apart, k=TASKS)) for n in range(4000)]
            ends = quantiles(drawn, n=40)
            shown = [float(row[f"{key}_difference_ci_{end}"]) for end in ("low", "high")]
            assert shown == pytest.approx([ends[0], ends[-1]], abs=0.05 * max(1, *map(abs, apart)))
    assert float(rows["memory"]["pass_first_difference"]) == -0.5
    assert float(rows["memory"]["pass_first_difference_ci_high"]) < 0
    assert float(rows["memory"]["mst_difference"]) == -TURNS / 2
    for name in ("reference", "echo", "refactorer"):
        assert float(rows[name]["pass_first_difference"]) == float(rows[name]["mst_difference"]) == 0
    assert float(rows["drifter"]["pass_first_difference"]) == 0


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[2]
    page = (root / "docs" / "beyond.md").read_text().split("## Twins against memory")[1].split("\n## ")[0]
    lines = [line for block in page.split("```")[1::2] for line in block.splitlines()]
    Path("seed.jsonl").write_text((root / "codechat/datasets/starter.jsonl").read_text().split("\n")[0] + "\n")
    for line in lines:
        program, *words = shlex.split(line)
        if program == "codechat":
            weak = [] if words[0] == "report" else ["sandbox.allow_weak=true"]
            assert main([*words, *weak]) == 0, line
    with Path("report/tables/twins.csv").open() as stream:
        shown = {row["model"]: (row["mst_original"], row["mst_twin"]) for row in csv.DictReader(stream)}
    assert shown == {"reference": ("10.0", "10.0"), "drifter": ("6.35", "6.35")}, "as the page says"
    (cell,) = Path("runs").glob("reference-starter-reworded-*")
    assert json.loads((cell / "metrics.json").read_text())["pass_at_1"] == [1.0] * 10


def test_without_twins_there_is_no_word_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):  # twins of each other's seeds are no pair: both are twins
        assert run(compose(["model=echo", "dataset.twin=renamed", f"dataset.twin_seed={seed}", *WORDS])).status == 0
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert Path("out/tables/leaderboard.csv").exists() and not Path("out/tables/twins.csv").exists()
