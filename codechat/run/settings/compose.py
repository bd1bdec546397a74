"""From the words of a command line to a validated cell config: the only file that composes with Hydra.

Texts need no quotes of Hydra's grammar. A prompt may be in a file, and all prompts of a protocol or judge may be a
preset: a folder `conf/prompts/KIND/NAME` with a file for each prompt that it has. Presets are codechat's own, and those
in `conf/` of the working folder.
"""

import pickle
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codechat.base.config import Config, defaults_of, is_identity
from codechat.base.environment import conf_folders, data_folder
from codechat.base.errors import UserError, nearest
from codechat.base.registry import Component, Registry
from codechat.models import MODELS
from codechat.models.roles import PRESET, presets_in
from codechat.run.settings.config import GROUPS, CellConfig

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

FILE = "@"
"""Begins the value of a prompt that is in a file: `protocol.prompts.initial=@my.md`."""
SAMPLES = "samples"
"""The one option of a run that no cell has: how many seeds are run."""
PROMPTS = "prompts"
"""The option that holds prompts; `protocol.prompts=plain` names a preset for all of them."""


@dataclass
class Words:
    """Overrides for Hydra; and texts, and presets of prompts, by their keys in the composed values."""

    overrides: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    presets: dict[str, str] = field(default_factory=dict)

    def place_texts(self, values: MutableMapping[Any, Any]) -> None:
        """Set presets, then texts, whose keys Hydra has checked. Raises `UserError` for an unknown preset."""
        for key, name in self.presets.items():
            place_preset(key, name, values)
        for key, text in self.texts.items():
            *parents, last = key.split(".")
            node: Any = values
            for name in parents:
                node = node[name]
            node[last] = text


def read_words(words: Sequence[str]) -> Words:
    """Make every word readable for Hydra. Raises `UserError` that names the option and shows how to quote its value.

    The text of a prompt, or its file, is taken literally unless Hydra reads it as a text; so is any other value that
    Hydra cannot read, unless it begins like a list, a mapping or a quoted text. A mapping replaces the old value (Hydra
    would merge the two). A name for all prompts, as in `protocol.prompts=plain`, is a preset.
    """
    ready = Words()
    for word in words:
        override = parse_word(word)
        preset = override.value() if override and override.key_or_group.rpartition(".")[2] == PROMPTS else None
        if override and isinstance(preset, str):
            ready.presets[override.key_or_group] = preset
            continue
        text = _text_of(word, override)
        key = word.partition("=")[0]
        if text is not None:
            ready.texts[key.lstrip("+")] = text
            ready.overrides.append(f"{key}=''")
            continue
        if override is None:
            raise _unreadable(word)
        if isinstance(override.value(), dict) and not word.startswith(("+", "~")):
            ready.overrides.append(f"{override.key_or_group}=null")
        ready.overrides.append(word)
    return ready


def _text_of(word: str, override: "Override | None") -> str | None:
    """The text that a word gives to its key; None if Hydra should read it. Raises `UserError` for a missing file."""
    key, equals, value = word.partition("=")
    if not equals:
        return None
    # a group cannot hold a text, nor what Hydra reads as a package or a deletion
    if override is None and (key in GROUPS or not all(part.isidentifier() for part in key.split("."))):
        return None
    if PROMPTS in key.split(".")[:-1]:
        read = override.value() if override is not None else None
        written = read if isinstance(read, str) else value
        if written.startswith(FILE):
            return read_prompt(written.removeprefix(FILE))
        return None if isinstance(read, str) else value
    return value if override is None and not value.startswith(("'", '"', "[", "{", "$")) else None


@lru_cache(maxsize=1024)  # the words of a sweep's cells are the same few
def parse_word(word: str) -> "Override | None":
    """Hydra's override for a word; None if it does not fit Hydra's grammar."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        return None


def _unreadable(word: str) -> UserError:
    key, equals, value = word.partition("=")
    if not equals:
        return UserError(f"cannot read '{word}'", "settings are written key=value")
    remedy = f"close its brackets and quotes; one text is quoted for the shell and within: {quoted(key, value)}"
    return UserError(f"cannot read the value of {key}: {value:.80}", remedy)


def quoted(key: str, value: str) -> str:
    """The word that gives a key a text, quoted for a shell."""
    return shlex.quote(f"{key}={_quoted(value)}")


def _quoted(value: str) -> str:
    """A text in Hydra's quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def presets_of(kind: str) -> list[str]:
    """The presets of the prompts of a kind of protocol or judge."""
    return sorted({each.parent.name for folder in _folders() for each in folder.glob(f"{kind}/*/*.md")})


def place_preset(key: str, name: str, values: Mapping[Any, Any]) -> None:
    """Replace the prompts at a key by a preset; prompts that it lacks stay. Raises `UserError`."""
    owner = _at(values, key.rpartition(".")[0])
    prompts = owner.get(PROMPTS) if isinstance(owner, Mapping) else None
    if not isinstance(prompts, dict):
        raise UserError(f"there is no option {key}", "prompts are asked by every protocol and by judge=llm")
    known = presets_of(str(owner["kind"]))
    if name not in known:
        problem = f"{key} has no preset '{name}'"
        raise UserError(problem, f"{nearest(name, known)}; a prompt by itself: {key}.{next(iter(prompts))}=@FILE")
    places = [found for folder in _folders() if (found := folder / str(owner["kind"]) / name).is_dir()]
    first, *others = ({path.stem: path.read_text(encoding="utf-8") for path in each.glob("*.md")} for each in places)
    if any(other != first for other in others):
        raise UserError(f"{key}={name} is codechat's own and {places[-1]} too", "give the folder another name")
    prompts |= first


def read_prompt(name: str) -> str:
    """The text of a prompt file: a path given by the user, else one in `conf/prompts`. Raises `UserError`."""
    given = Path(name).expanduser()
    for path in (given, *(folder / name for folder in _folders())):
        if path.is_file():
            try:
                return path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise UserError(f"the prompt file {path} is not UTF-8 text", "save it as UTF-8") from error
            except OSError as error:
                raise UserError(f"cannot read the prompt file {path}: {error.strerror}", "make it readable") from error
    known = given.parent.glob(f"*{given.suffix}") if given.parent.is_dir() else ()
    raise UserError(f"there is no prompt file {name}", nearest(given.name, [path.name for path in known]))


def _folders() -> list[Path]:
    return [folder / PROMPTS for folder in conf_folders()]


NAMED = ("model", "model.name", "dataset", "agenda", "agenda.turns")
"""Keys that every cell's name already shows."""
MISPLACED = re.compile(r"Could not override 'model@([^'=]+)'")
"""Hydra's words for a model at a place without one, such as `model@protocol.roles.boss=gpt5`."""


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

    `settings` are the overrides in the cell's name; `remarks` name overrides that do not count.
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
    given: dict[str, list[str]] = {}
    for word in overrides:
        given.setdefault(key_of(word), []).append(word)
    last = {key: words[-1] for key, words in given.items()}  # of a repeated key the last word counts
    naming = [word for key, word in last.items() if names_cell(config, word)]
    several = (key for key, words in given.items() if len({*words}) > 1)
    repeated = (f"{key} is given more than once: {last[key]} counts" for key in several)
    settings = _departures(naming, overrides, values, choices)
    return Composed(config, choices, settings, tuple(overrides), tuple(repeated))


def _departures(
    naming: Sequence[str], overrides: Sequence[str], values: Mapping[str, Any], choices: Mapping[str, str]
) -> tuple[str, ...]:
    """The words that change a default: `seed=0` must name the same cell, and folder, as no word at all."""
    groups = {key_of(word) for word in naming} & set(choices)
    usual_choices = compose_values([])[1] if groups else {}
    plain = any(key_of(word) not in groups for word in naming)
    usual_values = compose_values([word for word in overrides if key_of(word) in choices])[0] if plain else {}

    def departs(word: str) -> bool:
        key = key_of(word)
        if key in groups:
            return choices[key] != usual_choices.get(key)
        return word.startswith(("+", "~")) or _at(values, key) != _at(usual_values, key)

    return tuple(filter(departs, naming))


def key_of(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def _at(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def names_cell(config: CellConfig, override: str) -> bool:
    """Whether an override is in the cell's name: it can change a result, and the name does not show it yet."""
    key = key_of(override)
    if key in NAMED or not config.can_change_result(key):
        return False
    group = getattr(config, key, None) if key in GROUPS else None
    kind = type(group).model_fields.get("kind") if isinstance(group, Config) else None
    return kind is None or is_identity(kind)


def compose_values(overrides: Sequence[str], root: Root = CELL) -> tuple[dict[str, Any], dict[str, str]]:
    """The composed values before validation, and the chosen options of the root's groups. Raises `UserError`."""
    import yaml
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
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        problem = " ".join(str(error).split())  # with the file and the line
        raise UserError(f"a preset cannot be read: {problem}", "a preset is a YAML mapping of options") from error
    assert isinstance(values, dict)
    words.place_texts(values)
    return {str(key): value for key, value in values.items()}, labels


def _named(word: str, root: Root) -> str:
    """The word; an option that Hydra would read as a number or a list (`judge=3`) is quoted."""
    override = parse_word(word)
    chooses = override is not None and override.key_or_group in root.groups and not override.is_delete()
    if override is None or not chooses or override.is_sweep_override() or isinstance(override.value(), str):
        return word
    key, _, value = word.replace("'", "").partition("=")
    return f"{key}='{value}'"


def _composed(words: Sequence[str], root: Root) -> tuple["DictConfig", dict[str, str]]:
    """Hydra's config for the words, and the chosen option of every group. Raises Hydra's errors.

    Hydra takes a tenth of a second, nearly all of it for the choices, so these are cached; values of existing keys are
    set in a copy, as Hydra does. Hydra itself handles all other words, and every mistake.
    """
    from omegaconf import OmegaConf

    shipped, *own = conf_folders()
    found = [*shipped.rglob("*.yaml"), *(path for folder in own for path in folder.glob("*/*.yaml"))]
    files = filter(Path.exists, found)  # an editor's lock can be a link to nowhere
    stamp = tuple((str(path), path.stat().st_mtime_ns) for path in sorted(files))
    changes_keys = any(word.startswith(("+", "~")) for word in words)
    valued = {} if changes_keys else {word: value for word in words if (value := _value_in(word, root))}
    chosen, choices = _choose(root.file, tuple(word for word in words if word not in valued), stamp, len(_offered))
    config = pickle.loads(chosen)
    for word in words:
        if word in valued:
            OmegaConf.update(config, valued[word].key_or_group, valued[word].value(), merge=True)
    OmegaConf.set_struct(config, False)
    for group, option in choices.items() if own else ():
        _check_one_meaning(group.partition("@")[0], option, root)
    return config, choices


def _check_one_meaning(group: str, option: str, root: Root) -> None:
    """Raise `UserError` if a preset of the working folder has the name of one of codechat's, and other content."""
    shipped, *own = (folder / group / f"{option}.yaml" for folder in conf_folders())
    for path in filter(Path.is_file, own):
        is_kind = group in root.groups and option in {component.name for component in root.groups[group]}
        if path.read_bytes() != shipped.read_bytes() if shipped.is_file() else is_kind:
            raise UserError(f"{group}={option} is codechat's own and {path} too", "give the file another name")


def _value_in(word: str, root: Root) -> "Override | None":
    """The override of a word that gives one value to a key; None if it chooses an option, or gives several values."""
    override = parse_word(word)
    if override is None or override.is_sweep_override() or override.package:
        return None
    key = override.key_or_group
    is_group = (
        key in GROUPS
        or key in root.groups
        or ("." not in key and any((folder / key).is_dir() for folder in conf_folders()))
    )
    return None if is_group or key.partition(".")[0] == "hydra" else override


@lru_cache(maxsize=256)
def _choose(file: str, words: tuple[str, ...], stamp: object, offered: int) -> tuple[bytes, dict[str, str]]:
    """Hydra's config, pickled because callers change it, and its choices; `stamp` and `offered` renew the cache."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    shipped, *own = conf_folders()
    search = [f"hydra.searchpath=[{_quoted(f'file://{folder}')}]" for folder in own]
    settings = initialize_config_dir(config_dir=str(shipped), version_base="1.3", job_name="codechat")
    with settings, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # an own preset with a kind's name: `_check_one_meaning` refuses it
        config = hydra_compose(file, [*search, *words], return_hydra_config=True)
    choices = dict(config.hydra.runtime.choices)
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    OmegaConf.set_struct(config, True)
    return pickle.dumps(config), choices


def _explain(error: Exception, overrides: Sequence[str], root: Root) -> UserError:
    """A Hydra error in the user's terms: the mistake, and the nearest valid name."""
    from hydra.errors import MissingConfigException

    text = str(error)
    first = text.strip().partition("\n")[0]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, option = error.missing_cfg_file.rpartition("/")
        problem = f"no {group} is called '{option}'" if group else f"there is no group or key '{option}'"
        return UserError(problem, f"{nearest(option, error.options or [])} (`codechat list {group}` describes them)")
    key = getattr(error.__cause__, "full_key", None) or getattr(error, "full_key", None)
    if key and "not in struct" in str(error.__cause__ or error):
        return _unknown_key(str(key), overrides, root)
    if "@judge." in text:
        able = "choose judge=llm for model@judge.ROLE, or judge=hybrid for model@judge.llm.ROLE: others ask no model"
        return UserError(first, able)
    if misplaced := MISPLACED.match(text):
        return _no_role(misplaced[1], overrides, root)
    if text.startswith("Ambiguous value"):
        word = next((each for each in overrides if f"'{each}'" in text), "key=value")
        quote = f"or quote the value, for the shell and within: {quoted(*word.split('=', 1))}"
        return UserError(first, f"put -m in front to sweep over the values, {quote}")
    return UserError(first, str(error.__cause__ or "").partition("\n")[0])


def _no_role(place: str, overrides: Sequence[str], root: Root) -> UserError:
    asking = root.asking
    values, choices = compose_values([word for word in overrides if key_of(word) == asking], root)
    roles = [f"{asking}.roles.{role}" for role in sorted(_at(values, f"{asking}.roles") or {})]
    asked = "model=NAME alone" if root is CELL else "no model"
    remedy = nearest(place, roles) if roles else f"leave it out: {asking}={choices[asking]} asks {asked}"
    return UserError(f"there is no role {place}", remedy)


def _unknown_key(key: str, overrides: Sequence[str], root: Root) -> UserError:
    """The mistake, with the options that have an unknown key, or the nearest keys of the chosen option."""
    if key == "sweep":
        return UserError("there is no option sweep", "a recipe is run by -m +sweep=NAME")
    node, choices = compose_values([word for word in overrides if word.partition("=")[0] in root.groups], root)
    group, *names = key.split(".")
    while "." in key and _at(node, parent := key.rpartition(".")[0]) is None:
        key = parent
    place, _, last = key.rpartition(".")
    inner = _at(node, place) if place else {**node, SAMPLES: None}
    known = inner if isinstance(inner, dict) else {}
    deeper = [f"{place}.{each}" for each in _keys_below(known) if each.endswith(f".{last}")]
    if deeper:
        return UserError(f"there is no option {key}", f"set {' or '.join(deeper[:4])}")
    hint = nearest(last, known) + (f" (options of {place})" if place else "")
    able = owners(group, names, root) if group in root.groups and names else []
    if able:
        having = ", ".join(f"{group}={name}" for name in able) + (" has" if len(able) == 1 else " have")
        return UserError(f"{group}={choices[group]} has no option {key}", f"{having} it; {hint}")
    return UserError(f"there is no option {key}", hint)


def _keys_below(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, Mapping):
            yield from _keys_below(value, f"{prefix}{name}.")


_offered: set[Component[Any, Any]] = set()


def offer_components(groups: Mapping[str, Registry[Any, Any]] = GROUPS) -> None:
    """Make every registered kind an option of its group, with its defaults, unless a YAML has that name."""
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
    """Whether a config has the nested key, such as `adherence`, `base_url`.

    A role takes every key that any model has; keys within a mapping are not checked.
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
