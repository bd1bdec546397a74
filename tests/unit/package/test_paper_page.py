"""docs/paper.md says what the code does: each row that can be tested has its test here, or names what holds it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from codechat.cli.sweep import expand, read_recipe
from codechat.engine.settings.compose import compose
from codechat.environment import data_folder
from codechat.instructions.pool import VERBS, PoolConfig, load
from codechat.languages import extract
from codechat.metrics.statistics import phi
from codechat.models.openai import OpenAIConfig, OpenAIWire
from codechat.models.remote.failures import Dialect
from codechat.tasks import Target
from codechat.testing import dataset_tasks

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PROMPTS = data_folder("conf") / "prompts"
PRINTED = """
    add use include implement ensure define annotate avoid remove eliminate prohibit prevent minimise
    replace optimise refactor merge split convert
"""


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


def test_presets_for_vllm_switch_a_repositorys_penalty_off_and_keep_their_ids() -> None:
    served = [path.stem for path in (data_folder("conf") / "model").glob("*.yaml") if "neutral:" in path.read_text()]
    assert len(served) >= 5
    for name in served:
        preset, without = (compose([f"model={name}", *more]).config for more in ([], ["model.neutral={}"]))
        body = OpenAIWire(OpenAIConfig.model_validate(preset.model.model_dump())).body((), Dialect())
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
    assert "codechat -m +sweep=paper model=gpt5" in PAGE


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
