"""Roles: the models that a protocol or a judge needs in addition to the model under test."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationInfo, field_validator

from codechat.base.config import Config, result_option
from codechat.base.errors import UserError
from codechat.models import MODELS, ModelConfig

PRESET = "preset"
C = TypeVar("C", bound=Config)


def role(preset: str, description: str, *, default: Any = ..., marks: Mapping[str, Any] | None = None) -> Any:
    """A role's model in a config that derives from `Roles`, annotated `SerializeAsAny[ModelConfig]`.

    `preset`: the role's default option of the group `model` (`model@<place>.<role>=NAME` names another). With `default`
    None, `without_roles` may remove the role. `marks`: further marks of the option.
    """
    return result_option(default, description, json_schema_extra={PRESET: preset, **(marks or {})})


class Roles(Config):
    """A config with one field per role. The field's name is the role's name in calls, prices and records."""

    place: ClassVar[str] = "protocol.roles"
    """The config's key in a cell's config, for messages."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_model(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        extra = field.json_schema_extra
        if not isinstance(extra, dict) or PRESET not in extra:
            return value
        place = f"{cls.place}.{info.field_name}"
        config = MODELS.validate(value, place) if isinstance(value, Mapping) else value
        if isinstance(config, ModelConfig) and MODELS.of(config).traits.baseline:
            raise UserError(
                f"{place}: '{config.kind}' is a baseline and cannot judge or speak for anybody",
                f"choose model@{place}=NAME",
            )
        return config


def presets_in(config: type[Config], place: str = "") -> Iterator[tuple[str, str]]:
    """The dotted places of the roles below a config, each with its default preset."""
    for name, field in config.model_fields.items():
        here = f"{place}.{name}" if place else name
        extra, kind = field.json_schema_extra, field.annotation
        if isinstance(extra, dict) and PRESET in extra:
            yield here, str(extra[PRESET])
        elif isinstance(kind, type) and issubclass(kind, Config):
            yield from presets_in(kind, here)


def without_roles(config: C, roles: Collection[str]) -> C:
    """The config without the models and prompts of some roles, if they are optional.

    A removed model is not built, needs no key and no price, and is no part of a cell's id.
    """
    changed: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if name in roles and field.default is None:
            changed[name] = None
        elif isinstance(value, Config):
            changed[name] = without_roles(value, roles)
    return config.model_copy(update=changed)


def models_in(config: Config, place: str) -> Iterator[tuple[str, ModelConfig]]:
    """Every model in a config, with its place, such as `judge.llm.adherence`; the last part is the role."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, ModelConfig):
            yield f"{place}.{name}", value
        elif isinstance(value, Config):
            yield from models_in(value, f"{place}.{name}")


def role_of(place: str) -> str:
    """The role of a model at a place."""
    return place.rpartition(".")[2]
