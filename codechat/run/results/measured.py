"""From session records to metrics.json, tables, figures, and the tracked run with its provenance."""

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from codechat.base.config import Config
from codechat.base.environment import PACKAGE, VERSION
from codechat.base.errors import UserError
from codechat.base.files import content_hash, write_atomically
from codechat.base.records import GROUP_TAG, JUDGE_TAG, SessionRecord
from codechat.datasets import DATASETS
from codechat.report import write_tables
from codechat.report.metrics import Effort, caution_of, headline_of, points_of
from codechat.report.metrics.agents import AgentSums
from codechat.report.metrics.counts import (
    DECIDED,
    EXAMINED,
    LOADED,
    REPLIES,
    UNREAD,
    count_decided,
    count_loaded,
    count_replies,
    judged_in,
    unreadable_by_role,
)
from codechat.report.metrics.measures import FIELD, fault_of
from codechat.report.metrics.spending import Tariff
from codechat.report.tracking import (
    TRACKING,
    DatasetInfo,
    FinishedCell,
    SharedStore,
    TrackedRun,
    Tracker,
    TrackingError,
    write_tracking,
)
from codechat.report.tracking.address import without_password
from codechat.run.answering.endpoints import temperatures
from codechat.run.answering.servers import described, tags_of_servers
from codechat.run.cell import Cell, parts_of
from codechat.run.cell.examining import scores
from codechat.run.cell.rescored import RescoredCell
from codechat.run.cell.stopping import measures_of, stop_report
from codechat.run.journal import Journal
from codechat.run.protocols import PROTOCOLS, DialogueProtocol
from codechat.run.running.sessions import SessionsInJournal
from codechat.run.settings.config import CellConfig, cell_id


def measure(cell: Cell, journal: Journal, effort: Effort) -> dict[str, Any]:
    """The content of metrics.json: the protocol's metrics, and the counts of every cell. Raises `UserError`."""
    sessions, protocol = SessionsInJournal(cell, journal), cell.protocol
    found = _sound(protocol, cell.protocol_name, protocol.metrics(sessions, seed=cell.config.seed, effort=effort))
    decided, replies = Counter(count_decided(())), Counter(count_replies(()))
    judged, agents = Counter[tuple[str, bool]](), AgentSums()
    for session in sessions:  # once for all: a pass reads the journal
        judged.update(judged_in(session))
        decided.update(count_decided((session,)))
        replies.update(count_replies((session,)))
        agents.add(session)
    counts = {DECIDED: dict(decided), REPLIES: dict(replies), LOADED: count_loaded(cell.tasks)}
    of_judges: dict[str, Any] = {EXAMINED: scores(cell, journal), UNREAD: unreadable_by_role(judged)}
    counts |= {name: found for name, found in of_judges.items() if found}
    counts |= {
        **agents.content(cell.config.seed),
        **described(cell, journal),
        **temperatures(cell, journal),
        **stop_report(cell, journal),
        FIELD: measures_of(cell).describe(),
    }
    return {**found, **counts}


def _sound(protocol: DialogueProtocol, name: str, metrics: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a protocol, if they can be shown. Raises `UserError`."""
    if fault := fault_of(metrics, protocol.measures):
        remedy = "docs/write-your-own.md says what the metrics of a protocol hold"
        raise UserError(f"protocol={name}: the result of metrics() {fault}", remedy)
    return metrics


def effort_of(journal: Journal, tariff: Tariff, wall_s: float) -> Effort:
    """The effort of all the cell's processes, which ran for `wall_s` seconds."""
    ledger = journal.ledger
    return Effort(
        wall_s=wall_s,
        retries=ledger.total("retries"),
        rate_limited=ledger.total("rate_limited"),
        cached_replies=ledger.total("cached_replies"),
        tariff=tariff,
        judged={} if tariff.has_one_price else journal.used(),
        spent=ledger.spent,
    )


def write_metrics(cell: Cell, metrics: Mapping[str, Any]) -> None:
    """Write metrics.json and the tables."""
    write_atomically(
        cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )
    write_tables(measures_of(cell), metrics, cell.folder / "tables")


def remeasure(values: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any] | None:
    """The protocol's metrics of sessions, without costs, by the values of a config.yaml; None if it cannot be read."""
    known = CellConfig.whole().model_fields
    try:
        config = CellConfig.from_values({name: value for name, value in values.items() if name in known})
    except UserError:
        return None
    protocol = PROTOCOLS.build(config.protocol, parts_of(config, {}))
    return _sound(
        protocol, PROTOCOLS.of(config.protocol).name, protocol.metrics(sessions, seed=config.seed, effort=Effort())
    )


@dataclass(frozen=True)
class Tracking:
    """The tracked run, if there is one. `failure` is the store's reason to refuse it, else empty."""

    run: TrackedRun | None = None
    failure: str = ""


def send(finished: FinishedCell, tracker: Tracker) -> Tracking:
    """Write the tracked values of a cell or a construction, then send them; a failing store does not fail the cell."""
    write_tracking(finished)
    try:
        return Tracking(tracker.log(finished))
    except TrackingError as error:
        return Tracking(failure=str(error))


def open_store(config: Config, runs_dir: Path) -> str:
    """Create the store of a folder's cells before several processes use it; returns the problem, or "".

    Raises `UserError`, as tracking a cell does.
    """
    tracker = TRACKING.build(config)
    try:
        if isinstance(tracker, SharedStore):
            tracker.open(runs_dir)
    except TrackingError as error:
        return str(error)
    return ""


def finished_cell(cell: Cell, metrics: Mapping[str, Any] | None, sweep: str | None, command: str) -> FinishedCell:
    """All that a tracker shows about a cell; without metrics, about a cell that begins."""
    config = cell.config.dataset
    options = config.model_dump(mode="json")
    source = options.get("path") or options.get("url") or f"{config.kind}: {DATASETS.of(config).summary}"
    measures = measures_of(cell)
    return FinishedCell(
        cell_id=cell.id,
        name=cell.name,
        params=cell.config.values({"tracking", "runs_dir", *cell.config.transient}),
        tags={**tags_of(cell), **tags_of_servers(metrics or {})},
        sweep=sweep,
        points=points_of(measures, metrics) if metrics is not None else (),
        headline=headline_of(measures),
        caution=caution_of(metrics or {}, cell.dataset.departure),
        runs_dir=cell.config.runs_dir,
        folder=cell.folder,
        dataset=DatasetInfo(
            cell.dataset.name,
            cell.dataset.content_hash,
            len(cell.dataset.tasks),
            len(cell.tasks),
            without_password(source),
            cell.dataset.departure,
        ),
        command=without_password(command),
    )


def tags_of(cell: Cell) -> dict[str, str]:
    """The tags of a cell's tracked run."""
    # the same for cells that differ only in their seed or agenda.seed
    agenda = cell.config.part("agenda")
    without = {"seed": None} | ({} if agenda is None else {"agenda": agenda.model_copy(update={"seed": None})})
    unseeded = cell_id(cell.config.model_copy(update=without), cell.dataset, cell.tasks, cell.contents)
    tags = {
        "codechat.cell_id": cell.id,
        "codechat.dataset_hash": cell.dataset.content_hash,
        "codechat.version": VERSION,
        "codechat.python": platform.python_version(),
        **{f"codechat.choice.{group}": choice for group, choice in cell.choices.items()},
        "codechat.model": cell.model_label,
        "codechat.dataset": cell.dataset.name,
        "codechat.seed": str(cell.config.seed),
        GROUP_TAG: content_hash([unseeded, isinstance(cell, RescoredCell)])[:16],
        JUDGE_TAG: str(cell.config.judge.versions()),
    }
    if cell.config.sandbox.python is not None:
        libraries = cell.config.sandbox.libraries()
        tags |= {"codechat.libraries": libraries.digest, "codechat.libraries.python": libraries.version}
    for group in cell.study_groups:
        if group.name in cell.contents:
            tags[f"codechat.{group.data}_hash"] = cell.contents[group.name].content_hash
    if isinstance(cell, RescoredCell):
        tags["codechat.rescored_from"] = cell.recording.cell_id
    for library in ("mlflow", "evalplus", "openai", "pymannkendall", "radon", "mccabe", "pycodestyle"):
        try:
            tags[f"codechat.versions.{library}"] = version(library)
        except PackageNotFoundError:
            continue
    commit = git_commit()
    return {**tags, "codechat.git_commit": commit} if commit else tags


def git_commit() -> str | None:
    """The commit of codechat's source tree, with `-dirty` if it has changes; None for an installed package."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return None
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
