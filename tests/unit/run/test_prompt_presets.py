"""Presets of prompts: all prompts of a protocol or judge by one name, as a factor of a study."""

import pytest

from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.cli.commands.listing import options_of
from codechat.run.settings.compose import compose, presets_of

PROMPTS = data_folder("conf") / "prompts"
KINDS = sorted({"llm", *options_of("protocol")} & {folder.name for folder in PROMPTS.iterdir()})


def prompts_of(*words: str) -> dict[str, str]:
    config = compose(words).config.model_dump()
    owner = config["judge"] if any(word.startswith("judge=") for word in words) else config["protocol"]
    asked = (owner.get("llm") or owner)["prompts"]
    return {name: text for name, text in asked.items() if text is not None}


def test_plain_is_the_problem_then_the_instruction_alone() -> None:
    plain = prompts_of("protocol.prompts=plain")
    assert plain["followup"].strip() == "{{instruction}}"
    assert plain["initial"].split() == ["{{prompt}}", "{{signature}}"]


def test_the_papers_layout_is_a_system_prompt_then_bare_instructions() -> None:
    paper = prompts_of("protocol.prompts=paper")
    assert (paper["initial"].strip(), paper["followup"].strip()) == ("{{prompt}}", "{{instruction}}")
    for said in ("Python", "signature", "docstring", "code", "alone", "without any explanation", "without tests"):
        assert said in paper["system"], said
    assert "{{" not in paper["system"] and not prompts_of("protocol.prompts=plain")["system"]


def test_a_cell_without_a_system_prompt_has_the_id_that_it_had() -> None:
    for preset, there in (("plain", False), ("careful", False), ("paper", True)):
        identity = compose([f"protocol.prompts={preset}"]).config.identity()
        assert ("system" in identity["protocol"]["prompts"]) is there


def test_the_default_by_its_name_is_the_same_cell() -> None:
    default, named, plain = (
        compose(words).config for words in ((), ("protocol.prompts=careful",), ("protocol.prompts=plain",))
    )
    assert default == named != plain


def test_a_single_prompt_replaces_the_one_of_the_preset() -> None:
    mixed = prompts_of("protocol.prompts.followup=Now: {{instruction}}", "protocol.prompts=plain")
    assert mixed["followup"] == "Now: {{instruction}}" and mixed["initial"].startswith("{{prompt}}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_preset_composes_and_differs_from_the_others(kind: str) -> None:
    group = "judge" if kind == "llm" else "protocol"
    found = {name: prompts_of(f"{group}={kind}", f"{group}.prompts={name}") for name in presets_of(kind)}
    assert len({str(sorted(texts.items())) for texts in found.values()}) == len(found)
    assert prompts_of(f"{group}={kind}") in found.values(), "the default is one of them"


def test_judges_are_asked_without_examples_or_without_reasoning() -> None:
    asked = {name: prompts_of("judge=llm", f"judge.prompts={name}") for name in presets_of("llm")}
    has_examples = {name: "Four examples" in texts["adherence"] for name, texts in asked.items()}
    reasons = {name: {key: "step by step" in text for key, text in texts.items()} for name, texts in asked.items()}
    assert has_examples == {"few_shot": True, "neutral": False, "no_reasoning": True, "zero_shot": False}
    assert reasons["no_reasoning"] == {"applicability": False, "adherence": False, "reask": False}
    assert (
        reasons["few_shot"]["adherence"] and reasons["zero_shot"]["adherence"] and reasons["zero_shot"]["applicability"]
    )
    assert "REASON" not in asked["no_reasoning"]["adherence"] + asked["no_reasoning"]["applicability"]
    assert prompts_of("judge=hybrid", "judge.llm.prompts=zero_shot") == asked["zero_shot"]
    kept = {name: prompts_of("protocol=repair", "judge=llm", f"judge.prompts={name}")["constraint"] for name in asked}
    shown = {name: "Three examples" in text for name, text in kept.items()}
    assert shown == {**has_examples, "neutral": True}, "its question about constraints is the default's"
    assert not any("Python" in asked["neutral"][key] for key in ("applicability", "adherence"))
    assert "step by step" in kept["few_shot"] and "REASON" not in kept["no_reasoning"]
    assert asked["zero_shot"]["applicability"] == asked["few_shot"]["applicability"], "the paper gives it no examples"


def test_every_message_of_the_chain_of_thought_condition_asks_for_it() -> None:
    for protocol in ("static", "dynamic"):
        direct, thinking = (
            prompts_of(f"protocol={protocol}", f"protocol.prompts={name}") for name in ("direct", "chain_of_thought")
        )
        assert {key: f"{text}\nLet's think step by step.\n" for key, text in direct.items()} == thinking


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["protocol.prompts=plian"], "protocol.prompts has no preset 'plian'\ndid you mean 'plain'?"),
        (["protocol=static", "protocol.prompts=plain"], "choose from: chain_of_thought, direct"),
        (["protocol.prompts=../refine/plain"], "has no preset '../refine/plain'"),
        (["judge.prompts=zero_shot"], "there is no option judge.prompts\n"),
    ],
)
def test_mistakes(words: list[str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        compose(words)
    assert told in str(caught.value)
