"""Checks that the parts of a cell fit each other, before anything runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.registry import Component
from codechat.base.seeding import generator
from codechat.base.texts import problem_of_name, visible, writable
from codechat.datasets.tasks import Dataset, Task
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT, JUDGES, Judge, JudgeTraits
from codechat.models import MODELS, ModelConfig
from codechat.models.roles import models_in
from codechat.run.protocols import PROTOCOLS
from codechat.run.settings.config import CellConfig
from codechat.run.settings.words import PROMPTS, presets_of
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.refine.agendas import AgendaConfig, draw, type_of
from codechat.studies.refine.instructions import PYTHON, Pool

NEUTRAL = "neutral"
"""The preset of prompts that name no language but the task's."""


@dataclass(frozen=True, slots=True)
class Judging:
    """A cell's judge and what is asked of it.

    `asked` are the questions that the protocol puts to it, in the order of `QUESTIONS`; empty if it uses no judge.
    `agenda` brings the instructions that the judge decides about, None if the protocol draws none or uses no judge.
    """

    judge: Component[Judge, JudgeTraits]
    protocol: str
    used: bool
    asked: tuple[str, ...]
    agenda: AgendaConfig | None

    @classmethod
    def of(cls, config: CellConfig) -> Self:
        """Read it from a cell's config."""
        judge, uses = JUDGES.of(config.judge), config.uses
        agenda = config.agenda if {"agenda", "judge"} <= uses else None
        return cls(judge, PROTOCOLS.of(config.protocol).name, "judge" in uses, config.questions, agenda)

    def decides(self, instruction: Instruction) -> bool:
        """Whether the judge can decide about an instruction at all."""
        return instruction.rule is not None or not self.judge.traits.needs_rules

    def check_questions(self) -> None:
        """Raises `UserError` if the protocol asks about instructions, and the judge decides nothing of them."""
        asked = [role for role in (APPLICABILITY, ADHERENCE) if role in self.asked]
        if asked and not self.judge.traits.questions & set(asked):
            raise UserError(
                f"judge={self.judge.name} decides {', '.join(sorted(self.judge.traits.questions))} alone, and "
                f"protocol={self.protocol} asks it for {' and '.join(asked)}",
                f"choose a judge that can ({_able(())})",
            )

    def check_languages(self, tasks: tuple[Task, ...]) -> None:
        """Raises `UserError` if the judge is asked about instructions and cannot read a task's language.

        Constraints in such a language are left undecided.
        """
        if {APPLICABILITY, ADHERENCE} & set(self.asked):
            _check_languages(f"judge={self.judge.name}", self.judge.traits.languages, tasks)

    def check_decidable(self, pool: Pool, tasks: tuple[Task, ...], cell_seed: int) -> None:
        """Raises `UserError` if the agenda has a type of which the pool holds nothing that the judge can decide.

        Every turn of such a type would be skipped, and its code counted as it was before.
        """
        agenda = self.agenda
        if agenda is None:
            return
        for language in dict.fromkeys(task.target.language for task in tasks):
            spoken = tuple(task for task in tasks if task.target.language == language)
            self._check_decidable(agenda, pool.of(language), spoken, cell_seed)

    def _check_decidable(
        self, agenda: AgendaConfig, instructions: Sequence[Instruction], tasks: tuple[Task, ...], cell_seed: int
    ) -> None:
        """The same for the tasks in one language."""
        decidable = {type_of(one, agenda.axis) for one in instructions if self.decides(one)}
        seed = cell_seed if agenda.seed is None else agenda.seed
        drawn = {name for task in tasks for name in draw(agenda, generator(seed, task.task_id, "agenda"))}
        if drawn <= decidable:
            return
        known = {type_of(one, agenda.axis) for one in instructions}
        weights = agenda.weights()
        possible = [name for name in weights if name in drawn or (agenda.sequence is None and weights[name] > 0)]
        lacking = [name for name in possible if name not in decidable]
        empty = [name for name in lacking if name not in known]
        if empty:
            raise UserError(
                f"the agenda asks for {_types(empty)}, and the pool has no such instruction: those turns would be "
                "skipped",
                "add some to the pool (instructions.path), or leave the type out: "
                "agenda.distribution='{TYPE: WEIGHT, …}'",
            )
        raise UserError(
            f"judge={self.judge.name} cannot decide any of the pool's instructions for {_types(lacking)}, "
            "since none of them has a rule: those turns would be skipped",
            f"choose a judge that can ({_able(tasks)}), or give some of them a rule",
        )

    def check_judgeable(self, instructions: Sequence[Instruction]) -> None:
        """Raises `UserError` if the judge can decide none of the instructions of recorded dialogues."""
        if self.used and instructions and not any(map(self.decides, instructions)):
            raise UserError(
                f"judge={self.judge.name} cannot decide any of the {len(instructions)} instructions: none has a rule",
                f"choose a judge that can ({_able(())})",
            )

    def remarks(self, pool: Pool | None, tasks: Sequence[Task]) -> Iterator[str]:
        """Remarks on instructions that are never drawn, and on constraints that stay undecided, since it cannot decide
        them."""
        languages = dict.fromkeys(task.target.language for task in tasks)
        for language in languages if self.agenda is not None else ():
            instructions = pool.of(language) if pool is not None else ()
            count = sum(not self.decides(one) for one in instructions)
            left = f"leaves out {count} of {len(instructions)} instructions: they have no rule"
            left += f" for {language}" if len(languages) > 1 else ""
            if count:
                yield f"judge={self.judge.name} {left}; {_able(())} decides those too"
        for lacking, count in Counter(each for task in tasks for each in set(task.undecidable())).items():
            yield f"{count} of {len(tasks)} tasks have {lacking}"
        if CONSTRAINT in self.asked and CONSTRAINT not in self.judge.traits.questions:
            count = sum(task.asks_judge for task in tasks)
            able = " or ".join(f"judge={each.name}" for each in JUDGES if CONSTRAINT in each.traits.questions)
            lacking = f"{count} of {len(tasks)} tasks have a constraint that no rule decides, and judge="
            if count:
                yield f"{lacking}{self.judge.name} leaves it undecided; {able} decides it"


def other_languages(config: CellConfig, tasks: Sequence[Task]) -> Iterator[str]:
    """Warnings about prompts that speak of Python to a model, and tasks in other languages."""
    others = sorted({task.target.language for task in tasks} - {PYTHON})
    asked: list[tuple[str, Any, set[str] | None]] = []
    if not MODELS.of(config.model).traits.baseline:
        asked.append(("protocol", config.protocol, None))
    for place, judge in (("judge", config.judge), ("judge.llm", getattr(config.judge, "llm", None))):
        asked.append((place, judge, {APPLICABILITY, ADHERENCE} & {*config.questions}))
    for place, part, questions in asked if others else ():
        prompts = getattr(part, PROMPTS, None)
        texts = prompts.model_dump(include=questions).values() if prompts is not None else ()
        if any("Python" in (text or "") for text in texts) and NEUTRAL in presets_of(part.kind):
            found = f"warning: {place}.prompts speaks of Python, and there are tasks in {', '.join(others)}"
            yield f"{found}: {place}.prompts={NEUTRAL} speaks of theirs"


def check_fit(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the protocol, the models or the environment cannot work on a task."""
    protocol, model, environment = PROTOCOLS.of(config.protocol), MODELS.of(config.model), config.environment
    over = protocol.traits.over
    for task in tasks:
        if not isinstance(task, over):
            raise UserError(
                f"protocol={protocol.name} works on {over.plural}, and {dataset.name} has {type(task).plural}, such as "
                f"{task.task_id}",
                "choose a dataset that is made for the protocol: codechat list dataset",
            )
    for place, player in (("model", config.model), *models_in(config.protocol, "protocol")):
        _check_player(place, player, dataset)
    lacking = next((task for task in tasks if task.workspace is None), None)
    if "environment" in config.uses and environment.kind != "none" and lacking is not None:
        raise UserError(
            f"environment={environment.kind} runs commands in a task's repository, and {lacking.task_id} has none",
            "give the folder of the clones, dataset.repos=DIR, or let nothing be run: environment=none",
        )
    if "environment" in config.uses:
        _check_rooms(environment, tasks)
    _check_languages(f"model={model.name}", model.traits.languages, tasks)


def _check_rooms(environment: EnvironmentConfig, tasks: Sequence[Task]) -> None:
    """Raises `UserError` for tasks that can have no room there, before anything is asked of a model."""
    found = [(task, lacks) for task in tasks if task.workspace and (lacks := environment.lacking(task.workspace))]
    if found:
        (first, (what, remedy)), count = found[0], f"{len(found)} of {len(tasks)} tasks"
        raise UserError(f"environment={environment.kind}: {count} have no {what}, such as {first.task_id}", remedy)


def _check_player(place: str, model: ModelConfig, dataset: Dataset) -> None:
    """Raises `UserError` for a model that may not play in the dataset, be it the one under test or a further one."""
    component = MODELS.of(model)
    datasets = component.traits.datasets
    if datasets is not None and dataset.name not in datasets:
        word = "model=NAME" if place == "model" else f"model@{place}=NAME"
        raise UserError(
            f"{place}: {component.name} is no language model and plays only in {', '.join(sorted(datasets))}",
            f"choose another: {word}",
        )


def check_texts(dataset: Dataset, tasks: Iterable[Task], pool: Pool | None) -> None:
    """Raises `UserError` for a name that no table could show, or a text that no file could hold."""
    instructions = pool.instructions if pool is not None else ()
    names = [("dataset", dataset.name), *(("task id", task.task_id) for task in tasks)]
    for what, name in (*names, *(("instruction's id", one.id) for one in instructions)):
        if problem := problem_of_name(name):
            raise UserError(
                f"the {what} '{visible(name)[:60]}' {problem}", "rename it: names stand in tables, pages and terminals"
            )
    texts = [*((task.task_id, list(task.texts())) for task in tasks), *((one.id, [one.text]) for one in instructions)]
    for name, parts in texts:
        if writable(parts) is not parts:
            raise UserError(f"a text of {name} has half of a surrogate pair (\\ud800 to \\udfff)", "leave it out")


def _check_languages(part: str, languages: frozenset[str] | None, tasks: tuple[Task, ...]) -> None:
    if languages is None:
        return
    for task in tasks:
        if task.target.language not in languages:
            raise UserError(
                f"{part} knows only {', '.join(sorted(languages))}, and {task.task_id} is in {task.target.language}",
                "choose another, or tasks in a language it knows (dataset.tasks)",
            )
    for known in (language_of(task.target.language) for task in tasks):
        if isinstance(known, Parsed) and known.names[0] != PYTHON:
            known.grammar.require(part)


def _types(names: list[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _able(tasks: tuple[Task, ...]) -> str:
    """The judges of instructions that need no rule, as the words that choose them."""
    languages = {task.target.language for task in tasks}
    able = [each.name for each in JUDGES if not each.traits.needs_rules and ADHERENCE in each.traits.questions
            and (each.traits.languages is None or languages <= each.traits.languages)]  # fmt: skip
    return " or ".join(f"judge={name}" for name in able)
