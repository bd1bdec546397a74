"""The embedded pool and the taxonomy behind it."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import codechat.studies.refine.patterns
from codechat.base.domain import CHANGES, SCOPES
from codechat.base.errors import UserError
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool
from codechat.studies.refine.instructions.pool import (
    EMBEDDED,
    VERBS,
    PoolConfig,
    change_of,
    leading_verb,
    load,
    read_pool,
)
from codechat.studies.refine.patterns import patterns, rule_of

TABLE_II = {
    "add": "add use include implement ensure define annotate",
    "remove": "avoid remove eliminate prohibit prevent minimise",
    "modify": "replace optimise refactor merge split convert",
}


@pytest.fixture(scope="module")
def pool() -> Pool:
    return read_pool(EMBEDDED, {})


def test_the_verb_map_holds_59_verbs_and_those_the_paper_prints() -> None:
    assert len(VERBS) == 59
    for change, verbs in TABLE_II.items():
        assert {VERBS[verb] for verb in verbs.split()} == {change}


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("Minimize the number of loops.", "remove"),
        ("Optimize it.", "modify"),
        ("MEMOIZE the function.", "add"),
        ("  “Use” recursion", "add"),
        ("Convert\tfor loops", "modify"),
    ],
)
def test_change_follows_the_leading_verb_in_either_spelling(text: str, change: str) -> None:
    assert change_of(text) == change


@pytest.mark.parametrize("text", ["Please add comments.", "Don't use loops.", "Comments!", "", "42"])
def test_unmapped_verb_is_told_with_how_to_map_it(text: str) -> None:
    with pytest.raises(UserError, match=r"instructions\.verbs"):
        change_of(text)


def test_other_words_in_ise_are_not_respelled() -> None:
    assert change_of("Resize it", {"resize": "modify"}) == "modify"
    assert change_of("Tidy it", {**VERBS, "tidy": "modify"}) == "modify"


def test_every_label_is_what_the_map_says(pool: Pool) -> None:
    for instruction in pool.instructions:
        assert instruction.change == VERBS[leading_verb(instruction.text)], instruction.text
        assert instruction.id.startswith(f"{instruction.scope}-")


def test_ids_and_texts_are_unique_and_one_sentence(pool: Pool) -> None:
    texts = [one.text for one in pool.instructions] + [one.text for one in pool.rejected]
    ids = [one.id for one in pool.instructions] + [one.id for one in pool.rejected]
    assert len(set(texts)) == len(texts)
    assert len(set(ids)) == len(ids)
    for text in texts:
        assert text[0].isupper()
        assert text.endswith(".")
        assert "\n" not in text


def test_distribution(pool: Pool) -> None:
    total = len(pool.instructions)
    scopes = Counter(one.scope for one in pool.instructions)
    changes = Counter(one.change for one in pool.instructions)
    assert total >= 160
    assert {one.kind for one in pool.instructions} == {f"{s}/{c}" for s in SCOPES for c in CHANGES}
    assert min(scopes.values()) >= 45
    assert 0.35 <= scopes["cosmetic"] / total <= 0.45
    assert 0.45 <= changes["add"] / total <= 0.55
    assert 0.2 <= changes["remove"] / total <= 0.3
    assert 0.2 <= changes["modify"] / total <= 0.3


def test_every_embedded_instruction_has_a_rule_that_makes_sense(pool: Pool) -> None:
    used, quantifiers = set(), set()
    for instruction in pool.instructions:
        rule = rule_of(instruction)
        assert rule is not None, instruction.id
        used.update(clause.pattern.name for clause in (rule.subject, rule.where, rule.into) if clause)
        quantifiers.add((instruction.change, rule.quantifier))
    assert len(quantifiers) == 7, "a quantifier that no instruction uses is dead code"
    files = Path(codechat.studies.refine.patterns.__path__[0]).rglob("*.py")
    source = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    texts = Counter(each.value for tree in source for each in ast.walk(tree) if isinstance(each, ast.Constant))
    named = {name for name in patterns() if texts[name] > 1}  # once where it is defined
    assert used <= set(patterns()) <= used | named, "a pattern that neither an instruction nor a rule uses is dead code"


def test_no_two_instructions_ask_the_same_of_the_same_place(pool: Pool) -> None:
    rules = [(one.change, str(one.rule)) for one in pool.instructions]
    assert [rule for rule, count in Counter(rules).items() if count > 1] == []


def test_rejected_ones_name_a_reason(pool: Pool) -> None:
    assert len(pool.rejected) >= 11
    reasons = {one.reason.partition(":")[0] for one in pool.rejected}
    assert reasons == {"interface", "behaviour", "ambiguous", "not observable"}


def test_default_component_is_the_embedded_pool(pool: Pool) -> None:
    config = INSTRUCTIONS.validate({"kind": "default"})
    assert INSTRUCTIONS.build(config) == pool
    assert pool.content_hash == read_pool(EMBEDDED, {}).content_hash


def test_path_and_columns_are_no_identity_but_verbs_are() -> None:
    config = PoolConfig(path="x.csv", columns={"text": "Prompt"}, verbs={"tidy": "modify"})
    assert config.identity() == {"kind": "default", "verbs": {"tidy": "modify"}}


def test_remapped_verb_changes_label_and_hash(pool: Pool) -> None:
    other = load(PoolConfig(verbs={"Strip": "modify"}))
    labels = {one.id: one.change for one in other.instructions}
    assert labels["cosmetic-strip-trailing-spaces"] == "modify"
    assert other.content_hash != pool.content_hash


def test_a_copy_of_the_pool_of_earlier_rules_is_another_pool(tmp_path: Path) -> None:
    text = '- {id: one, scope: cosmetic, text: "Add a note.", rule: {pattern: comment}}\n'
    (tmp_path / "pool.yaml").write_text(text)
    own = read_pool(tmp_path / "pool.yaml", {}).content_hash
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codechat.studies.refine.instructions._HASHES", {"the hash of today": own})
        assert read_pool(tmp_path / "pool.yaml", {}).content_hash != own
