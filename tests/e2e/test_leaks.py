"""Nothing of a task's published solution reaches the model in a repair, unless feedback=paper is chosen.

The solution is the answer of four categories, a judge may be shown it, and then quotes it in its reasons. With the data
that CODECHAT_TEST_DATA names, the same is held for all 285 published tasks and the published first replies.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from codechat.base.records import SessionRecord
from codechat.cli.app import main
from codechat.datasets import DATASETS
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from codechat.studies.multicodeif.rows import ConstrainedTask
from codechat.testing import Answer, Call, OpenAIServer, Result
from support.codeif import write_rows
from support.multicodeif import constrained

pytestmark = pytest.mark.long

KINDS = (
    "non_functional_requirements",
    "situation",
    "code_contextual",
    "example",
)  # as published; types are named alike
CATEGORIES = "dataset.categories=[code_quality,scenario,code_context,exemplar]"
MODES = [
    (f"protocol.feedback={feedback}", f"protocol.context={context}")
    for feedback in ("named", "diagnosis")
    for context in ("single", "full")
]
CASES = [*((words, True) for words in MODES), (MODES[0], False)]  # with and without the solution shown to the judge
FENCE = re.compile(r"`{3,}\S*")  # a repair puts the model's code in one, as solutions are published
ALONE = 12  # characters of a line that is looked for within other lines as well


def solution(number: int) -> str:
    return f"def sealed_{number}(basket):\n    hidden_total = sum(basket) + {number}\n    return hidden_total\n"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A task of each category; the prompt of the last shows the first line of its solution."""
    rows = [
        constrained(task_id=f"{kind}/1", category=kind, constraint_type=kind, language="python",
                    answer=solution(number), prompt=f"Add up a basket, way {number}.")
        for number, kind in enumerate(KINDS)
    ]  # fmt: skip
    rows[-1]["prompt"] += "\n" + solution(3).partition("\n")[0]
    return write_rows(tmp_path / "tasks.jsonl", *rows)


def attempts(call: Call) -> Result:
    """Answers with code of its own, numbered by the repairs that it sees."""
    return Answer(f"```python\nattempt = {len(call.messages)}\nprint(attempt)\n```")


def quoting(solutions: Sequence[str]) -> Callable[[Call], Result]:
    """A judge that finds every constraint broken, and quotes the solution if it was shown one."""

    def behave(call: Call) -> Result:
        question = call.messages[0]["content"]
        shown = next((one for one in solutions if one.strip("\n") in question), "")
        return Answer(f"REASON: it should be {' '.join(shown.split())}\nVERDICT: BROKEN")

    return behave


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Call], Result]], OpenAIServer]]:
    with ExitStack() as stack:
        yield lambda behaviour: stack.enter_context(OpenAIServer(behaviour))


def judged_by(server: OpenAIServer, *, shown: bool) -> list[str]:
    place = "judge.constraint"
    keys = {"base_url": server.base_url, "api_key_env": "null", "max_retries": "0", "cache": "false"}
    return [
        "judge=llm",
        "judge.check=false",
        f"judge.reference={shown}",
        *(f"{place}.{key}={value}" for key, value in keys.items()),
    ]


def held(folder: Path, *words: str) -> list[SessionRecord]:
    """The sessions of a cell of self-repair, all of them whole."""
    outcome = run(compose(["protocol=repair", "dataset=multicodeif", *words, "tracking=none", f"runs_dir={folder}"]))
    assert outcome.status == 0
    return list(outcome.sessions)


def leaked(session: SessionRecord, task: ConstrainedTask) -> Iterator[str]:
    """The lines of the solution that a repair's request holds, and neither the prompt nor the model's replies before."""
    reference = task.levels[0].constraints[0].answer.raw
    known = task.prompt
    for turn in session.turns:
        text = "\n".join(message.content for message in turn.request)
        lines = {line.strip() for line in text.splitlines()}
        for line in filter(None, map(str.strip, reference.splitlines())):
            told = line in text if len(line) >= ALONE else line in lines
            if told and line not in known and not FENCE.fullmatch(line):
                yield line
        known += f"\n{turn.response}"


def all_leaks(sessions: Sequence[SessionRecord], path: Path) -> list[str]:
    dataset = DATASETS.build(DATASETS.validate({"kind": "multicodeif", "path": str(path)}))
    tasks = {task.task_id: task for task in dataset.tasks if isinstance(task, ConstrainedTask)}
    return [line for session in sessions for line in leaked(session, tasks[session.task_id])]


def sessions_of(
    tasks: Path, folder: Path, serve: Callable[[Callable[[Call], Result]], OpenAIServer], *words: str, shown: bool
) -> list[SessionRecord]:
    """Three turns on each task, the judge never content."""
    model, judge = serve(attempts), serve(quoting([solution(number) for number in range(len(KINDS))]))
    keys = ["model=openai", "model.name=m", f"model.base_url={model.base_url}", "model.api_key_env=null"]
    sessions = held(folder, *judged_by(judge, shown=shown), *keys, f"dataset.path={tasks}", *words, "protocol.rounds=2")
    assert [len(session.turns) for session in sessions] == [3] * len(KINDS)
    assert all(turn.request for session in sessions for turn in session.turns)
    return sessions


@pytest.mark.parametrize(("words", "shown"), CASES)
def test_no_repair_tells_a_line_of_the_solution(
    tmp_path: Path, tasks: Path, serve: Callable[..., OpenAIServer], words: tuple[str, str], shown: bool
) -> None:
    sessions = sessions_of(tasks, tmp_path, serve, *words, shown=shown)
    assert all_leaks(sessions, tasks) == []
    reasons = [ConstrainedTurn.of(turn).constraints[0].reason for one in sessions for turn in one.turns]
    assert all(("hidden_total" in reason) is shown for reason in reasons), "the judge's reason would have told it"
    requests = json.dumps([[message.content for message in turn.request] for one in sessions for turn in one.turns])
    assert "it should be" not in requests and "hidden_total" not in requests


@pytest.mark.parametrize("context", ["single", "full"])
def test_the_papers_feedback_is_found_to_leak(
    tmp_path: Path, tasks: Path, serve: Callable[..., OpenAIServer], context: str
) -> None:
    words = ("protocol.feedback=paper", f"protocol.context={context}")
    found = all_leaks(sessions_of(tasks, tmp_path, serve, *words, shown=False), tasks)
    assert {f"hidden_total = sum(basket) + {number}" for number in range(len(KINDS))} <= set(found)
    assert "def sealed_3(basket):" not in found, "its prompt shows that line"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The published task file, and gpt-4o's replies in all rounds as a recording."""
    data = Path(os.environ.get("CODECHAT_TEST_DATA") or "nowhere")
    source, tasks = data / "multicodeif_selfrepair_gpt-4o.jsonl.gz", data / "multicodeif_tasks.jsonl.gz"
    if not source.is_file():
        pytest.skip("CODECHAT_TEST_DATA names no folder with MultiCodeIF's outputs")
    recording = tmp_path_factory.mktemp("published") / "recording.jsonl"
    assert main(["import", "format=multicodeif", f"source={source}", f"out={recording}"]) == 0
    return tasks, recording


@pytest.mark.parametrize("words", MODES)
def test_no_repair_of_the_published_tasks_tells_a_line_of_their_solutions(
    tmp_path: Path, published: tuple[Path, Path], serve: Callable[..., OpenAIServer], words: tuple[str, str]
) -> None:
    """The judge is shown them: one that is not has nothing to quote."""
    tasks, recording = published
    dataset = DATASETS.build(DATASETS.validate({"kind": "multicodeif", "path": str(tasks)}))
    solutions = [
        task.levels[0].constraints[0].answer.raw for task in dataset.tasks if isinstance(task, ConstrainedTask)
    ]
    judge = serve(quoting([each for each in solutions if "\n" in each]))
    keys = [f"dataset.path={tasks}", CATEGORIES, "model=replay", f"model.path={recording}", "protocol.rounds=1"]
    sessions = held(tmp_path, *words, *keys, *judged_by(judge, shown=True))
    assert (len(sessions), {len(session.turns) for session in sessions}) == (285, {2})
    assert all_leaks(sessions, tasks) == []
