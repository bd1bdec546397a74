"""The test server as a command, to try codechat without a model: it answers from a dataset's reference solutions.

python -m codechat.testing.openai_server --dataset humaneval --port 8000 --behaviour reference
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeVar

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.testing.agents import scripted_agent
from codechat.testing.batches import BatchServer
from codechat.testing.server import FAULTS, OpenAIServer, dataset_tasks, fading_solver, reference_solver, troubled

S = TypeVar("S", bound=OpenAIServer)
# Blocked and waited for, not handled: a background program of a script inherits SIGINT as ignored.
ENDING = {signal.SIGINT, signal.SIGTERM}
BEHAVIOURS = {"reference": reference_solver, "fading": fading_solver}
NEEDS_A_FILE = "give the dataset's file, .jsonl or .jsonl.gz: --path FILE"


def main(words: Sequence[str] | None = None) -> int:
    """Serve the reference solutions of a dataset on loopback until interrupted; judges get APPLICABLE and VIOLATED,
    and right answers to the questions of judge.check.

    Batches (model.tier=batch) work without --slow.
    """
    chosen = _parser().parse_args(words)
    try:
        _serve(_tasks_of(chosen.dataset, chosen.path), chosen)
    except UserError as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    return 0


def _tasks_of(dataset: str, path: str | None) -> tuple[Task, ...]:
    """The tasks. Raises `UserError` in terms of this command's flags."""
    try:
        fields = DATASETS[dataset].config.model_fields
    except UserError as mistake:
        raise UserError(f"--dataset: {mistake.message}", mistake.remedy) from mistake
    if path is not None and "path" not in fields:
        raise UserError(
            f"--path: the tasks of {dataset} come with codechat, so that there is no file", "leave out --path"
        )
    try:
        return dataset_tasks(dataset, path)
    except UserError as mistake:
        remedy = NEEDS_A_FILE if "dataset.path" in str(mistake) else mistake.remedy
        raise UserError(mistake.message.replace("dataset.path", "--path"), remedy) from mistake


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m codechat.testing.openai_server", description=main.__doc__)
    parser.add_argument("--dataset", default="starter", help="a dataset's name, as in dataset=NAME; default: starter")
    parser.add_argument("--path", help="its file, as in dataset.path=FILE")
    parser.add_argument("--port", type=_port, default=8000, help="default: 8000; 0 takes a free one")
    parser.add_argument(
        "--behaviour", choices=sorted([*BEHAVIOURS, "agent"]), default="reference",
        help="default: reference; with fading, model.name=fading-20 breaks the code at 20 %% of turns; "
        "agent works by the tools of Claude Code, Codex or mini-swe-agent",
    )  # fmt: skip
    parser.add_argument("--breaks", type=_turns, default=(), metavar="TURNS",
                        help="with agent: turns at which it breaks the code, e.g. 3,6; default: none")  # fmt: skip
    parser.add_argument("--model", default="reference", help="the model's name in its list; default: reference")
    parser.add_argument("--slow", type=_positive, default=0.0, help="seconds before each answer; default: none")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="the answer instead of a reply; default: no fault")
    parser.add_argument("--every", type=int, choices=range(1, 1001), metavar="N", default=1,
                        help="with --fault: every Nth call fails; default: all")  # fmt: skip
    return parser


def _positive(word: str) -> float:
    seconds = float(word)
    if not 0 <= seconds < 3600:
        raise argparse.ArgumentTypeError(f"'{word}' is no such time: give seconds from 0 to 3600")
    return seconds


def _port(word: str) -> int:
    if not word.isdecimal() or int(word) > 65535:
        raise argparse.ArgumentTypeError(f"'{word}' is no port: give a number from 0 to 65535")
    return int(word)


def _turns(words: str) -> frozenset[int]:
    if not all(word.isdecimal() for word in words.split(",")):
        raise argparse.ArgumentTypeError(f"'{words}' names no turns: give numbers from 0, e.g. 3,6")
    return frozenset(map(int, words.split(",")))


def _serve(tasks: tuple[Task, ...], chosen: argparse.Namespace) -> None:
    solvable = [task for task in tasks if task.reference is not None]
    if not solvable:
        raise UserError(f"no task of {chosen.dataset} has a reference solution", "choose another --dataset or --path")
    behaves = BEHAVIOURS.get(chosen.behaviour) or partial(
        scripted_agent, script=lambda task, turn: "break" if turn in chosen.breaks else "solve"
    )
    behaviour = troubled(behaves(solvable), chosen.slow, chosen.fault, chosen.every)
    batch_server = BatchServer(behaviour, port=chosen.port, models=[chosen.model], keep_calls=False)
    with served(batch_server, chosen.port) as server:
        tasks_of = f"{counted(len(solvable), 'task')} of {chosen.dataset}"
        print(f"{tasks_of} ({chosen.behaviour}) at {server.base_url}", flush=True)


@contextlib.contextmanager
def served(server: S, port: int) -> Iterator[S]:
    """The running server; leaving waits for SIGINT or SIGTERM. Raises `UserError` for a taken port."""
    with contextlib.ExitStack() as stack:
        # the server's thread, started below, inherits the blocked signals
        stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, ENDING))
        try:
            stack.enter_context(server)
        except OSError as problem:
            reason = f"--port: cannot listen on port {port}: {problem.strerror or problem}"
            raise UserError(reason, "choose another: --port 0 takes a free one") from problem
        yield server
        signal.sigwait(ENDING)


if __name__ == "__main__":
    sys.exit(main())
