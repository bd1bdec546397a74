"""The pools of values that tasks are made for."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.errors import UserError
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.multicodeif.construct.sources import choose_pools, read_pools
from support.mistakes import mistake

POOLS = read_pools()
OWN: dict[str, Any] = {
    "name": "brace",
    "description": "Braces.",
    "range": "One style.",
    "languages": ["java"],
    "answer": "{language};{value}",
    "example": {"prompt": "Write Java with Allman braces.", "answer": "java;Allman"},
    "values": [{"values": ["Allman"]}],
}


def test_each_published_type_has_a_pool() -> None:
    published = {kind.name: kind for kind in constraint_types() if kind.category != "own"}
    assert len(published) == 27 and set(POOLS) == set(published)


@pytest.mark.parametrize("name", POOLS)
def test_every_value_is_accepted_in_every_language_that_it_fits(name: str) -> None:
    pool = POOLS[name]
    pairs = list(pool.pairs())
    assert len(pairs) == len(set(pairs)) >= 10 and {language for _, language in pairs} <= set(pool.languages)
    for value, language in pairs:
        answer = pool.answer_to(value, language, "count_all")
        assert pool.kind.read(answer).language in ("", language)
        assert pool.holds(answer, value, language)
        assert pool.kind.by in ("judge", "compiler", "classifier") or pool.kind.reads(language)


@pytest.mark.parametrize("name", POOLS)
def test_another_value_or_language_is_not_the_drawn_one(name: str) -> None:
    pool = POOLS[name]
    (value, language), *others = list(pool.pairs())
    if pool.kind.solved:
        assert pool.holds("def any_program(): pass", value, language)
        return
    for other, spoken in others:
        same = pool.kind.read(pool.answer_to(other, spoken)).language in ("", language) and (
            other == value or (pool.answer == "{value}" and value.lower() in other.lower())
        )
        assert pool.holds(pool.answer_to(other, spoken), value, language) == same, (other, spoken)


def test_case_and_spaces_of_an_answer_are_free_and_a_text_that_is_none_is_not() -> None:
    pool = POOLS["data_structure_operation"]
    assert pool.holds('Rust; Vec; ["push","pop"]', "Vec;['push', 'pop']", "rust")
    assert not pool.holds("rust;Vec;['pop', 'push']", "Vec;['push', 'pop']", "rust")
    assert POOLS["return_type"].holds("py;load;List", "List", "python")
    with pytest.raises(ValueError, match="not of the form"):
        pool.holds("rust;Vec", "Vec;['push', 'pop']", "rust")


def own(folder: Path, **fields: Any) -> str:
    (folder / "brace.yaml").write_text(yaml.safe_dump({**OWN, **fields}))
    return str(folder)


def test_a_pool_of_ones_own_comes_first(tmp_path: Path) -> None:
    pools = read_pools(own(tmp_path))
    assert list(pools["brace"].pairs()) == [("Allman", "java")] and len(pools) == 27


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"values": []}, "values"),
        ({"values": [{"values": []}]}, "values.0.values"),
        ({"languages": []}, "languages"),
        ({"languages": ["cobol"]}, "'cobol'"),
        ({"values": [{"values": ["Allman"], "languages": ["cobol"]}]}, "'cobol'"),
        ({"values": [{"values": ["Whitesmiths"]}]}, "Whitesmiths"),
        ({"name": "comment"}, "the name of the file"),
        ({"examples": []}, "examples"),
    ],
)
def test_a_wrong_pool_is_named(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_pools(own(tmp_path, **fields))
    assert "brace.yaml" in str(caught.value) and told in str(caught.value)


def test_a_folder_without_a_pool_and_a_file_of_no_type_are_named(tmp_path: Path) -> None:
    with mistake(str(tmp_path)):
        read_pools(str(tmp_path))
    (tmp_path / "colour.yaml").write_text(yaml.safe_dump({**OWN, "name": "colour"}))
    with mistake("'colour'"):
        read_pools(str(tmp_path))


def test_choosing() -> None:
    assert list(choose_pools(POOLS, ["output_type", "brace", "return_type"], ["c++"])) == ["return_type", "brace"]
    assert len(choose_pools(POOLS, None, None)) == 27
    for types, languages, told in (
        (["nameing"], None, "nameing"),
        (["type"], None, "no pool of constraints is called 'type'"),
        (None, ["cobol"], "'cobol'"),
        (["brace", "language_version"], ["c"], "fits the type language_version"),
    ):
        with pytest.raises(UserError, match=told):
            choose_pools(POOLS, types, languages)
