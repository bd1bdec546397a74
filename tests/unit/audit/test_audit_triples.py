"""The rules held to labelled triples of a user's own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.audit.triples import read_triples, score_rules
from codechat.cli.commands.audit import run_audit
from codechat.errors import UserError
from codechat.instructions.pool import EMBEDDED, read_pool

POOL = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}
OWN = {"text": "Remove all comments.", "scope": "cosmetic", "change": "remove", "rule": {"pattern": "comment"}}
BEFORE, AFTER = "x = 1  # one\n", "x = 1\n"


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_accuracy_per_scope_and_change(tmp_path: Path) -> None:
    unruled = {**OWN, "scope": "semantic", "rule": None}
    path = write(
        tmp_path / "mine.jsonl",
        {"before": BEFORE, "instruction": OWN, "after": AFTER, "applicable": True, "adherence": "adhered"},
        {"before": BEFORE, "instruction": OWN, "after": BEFORE, "adherence": "adhered"},
        {"before": AFTER, "instruction": "cosmetic-add-comment", "applicable": True},
        {"before": BEFORE, "instruction": unruled, "after": AFTER, "applicable": True, "adherence": "adhered"},
    )
    found = score_rules(read_triples(path, POOL))
    shares = {name: (one.count, one.of) for name, one in found.accuracy["adherence"].items()}
    assert shares == {
        "overall": (1, 2), "cosmetic": (1, 2), "structural": (0, 0), "semantic": (0, 0),
        "add": (0, 0), "remove": (1, 2), "modify": (0, 0),
    }  # fmt: skip
    assert found.undecided == {"applicability": 1, "adherence": 1}
    [wrong] = [one for one in found.disagreements if one.question == "adherence"]
    assert wrong.place == f"{path}:2"
    assert (wrong.label, wrong.decided, wrong.reason) == ("adhered", "violated", "the code is unchanged")


def test_the_compact_format(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(
        "programs:\n  plain: |\n    x = 1\n  noted: |\n    x = 1  # one\n"
        "cases:\n- instruction: cosmetic-remove-comments\n  fits: [noted]\n  unfit: [plain]\n"
        "  adhered:\n  - [noted, '  # one', '']\n  violated:\n  - [noted, one, two]\n  - [noted, '*', 'y = 1']\n"
    )
    write(tmp_path / "more.jsonl", {"before": BEFORE, "instruction": "cosmetic-remove-comments", "applicable": True})
    triples = read_triples(tmp_path, POOL)
    assert len(triples) == 2 + 3 + 1
    found = score_rules(triples)
    assert [(one.label, one.decided) for one in found.disagreements] == [("violated", "adhered")]


def test_what_is_hard_is_scored_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove = {"before": BEFORE, "instruction": "cosmetic-remove-comments", "applicable": True}
    path = write(
        tmp_path / "mine.jsonl",
        {**remove, "after": AFTER, "adherence": "adhered"},
        {**remove, "after": BEFORE, "adherence": "violated", "hard": "unchanged"},
        {**remove, "after": "x = '# one'\n", "adherence": "violated", "hard": "string"},  # mislabelled
    )
    found = score_rules(read_triples(path, POOL)).accuracy
    shares = {name: (one.count, one.of) for name, one in found["adherence"].items()}
    assert shares["overall"] == (2, 3)
    assert (shares["hard"], shares["the rest"]) == ((1, 2), (1, 1))
    assert (shares["hard: unchanged"], shares["hard: string"]) == ((1, 1), (0, 1))
    assert found["applicability"]["overall"].of == 1, "one program is asked about once"
    assert run_audit(["rules", f"labels={path}"]) == 0
    assert re.search(r"hard: string +1\.000 .* 0\.000", capsys.readouterr().out)


def test_a_revision_may_be_marked_hard_and_has_its_program_s_label(tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text(
        "programs:\n  plain: |\n    x = 1\n  noted: |\n    x = 1  # one\n"
        "cases:\n- instruction: cosmetic-remove-comments\n  fits: [noted]\n  unfit: [plain]\n"
        "  adhered:\n  - [noted, '  # one', '']\n  violated:\n  - {hard: unchanged, revision: [plain]}\n"
    )
    easy, hard = [one for one in read_triples(tmp_path, POOL) if one.after is not None]
    assert (easy.applicable, easy.adherence, easy.hard) == (True, "adhered", None)
    assert (hard.applicable, hard.adherence, hard.hard) == (False, "violated", "unchanged")


MISTAKES = [
    ("bad.jsonl", '{"before": "x"}', r"bad\.jsonl:1: instruction: Field required"),
    ("bad.jsonl", "\n{", r"bad\.jsonl:2: not JSON"),
    ("bad.jsonl", '{"before": "x", "instruction": "cosmetic-add-coment"}', "did you mean"),
    ("bad.jsonl", '{"before": "x", "instruction": "cosmetic-add-comment", "adherence": "adhered"}', "no `after`"),
    ("bad.yaml", "programs: {}\ncases:\n- instruction: cosmetic-add-comment\n  fits: [a]\n", "no program 'a'"),
    (
        "bad.yaml",
        "programs: {a: x}\ncases:\n- instruction: cosmetic-add-comment\n  adhered: [[a, q, z]]\n",
        "'q' is not",
    ),
    ("bad.yaml", "programs: {a: x}\ncases:\n- instruction: cosmetic-add-comment\n  adhered: [[a, q]]\n", "pairs"),
    ("bad.yaml", "programs: [", "not YAML"),
    ("bad.yaml", "programs: {}\ncases: []\n", "no labelled triples"),
]


@pytest.mark.parametrize(("name", "text", "told"), MISTAKES)
def test_mistakes_are_told_with_their_place(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        read_triples(tmp_path, POOL)
    assert re.search(told, str(caught.value)), str(caught.value)


def test_the_command_prints_accuracy_and_disagreements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path / "mine.jsonl", {"before": BEFORE, "instruction": OWN, "after": BEFORE, "adherence": "adhered"}
    )
    assert run_audit(["rules", f"labels={path}"]) == 0
    printed = capsys.readouterr().out
    assert "0.000 [0.000, 0.793] (0 of 1)" in printed
    assert "labelled adhered, the rule says violated: the code is unchanged" in printed


def test_the_labelled_set_of_the_tests_can_be_read() -> None:
    labels = Path(__file__).parents[2] / "golden" / "rules"
    assert len(read_triples(labels, POOL)) > 1000
