"""The protocol's own columns of an export: the fields that its turns have besides those of every turn."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codechat.records import INSIDE, SessionRecord, TurnRecord

Kind = Literal["string", "int64", "float64", "bool"]
KINDS: Mapping[type, Kind] = {str: "string", int: "int64", float: "float64", bool: "bool"}
MOST_PARTS = 12  # of a field, beyond which its parts get no columns


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One column: its name, type, source and meaning. Any value may be missing."""

    name: str
    kind: Kind
    value: Callable[[SessionRecord, TurnRecord], Any]
    meaning: str


def own_columns(sessions: Iterable[SessionRecord], taken: set[str]) -> list[ExportColumn]:
    """Columns for the fields that only some protocols have, sorted; names that are `taken` begin with `own_`.

    A number, a truth value or a text gets a column; a mapping of these gets one for each, such as `requirement_id` for
    the `id` of `requirement`; anything else becomes JSON text.
    """
    kinds: dict[str, set[type]] = {}
    parts: dict[str, dict[str, set[type]]] = {}
    for session in sessions:
        for turn in session.turns:
            for name, value in (turn.model_extra or {}).items():
                if name == INSIDE:  # not of the protocol's own
                    continue
                if isinstance(value, Mapping):
                    for key, part in value.items():
                        parts.setdefault(name, {}).setdefault(str(key), set()).add(type(part))
                kinds.setdefault(name, set()).add(dict if isinstance(value, Mapping) else type(value))
    columns: list[ExportColumn] = []
    for name, found in sorted(kinds.items()):
        inner = parts.get(name, {})
        flat = found <= {dict, type(None)} and 0 < len(inner) <= MOST_PARTS
        if flat and not {kind for part in inner.values() for kind in part} & {dict, list}:
            columns += [_column((name, key), part, taken) for key, part in inner.items()]
        else:
            columns.append(_column((name,), found, taken))
    return columns


def judgement_columns(sessions: Iterable[SessionRecord]) -> list[ExportColumn]:
    """Columns for the parts of a session's judgement, such as `judgement_verdict`; every turn of it has the same."""
    kinds: dict[str, set[type]] = {}
    for session in sessions:
        if isinstance(session.judgement, Mapping):
            for name, value in session.judgement.items():
                kinds.setdefault(str(name), set()).add(type(value))
    return [_judgement_column(name, found) for name, found in kinds.items()]


def _judgement_column(name: str, found: set[type]) -> ExportColumn:
    types = found - {type(None)}
    kind = KINDS.get(next(iter(types), str)) if len(types) < 2 else None

    def value(session: SessionRecord, _: TurnRecord) -> Any:
        part = (session.judgement or {}).get(name)
        return part if kind is not None or part is None else json.dumps(part, ensure_ascii=False)

    meaning = f"of the whole session: {name}" + ("" if kind is not None else ", as JSON")
    return ExportColumn(f"judgement_{name}", kind or "string", value, meaning)


def _column(place: tuple[str, ...], found: set[type], taken: set[str]) -> ExportColumn:
    """The column of a field, or of a part of a field, with values of these types."""
    name = "_".join(place)
    types = found - {type(None)}
    plain = float if types == {int, float} else next(iter(types), str) if len(types) < 2 else None
    kind = KINDS.get(plain) if plain is not None else None

    def value(_: SessionRecord, turn: TurnRecord) -> Any:
        field: Any = turn.model_extra
        for part in place:
            field = field.get(part) if field else None
        return field if kind is not None or field is None else json.dumps(field, ensure_ascii=False)

    meaning = f"the protocol's own: {'.'.join(place)}" + ("" if kind is not None else ", as JSON")
    return ExportColumn(f"own_{name}" if name in taken else name, kind or "string", value, meaning)
