"""`import format=codeif`: published completions as sessions, nothing invented, the first bad line named."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import original_option
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.studies.codeif.format import import_codeif
from support.codeif import FUNCTION, write_rows
from support.mistakes import mistake

ORDER = ["Exception Handling", "Code Standard", "Functionality Extension"]  # as the protocol asks for them
ALONE = "Edge Case Handling"  # only where every requirement is asked by itself


def completion(strategy: str, turn: int, passed: bool | None = True, **more: Any) -> dict[str, Any]:
    return {
        "task_id": 7,
        "turn": turn,
        "instruction_type": strategy,
        "completion_raw": f"reply to {strategy}",
        "official_passed": passed,
        "official_result": {True: "passed", False: "failed: AssertionError", None: None}[passed],
        "known_issue": None,
        **more,
    }


BASE = completion("Base", 1)
DIALOGUE = [completion(ORDER[0], 2, False), completion(ORDER[1], 3), completion(ORDER[2], 4, None)]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "tasks.jsonl", FUNCTION)


def read(path: Path, tasks: Path | None, *rows: dict[str, Any] | str) -> SessionRecord:
    (session,) = import_codeif(write_rows(path, *rows), tasks).sessions
    return session


def test_a_conversation_becomes_a_session(tmp_path: Path, tasks: Path) -> None:
    session = read(tmp_path / "x.jsonl", tasks, BASE, *DIALOGUE)
    assert (session.task_id, session.protocol, session.model) == ("CodeIF/7", "static", "imported")
    assert (session.status, session.error) == ("completed", None)
    assert [turn.turn for turn in session.turns] == [0, 1, 2, 3]
    assert [turn.response for turn in session.turns] == [f"reply to {name}" for name in ("Base", *ORDER)]
    texts = [turn.model_extra["requirement"] for turn in session.turns if turn.model_extra]
    assert texts[0] is None
    assert texts[1] == {"id": ORDER[0], "strategy": ORDER[0], "text": "Raise TypeError for a text."}


def test_verdicts_are_the_published_ones_and_a_missing_one_is_none(tmp_path: Path, tasks: Path) -> None:
    turns = read(tmp_path / "x.jsonl", tasks, BASE, *DIALOGUE).turns
    assert [turn.outcome for turn in turns] == ["pass", "fail", "pass", "fail"]
    official = [turn.model_extra and turn.model_extra["official"] for turn in turns]
    assert [verdict and verdict["passed"] for verdict in official] == [True, False, True, None]
    assert [turn.failure and turn.failure.reason for turn in turns] == [
        None,
        "published: failed: AssertionError",
        None,
        "the benchmark's own harness gives no verdict",
    ]


def test_what_nobody_knows_is_null_or_zero(tmp_path: Path, tasks: Path) -> None:
    session = read(tmp_path / "x.jsonl", tasks, BASE, *DIALOGUE)
    for turn in session.turns:
        assert (turn.request, turn.finish_reason, turn.code, turn.adherence, turn.instruction) == (
            [],
            None,
            None,
            None,
            None,
        )
        assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.latency_s, turn.cpu_s) == (0, 0, 0.0, 0.0)


@pytest.mark.parametrize("turn", [1, 2])
def test_requirements_that_are_asked_by_themselves_take_the_tasks_order(tmp_path: Path, tasks: Path, turn: int) -> None:
    rows = [completion(name, turn) for name in (ALONE, *reversed(ORDER))]
    session = read(tmp_path / "x.jsonl", tasks, BASE, *rows)
    assert [one.response for one in session.turns] == [f"reply to {name}" for name in ("Base", *ORDER, ALONE)]


def test_a_conversation_tells_its_order_itself(tmp_path: Path) -> None:
    session = read(tmp_path / "x.jsonl", None, BASE, *DIALOGUE)
    assert [turn.response for turn in session.turns] == [f"reply to {name}" for name in ("Base", *ORDER)]


def test_a_session_with_a_hole_is_errored_and_names_it(tmp_path: Path, tasks: Path) -> None:
    assert read(tmp_path / "x.jsonl", tasks, *DIALOGUE).error.endswith("turn 0")
    session = read(tmp_path / "x.jsonl", tasks, BASE, *DIALOGUE[:1])
    assert session.status == "errored" and session.error.endswith("turn 2, 3")


PUBLISHED = "codeif_l1_multi_round_gpt-9.jsonl.gz"


def test_base_replies_and_tasks_are_found_beside_a_published_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "codeif_l1_tasks_a.jsonl", FUNCTION)
    fewer = {**FUNCTION, "requirements": {k: v for k, v in FUNCTION["requirements"].items() if k != ALONE}}
    write_rows(tmp_path / "codeif_l1_tasks_b.jsonl", fewer)
    (tmp_path / "codeif_l1_base_gpt-9.jsonl.gz").write_bytes(gzip.compress(json.dumps(BASE).encode()))
    rows = [json.dumps(completion(name, 2)) for name in (*ORDER, ALONE)]
    (tmp_path / PUBLISHED).write_bytes(gzip.compress("\n".join(rows).encode()))
    imported = import_codeif(tmp_path / PUBLISHED)
    assert [path.name for path in imported.companions] == ["codeif_l1_base_gpt-9.jsonl.gz", "codeif_l1_tasks_a.jsonl"]
    (session,) = imported.sessions
    assert (session.model, session.status, len(session.turns)) == ("gpt-9", "completed", 5)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["{"], "x.jsonl:1: not a published completion"),
        ([BASE, "[1]"], "x.jsonl:2: not a published completion"),
        ([BASE, {k: v for k, v in DIALOGUE[0].items() if k != "completion_raw"}], "x.jsonl:2: .*completion_raw"),
        ([{**BASE, "task_id": "7"}], "x.jsonl:1: .*task_id"),
        ([{**BASE, "official_passed": "yes"}], "x.jsonl:1: .*official_passed"),
        ([{**BASE, "task_id": 8}], "x.jsonl:1: .*task 8"),
        ([BASE, *DIALOGUE, DIALOGUE[1]], "x.jsonl:5: .*second.*Code Standard"),
        ([BASE, DIALOGUE[0], {**DIALOGUE[1], "turn": 4}], "x.jsonl:3: turn 4.* 3"),
        ([BASE, DIALOGUE[0], completion("Code Beauty", 3)], "x.jsonl:3: .*'Code Beauty'"),
        ([BASE, completion(ALONE, 5), DIALOGUE[0]], "x.jsonl:2: .*'Edge Case Handling'"),
        ([""], "holds no completion"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, tasks: Path, rows: list[Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        import_codeif(write_rows(tmp_path / "x.jsonl", *rows), tasks)


def test_without_tasks_only_a_conversation_can_be_placed(tmp_path: Path) -> None:
    with mistake("x.jsonl", "tasks"):
        read(tmp_path / "x.jsonl", None, BASE, *(completion(name, 1) for name in ORDER))


def test_the_command_writes_what_a_replay_reads(
    tmp_path: Path, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = write_rows(tmp_path / "x.jsonl", BASE, *DIALOGUE), tmp_path / "out" / "sessions.jsonl"
    words = ["import", "format=codeif", f"source={source}", f"out={target}", f"tasks={tasks}", "model=gpt-9"]
    assert main(words) == 0
    assert "1 session, 4 replies" in capsys.readouterr().out
    (session,) = read_sessions(target)
    assert session.model == "gpt-9"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "format is required"),
        (["format=codeif"], "source is required"),
        (["format=codief", "source=a", "out=b"], "did you mean 'codeif'"),
        (["format=codeif", "sauce=a"], "did you mean 'source'"),
        (["format=codeif", "source=/nowhere/x.jsonl", "out=b"], "/nowhere/x.jsonl"),
        (["format=codeif", "source=a", "out=a"], "out is the source itself"),
    ],
)
def test_a_users_mistakes_are_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", *words]) == 2
    assert told in capsys.readouterr().err.replace("\n", " ")


def test_a_format_is_one_registered_factory_with_settings_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class NotesImport(ImportConfig):
        format: str = original_option("notes", "what the source is")
        pen: str = original_option("black", "the colour")

    def notes(config: NotesImport) -> Imported:
        """Notes on paper."""
        return Imported([], [], [f"written in {config.pen}"])

    monkeypatch.setattr(FORMATS, "_components", {each.name: each for each in FORMATS})
    FORMATS.register("notes", NotesImport)(notes)
    assert main(["import", "format=notes", f"source={tmp_path}/a", f"out={tmp_path}/b", "pen=red"]) == 0
    assert "written in red" in capsys.readouterr().out
    assert main(["import"]) == 2
    error = capsys.readouterr().err
    assert all(name in error for name in ("codeif", "multicodeif", "notes"))


@pytest.mark.parametrize(
    ("passed", "result"),
    [
        (True, "failed: NameError"),
        (True, "timed out"),
        (False, "passed"),
        (None, "passed"),
        (None, "failed: AssertionError"),
    ],
)
def test_a_verdict_and_a_result_that_differ_are_refused(
    tmp_path: Path, tasks: Path, passed: bool | None, result: str
) -> None:
    with mistake("x.jsonl:2", "official_passed", result):
        read(tmp_path / "x.jsonl", tasks, BASE, completion(ORDER[0], 2, passed, official_result=result))


@pytest.mark.parametrize("result", ["ok", "success", "PASSED", "passed: 3", "failedish", ""])
def test_a_result_that_is_no_word_of_the_harness_is_refused(tmp_path: Path, tasks: Path, result: str) -> None:
    with mistake("x.jsonl:2", "official_result", f"'{result}'"):
        read(tmp_path / "x.jsonl", tasks, BASE, completion(ORDER[0], 2, False, official_result=result))


@pytest.mark.parametrize(
    ("passed", "result"), [(True, "passed"), (False, "timed out"), (False, "failed: a\nb"), (False, None), (True, None)]
)
def test_a_verdict_and_a_result_that_agree_are_taken(
    tmp_path: Path, tasks: Path, passed: bool, result: str | None
) -> None:
    row = completion(ORDER[0], 2, passed, official_result=result)
    assert read(tmp_path / "x.jsonl", tasks, BASE, row).turns[1].passed is passed


def test_replies_of_two_models_in_a_file_are_refused(tmp_path: Path, tasks: Path) -> None:
    rows = [completion("Base", 1, model="one"), completion(ORDER[0], 2, model="two")]
    with mistake("x.jsonl:2", "one", "two"):
        read(tmp_path / "x.jsonl", tasks, *rows)
