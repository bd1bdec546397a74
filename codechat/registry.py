"""Components by name: one registry per config group, filled by discovery.

A component is a factory decorated in any module of its room, or in a module that another installed package
names under the entry-point group `codechat.<group>`. Nothing else lists it. Its options are a `Config`;
importing a component's module must be cheap, so heavy libraries are imported inside the factory.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from codechat.config import Config, validate
from codechat.errors import UserError, nearest

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Component(Generic[F]):
    """A registered factory, its option model and its traits."""

    name: str
    config: type[Config]
    factory: F
    baseline: bool = False  # models only: may see the task's reference
    offline: bool = False  # judges only: decides by itself, so that a decision costs nothing
    uses: frozenset[str] = frozenset()  # protocols only: the other groups that can change its results

    @property
    def summary(self) -> str:
        """The first line of the factory's docstring: what `codechat list` shows."""
        return (inspect.getdoc(self.factory) or "").partition("\n")[0].rstrip(".")


class Registry(Generic[F]):
    """The components of one config group, keyed by the option `key` (`kind` unless told otherwise)."""

    def __init__(self, group: str, room: str, key: str = "kind") -> None:
        self.group, self.room, self.key = group, room, key
        self._components: dict[str, Component[F]] = {}
        self._discovered = False

    def register(
        self,
        name: str,
        config: type[Config],
        *,
        baseline: bool = False,
        offline: bool = False,
        uses: frozenset[str] = frozenset(),
    ) -> Callable[[F], F]:
        """Decorator for a factory. The first docstring line is its one-line description; a name is taken once."""

        def remember(factory: F) -> F:
            known = self._components.get(name)
            if known is not None and known.factory.__module__ != factory.__module__:
                raise ValueError(
                    f"{self.group} '{name}' is registered twice: {known.factory.__module__} has it already"
                )
            component = Component(name, config, factory, baseline, offline, uses)
            if not component.summary:
                raise ValueError(f"{self.group} '{name}' needs a docstring: its first line is the description")
            self._components[name] = component
            return factory

        return remember

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        room = importlib.import_module(self.room)
        for module in pkgutil.iter_modules(getattr(room, "__path__", []), f"{self.room}."):
            importlib.import_module(module.name)
        for point in entry_points(group=f"codechat.{self.group}"):
            try:
                point.load()
            except Exception as error:
                package = point.dist.name if point.dist else point.value
                raise UserError(
                    f"the {self.group} '{point.name}' of the package {package} cannot be loaded: {error}",
                    f"mend or uninstall {package}",
                ) from error

    def __iter__(self) -> Iterator[Component[F]]:
        self._discover()
        return iter(sorted(self._components.values(), key=lambda component: component.name))

    def __getitem__(self, name: str) -> Component[F]:
        self._discover()
        try:
            return self._components[name]
        except KeyError:
            raise UserError(f"no {self.group} is called '{name}'", nearest(name, self._components)) from None

    def validate(self, values: Mapping[str, Any], where: str | None = None) -> Config:
        """The validated config of the component that `values` names. Raises `UserError`."""
        place = where or self.group
        name = values.get(self.key)
        if not isinstance(name, str):
            raise UserError(f"{place}.{self.key} is required", nearest("", (c.name for c in self)))
        return validate(self[name].config, dict(values), place)

    def of(self, config: Config) -> Component[F]:
        """The component that a validated config belongs to."""
        return self[getattr(config, self.key)]
