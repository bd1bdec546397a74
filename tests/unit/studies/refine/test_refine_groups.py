"""Which instructions fit a cell: those that its judge can decide about, of every type that its agenda asks for."""

from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Instruction, Target
from codechat.base.errors import UserError
from codechat.datasets.tasks import Task
from codechat.studies.refine import groups
from codechat.studies.refine.agendas import AgendaConfig
from codechat.studies.refine.groups import _types, check_instructions, label_agenda
from codechat.studies.refine.instructions import Pool
from support.benches import OwnJudge

USES = frozenset({"agenda", "instructions", "judge", "sandbox"})
RULE = {"pattern": "comment"}


def instruction(name: str, *, rule: bool = False, scope: Any = "cosmetic") -> Instruction:
    return Instruction(name, "text", scope, "add", RULE if rule else None)


@pytest.fixture
def needs_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.studies.refine.groups.JUDGES", OwnJudge.deciding(needs_rules=True))


def cell(*instructions: Instruction, uses: frozenset[str] = USES, recorded: bool = False, **agenda: Any) -> Any:
    config = SimpleNamespace(judge=None, seed=0, part=lambda name: AgendaConfig(**agenda))
    tasks = tuple(Task(name, "p", target=Target("python")) for name in "ab")
    contents = {"instructions": Pool(instructions, "hash")}
    return SimpleNamespace(config=config, contents=contents, uses=uses, is_recorded=recorded, tasks=tasks)


@pytest.mark.usefixtures("needs_rules")
@pytest.mark.parametrize(
    ("pool", "told"),
    [
        ([("cosmetic", True), ("structural", True), ("semantic", True)], ""),
        ([("cosmetic", True), ("structural", False), ("semantic", True)], "cannot decide.* type structural"),
        ([("cosmetic", True), ("semantic", False)], "agenda asks .*type structural"),
        ([], "agenda asks .*types"),
        ([("cosmetic", False), ("structural", False), ("semantic", True)], "cannot decide.* the types"),
    ],
)
def test_an_agenda_asks_for_types_that_the_judge_can_decide(pool: list[tuple[str, bool]], told: str) -> None:
    found = [instruction(f"i{at}", rule=rule, scope=scope) for at, (scope, rule) in enumerate(pool)]
    if told:
        with pytest.raises(UserError, match=told):
            list(check_instructions(cell(*found, turns=9)))
    else:
        assert list(check_instructions(cell(*found, turns=9))) == []
    left_out = list(check_instructions(cell(*found, uses=USES - {"agenda"}, turns=9)))
    assert left_out == [], "no agenda, nothing to draw"


@pytest.mark.usefixtures("needs_rules")
def test_instructions_that_are_never_drawn_are_remarked() -> None:
    pool = [instruction(scope, rule=True, scope=scope) for scope in ("cosmetic", "structural", "semantic")]
    (remark,) = check_instructions(cell(*pool, instruction("more")))
    assert "judge=own" in remark and "1 of 4 instructions" in remark and "judge=llm" in remark


@pytest.mark.usefixtures("needs_rules")
def test_of_recorded_dialogues_the_judge_decides_at_least_one_instruction() -> None:
    with pytest.raises(UserError, match="any of the 2"):
        list(check_instructions(cell(instruction("i"), instruction("j"), recorded=True)))
    list(check_instructions(cell(instruction("i", rule=True), instruction("j"), recorded=True)))
    list(check_instructions(cell(instruction("i"), uses=USES - {"judge"}, recorded=True)))
    list(check_instructions(cell(recorded=True)))


def test_types_are_listed_in_one_or_several() -> None:
    assert _types(["a"]) == "the type a" and _types(["a", "b"]) == "the types a, b"


def test_a_cells_name_has_the_turns_that_are_not_the_papers() -> None:
    assert label_agenda(AgendaConfig(), "balanced") == ["balanced"]
    assert label_agenda(AgendaConfig(turns=3), "balanced") == ["balanced", "3 turns"]


@pytest.mark.usefixtures("needs_rules")
@pytest.mark.parametrize(("own", "drawn"), [(None, 5), (9, 9), (0, 0)])
def test_an_agendas_own_seed_counts_before_the_cells(
    monkeypatch: pytest.MonkeyPatch, own: int | None, drawn: int
) -> None:
    seeds: list[Any] = []
    generator = groups.generator
    monkeypatch.setattr(groups, "generator", lambda seed, *given: seeds.append(seed) or generator(seed, *given))
    one = cell(
        *(instruction(scope, rule=True, scope=scope) for scope in ("cosmetic", "structural", "semantic")), seed=own
    )
    one.config.seed = 5
    assert list(check_instructions(one)) == [] and seeds == [drawn] * len(one.tasks)
