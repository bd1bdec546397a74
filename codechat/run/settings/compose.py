"""From overrides to a validated cell config: the only file that composes with Hydra."""

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codechat.base.config import Config, defaults_of, is_identity
from codechat.base.environment import data_folder
from codechat.base.errors import UserError, nearest
from codechat.base.registry import Component, Registry
from codechat.models import MODELS
from codechat.models.roles import PRESET, presets_in
from codechat.run.settings.config import GROUPS, CellConfig
from codechat.run.settings.words import SAMPLES, parse_word, quoted, read_prompt, read_words

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

NAMED = ("model", "model.name", "dataset", "agenda", "agenda.turns")
"""Keys that every cell's name already shows."""
ELSEWHERE = {
    ("hardware", "slurm"): (
        "hardware=slurm: SLURM is a launcher, and hardware is the machine that a cell runs on",
        "launcher=slurm, with the hardware that one node has, e.g. hardware=h100_3",
    )
}
"""Options that belong to another group: what to say, and what to do."""
MISPLACED = re.compile(r"Could not override 'model@([^'=]+)'")
"""Hydra's words for a model at a place that has none, `model@protocol.roles.nobody=gpt5`."""


@dataclass(frozen=True)
class Root:
    """What a command line composes: a file of `conf/`, its groups, and the group whose option has further roles."""

    file: str
    groups: Mapping[str, Registry[Any, Any]]
    asking: str


CELL = Root("config", GROUPS, "protocol")


@dataclass(frozen=True)
class Composed:
    """A validated config, the chosen option of every group, and the overrides (`words`) it was composed from.

    `settings` are the overrides that are part of the cell's name; `remarks` say what of the overrides does not count.
    """

    config: CellConfig
    choices: Mapping[str, str]
    settings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def compose(overrides: Sequence[str]) -> Composed:
    """The cell that the overrides describe, written as on the command line. Raises `UserError`."""
    values, choices = compose_values(overrides)
    config = CellConfig.from_values(values)
    last = {key_of(word): word for word in overrides}  # of a key that is given twice, the last word counts
    naming = [word for key, word in last.items() if names_cell(config, word)]
    repeated = [
        f"{key} is given more than once: {last[key]} counts"
        for key in last
        if len({word for word in overrides if key_of(word) == key}) > 1
    ]
    settings = _departures(naming, overrides, values, choices)
    return Composed(config, choices, settings, tuple(overrides), tuple(repeated))


def _departures(
    naming: Sequence[str], overrides: Sequence[str], values: Mapping[str, Any], choices: Mapping[str, str]
) -> tuple[str, ...]:
    """The words that change a default: `seed=0` must name the same cell, and folder, as no word at all."""
    groups = {key_of(word) for word in naming} & set(choices)
    usual_choices = compose_values([])[1] if groups else {}
    plain = [word for word in naming if key_of(word) not in groups]
    usual_values = compose_values([word for word in overrides if key_of(word) in choices])[0] if plain else {}

    def departs(word: str) -> bool:
        key = key_of(word)
        if key in groups:
            return choices[key] != usual_choices.get(key)
        return word.startswith(("+", "~")) or _at(values, key) != _at(usual_values, key)

    return tuple(word for word in naming if departs(word))


def key_of(override: str) -> str:
    """The key that an override sets, as it is written."""
    return override.lstrip("+~").partition("=")[0]


def _at(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def names_cell(config: CellConfig, override: str) -> bool:
    """Whether an override is part of the cell's name: it can change a result, and the name does not show it yet."""
    key = key_of(override)
    if key in NAMED or not config.can_change_result(key):
        return False
    group = getattr(config, key, None) if key in GROUPS else None
    kind = type(group).model_fields.get("kind") if isinstance(group, Config) else None
    return kind is None or is_identity(kind)


def compose_values(overrides: Sequence[str], root: Root = CELL) -> tuple[dict[str, Any], dict[str, str]]:
    """The composed values before validation, and the chosen options: of a cell, or of another root.

    Raises `UserError`.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    offer_components({**GROUPS, **root.groups})
    words = read_words([_named(word, root) for word in overrides])
    try:
        config, choices = _composed(words.overrides, root)
        labels = {key: value for key, value in choices.items() if key in root.groups}
        values = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explain(error, overrides, root) from error
    assert isinstance(values, dict)
    words.place_texts(values)
    return {str(key): value for key, value in values.items()}, labels


def _named(word: str, root: Root) -> str:
    """The word; if it chooses an option by what Hydra reads as a number or a list (`judge=3`), with that as a name."""
    override = parse_word(word)
    chooses = override is not None and override.key_or_group in root.groups and not override.is_delete()
    if override is None or not chooses or override.is_sweep_override() or isinstance(override.value(), str):
        return word
    key, _, value = word.replace("'", "").partition("=")
    return f"{key}='{value}'"


def _composed(words: Sequence[str], root: Root) -> tuple["DictConfig", dict[str, str]]:
    """What Hydra makes of the words, and the option that it chose in every group. Raises what Hydra raises.

    Hydra takes a tenth of a second, nearly all of it for the choices, so these are kept; values of keys that there are
    go into a copy, as Hydra itself puts them. Whatever else a word may be, and every mistake, is Hydra's.
    """
    from omegaconf import OmegaConf

    conf = data_folder("conf")
    files = filter(Path.exists, conf.rglob("*.yaml"))  # an editor's lock can be a link to nowhere
    stamp = tuple((str(path), path.stat().st_mtime_ns) for path in sorted(files))
    changes_keys = any(word.startswith(("+", "~")) for word in words)
    valued = {} if changes_keys else {word: value for word in words if (value := _value_in(word, root))}
    chosen, choices = _choose(root.file, tuple(word for word in words if word not in valued), stamp, len(_offered))
    config = pickle.loads(chosen)
    for word in words:
        if word in valued:
            OmegaConf.update(config, valued[word].key_or_group, valued[word].value(), merge=True)
    OmegaConf.set_struct(config, False)
    return config, choices


def _value_in(word: str, root: Root) -> "Override | None":
    """The override of a word that gives one value to a key, rather than choosing an option, or several values."""
    override = parse_word(word)
    if override is None or override.is_sweep_override() or override.package:
        return None
    key = override.key_or_group
    is_group = key in GROUPS or key in root.groups or ("." not in key and (data_folder("conf") / key).is_dir())
    return None if is_group or key.partition(".")[0] == "hydra" else override


@lru_cache(maxsize=256)
def _choose(file: str, words: tuple[str, ...], stamp: object, offered: int) -> tuple[bytes, dict[str, str]]:
    """What Hydra composes, pickled so that nobody changes it, and its choices: as long as no file or kind is new."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(data_folder("conf")), version_base="1.3", job_name="codechat"):
        config = hydra_compose(file, list(words), return_hydra_config=True)
    choices = dict(config.hydra.runtime.choices)
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    OmegaConf.set_struct(config, True)
    return pickle.dumps(config), choices


def _explain(error: Exception, overrides: Sequence[str], root: Root) -> UserError:
    """A Hydra error in the user's terms: the mistake, and the nearest valid name."""
    from hydra.errors import MissingConfigException

    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, option = error.missing_cfg_file.rpartition("/")
        options = error.options or []
        if (group, option) in ELSEWHERE:
            raise UserError(*ELSEWHERE[group, option])
        what = f"no {group} is called '{option}'" if group else f"there is no group or key '{option}'"
        return UserError(what, f"{nearest(option, options)} (`codechat list {group}` describes them)")
    key = getattr(error.__cause__, "full_key", None) or getattr(error, "full_key", None)
    if key and "not in struct" in str(error.__cause__ or error):
        return _unknownkey_of(str(key), overrides, root)
    if "@judge." in str(error):
        return UserError(
            str(error).splitlines()[0],
            "choose judge=llm for model@judge.ROLE, or judge=hybrid for model@judge.llm.ROLE: others ask no model",
        )
    if misplaced := MISPLACED.match(str(error)):
        return _no_role(misplaced[1], overrides, root)
    if str(error).startswith("Ambiguous value"):
        word = next((each for each in overrides if f"'{each}'" in str(error)), "key=value")
        quote = f"or quote the value, for the shell and within: {quoted(*word.split('=', 1))}"
        return UserError(str(error).splitlines()[0], f"put -m in front to sweep over the values, {quote}")
    return UserError(str(error).strip().splitlines()[0], str(error.__cause__ or "").partition("\n")[0])


def _no_role(place: str, overrides: Sequence[str], root: Root) -> UserError:
    """Say which roles there are in the protocol, or recipe, that the overrides choose."""
    asking = root.asking
    values, choices = compose_values([word for word in overrides if key_of(word) == asking], root)
    roles = [f"{asking}.roles.{role}" for role in sorted(_at(values, f"{asking}.roles") or {})]
    asked = "model=NAME alone" if root is CELL else "no model"
    remedy = nearest(place, roles) if roles else f"leave it out: {asking}={choices[asking]} asks {asked}"
    return UserError(f"there is no role {place}", remedy)


def _unknownkey_of(key: str, overrides: Sequence[str], root: Root) -> UserError:
    """Suggest the options that have an unknown key, or the nearest keys of the chosen ones."""
    if key == "sweep":
        return UserError("there is no option sweep", "a recipe is run by -m +sweep=NAME")
    node, choices = compose_values([word for word in overrides if word.partition("=")[0] in root.groups], root)
    group, _, rest = key.partition(".")
    *parents, last = key.split(".")
    for index, name in enumerate(parents):
        if not isinstance(node, dict) or name not in node:
            key, last = ".".join(parents[: index + 1]), name
            break
        node = node[name]
    known = {**(node if isinstance(node, dict) else {}), **({} if len(parents) else {SAMPLES: None})}
    place = key.rpartition(".")[0]
    deeper = [f"{place}.{each}" for each in _keys_below(known) if each.endswith(f".{last}")]
    if deeper:
        return UserError(f"there is no option {key}", f"set {' or '.join(deeper[:4])}")
    able = owners(group, rest.split("."), root) if group in root.groups and rest else []
    if able:
        having = ", ".join(f"{group}={name}" for name in able)
        return UserError(
            f"{group}={choices[group]} has no option {key}",
            f"{having} {'has' if len(able) == 1 else 'have'} it; {nearest(last, known)} (options of {place})",
        )
    return UserError(f"there is no option {key}", nearest(last, known) + (f" (options of {place})" if place else ""))


def _keys_below(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, Mapping):
            yield from _keys_below(value, f"{prefix}{name}.")


_offered: set[Component[Any, Any]] = set()


def offer_components(groups: Mapping[str, Registry[Any, Any]] = GROUPS) -> None:
    """Make every registered kind an option of its group, with its defaults, unless a YAML has that name.

    A role has its preset model unless `model@<group>.<role>=NAME` names another.
    """
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    store = ConfigStore.instance()
    for group, registry in groups.items():
        for component in registry:
            if component in _offered:
                continue
            _offered.add(component)
            if not (data_folder("conf") / group / f"{component.name}.yaml").exists():
                node = {**defaults_of(component.config), component.key: component.name}
                roles = [{f"/model@{place}": preset} for place, preset in presets_in(component.config)]
                if roles:
                    node["defaults"] = ["_self_", *roles]
                store.store(group=group, name=component.name, node=node, provider="codechat")
    OmegaConf.register_new_resolver("prompt", read_prompt, replace=True, use_cache=True)


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


def owners(group: str, names: Sequence[str], root: Root = CELL) -> list[str]:
    """The kinds of a group that have a key, by name."""
    return [component.name for component in root.groups[group] if has_key(component.config, names)]
