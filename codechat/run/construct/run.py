"""Run a construction: items → files → tracking, as a function that returns its outcome and prints nothing."""

import asyncio
import contextlib
import json
import os
import platform
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codechat.base.environment import VERSION, caches_in, silence
from codechat.base.files import write_atomically
from codechat.models.calls import run_coroutine
from codechat.report.metrics import Point
from codechat.report.metrics.measures import WALL
from codechat.report.tracking import TRACKING, DatasetInfo, FinishedCell
from codechat.report.tracking.address import without_password
from codechat.run.answering.endpoints import EndpointCheck
from codechat.run.cell import lock
from codechat.run.cell.budget import Budget, tariff_of_roles
from codechat.run.cell.estimate import Estimate, Sizes, sum_of
from codechat.run.construct.engine import ConstructionResult, ItemResult, Run, Watcher, make
from codechat.run.construct.interface import Answer, read_answers
from codechat.run.construct.making import ANSWERS, SETTINGS, Construction, construction_of
from codechat.run.construct.output import HEADLINE, points_of, write_output
from codechat.run.construct.recipe import ConstructionConfig
from codechat.run.journal import Journal
from codechat.run.results.measured import Tracking, send
from codechat.run.running.observer import Follow, following

DONE, TOO_MANY_ERRORS, INTERRUPTED = 0, 3, 130


@dataclass(frozen=True)
class Outcome:
    """`status` is the exit status; `yields` the content of yield.json, None if only an estimate was asked for."""

    status: int
    made: Construction
    yields: Mapping[str, Any] | None = None
    estimate: Estimate | None = None
    unfinished: str = ""
    first_error: str = ""
    tracking: Tracking = field(default_factory=Tracking)


def construct(
    config: ConstructionConfig, choices: Mapping[str, str], watcher: Watcher, command: Sequence[str]
) -> Outcome:
    """Make what is missing of a construction, or estimate it. Raises `UserError`, and in the end the first bug."""
    silence(os.environ)
    made = construction_of(config, choices)
    made.refuse_other()
    given = read_answers(config.recipe.answers)
    budget = Budget(config.budget_usd, config.budget_tokens, tariff_of_roles(made.places))
    if config.dry_run:
        return Outcome(DONE, made, estimate=_estimate(made, budget))
    tracker, words, started = TRACKING.build(config.tracking), shlex.join(command), time.monotonic()
    with following(tracker, budget, lambda: _tracked(made, None, words)) as follow:
        with caches_in(config.hardware.scratch), contextlib.ExitStack() as open_files:
            open_files.enter_context(lock(made.folder, "out"))
            write_atomically(made.folder / SETTINGS, made.settings())  # first: a folder is known by its settings
            journal = open_files.enter_context(contextlib.closing(Journal(made.folder / "journal.db")))
            run = Run(made, journal, _answers(made, given), watcher, budget)
            run_coroutine(EndpointCheck(made.endpoints, journal, watcher.note).check_again, run.brake)
            watcher.begin(made, budget)
            found = _run(run, follow)
            yields = write_output(made, found, journal, budget.tariff)
            unfinished = budget.words_on_stop(journal.ledger, run.brake)
            wall_s = journal.add_wall(time.monotonic() - started)
        if run.brake.interrupted:
            return Outcome(INTERRUPTED, made, yields, unfinished="interrupted")
        if found.bug is not None:
            raise found.bug
        tracking = send(_tracked(made, yields, words, wall_s), tracker)
        follow.tracked()
    early = unfinished or yields["errored"] > config.max_errors
    errors = (end.detail for end in found.final if end.status == "errored")
    status = TOO_MANY_ERRORS if early else DONE
    return Outcome(status, made, yields, None, unfinished, next(errors, ""), tracking)


def _run(run: Run, follow: Follow) -> ConstructionResult:
    """Make the items; an interruption pulls the brake."""
    found = ConstructionResult()

    async def work() -> None:
        with follow.sessions(run.counts, run.journal.ledger, run.watcher.note):
            await make(run, found)

    try:
        with run.watcher.watching(run.counts, run.journal.ledger):
            run_coroutine(work, run.brake)
    except (KeyboardInterrupt, asyncio.CancelledError):
        run.brake.pull("interrupted", interrupted=True)
    return found


def _answers(made: Construction, given: Mapping[str, Answer]) -> Mapping[str, Answer]:
    """People's answers, including earlier runs', which stay in the folder."""
    path = made.folder / ANSWERS
    earlier = read_answers(str(path)) if path.exists() else {}
    answers = {**earlier, **given}
    if given:
        lines = (json.dumps(each.model_dump(exclude_none=True), ensure_ascii=False) for each in answers.values())
        write_atomically(path, "".join(f"{line}\n" for line in lines))
    return answers


def _estimate(made: Construction, budget: Budget) -> Estimate:
    """The calls that the recipe expects of items that are not finished yet."""
    missing, asks = [*made.items], made.recipe.asks
    if (made.folder / "journal.db").exists():
        with contextlib.closing(Journal(made.folder / "journal.db")) as journal:
            units = [made.unit(0, item.id, item.data) for item in missing]
            known = [journal.outline(unit, completed=True) for unit in units]
            ends = [outline and ItemResult.model_validate_json(outline).upto for outline in known]
            missing = [item for item, upto in zip(missing, ends, strict=True) if upto != made.parts[0][-1].name]
    expected = [(asks(item) if asks else (), 0) for item in missing]
    return sum_of(expected, len(missing), Sizes.of(made.roles, {}), budget.tariff)


def _tracked(made: Construction, yields: Mapping[str, Any] | None, command: str, wall_s: float = 0.0) -> FinishedCell:
    """All that a tracker shows of a construction; without yields, at its beginning. `wall_s`: of all processes."""
    config = made.config
    tags = {
        "codechat.version": VERSION,
        "codechat.python": platform.python_version(),
        "codechat.construct": made.name,
        **{f"codechat.choice.{group}": choice for group, choice in made.choices.items()},
    }
    source = without_password(config.recipe.rows or config.recipe.seeds or made.name)
    return FinishedCell(
        cell_id=made.id,
        name=f"construct {made.name} {made.folder.name}",
        params={k: v for k, v in config.values().items() if k not in ("tracking", "out")},
        points=() if yields is None else (*points_of(yields), Point(WALL, wall_s)),
        folder=made.folder,
        tags=tags,
        headline=HEADLINE,
        dataset=DatasetInfo(f"seeds of {made.name}", made.made["seeds"], len(made.items), len(made.items), source),
        command=without_password(command),
        runs_dir=str(made.folder.parent),
    )
