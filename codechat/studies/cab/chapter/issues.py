"""What the issues of CodeAssistBench's cells are (the paper's Table 1 and Figure 5), and what the judge found wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from codechat.report.comparison import Comparison
from codechat.report.data import Column, Table, Value
from codechat.report.generic.published import MEASURED, PUBLISHED
from codechat.report.generic.tables import named_table
from codechat.studies.cab.chapter.tables import COHORTS, GROUP, Judged, cohort_head, is_published, paper
from codechat.studies.cab.metrics import GRADES, cohort_of_record
from codechat.studies.cab.tasks import LONG_THREAD
from codechat.studies.cab.turns import AssistJudgement

TOTAL = "total"
COUNTS: Mapping[str, str] = {
    "filtered": "Filtered issues", "docker": "With an environment", "built": "Built", "retained": "Issues retained",
}  # fmt: skip
TURNS = (*map(str, range(1, LONG_THREAD)), f"{LONG_THREAD}+")
MOST = 200  # judgements in the table of key issues


def issues_of(comparison: Comparison[Judged], dataset: str) -> Judged:
    """The cell of a dataset with the most issues: which issues there are does not depend on the model."""
    return max(comparison.on(dataset), key=lambda found: len(found.issues))


def by_language(comparison: Comparison[Judged]) -> Table:
    """Issues by language and cohort: all, with an environment to build, and built (the paper's Table 1)."""
    printed: Mapping[str, Mapping[str, Any]] = paper()["pipeline"]
    known = {name: issues_of(comparison, name) for name in comparison.datasets}
    published = any(is_published(found.cell) for found in known.values())
    named = {language for found in known.values() for language, _ in found.issues.values()}
    languages = [*printed["languages"]] if published else []
    languages += sorted(named - {*languages})
    head = cohort_head([found.cell for found in known.values()])
    columns = (Column("dataset", "Dataset"), Column("what", "Count"), Column("cohort", head),
               Column("source", "Source"), *(Column(each, each, "d") for each in (TOTAL, *languages)))  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for dataset, found in known.items():
        for key, words in COUNTS.items():
            for cohort, name in {TOTAL: TOTAL, **COHORTS}.items():
                if key != "filtered":
                    rows.append((dataset, words, name, MEASURED, *counted_in(found, key, cohort, languages)))
                if is_published(found.cell):
                    own = dict(zip((TOTAL, *printed["languages"]), printed[key][cohort], strict=True))
                    rows.append((dataset, words, name, PUBLISHED, *(own.get(each) for each in (TOTAL, *languages))))
    return Table(
        "assist_issues", "Issues by language (as CodeAssistBench's Table 1)", columns, tuple(rows),
        "Measured: the issues of the completed sessions of the cell that has most; built: whose own image was built in "
        "this cell. Filtered issues come before images are built: a cell has the retained ones alone. "
        f"{'Published: the counts of the paper, of its whole data.' if published else ''}", GROUP,
    )  # fmt: skip


def counted_in(found: Judged, key: str, cohort: str, languages: Sequence[str]) -> list[Value]:
    """A cell's issues of a count and a cohort: in total, and in each language."""
    counts: Counter[str] = Counter()
    for language, own in found.issues.values():
        counted = {"docker": own.needs_build, "built": own.needs_build and bool(own.could_be_built)}.get(key, True)
        if counted and cohort in (TOTAL, cohort_of_record(own)):
            counts.update((TOTAL, language))
    return [counts[each] for each in (TOTAL, *languages)]


def thread_turns(comparison: Comparison[Judged]) -> Table:
    """The lengths of the real threads by language (what the paper's Figure 5 draws)."""
    columns = (Column("dataset", "Dataset"), Column("language", "Language"), Column("n", "Issues", "d"),
               *(Column(f"turns_{each}", turns_text(each), ".3f") for each in TURNS))  # fmt: skip
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (dataset, language, counts.total(), *(counts[each] / counts.total() for each in TURNS))
        for dataset in comparison.datasets
        for language, counts in thread_lengths(issues_of(comparison, dataset)).items()
    )
    return Table(
        "assist_threads", "Turns of the real threads by language (as CodeAssistBench's Figure 5)", columns, rows,
        "Shares of the issues of the cell that has most. A turn is what maintainers say in a row. The paper prints no "
        "numbers for this figure.", GROUP,
    )  # fmt: skip


def turns_text(turns: str) -> str:
    """A number of turns in words."""
    return "1 turn" if turns == "1" else f"{turns} turns"


def thread_lengths(found: Judged) -> dict[str, Counter[str]]:
    """By language how many issues have a thread of so many turns."""
    counts: dict[str, Counter[str]] = {}
    for language, own in found.issues.values():
        turns = max(1, own.thread_turns)
        counts.setdefault(language, Counter())[str(turns) if turns < LONG_THREAD else TURNS[-1]] += 1
    return dict(sorted(counts.items()))


def key_issues(comparison: Comparison[Judged]) -> Table:
    """What the judge holds against the answers: its reasons for unmet conditions and for its verdict."""
    columns = (Column("issue", "Issue"), Column("language", "Language"), Column("verdict", "Verdict"),
               Column("technical", "Technically"), Column("unmet", "Unmet", "d"), Column("of", "of", "d"),
               Column("key_issues", "Key issues"), Column("reasoning", "Reasoning"))  # fmt: skip
    judged = [(found, *each) for found in comparison.in_order() for each in found.faulted]
    judged.sort(key=lambda row: -GRADES.index(str(row[3].verdict).lower()))
    rows: list[tuple[Judged, Sequence[Value]]] = [
        (found, [task, language, *_faults(own)]) for found, task, language, own in judged[:MOST]
    ]
    left = f" The first {MOST} of {len(judged)}; sessions.jsonl has all." if len(judged) > MOST else ""
    return named_table(
        comparison, columns, rows, name="assist_key_issues", title="What the judge holds against the answers",
        group=GROUP,
        note="Of dialogues whose verdict is not CORRECT, the incorrect ones first. Key issues: the judge's reasons for "
        f"the conditions that it finds unmet, for which the prompts ask in place of a list.{left}",
    )  # fmt: skip


def _faults(own: AssistJudgement) -> list[Value]:
    reasons = enumerate(zip(own.conditions, own.why, strict=False), 1)  # older records have none
    said = [f"{number}: {why}" for number, (met, why) in reasons if met is False and why]
    words = [None if each is None else each.replace("_", " ").lower() for each in (own.verdict, own.technical)]
    return [*words, own.conditions.count(False), len(own.conditions), "; ".join(said) or None, own.reason or None]
