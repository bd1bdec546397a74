"""How tasks of MultiCodeIF's kind are made (ConstraGen, the paper's section III).

The stages are in `writing.py` (concepts, draw, write, expand, witness) and `review.py` (redundancy, review, chains).
`sources.py` reads snippets and the values in `pools/`, `task.py` has the task and its demands. `checking.py` finds
published tasks that no program can pass.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

from pydantic import SerializeAsAny

from codechat.base.config import original_option, place_option, result_option, run_option
from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash, file_hash
from codechat.models import ModelConfig
from codechat.models.roles import role
from codechat.run.construct import RECIPES, Distributions, Item, Kit, Recipe, RecipeConfig, RecipeRoles, Stage
from codechat.run.protocols import Ask
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.multicodeif.checking import examine
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination
from codechat.studies.multicodeif.construct import writing
from codechat.studies.multicodeif.construct.checking import Check
from codechat.studies.multicodeif.construct.review import THRESHOLD, Filter, Review, Reviews, chains
from codechat.studies.multicodeif.construct.sources import Pool, Snippets, choose_pools, read_pools, read_snippets
from codechat.studies.multicodeif.construct.task import Made
from codechat.studies.multicodeif.dataset import read_prompts

EXPANDED = ["interface_specification", "data_structure", "code_quality"]
"""The categories that become chains in the paper."""
ESSENTIAL = {"draw", "write", "witness", "chains"}
"""Stages that cannot be left out."""


class ConstraintsRoles(RecipeRoles):
    """The models that make the tasks."""

    author: SerializeAsAny[ModelConfig] = role("gpt4_turbo", "model that names concepts and writes tasks")
    solver: SerializeAsAny[ModelConfig] = role("gpt5", "model whose programs show that a task can be passed")
    judge: SerializeAsAny[ModelConfig] | None = role(
        "gpt_oss_120b", "model that decides constraints that no rule decides", default=None
    )


class ConstraintsConfig(RecipeConfig):
    """Options of `recipe=constraints`."""

    kind: Literal["constraints"] = original_option("constraints", "which recipe")
    types: list[str] | None = result_option(None, "types of constraints; null: all that have a pool", min_length=1)
    languages: list[str] | None = result_option(None, "languages; null: all of the pools", min_length=1)
    number: int = result_option(10, "tasks of each type that are wanted, chains counted once", ge=1)
    levels: int = result_option(4, "levels of a chain: four in the published file; 1: single tasks", ge=1, le=99)
    expand: list[str] = result_option(
        EXPANDED, "categories, or types, whose tasks become chains, by constraints of the same", min_length=1
    )
    threshold: float = result_option(THRESHOLD, "ROUGE-L from which a prompt is redundant", gt=0, le=1)
    rounds: int = result_option(3, "times that what is missing of the number is asked for, the first included", ge=1)
    tries: int = result_option(3, "programs that the solver may write for a witness, and as many to be refused", ge=1)
    pools: str | None = place_option(None, "a folder of pools of your own, which come before the package's")
    against: str | None = place_option(None, "a file of tasks that new prompts must not resemble either")
    reviews: list[str] = run_option([], "label files of people: reviews=[FILE,FILE]")
    check: str | None = place_option(None, "find the tasks of this file that no program can pass, without a call")
    roles: ConstraintsRoles = original_option(..., "who makes the tasks")
    prompts: writing.ConstraintsPrompts = original_option(..., "each as a text or @FILE")

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options, with the content of the pools and of the tasks to compare with."""
        own = super().identity(older)
        if self.pools is not None:
            own["pools"] = content_hash([pool.model_dump() for pool in read_pools(self.pools).values()])
        for name, path in (("against", self.against), ("check", self.check)):
            if path is not None:
                own[name] = file_hash(Path(path).expanduser(), f"{name}=FILE names a file of tasks")
        return own


class Constraints:
    """The recipe's parts. Raises `UserError` for types, languages and pools that do not go together."""

    def __init__(self, config: ConstraintsConfig) -> None:
        if needed := sorted(ESSENTIAL & {*config.skip}):
            raise UserError(f"skip: without the stage {needed[0]} there is no task", "leave out other stages")
        self._config, pools = config, read_pools(config.pools)
        self._wanted = choose_pools(pools, config.types, config.languages)
        grown = _grown(pools, config) if config.levels > 1 else {}
        if grown.keys().isdisjoint(self._wanted):
            grown = {}
        self._pools = {**grown, **self._wanted}
        self.kinds = [pool.kind for pool in self._pools.values()]
        judged = [kind.name for kind in self.kinds if kind.by == "judge"]
        if judged and config.roles.judge is None:
            raise UserError(
                f"no rule decides the type {judged[0]}, and the role construct.roles.judge has no model",
                "model@construct.roles.judge=NAME, or choose types and expand without such types",
            )
        self.roles = ("author", "solver", *["judge"] * bool(judged))
        published = {} if config.against is None else read_prompts(Path(config.against).expanduser())
        reviews = Reviews(config.reviews)
        draw, author = writing.Draw(self._pools), writing.Author(config.prompts, self._pools)
        self.stages = [
            Stage("concepts", author.concepts),
            Stage("draw", draw.work),
            Stage("write", author.write),
            Stage("expand", writing.Expand(author, draw, [*grown], config.levels).work),
            Stage("redundancy", together=Filter(config.threshold, published, reviews).together),
            Stage("witness", writing.Witness(config.prompts, config.tries).work),
            Stage("review", together=Review(reviews, published).together),
            Stage("chains", together=chains),
        ]

    @cached_property
    def snippets(self) -> Snippets:
        """The user's snippets."""
        if self._config.seeds is None:
            raise UserError("recipe=constraints makes tasks from snippets of code", "seeds=FILE (docs/multicodeif.md)")
        return read_snippets(Path(self._config.seeds).expanduser())

    def seeds(self) -> Sequence[Item]:
        """The items of the first round: `number` tasks of every type, with the snippets in turns."""
        return [*self._items(Counter(dict.fromkeys(self._wanted, self._config.number)), [], 1)]

    def more(self, begun: Sequence[Item], kept: Sequence[Item]) -> Sequence[Item]:
        """The items of another round: what is missing of the number, until all rounds are used."""
        round_ = max(int(item.data["round"]) for item in begun)
        have = Counter(made.type for made in map(Made.of, kept) if made.level == 1)
        missing = Counter({name: self._config.number - have[name] for name in self._wanted})
        return [*self._items(+missing, begun, round_ + 1)] if round_ < self._config.rounds else []

    def _items(self, missing: Mapping[str, int], begun: Sequence[Item], round_: int) -> Iterator[Item]:
        numbers, used = Counter(str(item.data["type"]) for item in begun), self.snippets.used
        snippets = islice(cycle(used), len(begun) % len(used), None)
        for name, count in missing.items():
            for number in range(numbers[name], numbers[name] + count):
                yield Item(f"{name}/{number}", Made(name, number, round_, asdict(next(snippets))).data())

    async def prepare(self, items: Sequence[Item], kit: Kit) -> None:
        """Raises `UserError` if something is not installed that a rule or the classifier needs."""
        for pool in self._pools.values():
            for language, value in {language: value for value, language in pool.pairs()}.items():
                constraint = Constraint.of(pool.name, pool.answer_to(value, language))
                constraint.require()
                if isinstance(known := language_of(language), Parsed):
                    known.grammar.require()  # a witness must parse
            if pool.kind.by == "classifier":
                await examine(kit, kit.stage, [Examination(constraint, "x = 1", "guarded")])

    def row(self, item: Item) -> Mapping[str, Any]:
        """The line of a task: the paper's seven fields (III-A), and what else `dataset=multicodeif` needs."""
        made, kind = Made.of(item), constraint_type(Made.of(item).own.type)
        solved = [constraint_type(each.type).solved for each in made.demanded]
        answers = [made.witness if own else each.answer for own, each in zip(solved, made.demanded, strict=True)]
        return {
            "task_id": item.id,
            "level": f"L{made.level}",
            "previous_level_task_id": made.previous,
            "category": kind.category,
            "constraint_type": kind.name,
            "constraint": made.own.words,
            "prompt": made.prompt,
            "language": made.language,
            "chain": made.chain,
            "answer": answers[-1],
            "answers_cumulative": answers,
            "types_cumulative": [each.type for each in made.demanded],
            "witness": made.witness,
            "reviewed": made.reviewed,
            "nearest": [*made.nearest],
        }

    def distributions(self, rows: Sequence[Mapping[str, Any]]) -> Distributions:
        """Counts for the card."""
        counts: dict[str, Mapping[str, int]] = {
            name: dict(sorted(Counter(str(row[name]) for row in rows).items()))
            for name in ("constraint_type", "language", "level", "reviewed")
        }
        if self._config.seeds is None:  # the construction continues from items
            return counts
        left_out = {f"left out: {reason}": count for reason, count in self.snippets.left_out.items()}
        return {**counts, "snippets": {"used": len(self.snippets.used), **left_out}}

    def asks(self, item: Item) -> Iterator[Ask]:
        """The expected calls of a task: every reply is readable, and the first program is accepted."""
        made, prompts = Made.of(item), self._config.prompts
        code, prompt, program = len(made.snippet["code"]), 700, 2500
        grows = self._config.levels > 1 and {*self._pools} != {*self._wanted}
        levels = self._config.levels if grows else 1
        yield Ask("author", 0, len(prompts.concepts) + code, 200)
        yield Ask("author", 0, len(prompts.write) + code + 3000, prompt, times=levels)
        yield Ask("solver", 0, len(prompts.solve) + prompt + 200, program, times=2 * levels)
        if "judge" in self.roles:
            yield Ask("judge", 0, len(prompts.judge) + prompt + program, 300, times=2 * levels)


def _grown(pools: Mapping[str, Pool], config: ConstraintsConfig) -> Mapping[str, Pool]:
    """The pools of the types that are expanded, in the chosen languages. Raises `UserError` for an unknown name."""
    names = {name: {name, pool.kind.category, *pool.kind.published} for name, pool in pools.items()}
    known = set[str]().union(*names.values())
    for wanted in config.expand:
        if wanted not in known:
            problem = f"expand: no category or type of constraints is called '{wanted:.60}'"
            raise UserError(problem, nearest(wanted, known))
    expanded = {name: pool for name, pool in pools.items() if names[name] & {*config.expand}}
    return choose_pools(expanded, None, config.languages)


@RECIPES.register("constraints", ConstraintsConfig)
def constraints(config: ConstraintsConfig) -> Recipe:
    """Tasks with constraints on the code, each shown to be passable (MultiCodeIF's ConstraGen)."""
    if config.check is not None:
        check = Check(Path(config.check).expanduser())
        return Recipe(check.items, [Stage("check", check.work)])
    made = Constraints(config)
    return Recipe(
        made.seeds, made.stages, row=made.row, roles=made.roles, schemas=(writing.Concepts, writing.Written),
        sandbox=any(kind.by == "compiler" for kind in made.kinds), distributions=made.distributions,
        asks=made.asks, prepare=made.prepare, more=made.more, cell=("dataset=multicodeif", "protocol=repair"),
    )  # fmt: skip
