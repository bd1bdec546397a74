"""Which options of a group have a key: for hints, and for sweeps over options that do not share their keys."""

from collections.abc import Sequence

from codechat.config import Config
from codechat.engine.config import GROUPS
from codechat.models import MODELS
from codechat.models.roles import PRESET


def has_key(config: type[Config], names: Sequence[str]) -> bool:
    """Whether a config has the key of these names, such as `adherence`, `base_url`.

    A role takes every key that any model has; what lies in a mapping is its user's affair.
    """
    field = config.model_fields.get(names[0])
    if field is None or len(names) == 1:
        return field is not None
    extra, kind = field.json_schema_extra, field.annotation
    if isinstance(extra, dict) and PRESET in extra:
        return any(has_key(component.config, names[1:]) for component in MODELS)
    return has_key(kind, names[1:]) if isinstance(kind, type) and issubclass(kind, Config) else True


def owners(group: str, names: Sequence[str]) -> list[str]:
    """The kinds of a group that have a key, by name."""
    return [component.name for component in GROUPS[group] if has_key(component.config, names)]
