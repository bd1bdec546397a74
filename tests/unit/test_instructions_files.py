"""A user's own pool: three formats, a column map, and every mistake named with file and line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.errors import UserError
from codechat.instructions import INSTRUCTIONS, Pool
from codechat.instructions.pool import PoolConfig, load

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
    "malformed line 17": ("pool.jsonl", LINES + '{"text": \n' + LINES, {}, r"pool\.jsonl:17: not JSON"),
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
    "contradiction": (
        "pool.csv",
        "text,scope,change\nUse it.,semantic,remove\n",
        {},
        r"pool\.csv:2: the change is given as 'remove', but .* means 'add'",
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
    with pytest.raises(UserError, match=r"cannot read the pool .*gone\.csv: No such file"):
        load(PoolConfig(path=str(tmp_path / "gone.csv")))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserError, match="cannot read the pool"):
        load(PoolConfig(path=str(tmp_path / "folder.csv")))


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_bytes(b"text,scope\n\xff\xfe,semantic\n")
    with pytest.raises(UserError, match="not UTF-8"):
        load(PoolConfig(path=str(tmp_path / "pool.csv")))
