"""Groups of a cell's options that studies bring, such as `agenda`: found in their files `groups.py`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from codechat.base.config import Config
from codechat.base.plugins import import_study_files
from codechat.base.registry import Registry
from codechat.datasets.tasks import Task


class Content(Protocol):
    """Data that a group's component loads, such as a pool of instructions; `content_hash` is part of the cell id."""

    @property
    def content_hash(self) -> str: ...

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences about what the author may have meant otherwise."""

    def texts(self) -> Iterable[tuple[str, str]]:
        """The ids of the parts, which stand in tables, and their texts."""


@dataclass(frozen=True)
class Group:
    """A group of options that a study brings to every cell; a protocol that needs it names it in `uses`.

    `options` is the type of the group's options. `field` declares them, by a function of `codechat.base.config`, in a
    cell's config, where they stand behind the group `behind`. `before` are the values of cells that were begun before
    the group was added. `check` yields remarks on a cell that uses the group, and raises `UserError` if the parts do
    not fit. `label` gives the words of a cell's name. A group may load data from options and tasks (`load`), which a
    protocol gets as `data`. Or the component serves the sessions (`serves`): then it is checked before the model under
    test is asked, and closed after the sessions.
    """

    registry: Registry[Any, Any]
    options: Any
    field: Any
    behind: str
    before: Mapping[str, Any] | None = None
    check: Callable[[Any], Iterator[str]] = lambda cell: iter(())
    label: Callable[[Any, str], Sequence[str]] = lambda options, choice: ()
    data: str = ""
    load: Callable[[Config, Sequence[Task]], Content] | None = None
    serves: bool = False

    @property
    def name(self) -> str:
        """The group's name: the key of its options."""
        return self.registry.group


_BROUGHT: dict[str, Group] = {}


def add_group(group: Group) -> None:
    """Bring a group; a study's file `groups.py` does so when it is imported."""
    _BROUGHT[group.name] = group


@cache
def study_groups() -> Mapping[str, Group]:
    """The groups of all installed studies by name. Raises `UserError` for a broken package."""
    import_study_files("groups")
    return dict(_BROUGHT)
