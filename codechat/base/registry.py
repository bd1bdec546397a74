"""Components by name: one registry per config group, filled by discovery.

A component is a decorated factory in any module of its folder, or in a module that an installed package names under the
entry-point group `codechat.<group>`. Its options are a `Config`. Importing its module must be cheap: import heavy
libraries inside the factory.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from codechat.base.config import Config, part_of, validate
from codechat.base.errors import UserError, nearest
from codechat.base.plugins import import_all
from codechat.base.promises import check_call, is_plugin, kept_to_type

T = TypeVar("T")  # the type that a registry's factories make
X = TypeVar("X")  # traits: a frozen dataclass of a component's properties before it is built; each field has a default
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class NoTraits:
    """For groups whose components have no traits."""


@dataclass(frozen=True)
class Component(Generic[T, X]):
    """A registered factory, its option model and its traits. `key` is the option that holds its name."""

    name: str
    config: type[Config]
    factory: Callable[..., T]
    traits: X
    key: str

    @property
    def summary(self) -> str:
        """The first line of the factory's docstring, for `codechat list`."""
        return (inspect.getdoc(self.factory) or "").partition("\n")[0].rstrip(".")


class Registry(Generic[T, X]):
    """The components of one config group, chosen by the option `key`; a component may have another key."""

    def __init__(
        self,
        group: str,
        package: str,
        traits: type[X],
        makes: Any,
        options: type[Config] = Config,
        *,
        key: str = "kind",
    ) -> None:
        """`makes` is the type of the components, `options` the base of their configs."""
        self.group, self.package, self.key = group, package, key
        self._makes, self._options, self._traits = makes, options, traits
        self._components: dict[str, Component[T, X]] = {}
        self._discovered = False

    def register(self, name: str, config: type[Config], *, key: str | None = None, **traits: Any) -> Callable[[F], F]:
        """Decorator for a factory. Its first docstring line is its description; a name can be used once.

        `key` is the option with the name, if it is not the group's. `traits` are fields of the group's traits.
        """
        who, name_key = f"{self.group} '{name}'", key or self.key
        _check_options(who, config, self._options, name_key)

        def remember(factory: F) -> F:
            known = self._components.get(name)
            if known is not None and known.factory.__module__ != factory.__module__:
                raise ValueError(f"{who} is registered twice: {known.factory.__module__} has it already")
            component: Component[T, X] = Component(name, config, factory, self._traits(**traits), name_key)
            if not component.summary:
                raise ValueError(f"{who} needs a docstring: its first line is the description")
            self._components[name] = component
            return factory

        return remember

    def discover(self) -> None:
        """Import every module that may register a component. Raises `UserError` for a broken package."""
        if not self._discovered:
            self._discovered = True
            import_all(self.package, self.group)

    def __iter__(self) -> Iterator[Component[T, X]]:
        self.discover()
        return iter(sorted(self._components.values(), key=lambda component: component.name))

    def __getitem__(self, name: str) -> Component[T, X]:
        self.discover()
        try:
            return self._components[name]
        except KeyError:
            raise UserError(f"no {self.group} is called '{name}'", nearest(name, self._components)) from None

    def chosen_by(self, values: Mapping[str, Any], where: str | None = None) -> Component[T, X]:
        """The component that the options name. Raises `UserError`."""
        if other := next((each for each in self if each.key != self.key and values.get(each.key) == each.name), None):
            return other
        name = values.get(self.key)
        if not isinstance(name, str):
            raise UserError(f"{where or self.group}.{self.key} is required", nearest("", (c.name for c in self)))
        return self[name]

    def validate(self, values: Mapping[str, Any], where: str | None = None) -> Config:
        """The validated config of the component that `values` names. Raises `UserError`."""
        return validate(self.chosen_by(values, where).config, dict(values), where or self.group)

    def of(self, config: Config) -> Component[T, X]:
        """The component of a validated config."""
        known = next((each for each in self if each.key != self.key and isinstance(config, each.config)), None)
        return known or self[getattr(config, self.key)]

    def build(self, config: Config, *parts: Any, **named: Any) -> T:
        """The component that a config describes.

        Raises `UserError`, also for a package that is not installed, and for a plugin's component of a wrong type.
        """
        component = self.of(config)
        plugin = is_plugin(component.factory)
        who = f"{self.group}={component.name} of {component.factory.__module__}"
        if plugin:
            check_call(who, component.factory, (config, *parts), named)
        try:
            made = component.factory(config, *parts, **named)
            return cast(T, kept_to_type(made, self._makes, who)) if plugin else made
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("", "codechat"):
                raise
            problem = f"{self.group}={component.name} needs the package {package}, which is not installed"
            raise UserError(problem, f"pip install {package}") from error


def _check_options(who: str, config: Any, base: type[Config], key: str) -> None:
    """Raise `TypeError` for a config class that the group cannot use."""
    if not (isinstance(config, type) and issubclass(config, base)):
        expected = f"{base.__module__}.{base.__name__}"
        raise TypeError(f"{who}: its config must be a subclass of {expected}, not {config!r:.80}")
    if key not in config.model_fields:
        raise TypeError(f"{who}: its config has no field '{key}'")
    for name, field in config.model_fields.items():
        try:
            part_of(field)
        except TypeError as error:
            declared = "must be declared with result_option, run_option or place_option"
            raise TypeError(f"{who}: the option '{name}' {declared}") from error
