"""Import paths from before the rooms were rearranged: they work for one release, with a warning."""

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
# From old to new names within codechat. The modules of a moved package moved with it, unless they have a line.
MOVED = {
    **{name: f"base.{name}" for name in _BASE},
    "tasks": "datasets.tasks",
    "agendas": "studies.refine.agendas",
    "audit": "report.audit",
    "calls": "models.calls",
    "constraints": "studies.multicodeif.constraints",
    "cli.commands.cells": "cli.sweep",
    "cli.commands.requirements": "cli.commands.verify",
    "cli.interruption": "cli.progress",
    "cli.launching": "cli.run",
    "cli.sweep_view": "cli.sweep",
    "cli.words": "cli.terminal",
    "construct": "run.construct",
    "construct.config": "run.construct.recipe",
    "construct.ends": "run.construct.engine",
    "construct.people": "run.construct.interface",
    "construct.rows": "run.construct.interface",
    "engine": "run",
    "engine.cell.libraries": "run.cell.references",
    "engine.results.tracked": "run.results.measured",
    "engine.settings.words": "run.settings.compose",
    "engine.running.room": "run.answering.servers",
    "environments": "studies.cab.environments",
    "exporting": "report.exporting",
    "hardware": "models.hardware",
    "importing": "datasets.importing",
    "importing.package": "studies.refine.format",
    "instructions": "studies.refine.instructions",
    "journal": "run.journal",
    "journal.batches": "run.journal.store",
    "judges": "judging",
    "judges.hybrid": "studies.refine.judge_hybrid",
    "judges.rules": "studies.refine.judge_rules",
    "languages": "sandbox.languages",
    "launchers": "run.launchers",
    "metrics": "report.metrics",
    "patterns": "studies.refine.patterns",
    "protocols": "run.protocols",
    "protocols.answers": "run.protocols.services",
    "protocols.expecting": "run.protocols.dialogue",
    "protocols.grading": "run.protocols.dialogue",
    "protocols.opening": "run.protocols.dialogue",
    "protocols.session_log": "run.protocols.services",
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
    "comply": "studies.multicodeif.verbs.comply",
    "enter": "studies.cab.verbs.enter",
    "examine": "studies.multicodeif.verbs.examine",
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
    """The new name of the module `name`; None if it did not move."""
    package, _, rest = name.partition(".")
    if package != "codechat":
        return None
    parts = rest.split(".")
    for count in range(len(parts), 0, -1):
        if found := MOVED.get(".".join(parts[:count])):
            return ".".join(("codechat", found, *parts[count:]))
    return None


class _Present(Loader):
    """Loads the module of a new name."""

    def __init__(self, name: str) -> None:
        self._module = importlib.import_module(name)
        self._spec = self._module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib put the old name's there


class OldNames(MetaPathFinder):
    """Finds modules by old names; the first finder, because the folders of packages have moved."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        present = new_name(fullname)
        if present is None:
            return None
        warnings.warn(f"{fullname} is now {present}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Present(present))
