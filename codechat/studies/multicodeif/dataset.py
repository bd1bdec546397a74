"""MultiCodeIF: tasks in many languages, each with constraints on the code; and chains of four levels of them.

A line of its file is a task: `task_id`, `level` (`single`, or `L1` to `L4` of a `chain`), `category`,
`constraint_type`, `language`, `answer` and `prompt`; in chains also `answers_cumulative`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from codechat.config import original_option, place_option, run_option
from codechat.constraints import Constraint, ConstraintType, constraint_types
from codechat.datasets import DATASETS, DatasetConfig, compared
from codechat.datasets.reading.lines import read_values
from codechat.domain import Target
from codechat.errors import UserError, nearest
from codechat.files import content_hash
from codechat.languages import language_of
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from codechat.tasks import Dataset

REMEDY = (
    "give MultiCodeIF's task file: one JSON object a line, with task_id, level, category, constraint_type and answer"
)
STRUCTURES = "data_structure"
LEVELS = ("L1", "L2", "L3", "L4")


class MultiCodeIFRow(BaseModel):
    """One task of the file. `category` and `constraint_type` are as published, `language` is null in 41 tasks."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_id: str = Field(min_length=1)
    level: Literal["single", "L1", "L2", "L3", "L4"]
    category: str
    constraint_type: str
    language: str | None
    answer: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    chain: int | None = None
    answers_cumulative: list[str] = []


class MultiCodeIFConfig(DatasetConfig):
    """Options of `multicodeif`."""

    kind: Literal["multicodeif"] = original_option("multicodeif", "which dataset")
    path: str = place_option(..., "the task file, .jsonl or .jsonl.gz", min_length=1)
    part: Literal["single", "levels"] = run_option("single", "tasks of one constraint, or chains of four levels")
    level: Literal["L1", "L2", "L3", "L4"] | None = run_option(
        None, "of part=levels: take every chain at this level alone, as a task with all constraints so far"
    )
    categories: list[str] | None = run_option(None, "take these categories only, by either name", min_length=1)
    types: list[str] | None = run_option(None, "take these types of constraints only, by either name", min_length=1)
    languages: list[str] | None = run_option(None, "take these languages only, in any spelling; none: without one")

    @model_validator(mode="after")
    def _level_of_chains(self) -> Self:
        if self.level is not None and self.part != "levels":
            raise ValueError("dataset.level takes a level of chains: add dataset.part=levels")
        return self

    @field_validator("categories")
    @classmethod
    def _known_categories(cls, names: list[str] | None) -> list[str] | None:
        return _known(
            names, {name for kind in constraint_types() for name in (kind.category, kind.published[0])}, "category"
        )

    @field_validator("types")
    @classmethod
    def _known_types(cls, names: list[str] | None) -> list[str] | None:
        return _known(names, {name for kind in constraint_types() for name in (kind.name, kind.published[1])}, "type")


def _known(names: list[str] | None, known: set[str], what: str) -> list[str] | None:
    """The names, if all are known. Raises `ValueError` otherwise."""
    for name in names or ():
        if name not in known:
            raise ValueError(f"no {what} of constraints is called '{name}'; {nearest(name, known)}")
    return names


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
"""The contents of the published file by part and level: beside others the paper's figures do not stand."""


@DATASETS.register("multicodeif", MultiCodeIFConfig)
def multicodeif(config: MultiCodeIFConfig) -> Dataset:
    """MultiCodeIF: 1,526 tasks with a constraint on the code, or 165 chains of four levels (dataset.path)."""
    rows: list[MultiCodeIFRow] = []
    tasks: list[ConstrainedTask] = []
    places: dict[str, str] = {}
    chains: dict[int, list[Level]] = {}
    path = Path(config.path).expanduser()
    for place, (row, level) in read_values(path, lambda value: _parse(value, config.part), REMEDY):
        if level is None:
            continue
        rows.append(row)
        name = row.task_id if row.level == "single" else f"chain/{row.chain}"
        places.setdefault(name, place)
        if row.level == "single":
            tasks.append(_task(name, [level], row))
        else:
            chain = chains.setdefault(row.chain or 0, [])
            chain.append(level)
            places[f"{name}/{row.level}"] = place
            if row.level != LEVELS[len(chain) - 1 if len(chain) <= len(LEVELS) else -1]:
                raise UserError(f"{place}: the level {row.level} of {name} does not follow the one before", REMEDY)
            if row.level == LEVELS[-1]:
                tasks.append(_task(name, chain, row))
    if not rows:
        raise UserError(f"{path} holds no task of the part {config.part}", REMEDY)
    if config.level is not None:
        tasks = [_cut(task, config.level) for task in tasks]
    chosen = tuple(task for task in tasks if _chosen(task, config))
    if not chosen:
        raise UserError("the dataset has no task of these categories, types and languages", "choose fewer at once")
    content = [*(row.model_dump() for row in rows), *([config.level] if config.level else [])]
    found = Dataset("multicodeif", chosen, content_hash(content), places)
    return compared(found, "MultiCodeIF's as published", PUBLISHED)


def _parse(value: dict[str, Any], part: str) -> tuple[MultiCodeIFRow, Level | None]:
    """The row, and its level; None if it is of the other part. Raises `ValueError` that names the task."""
    row = MultiCodeIFRow.model_validate(value)
    if (row.level == "single") != (part == "single"):
        return row, None
    try:
        if row.level == "single":
            constraints: tuple[Constraint, ...] = (_constraint(_type(row.category, row.constraint_type), row.answer),)
        else:
            if row.chain is None or len(row.answers_cumulative) != LEVELS.index(row.level) + 1:
                raise ValueError("a level needs its chain, and in answers_cumulative an answer for each level up to it")
            constraints = tuple(_constraint(_by_form(answer), answer) for answer in row.answers_cumulative)
    except ValueError as error:
        raise ValueError(f"the task {row.task_id}: {error}") from error
    return row, Level(row.level, row.prompt, constraints)


def _constraint(kind: ConstraintType, answer: str) -> Constraint:
    return Constraint(kind.name, kind.read(answer))


def _type(category: str, name: str) -> ConstraintType:
    """The type of a category's and a type's name, published or ours. Raises `ValueError` if there is none."""
    for kind in constraint_types():
        if category in (kind.category, kind.published[0]) and name in (kind.name, kind.published[1]):
            return kind
    raise ValueError(f"no constraint type is called {category}/{name}")


def _by_form(answer: str) -> ConstraintType:
    """The type of a data structure's constraint, which the chains do not name: by the form of its answer."""
    if answer.strip(" ;").count(";") < 2:
        return _type(STRUCTURES, "type")
    return _type(STRUCTURES, "operation" if "[" in answer else "size")


def _task(name: str, levels: list[Level], row: MultiCodeIFRow) -> ConstrainedTask:
    language = language_of(row.language).names[0] if row.language else ""
    return ConstrainedTask(name, levels[0].prompt, Target(language), level=levels[0].name, levels=tuple(levels))


def _cut(chain: ConstrainedTask, name: str) -> ConstrainedTask:
    """A chain at one level."""
    level = chain.levels[LEVELS.index(name)]
    return replace(chain, task_id=f"{chain.task_id}/{name}", prompt=level.prompt, level=name, levels=(level,))


def _chosen(task: ConstrainedTask, config: MultiCodeIFConfig) -> bool:
    kinds = [_type_of(constraint) for level in task.levels for constraint in level.constraints]
    languages = None if config.languages is None else {_language(name) for name in config.languages}
    return (
        (
            config.categories is None
            or any({kind.category, kind.published[0]} & set(config.categories) for kind in kinds)
        )
        and (config.types is None or any({kind.name, kind.published[1]} & set(config.types) for kind in kinds))
        and (languages is None or task.target.language in languages)
    )


def _type_of(constraint: Constraint) -> ConstraintType:
    return next(kind for kind in constraint_types() if kind.name == constraint.type)


def _language(name: str) -> str:
    return "" if name.lower() == "none" else language_of(name).names[0]
