"""Another checkpoint under one name: recorded, refused or told, never taken for the one that was measured."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codechat.base.files import from_yaml
from codechat.cli.app import main
from codechat.run.journal import Journal
from codechat.testing import Behaviour, Call, Fault, OpenAIServer, Result, dataset_tasks, error, reference_solver

pytestmark = pytest.mark.long

SMALL = ("dataset.limit=2", "agenda.turns=2", "tracking=none", "hardware.workers=1", "judge=rules")
Serve = Callable[..., OpenAIServer]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that answer right, and say of themselves what they are told to."""
    started: list[OpenAIServer] = []
    solver = reference_solver(dataset_tasks("starter"))

    def start(
        root: str | None = None, behaviour: Behaviour = solver, name: str = "tested", **more: Any
    ) -> OpenAIServer:
        facts = {"root": root} if root else {}
        server = OpenAIServer(behaviour, models=[name], facts={**facts, **more.pop("facts", {})}, **more)
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


def cell(server: OpenAIServer | str, *more: str) -> int:
    url = server if isinstance(server, str) else server.base_url
    return main(["model=openai", "model.name=tested", f"model.base_url={url}", "model.cache=false", *SMALL, *more])


def folder() -> Path:
    (found,) = Path("runs").iterdir()
    return found


def met() -> list[tuple[str, str, dict[str, Any], tuple[str, ...]]]:
    with closing(Journal(folder() / "journal.db")) as journal:
        return [(each.place, each.base_url, json.loads(each.info), each.fingerprints) for each in journal.endpoints()]


def breaking(after: int) -> Behaviour:
    """Answers right so often, then has no quota left: the cell stays unfinished."""
    solver = reference_solver(dataset_tasks("starter"))

    def answer(call: Call) -> Any:
        return solver(call) if call.number < after else error(402, "no money left")

    return answer


def test_a_finished_cell_says_when_against_what_and_that_nothing_was_run(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve("/weights/a")
    assert cell(server) == 0
    assert "finished on" not in capsys.readouterr().out
    asked = server.answered, server.probes
    assert cell(server) == 0
    first = capsys.readouterr().out.splitlines()[0]
    words = rf"finished on \d{{4}}-\d\d-\d\d \d\d:\d\d against tested at {server.base_url} \(root /weights/a\)"
    assert re.search(f"{words}: nothing was run", first), first
    assert (server.answered, server.probes) == asked


def test_a_finished_cell_meets_another_checkpoint_and_stops(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = serve("/weights/a"), serve("/weights/b")
    assert cell(old) == 0
    config, records = ((folder() / name).read_bytes() for name in ("config.yaml", "sessions.jsonl"))
    capsys.readouterr()
    assert cell(new) == 2
    shown = capsys.readouterr()
    assert re.fullmatch(
        rf"error: model: {new.base_url} .* root .*'/weights/b'.*'/weights/a' at {old.base_url} "
        r"on \d{4}-\d\d-\d\d \d\d:\d\d\n"
        r".*model\.weights\.revision=NAME .*runs_dir.*\n",
        shown.err,
    ), shown.err
    assert "Pass@1" not in shown.out
    assert new.answered == 0
    assert ((folder() / "config.yaml").read_bytes(), (folder() / "sessions.jsonl").read_bytes()) == (config, records)


def test_the_remedies_work(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = serve("/weights/a"), serve("/weights/b")
    assert cell(old) == 0
    assert cell(new, "model.weights.revision=step-2000") == cell(new, "runs_dir=others") == 0
    names = sorted(path.name for path in Path("runs").iterdir())
    assert len(names) == 2 and "model.weights.revision-step-2000" in names[1]
    assert new.answered == 2 * old.answered
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=report"]) == 0
    assert "weights.revision=step-2000" in Path("report/tables/leaderboard.csv").read_text()


def test_figures_of_a_finished_cell_stay_those_of_the_endpoint_that_answered(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    old, moved = serve("/weights/a"), serve("/weights/a")
    assert cell(old) == 0
    for other, words in (
        (moved.base_url, "gives the same id and root, and was not asked for any reply"),
        ("http://127.0.0.1:9/v1", "does not answer at once, so it is not compared"),
    ):
        capsys.readouterr()
        assert cell(other) == 0
        shown = capsys.readouterr()
        assert f"model: {other} {words}: the figures come from {old.base_url}\n" in shown.err
        assert f"against tested at {old.base_url}" in shown.out.splitlines()[0]
        assert from_yaml((folder() / "config.yaml").read_text())["model"]["base_url"] == old.base_url
    assert moved.answered == 0


@pytest.mark.parametrize("cached", [False, True])
def test_an_interrupted_cell_meets_another_checkpoint_before_any_call(
    serve: Serve, capsys: pytest.CaptureFixture[str], cached: bool
) -> None:
    cache = f"model.cache={str(cached).lower()}"
    old, new = serve("/weights/a", breaking(1)), serve("/weights/b")
    assert cell(old, cache) == 3
    capsys.readouterr()
    assert cell(new, cache) == 2
    assert "model: " in (said := capsys.readouterr().err) and "serves another checkpoint" in said
    assert new.answered == 0
    moved = serve("/weights/a")
    assert cell(moved, cache) == 0
    assert [place for place, *_ in met()] == ["model", "model"]
    assert moved.answered == 3, "the server may move: it goes on at the call that failed"


def test_another_id_is_another_checkpoint(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = serve(name="a.gguf", behaviour=breaking(1)), serve(name="b.gguf")
    assert cell(old) == 3
    assert cell(new) == 2
    assert re.search(f" id .*'b.gguf'.*'a.gguf' at {old.base_url}", capsys.readouterr().err)


def test_other_fingerprints_and_times_are_told_and_recorded(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"max_model_len": 4096}
    old = serve("/weights/a", breaking(1), facts={**facts, "created": 1_700_000_000}, fingerprint="fp_1")
    new = serve("/weights/a", facts={**facts, "created": 1_710_000_000}, fingerprint="fp_2")
    assert cell(old) == 3
    capsys.readouterr()
    assert cell(new) == 0
    said = capsys.readouterr().err.splitlines()
    (line,) = [line for line in said if "fp_" in line]
    assert line.startswith("model: ") and line.index("fp_2") < line.index("fp_1")
    (line,) = [line for line in said if "created" in line]
    assert line.startswith(f"model: {new.base_url} says created 2024-03-") and "and before 2023-11-" in line
    told = {"id": "tested", "root": "/weights/a", **facts}
    assert met() == [
        ("model", old.base_url, {**told, "created": 1_700_000_000}, ("fp_1",)),
        ("model", new.base_url, {**told, "created": 1_710_000_000}, ("fp_2",)),
    ]


@pytest.mark.parametrize("fault", [error(404, "no such page"), error(403, "not with this key"), Fault(200, "{}")])
def test_an_endpoint_that_says_nothing_is_recorded_as_such(serve: Serve, fault: Fault) -> None:
    server = serve()
    server.models_fault = fault
    assert cell(server) == 0
    assert met() == [("model", server.base_url, {}, ())]
    assert cell(server) == 0


def test_judges_count_the_same(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    def verdict(call: Call) -> Result:
        asks = "VERDICT: APPLICABLE" in call.messages[0]["content"]
        return f"REASON: so.\nVERDICT: {'APPLICABLE' if asks else 'ADHERED'}"

    model, judge, other = serve("/m"), serve("/j", verdict, "j"), serve("/k", verdict, "j")

    def judged(server: OpenAIServer, tested: OpenAIServer) -> int:
        roles = (
            f"judge.{role}.{option}"
            for role in ("applicability", "adherence")
            for option in (f"base_url={server.base_url}", "name=j", "cache=false")
        )
        return cell(tested, "judge=llm", "judge.check=false", *roles)

    broken = serve("/m", breaking(3))
    assert judged(judge, broken) == 3
    assert {place for place, *_ in met()} == {"model", "judge.applicability", "judge.adherence"}
    capsys.readouterr()
    assert judged(other, model) == 2
    assert f"error: judge.applicability: {other.base_url} serves another checkpoint" in capsys.readouterr().err
    assert (other.answered, model.answered) == (0, 0), "before any call, of the model too"
    assert judged(judge, model) == 0
    capsys.readouterr()
    assert judged(judge, model) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert f"tested at {model.base_url} (root /m), judge.applicability j at {judge.base_url} (root /j)" in first
    assert judged(other, model) == 2


def test_the_response_cache_does_not_mix_checkpoints(serve: Serve) -> None:
    old = serve("/weights/a")
    assert cell(old, "model.cache=true") == 0
    asked = old.answered
    assert cell(old, "model.cache=true", "runs_dir=again") == 0
    assert old.answered == asked
    old.facts["root"] = "/weights/b"  # another checkpoint at the same address
    assert cell(old, "model.cache=true", "model.weights.revision=b") == 0
    assert old.answered == 2 * asked, "its replies are its own"
    assert cell(old, "model.cache=true", "runs_dir=third") == 0
    assert old.answered == 3 * asked


def test_a_cell_of_an_older_journal_goes_on_and_is_recorded(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve("/weights/a", breaking(1))
    assert cell(server) == 3
    age(folder() / "journal.db")
    assert cell(fresh := serve("/weights/a")) == 0
    assert [(place, said["root"]) for place, _, said, _ in met()] == [("model", "/weights/a")]
    age(folder() / "journal.db")
    capsys.readouterr()
    assert cell("http://127.0.0.1:9/v1") == 0
    shown = capsys.readouterr()
    assert "finished" in shown.out and f"tested at {fresh.base_url}: nothing was run" in shown.out
    assert f"the figures come from {fresh.base_url}" in shown.err


def age(path: Path) -> None:
    """Make a journal what a version that recorded no endpoints would have left."""
    later = "DROP TABLE taken; DROP TABLE origin; ALTER TABLE runs DROP COLUMN origin;"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"{later} DROP TABLE endpoints; ALTER TABLE sessions DROP COLUMN ended; PRAGMA user_version=3;"
        )


def test_a_cell_without_endpoints_says_that_nothing_was_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model=echo", *SMALL]
    assert main(words) == 0
    shutil.copy(folder() / "sessions.jsonl", "recorded.jsonl")
    for again in (
        words,
        replayed := ["model=replay", "model.path=recorded.jsonl", "runs_dir=replays", *SMALL],
        replayed,
    ):
        main(again)
        first = capsys.readouterr().out.splitlines()[0]
    assert re.search(r" · finished .*\d{4}-\d\d-\d\d \d\d:\d\d: nothing was run · ", first)


def test_no_secret_of_an_address_is_shown(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve("/weights/a")
    assert cell(server) == 0
    with closing(sqlite3.connect(folder() / "journal.db")) as db, db:
        db.execute("UPDATE endpoints SET base_url = base_url || '?key=secret'")
    capsys.readouterr()
    assert cell(server) == 0
    shown = capsys.readouterr()
    assert "secret" not in shown.out + shown.err
