"""Import paths of before the rooms were rearranged: they work for one release, and say where the name went."""

import importlib
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_BASE = (
    *("config", "domain", "environment", "errors", "files", "mounts", "plugins", "promises", "records", "registry"),
    *("seal", "seeding", "spreadsheet", "template", "texts"),
)
# Modules of `studies.multicodeif` that hold the content of others, and their old names.
_MERGED = {
    "metrics": ("metrics_levels", "metrics_repair"),
    "chapter": ("chapter.tables",),
    "chapter.published": ("chapter.kept",),
    "construct.review": ("construct.filtering", "construct.redundancy"),
    "construct.sources": ("construct.pools", "construct.seeds"),
    "construct.task": ("construct.demands", "construct.prompts"),
    "construct.writing": ("construct.drawing", "construct.expanding", "construct.witness"),
}
# From old to new names within codechat. What is in a moved package moved with it, unless it has a line of its own.
MOVED = {
    **{f"studies.multicodeif.{old}": f"studies.multicodeif.{new}" for new, names in _MERGED.items() for old in names},
    **{name: f"base.{name}" for name in _BASE},
    "tasks": "datasets.tasks",
    "agendas": "studies.refine.agendas",
    "audit": "report.audit",
    "calls": "models.calls",
    "constraints": "studies.multicodeif.constraints",
    "constraints.answers": "studies.multicodeif.constraints",
    "constraints.layout": "studies.multicodeif.constraints.coding_style",
    "constraints.naming": "studies.multicodeif.constraints.coding_style",
    "constraints.published_types": "studies.multicodeif.constraints.published",
    "constraints.python_values": "studies.multicodeif.constraints.types",
    "construct": "run.construct",
    "engine": "run",
    "environments": "studies.cab.environments",
    "exporting": "report.exporting",
    "hardware": "models.hardware",
    "importing": "datasets.importing",
    "importing.package": "studies.refine.format",
    "instructions": "studies.refine.instructions",
    "journal": "run.journal",
    "judges": "judging",
    "judges.hybrid": "studies.refine.judge_hybrid",
    "judges.rules": "studies.refine.judge_rules",
    "languages": "sandbox.languages",
    "launchers": "run.launchers",
    "metrics": "report.metrics",
    "patterns": "studies.refine.patterns",
    "protocols": "run.protocols",
    "report.study": "report.comparison",
    "serving": "models.serving",
    "suites": "sandbox.suites",
    "suites.inserted": "studies.sreval.suite_inserted",
    "suites.maven": "studies.sreval.suite_maven",
    "suites.placing": "studies.sreval.placing",
    "suites.versions": "studies.multicodeif.versions",
    "tracking": "report.tracking",
}


# Verbs of `Kit` that are functions of a study now, with the kit as their first argument.
VERBS = {
    "adherence": "studies.refine.verbs.adherence",
    "applicable": "studies.refine.verbs.applicable",
    "applicable_together": "studies.refine.verbs.applicable_together",
    "build": "studies.cab.verbs.build",
    "command": "studies.cab.verbs.run_command",
    "comply": "studies.multicodeif.checking.comply",
    "enter": "studies.cab.verbs.enter",
    "examine": "studies.multicodeif.checking.examine",
}


def moved_verb(name: str) -> Callable[..., Any]:
    """The function that was the method `name` of `Kit`. Raises `AttributeError` if there was none."""
    if name not in VERBS:
        raise AttributeError(f"'Kit' object has no attribute '{name}'")
    module, _, function = VERBS[name].rpartition(".")
    warnings.warn(f"Kit.{name} is now codechat.{VERBS[name]}(kit, …)", DeprecationWarning, stacklevel=3)
    found: Callable[..., Any] = getattr(importlib.import_module(f"codechat.{module}"), function)
    return found


def new_name(name: str) -> str | None:
    """The present name of the module that was once called `name`; None if it did not move."""
    package, _, rest = name.partition(".")
    if package != "codechat":
        return None
    parts = rest.split(".")
    for count in range(len(parts), 0, -1):
        if found := MOVED.get(".".join(parts[:count])):
            return ".".join(("codechat", found, *parts[count:]))
    return None


class _Present(Loader):
    """Gives the module that an old name now has."""

    def __init__(self, name: str) -> None:
        self._module = importlib.import_module(name)
        self._spec = self._module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib put the old name's there


class OldNames(MetaPathFinder):
    """Finds modules by their names of before; the first finder, since the folders of moved packages have moved."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        present = new_name(fullname)
        if present is None:
            return None
        warnings.warn(f"{fullname} is now {present}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Present(present))
