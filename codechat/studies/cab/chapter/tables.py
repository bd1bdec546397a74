"""The tables of CodeAssistBench's paper over the report's cells, next to its printed values, and three more."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from codechat.base.environment import data_folder
from codechat.base.files import from_yaml
from codechat.base.records import SessionRecord
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Table, Value, columns_of
from codechat.report.generic.published import (
    ALL,
    MEASURED,
    PUBLISHED,
    Asked,
    beside,
    labels_table,
    per_cent,
    plain_name,
)
from codechat.report.generic.repeats import pooled_in, table_of_k
from codechat.report.generic.tables import named_table
from codechat.report.metrics.repeats import Part, all_of, any_of, mean_over_tasks, sizes
from codechat.report.metrics.statistics import TaskRatio
from codechat.studies.cab.dataset import PUBLISHED as PUBLISHED_ISSUES
from codechat.studies.cab.metrics import GRADES, VERBOSITIES
from codechat.studies.cab.turns import AssistJudgement

DATA = Path(__file__).with_name("published.yaml")
COHORTS: Mapping[str, str] = {"recent": "recent", "all_time": "all-time"}
"""The cohorts' names in metrics.json, and in words."""


@cache
def paper() -> Mapping[str, Any]:
    """The paper's Tables 1, 2 and 4 (`published.yaml`).

    Each of `COHORTS` has by model three triples by verdict (correct, partially correct, incorrect): shares in per cent,
    turns of the real thread, rounds. `pipeline` is Table 1: `languages`, then by count and cohort the total and the
    numbers of these languages. `issues` counts the paper's sample by cohort. `conditions` is Table 4 by language:
    labelled conditions, accurate ones, their share, and the share of complete lists, in per cent; `same` is the share
    of equal labels of two people, in per cent. `models` has the plain names of each of the paper's models.
    """
    data: dict[str, Any] = from_yaml(DATA.read_text(encoding="utf-8"))
    return data


def paper_name(model: str) -> str:
    """The paper's name of a model; empty if the paper has no such model."""
    names = (name for name, plains in paper()["models"].items() if plain_name(model) in plains)
    return next(names, "")


GROUP = "assist_paper"
WORDS: Mapping[str, str] = {
    "correct": "Correct", "partially_correct": "Partial", "incorrect": "Incorrect",
    "concise": "Terse", "appropriate": "Appropriate", "verbose": "Verbose",
}  # fmt: skip
SONNET = "Sonnet 3.7"  # the paper's name of the model that judged, and that spoke for the user in its released code
PER_CENT, TURNS = ".1f", ".2f"
OF_ISSUES: Mapping[str, str] = {
    "thread_turns": "Thread turns", "thread_replies": "Thread comments", "rounds": "Rounds",
}  # fmt: skip
SOURCE = (
    "Published: from CodeAssistBench's paper, not like for like: a balanced sample of its issues (194 recent ones, 350 "
    "of all time), judged by Sonnet 3.7 under prompts that are worded otherwise, at temperature 0. What else differs "
    "from its setup stands behind each of its rows, of the cell above it or else of the nearest one."
)
TABLE_4 = (
    "Published: the paper's Table 4, of 70 issues, ten of a language, that three people each labelled, all labels "
    "counted; lists are 30 of a language."
)
LISTS = 30  # Table 4's labels of whole lists of a language: ten issues, three people
NOWHERE = "What the paper prints stands here only if a cell has CodeAssistBench's published issues, and none has."


def correctness(comparison: Comparison[Any]) -> Table:
    """Verdicts by cohort, with the rounds and the turns of the real thread by verdict (the paper's Table 2)."""
    cells = [found.cell for found in comparison.in_order()]
    heads = [Column("cohort", cohort_head(cells)), Column("model", "Model"), Column("source", "Source")]
    several = len(comparison.datasets) > 1
    heads += [Column("dataset", "Dataset")] if several else []
    columns = [Column("n", "Issues", "d"), *(Column(f"{name}_share", f"{WORDS[name]}, %", PER_CENT) for name in GRADES)]
    for key, title in OF_ISSUES.items():
        columns += [Column(f"{key}_{name}", f"{title}, {WORDS[name].lower()}", TURNS) for name in GRADES]
    columns.append(Column("differs", "Not as in the paper"))
    known = [cell for cell in cells if is_published(cell)]
    rows: list[tuple[Value, ...]] = []
    for cohort, word in COHORTS.items():
        measured = []
        for cell in cells:
            own = _of_cohort(cell.metrics, cohort)
            place = (word, cell.label, MEASURED, *([cell.dataset] if several else []))
            name = paper_name(cell.model) if cell in known else ""
            measured.append((name, [(*place, *own, None)] if own else []))
        printed: dict[str, tuple[Value, ...]] = {}
        for name, (shares, turns, rounds) in paper()[cohort].items() if known else ():
            last = [cell for cell in known if paper_name(cell.model) == name][-1:]
            apart = sorted((len(found := differences(cell, cohort)), "; ".join(found)) for cell in last or known)
            head = (word, name, PUBLISHED, *([None] if several else []), paper()["issues"][cohort])
            unsaid = [None] * len(GRADES)  # the paper gives one count of turns
            printed[name] = (*head, *shares, *turns, *unsaid, *rounds, apart[0][1] or None)
        rows += beside(measured, printed)
    return Table(
        "assist_correctness", "Verdicts, rounds and turns of the real thread (as CodeAssistBench's Table 2)",
        (*heads, *columns), tuple(rows),
        "Shares of the decided issues of a cohort. Rounds: the user's replies until the dialogue ends; thread turns: "
        "the maintainers' turns of the real thread, comments in a row being one; thread comments: each is one; "
        "averaged over the issues of a verdict. The paper's turns lie between the two. "
        f"{SOURCE if known else NOWHERE} Intervals are in assist_by_cohort and assist_by_verdict.", GROUP,
    )  # fmt: skip


def cohort_head(cells: Sequence[LoadedCell]) -> str:
    """The head of a column of cohorts, with a note if an issue's date is used for its repository's older one."""
    by_issue = any(cell.metrics["counts"].get("cohort_by_issue", 1) for cell in cells)
    return f"Cohort{' (by the date of the issue)' if by_issue else ''}"


def differences(cell: LoadedCell, cohort: str) -> list[str]:
    """The differences, in words, between a cell and the setup of the paper's Table 2."""
    config, metrics = cell.config, cell.metrics
    protocol, environment = config.get("protocol") or {}, config.get("environment") or {}
    size, whole = metrics["n"]["by_cohort"]["rounds"].get(cohort, 0), paper()["issues"][cohort]
    found = [f"{size} of {whole} issues"] if size < whole else []
    if (config.get("dataset") or {}).get("sample") != "paper":
        found.append("not drawn by dataset.sample=paper")
    if environment.get("kind") != "docker":
        found.append(f"environment={environment.get('kind', 'none')}")
    shipped = data_folder("conf") / "prompts" / "assist" / "paper"
    prompts = protocol.get("prompts") or {}
    if any(prompts.get(path.stem) != path.read_text(encoding="utf-8") for path in shipped.glob("*.md")):
        found.append("other prompts than protocol.prompts=paper")
    usual = {"judged": "answer", "steps": 5, "explore": "every", "rounds": 10}
    found += [f"protocol.{key}={protocol.get(key)}" for key, value in usual.items() if protocol.get(key) != value]
    for role in ("user", "judge"):
        name = str(((protocol.get("roles") or {}).get(role) or {}).get("name"))
        if paper_name(name) != SONNET:
            found.append(f"{role} {name}")
    return found


def is_published(cell: LoadedCell) -> bool:
    """Whether a cell has the issues of a published file: figures of other issues are not comparable."""
    return cell.content in PUBLISHED_ISSUES


def _of_cohort(metrics: Mapping[str, Any], cohort: str) -> list[Value]:
    """A cell's figures of a cohort; empty if none of its issues was decided."""
    shares, sizes = metrics["by_cohort"], metrics["n"]["by_cohort"]
    if cohort not in shares.get("correct", {}):
        return []
    places = [f"{name}, {cohort}" for name in GRADES]
    turns = metrics["by_verdict_cohort"]
    return [
        sizes["correct"][cohort],
        *(100 * shares[name][cohort] for name in GRADES),
        *(turns.get(key, {}).get(place) for key in OF_ISSUES for place in places),
    ]


def languages(comparison: Comparison[Any]) -> Table:
    """Verdicts and verbosity by language and cohort, as in the paper's Figures 6 and 7."""
    names = (*GRADES, *VERBOSITIES)
    head = cohort_head([found.cell for found in comparison.in_order()])
    columns = [Column("language", "Language"), Column("cohort", head), Column("n", "Issues", "d")]
    columns += [Column(name, f"{WORDS[name]}, %", PER_CENT) for name in names]
    rows: list[tuple[SessionVerdicts, list[Value]]] = []
    for found in comparison.in_order():
        metrics = found.cell.metrics
        shares, sizes = metrics["by_language_cohort"], metrics["n"]["by_language_cohort"]
        for place in shares["rounds"]:
            language, cohort = place.rsplit(", ", 1)
            values = [per_cent(shares[name].get(place)) for name in names]
            rows.append((found, [language, COHORTS[cohort], sizes["rounds"][place], *values]))
    return named_table(
        comparison, columns, rows, name="assist_languages", group=GROUP,
        title="Verdicts and verbosity by language and cohort, % (as CodeAssistBench's Figures 6 and 7)",
        note="Issues: completed dialogues, undecided ones included, which are in no share. The paper prints no numbers "
        "for these figures.",
    )  # fmt: skip


def user_and_judge(comparison: Comparison[Any]) -> Table:
    """Satisfied users against correct verdicts."""
    counts = {
        "satisfied_correct": "Satisfied, correct",
        "satisfied_other": "Satisfied, not correct",
        "unsatisfied_correct": "Not satisfied, correct",
        "unsatisfied_other": "Not satisfied, not correct",
    }
    columns = [Column(key, title, "d") for key, title in counts.items()]
    columns += [Column("same", "Same, %", PER_CENT), Column("phi", "Phi", ".3f")]
    rows: list[tuple[SessionVerdicts, list[Value]]] = []
    for found in comparison.in_order():
        table = found.cell.metrics["user_and_judge"]
        total = sum(table[key] for key in counts)
        same = table["satisfied_correct"] + table["unsatisfied_other"]
        rows.append((found, [*(table[key] for key in counts), 100 * same / total if total else None, table["phi"]]))
    return named_table(
        comparison, columns, rows, name="assist_user_judge", group=GROUP, title="The user against the judge",
        note="Dialogues by whether the user was fully satisfied in the end, and whether the verdict is CORRECT; "
        "undecided ones are left out. Same: satisfied and correct, or neither. Phi is a dash if all users or all "
        "verdicts are alike.",
    )  # fmt: skip


def labelled(comparison: Comparison[Any]) -> Iterator[Table]:
    """People's labels, if the report has any; with the paper's Table 4 for the published issues alone."""
    known = any(is_published(found.cell) for found in comparison.in_order())
    table_4 = paper()["conditions"] if known else {}
    lists = {place: (LISTS * (len(table_4) - 1 if place == ALL else 1), row[3]) for place, row in table_4.items()}
    asked = {
        "extracted_condition": Asked(
            "Accurate conditions", "conditions of the data that say what the user needs",
            {place: (int(row[0]), row[2]) for place, row in table_4.items()}, paper()["same"],
        ),
        "extracted_conditions": Asked(
            "Complete lists", "issues whose conditions say all that the user needs", lists
        ),
        "condition": Asked("Right decisions", "the judge's decisions on conditions that are right"),
    }  # fmt: skip
    yield from labels_table(
        comparison, asked, "Language", name="assist_labels", group=GROUP,
        title="People's labels of conditions (as CodeAssistBench's Table 4)",
        note=f" {TABLE_4 if known else NOWHERE}",
    )  # fmt: skip


@dataclass
class Judged(SessionVerdicts):
    """A cell's sessions, and by issue whether each is judged correct; an undecided one is no sample.

    `issues` has each issue's language and a judgement; `faulted` the issue, language and judgement of each dialogue
    that is judged, and not correct.
    """

    correct: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    issues: dict[str, tuple[str, AssistJudgement]] = field(default_factory=dict)
    faulted: list[tuple[str, str, AssistJudgement]] = field(default_factory=list)

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        own = AssistJudgement.of(session)
        self.issues[session.task_id] = (session.language, own)
        if own.verdict is not None:
            correct = own.verdict.lower() == GRADES[0]
            self.correct[session.task_id].append(correct)
            self.faulted += [] if correct else [(session.task_id, session.language, own)]

    def of_k(self, k: int, part: Callable[[int, int, int], Part]) -> TaskRatio:
        """The share of issues of which any or all (`part`) of k samples are correct."""
        return mean_over_tasks({task: part(len(own), sum(own), k) for task, own in self.correct.items()})


def repeated(comparison: Comparison[Any]) -> Iterator[Table]:
    """The table of correct@k and correct^k, if an entrant pools several cells."""
    rows = [
        (found, (k,), [found.of_k(k, part) for part in (any_of, all_of)])
        for found in pooled_in(comparison) for k in sizes(found.cell.samples)
    ]  # fmt: skip
    titles = {"correct_any": "correct@k", "correct_all": "correct^k"}
    if rows:
        yield table_of_k(
            comparison, columns_of("d", k="k", tasks="Issues"), titles, rows,
            title="Correct in one of k samples, and in all", name="assist_repeats_correct", group=comparison.protocol,
            note="Unbiased: means over all choices of k of an issue's samples, then over the issues with k decided "
            "ones. correct@k: one of the k is CORRECT; correct^k: all k are. k = 1 is the share of correct verdicts, "
            "each issue with the same weight. Intervals: 95 %, resampled by issue, each with all its samples.",
        )  # fmt: skip
