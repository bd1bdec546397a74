"""Checks that the parts of a cell fit each other, before anything runs."""

from collections.abc import Iterable

from codechat.agendas import AgendaConfig, draw, type_of
from codechat.domain import Instruction
from codechat.engine.settings.config import CellConfig
from codechat.errors import UserError
from codechat.instructions import Pool
from codechat.judges import ADHERENCE, APPLICABILITY, CONSTRAINT, JUDGES
from codechat.models import MODELS
from codechat.models.roles import models_in
from codechat.protocols import PROTOCOLS
from codechat.seeding import generator
from codechat.tasks import Dataset, Task
from codechat.texts import problem_of_name, visible, writable


def check_fit(config: CellConfig, dataset: Dataset, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the protocol, the model or the judge cannot work on a task."""
    protocol = PROTOCOLS.of(config.protocol)
    over = protocol.traits.over
    for task in tasks:
        if not isinstance(task, over):
            raise UserError(
                f"protocol={protocol.name} works on {over.plural}, and {dataset.name} has {type(task).plural}, such as "
                f"{task.task_id}",
                "choose a dataset that is made for the protocol: codechat list dataset",
            )
    _check_players(config, dataset)
    _check_workspaces(config, tasks)
    _check_languages(f"model={MODELS.of(config.model).name}", MODELS.of(config.model).traits.languages, tasks)
    check_questions(config)
    if {APPLICABILITY, ADHERENCE} & set(config.questions):  # constraints that it cannot decide are undecided
        _check_languages(f"judge={JUDGES.of(config.judge).name}", JUDGES.of(config.judge).traits.languages, tasks)


def check_questions(config: CellConfig) -> None:
    """Raises `UserError` if the protocol asks about instructions, and the judge decides nothing of them."""
    judge = JUDGES.of(config.judge)
    asked = [role for role in (APPLICABILITY, ADHERENCE) if role in config.questions]
    if asked and not judge.traits.questions & set(asked):
        raise UserError(
            f"judge={judge.name} decides {', '.join(sorted(judge.traits.questions))} alone, and "
            f"protocol={PROTOCOLS.of(config.protocol).name} asks it for {' and '.join(asked)}",
            f"choose a judge that can ({_able(())})",
        )


def _check_players(config: CellConfig, dataset: Dataset) -> None:
    """Raises `UserError` for a model that may not play in the dataset, be it the one under test or a further one."""
    for place, model in (("model", config.model), *models_in(config.protocol, "protocol")):
        component = MODELS.of(model)
        datasets = component.traits.datasets
        if datasets is not None and dataset.name not in datasets:
            word = "model=NAME" if place == "model" else f"model@{place}=NAME"
            raise UserError(
                f"{place}: {component.name} is no language model and plays only in {', '.join(sorted(datasets))}",
                f"choose another: {word}",
            )


def _check_workspaces(config: CellConfig, tasks: Iterable[Task]) -> None:
    """Raises `UserError` if commands are to be run in the repository of a task that has none."""
    environment = config.environment
    if "environment" not in config.uses or environment.kind == "none":
        return
    lacking = next((task for task in tasks if task.workspace is None), None)
    if lacking is not None:
        raise UserError(
            f"environment={environment.kind} runs commands in a task's repository, and {lacking.task_id} has none",
            "give the folder of the clones, dataset.repos=DIR, or let nothing be run: environment=none",
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


def check_decidable(config: CellConfig, pool: Pool, tasks: tuple[Task, ...]) -> None:
    """Raises `UserError` if the agenda has a type of which the pool holds nothing that the judge can decide.

    Every turn of such a type would be skipped, and its code counted as it was before.
    """
    if not {"agenda", "judge"} <= config.uses:
        return
    agenda = config.agenda
    decidable = {type_of(one, agenda.axis) for one in pool.instructions if decides(config, one)}
    seed = config.seed if agenda.seed is None else agenda.seed
    drawn = {name for task in tasks for name in draw(agenda, generator(seed, task.task_id, "agenda"))}
    if drawn <= decidable:
        return
    known = {type_of(one, agenda.axis) for one in pool.instructions}
    lacking = [name for name in _types_of(agenda, drawn) if name not in decidable]
    empty = [name for name in lacking if name not in known]
    if empty:
        raise UserError(
            f"the agenda asks for {_types(empty)}, and the pool has no such instruction: those turns would be skipped",
            "add some to the pool (instructions.path), or leave the type out: agenda.distribution='{TYPE: WEIGHT, …}'",
        )
    raise UserError(
        f"judge={JUDGES.of(config.judge).name} cannot decide any of the pool's instructions for {_types(lacking)}, "
        "since none of them has a rule: those turns would be skipped",
        f"choose a judge that can ({_able(tasks)}), or give some of them a rule",
    )


def check_judgeable(config: CellConfig, instructions: Iterable[Instruction]) -> None:
    """Raises `UserError` if the judge can decide none of the instructions of recorded dialogues."""
    asked = list(instructions)
    if "judge" in config.uses and asked and not any(decides(config, one) for one in asked):
        raise UserError(
            f"judge={JUDGES.of(config.judge).name} cannot decide any of the {len(asked)} instructions: none has a rule",
            f"choose a judge that can ({_able(())})",
        )


def left_out(config: CellConfig, pool: Pool | None) -> str:
    """A remark on instructions that are never drawn, as the judge cannot decide them; empty if there are none."""
    if pool is None or not {"agenda", "judge"} <= config.uses:
        return ""
    count = sum(not decides(config, one) for one in pool.instructions)
    if not count:
        return ""
    left = f"leaves out {count} of {len(pool.instructions)} instructions: they have no rule"
    return f"judge={JUDGES.of(config.judge).name} {left}; {_able(())} decides those too"


def left_undecided(config: CellConfig, tasks: tuple[Task, ...]) -> str:
    """A remark on tasks with a constraint that only a judge can decide, and this one does not; empty without one."""
    if CONSTRAINT not in config.questions or CONSTRAINT in JUDGES.of(config.judge).traits.questions:
        return ""
    count = sum(task.asks_judge for task in tasks)
    able = " or ".join(f"judge={each.name}" for each in JUDGES if CONSTRAINT in each.traits.questions)
    told = f"{count} of {len(tasks)} tasks have a constraint that no rule decides, and judge="
    return f"{told}{JUDGES.of(config.judge).name} leaves it undecided; {able} decides it" if count else ""


def decides(config: CellConfig, instruction: Instruction) -> bool:
    """Whether the judge can decide about an instruction at all."""
    return instruction.rule is not None or not JUDGES.of(config.judge).traits.needs_rules


def _types_of(agenda: AgendaConfig, drawn: set[str]) -> list[str]:
    """The types that the agenda can bring, in the order of its axis."""
    weights = agenda.weights()
    return [name for name in weights if name in drawn or (agenda.sequence is None and weights[name] > 0)]


def _types(names: list[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _able(tasks: tuple[Task, ...]) -> str:
    """The judges of instructions that need no rule, as the words that choose them."""
    languages = {task.target.language for task in tasks}
    able = [each.name for each in JUDGES if not each.traits.needs_rules and ADHERENCE in each.traits.questions
            and (each.traits.languages is None or languages <= each.traits.languages)]  # fmt: skip
    return " or ".join(f"judge={name}" for name in able)
