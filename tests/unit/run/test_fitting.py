"""Which parts of a cell fit each other: what is refused, and what is remarked, by the conditions of each."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Instruction, Target
from codechat.base.errors import UserError
from codechat.datasets.tasks import Task
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT
from codechat.models import MODELS, ModelTraits
from codechat.run.cell.fitting import (
    _check_languages,
    check_fit,
    check_judge,
    check_texts,
    other_languages,
    undecidable,
)
from codechat.run.protocols import PROTOCOLS
from codechat.run.settings.compose import compose, owners
from codechat.studies.refine.instructions import Pool
from support.benches import OwnJudge

BOTH = (APPLICABILITY, ADHERENCE)


Judged = Callable[..., Any]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """Makes the config of a cell whose judge, called own, decides some questions and is asked others."""

    def config_of(*questions: str, asked: tuple[str, ...] = BOTH, languages: Any = None) -> Any:
        monkeypatch.setattr("codechat.run.cell.fitting.JUDGES", OwnJudge.deciding(*questions, languages=languages))
        return SimpleNamespace(judge=None, questions=asked, protocol=compose(["model=echo"]).config.protocol)

    return config_of


def instruction(name: str, *, text: str = "text") -> Instruction:
    return Instruction(name, text, "cosmetic", "add")


def task(name: str = "t", language: str = "python", **more: Any) -> Task:
    return Task(name, "p", target=Target(language), **more)


@pytest.mark.parametrize(
    ("able", "asked", "refused"),
    [
        ((CONSTRAINT,), BOTH, True),
        ((CONSTRAINT,), (ADHERENCE,), True),
        ((CONSTRAINT,), (CONSTRAINT,), False),
        ((CONSTRAINT,), (), False),
        ((ADHERENCE,), BOTH, False),
        ((APPLICABILITY, CONSTRAINT), (ADHERENCE, CONSTRAINT), True),
    ],
)
def test_a_judge_decides_something_of_what_it_is_asked(
    judged: Judged, able: tuple[str, ...], asked: tuple[str, ...], refused: bool
) -> None:
    config = judged(*able, asked=asked)
    if refused:
        with pytest.raises(UserError, match="judge=own") as caught:
            check_judge(config, ())
        assert "judge=llm" in str(caught.value.remedy)
    else:
        check_judge(config, ())


@pytest.mark.parametrize(
    ("asked", "refused"), [(BOTH, True), ((ADHERENCE,), True), ((CONSTRAINT,), False), ((), False)]
)
def test_a_judge_reads_the_languages_of_the_instructions_that_it_is_asked_about(
    judged: Judged, asked: tuple[str, ...], refused: bool
) -> None:
    config = judged(asked=asked, languages=frozenset({"python"}))
    check_judge(config, (task(),))
    if refused:
        with pytest.raises(UserError, match="x is in perl"):
            check_judge(config, (task(), task("x", "perl")))
    else:
        check_judge(config, (task("x", "perl"),))


def test_whoever_reads_all_languages_is_never_refused() -> None:
    _check_languages("part", None, (task("x", "perl"),))
    with pytest.raises(UserError, match="part knows only a, b"):
        _check_languages("part", frozenset("ba"), (task("x", "perl"),))


@pytest.mark.parametrize(
    ("able", "asked", "asks", "remarks"),
    [
        (BOTH, (CONSTRAINT,), True, 1), (BOTH, (CONSTRAINT,), False, 0), ((*BOTH, CONSTRAINT), (CONSTRAINT,), True, 0),
        (BOTH, BOTH, True, 0),
    ],
)  # fmt: skip
def test_constraints_that_stay_undecided_are_remarked(
    judged: Judged, able: tuple[str, ...], asked: tuple[str, ...], asks: bool, remarks: int
) -> None:
    class Constrained(Task):
        asks_judge = property(lambda self: asks)  # type: ignore[assignment]

        def undecidable(self) -> Any:
            return iter(["no compiler", "no compiler"] if self.task_id == "b" else [])

    tasks = [Constrained("a", "p"), Constrained("b", "p")]
    found = list(undecidable(judged(*able, asked=asked), tasks))
    assert found[0].startswith("1 of 2 tasks") and found[0].endswith("no compiler") and len(found) == 1 + remarks
    assert not remarks or (found[1].startswith("2 of 2") and "judge=llm" in found[1])


@pytest.mark.parametrize(
    ("words", "language", "places"),
    [
        (["model=openai", "model.name=m"], "java", ["protocol"]),
        (["model=openai", "model.name=m"], "python", []),
        (["model=echo"], "java", []),
        (["model=openai", "model.name=m", "protocol.prompts=neutral"], "java", []),
        (["model=echo", "judge=llm"], "java", ["judge"]),
        (["model=echo", "judge=llm", "judge.prompts=neutral"], "java", []),
        (["model=openai", "model.name=m", "judge=hybrid"], "java", ["protocol", "judge.llm"]),
    ],
)
def test_prompts_that_speak_of_python_are_remarked_where_it_is_not_all(
    words: list[str], language: str, places: list[str]
) -> None:
    rules = [] if any(word.startswith("judge=") for word in words) else ["judge=rules"]
    found = list(other_languages(compose([*words, *rules]).config, [task(), task("x", language)]))
    assert [each.removeprefix("warning: ").partition(".prompts")[0] for each in found] == places
    assert all(language in each for each in found)


def dataset(name: str = "data") -> Any:
    return SimpleNamespace(name=name)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["protocol=static"], ""),
        (["protocol=static", "protocol.harness=official"], ""),
        (["protocol=static", "protocol.context=single"], "set protocol.context=full"),
        (["protocol=static", "protocol.context=multi"], "set protocol.context=full"),
        (["protocol=static", "protocol.context=n_round"], "set protocol.context=full"),
        (["protocol=levels"], "set protocol.context=full"),
        (["protocol=levels", "protocol.context=full"], ""),
        (["protocol=repair"], ""),
        (["protocol=dynamic"], ""),
        (["protocol=refine"], ""),
    ],
)
def test_options_that_start_anew_at_each_turn_do_not_fit_a_coding_agent(
    words: list[str], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, kind = compose([*words, "model=echo", "judge=rules"]).config, PROTOCOLS.of
    over = replace(kind(config.protocol).traits, over=Task)
    known = replace(kind(config.protocol), traits=over)
    monkeypatch.setattr("codechat.run.cell.fitting.PROTOCOLS", SimpleNamespace(of=lambda _: known))
    check_fit(config, dataset(), (task("x"),))
    agent = replace(MODELS.of(config.model), traits=ModelTraits(has_desk=True))
    monkeypatch.setattr("codechat.run.cell.fitting.MODELS", SimpleNamespace(of=lambda _: agent))
    if not remedy:
        check_fit(config, dataset(), (task("x"),))
        return
    with pytest.raises(UserError) as caught:
        check_fit(config, dataset(), (task("x"),))
    assert caught.value.remedy == remedy and "coding agent" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "refused"),
    [(["model=echo"], ""), (["model=echo", "protocol=stepwise"], "stepwise")],
)
def test_a_protocol_works_on_tasks_of_its_kind(words: list[str], refused: str) -> None:
    config = compose([*words, "judge=rules"]).config
    if refused:
        with pytest.raises(UserError, match=refused):
            check_fit(config, dataset(), (task("x"),))
    else:
        check_fit(config, dataset(), (task("x"),))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((dataset("a\nb"), [task()], []), "dataset"),
        ((dataset(), [task("a\nb")], []), "task id"),
        ((dataset(), [task()], [instruction("a\nb")]), "id in instructions"),
        ((dataset(), [Task("t", "\ud800")], []), "a text of t"),
        ((dataset(), [task()], [instruction("i", text="\udfff")]), "a text of i"),
        ((dataset(), [task()], [instruction("i")]), ""),
    ],
)
def test_names_and_texts_can_be_shown_and_written(names: Any, told: str) -> None:
    data, tasks, instructions = names
    contents: Any = {"instructions": Pool(tuple(instructions), "hash")}
    if told:
        with pytest.raises(UserError, match=told):
            check_texts(data, tasks, contents)
    else:
        check_texts(data, tasks, contents)
        check_texts(data, tasks, {})


@pytest.mark.parametrize(
    ("key", "result", "run", "rescoring"),
    [
        ("seed", True, False, False), ("model.name", True, False, False), ("model.base_url", False, True, False),
        ("hardware.workers", False, True, True), ("shard.index", False, True, True), ("judge.lookahead", False, True, True),
        ("judge.prompts", True, False, True), ("nothing", False, False, None), ("model.nothing", False, False, False),
    ],
)  # fmt: skip
def test_each_option_is_of_one_kind(key: str, result: bool, run: bool, rescoring: bool | None) -> None:
    config = compose(["model=openai", "model.name=m", "judge=llm"]).config
    assert (config.can_change_result(key), config.is_run_option(key)) == (result, run)
    if rescoring is not None:
        assert config.can_change_in_rescoring(key) is rescoring


@pytest.mark.parametrize(
    ("group", "names", "known"),
    [
        ("judge", ["adherence"], True), ("judge", ["nothing"], False), ("judge", ["adherence", "base_url"], True),
        ("judge", ["adherence", "nothing"], False), ("judge", ["prompts", "reask"], True), ("judge", ["prompts", "nothing"], False),
        ("judge", ["votes", "more"], True),
    ],
)  # fmt: skip
def test_a_role_takes_every_key_that_any_model_has(group: str, names: list[str], known: bool) -> None:
    found = owners(group, names)
    assert ("llm" in found) is known and "rules" not in found
