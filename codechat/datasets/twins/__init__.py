"""Twins of a dataset: the same tasks with other names, or in other words, to see how much of a score is memory."""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.seeding import generator
from codechat.base.template import counted
from codechat.datasets.reading.lines import read_values
from codechat.datasets.tasks import Dataset, Task
from codechat.datasets.twins.examples import Plan, find, results_of
from codechat.datasets.twins.prose import places, with_name
from codechat.sandbox.languages.python.renaming import renamed
from codechat.sandbox.languages.python.syntax import parameters, parse, signature_of
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls

VERBS = (
    "compute", "derive", "produce", "obtain", "resolve", "evaluate", "prepare", "make", "form", "give", "handle",
    "process",
)  # fmt: skip
NOUNS = ("answer", "outcome", "output", "response", "reply", "finding", "conclusion", "product", "reading", "report")
THINGS = (
    "given", "supplied", "content", "subject", "material", "matter", "piece", "detail", "portion", "entity", "source",
    "basis", "stuff", "parcel", "thing", "member", "asset", "artifact", "specimen", "sample", "cargo", "exhibit",
    "datum", "instance", "article", "payload", "feed",
)  # fmt: skip
LETTERS = "bcdefghjkmnpqrtuvwxyz"
"""For names of one letter, which sentences read as quantities. New names are neutral: they say nothing of the task."""
FORM = "a line is one JSON object with task_id and prompt"
OTHERS = "leave the tasks out by dataset.tasks or dataset.exclude, or choose dataset.twin=reworded"


class Rewording(BaseModel):
    """A row of `dataset.rewordings`. Further fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_id: str
    prompt: str = Field(min_length=1)


def reworded_twin(dataset: Dataset, path: str | None, chosen: Collection[str]) -> Dataset:
    """The dataset with the statements of a file. Raises `UserError` if one of the `chosen` tasks has none there, or if
    a statement lost the function or its head."""
    if path is None:
        raise UserError("dataset.twin=reworded needs dataset.rewordings", "construct recipe=rewordings makes the file")
    known = {task.task_id: task for task in dataset.tasks}
    texts: dict[str, str] = {}

    def read(row: Mapping[str, object]) -> None:
        rewording = Rewording.model_validate(row)
        if (task := known.get(rewording.task_id)) is None:
            return
        if task.task_id in texts:
            raise ValueError(f"the task {task.task_id} is there twice")
        if problem := lost_by(rewording.prompt, task.prompt, task.target.entry_point):
            raise ValueError(f"{task.task_id}: {problem}")
        texts[task.task_id] = rewording.prompt

    for _ in read_values(Path(path).expanduser(), read, FORM, "dataset.rewordings"):
        pass
    if missing := [name for name in known if name in chosen and name not in texts]:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise UserError(
            f"{path} has no rewording of {counted(len(missing), 'chosen task')}: {shown}",
            "make them by construct recipe=rewordings, or leave the tasks out by dataset.exclude",
        )
    tasks = tuple(replace(task, prompt=texts.get(task.task_id, task.prompt)) for task in dataset.tasks)
    return _twin(dataset, "reworded", tasks, f"the statements of {counted(len(texts), 'task')} are reworded")


def lost_by(prompt: str, original: str, entry_point: str) -> str:
    """What a rewording lost of the original prompt, in words; empty if it may stand for it. A prompt that is the
    beginning of a program must stay one, with the same head of the function."""
    if entry_point and not re.search(rf"(?<!\w){re.escape(entry_point)}(?!\w)", prompt):
        return f"the prompt does not name {entry_point}"
    old, new = (signature_of(text, entry_point) if entry_point else None for text in (original, prompt))
    if old is not None and new != old:
        return f"the prompt must be Python with the head '{old}'" + (f", and has '{new}'" if new else "")
    return ""


def renamed_twin(dataset: Dataset, seed: int) -> Dataset:
    """The dataset with other names of functions and parameters, and other examples, by the seed. Raises `UserError` for
    a task that cannot be renamed for certain."""
    drafts = [_Draft.of(task, seed) for task in dataset.tasks]
    plans = [_plan(draft, task, seed) for draft, task in zip(drafts, dataset.tasks, strict=True)]
    results = iter(results_of([plan for plan in plans if plan is not None]))
    changed = [plan.texts(next(results)) if plan is not None else [] for plan in plans]
    tasks = tuple(draft.task(task, texts) for draft, task, texts in zip(drafts, dataset.tasks, changed, strict=True))
    shown = sum(len(plan.examples) for plan in plans if plan is not None)
    replaced = f"{sum(map(len, changed)) // 2} of {counted(shown, 'example')} replaced"
    return _twin(dataset, "renamed", tasks, f"names changed by dataset.twin_seed={seed}, {replaced}", seed)


def _twin(dataset: Dataset, kind: str, tasks: tuple[Task, ...], how: str, seed: int = 0) -> Dataset:
    texts = [[task.prompt, task.target.entry_point, task.target.signature] for task in tasks]
    said = f"a twin of {dataset.name}: {how}"
    return replace(
        dataset,
        name=f"{dataset.name}_{kind}",
        tasks=tasks,
        content_hash=content_hash([dataset.content_hash, kind, seed, texts]),
        remark="; ".join(filter(None, [dataset.remark, said])),
        details=(*dataset.details, said),
    )


def _plan(draft: "_Draft", task: Task, seed: int) -> Plan | None:
    """The examples of a task; None if it has none that can be replaced."""
    if not isinstance(task.suite, Calls):
        return None
    parts = places(draft.prompt, is_program=draft.is_program)
    examples = [each for part in parts for each in find(draft.prompt, part, task.target.entry_point)]
    return Plan.of(examples, task.suite, generator(seed, task.task_id, "twin's examples")) if examples else None


@dataclass(frozen=True)
class _Draft:
    """A task whose code has its new `names`, but whose prose has the old ones: the prompt, the reference, the snippets
    of each suite of assertions by their places, and the contract, None if it cannot be renamed for certain."""

    names: Mapping[str, str]
    functions: Collection[str]
    is_program: bool
    prompt: str
    reference: str
    snippets: Mapping[int, tuple[str, ...]]
    contract: str | None

    @classmethod
    def of(cls, task: Task, seed: int) -> "_Draft":
        """Raises `UserError` if the task is not in Python, or has tests that are not understood."""
        reference = _reference_of(task)
        is_program = (
            reference.startswith(task.prompt) and signature_of(task.prompt, task.target.entry_point) is not None
        )
        begun = parse(task.prompt) or parse(task.prompt + "\n    pass\n") if is_program else None
        defined = [node.name for node in (begun.body if begun else []) if isinstance(node, ast.FunctionDef)]
        functions = list(dict.fromkeys((task.target.entry_point, *defined)))
        tree = parse(reference)
        assert tree is not None, f"{task.task_id} has a reference that was parsed before"
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
        taken = list(dict.fromkeys(each.arg for node in own for each in parameters(node)))
        suites = {n: each.snippets for n, each in enumerate(task.suites) if isinstance(each, Assertions)}
        texts = [*task.texts(), reference, task.contract or "", *(text for each in suites.values() for text in each)]
        new = _new_names(texts, functions, [name for name in taken if name not in functions], seed, task.task_id)
        draft = cls({}, functions, is_program, task.prompt, reference, suites, task.contract)
        for name in (*taken, *functions):  # first the parameters, which are found by the functions' old names
            if name in new and name not in draft.names:
                draft = draft._with(name, new[name]) or draft
        if task.target.entry_point not in draft.names:
            raise UserError(f"{task.task_id}: {task.target.entry_point} cannot be renamed for certain", OTHERS)
        return draft

    def _with(self, old: str, new: str) -> "_Draft | None":
        """The draft with another name, None if that is not certain."""
        functions = [self.names.get(name, name) for name in self.functions]

        def change(text: str) -> str:
            if (changed := renamed(text, old, new, functions)) is None:
                raise ValueError(old)
            return changed

        try:
            reference = change(self.reference)
            prompt = self.prompt if not self.is_program else _of_beginning(self.prompt, change)
            snippets = {number: tuple(map(change, each)) for number, each in self.snippets.items()}
        except (ValueError, SyntaxError):
            return None
        if self.is_program and not reference.startswith(prompt):
            return None
        contract = self.contract and renamed(self.contract, old, new, functions)
        code: dict[str, Any] = {"prompt": prompt, "reference": reference, "snippets": snippets, "contract": contract}
        return replace(self, names={**self.names, old: new}, **code)

    def task(self, task: Task, examples: Sequence[tuple[slice, str]]) -> Task:
        """The twin of the task, with the new texts of examples at their places in the prompt."""
        prompt = self.prompt
        for place, text in reversed(examples):
            prompt = prompt[: place.start] + text + prompt[place.stop :]
        for part in reversed([*places(prompt, is_program=self.is_program)]):
            prompt = prompt[: part.start] + self._prose(prompt[part]) + prompt[part.stop :]
        reference = prompt + self.reference[len(self.prompt) :] if self.is_program else self.reference
        entry_point = self.names[task.target.entry_point]
        target = replace(task.target, entry_point=entry_point, signature=signature_of(reference, entry_point) or "")
        suites = [
            replace(each, entry_point=entry_point, reference=reference)
            if isinstance(each, Calls)
            else replace(each, snippets=self.snippets[number], reference=each.reference and reference)
            for number, each in enumerate(task.suites)
            if isinstance(each, Calls | Assertions)
        ]
        own = suites.pop(0) if task.suite is not None else None
        requirements = tuple(
            replace(each, text=self._prose(each.text), suite=suite)
            for each, suite in zip(task.requirements, suites, strict=True)
        )
        code: dict[str, Any] = {"prompt": prompt, "target": target, "reference": reference, "contract": self.contract}
        return replace(task, **code, suite=own, requirements=requirements)

    def _prose(self, text: str) -> str:
        for old, new in self.names.items():
            text = with_name(text, old, new, is_function=old in self.functions)
        return text


def _reference_of(task: Task) -> str:
    """The reference. Raises `UserError` if the task is of another kind than can be renamed."""
    kinds = [each.kind for each in task.suites if type(each) not in (Calls, Assertions)]
    problem = (
        f"is in {task.target.language}"
        if task.target.language != "python"
        else f"has tests of the kind {kinds[0]}"
        if kinds
        else "has more texts than a prompt and tests"
        if type(task) is not Task
        else "has no reference and function"
        if task.reference is None or not task.target.entry_point
        else ""
    )
    if problem or task.reference is None:
        raise UserError(f"dataset.twin=renamed: {task.task_id} {problem}, and is not renamed", OTHERS)
    return task.reference


def _of_beginning(prompt: str, change: Callable[[str], str]) -> str:
    """The change of a prompt that is the beginning of a program, with or without a body. Raises `SyntaxError`."""
    body = "" if parse(prompt) is not None else "\n    pass\n"
    return change(prompt + body).removesuffix(body)


def _new_names(
    texts: Sequence[str], functions: Collection[str], others: Sequence[str], seed: int, task: str
) -> dict[str, str]:
    """A new name for every function and parameter, which no text has as a word, and no builtin or keyword is."""
    rng = generator(seed, task, "twin's names")
    taken = {word.casefold() for text in texts for word in re.findall(r"\w+", text)}
    taken |= {*dir(builtins), *keyword.kwlist, *keyword.softkwlist}
    verbs = [name for verb in VERBS for noun in NOUNS if (name := f"{verb}_{noun}") not in taken]
    letters = [name for name in LETTERS if name not in taken]
    things = [name for name in THINGS if name not in taken]
    short, longer = ([name for name in others if (len(name) == 1) is is_short] for is_short in (True, False))
    return {
        old: new
        for old_names, words in ((functions, verbs), (short, letters), (longer, things))
        for old, new in zip(old_names, rng.sample(words, len(words)), strict=False)
    }
