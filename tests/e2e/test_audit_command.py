"""An audit from a run to its figures: both judges asked, decisions drawn, labelled and scored."""

import csv
import json
import random
import re
import time
import zlib
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.cli.commands.audit import run_audit
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.testing import Call, OpenAIServer
from support.refine_cells import of, session, turn, write_audit_cell


def contrary(call: Call) -> str:
    """A judge that contradicts itself by the hash of what it is asked."""
    asked = call.messages[0]["content"]
    no = zlib.crc32(asked.encode()) % 3 == 0
    if "NOT_APPLICABLE" in asked:
        return f"REASON: first sight.\nVERDICT: {'NOT_APPLICABLE' if no else 'APPLICABLE'}"
    return f"REASON: second sight.\nVERDICT: {'VIOLATED' if no else 'ADHERED'}"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A cell that echoes, judged by rules and a language model together."""
    with OpenAIServer(contrary, models=["openai/gpt-oss-20b", "openai/gpt-oss-120b"]) as server:
        at = [f"judge.llm.{role}.base_url={server.base_url}" for role in ("applicability", "adherence")]
        composed = compose(
            [
                "model=echo", "judge=hybrid", "judge.rules_first=false", "judge.llm.check=false", "dataset.limit=3", "tracking=none",
                "hardware.workers=1",
                f"runs_dir={tmp_path / 'runs'}", *at,
            ]
        )  # fmt: skip
        assert run(composed).status == 0
    return tmp_path / "runs"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_from_a_run_to_its_figures(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "n=40", "seed=3"]) == 0
    assert "40 of" in capsys.readouterr().out
    rows = table(out / "sample.csv")
    assert len(rows) == 40
    assert {row["judge"] for row in rows} == {"rules"}
    assert all(row["judge_reason"].startswith(("llm agrees | ", "llm disagrees (")) for row in rows)
    # Label as one who sides with the rules on applicability, and finds every echo violated
    for row in rows:
        row["applicable"] = row["judge_applicable"]
        row["adherence"] = "violated" if row["judge_adherence"] else ""
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert run_audit(["score", f"labels={tmp_path / 'labels.csv'}", f"out={tmp_path / 'scored'}"]) == 0
    printed = capsys.readouterr().out
    assert "accuracy 1.000 [0.912, 1.000] (40 of 40)" in printed
    scores = json.loads((tmp_path / "scored" / "audit.json").read_text())["scores"]["labels"]
    for question, reason in (("applicability", "judge_reason"), ("adherence", "adherence_reason")):
        disputed = sum(row[reason].startswith("llm disagrees") for row in rows)
        assert disputed > 0
        assert scores[question]["llm_disagreed"]["count"] == scores[question]["llm_disagreed"]["of"] == disputed
    assert scores["adherence"]["kappa"] is None, "one class alone"


def test_the_same_draw_gives_the_same_files_and_labels_are_never_lost(tmp_path: Path) -> None:
    turns = [turn(1, of("cosmetic", "add")[0], of("cosmetic", "add")[1:4])]
    cell = write_audit_cell(tmp_path / "cell", [session("c", f"t/{n}", turns) for n in range(9)])
    words = [f"runs={cell}", "n=12"]
    for name in ("one", "two", "one"):
        assert run_audit(["export", *words, f"out={tmp_path / name}"]) == 0
    for name in ("sample.csv", "label.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    with pytest.raises(UserError, match="another sample or labels"):
        run_audit(["export", *words, "seed=1", f"out={tmp_path / 'one'}"])


def test_the_papers_audit_draws_each_question_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Section IV-D, smaller: 30 decisions and 8 judged changes of 36 and 9."""
    turns = [turn(1, of("cosmetic", "add")[0], of("cosmetic", "add")[1:4])]
    cell = write_audit_cell(tmp_path / "cell", [session("c", f"t/{n}", turns) for n in range(9)])
    words = ["export", f"runs={cell}", f"out={tmp_path / 'audit'}"]
    assert run_audit([*words, "applicability=30", "adherence=8"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"drawn: 30 of 36 .*applicability, 8 of 9 .*adherence", printed)
    rows = table(tmp_path / "audit" / "sample.csv")
    counts = [row["counts_for"] for row in rows]
    assert counts.count("applicability") + counts.count("both") == 30
    assert counts.count("adherence") + counts.count("both") == 8
    assert f"{counts.count('both')} rows in both draws" in printed
    for row in rows:
        row["applicable"] = row["judge_applicable"]
        row["adherence"] = row["judge_adherence"]
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert run_audit(["score", f"labels={tmp_path / 'labels.csv'}", f"out={tmp_path / 'audit'}"]) == 0
    applicability, adherence = capsys.readouterr().out.split("## Adherence")
    assert "(30 of 30)" in applicability and "(8 of 8)" in adherence
    assert run_audit([*words[:2], f"out={tmp_path / 'alone'}", "adherence=5"]) == 0
    assert re.search(r"drawn: 5 of 9 .*adherence\n", capsys.readouterr().out)
    assert {row["counts_for"] for row in table(tmp_path / "alone" / "sample.csv")} == {"adherence"}


def test_no_program_makes_the_page_slow(tmp_path: Path) -> None:
    """Lines in another order, and a few lines over and over: the page shows the difference all the same."""
    lines = [f"x = {number % 130}" for number in range(5000)]
    texts = ["\n".join(random.Random(seed).sample(lines, len(lines))) for seed in range(2)]
    [instruction, *_] = of("cosmetic", "add")
    turns = [turn(number, instruction, code=text) for number, text in enumerate(texts, 1)]
    write_audit_cell(tmp_path / "cell", [session("c", "t/0", turns)])
    begin = time.process_time()
    assert run_audit(["export", f"runs={tmp_path / 'cell'}", f"out={tmp_path / 'audit'}"]) == 0
    assert time.process_time() - begin < 5
    [data] = re.findall(
        r"<script[^>]*application/json[^>]*>(.*?)</script>", (tmp_path / "audit" / "label.html").read_text()
    )
    for item in json.loads(data)["items"]:
        before, after = item["before"].split("\n"), item["after"].split("\n")
        parts = (before[a:b] if tag == "equal" else after[c:d] for tag, a, b, c, d in item["diff"])
        assert [line for part in parts for line in part] == after


MISTAKES = [
    ([], "audit what?"),
    (["exprt"], "did you mean 'export'"),
    (["export", "out=x"], "runs is required"),
    (["export", "runs=nowhere", "out=x"], "no folder nowhere"),
    (["export", "runs=x", "out=x", "n=many"], "n is a whole number"),
    (["export", "runs=x", "out=x", "n=0"], "n is a whole number of at least 1"),
    (["export", "runs=x", "out=x", "adherence=0"], "adherence is a whole number of at least 1"),
    (["export", "runs=x", "out=x", "n=9", "adherence=9"], "n draws for both questions at once"),
    (["export", "runs=x", "out=x", "sed=1"], "did you mean 'seed'"),
    (["score", "labels=a,b,a", "out=x"], "a is given twice"),
    (["score", "labels=nowhere.csv", "out=x"], "cannot read nowhere.csv"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_mistakes(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        run_audit(words)
    assert told in str(caught.value)
    assert not list(tmp_path.iterdir())
