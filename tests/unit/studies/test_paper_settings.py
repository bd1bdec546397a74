"""The settings of the papers: those that docs/paper.md names exist, and presets and recipes have the papers' values."""

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
from codechat.studies.sreval.chapter.tables import paper as sreval_paper
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


def section(name: str) -> str:
    """The page's part on one study."""
    return re.split(r"^## ", PAGE.partition(f"\n## {name}\n")[2], flags=re.MULTILINE)[0]


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


def test_the_pool_has_the_size_and_the_shares_of_the_row() -> None:
    pool, told = load(PoolConfig()), row("The pool")
    count = len(pool.instructions)
    shares = Counter(one.scope for one in pool.instructions) + Counter(one.change for one in pool.instructions)
    assert f"{count} instructions" in told and f"{len(pool.rejected)} more" in told
    for kind, number in shares.items():
        assert re.search(rf"\b{100 * number / count:.1f} % {kind}\b", told), kind


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
        protocol = PROTOCOLS.build(
            config.protocol, Parts(config.judge, {"agenda": config.part("agenda"), "pool": load(PoolConfig())})
        )
        found = protocol.metrics([errored], seed=0, effort=Effort())
        assert (found["sessions"], found["completed"], found["errored"]) == (1, 0, 1), name


def test_the_published_judge_of_constraints_is_one_model_and_the_papers_another() -> None:
    released, paper = (
        compose([*SETUPS["MultiCodeIF"][:-1], "judge=multicodeif", *more]).config.judge.model_dump()
        for more in ([], ["model@judge.constraint=gpt4_turbo"])
    )
    assert (released["constraint"]["name"], released["reference"]) == ("gpt-4o", True)
    assert paper["constraint"]["name"].startswith("gpt-4-turbo")


def test_commands_have_no_network_and_a_minute_unless_asked() -> None:
    plain = compose(SETUPS["CodeAssistBench"]).config.environment.model_dump()
    assert (plain["command_s"], plain["network"]) == (60, None)
    asked = compose([*SETUPS["CodeAssistBench"], "environment.command_s=300", "environment.network=bridge"])
    assert asked.config.environment.model_dump()["network"] == "bridge"


def test_the_verbs_are_59_with_the_19_that_are_printed() -> None:
    assert len(VERBS) == 59 and len(PRINTED.split()) == 19 and VERBS.keys() >= set(PRINTED.split())
    assert "59: the 19 and 40" in row("Verbs")


def test_a_reply_without_the_required_name_is_no_code() -> None:
    target = dataset_tasks("starter")[0].target
    assert isinstance(target, Target)
    assert extract("```python\ndef another():\n    return 1\n```", target).code is None
    assert extract("I would rather not.", target).code is None


def test_the_published_counts_give_the_papers_phi() -> None:
    found = phi(16668, 3955, 13497, 4898)
    assert found.value == pytest.approx(0.0888, abs=5e-5)
    assert 16668 + 3955 + 13497 + 4898 == 39018 == 542 * 8 * 9 - 6, "all follow-up turns but the six that were skipped"
