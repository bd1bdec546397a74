"""The judge presets as the command line composes them."""

from typing import Any

import pytest

from codechat.judging import JUDGES
from codechat.judging.llm import LlmJudgeConfig
from codechat.run.settings.compose import compose_values


def composed(*overrides: str) -> LlmJudgeConfig:
    values: Any = compose_values(overrides)[0]["judge"]
    config = JUDGES.validate(values)
    assert isinstance(config, LlmJudgeConfig)
    return config


@pytest.mark.parametrize("preset", ["llm", "paper"])
def test_the_papers_pairing(preset: str) -> None:
    config = composed(f"judge={preset}")
    assert (config.applicability.name, config.adherence.name) == ("openai/gpt-oss-20b", "openai/gpt-oss-120b")
    assert composed("judge=llm").identity() == config.identity()


def test_each_role_takes_any_model_preset() -> None:
    config = composed("judge=llm", "model@judge.applicability=gpt5", "judge.adherence.temperature=0.5")
    assert config.applicability.name == "gpt-5"
    assert config.adherence.identity()["temperature"] == 0.5


def test_every_option_of_the_judge_is_in_the_preset() -> None:
    """The YAML stands in for the stored defaults, so an option that it lacks could not be set."""
    values: Any = compose_values(["judge=llm"])[0]["judge"]
    assert set(values) == set(LlmJudgeConfig.model_fields)
