"""Agendas learned from dialogues: a made-up file comes back, drawn agendas have its transitions, and its mistakes."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import defaults_of
from codechat.base.domain import SCOPES, Message
from codechat.base.records import TurnRecord
from codechat.base.seeding import generator
from codechat.run.settings.compose import compose
from codechat.studies.refine.agendas import AGENDAS, AgendaConfig, draw
from codechat.studies.refine.agendas.learned import Learned, learn
from support.mistakes import mistake
from support.refine_cells import AUDIT_POOL, of, session, turn

STARTS = {"cosmetic": 0.6, "structural": 0.3, "semantic": 0.1}
ROWS = {
    "cosmetic": {"cosmetic": 0.5, "structural": 0.4, "semantic": 0.1},
    "structural": {"cosmetic": 0.1, "structural": 0.2, "semantic": 0.7},
    "semantic": {"cosmetic": 0.45, "structural": 0.45, "semantic": 0.1},
}
LENGTHS = {3: 0.2, 6: 0.5, 12: 0.3}
TEXTS = {scope: [one.text for one in AUDIT_POOL if one.scope == scope] for scope in SCOPES}


def picked(weights: dict[Any, float], draws: random.Random) -> Any:
    return draws.choices(list(weights), list(weights.values()))[0]


def made_up(count: int, seed: int = 7) -> list[list[str]]:
    """Dialogues of a known chain, as types."""
    draws, found = random.Random(seed), []
    for _ in range(count):
        kinds = [picked(STARTS, draws)]
        for _ in range(picked(LENGTHS, draws) - 2):
            kinds.append(picked(ROWS[kinds[-1]], draws))
        found.append(kinds)
    return found


def written(path: Path, *dialogues: Any) -> AgendaConfig:
    """The options of an agenda that is learned from these lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in dialogues), encoding="utf-8")
    return options(path)


def options(path: Path, **values: Any) -> AgendaConfig:
    config = AGENDAS.validate({"sampling": "learned", "from": str(path), **values})
    assert isinstance(config, AgendaConfig)
    return config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """200 dialogues in the words of the pool."""
    draws = random.Random(1)
    said = [[draws.choice(TEXTS[kind]) for kind in kinds] for kinds in made_up(200)]
    written(tmp_path / "d.jsonl", *({"turns": each} for each in said))
    return tmp_path / "d.jsonl"


def near(counts: Counter[Any], wanted: dict[Any, float], sigmas: float = 4.0) -> bool:
    """Whether counts lie within so many standard errors of what the probabilities let expect."""
    whole = counts.total()
    return all(
        abs(counts[name] / whole - p) <= sigmas * sqrt(max(p * (1 - p), 1e-9) / whole) for name, p in wanted.items()
    )


def steps(agendas: Sequence[Sequence[str]]) -> dict[str, Counter[str]]:
    found = {scope: Counter[str]() for scope in SCOPES}
    for each in agendas:
        for before, after in pairwise(each):
            found[before][after] += 1
    return found


def test_two_hundred_dialogues_come_back(file: Path) -> None:
    found = learn(options(file), AUDIT_POOL)
    kinds = made_up(200)
    assert (found.dialogues, found.turns, found.recognised) == (200, *[sum(map(len, kinds))] * 2)
    assert found.lengths == Counter(1 + len(each) for each in kinds)
    assert {name: Counter(row) for name, row in found.transitions.items()} == steps(kinds)
    assert near(Counter(found.first), STARTS) and near(Counter(found.lengths), LENGTHS)
    for name, row in ROWS.items():
        assert near(Counter(found.transitions[name]), row), name
        assert all(abs(found.rows[name][after] - p) < 0.12 for after, p in row.items()), name
    assert not near(Counter(found.transitions["structural"]), ROWS["cosmetic"]), "the bounds tell chains apart"


def test_drawn_agendas_have_the_lengths_and_transitions_of_the_file(file: Path) -> None:
    config = options(file, turns=12)
    found = learn(config, AUDIT_POOL)
    agendas = [draw(config, generator(0, f"task/{number}", "agenda"), AUDIT_POOL) for number in range(3000)]
    assert near(Counter(each[0] for each in agendas), dict(found.starts))
    assert near(Counter(1 + len(each) for each in agendas), {length: n / 200 for length, n in found.lengths.items()})
    for name, row in steps(agendas).items():
        assert near(row, dict(found.rows[name])), name
        assert not near(row, dict.fromkeys(SCOPES, 1 / 3)), name


def test_a_seed_gives_one_agenda_and_a_lower_cap_its_beginning(file: Path) -> None:
    longer, shorter = options(file, turns=12), options(file, turns=5)
    seeds = range(40)
    long = [draw(longer, random.Random(seed), AUDIT_POOL) for seed in seeds]
    assert long == [draw(longer, random.Random(seed), AUDIT_POOL) for seed in seeds]
    assert len({tuple(each) for each in long}) > 30 and {len(each) for each in long} == {2, 5, 11}
    assert [draw(shorter, random.Random(seed), AUDIT_POOL) for seed in seeds] == [each[:4] for each in long]
    assert max(len(draw(options(file), random.Random(seed), AUDIT_POOL)) for seed in seeds) == 9, "the paper's N"


def test_every_transition_between_types_that_occur_is_possible(tmp_path: Path) -> None:
    texts = {change: of("cosmetic", change)[0].text for change in ("add", "remove")}
    config = written(tmp_path / "d.jsonl", {"turns": [texts["add"], texts["remove"], texts["remove"]]})
    found = learn(config.model_copy(update={"axis": "change"}), AUDIT_POOL)
    assert found.types == {"add": 1, "remove": 2}
    # one request that is spread as all requests are, 1/3 and 2/3
    assert found.rows["add"] == pytest.approx({"add": (0 + 1 / 3) / 2, "remove": (1 + 2 / 3) / 2})
    assert found.starts == pytest.approx({"add": (1 + 1 / 3) / 2, "remove": (2 / 3) / 2})
    for row in (found.starts, *found.rows.values()):
        assert sum(row.values()) == pytest.approx(1) and min(row.values()) > 0


def test_a_request_without_a_type_breaks_the_chain_and_counts_for_the_length(tmp_path: Path) -> None:
    first, last = of("cosmetic", "add")[0].text, of("semantic", "remove")[0].text
    found = learn(written(tmp_path / "d.jsonl", {"turns": [first, "Thanks, that looks great!", last]}), AUDIT_POOL)
    assert (found.turns, found.recognised, found.lengths) == (3, 2, {4: 1})
    assert not any(count for row in found.transitions.values() for count in row.values())


def test_the_forms_of_a_dialogue_agree(tmp_path: Path) -> None:
    asked = [of("structural", "modify")[0], of("semantic", "add")[1]]
    texts = [one.text for one in asked]
    talk = [{"role": role, "content": text} for text in ("Write f.", *texts) for role in ("user", "assistant")]
    record = session("c", "t", [turn(1, asked[0]), TurnRecord(turn=2, skipped=True), turn(3, asked[1])])
    alike: list[Any] = [{"turns": texts}, {"messages": talk}, json.loads(record.line()), texts]
    found = [learn(written(tmp_path / f"{n}.jsonl", each), AUDIT_POOL) for n, each in enumerate(alike)]
    assert found[0] == found[1] == found[2] == found[3] and found[0].lengths == {3: 1}
    assert found[0].transitions["structural"]["semantic"] == 1
    nobody = json.loads(session("c", "u", [turn(1, asked[0])], status="errored", error="away").line())
    silent = written(tmp_path / "more.jsonl", {"turns": texts}, nobody, {"turns": []}, {"messages": talk[:2]})
    assert learn(silent, AUDIT_POOL) == found[0], "no follow-up: nothing to learn"


def test_an_imported_turn_is_recognised_by_the_new_message(tmp_path: Path) -> None:
    said = [Message("user", "Use recursion."), Message("assistant", "def f(): ...")]
    follow_up = TurnRecord(turn=1, request=[*said, Message("user", "Now remove all comments.")])
    found = learn(written(tmp_path / "d.jsonl", json.loads(session("c", "t", [follow_up]).line())), AUDIT_POOL)
    assert found.types == {"cosmetic": 1}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "not a dialogue"),
        ("1", "neither 'turns' nor 'messages'"),
        ("[1]", "no text"),
        ('{"text": "Add comments."}', "neither 'turns' nor 'messages'"),
        ('{"turns": [3]}', "no text"),
        ('{"turns": "Add comments."}', "neither"),
        ('{"messages": [{"content": "x"}]}', "role"),
        ('{"messages": ["x"]}', "not a dialogue"),
        ('{"cell_id": "c", "turns": []}', "not a record of a session"),
    ],
)
def test_a_mistake_is_told_by_its_line(line: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"turns": ["Use recursion."]}\n\n' + line + "\n")
    with mistake(f"{path}:3", named):
        learn(options(path), AUDIT_POOL)


def test_other_mistakes_are_told(tmp_path: Path, file: Path) -> None:
    with mistake("agenda.from"):
        AGENDAS.validate({**defaults_of(AGENDAS["learned"].config), "sampling": "learned"})
    with mistake(str(tmp_path / "none.jsonl")):
        learn(options(tmp_path / "none.jsonl"), AUDIT_POOL)
    with mistake("agenda", "distribution"):
        options(file, distribution={"cosmetic": 1})
    with mistake("thanks.jsonl", "1 dialogues"):
        learn(written(tmp_path / "thanks.jsonl", {"turns": ["Thanks!"]}), AUDIT_POOL)


def test_the_content_of_the_file_is_in_the_id_and_its_path_is_not(tmp_path: Path, file: Path) -> None:
    copy, other = tmp_path / "copy.jsonl", tmp_path / "other.jsonl"
    copy.write_bytes(file.read_bytes())
    other.write_bytes(file.read_bytes() + b'{"turns": ["Use recursion."]}\n')
    ids = [compose(["agenda=learned", f"agenda.from={path}"]).config.identity()["agenda"] for path in (file, copy)]
    assert ids[0] == ids[1] and "from" not in ids[0] and len(ids[0]["content"]) == 64
    assert compose(["agenda=learned", f"agenda.from={other}"]).config.identity()["agenda"] != ids[0]
    assert "content" not in compose([]).config.identity()["agenda"]


def test_the_counts_are_read_back_from_metrics(file: Path) -> None:
    found = learn(options(file, axis="cell"), AUDIT_POOL)
    again = Learned.model_validate(json.loads(json.dumps(found.model_dump(mode="json"))))
    assert again == found and again.draw(10, random.Random(3)) == found.draw(10, random.Random(3))
