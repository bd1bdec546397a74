"""The base of every component's configuration, and its part of a cell's identity."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError
from pydantic.fields import FieldInfo

from codechat.base.errors import UserError, nearest

Within = Mapping[str, tuple[str, tuple[Any, ...]]]


class Config(BaseModel):
    """Validated, frozen options. Every field is declared by one of the four functions below.

    `version` counts changes of the component's code that can change a result (the rules of a judge, a baseline): two
    versions are never one cell. `within` has the options that count only if another one, by its name, has one of some
    values: the others of a sweep's cells may be given them too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    version: ClassVar[int] = 1
    within: ClassVar["Within"] = {}

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options that can change a result, nested configs included: the input of the cell id's hash.

        `older` gives the identity of so many versions ago. Version 1 and later options with their default are left out,
        so that additions change no id; a nested config equals its default if it differs in run options alone.
        """
        chosen: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            part = part_of(field)
            other, values = self.within.get(name, (name, None))
            if part not in ("result", "original") or (values is not None and getattr(self, other) not in values):
                continue
            value = _plain(getattr(self, name), older)
            if part == "original" or name == "kind" or value != _plain(_default(field), older):
                chosen[name] = value
        version = max(1, self.version - older)
        return chosen if version == 1 else {**chosen, "version": version}

    def versions(self) -> int:
        """The highest version in this config and those within it."""
        inner = (getattr(self, name) for name in type(self).model_fields)
        return max([self.version, *(each.versions() for each in inner if isinstance(each, Config))])


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


def _plain(value: Any, older: int) -> Any:
    """A value as JSON; configs, also within mappings and lists, by their identities."""
    match value:
        case Config():
            return value.identity(older)
        case BaseModel():
            return value.model_dump(mode="json")
        case Mapping():
            return {str(key): _plain(each, older) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each, older) for each in value]
        case _:
            return value


Part = Literal["result", "original", "run", "place"]


def result_option(default: Any, description: str, **constraints: Any) -> Any:
    """An option that can change a result: part of the cell id unless it has its default (new options change no id).

    `...` as default means required. `constraints` go to pydantic's `Field`; `json_schema_extra` has further marks.
    """
    return _option("result", default, description, constraints)


def original_option(default: Any, description: str, **constraints: Any) -> Any:
    """A result option of codechat's first version, which is in the cell id even with its default."""
    return _option("original", default, description, constraints)


def run_option(default: Any, description: str, **constraints: Any) -> Any:
    """An option of speed, repetition or machine: never part of the cell id."""
    return _option("run", default, description, constraints)


def place_option(default: Any, description: str, **constraints: Any) -> Any:
    """A path or address: not part of the cell id, which has its content by other means."""
    return _option("place", default, description, constraints)


SCORING: dict[str, Any] = {"scoring": True}
"""Marks a field that affects the scoring of replies but not the replies: `rescore` may change it."""


def is_scoring(field: Any) -> bool:
    """Whether a field has the mark `SCORING`."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("scoring"))


def scoring_identity(config: Config) -> dict[str, Any]:
    """The identity of the options marked `SCORING` within a config, by place."""
    found: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if is_scoring(field):
            found[name] = _plain(value, 0)
        elif isinstance(value, Config) and (inner := scoring_identity(value)):
            found[name] = inner
    return found


def _option(part: Part, default: Any, description: str, constraints: dict[str, Any]) -> Any:
    marks = {"part": part, **constraints.pop("json_schema_extra", {})}
    return Field(default, description=description, json_schema_extra=marks, **constraints)


def part_of(field: Any) -> Part:
    """How a pydantic field was declared; raises `TypeError` if not by one of the four functions."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or extra.get("part") not in get_args(Part):
        raise TypeError(f"field {field!r} must be declared with result_option, run_option or place_option")
    part: Part = extra["part"]
    return part


def is_identity(field: Any) -> bool:
    """Whether a field can change a result."""
    return part_of(field) in ("result", "original")


def defaults_of(model: type[Config]) -> dict[str, Any]:
    """Every option with its default; `???`, OmegaConf's mark for a missing value, if it is required."""
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if field.is_required():
            nested = _config_at(field)
            values[name] = "???" if nested is None else defaults_of(nested)
        else:
            default = _default(field)
            values[name] = default.model_dump(mode="json") if isinstance(default, BaseModel) else default
    return values


def _config_at(field: FieldInfo) -> type[Config] | None:
    """The config class of a field; None if it is no config, or any of several classes."""
    kind: Any = field.annotation
    chosen = any(getattr(mark, "__class__", None) is SerializeAsAny for mark in field.metadata)
    return kind if inspect.isclass(kind) and issubclass(kind, Config) and not chosen else None


C = TypeVar("C", bound=Config)
WHERE = "where"
"""The key of the config's place in the context of validators."""


def validate(model: type[C], values: dict[str, Any], where: str) -> C:
    """Build a config, or raise a `UserError` that names the key, the problem and the nearest valid key."""
    missing = sorted(name for name, value in values.items() if value == "???")
    if missing:
        field = model.model_fields.get(missing[0])
        about = f" ({field.description})" if field and field.description else ""
        raise UserError(f"{where}.{missing[0]} is required", f"set it: {where}.{missing[0]}=VALUE{about}")
    try:
        return model.model_validate(values, context={WHERE: where})
    except ValidationError as error:
        raise _explain(error, model, where) from error


def _explain(error: ValidationError, model: type[Config], where: str) -> UserError:
    lines: list[str] = []
    remedy = ""
    for problem in error.errors()[:3]:
        path = ".".join(str(part) for part in problem["loc"])
        name = ".".join(part for part in (where, path) if part)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{name} is not an option")
            holder = _model_at(model, problem["loc"][:-1])
            remedy = nearest(str(problem["loc"][-1]), holder.model_fields if holder else ())
        elif problem["type"] == "missing":
            lines.append(f"{name} is required")
            remedy = f"set it: {name}=VALUE"
        else:
            got = f" (got {problem['input']!r:.80})" if problem["loc"] else ""  # else the whole config
            lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')}{got}")
            holder = _model_at(model, problem["loc"][:-1])
            field = holder.model_fields.get(str(problem["loc"][-1])) if holder and problem["loc"] else None
            whole = model.model_fields.get(str(problem["loc"][0])) if problem["loc"] else None
            remedy = remedy or (f"{name}: {field.description}" if field else "")
            remedy = remedy or (f"{where}.{problem['loc'][0]}: {whole.description}" if whole else "")
    return UserError("\n".join(lines), remedy)


def _model_at(model: type[Config], place: tuple[int | str, ...]) -> type[Config] | None:
    """The config class at a place within another; None if there is none."""
    for name in place:
        field = model.model_fields.get(str(name))
        kinds = (field.annotation, *get_args(field.annotation)) if field else ()
        found = next((kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Config)), None)
        if found is None:
            return None
        model = found
    return model
