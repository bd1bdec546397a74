"""Recorded dialogues scored again: by the same judge nothing changes, by another one only the judgements do."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.errors import UserError
from codechat.base.files import from_yaml, write_atomically
from codechat.cli.commands.rescore import run_rescore
from codechat.run.journal import Journal
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.testing import Call, OpenAIServer, dataset_tasks, error, overflow
from support.stores import client_of

TASKS = dataset_tasks("starter")[:4]
UNSEALED = shutil.ignore_patterns("seal.json")  # what a test edits is a recording of its own
# Little of every scope, so that turns are skipped.
POOL = """text,scope,rule
Remove all docstrings.,cosmetic,"{""pattern"": ""docstring""}"
Add a comment at the end.,cosmetic,"{""pattern"": ""comment""}"
Rename every variable after its meaning.,structural,
Add at least one assertion.,structural,"{""pattern"": ""assert""}"
Remove all assertions.,semantic,"{""pattern"": ""assert""}"
"""


def answers(call: Call) -> Any:
    """The reference with a comment; task 0 breaks twice and mends; task 1 gives no code first, task 2 soon overflows, task 3 soon breaks."""
    user = [message for message in call.messages if message["role"] == "user"]
    number = next(n for n, task in enumerate(TASKS) if task.prompt.strip() in user[0]["content"])
    task, turn = TASKS[number], len(user) - 1
    if number == 1 and turn == 1:
        return "I would rather not."
    if number == 2 and turn >= 2:
        return overflow()
    if number == 0 and turn in (1, 2):
        return f"```python\n{task.target.signature}\n    return (\n```"
    if number == 3 and turn >= 2:
        return f"```python\n{task.target.signature}\n    return None\n```"
    comment = f"# {turn}" if turn else ""
    return f"Sure.\n```python\n{task.reference}\n{comment}\n```"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished cell with skipped turns, a reply without code, an overflow and failures; its endpoint is gone."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "pool.csv").write_text(POOL)
    with OpenAIServer(answers) as server:
        composed = compose(
            [
                "model=openai", "model.name=tested", f"model.base_url={server.base_url}", "model.api_key_env=null",
                "dataset.limit=4", "agenda.turns=10", "tracking=none", "sandbox.allow_weak=true", "hardware.workers=1",
                f"instructions.path={folder / 'pool.csv'}", f"runs_dir={folder / 'runs'}",
            ]
        )  # fmt: skip
        outcome = run(composed)
    assert outcome.status == 0
    return outcome.folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found


def comparable(value: Any) -> Any:
    """Without ids of cell and session and without times."""
    if isinstance(value, dict):
        left = {key: each for key, each in value.items() if not key.endswith("_s")}
        return {key: comparable(each) for key, each in left.items() if key not in ("cell_id", "session_id")}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def test_the_source_has_every_kind_of_turn(source: Path) -> None:
    turns = [turn for session in sessions(source) for turn in session["turns"]]
    assert sum(turn["skipped"] for turn in turns) > 3
    assert {turn["read_turn"] for turn in turns if "read_turn" in turn} == {0}, (
        "the code of turn 0 is read until one parses"
    )
    assert {turn["outcome"] for turn in turns} >= {"pass", "fail", "no_code"}
    assert [session["ended"] for session in sessions(source)] == [None, None, "context_overflow", None]
    assert {turn["adherence"]["verdict"] for turn in turns if turn["adherence"]} == {"adhered", "violated"}


@pytest.mark.usefixtures("rendered")
def test_the_same_judge_and_sandbox_give_the_same_records(source: Path, here: Path) -> None:
    assert run_rescore([f"run={source}", "out=again"]) == 0
    old, new = sessions(source), sessions(here / "again")
    assert comparable(new) == comparable(old)
    assert comparable(metrics(here / "again")) == comparable(metrics(source))
    assert not {session["session_id"] for session in new} & {session["session_id"] for session in old}
    assert len({session["cell_id"] for session in [*old, *new]}) == 2
    config = from_yaml((here / "again" / "config.yaml").read_text())
    assert config["rescored_from"] == old[0]["cell_id"]
    assert (here / "again" / "tables" / "turns.csv").read_text() == (source / "tables" / "turns.csv").read_text()
    assert (here / "again" / "figures" / "turns.png").stat().st_size > 1000


def test_a_scoring_killed_before_its_settings_goes_on(source: Path, here: Path) -> None:
    left = here / "left"
    left.mkdir()
    (left / ".lock").touch()
    Journal(left / "journal.db").close()
    assert run_rescore([f"run={source}", "out=left"]) == 0
    assert comparable(sessions(left)) == comparable(sessions(source))


def test_nothing_is_overwritten(source: Path, here: Path) -> None:
    assert run_rescore([f"run={source}", "out=again"]) == 0
    before = (here / "again" / "sessions.jsonl").read_bytes()
    for words in (["out=again"], ["out=again", "sandbox.min_cpu_s=3"], [f"out={source}"], ["out=file"]):
        (here / "file").write_text("mine")
        with pytest.raises(UserError, match="nothing is overwritten"):
            run_rescore([f"run={source}", *words])
    assert (here / "again" / "sessions.jsonl").read_bytes() == before
    (here / "empty").mkdir()
    assert run_rescore([f"run={source}", "out=empty"]) == 0


def verdicts(found: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for session in found:
        yield from (
            (turn["adherence"]["verdict"], turn["adherence"]["by"]) for turn in session["turns"] if turn["adherence"]
        )


def judged_by(url: str) -> list[str]:
    roles = ("applicability", "adherence")
    return [
        "judge=llm",
        "judge.check=false",
        *(f"judge.{role}.base_url={url}" for role in roles),
        *(f"judge.{r}.max_retries=0" for r in roles),
    ]


def test_another_judge_changes_the_judgements_and_not_the_path(source: Path, here: Path) -> None:
    with OpenAIServer(lambda call: "No.\nVERDICT: VIOLATED") as server:
        assert run_rescore([f"run={source}", "out=llm", *judged_by(server.base_url)]) == 0
        asked = list(server.calls)
    assert not [call for call in asked if "NOT_APPLICABLE" in call.messages[0]["content"]], "applicability stays"
    old, new = sessions(source), sessions(here / "llm")
    assert len(asked) == sum(by == "llm" for _, by in verdicts(new)) > 5
    assert {verdict for verdict, _ in verdicts(new)} == {"violated"}
    assert sum(by == "rules" for _, by in verdicts(new)) == 1, "the reply without code"
    for session in [*old, *new]:
        for turn in session["turns"]:
            del turn["adherence"], turn["judge_usage"]
            turn.pop("asked", None)  # has the adherence, too
    assert comparable(new) == comparable(old)
    config = from_yaml((here / "llm" / "config.yaml").read_text())
    assert (config["judge"]["kind"], config["choices"]["judge"], config["model"]["name"]) == ("llm", "llm", "tested")
    assert metrics(here / "llm")["tokens"]["judge"]["output_tokens"] > 0


def test_a_judge_that_fails_leaves_what_the_same_command_finishes(source: Path, here: Path) -> None:
    failing = True

    def moody(call: Call) -> Any:
        broken = failing and TASKS[0].target.entry_point in call.messages[0]["content"]
        return error(500, "out of order") if broken else "Yes.\nVERDICT: ADHERED"

    with OpenAIServer(moody) as server:
        words = [f"run={source}", "out=llm", *judged_by(server.base_url)]
        assert run_rescore(words) == 3
        assert [session["status"] for session in sessions(here / "llm")] == ["errored"] + ["completed"] * 3
        failing, first = False, len(server.calls)
        assert run_rescore(words) == 0
        assert 0 < len(server.calls) - first <= 6, "only what is missing"
    assert [session["status"] for session in sessions(here / "llm")] == ["completed"] * 4
    with pytest.raises(UserError, match="nothing is overwritten"):
        run_rescore(words)


def test_single_options_change_the_recorded_ones(source: Path, here: Path) -> None:
    shutil.copytree(source, here / "copy", ignore=UNSEALED)
    config = from_yaml((source / "config.yaml").read_text())
    config["sandbox"]["idle_s"] = 7.0
    config["hardware"]["tensor_parallel"] = 2  # an option of an earlier version, without part in any result
    (here / "copy" / "config.yaml").write_text(yaml.safe_dump(config))
    assert run_rescore(["run=copy", "out=more", "sandbox.memory_mb=2048", "judge.lookahead=3"]) == 0
    found = from_yaml((here / "more" / "config.yaml").read_text())
    assert found["sandbox"] == {**config["sandbox"], "memory_mb": 2048}
    assert found["judge"] == {"kind": "rules", "lookahead": 3}
    assert run_rescore(["run=copy", "out=same"]) == 0
    assert len({sessions(here / name)[0]["cell_id"] for name in ("copy", "more", "same")}) == 3


def test_errored_sessions_are_left_out_and_said(source: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(source, here / "copy", ignore=UNSEALED)
    records = sessions(source)
    records[1] |= {"status": "errored", "error": "endpoint down"}
    write_atomically(here / "copy" / "sessions.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    assert run_rescore(["run=copy", "out=again"]) == 0
    assert "1 errored session" in capsys.readouterr().err
    assert comparable(sessions(here / "again")) == comparable([records[0], *records[2:]])
    for record in records:
        record["status"] = "errored"
    write_atomically(here / "copy" / "sessions.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    with pytest.raises(UserError, match="no completed session"):
        run_rescore(["run=copy", "out=none"])


MISTAKES = [
    (["out=x"], "run is required"),
    (["run=SOURCE"], "out is required"),
    (["run=SOURCE", "oot=x", "out=x"], "did you mean 'out'"),
    (["run=nowhere", "out=x"], "is no cell"),
    (["run=SOURCE", "out=x", "seed=3"], "seed cannot change"),
    (["run=SOURCE", "out=x", "model=echo"], "model cannot change"),
    (["run=SOURCE", "out=x", "dataset.limit=3"], "dataset.limit cannot change"),
    (["run=SOURCE", "out=x", "judge=rulez"], "did you mean 'rules'"),
    (["run=SOURCE", "out=x", "sandbox.memroy_mb=3"], "memory_mb"),
    (["run=SOURCE", "out=x", "sandbox.memory_mb=lots"], "sandbox.memory_mb"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_mistakes(source: Path, here: Path, words: list[str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        run_rescore([word.replace("SOURCE", str(source)) for word in words])
    assert told in str(caught.value)
    assert not (here / "x").exists()


def test_it_is_tracked_as_a_cell_of_its_own(source: Path, here: Path) -> None:
    assert run_rescore([f"run={source}", "out=again", "tracking=mlflow"]) == 0
    client = client_of(here)
    [run] = client.search_runs([client.get_experiment_by_name("codechat").experiment_id])
    assert run.data.tags["codechat.rescored_from"] == sessions(source)[0]["cell_id"]
    assert run.data.tags["codechat.cell_id"] == sessions(here / "again")[0]["cell_id"]
    assert "rescored" in run.info.run_name
