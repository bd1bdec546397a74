"""The pool: the embedded one, or a user's own file with a column map."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from codechat.config import Config, original_option, place_option, run_option
from codechat.domain import SCOPES, Change, Instruction, Scope
from codechat.errors import UserError, nearest
from codechat.files import content_hash
from codechat.instructions import INSTRUCTIONS, Pool, Rejected
from codechat.instructions.rows import Row, column, read_rows
from codechat.instructions.taxonomy import VERBS, change_of
from codechat.patterns import rule_of

EMBEDDED = Path(__file__).with_name("pool.yaml")
Field = Literal["id", "text", "scope", "change", "rule", "rejected"]


class PoolConfig(Config):
    """Options of the pool."""

    kind: Literal["default"] = original_option("default", "the embedded pool, or the one that path names")
    path: str | None = place_option(None, "a pool of your own as CSV, JSONL or YAML; its content is in the cell id")
    columns: dict[Field, str] = run_option(
        {name: name for name in get_args(Field)}, "your columns' names, e.g. instructions.columns.text=Prompt"
    )
    verbs: dict[str, Change] = original_option({}, "changes of further leading verbs, or other ones: {tidy: modify}")


@INSTRUCTIONS.register("default", PoolConfig)
def load(config: PoolConfig) -> Pool:
    """The embedded pool of refinement instructions, or your own from instructions.path.

    Raises `UserError` naming file and line for any mistake in a file.
    """
    path = Path(config.path) if config.path is not None else EMBEDDED
    return read_pool(path, config.columns, {**VERBS, **{verb.lower(): change for verb, change in config.verbs.items()}})


def read_pool(path: Path, columns: Mapping[Field, str], verbs: Mapping[str, Change] = VERBS) -> Pool:
    """Read and check a file of instructions.

    `text` and `scope` are required. Without a column `id` it is made from scope and text; `change` must agree with the
    leading verb; a row with a text under `rejected` is kept apart with that reason.
    """
    accepted: list[Instruction] = []
    rejected: list[Rejected] = []
    lines: dict[str, int] = {}
    for row in read_rows(path):
        fields = _fields(row, columns, path)
        text, scope = _text(fields, row, path), _scope(fields, row, path)
        name = str(fields["id"]).strip() if fields.get("id") else f"{scope}-{_slug(text)}"
        if name in lines:
            raise UserError(
                f"{path}:{row.line}: the id '{name}' is taken by line {lines[name]}", "give each instruction its own id"
            )
        lines[name] = row.line
        if fields.get("rejected"):
            rejected.append(Rejected(name, text, scope, str(fields["rejected"])))
        else:
            change = _change(fields, text, verbs, f"{path}:{row.line}")
            accepted.append(_check_rule(Instruction(name, text, scope, change, _rule(fields, row, path)), row, path))
    if not accepted:
        raise UserError(f"{path}: every instruction is rejected", "leave 'rejected' empty for those to be used")
    return Pool(tuple(accepted), content_hash([_plain(one) for one in accepted]), tuple(rejected))


def _plain(one: Instruction) -> list[Any]:
    return [one.id, one.text, one.scope, one.change, one.rule]


def _fields(row: Row, columns: Mapping[Field, str], path: Path) -> dict[str, Any]:
    """The row by codechat's names: mapped columns, `text` and `scope` are required."""
    fields: dict[str, Any] = {}
    for name in get_args(Field):
        source = columns.get(name, name)
        if source != name:
            # YAML and JSON entries may lack fields that a table would leave empty
            optional = name not in ("text", "scope") and path.suffix.lower() != ".csv"
            fields[name] = row.fields.get(source) if optional else column(row, name, source, path)
        elif name in ("text", "scope"):
            fields[name] = column(row, name, name, path)
        else:
            fields[name] = row.fields.get(name)
    return fields


def _text(fields: dict[str, Any], row: Row, path: Path) -> str:
    text = fields["text"]
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"{path}:{row.line}: the instruction has no text", "write one imperative sentence")
    return " ".join(text.split())


def _scope(fields: dict[str, Any], row: Row, path: Path) -> Scope:
    given = str(fields["scope"]).strip().lower()
    for scope in SCOPES:
        if given == scope:
            return scope
    raise UserError(f"{path}:{row.line}: '{fields['scope']}' is no scope", nearest(given, SCOPES))


def _change(fields: dict[str, Any], text: str, verbs: Mapping[str, Change], place: str) -> Change:
    try:
        change = change_of(text, verbs)
    except UserError as error:
        raise UserError(f"{place}: {error.message}", error.remedy) from error
    given = str(fields.get("change") or "").strip().lower()
    if given and given != change:
        raise UserError(
            f"{place}: the change is given as '{given}', but the leading verb of '{text:.60}' means '{change}'",
            "reword the instruction, or map its verb in instructions.verbs",
        )
    return change


def _rule(fields: dict[str, Any], row: Row, path: Path) -> dict[str, Any] | None:
    rule = fields.get("rule")
    if isinstance(rule, str) and rule.strip():
        try:
            rule = json.loads(rule)
        except ValueError as error:
            raise UserError(
                f"{path}:{row.line}: the rule is not JSON: {error}", 'e.g. {"pattern": "comment"}'
            ) from error
    if rule in (None, ""):
        return None
    if not isinstance(rule, dict) or "pattern" not in rule:
        raise UserError(f"{path}:{row.line}: a rule is a mapping that names a pattern", 'e.g. {"pattern": "comment"}')
    try:
        return dict(json.loads(json.dumps(rule)))
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}:{row.line}: a rule is plain data: {error}", "put the value in quotes") from error


def _check_rule(instruction: Instruction, row: Row, path: Path) -> Instruction:
    """The instruction, if its rule is valid: a mistake is reported now, not in the first session that draws it."""
    try:
        rule_of(instruction)
    except UserError as error:
        raise UserError(f"{path}:{row.line}: {error.message}", error.remedy) from error
    return instruction


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-")
