"""The shipped model presets: each is a valid config with a description, and the paper's eight are among them."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import defaults_of
from codechat.base.files import from_yaml
from codechat.models import MODELS
from codechat.models.openai import OpenAIConfig
from codechat.run.settings.compose import compose

FOLDER = Path(__file__).parents[3] / "conf" / "model"
PAPER = {
    *("llama31_8b", "llama33_70b", "qwen25_coder_7b", "qwen25_coder_14b", "qwen25_coder_32b"),
    *("deepseek_v3", "gpt5_nano", "gpt5", "gpt_oss_20b", "gpt_oss_120b"),
}


def preset(name: str) -> OpenAIConfig:
    values: dict[str, Any] = from_yaml((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    parent, own = values.pop("defaults")
    assert own == "_self_"
    config = MODELS.validate({**defaults_of(MODELS[parent].config), **values})
    assert isinstance(config, OpenAIConfig)
    return config


def composed(name: str) -> OpenAIConfig:
    config = compose([f"model={name}"]).config.model
    assert isinstance(config, OpenAIConfig)
    return config


def test_the_papers_models_and_judges_are_there() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} >= PAPER


@pytest.mark.parametrize("name", sorted(PAPER))
def test_a_preset_decodes_greedily_unless_the_model_refuses(name: str) -> None:
    config = preset(name)
    assert config.temperature == (None if name.startswith("gpt5") else 0.0)


@pytest.mark.parametrize("name", sorted(PAPER))
def test_only_hosted_models_need_a_key(name: str) -> None:
    config = preset(name)
    assert (config.api_key_env is None) == config.base_url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("name", "model", "effort", "thinking"),
    [
        ("gpt_oss_20b_low", "openai/gpt-oss-20b", "low", {}),
        ("gpt_oss_20b_medium", "openai/gpt-oss-20b", "medium", {}),
        ("gpt_oss_120b_low", "openai/gpt-oss-120b", "low", {}),
        ("gpt_oss_120b_medium", "openai/gpt-oss-120b", "medium", {}),
        ("deepseek_v31", "deepseek-ai/DeepSeek-V3.1", None, {"thinking": False}),
        ("deepseek_v31_thinking", "deepseek-ai/DeepSeek-V3.1", None, {"thinking": True}),
        ("qwen3_30b", "Qwen/Qwen3-30B-A3B", None, {"enable_thinking": False}),
        ("qwen3_30b_thinking", "Qwen/Qwen3-30B-A3B", None, {"enable_thinking": True}),
    ],
)
def test_levels_of_reasoning_are_presets_of_one_server(
    name: str, model: str, effort: str | None, thinking: dict[str, bool]
) -> None:
    config = composed(name)
    assert (config.name, config.reasoning_effort, config.temperature) == (model, effort, 0)
    assert config.extra_body == ({"chat_template_kwargs": thinking} if thinking else {})
    other = name.removesuffix("_thinking").removesuffix("_low").removesuffix("_medium")
    assert config.base_url == composed(other).base_url


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_preset_starts_with_its_description(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert len(first) > 20
