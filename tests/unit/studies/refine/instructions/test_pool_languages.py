"""For which languages the rows of a pool hold, and what of that a cell's id sees."""

from pathlib import Path

from codechat.studies.refine.instructions import Pool
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from support.mistakes import mistake

ROWS = """text,scope,rule,languages
Remove all comments.,cosmetic,"{""pattern"": ""comment""}",
Use a decorator.,structural,"{""pattern"": ""decorated"", ""own"": true}",python
Avoid recursion.,semantic,"{""pattern"": ""recursion""}",python JS
Use a switch.,structural,"{""pattern"": ""match""}","javascript, java"
"""


def pool_of(folder: Path, text: str) -> Pool:
    path = folder / "pool.csv"
    path.write_text(text, encoding="utf-8")
    return read_pool(path, {})


def texts(pool: Pool, language: str) -> list[str]:
    return [one.text.split()[-1] for one in pool.of(language)]


def test_rows_hold_for_all_languages_or_for_those_that_they_name(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, ROWS)
    assert texts(pool, "python") == ["comments.", "decorator.", "recursion."]
    assert texts(pool, "js") == ["comments.", "recursion.", "switch."]
    assert texts(pool, "java") == ["comments.", "switch."] and texts(pool, "go") == ["comments."]
    assert {one.language for one in pool.of("js")} == {"javascript"}


def test_a_rule_that_a_language_cannot_state_is_none_there(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, ROWS.replace(",python\n", ",\n"))
    ruled = {language: [one.rule is not None for one in pool.of(language)] for language in ("python", "java")}
    assert ruled == {"python": [True] * 3, "java": [True, False, True]}


def test_an_id_sees_what_holds_for_the_languages_of_its_tasks_alone(tmp_path: Path) -> None:
    pool = pool_of(tmp_path, ROWS)
    fewer = pool_of(tmp_path, "\n".join(ROWS.splitlines()[:-1]) + "\n")
    assert pool.content_hash == fewer.content_hash == pool.among(["python"]).content_hash
    assert pool.among(["javascript"]).content_hash != fewer.among(["javascript"]).content_hash
    both = pool.among(["javascript", "python"])
    assert len({both.content_hash, pool.content_hash, pool.among(["js"]).content_hash}) == 3
    assert len(both.instructions) == 4 and both.of("python") == pool.of("python")
    unmarked = pool_of(tmp_path, "text,scope\nRemove all comments.,cosmetic\n")
    assert unmarked.among(["java", "python"]).content_hash == unmarked.content_hash, "as before there were marks"


def test_a_rule_that_no_language_of_its_row_knows_is_a_mistake(tmp_path: Path) -> None:
    row = 'Use a switch.,structural,"{""pattern"": ""decorated""}",java'
    with mistake("pool.csv:2: ", "'decorated'"):
        pool_of(tmp_path, f"text,scope,rule,languages\n{row}\n")


def test_the_embedded_pool_is_python_s_as_it_was() -> None:
    pool = read_pool(EMBEDDED, {})
    assert len(pool.instructions) == 233 and pool.of("python") == pool.instructions
    assert pool.content_hash == "14cd9c041cdbe93f485d8653a4e4dde10deaffccc42837fb41f9d5aa7ca7e104"
    assert len(pool.of("javascript")) == 140 and len(pool.of("java")) == 132
