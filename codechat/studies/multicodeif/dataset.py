"""MultiCodeIF: tasks in many languages, each with constraints on the code; and chains of levels of them.

A line of its file is a task: `task_id`, `level` (`single`, or `L1`, `L2`, … of a `chain`), `category`,
`constraint_type`, `language`, `answer` and `prompt`; in chains also `answers_cumulative`. Lines of `codechat construct`
also have `types_cumulative`, a `witness` and `reviewed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from codechat.base.config import original_option, place_option, run_option
from codechat.base.domain import Target
from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash
from codechat.datasets import DATASETS, DatasetConfig, compared
from codechat.datasets.reading.lines import read_values
from codechat.datasets.tasks import Dataset
from codechat.sandbox.languages import language_of
from codechat.studies.multicodeif.constraints import Constraint, ConstraintType, constraint_type, constraint_types
from codechat.studies.multicodeif.rows import ONLY_LEVEL, ConstrainedTask, Level

REMEDY = (
    "give MultiCodeIF's task file: one JSON object a line, with task_id, level, category, constraint_type and answer"
)
LEVEL = r"L[1-9]\d?"
LATER = {"types_cumulative", "witness", "reviewed"}
"""Fields that the published file lacks: its content's hash is without them."""


class MultiCodeIFRow(BaseModel):
    """One task of the file. `category` and `constraint_type` are as published or ours, `language` is null in 41 tasks.

    `types_cumulative` names the type of every answer in `answers_cumulative`; published chains have data structures
    alone, whose type follows from the form. `witness` is a program that keeps all constraints, `reviewed` is false
    until people confirm the task.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_id: str = Field(min_length=1)
    level: str = Field(pattern=rf"^(?:single|{LEVEL})$")
    category: str
    constraint_type: str
    language: str | None
    answer: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    chain: int | str | None = None
    answers_cumulative: list[str] = []
    types_cumulative: list[str] = []
    witness: str | None = None
    reviewed: bool | None = None

    @property
    def number(self) -> int:
        """The level as a number; 0 of a single task."""
        return 0 if self.level == ONLY_LEVEL else int(self.level[1:])

    def content(self) -> dict[str, Any]:
        """The row's part of the content hash."""
        return self.model_dump(exclude=LATER - self.model_fields_set)


class MultiCodeIFConfig(DatasetConfig):
    """Options of `multicodeif`."""

    kind: Literal["multicodeif"] = original_option("multicodeif", "which dataset")
    path: str = place_option(..., "the task file, .jsonl or .jsonl.gz", min_length=1)
    part: Literal["single", "levels"] = run_option(
        "single", "tasks of one constraint, or chains of levels; the first levels, in a file without single tasks"
    )
    level: str | None = run_option(
        None, "of part=levels: take every chain at this level alone, as a task with all constraints so far",
        pattern=rf"^{LEVEL}$",
    )  # fmt: skip
    categories: list[str] | None = run_option(None, "take these categories only, by either name", min_length=1)
    types: list[str] | None = run_option(None, "take these types of constraints only, by either name", min_length=1)
    languages: list[str] | None = run_option(None, "take these languages only, in any spelling; none: without one")

    @model_validator(mode="after")
    def _level_of_chains(self) -> Self:
        if self.level is not None and self.part != "levels":
            raise ValueError("dataset.level takes a level of chains: add dataset.part=levels")
        return self

    @field_validator("categories", "types")
    @classmethod
    def _known(cls, names: list[str] | None, info: ValidationInfo) -> list[str] | None:
        of, what = (_categories, "category") if info.field_name == "categories" else (_types, "type")
        known = {name for kind in constraint_types() for name in of(kind)} if names else set[str]()
        for name in names or ():
            if name not in known:
                raise ValueError(f"no {what} of constraints is called '{name}'; {nearest(name, known)}")
        return names


def _categories(kind: ConstraintType) -> set[str]:
    return {kind.category, kind.published[0]}


def _types(kind: ConstraintType) -> set[str]:
    return {kind.name, kind.published[1]}


PUBLISHED = frozenset(
    {
        "267b398bd6c66b8e01df6c68b7d4922acb83aa3b7e12145bfed7f0b0e7e84a9b",  # part=single
        "8dec1d9625bce7c90201c7f28af417b7dd158e6eaa52bd2915fb7a24607d1753",  # part=levels, and each level alone
        "464d8bac825dff33e3af209338e2f7cfd493ee8a8c44491b7ebedf026b56110d",
        "33edc2b5ea16c812fa7a9c9d193793019c9b073e2de65c336b7a79b4100f5d92",
        "dc8e068796baf9fb3c1f880a42e4c8762e609cc5f54f65b83301cb95b66c0d6e",
        "74859fccbeede7417590699a7976482d49c52d659f4e3d23fa96d111db142a92",
    }
)
"""The contents of the published file by part and level: the paper's numbers are shown for these alone."""


@dataclass
class Part:
    """The single tasks of a file, or its chains, with the rows of each and the places in the file."""

    rows: list[MultiCodeIFRow] = field(default_factory=list)
    tasks: list[ConstrainedTask] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)


@DATASETS.register("multicodeif", MultiCodeIFConfig)
def multicodeif(config: MultiCodeIFConfig) -> Dataset:
    """MultiCodeIF: 1,526 tasks with a constraint on the code, or 165 chains of four levels (dataset.path)."""
    path = Path(config.path).expanduser()
    found = read_part(path, config.part)
    if not found.tasks:
        raise UserError(f"{path} holds no task of the part {config.part}", REMEDY)
    tasks, number = found.tasks, int(config.level[1:]) if config.level else 0
    if number:
        tasks = [cut(task, number) for task in tasks if len(task.levels) >= number]
        if not tasks:
            raise UserError(f"{path} has no chain with the level {config.level}", "choose a lower dataset.level")
    chosen = tuple(task for task in tasks if _chosen(task, config))
    if not chosen:
        raise UserError("the dataset has no task of these categories, types and languages", "choose fewer at once")
    content = [*(row.content() for row in found.rows), *([config.level] if config.level else [])]
    open_ = sum(row.reviewed is False for row in found.rows)
    remark = f"{open_} of {len(found.rows)} tasks are unreviewed: people have not confirmed that they are sound"
    made = Dataset("multicodeif", chosen, content_hash(content), found.places, remark=remark if open_ else "")
    return compared(made, "MultiCodeIF's as published", PUBLISHED)


def read_part(path: Path, part: Literal["single", "levels"]) -> Part:
    """The single tasks of a file, or its chains of two levels and more; none if it has none.

    Raises `UserError` with the place of a row that cannot be read, or that does not follow the level before it.
    """
    rows = [(place, *parsed) for place, parsed in read_values(path, lambda value: _parse(value, part), REMEDY)]
    single = part == "single"
    only_single = single and any(row.level == ONLY_LEVEL for _, row, _ in rows)
    found, chains = Part(), dict[str, list[tuple[MultiCodeIFRow, Level]]]()
    for place, row, level in rows:
        if level is None or (only_single and row.level != ONLY_LEVEL):
            continue
        name = row.task_id if single else f"chain/{row.chain}"
        found.rows.append(row)
        found.places.setdefault(name, place)
        if single:
            found.tasks.append(_task(name, [(row, level)]))
            continue
        chain = chains.setdefault(name, [])
        chain.append((row, level))
        found.places[f"{name}/{row.level}"] = place
        if row.number != len(chain):
            raise UserError(f"{place}: the level {row.level} of {name} does not follow the one before", REMEDY)
    found.tasks += (_task(name, chain) for name, chain in chains.items() if len(chain) > 1)
    return found


def read_prompts(path: Path) -> dict[str, str]:
    """The prompts of all tasks of a file, single ones and levels, by id. Raises `UserError` as `read_part` does."""
    return {row.task_id: row.prompt for _, row in read_values(path, MultiCodeIFRow.model_validate, REMEDY)}


def _parse(value: dict[str, Any], part: str) -> tuple[MultiCodeIFRow, Level | None]:
    """The row and its level, None for a row of the other part. Raises `ValueError` that names the task."""
    row = MultiCodeIFRow.model_validate(value)
    if row.number > 1 if part == "single" else row.number == 0:
        return row, None
    try:
        if row.number == 0:
            constraints: tuple[Constraint, ...] = (Constraint.of(_type(row.category, row.constraint_type), row.answer),)
        else:
            answers, types = row.answers_cumulative, row.types_cumulative
            if row.chain is None or len(answers) != row.number or (types and len(types) != len(answers)):
                raise ValueError("a level needs its chain, and in answers_cumulative an answer for each level up to it")
            constraints = tuple(map(Constraint.of, types or map(_by_form, answers), answers))
    except ValueError as error:
        raise ValueError(f"the task {row.task_id}: {error}") from error
    return row, Level(row.level, row.prompt, constraints)


def _type(category: str, name: str) -> str:
    """Our name of a type, given by category and type, published or ours. Raises `ValueError` if there is none."""
    for kind in constraint_types():
        if category in _categories(kind) and name in _types(kind):
            return kind.name
    raise ValueError(f"no constraint type is called {category}/{name}")


def _by_form(answer: str) -> str:
    """The type of a data structure's constraint, which the chains do not name: by the form of its answer."""
    if answer.strip(" ;").count(";") < 2:
        return "data_structure_type"
    return "data_structure_operation" if "[" in answer else "data_structure_size"


def _task(name: str, rows: Sequence[tuple[MultiCodeIFRow, Level]]) -> ConstrainedTask:
    """The task of these levels. A witness of all constraints is its reference."""
    last, levels = rows[-1][0], tuple(level for _, level in rows)
    target = Target(language_of(last.language).names[0] if last.language else "")
    first = levels[0]
    return ConstrainedTask(name, first.prompt, target, reference=last.witness, level=first.name, levels=levels)


def cut(chain: ConstrainedTask, number: int) -> ConstrainedTask:
    """A chain at one of its levels."""
    level = chain.levels[number - 1]
    name = f"{chain.task_id}/{level.name}"
    return replace(chain, task_id=name, prompt=level.prompt, level=level.name, levels=(level,))


def _chosen(task: ConstrainedTask, config: MultiCodeIFConfig) -> bool:
    kinds = [constraint_type(constraint.type) for level in task.levels for constraint in level.constraints]
    if config.categories is not None and not any(_categories(kind) & {*config.categories} for kind in kinds):
        return False
    if config.types is not None and not any(_types(kind) & {*config.types} for kind in kinds):
        return False
    languages = config.languages
    return languages is None or task.target.language in {
        "" if name.lower() == "none" else language_of(name).names[0] for name in languages
    }
