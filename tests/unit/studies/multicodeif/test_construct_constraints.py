"""The recipe `constraints`: from snippets to tasks that cells run; each planted defect ends in its stage."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.cli.app import main
from codechat.testing import Call, OpenAIServer
from support.construction import PLACE, ROLES, Agents, ends, fenced, read, snippet, story, words_of, write

Construct = Callable[..., int]


@pytest.fixture
def construct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Construct]:
    """Runs the command with agents, of so many snippets."""
    monkeypatch.chdir(tmp_path)

    def command(agents: Agents, snippets: int, *words: str) -> int:
        write(tmp_path / "seeds.jsonl", [snippet(number) for number in range(snippets)])
        with OpenAIServer(agents, models=ROLES) as server:
            return main(words_of(server.base_url, *words))

    yield command


def cell(path: Path, protocol: str, part: str, *words: str) -> Any:
    """A cell over made tasks, whose model answers with the witness of the level that it is asked for."""
    witnesses = {row["prompt"]: row["witness"] for row in read(path)}

    def solver(call: Call) -> str:
        text = call.messages[0]["content"]
        return fenced(witnesses[max((prompt for prompt in witnesses if prompt in text), key=len)])

    with OpenAIServer(solver) as server:
        at = [f"model.base_url={server.base_url}", "model.name=test-model", "model.api_key_env=null"]
        data = ["dataset=multicodeif", f"dataset.path={path}", f"dataset.part={part}"]
        return run(
            compose(["model=openai", *at, *data, f"protocol={protocol}", "judge=rules", "tracking=none", *words])
        )


def test_a_task_has_the_papers_fields_a_witness_and_its_origin(construct: Construct, tmp_path: Path) -> None:
    assert (
        construct(
            Agents(), 3, "out=out", "types=[data_structure_size]", "expand=[data_structure]", "number=2", "levels=3"
        )
        == 0
    )
    items = read(tmp_path / "out" / "items.jsonl")
    assert [(row["task_id"], row["level"], row["previous_level_task_id"]) for row in items[:3]] == [
        ("data_structure_size/0/L1", "L1", None),
        ("data_structure_size/0/L2", "L2", "data_structure_size/0/L1"),
        ("data_structure_size/0/L3", "L3", "data_structure_size/0/L2"),
    ]
    assert [len(row["answers_cumulative"]) for row in items] == [1, 2, 3] * 2
    first, third = items[0], items[2]
    assert first["category"] == "data_structure" and first["constraint_type"] == "data_structure_size"
    assert first["constraint"].startswith("The code must use") and first["language"] == "python"
    assert not first["reviewed"] and third["witness"].count("\n") > 2
    assert first["provenance"]["snippet"]["licence"] == "MIT" and first["provenance"]["snippet"]["id"] == "snippet/0"
    made = cell(tmp_path / "out" / "items.jsonl", "levels", "levels")
    assert made.status == 0 and made.metrics["hsr"] == [1.0, 1.0, 1.0] and made.metrics["levels"] == ["L1", "L2", "L3"]
    asked = json.dumps([turn["request"] for row in read(made.folder / "sessions.jsonl") for turn in row["turns"]])
    assert not any(json.dumps(row["witness"])[1:-1] in asked for row in items), "no model under test sees a witness"
    single = cell(tmp_path / "out" / "items.jsonl", "repair", "single")
    assert single.metrics["accuracy"] == 1.0 and single.metrics["sessions"] == 2


@pytest.mark.long
def test_rounds_go_on_until_the_number_is_there(construct: Construct, tmp_path: Path) -> None:
    """Of four tasks two fail in the first round, and one of the two that take their place."""
    agents = Agents({0: "silent", 3: "unpassable", 4: "malformed"})
    words = ("types=[library]", "number=4", "levels=1", "skip=[concepts]")
    assert construct(agents, 9, "out=out", *words, "rounds=4") == 0
    names = [row["task_id"] for row in read(tmp_path / "out" / "items.jsonl")]
    assert names == ["library/1", "library/2", "library/5", "library/6"]
    assert json.loads((tmp_path / "out" / "yield.json").read_text())["seeds"] == 7
    assert ends(tmp_path / "out") == {
        "library/0": ("write", "not stated"),
        "library/3": ("witness", "not passable"),
        "library/4": ("write", "malformed"),
    }
    asked = agents.asked.total()
    assert construct(agents, 9, "out=out", *words, "rounds=4") == 0 and agents.asked.total() == asked
    assert construct(agents, 9, "out=two", *words, "rounds=2") == 0
    assert len(read(tmp_path / "two" / "items.jsonl")) == 3


@pytest.mark.long
def test_it_goes_on_from_where_it_was_stopped(construct: Construct, tmp_path: Path) -> None:
    words = ("types=[library]", "number=2", "levels=1", "skip=[concepts]", "rounds=1")
    assert construct(Agents(), 2, "out=half", *words, "until=expand") == 0
    agents = Agents()
    assert construct(agents, 2, "out=rest", *words, "seeds=null", "from=half/items.jsonl") == 0
    assert {*agents.asked} == {"solver"} and len(read(tmp_path / "rest" / "items.jsonl")) == 2
    assert construct(Agents(), 2, "out=whole", *words) == 0
    assert (tmp_path / "rest" / "items.jsonl").read_text() == (tmp_path / "whole" / "items.jsonl").read_text()


@pytest.mark.long
def test_a_budget_ends_the_rounds(construct: Construct, tmp_path: Path) -> None:
    agents = Agents(dict.fromkeys(range(99), "malformed"))
    words = ("types=[library]", "number=2", "levels=1", "rounds=99", "budget_tokens=20000")
    assert construct(agents, 2, "out=out", *words) == 3
    assert 2 < json.loads((tmp_path / "out" / "yield.json").read_text())["seeds"] < 60


def label(folder: Path, name: str, sound: Mapping[str, str], **more: Mapping[str, str]) -> str:
    """A person's labels of the drawn items."""
    rows = list(csv.DictReader((folder / "sample.csv").read_text().splitlines()))
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        for row in rows:
            own = {column: given.get(row["task_id"], "") for column, given in more.items()}
            writer.writerow({**row, "annotator": name, "sound": sound.get(row["task_id"], "yes"), **own})
    return str(path)


@pytest.mark.long
def test_people_accept_reject_and_edit(
    construct: Construct, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edit passes all checks again, and is the text that the next labels are on."""
    words = ("out=out", "types=[library]", "number=5", "levels=1", "skip=[concepts]", "rounds=1")
    agents = Agents()
    assert construct(agents, 5, *words) == 0
    assert main(["audit", "export", "items=9", "runs=out", "out=audit"]) == 0
    page = (tmp_path / "audit" / "label.html").read_text()
    assert "## witness" in page and "## nearest" in page and "## prompt" in page
    before = {row["task_id"]: row["prompt"] for row in read(tmp_path / "out" / "items.jsonl")}
    good = before["library/2"].replace("program", "script")
    edits = {"library/2": good, "library/3": "Write a Python program."}
    one = label(tmp_path / "audit", "ann", {"library/1": "no"}, note={"library/1": "vague"}, edit=edits)
    two = label(tmp_path / "audit", "bob", {"library/1": "no", "library/4": "no"}, note={"library/1": "not clear"})
    asked = agents.asked["solver"]
    assert construct(agents, 5, *words, f"reviews=[{one},{two}]") == 0
    assert agents.asked["solver"] == asked + 2, "only the edited task has a new witness"
    rows = {row["task_id"]: row for row in read(tmp_path / "out" / "items.jsonl")}
    assert {name: row["reviewed"] for name, row in rows.items()} == {
        "library/0": True, "library/2": False, "library/4": False
    }  # fmt: skip
    assert rows["library/2"]["prompt"] == good and rows["library/0"]["provenance"]["review"] == {
        "ann": True,
        "bob": True,
    }
    assert ends(tmp_path / "out") == {
        "library/1": ("review", "rejected by people"), "library/3": ("redundancy", "not stated")
    }  # fmt: skip
    rejected = next(row for row in read(tmp_path / "out" / "dropped.jsonl") if row["id"] == "library/1")
    assert rejected["detail"] == "ann: vague; bob: not clear"
    assert main(["audit", "export", "items=9", "runs=out", "out=again"]) == 0
    three = label(tmp_path / "again", "cy", {})
    assert construct(agents, 5, *words, f"reviews=[{one},{two},{three}]") == 0
    rows = {row["task_id"]: row["reviewed"] for row in read(tmp_path / "out" / "items.jsonl")}
    assert rows == {"library/0": True, "library/2": True, "library/4": True}, "two of three find the last one sound"
    capsys.readouterr()
    assert main(["audit", "score", f"labels={one},{two}", "out=scored"]) == 0
    assert "kappa" in capsys.readouterr().out.lower()


def test_unreviewed_tasks_load_with_a_caution(
    construct: Construct, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert construct(Agents(), 2, "out=out", "types=[library]", "number=2", "levels=1", "skip=[concepts]") == 0
    (tmp_path / "none").write_text("library/1\n")
    data = ["dataset=multicodeif", "dataset.path=out/items.jsonl", "dataset.exclude=none"]
    composed = compose(["model=echo", *data, "protocol=repair", "judge=rules", "tracking=none"])
    outcome = run(composed)
    assert outcome.metrics is not None and outcome.metrics["sessions"] == 1
    capsys.readouterr()
    assert main(["model=echo", *data, "protocol=repair", "judge=rules", "tracking=none"]) == 0
    said = capsys.readouterr()
    assert "2 of 2 tasks are unreviewed" in " ".join((said.out + said.err).split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["types=[nameing]"], "nameing"),
        (["languages=[cobol]"], "cobol"),
        (["types=[language_version]", "languages=[c]"], "fits the type language_version"),
        (["types=[algorithm_type]", f"{PLACE}.judge=null"], "construct.roles.judge"),
        (["types=[library]", "levels=2", f"{PLACE}.judge=null"], ""),
        (["types=[naming]", "expand=[nameing]", "levels=2"], "nameing"),
        (["pools=empty"], "no pool in"),
        (["pools=bad"], "brace.yaml"),
        (["seeds=short.jsonl"], "too short"),
        (["seeds=torn.jsonl"], "torn.jsonl:1"),
        (["skip=[witness]"], "without the stage witness"),
        (["against=missing.jsonl"], "missing.jsonl"),
        (["reviews=[seeds.jsonl]"], "seeds.jsonl"),
    ],
)
def test_what_cannot_be_is_told_before_any_call(
    construct: Construct, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "brace.yaml").write_text("name: brace\nvalues: []\n")
    write(tmp_path / "short.jsonl", [{"id": "a", "code": "x = 1", "language": "python"}])
    (tmp_path / "torn.jsonl").write_text('{"code": "x')
    agents = Agents()
    usual = ["levels=1"] * ("levels=2" not in words)
    status = construct(agents, 2, "out=out", "number=1", *usual, *words)
    if not told:
        assert status == 0, "no task of these types is expanded, so nobody judges"
        return
    said = " ".join(capsys.readouterr().err.split())
    assert status == 2 and told in said and "Traceback" not in said
    assert not agents.asked and not (tmp_path / "out").exists()


TYPES = ["data_structure_type", "data_structure_size", "library", "invocation", "naming", "algorithm_type"]
EACH = 50
USUAL = {"malformed": 2, "other value": 2, "silent": 2, "copied": 2, "across": 3, "published": 2, "unpassable": 2}
OWN = {
    "data_structure_type": {"other language": 3, "unreadable": 3, "across": 0},
    "data_structure_size": {"other language": 3, "unreadable": 3, "lost": 12, "related": 13},
    "library": {"other language": 3, "unreadable": 3},
    "invocation": {"other language": 3, "unreadable": 3},
    "naming": {"other language": 3, "unreadable": 3},
    "algorithm_type": {"vacuous": 14},
}
REASONS = {
    "malformed": {("write", "malformed")},
    "other value": {("write", "other value")},
    "other language": {("write", "other language")},
    "silent": {("write", "not stated")},
    "unreadable": {("write", "unreadable answer")},
    "copied": {("redundancy", "redundant, same type")},
    "across": {("redundancy", "redundant, across types")},
    "published": {("redundancy", "redundant, published")},
    "related": {("expand", "repeated"), ("expand", "contradictory")},
    "lost": {("expand", "earlier constraint lost")},
    "unpassable": {("witness", "not passable")},
    "vacuous": {("witness", "accepts everything")},
}


def planted() -> Agents:
    """Of every type EACH requests, of which the first are sound; a copy tells the story of the first of its type, of
    the type before, or of a published task."""
    defects, copied = dict[int, str](), dict[int, object]()
    for place, name in enumerate(TYPES):
        kinds = [kind for kind, count in {**USUAL, **OWN[name]}.items() for _ in range(count)]
        for number, kind in enumerate(kinds, (place + 1) * EACH - len(kinds)):
            defects[number] = kind
            origin = {"copied": place * EACH, "across": (place - 1) * EACH, "published": f"published {number}"}
            if kind in origin:
                copied[number] = origin[kind]
    return Agents(defects, copied)


@pytest.mark.long
def test_each_planted_defect_ends_in_its_stage(construct: Construct, tmp_path: Path) -> None:
    """300 requests, at least 12 with each defect; every sound task is kept, and passed by its witness in cells."""
    agents = planted()
    counts = Counter(agents.defects.values())
    assert {*counts} == {*REASONS} and min(counts.values()) >= 12
    published = [n for n, kind in agents.defects.items() if kind == "published"]
    row = {
        "level": "single",
        "category": "algorithm",
        "constraint_type": "type",
        "language": "python",
        "answer": "greedy",
    }
    prompts = [f"Write a Python program: {story(f'published {number}')}. Be greedy." for number in published]
    write(tmp_path / "against.jsonl", [{**row, "task_id": f"p/{n}", "prompt": each} for n, each in enumerate(prompts)])
    words = [f"types=[{','.join(TYPES)}]", f"number={EACH}", "rounds=1", "levels=2", "tries=2", "skip=[concepts]"]
    words += ["expand=[data_structure_type,data_structure_size]", "against=against.jsonl"]
    assert construct(agents, len(TYPES) * EACH, "out=out", *words) == 0
    dropped, items = ends(tmp_path / "out"), read(tmp_path / "out" / "items.jsonl")
    kept = {row["task_id"] for row in items}
    for number in range(len(TYPES) * EACH):
        name, kind = f"{TYPES[number // EACH]}/{number % EACH}", agents.defects.get(number, "")
        chained = number < 2 * EACH
        place = f"{name}/L2" if kind in ("related", "lost") else f"{name}/L1" if chained else name
        if kind:
            end = dropped.get(place) or dropped.get(name)
            assert end in REASONS[kind], (name, kind, end)
        if not kind or kind in ("related", "lost"):
            assert (f"{name}/L1" if chained else name) in kept, name
        if not kind and chained:
            assert f"{name}/L2" in kept, name
    sound = len(TYPES) * EACH - len(agents.defects)
    assert (
        len(kept)
        == len(items)
        == sound + counts["related"] + counts["lost"] + sum(n not in agents.defects for n in range(2 * EACH))
    )
    assert Counter(dropped.values())["expand", "repeated"] and Counter(dropped.values())["expand", "contradictory"]
    path = tmp_path / "out" / "items.jsonl"
    single, chains = cell(path, "repair", "single"), cell(path, "levels", "levels")
    assert single.metrics["accuracy"] == 1.0
    assert single.metrics["sessions"] == sum(row["level"] == "L1" for row in items)
    assert chains.metrics["hsr"] == [1.0, 1.0] and chains.metrics["undecided"] == 0
