"""What sets cells apart whose further models differ: by name, and by no option that only one kind of model has."""

from typing import Any

import pytest

from codechat.cli.commands.report import options_of
from codechat.report.loading import Named, differences, settings_text
from codechat.run.settings.compose import compose_values

ROLES = "model@protocol.roles"


def config(*words: str) -> dict[str, Any]:
    values, choices = compose_values(["model=echo", *words])
    return {**values, "choices": choices}


def labels(*cells: tuple[str, ...]) -> list[str]:
    named = [Named(f"m{number}", "d", config(*words)) for number, words in enumerate(cells)]
    return [", ".join(words.values()) for words in differences(named, options_of)]


ASSIST = ("protocol=assist", "dataset=cab", "dataset.path=x")


def test_roles_of_different_kinds_are_told_by_name() -> None:
    assert labels(
        (*ASSIST, f"{ROLES}.user=gpt5", f"{ROLES}.judge=gpt5"),
        (*ASSIST, f"{ROLES}.user=anthropic", "protocol.roles.user.name=claude-x", f"{ROLES}.judge=gpt5"),
        (*ASSIST, f"{ROLES}.user=gpt5_mini", f"{ROLES}.judge=maintainer"),
    ) == [
        "roles.user.name=gpt-5, roles.judge.name=gpt-5", "roles.user.name=claude-x, roles.judge.name=gpt-5",
        "roles.user.name=gpt-5-mini, roles.judge.name=maintainer",
    ]  # fmt: skip


def test_one_name_of_two_kinds_is_told_by_the_kind() -> None:
    found = labels(
        (*ASSIST, f"{ROLES}.user=gpt5", "protocol.roles.user.name=x"),
        (*ASSIST, f"{ROLES}.user=anthropic", "protocol.roles.user.name=x"),
    )
    assert found == ["roles.user.kind=openai", "roles.user.kind=provider"]


def test_options_of_one_model_are_told_and_where_it_runs_is_not() -> None:
    found = labels(
        (*ASSIST, f"{ROLES}.user=gpt5", "protocol.roles.user.temperature=1"),
        (*ASSIST, f"{ROLES}.user=gpt5", "protocol.roles.user.base_url=http://127.0.0.1:1/v1"),
    )
    assert found == ["roles.user.temperature=1", "roles.user.temperature=null"]


@pytest.mark.parametrize(("judge", "place"), [("llm", "judge"), ("hybrid", "judge.llm")])
def test_the_judges_models_alike(judge: str, place: str) -> None:
    role, of = f"{place}.adherence", ("protocol=refine", f"judge={judge}")
    one, other = labels((*of, f"model@{role}=gpt5"), (*of, f"model@{role}=anthropic", f"{role}.name=claude-x"))
    assert one.endswith("name=gpt-5") and other.endswith("name=claude-x") and max(len(one), len(other)) < 60


def test_cells_whose_roles_ran_elsewhere_have_one_setup() -> None:
    moved = config(*ASSIST, f"{ROLES}.user=gpt5", "protocol.roles.user.base_url=http://127.0.0.1:1/v1")
    stayed = config(*ASSIST, f"{ROLES}.user=gpt5")
    assert settings_text(moved, options_of) == settings_text(stayed, options_of)
