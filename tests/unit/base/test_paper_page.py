"""docs/paper.md says what the code does: each row that can be tested has its test here, or names what holds it."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.base.environment import data_folder
from codechat.base.records import SessionRecord
from codechat.cli.sweep import expand, read_recipe
from codechat.datasets.tasks import Target
from codechat.models.openai import OpenAIApi, OpenAIConfig
from codechat.models.remote.failures import SupportedParameters
from codechat.report.metrics import Effort
from codechat.report.metrics.statistics import phi
from codechat.run.protocols import PROTOCOLS, Parts
from codechat.run.settings.compose import compose
from codechat.sandbox.languages import extract
from codechat.studies.refine.instructions.pool import VERBS, PoolConfig, load
from codechat.studies.sreval.chapter.published import paper as sreval_paper
from codechat.testing import dataset_tasks

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PROMPTS = data_folder("conf") / "prompts"
PRINTED = """
    add use include implement ensure define annotate avoid remove eliminate prohibit prevent minimise
    replace optimise refactor merge split convert
"""


SETUPS = {
    "CodeChat-Eval": ["model=qwen25_coder_7b", "judge=llm"],
    "CodeIF-Bench": ["protocol=static", "dataset=codeif_bench", "dataset.path=x"],
    "SR-Eval": ["protocol=stepwise", "dataset=sreval_python", "dataset.path=x"],
    "MultiCodeIF": ["protocol=repair", "dataset=multicodeif", "dataset.path=x", "judge=llm"],
    "CodeAssistBench": ["protocol=assist", "dataset=cab", "dataset.path=x", "environment=docker"],
}
"""By the page's section the words under which the settings that it names exist."""
HELD = {
    "CodeChat-Eval": """
        test_the_pool_has_the_size_and_the_shares_of_the_row
        test_the_papers_eight_models_are_presets_and_gpt_5_takes_no_temperature
        test_the_papers_layout_is_a_system_prompt_then_bare_instructions
        test_the_papers_recipes_have_its_limits_and_prompts
        test_the_default_judge_is_the_rules_and_the_papers_judges_are_two_models
        test_judges_are_asked_without_examples_or_without_reasoning
        test_presets_for_vllm_switch_a_repositorys_penalty_off_and_keep_their_ids
        test_a_reply_without_the_required_name_is_no_code
        test_a_followup_without_code_is_violated_and_the_session_goes_on
        test_sessions_whose_first_reply_held_no_code_are_counted
        test_published_solutions_get_evalpluss_verdict
        test_a_skipped_turn_counts_for_pass_at_1_and_mst_alone
        test_the_verbs_are_59_with_the_19_that_are_printed
        test_agendas_of_one_seed_are_alike_while_replies_differ
        test_a_judge_who_cannot_be_read_is_asked_again_and_then_undecided
    """,
    "CodeIF-Bench": """
        test_published_versions
        test_every_message_of_the_chain_of_thought_condition_asks_for_it
        test_columns_of_conversation_accuracy_cannot_be_confused
        test_an_extension_in_mid_dialogue_counts_at_its_own_turn_alone
        test_instruction_accuracy_of_pairs_and_their_mean
        test_efficiency_and_forgetting_of_pairs
        test_the_official_harness_is_run_beside_the_guarded_tests
    """,
    "SR-Eval": """
        test_the_published_tasks_are_of_fewer_repositories_than_table_1_counts
        test_every_model_of_sr_eval_is_a_preset
        test_layouts
        test_the_papers_tokens_tell_where_the_code_above_stands
        test_reasoning_stays_in_the_history_of_the_published_harness_alone
        test_the_scripts_extraction
        test_a_call_that_fails_is_in_no_figure_of_any_study
        test_what_is_not_there_is_said_in_both_places
    """,
    "MultiCodeIF": """
        test_a_replay_of_levels_has_the_published_verdicts
        test_the_published_judge_compares_with_a_published_solution
        test_the_published_judge_of_constraints_is_one_model_and_the_papers_another
        test_the_papers_feedback_tells_the_solution
        test_every_preset_composes_and_differs_from_the_others
        test_a_call_that_fails_is_in_no_figure_of_any_study
        test_the_classifier_itself
        test_a_version_is_decided_by_a_compiler_under_each_harness
    """,
    "CodeAssistBench": """
        test_the_papers_sample_counted_by_hand
        test_the_cab_recipe_has_the_papers_models
        test_a_dialogue_of_deltas
        test_forty_issues_half_with_a_dockerfile_in_one_cell
        test_steps_before_an_answer
        test_commands_have_no_network_and_a_minute_unless_asked
        test_a_good_reply_is_read_and_no_malformed_one
        test_the_verdict_that_the_parts_imply
        test_turns_of_published_threads_by_both_definitions
    """,
}
"""By section the test that holds each row, in the rows' order."""


def section(name: str) -> str:
    """The page's part on one study."""
    return re.split(r"^## ", PAGE.partition(f"\n## {name}\n")[2], flags=re.MULTILINE)[0]


def test_every_row_is_held_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name, held in HELD.items():
        rows = re.findall(r"^\| (\d+)\. ", section(name), flags=re.MULTILINE)
        assert [int(number) for number in rows] == [*range(1, len(held.split()) + 1)], name
        for test in held.split():
            assert f"def {test}(" in tests, f"{name}: {test} is gone"


@pytest.mark.parametrize("name", SETUPS)
def test_every_setting_that_the_page_names_is_one(name: str) -> None:
    named = [word for quoted in re.findall(r"`([^`\n]+)`", section(name)) for word in quoted.split()]
    for word in {word for word in named if word.startswith("+sweep=")}:
        assert read_recipe(word.removeprefix("+sweep=")).grids
    audit = {"applicability=100", "adherence=100"}
    given = {word for word in named if re.fullmatch(r"[a-z][\w.@]*=\w+", word)} - audit
    for word in sorted(given):
        assert compose([*SETUPS[name], word]).config, word
    files = {"metrics.json", "generation_config.json"}
    keys = {word.removesuffix(".*") for word in named if re.fullmatch(r"[a-z]+(\.[a-z_]+)+(\.\*)?", word)} - files
    config = compose(SETUPS[name]).config.model_dump()
    for key in sorted(keys):
        found: Any = config
        for part in key.split("."):
            assert part in found, key
            found = found[part]
    assert given or keys


def row(title: str) -> str:
    """The line of the page's table for a difference."""
    (line,) = [line for line in PAGE.splitlines() if re.match(rf"\| \d+\. {re.escape(title)} \|", line)]
    return line


def test_the_readme_opens_with_it() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert "](docs/paper.md)" in first


def test_the_pool_has_the_size_and_the_shares_of_the_row() -> None:
    pool, told = load(PoolConfig()), row("The pool")
    count = len(pool.instructions)
    shares = Counter(one.scope for one in pool.instructions) + Counter(one.change for one in pool.instructions)
    assert f"{count} instructions of its own" in told and f"{len(pool.rejected)} more are kept as rejected" in told
    for kind, number in shares.items():
        assert re.search(rf"\b{100 * number / count:.1f} % {kind}\b", told), kind
    assert "158 instructions" in told and 169 - 11 == 158 and round(100 * 11 / 169, 2) == 6.51


def test_plain_prompts_are_the_instruction_alone_and_careful_ones_repeat_what_stays() -> None:
    careful = (PROMPTS / "refine" / "careful" / "followup.md").read_text()
    assert (PROMPTS / "refine" / "plain" / "followup.md").read_text().strip() == "{{instruction}}"
    assert all(word in careful for word in ("name", "parameters", "behaviour", "format"))
    assert compose([]).config == compose(["protocol.prompts=careful"]).config, "the default"


@pytest.mark.long
def test_presets_for_vllm_switch_a_repositorys_penalty_off_and_keep_their_ids() -> None:
    served = [path.stem for path in (data_folder("conf") / "model").glob("*.yaml") if "neutral:" in path.read_text()]
    assert len(served) >= 5
    for name in served:
        preset, without = (compose([f"model={name}", *more]).config for more in ([], ["model.neutral={}"]))
        body = OpenAIApi(OpenAIConfig.model_validate(preset.model.model_dump())).body((), SupportedParameters())
        assert body["repetition_penalty"] == 1 and body["temperature"] == 0
        assert preset.identity() == without.identity()


def test_the_default_judge_is_the_rules_and_the_papers_judges_are_two_models() -> None:
    assert compose([]).config.judge.kind == "rules"
    judge = compose(["judge=paper"]).config.judge.model_dump()
    assert [judge[role]["name"] for role in ("applicability", "adherence")] == [
        "openai/gpt-oss-20b",
        "openai/gpt-oss-120b",
    ]
    assert judge["max_reasks"] == 2, "two more questions before undecided"


def test_one_command_is_the_papers_setup() -> None:
    (grid,) = read_recipe("paper").grids
    words = [f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in grid.items()]
    cells = [compose(["model=gpt5", *chosen]).config for chosen in expand(words)]
    assert [cell.dataset.kind for cell in cells] == ["humaneval", "mbpp"]
    for cell in cells:
        assert cell.agenda.turns == 10 and cell.agenda.sampling == "quota" and cell.judge.kind == "llm"
        assert cell.protocol.model_dump()["prompts"]["followup"].strip() == "{{instruction}}"
        judge = cell.judge.model_dump()
        assert judge["applicability"]["max_tokens"] == judge["adherence"]["max_tokens"] == 8192
    assert "codechat -m +sweep=paper model=gpt5" in PAGE


def test_the_papers_eight_models_are_presets_and_gpt_5_takes_no_temperature() -> None:
    grids = read_recipe("rq1").grids
    models = [
        name for grid in grids for name in (grid["model"] if isinstance(grid["model"], list) else [grid["model"]])
    ]
    assert len(set(models)) == 8
    for name in models:
        assert compose([f"model={name}"]).config.model.model_dump()["temperature"] == (None if "gpt5" in name else 0)


def test_every_model_of_sr_eval_is_a_preset() -> None:
    marks = sreval_paper().marks
    assert len(marks) == 11 and {mark["preset"] for mark in marks.values()} == {
        *read_recipe("sreval_rq1").grids[0]["model"]
    }


def test_a_call_that_fails_is_in_no_figure_of_any_study() -> None:
    """What an errored session is counted as, by every protocol with a paper: nothing."""
    for name in ("refine", "static", "dynamic", "stepwise", "repair", "levels", "assist"):
        errored = SessionRecord(
            cell_id="c", session_id="s", task_id="t", dataset="d", model="m", protocol=name, agenda=[], seed=0,
            status="errored", error="the endpoint is away", turns=[],
        )  # fmt: skip
        config = compose([f"protocol={name}"]).config
        protocol = PROTOCOLS.build(config.protocol, Parts(config.agenda, load(PoolConfig()), config.judge))
        found = protocol.metrics([errored], seed=0, effort=Effort())
        assert (found["sessions"], found["completed"], found["errored"]) == (1, 0, 1), name


def test_what_is_not_there_is_said_in_both_places() -> None:
    said = (ROOT / "docs" / "sreval.md").read_text(encoding="utf-8")
    assert "Tables 7 and 8" in said and "Tables 7 and 8" in row("Making the benchmark")
    assert "are not collected" in said and "are not collected" in row("Making the benchmark")


def test_the_published_judge_of_constraints_is_one_model_and_the_papers_another() -> None:
    released, paper = (
        compose([*SETUPS["MultiCodeIF"][:-1], "judge=multicodeif", *more]).config.judge.model_dump()
        for more in ([], ["model@judge.constraint=gpt4_turbo"])
    )
    assert (released["constraint"]["name"], released["reference"]) == ("gpt-4o", True)
    assert paper["constraint"]["name"].startswith("gpt-4-turbo")
    assert "`gpt-4o`" in row("The judge") and "GPT-4-Turbo" in row("The judge")


def test_commands_have_no_network_and_a_minute_unless_asked() -> None:
    plain = compose(SETUPS["CodeAssistBench"]).config.environment.model_dump()
    assert (plain["command_s"], plain["network"]) == (60, None) and "60 s each" in row("Where commands run")
    asked = compose([*SETUPS["CodeAssistBench"], "environment.command_s=300", "environment.network=bridge"])
    assert asked.config.environment.model_dump()["network"] == "bridge"


def test_agreement_with_published_verdicts_is_said_alike_everywhere() -> None:
    published = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
    for agree, of in (("1,411", "1,412"), ("3,510", "3,510"), ("9,226", "9,229")):
        assert agree in PAGE and re.search(rf"\| {of} \| {agree} ", published), of
    told = (ROOT / "docs" / "multicodeif.md").read_text(encoding="utf-8")
    assert all(share in PAGE and share in told for share in ("60.4", "72.3", "13.0"[:2]))
    assert all(number in row("Turns of the real thread") for number in ("2.10", "1.68", "2.22"))
    assert "197 of the recent file" in row("Issues") and "41 of 306" in row("Validation by a container")


def test_the_verbs_are_59_with_the_19_that_are_printed() -> None:
    assert len(VERBS) == 59 and len(PRINTED.split()) == 19 and VERBS.keys() >= set(PRINTED.split())
    assert "59: the 19 and 40" in row("Verbs")


def test_a_reply_without_the_required_name_is_no_code() -> None:
    target = dataset_tasks("starter")[0].target
    assert isinstance(target, Target) and "no_code" in row("Extraction")
    assert extract("```python\ndef another():\n    return 1\n```", target).code is None
    assert extract("I would rather not.", target).code is None


def test_the_published_counts_give_the_papers_phi() -> None:
    found = phi(16668, 3955, 13497, 4898)
    assert found.value == pytest.approx(0.0888, abs=5e-5)
    assert 16668 + 3955 + 13497 + 4898 == 39018 == 542 * 8 * 9 - 6, "all follow-up turns but the six that were skipped"
