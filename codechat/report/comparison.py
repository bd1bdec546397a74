"""The cells of one protocol that a report compares, their sessions reduced to verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.records import SessionRecord, read_sessions
from codechat.models import MODELS
from codechat.report.metrics import Measures, caution_of
from codechat.report.metrics.statistics import TaskBootstrap

RESCORED = "rescored_from"  # of a rescored cell's config.yaml: the recorded cell's id. Such cells differ in the judge
REPLAYED = " (replay)"  # ends the name of a model whose recorded replies a cell holds


@dataclass(frozen=True, slots=True)
class Label:
    """The labels of a judged change: `followed` is 1 or 0, or the mean if several people labelled it. `cell` is the id
    of the cell whose judge decided it."""

    task: str
    scope: str
    adhered: bool
    followed: float
    cell: str = ""


@dataclass(frozen=True)
class JudgeLabels:
    """The labels of one judge's decisions in some cells. `sizes` holds by scope and verdict (adhered or not) the number
    of all decisions there, labelled or not."""

    judge: str
    sizes: Mapping[tuple[str, bool], int]
    labels: tuple[Label, ...]

    @cached_property
    def weights(self) -> Mapping[tuple[str, bool], float]:
        """By scope and verdict, the number of decisions that each label represents."""
        counts = Counter((one.scope, one.adhered) for one in self.labels)
        return {kind: self.sizes[kind] / count for kind, count in counts.items()}


@dataclass(frozen=True)
class LoadedCell:
    """One finished cell.

    `config` is the content of config.yaml, with `choices` (the option of every group); `metrics` is the content of
    metrics.json, checked by the protocol's chapter; `measures` describes it, None if unknown. `model` and `dataset` are
    the names in the records; `agenda` and `judge` are the chosen options, `agenda` empty if the sessions have none.
    `turns` is the largest number of a session's turns. `variant` names further settings that vary among the cells of
    the report and protocol, such as `agenda=iid, seed=1`; `differences` holds the parts by the options' keys.
    `content` is the hash of the dataset's content, or another identity of it. `departure` is a sentence if the dataset
    has the name of a benchmark but other tasks; `edited` is a sentence if the cell's files were changed after the run.
    `mark` ends `dataset` if different tasks have one name, or with a departure. `setup` has all settings that can
    change a result except model and dataset: cells of one setup may be averaged. `repeats` are the cells of one seed
    each that this cell pools, as several samples of a task. `labels` are people's labels of the judge's decisions,
    which correct the adherence, or the reason why they do not; None without an audit. `scored` has by question the
    scores of other labels (`audit.scoring.read_scores`). `results` has by name the folders of further results of a
    study's commands that hold this cell.
    """

    folder: Path
    cell_id: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    model: str
    dataset: str
    protocol: str
    agenda: str
    turns: int
    seed: int
    judge: str
    variant: str = ""
    measures: Measures | None = None
    content: str = ""
    departure: str = ""
    edited: str = ""
    mark: str = ""
    setup: str = ""
    differences: Mapping[str, str] = field(default_factory=dict)
    repeats: tuple["LoadedCell", ...] = ()
    labels: JudgeLabels | str | None = None
    scored: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Path] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The identity of the tasks, independent of the other cells of a report."""
        return self.content or self.dataset.removesuffix(f" ({self.mark})")

    @property
    def parts(self) -> tuple["LoadedCell", ...]:
        """The cells that were run: the pooled cells, or this one."""
        return self.repeats or (self,)

    @property
    def samples(self) -> int:
        """The sessions of each task, with errored ones."""
        return len(self.parts)

    @property
    def draw(self) -> int:
        """The seed of the agenda, which decides the order of every session's instructions."""
        seed = (self.config.get("agenda") or {}).get("seed") if self.agenda else None
        return self.seed if seed is None else int(seed)

    @property
    def seeds(self) -> str:
        """The seeds of the cells, and of agendas with a separate seed."""
        return ", ".join(str(c.seed) if c.draw == c.seed else f"{c.seed} with agenda {c.draw}" for c in self.parts)

    @property
    def label(self) -> str:
        """The model, with the variant if there are several."""
        if not self.variant:
            return self.model
        replayed = self.model.endswith(REPLAYED)
        return f"{self.model[:-1]}, {self.variant})" if replayed else f"{self.model} ({self.variant})"

    @property
    def setting(self) -> str:
        """The variant, or the agenda without one."""
        return self.variant or self.agenda

    def setting_without(self, key: str) -> str:
        """The variant without one key."""
        return ", ".join(words for name, words in self.differences.items() if name != key)

    @property
    def caution(self) -> str:
        """The warnings to read before the cell's figures; empty if there are none."""
        found = caution_of(self.metrics, self.departure)
        return f"{self.label}, {self.dataset}: {found}" if found else ""

    @property
    def settings(self) -> tuple[object, ...]:
        """All settings but model, dataset and seed. The turns are a setting only if an agenda fixes them."""
        return (self.agenda, self.turns if self.agenda else None, self.judge, self.variant)

    @property
    def is_twin(self) -> bool:
        """Whether the tasks are twins of a dataset's (`dataset.twin`)."""
        return bool((self.config.get("dataset") or {}).get("twin"))

    @property
    def is_baseline(self) -> bool:
        """Whether the model saw the reference solutions."""
        kind = (self.config.get("model") or {}).get("kind")
        return any(component.traits.baseline for component in MODELS if component.name == kind)

    def sessions(self) -> Iterator[SessionRecord]:
        """The sessions in dataset order, read one at a time; one seed after another."""
        for part in self.repeats:
            yield from part.sessions()
        if not self.repeats:
            yield from read_sessions(self.folder / "sessions.jsonl")


@dataclass
class SessionVerdicts:
    """One cell's completed sessions, reduced to verdicts.

    `tasks`, `passed` and `draws` have an entry per session: `passed` one verdict a turn, None for an unscored turn,
    `draws` the agenda's seed. A task has as many sessions as the cell has samples. `openings` holds the hashes of the
    different replies at turn 0; `overflowed` counts sessions that outgrew the model's context.
    """

    cell: LoadedCell
    tasks: list[str] = field(default_factory=list)
    passed: list[tuple[bool | None, ...]] = field(default_factory=list)
    draws: list[int] = field(default_factory=list)
    openings: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    overflowed: int = 0

    @classmethod
    def of(cls, cell: LoadedCell) -> Self:
        """Read a cell once, without keeping dialogues. Raises `UserError` if metrics.json has other counts."""
        found = cls(cell)
        for part in cell.parts:
            sessions, before = 0, len(found.tasks)
            for sessions, session in enumerate(part.sessions(), 1):  # noqa: B007  how many there are
                if session.status == "completed":
                    found.add(session)
                    found.draws.append(part.draw)
            if (sessions, len(found.tasks) - before) != (part.metrics["sessions"], part.metrics["completed"]):
                raise UserError(
                    f"{part.folder}: metrics.json counts {part.metrics['sessions']} sessions, "
                    f"sessions.jsonl holds {sessions}",
                    "run the cell again: it calls no model for what is there, and writes both anew",
                )
        return found

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        self.tasks.append(session.task_id)
        self.passed.append(tuple(turn.passed for turn in session.turns))
        self.openings[session.task_id].update(hash(turn.response) for turn in session.turns[:1])
        self.overflowed += session.ended == "context_overflow"

    @property
    def samples(self) -> Mapping[str, list[int]]:
        """The places of sessions by task."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, task in enumerate(self.tasks):
            places[task].append(place)
        return places

    @property
    def resamples(self) -> TaskBootstrap:
        """The cell's resamples, shared by cells over the same tasks of one dataset."""
        return resamples_of(tuple(sorted(set(self.tasks))), self.cell.dataset)


@lru_cache(maxsize=8)
def resamples_of(tasks: tuple[str, ...], dataset: str) -> TaskBootstrap:
    """Resamples of these tasks. Figures of two cells in the same resamples are paired by task."""
    return TaskBootstrap(tasks, int(content_hash(dataset)[:12], 16))


V = TypeVar("V", bound=SessionVerdicts)


@dataclass(frozen=True, eq=False)
class Comparison(Generic[V]):
    """All cells of one protocol, and what they measure. `cells` have a completed session and are in tables and figures;
    `loaded` are all. An entrant is a model with its variant, which has at most one cell per dataset."""

    measures: Measures
    cells: tuple[V, ...]
    loaded: tuple[LoadedCell, ...] = ()

    @property
    def protocol(self) -> str:
        return self.measures.protocol

    @property
    def datasets(self) -> list[str]:
        return sorted({found.cell.dataset for found in self.cells})

    @property
    def averaged(self) -> list[str]:
        """The datasets that a mean over datasets is of: without twins, which would count the same tasks again."""
        return sorted({cell.dataset for cell in originals_of([found.cell for found in self.cells])})

    @property
    def labels(self) -> list[str]:
        """Labels of the entrants, by model."""
        return list(dict.fromkeys(found.cell.label for found in sorted(self.cells, key=_by_model)))

    @property
    def models(self) -> list[str]:
        return sorted({found.cell.model for found in self.cells})

    @property
    def length(self) -> int | None:
        """N if all cells have the same, else None."""
        lengths = {found.cell.turns for found in self.cells}
        return lengths.pop() if len(lengths) == 1 else None

    @property
    def last_turn(self) -> str:
        """The last turn in titles: `9`, or `N−1` if cells differ in length."""
        return "N−1" if self.length is None else str(self.length - 1)

    def entrant(self, label: str) -> Mapping[str, V]:
        """An entrant's cells by dataset."""
        return {found.cell.dataset: found for found in self.cells if found.cell.label == label}

    def on(self, dataset: str) -> list[V]:
        """The cells of a dataset, in the order of `labels`."""
        return sorted((found for found in self.cells if found.cell.dataset == dataset), key=_by_model)

    def in_order(self) -> Iterator[V]:
        """All cells, dataset by dataset."""
        return (found for dataset in self.datasets for found in self.on(dataset))


def originals_of(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells that are on no twin of a dataset; all of them if there is nothing else."""
    return [cell for cell in cells if not cell.is_twin] or [*cells]


def _by_model(found: SessionVerdicts) -> tuple[str, str, int, str]:
    cell = found.cell
    return (cell.model, cell.agenda, cell.turns, cell.variant)
