"""Checks that the parts of a cell fit each other, before anything runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codechat.base.errors import UserError
from codechat.base.texts import problem_of_name, visible, writable
from codechat.datasets.tasks import Dataset, Task
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT, JUDGES
from codechat.models import MODELS
from codechat.models.roles import models_in
from codechat.run.protocols import PROTOCOLS
from codechat.run.settings.compose import PROMPTS, presets_of
from codechat.run.settings.config import CellConfig, Content
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Parsed

PYTHON = "python"
NEUTRAL = "neutral"
"""The preset of prompts that name no language but the task's."""


def check_judge(config: CellConfig, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the protocol asks about instructions, and the judge cannot decide about them.

    A judge decides nothing about instructions in languages that it cannot read; constraints stay undecided there.
    """
    judge, asked = JUDGES.of(config.judge), [role for role in (APPLICABILITY, ADHERENCE) if role in config.questions]
    if asked and not judge.traits.questions & set(asked):
        raise UserError(
            f"judge={judge.name} decides {', '.join(sorted(judge.traits.questions))} alone, and "
            f"protocol={PROTOCOLS.of(config.protocol).name} asks it for {' and '.join(asked)}",
            f"choose a judge that can ({judges_without_rules(())})",
        )
    if asked:
        _check_languages(f"judge={judge.name}", judge.traits.languages, tasks)


def undecidable(config: CellConfig, tasks: Sequence[Task]) -> Iterator[str]:
    """Remarks on constraints of tasks that stay undecided."""
    for lacking, count in Counter(each for task in tasks for each in set(task.undecidable())).items():
        yield f"{count} of {len(tasks)} tasks have {lacking}"
    judge, count = JUDGES.of(config.judge), sum(task.asks_judge for task in tasks)
    if CONSTRAINT in config.questions and CONSTRAINT not in judge.traits.questions and count:
        able = " or ".join(f"judge={each.name}" for each in JUDGES if CONSTRAINT in each.traits.questions)
        yield (
            f"{count} of {len(tasks)} tasks have a constraint that no rule decides, and judge={judge.name} leaves it "
            f"undecided; {able} decides it"
        )


def other_languages(config: CellConfig, tasks: Sequence[Task]) -> Iterator[str]:
    """Warnings about prompts that name Python, with tasks in other languages."""
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
            problem = f"warning: {place}.prompts speaks of Python, and there are tasks in {', '.join(others)}"
            yield f"{problem}: {place}.prompts={NEUTRAL} speaks of theirs"


def check_fit(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the protocol or the models cannot work on a task."""
    protocol, over = PROTOCOLS.of(config.protocol), PROTOCOLS.of(config.protocol).traits.over
    if other := next((task for task in tasks if not isinstance(task, over)), None):
        raise UserError(
            f"protocol={protocol.name} works on {over.plural}, and {dataset.name} has {type(other).plural}, such as "
            f"{other.task_id}",
            "choose a dataset that is made for the protocol: codechat list dataset",
        )
    for place, player in (("model", config.model), *models_in(config.protocol, "protocol")):
        model = MODELS.of(player)
        if model.traits.datasets is not None and dataset.name not in model.traits.datasets:
            word = "model=NAME" if place == "model" else f"model@{place}=NAME"
            able = ", ".join(sorted(model.traits.datasets))
            raise UserError(
                f"{place}: {model.name} is no language model and plays only in {able}", f"choose another: {word}"
            )
    tested = MODELS.of(config.model)
    needs = protocol.traits.with_desk if tested.traits.has_desk else {}
    if needs is None:
        raise UserError(f"protocol={protocol.name} has no part for a coding agent", "choose another: docs/agents.md")
    for option, needed in needs.items():
        if (chosen := getattr(config.protocol, option)) != needed:
            raise UserError(
                f"protocol.{option}={chosen} does not fit model={tested.name}, a coding agent, whose folder keeps its "
                "work from turn to turn",
                f"set protocol.{option}={needed}",
            )
    _check_languages(f"model={tested.name}", tested.traits.languages, tasks)


def check_texts(dataset: Dataset, tasks: Iterable[Task], contents: Mapping[str, Content]) -> None:
    """Raises `UserError` for a name that no table could show, or a text that no file could hold."""
    loaded = [(group, name, text) for group, content in contents.items() for name, text in content.texts()]
    names = [("name of the dataset", dataset.name), *(("task id", task.task_id) for task in tasks)]
    for kind, name in (*names, *((f"id in {group}", name) for group, name, _ in loaded)):
        if problem := problem_of_name(name):
            shown = f"the {kind} '{visible(name)[:60]}' {problem}"
            raise UserError(shown, "rename it: names stand in tables, pages and terminals")
    texts = [*((task.task_id, [*task.texts()]) for task in tasks), *((name, [text]) for _, name, text in loaded)]
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


def judges_without_rules(tasks: tuple[Task, ...]) -> str:
    """The judges of instructions that need no rule, as the words that choose them."""
    languages = {task.target.language for task in tasks}
    able = (each.name for each in JUDGES if not each.traits.needs_rules and ADHERENCE in each.traits.questions
            and (each.traits.languages is None or languages <= each.traits.languages))  # fmt: skip
    return " or ".join(f"judge={name}" for name in able)
