"""The base of every component's configuration, and what of it makes a cell's identity."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codechat.errors import UserError, nearest


class Config(BaseModel):
    """Validated, frozen options. Every field is declared with `result_option` or `run_option`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def identity(self) -> dict[str, Any]:
        """The options that can change a result, nested configs included: what the cell id is hashed from."""
        chosen: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            if is_identity(field):
                value = getattr(self, name)
                chosen[name] = value.identity() if isinstance(value, Config) else _plain(value)
        return chosen


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def result_option(default: Any, description: str, **constraints: Any) -> Any:
    """An option that can change a result: part of the cell id. `...` as default means required."""
    return Field(default, description=description, json_schema_extra={"identity": True}, **constraints)


def run_option(default: Any, description: str, **constraints: Any) -> Any:
    """An option of where, how fast or how often: never part of the cell id."""
    return Field(default, description=description, json_schema_extra={"identity": False}, **constraints)


def is_identity(field: Any) -> bool:
    """Whether a pydantic field was declared with `result_option`; an unclassified field is a bug."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or "identity" not in extra:
        raise TypeError(f"field {field!r} must be declared with result_option or run_option")
    return bool(extra["identity"])


def defaults_of(model: type[Config]) -> dict[str, Any]:
    """Every option with its default; a required one holds OmegaConf's mark for a missing value."""
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if field.is_required():
            values[name] = "???"
        else:
            default = field.get_default(call_default_factory=True)
            values[name] = default.model_dump(mode="json") if isinstance(default, BaseModel) else default
    return values


C = TypeVar("C", bound=Config)


def validate(model: type[C], values: dict[str, Any], where: str) -> C:
    """Build a config, or raise a `UserError` that names the key, the problem and the nearest valid key."""
    missing = sorted(name for name, value in values.items() if value == "???")
    if missing:
        raise UserError(f"{where}.{missing[0]} is required", f"set it: {where}.{missing[0]}=VALUE")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explain(error, model, where) from error


def _explain(error: ValidationError, model: type[Config], where: str) -> UserError:
    lines: list[str] = []
    remedy = ""
    for problem in error.errors()[:3]:
        path = ".".join(str(part) for part in problem["loc"])
        name = f"{where}.{path}" if path else where
        if problem["type"] == "extra_forbidden":
            lines.append(f"{name} is not an option")
            remedy = nearest(str(problem["loc"][-1]), model.model_fields)
        elif problem["type"] == "missing":
            lines.append(f"{name} is required")
            remedy = f"set it: {name}=VALUE"
        else:
            lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')} (got {problem['input']!r:.80})")
            field = model.model_fields.get(str(problem["loc"][0])) if problem["loc"] else None
            remedy = remedy or (f"{where}.{problem['loc'][0]}: {field.description}" if field else "")
    return UserError("\n".join(lines), remedy)
