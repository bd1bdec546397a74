"""A user's own pool: three formats, a column map, and every mistake named with file and line."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.run.settings.compose import compose
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool, WrongPool
from codechat.studies.refine.instructions.pool import PoolConfig, load
from support.mistakes import mistake

ROWS = [
    {"Nr": "a1", "Prompt": "Remove all comments, please.", "Depth": "Cosmetic", "Kind": "remove"},
    {"Nr": "a2", "Prompt": "Use a list\n  comprehension.", "Depth": " structural ", "Kind": ""},
    {"Nr": "a3", "Prompt": "Optimize the loop.", "Depth": "SEMANTIC", "Kind": "Modify"},
]
COLUMNS = {"id": "Nr", "text": "Prompt", "scope": "Depth", "change": "Kind"}


def _csv(path: Path) -> Path:
    lines = [",".join(ROWS[0])] + [",".join(json.dumps(value) for value in row.values()) for row in ROWS]
    path.write_text("\ufeff" + "\r\n".join(lines).replace("\\n", "\n"), encoding="utf-8")
    return path


def _jsonl(path: Path) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n", encoding="utf-8")
    return path


def _yaml(path: Path) -> Path:
    path.write_text("# mine\n" + "".join(f"- {json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize(("write", "name"), [(_csv, "p.csv"), (_jsonl, "p.jsonl"), (_yaml, "p.yaml"), (_yaml, "P.YML")])
def test_three_formats_and_a_column_map(tmp_path: Path, write: Callable[[Path], Path], name: str) -> None:
    pool = load(PoolConfig(path=str(write(tmp_path / name)), columns=COLUMNS))
    assert [(one.id, one.scope, one.change, one.rule) for one in pool.instructions] == [
        ("a1", "cosmetic", "remove", None),
        ("a2", "structural", "add", None),
        ("a3", "semantic", "modify", None),
    ]
    assert pool.instructions[1].text == "Use a list comprehension."


def test_formats_of_one_content_have_one_hash(tmp_path: Path) -> None:
    pools = [
        load(PoolConfig(path=str(write(tmp_path / name)), columns=COLUMNS))
        for write, name in ((_csv, "p.csv"), (_jsonl, "p.jsonl"), (_yaml, "p.yaml"))
    ]
    assert len({pool.content_hash for pool in pools}) == 1


def _load(tmp_path: Path, text: str, name: str = "pool.jsonl", **options: Any) -> Pool:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    config = INSTRUCTIONS.validate({"kind": "default", "path": str(path), **options})
    return INSTRUCTIONS.build(config)


def test_id_is_made_from_scope_and_text(tmp_path: Path) -> None:
    pool = _load(tmp_path, '{"text": "Use a set, not a list!", "scope": "semantic"}')
    assert pool.instructions[0].id == "semantic-use-a-set-not-a-list"


def test_rejected_rows_are_kept_aside(tmp_path: Path) -> None:
    rows = "text,scope,rejected\nUse a set.,semantic,\nUse magic.,semantic,ambiguous\n"
    pool = _load(tmp_path, rows, "pool.csv")
    assert [one.text for one in pool.instructions] == ["Use a set."]
    assert [(one.text, one.reason) for one in pool.rejected] == [("Use magic.", "ambiguous")]


@pytest.mark.parametrize(
    ("yes", "no"), [("yes", "no"), ("TRUE", "False"), ("1", "0"), ("accepted", "Rejected"), ("x", "")]
)
def test_marks_of_acceptance_are_read(tmp_path: Path, yes: str, no: str) -> None:
    rows = f"text,scope,kept\nUse a set.,Semantic,{yes}\nRename the function.,Cosmetic,{no}\n"
    (tmp_path / "paper.csv").write_text(rows)
    words = [f"instructions.path={tmp_path}/paper.csv", "instructions.columns.accepted=kept"]
    pool = load(PoolConfig(**compose(["instructions=paper", "judge=llm", *words]).config.instructions.model_dump()))
    assert [one.text for one in pool.instructions] == ["Use a set."]
    assert [(one.text, one.reason) for one in pool.rejected] == [("Rename the function.", "marked as not accepted")]


def test_another_mark_is_a_mistake(tmp_path: Path) -> None:
    with mistake("2: 'accepted'", "'perhaps'", "yes or no"):
        _load(tmp_path, "text,scope,accepted\nUse a set.,semantic,perhaps\n", "pool.csv")


def test_the_papers_pool_needs_its_file() -> None:
    with pytest.raises(UserError, match=r"instructions\.path is required"):
        compose(["instructions=paper"])


def test_rules_come_along_also_as_json_in_a_cell(tmp_path: Path) -> None:
    rule = {"pattern": "comment", "quantifier": "fewer"}
    cell = json.dumps(rule).replace('"', '""')
    for text, name in (
        (f'text,scope,rule\nRemove comments.,cosmetic,"{cell}"\nUse a set.,semantic,\n', "pool.csv"),
        (f"- {{text: Remove comments., scope: cosmetic, rule: {json.dumps(rule)}}}\n", "pool.yaml"),
    ):
        assert _load(tmp_path, text, name).instructions[0].rule == rule


LINES = "".join(f'{{"text": "Use thing {number}.", "scope": "semantic"}}\n' for number in range(16))
MISTAKES = {
    "malformed line 17": ("pool.jsonl", LINES + '{"text": \n', {}, r"pool\.jsonl:17: not JSON"),
    "a rule that makes no sense": (
        "pool.jsonl",
        LINES + '{"id": "mine", "text": "Remove it.", "scope": "cosmetic", "rule": {"pattern": "coment"}}\n',
        {},
        r"pool\.jsonl:17: the rule of instruction 'mine': no pattern is called 'coment'\n.*'comment'",
    ),
    "a list in line 17": ("pool.jsonl", LINES + "[1]\n", {}, r"pool\.jsonl:17: not an instruction"),
    "unmapped verb": (
        "pool.jsonl",
        '{"text": "Beautify it.", "scope": "cosmetic"}',
        {},
        r"pool\.jsonl:1: the leading verb 'beautify' of 'Beautify it\.'(.|\n)*instructions\.verbs\.beautify",
    ),
    "unknown column": ("pool.csv", "Text,scope\nUse it.,semantic\n", {}, r"pool\.csv:2: no column 'text'\n.*'Text'"),
    "unknown mapped column": (
        "pool.csv",
        "text,scope\nUse it.,semantic\n",
        {"columns": {"change": "Op"}},
        r"pool\.csv:2: no column 'Op'",
    ),
    "bad scope": (
        "pool.csv",
        "text,scope\nUse it.,structual\n",
        {},
        r"pool\.csv:2: 'structual' is no scope\n.*'structural'",
    ),
    "duplicate id": (
        "pool.csv",
        "id,text,scope\na,Use it.,semantic\n\na,Use that.,semantic\n",
        {},
        r"pool\.csv:4: the id 'a' is taken by line 2",
    ),
    "duplicate text": ("pool.csv", "text,scope\nUse it.,semantic\nUse it.,semantic\n", {}, r"pool\.csv:3: the id"),
    "unknown change": (
        "pool.csv",
        "text,scope,change\nUse it.,semantic,delete\n",
        {},
        r"pool\.csv:2: 'delete' is no change\nchoose from: add, modify, remove",
    ),
    "no text": ("pool.csv", 'text,scope\n" ",semantic\n', {}, r"pool\.csv:2: the instruction has no text"),
    "too few cells": ("pool.csv", "text,scope\nUse it.\n", {}, r"pool\.csv:2: 1 cells where the header has 2"),
    "open quote": ("pool.csv", 'text,scope\nUse it.,semantic\n"Use', {}, r"pool\.csv:3: not CSV"),
    "line after a cell of two lines": (
        "pool.csv",
        'text,scope\n"Use\nit.",semantic\nUse that.,x\n',
        {},
        r"pool\.csv:4: 'x' is no scope",
    ),
    "not YAML": ("pool.yaml", "- {text: Use it., scope: semantic}\n- {text: ]\n", {}, r"pool\.yaml:2: not YAML"),
    "bad YAML entry": ("pool.yaml", "- {text: Use it., scope: semantic}\n\n- {text: Use}\n", {}, r"pool\.yaml:3: no"),
    "YAML with a tag": ("pool.yaml", "- !!python/object:os.system {}\n", {}, r"pool\.yaml:1: not YAML"),
    "YAML mapping": ("pool.yaml", "text: Use it.\n", {}, r"pool\.yaml:1: not a list"),
    "empty": ("pool.yaml", "", {}, r"pool\.yaml: the pool is empty"),
    "header alone": ("pool.csv", "text,scope\n", {}, r"pool\.csv: the pool is empty"),
    "all rejected": ("pool.csv", "text,scope,rejected\nUse it.,semantic,no\n", {}, "every instruction is rejected"),
    "suffix": ("pool.txt", "Use it.", {}, r"cannot be read from '\.txt'\n.*\.csv"),
    "bad rule": ("pool.csv", "text,scope,rule\nUse it.,semantic,x\n", {}, r"pool\.csv:2: the rule is not JSON"),
    "rule without pattern": (
        "pool.yaml",
        "- {text: Use it., scope: semantic, rule: {a: 1}}\n",
        {},
        r"pool\.yaml:1: a rule is a mapping that names a pattern",
    ),
    "rule that is no data": (
        "pool.yaml",
        "- {text: Use it., scope: semantic, rule: {pattern: comment, since: 2020-01-01}}\n",
        {},
        r"pool\.yaml:1: a rule is plain data",
    ),
    "unknown field in the map": ("pool.csv", "text,scope\n", {"columns": {"texts": "Prompt"}}, "texts"),
    "bad change in verbs": ("pool.csv", "text,scope\n", {"verbs": {"tidy": "alter"}}, "'add', 'remove' or 'modify'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_file_line_and_remedy(tmp_path: Path, mistake: str) -> None:
    name, text, options, message = MISTAKES[mistake]
    with pytest.raises(UserError, match=message) as raised:
        _load(tmp_path, text, name, **options)
    assert raised.value.remedy
    assert len(str(raised.value).splitlines()) <= 5


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with mistake("gone.csv"):
        load(PoolConfig(path=str(tmp_path / "gone.csv")))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserError, match="cannot read the pool"):
        load(PoolConfig(path=str(tmp_path / "folder.csv")))


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_bytes(b"text,scope\n\xff\xfe,semantic\n")
    with pytest.raises(UserError, match="not UTF-8"):
        load(PoolConfig(path=str(tmp_path / "pool.csv")))


def test_a_given_change_wins_over_the_leading_verb_with_a_warning(tmp_path: Path) -> None:
    rows = "text,scope,change\nUse it.,semantic,remove\nBeautify it.,cosmetic,modify\nAdd it.,cosmetic,ADD\n"
    pool = _load(tmp_path, rows, "pool.csv")
    assert [one.change for one in pool.instructions] == ["remove", "modify", "add"]
    (warning,) = pool.warnings
    assert warning.startswith(f"{tmp_path / 'pool.csv'}:2: 'Use it.'") and "'remove'" in warning and "'add'" in warning


def test_a_column_that_is_not_read_and_almost_is_one_is_told(tmp_path: Path) -> None:
    pool = _load(tmp_path, 'text,scope,Rule,author\nUse it.,semantic,"{""pattern"": ""for""}",me\n', "pool.csv")
    assert pool.instructions[0].rule is None
    path = tmp_path / "pool.csv"
    (warning,) = pool.warnings
    assert warning.startswith(f"{path}: ") and "'Rule'" in warning and "instructions.columns.rule=Rule" in warning


WRONG = """text,scope,change
Use it.,structual,
Beautify it.,cosmetic,modify
Use that.,semantic,delete
,semantic,
Use x,semantic
Do it.,semantic,
"""


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(WrongPool) as raised:
        _load(tmp_path, WRONG, "pool.csv")
    named = [
        (f"{tmp_path / 'pool.csv'}: ", "5 of 6 rows"),
        ("2: 'structual' ", "'structural'"),
        ("4: 'delete' ", "add, modify, remove"),
        ("5: ", "no text"),
        ("`codechat list instructions` ", "lines 6, 7"),
    ]
    for line, (start, part) in zip(str(raised.value).splitlines(), named, strict=True):
        assert line.startswith(start) and part in line
    assert len(raised.value.mistakes) == 5
    assert [one.text for one in raised.value.understood.instructions] == ["Beautify it."]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("pool.jsonl", '{"text": 1\n[2]\n{"text": "Use it.", "scope": "x"}\n', [1, 2, 3]),
        ("pool.yaml", "- !!python/none x\n- 3\n- {text: Use it.}\n- {text: 7, scope: cosmetic}\n", [1, 2, 3, 4]),
        ("pool.csv", 'text,scope\nUse it.,x\nUse that.\n"Use', [2, 3, 4]),
    ],
)
def test_mistakes_of_every_sort_are_collected(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    with pytest.raises(WrongPool) as raised:
        _load(tmp_path, text, name)
    assert [int(line.split(":")[0]) for line in str(raised.value).splitlines()[1:]] == lines


def test_the_listing_shows_what_was_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pool.csv").write_text(WRONG)
    words = ["list", "instructions", "instructions.path=pool.csv"]
    assert main(words) == 2
    printed = capsys.readouterr().out
    assert re.search(r"1 +cosmetic +modify +LLM +Beautify it\. +cosmetic-beautify-it", printed)
    assert all(figure in printed for figure in ("1 accepted", "rules: 0;", "LLM: 1)", "mistakes: 5;"))
    (told,) = [line for line in printed.splitlines() if "pool.csv:7: " in line]
    assert all(named in told for named in ("'do'", "'Do it.'", "'change'"))
    Path("pool.csv").write_text(
        "text,scope,change,rejected\nUse it.,semantic,remove,\nUse magic.,semantic,,ambiguous\n"
    )
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "rejected by curation: 1" in printed and "ambiguous" in printed
    assert "warnings: 1\npool.csv:2: 'Use it.' " in printed
    assert main(["list", "model", "model.name=x"]) == 2
    assert "only for instructions" in capsys.readouterr().err


def test_a_run_tells_the_first_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pool.csv"
    rule = '"{""pattern"": ""function""}"'
    rows = [f"Replace {scope}.,{scope},add,{rule}" for scope in ("cosmetic", "structural", "semantic")]
    path.write_text("text,scope,change,rule\n" + "\n".join(rows) + "\n")
    words = [f"instructions.path={path}", "model=echo", "dataset.limit=1", "agenda.turns=2", "tracking=none"]
    assert main([*words, f"runs_dir={tmp_path}", "sandbox.allow_weak=true"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert line.startswith(f"warning: {path}:2: 'Replace cosmetic.' ") and "'add'" in line
    assert "'modify'" in line and "2 more: " in line and "instructions.path=" in line
