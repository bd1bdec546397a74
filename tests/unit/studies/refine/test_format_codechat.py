"""`import format=codechat`: made-up replication packages of three shapes; nothing is guessed silently."""

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.datasets.importing import FORMATS, Imported
from support.mistakes import mistake

TEXTS = {1: "Add a docstring.", 2: "Remove all comments.", 3: "Reorder the branches."}
SCOPES = {1: "cosmetic", 2: "cosmetic", 3: "semantic"}
CODES = {
    0: "def one():\n    return 1",
    1: 'def one():\n    """One."""\n    return 1',
    2: None,
    3: "def one():\n    return 2",
}
ADHERED = {0: None, 1: True, 2: None, 3: False}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def by_turn(folder: Path) -> Path:
    """A file for each model, dataset and turn; the instructions in a CSV."""
    for model in ("model-a", "model-b"):
        for turn in range(4):
            rows = [
                {"task_id": f"HumanEval/{task}", "generated_code": CODES[turn], "adherence": ADHERED[turn]}
                | ({"instruction": TEXTS[turn]} if turn else {})
                for task in (0, 1)
            ]
            write(folder / f"{model}_humaneval_turn_{turn}.jsonl", rows)
    lines = [f'{number},"{text}",{SCOPES[number]},yes' for number, text in TEXTS.items()]
    (folder / "instructions.csv").write_text("\n".join(["id,text,scope,accepted", *lines]) + "\n")
    return folder


def by_folder(folder: Path) -> Path:
    """Folders of models and datasets in a zip file, turns from 1 on, replies with fences, instructions by id."""
    for model in ("model-a", "model-b"):
        for turn in range(4):
            code = CODES[turn]
            rows = [
                {"id": task, "response": code and f"Here:\n```python\n{code}\n```", "is_adherent": ADHERED[turn]}
                | ({"instruction_id": turn, "scope": SCOPES[turn], "change": "add"} if turn else {})
                for task in (0, 1)
            ]
            write(folder / "raw" / model / "HumanEval+" / f"round{turn + 1}.jsonl", rows)
    target = folder / "package.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted((folder / "raw").rglob("*.jsonl")):
            archive.write(path, path.relative_to(folder).as_posix())
    return target


def in_one(folder: Path) -> Path:
    """One list of records that say everything in columns, with the adherence in words."""
    words = {None: "skipped", True: "Yes", False: "no"}
    rows = [
        {
            "llm": model, "benchmark": "HumanEvalPlus", "problem": f"HumanEval_{task}", "Round": turn, "code": CODES[turn],
            "followed": words[ADHERED[turn]], "instruction text": TEXTS.get(turn), "category": SCOPES.get(turn),
            "seconds": 1.5,
        }
        for model in ("model-a", "model-b") for task in (0, 1) for turn in range(4)
    ]  # fmt: skip
    (folder / "all.json").write_text(json.dumps(rows))
    (folder / "._all.json").write_bytes(b"\0\5")  # left by a file system
    return folder


SHAPES = {"by_turn": by_turn, "by_folder": by_folder, "in_one": in_one}


@pytest.fixture(params=SHAPES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "source").mkdir()
    yield SHAPES[request.param](tmp_path / "source")


def run(source: Path, **options: Any) -> Imported:
    return FORMATS.build(FORMATS.validate({"format": "codechat", "source": str(source), **options}))


def test_every_shape_gives_the_same_dialogues(source: Path) -> None:
    imported = run(source)
    assert sorted(imported.parts) == ["model-a-humaneval", "model-b-humaneval"]
    for session in imported.parts["model-a-humaneval"]:
        assert session.task_id in ("HumanEval/0", "HumanEval/1")
        assert [turn.code for turn in session.turns] == [CODES[0], CODES[1], CODES[1], CODES[3]]
        assert [turn.skipped for turn in session.turns] == [False, False, True, False]
        verdicts = [turn.adherence and turn.adherence.verdict for turn in session.turns]
        assert verdicts == [None, "adhered", None, "violated"]
        scopes = [turn.instruction and turn.instruction.scope for turn in session.turns]
        assert scopes == [None, "cosmetic", None, "semantic"]
        assert [turn.passed for turn in session.turns] == [None] * 4, "the package has no verdicts, and none is made up"
    assert any(remark.startswith("task: ") for remark in imported.remarks), "what was recognised is said"


def test_what_is_not_used_or_recognised_is_said(tmp_path: Path) -> None:
    remarks = run(in_one(tmp_path)).remarks
    assert "columns not used: seconds" in remarks
    assert any(remark.startswith("not recognised: ") and "reply" in remark for remark in remarks)
    assert any("leading verbs" in remark for remark in remarks), "the change of an instruction was not written"


def test_what_is_recognised_is_said_before_anything_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "p"
    write(source / "mine_mbpp_turn_0.jsonl", [{"nr": 2, "text": "a = 1"}])
    write(source / "mine_mbpp_turn_1.jsonl", [{"nr": 2, "text": "a = 2", "ok": "perhaps"}])
    words = ["import", "format=codechat", f"source={source}", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    said = capsys.readouterr()
    assert ": nr, ok, text" in said.out and "columns.task" in said.err
    named = ["columns.task=nr", "columns.code=text"]
    assert main([*words, *named, "columns.adherence=ok"]) == 2
    said = capsys.readouterr()
    assert "code: text (2)" in said.out and "adherence: ok (1)" in said.out and "neither true nor" in said.err
    assert "model: mine" in said.out and "dataset: mbpp" in said.out and "turn: 0, 1" in said.out
    assert main([*words, *named]) == 0, "a column that some records lack may be named"
    assert capsys.readouterr().out.count("code: text (2)") == 1


def test_a_part_that_two_columns_may_be_is_refused_until_one_is_named(tmp_path: Path) -> None:
    rows = [{"task_id": "HumanEval/0", "code": "a = 1", "generated_code": "a = 2"}]
    write(tmp_path / "m_humaneval_turn_0.jsonl", rows)
    with mistake("turn_0.jsonl:1: ", "generated_code", "columns.code="):
        run(tmp_path)
    (session,) = run(tmp_path, columns={"code": "generated_code"}).sessions
    assert session.turns[0].code == "a = 2"
    with mistake("column nothing"):
        run(tmp_path, columns={"code": "nothing"})


def test_what_no_column_and_no_name_says_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "humaneval_turn_0.jsonl", [{"task_id": 0, "code": "a = 1"}])
    with pytest.raises(UserError, match="says the model"):
        run(tmp_path)
    assert [each.model for each in run(tmp_path, model="mine").sessions] == ["mine"]
    write(tmp_path / "humaneval_turn_0.jsonl", [{"task_id": 0, "code": "a = 1", "adherence": "maybe"}])
    with mistake("'maybe'"):
        run(tmp_path, model="mine")


def test_one_command_gives_the_verdicts_that_the_package_lacks(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    out, runs = tmp_path / "out", tmp_path / "runs"
    assert main(["import", "format=codechat", f"source={by_turn(tmp_path / 'p')}", f"out={out}"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["model-a-humaneval.jsonl", "model-b-humaneval.jsonl"]
    tasks = [{"task_id": f"HumanEval/{n}", "prompt": "def one():\n", "entry_point": "one", "canonical_solution": "    return 1\n",
              "tests": ["assert one() == 1"]} for n in (0, 1)]  # fmt: skip
    write(tmp_path / "tasks.jsonl", tasks)
    words = ["protocol=refined", "model=replay", f"model.path={out / 'model-a-humaneval.jsonl'}", "tracking=none"]
    assert main([*words, "dataset=jsonl", f"dataset.path={tmp_path / 'tasks.jsonl'}", f"runs_dir={runs}"]) == 0
    (folder,) = runs.iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["pass_at_1"] == [1.0, 1.0, 1.0, 0.0]
    assert metrics["iar"] == [1.0, None, 0.0]
    assert metrics["mst"] == 3.0
    assert metrics["regression"]["by_scope"]["semantic"] == 1.0
    sessions: list[SessionRecord] = list(read_sessions(folder / "sessions.jsonl"))
    assert [turn.skipped for turn in sessions[0].turns] == [False, False, True, False]
    assert main(["report", f"runs={runs}", f"out={tmp_path / 'report'}"]) == 0
    assert (tmp_path / "report" / "tables" / "leaderboard.csv").is_file(), "in the chapter of the refinements"


def row(**changes: Any) -> bytes:
    known = {"task_id": "HumanEval/0", "turn": 0, "code": "x = 1", "model": "m", "dataset": "humaneval"}
    return json.dumps(known | changes).encode() + b"\n"


def test_compressed_files_are_read_beside_plain_ones(tmp_path: Path) -> None:
    (tmp_path / "a-humaneval.jsonl").write_bytes(row(model="a"))
    (tmp_path / "b-mbpp.json.gz").write_bytes(gzip.compress(row(model="b", dataset="mbpp")))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "b-mbpp.json.gz", "b-mbpp.json.gz")
        archive.writestr("__MACOSX/._b-mbpp.json", b"\x00\x05\x16\x07\xff of a Finder, not a text")
    assert sorted(run(tmp_path).parts) == ["a-humaneval", "b-mbpp"]
    assert sorted(run(tmp_path / "all.zip").parts) == ["b-mbpp"]
    (tmp_path / "C-MBPP.JSONL.GZ").write_bytes(gzip.compress(row(model="c", dataset="mbpp")))
    assert sorted(run(tmp_path / "C-MBPP.JSONL.GZ").parts) == ["c-mbpp"]
    (tmp_path / "b-mbpp.json").write_bytes(row(model="b"))
    with mistake("b-mbpp.json"):
        run(tmp_path)


def test_what_names_of_files_say_is_told_in_the_order_of_the_files(tmp_path: Path) -> None:
    """The order of a set's texts differs from process to process."""
    known = {"task_id": "HumanEval/0", "code": "x = 1", "dataset": "humaneval"}
    for number in range(20):
        folder = tmp_path / str(number)
        write(folder / f"a{number}.jsonl", [{**known, "turn": 0}])
        write(folder / f"b{number}_turn_1.jsonl", [{**known, "model": f"a{number}"}])
        told = [each.partition(":")[0] for each in run(folder).remarks if "by the names" in each]
        assert told == ["model", "turn"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (row() + row(turn=1, code="é").replace(b"\\u00e9", b"\xe9"), ":2"),
        (row() + b"[" * 5000 + b"\n", ":2"),
        (row() + b"null\n", ":2"),
        (row() + b'[{"turn": 1}]\n', ":2"),
        (row(turn=int("9" * 4000)).replace(b"9", b"99"), ":1"),
        (gzip.compress(row() * 100)[:-20], "humaneval"),
        (row() + row(turn=2), "HumanEval/0"),
        (row(adherence="success"), "adherence"),
        (row() + row(), "turn 0"),
        (row(adherence=True, followed=False), "adherence"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake(tmp_path: Path, content: bytes, place: str) -> None:
    (tmp_path / "humaneval.jsonl").write_bytes(content)
    with mistake(place):
        run(tmp_path)
