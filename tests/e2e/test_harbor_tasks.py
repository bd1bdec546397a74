"""Cells as tasks of Harbor: verifiers that need no codechat give its verdicts, and Harbor itself runs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.base.texts import read_json
from codechat.cli.app import main
from codechat.report.metrics import Effort
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.inside.isolate import barrier
from codechat.studies.refine.metrics import refine_metrics

pytestmark = pytest.mark.long

DATA = os.environ.get("CODECHAT_TEST_DATA")
HARBOR = os.environ.get("CODECHAT_HARBOR_PYTHON")
PYTHONS = (Path(sys.base_prefix, "bin", "python3"), Path("/usr/bin/python3"))

needs_data = pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA names no folder with benchmark data")
needs_harbor = pytest.mark.skipif(HARBOR is None, reason="CODECHAT_HARBOR_PYTHON names no Python with harbor")

VALIDATE = """
import sys
from pathlib import Path
from harbor.models.task.task import Task
for folder in map(Path, sys.argv[1:]):
    task = Task(folder)
    assert Task.is_valid_dir(folder) and task.config.verifier.environment_mode.value == "separate"
    for step in task.config.steps:
        print(folder.name, step.name, len(task.step_instruction(step.name)))
"""
PLAYED = '''
import asyncio, json, os, shutil, tempfile
from pathlib import Path
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.agent.context import AgentContext

OWN = ("app", "tests", "logs", "solution", "tmp")

class Local(BaseEnvironment):
    """A container that is bubblewrap over this machine's programs."""

    capabilities = EnvironmentCapabilities()

    @staticmethod
    def type():
        return "local"

    def _validate_definition(self):
        assert (self.environment_dir / "Dockerfile").is_file()

    async def start(self, force_build):
        self.root = Path(tempfile.mkdtemp(dir=os.environ["BOXES"]))
        for name in (*OWN, "logs/agent", "logs/verifier", "logs/artifacts"):
            (self.root / name).mkdir()

    async def stop(self, delete):
        shutil.rmtree(self.root)

    def _at(self, path):
        return self.root / str(path).lstrip("/")

    async def upload_file(self, source_path, target_path):
        shutil.copy(source_path, self._at(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self._at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self._at(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self._at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        shown = [word for name in ("usr", "etc") for word in ("--ro-bind", f"/{name}", f"/{name}")]
        shown += [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]
        shown += [word for name in OWN for word in ("--bind", str(self.root / name), f"/{name}")]
        apart = ["--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net", "--die-with-parent"]
        words = [os.environ["BWRAP"], *shown, *apart, "--chdir", cwd or "/app", "sh", "-c", command]
        process = await asyncio.create_subprocess_exec(*words, env={"PATH": "/usr/bin:/bin"}, stdout=-1, stderr=-1)
        out, err = await process.communicate()
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)

class Player(BaseAgent):
    """Writes the recorded file of each step, and a trajectory."""

    @staticmethod
    def name():
        return "player"

    def version(self):
        return "1"

    async def setup(self, environment):
        self.step = 0

    async def run(self, instruction, environment, context):
        plays = json.loads(Path(os.environ["PLAYS"]).read_text())[self.logs_dir.parent.name.rpartition("__")[0]]
        play = plays[self.step]
        self.step += 1
        assert instruction.strip() == play["instruction"].strip()
        if play["code"] is not None:
            source = self.logs_dir / "played.py"
            source.write_text(play["code"])
            await environment.upload_file(source, "/app/solution.py")
        (self.logs_dir / "trajectory.json").write_text(json.dumps(play["trajectory"]))
        context.n_input_tokens, context.n_output_tokens = 1000, 100
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exported(*words: str) -> list[SessionRecord]:
    """The sessions of a finished cell, whose tasks for Harbor are in `tasks`."""
    assert main(["tracking=none", "sandbox.allow_weak=true", *words]) == 0
    (run,) = Path("runs").iterdir()
    assert main(["export", "format=harbor", f"run={run}", "out=tasks"]) == 0
    return list(read_sessions(run / "sessions.jsonl"))


def task_of(session: SessionRecord) -> Path:
    return Path("tasks", session.task_id.replace("/", "-")).absolute()


def python_for_all() -> Path:
    """A Python that a program may use as another user. Skips without one."""
    for each in PYTHONS:
        if each.exists() and (os.geteuid() or barrier(str(each)) is None):
            return each
    pytest.skip("needs a Python outside of this user's folders")


def verified(session: SessionRecord, code: str | None, root: Path) -> tuple[dict[str, int], str]:
    """The rewards and what the verifier prints, in folders as in Harbor's container."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("app", "logs/verifier", "bin"):
        (root / name).mkdir(parents=True)
    shutil.copytree(task_of(session) / "tests", root / "tests")
    (root / "bin" / "python3").symlink_to(python_for_all())
    if code is not None:
        (root / "app" / "solution.py").write_text(code)
    script = (root / "tests" / "test.sh").read_text()
    for name in ("/tests", "/app", "/logs"):
        script = script.replace(f" {name}", f" {root}{name}")
    command = ["sh", "-c", script]
    ended = subprocess.run(
        command,
        check=False,
        env={"PATH": f"{root}/bin:/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        timeout=120,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return read_json((root / "logs" / "verifier" / "reward.json").read_text()), ended.stdout


def first_of_each(session: SessionRecord) -> Iterator[TurnRecord]:
    """The first turn that passes, and the first that fails, with code."""
    for passed in (True, False):
        yield from [turn for turn in session.turns if turn.passed is passed and turn.code][:1]


def agree(sessions: list[SessionRecord], folder: Path) -> set[bool]:
    """Assert that the verifiers give codechat's verdicts; returns the verdicts that were compared."""
    seen = set()
    for session in sessions:
        for turn in first_of_each(session):
            rewards, said = verified(session, turn.code, folder / "box")
            assert rewards == {"reward": turn.passed, "passed_base": turn.passed_base}, (session.task_id, said)
            seen.add(bool(turn.passed))
    return seen


def test_verifiers_give_codechats_verdicts_on_all_starter_tasks(folder: Path) -> None:
    sessions = exported("dataset=starter")
    assert len(sessions) == len(list(Path("tasks").iterdir())) == 50
    assert agree(sessions, folder) == {True, False}


@needs_data
@pytest.mark.parametrize(("dataset", "file"), [("humaneval", "HumanEvalPlus"), ("mbpp", "MbppPlus")])
def test_verifiers_give_codechats_verdicts_on_published_tasks(folder: Path, dataset: str, file: str) -> None:
    path = f"dataset.path={DATA}/{file}.jsonl.gz"
    sessions = exported(f"dataset={dataset}", path, "dataset.limit=40", "agenda.turns=5", "seed=3")
    assert len(sessions) == 40
    assert agree(sessions, folder) == {True, False}


LATER = "import os, time\nif os.fork() == 0:\n    time.sleep(1)\n    open('{reward}', 'w').write('{{\"reward\": 1}}')\n    os._exit(0)\n"
HOSTILE = {
    "crash: the process ended": "import os\nos._exit(0)\n",
    "crash: SystemExit": "raise SystemExit\n",
    "no_code: ": "def other():\n    return 1\n",
    "syntax_error: ": "def f(:\n",
    "fail: PermissionError": "open('{tests}/expected', 'rb').read()\n",
    "fail: the result": "{later}def {name}(*given):\n    return None\n",
    "crash: the results": "import os\nfor number in range(3, 64):\n    try:\n        os.write(number, b'Z' + bytes(6))\n    except OSError:\n        pass\n",
    "timeout: ": "while True:\n    pass\n",
}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_program_reaches_neither_the_tests_nor_the_reward(folder: Path, said: str) -> None:
    if os.geteuid():
        pytest.skip("needs root, as in Harbor's containers")
    (session,) = exported("dataset=starter", "dataset.limit=1", "agenda.turns=2", "sandbox.load_cpu_s=1")
    root = folder / "box"
    later = LATER.format(reward=root / "logs/verifier/reward.json")
    name = session.task_id.partition("/")[2]
    code = HOSTILE[said].format(tests=root / "tests", later=later, name=name)
    rewards, printed = verified(session, code, root)
    assert printed.startswith(said)
    assert rewards["reward"] == 0
    assert read_json((root / "logs/verifier/reward.json").read_text())["reward"] == 0


def test_without_a_file_there_is_no_reward(folder: Path) -> None:
    (session,) = exported("dataset=starter", "dataset.limit=1", "agenda.turns=2")
    assert verified(session, None, folder / "box") == (
        {"reward": 0, "passed_base": 0},
        "no_code: there is no solution.py\n",
    )


@needs_harbor
@pytest.mark.agents
def test_harbor_finds_every_task_valid(folder: Path) -> None:
    sessions = exported("dataset=starter", "dataset.limit=12", "judge=rules")
    tasks = [str(task_of(each)) for each in sessions]
    printed = subprocess.run([str(HARBOR), "-c", VALIDATE, *tasks], check=True, capture_output=True, text=True).stdout
    asked = [(task_of(each).name, f"turn-{turn.turn}") for each in sessions for turn in each.turns if not turn.skipped]
    assert [tuple(line.split()[:2]) for line in printed.splitlines()] == asked
    lint = Path(str(HARBOR)).with_name("harbor")
    subprocess.run([str(lint), "lint", *tasks], check=True, capture_output=True, timeout=120)


@needs_harbor
@pytest.mark.agents
def test_a_job_of_harbor_comes_back_with_the_same_figures(folder: Path) -> None:
    """Harbor's own runner, its containers replaced by bubblewrap; the agent plays what the cell recorded."""
    sessions = exported("dataset=starter", "dataset.limit=3", "agenda.turns=5", "seed=3")
    plays = {task_of(each).name: list(played(each)) for each in sessions}
    (folder / "plays.json").write_text(json.dumps(plays))
    (folder / "played.py").write_text(PLAYED)
    (folder / "boxes").mkdir()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder), "BWRAP": programs()[0],
        "BOXES": str(folder / "boxes"), "PLAYS": str(folder / "plays.json"),
        "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }  # fmt: skip
    words = ["run", "-p", "tasks", "-a", "played:Player", "-e", "played:Local", "-o", "jobs", "--job-name", "one", "-y"]
    subprocess.run(
        [str(Path(str(HARBOR)).with_name("harbor")), *words],
        env=environment,
        check=True,
        capture_output=True,
        timeout=600,
    )
    assert main(["import", "format=harbor", "source=jobs", "tasks=tasks", "out=played.jsonl"]) == 0
    found = {each.task_id: each for each in read_sessions(Path("played.jsonl"))}
    back = [found[each.task_id] for each in sessions]
    assert [figures(each) for each in (back, sessions)] == [figures(sessions)] * 2
    for ours, theirs in zip(sessions, back, strict=True):
        assert [turn.passed_base for turn in theirs.turns] == [turn.passed_base for turn in ours.turns]
        assert [turn.code for turn in theirs.turns] == [turn.code for turn in ours.turns]
        assert [turn.instruction for turn in theirs.turns] == [turn.instruction for turn in ours.turns]
        assert {(turn.usage.input_tokens, turn.usage.output_tokens) for turn in theirs.turns if not turn.skipped} == {
            (70, 7)
        }
        assert theirs.model == "player"
    words = ["dataset=starter", "dataset.limit=3", "protocol=refined"]
    assert main([*words, "model=replay", "model.path=played.jsonl", "tracking=none", "runs_dir=again"]) == 0
    (again,) = Path("again").iterdir()
    assert figures(list(read_sessions(again / "sessions.jsonl"))) == figures(sessions)


def played(session: SessionRecord) -> Iterator[dict[str, Any]]:
    here = (
        "The code stands in the file solution.py of the current folder: write it there, since only that file is read."
    )
    for turn in session.turns:
        if not turn.skipped:
            call = {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "python solution.py"}}
            steps: list[dict[str, Any]] = [
                {"step_id": 1, "source": "user", "message": "go on"},
                {"step_id": 2, "source": "agent", "message": "done", "tool_calls": [call],
                 "metrics": {"prompt_tokens": 70, "completion_tokens": 7}},
            ]  # fmt: skip
            trajectory = {"schema_version": "ATIF-v1.7", "agent": {"name": "player", "version": "1"}, "steps": steps}
            instruction = f"{turn.request[-1].content}\n\n{here}"
            yield {"code": turn.code, "instruction": instruction, "trajectory": trajectory}


def figures(sessions: list[SessionRecord]) -> Any:
    """Pass@1 by turn and MST."""
    found = refine_metrics(sessions, seed=0, effort=Effort())
    return found["pass_at_1"], found["mst"]
