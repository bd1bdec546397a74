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
# From old to new names within codechat. The modules of a moved package moved with it, unless they have a line.
MOVED = {
    **{f"studies.multicodeif.{old}": f"studies.multicodeif.{new}" for new, names in _MERGED.items() for old in names},
    **{name: f"base.{name}" for name in _BASE},
    "tasks": "datasets.tasks",
    "agendas": "studies.refine.agendas",
    "audit": "report.audit",
    "audit.labels": "report.audit.kinds",
    "audit.result": "report.audit.scoring",
    "calls": "models.calls",
    "calls.cache_file": "models.calls.cache",
    "calls.collecting": "models.calls.batches",
    "constraints": "studies.multicodeif.constraints",
    "constraints.answers": "studies.multicodeif.constraints",
    "constraints.layout": "studies.multicodeif.constraints.coding_style",
    "constraints.naming": "studies.multicodeif.constraints.coding_style",
    "constraints.published_types": "studies.multicodeif.constraints.published",
    "constraints.python_values": "studies.multicodeif.constraints.types",
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
    "datasets.humaneval_x": "studies.refine.dataset_humaneval_x",
    "datasets.mint": "studies.refine.dataset_mint",
    "datasets.starter_javascript": "studies.refine.dataset_starter_javascript",
    "importing.mint": "studies.refine.format_mint",
    "languages.classifier": "studies.multicodeif.classifier",
    "environments": "studies.cab.environments",
    "environments.bundle": "studies.cab.environments.images",
    "environments.cache": "studies.cab.environments.commits",
    "environments.git": "studies.cab.environments.commits",
    "environments.inside": "sandbox.rooms.inside",
    "environments.inside.prepare": "sandbox.rooms.inside.furnish",
    "environments.limits": "studies.cab.environments.resident",
    "exporting": "report.exporting",
    "hardware": "models.hardware",
    "importing": "datasets.importing",
    "importing.dialogues": "datasets.importing",
    "importing.package": "studies.refine.format",
    "instructions": "studies.refine.instructions",
    "journal": "run.journal",
    "journal.batches": "run.journal.store",
    "judges": "judging",
    "judges.hybrid": "studies.refine.judge_hybrid",
    "judges.rules": "studies.refine.judge_rules",
    "languages": "sandbox.languages",
    "languages.coded": "sandbox.languages",
    "languages.compiling": "sandbox.languages.grammar",
    "languages.customs": "sandbox.languages.grammar",
    "languages.markup": "sandbox.languages.javascript",
    "languages.python.assembly": "sandbox.languages.python.syntax",
    "languages.python.program": "sandbox.languages.python.source",
    "languages.python.imports": "sandbox.languages.python.syntax",
    "launchers": "run.launchers",
    "metrics": "report.metrics",
    "metrics.caution": "report.metrics.counts",
    "metrics.loaded": "report.metrics.counts",
    "metrics.powered": "studies.refine.chapter.powered",
    "metrics.points": "report.metrics.measures",
    "metrics.sequences": "report.metrics.statistics",
    "metrics.tally": "report.metrics.sums",
    "models.openai.protocol": "models.openai",
    "models.provider.library": "models.provider",
    "models.remote.config": "models.remote",
    "models.remote.served": "models.remote",
    "patterns": "studies.refine.patterns",
    "patterns.doubts": "studies.refine.patterns.rules",
    "patterns.finders.comments": "studies.refine.patterns.finders.layout",
    "patterns.finders.names": "studies.refine.patterns.finders.functions",
    "patterns.finders.loops": "studies.refine.patterns.finders.flow",
    "patterns.finders.hints": "studies.refine.patterns.finders.usage",
    "patterns.finders.arguments": "studies.refine.patterns.finders.structures",
    "patterns.trees.finders": "studies.refine.patterns.trees",
    "protocols": "run.protocols",
    "protocols.answers": "run.protocols.services",
    "protocols.expecting": "run.protocols.dialogue",
    "protocols.grading": "run.protocols.dialogue",
    "protocols.opening": "run.protocols.dialogue",
    "protocols.session_log": "run.protocols.services",
    "report.study": "report.comparison",
    "studies.refine.chapter.corrected": "studies.refine.chapter.comparisons",
    "studies.refine.chapter.drawings": "studies.refine.chapter.page",
    "studies.refine.chapter.languages": "studies.refine.chapter.comparisons",
    "sandbox.inside.assertions": "sandbox.inside.tester",
    "sandbox.inside.landlock": "sandbox.inside.beside",
    "sandbox.inside.comparing": "sandbox.inside.snippets",
    "report.generic.figures": "report.drawing",
    "report.generic.labels": "report.generic.published",
    "report.generic.stopped": "report.chapters",
    "report.latex": "report.formats",
    "report.page.archive": "report.page",
    "report.variants": "report.loading",
    "studies.refine.chapter.means": "studies.refine.chapter.outcomes",
    "serving": "models.serving",
    "serving.cell_servers": "models.serving.fleet",
    "serving.probing": "models.serving.server",
    "suites": "sandbox.suites",
    "suites.assertions.reader": "sandbox.suites.assertions",
    "suites.checkout": "sandbox.suites.repository",
    "suites.inserted": "studies.sreval.suite_inserted",
    "suites.jdk": "sandbox.suites.compilers",
    "suites.junit.compiler": "sandbox.suites.junit.toolchain",
    "suites.maven": "studies.sreval.suite_maven",
    "suites.placing": "studies.sreval.suite_inserted",
    "suites.versions": "studies.multicodeif.versions",
    "studies.cab.chapter.drawings": "studies.cab.chapter",
    "studies.cab.config": "studies.cab.stage",
    "studies.cab.construct.dockerfiles": "studies.cab.construct.roles",
    "studies.cab.construct.funnel": "studies.cab.construct.repositories",
    "studies.cab.construct.threads": "studies.cab.construct.github",
    "studies.cab.references": "studies.cab.judging",
    "studies.cab.sampling": "studies.cab.tasks",
    "studies.cab.user": "studies.cab.judging",
    "studies.sreval.chapter.ablations": "studies.sreval.chapter.tables",
    "studies.sreval.chapter.published": "studies.sreval.chapter.tables",
    "studies.sreval.construct.checking": "studies.sreval.construct.algorithm",
    "studies.sreval.construct.order": "studies.sreval.construct.algorithm",
    "testing.behaviour": "testing.server",
    "testing.instant": "testing.cells",
    "tracking": "report.tracking",
    "tracking.find": "report.tracking.runs",
    "tracking.locks": "report.tracking.store",
}


# Verbs of `Kit` that are functions of a study now, with the kit as their first argument.
VERBS = {
    "adherence": "studies.refine.agdis.adherence",
    "applicable": "studies.refine.agdis.applicable",
    "applicable_together": "studies.refine.agdis.applicable_together",
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
