"""Labels of a second reader beside labelled triples."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from codechat.audit.second import by_second, digest, read_second
from codechat.audit.triples import Triple, read_triples
from codechat.cli.commands.audit import run_audit
from codechat.errors import UserError
from codechat.instructions.pool import EMBEDDED, read_pool

POOL = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}
REMOVE = POOL["cosmetic-remove-comments"]
NOTED, PLAIN = "x = 1  # one\n", "x = 1\n"
TRIPLES = [
    Triple("a", REMOVE, NOTED, PLAIN, True, "adhered"),
    Triple("b", REMOVE, NOTED, NOTED, True, "violated"),
    Triple("c", REMOVE, PLAIN, None, True, None),  # mislabelled
]


def write(path: Path, *rows: str) -> Path:
    path.write_text("instruction,triple,applicable,adherence,note\n" + "".join(f"{row}\n" for row in rows))
    return path


def row(triple: Triple, applicable: str, adherence: str = "") -> str:
    return f"{triple.instruction.id},{digest(triple)},{applicable},{adherence},any note"


def test_rules_and_labels_are_held_to_the_reader_apart(tmp_path: Path) -> None:
    rows = [row(TRIPLES[0], "yes", "violated"), row(TRIPLES[1], "yes", "violated"), row(TRIPLES[2], "no")]
    found = by_second(TRIPLES, read_second(write(tmp_path / "two.csv", *rows)))
    shares = {
        (who, question): (accord["overall"].same.count, accord["overall"].same.of)
        for who, questions in found.items()
        for question, accord in questions.items()
    }
    assert shares == {
        ("rules", "applicability"): (3, 3), ("labels", "applicability"): (2, 3),
        ("rules", "adherence"): (1, 2), ("labels", "adherence"): (1, 2),
    }  # fmt: skip
    kappa = found["rules"]["applicability"]["cosmetic"].kappa
    assert kappa is not None and kappa.value == 1
    assert found["rules"]["applicability"]["semantic"].same.of == 0


def test_the_name_of_a_triple_is_the_documented_one() -> None:
    text = f"cosmetic-remove-comments\0{NOTED}\0{PLAIN}"
    assert digest(TRIPLES[0]) == hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cosmetic-remove-comments,abc,maybe,", r"two\.csv:2: applicable"),
        ("cosmetic-remove-comments,abc,yes,", "no triple of 'cosmetic-remove-comments' is named abc"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        by_second(TRIPLES, read_second(write(tmp_path / "two.csv", line)))


def test_the_command_prints_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "mine.jsonl"
    line = {"before": NOTED, "instruction": REMOVE.id, "after": PLAIN, "applicable": True, "adherence": "adhered"}
    labels.write_text(json.dumps(line) + "\n")
    second = write(tmp_path / "two.csv", row(read_triples(labels, POOL)[0], "yes", "violated"))
    assert run_audit(["rules", f"labels={labels}", f"second={second}"]) == 0
    printed = capsys.readouterr().out
    assert "the second reader labelled 1 of them" in printed
    assert len(re.findall(r"overall +1\.000 .*0\.000 ", printed)) == 2
    with pytest.raises(UserError, match="cannot read"):
        run_audit(["rules", f"labels={labels}", f"second={tmp_path / 'none.csv'}"])
