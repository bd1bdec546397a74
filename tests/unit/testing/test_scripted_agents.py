"""The script of an agent's model, by an agent that is a loop: it runs what it is told and remembers nothing else."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Answer, Call, Fault, Script, dataset_tasks, scripted_agent
from codechat.testing.agents import LOOKS
from codechat.testing.server import Solver

TASKS = dataset_tasks("starter")[:3]
TASK = TASKS[1]
TOOLS = {"claude": ("Bash", "Read", "Write"), "codex": ("exec_command", "write_stdin"), "mini": ("bash",)}
HERE = "The code stands in the file solution.py of the current folder."
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SCRIPT = ("solve", "break", "nothing", ("asks_tests", "echo x > other"), "delete", "nothing", "break", "solve")


class Loop:
    """An agent: its tools by name, its folder. `done` lists what it did in its last turn."""

    def __init__(self, act: Solver, tools: tuple[str, ...], folder: Path) -> None:
        self.act, self.folder, self.file = act, folder, folder / "solution.py"
        self.offered = [{"type": "function", "function": {"name": name}} for name in tools]
        self.submits = tools == ("bash",)
        self.done: list[tuple[str, str]] = []
        (folder / "home").mkdir()

    def turn(self, prompt: str, most: int = 20) -> str | None:
        words = f"{prompt}\n\n{HERE}" + f"\nEnd with `{SUBMIT}`." * self.submits
        messages: list[dict[str, Any]] = [{"role": "user", "content": words}]
        self.done = []
        while len(self.done) < most:
            answer = self.act(Call(0, "/v1/chat/completions", {}, {"messages": messages, "tools": self.offered}))
            assert isinstance(answer, Answer)
            if not answer.tools or SUBMIT in answer.tools[0].arguments.values():
                assert bool(answer.tools) is self.submits
                return answer.text
            (tool,) = answer.tools
            output = self.run(tool.name, *map(str, tool.arguments.values()))
            messages += [{"role": "assistant", "content": None}, {"role": "tool", "content": output}]
        return None

    def run(self, name: str, first: str, *rest: str) -> str:
        self.done.append((name, first))
        if name == "Write":
            Path(first).write_text(*rest)
        elif name == "Read":
            return Path(first).read_text()
        elif patch := re.search(r"Add File: (\S+)\n(.*)\*\*\* End", first, re.DOTALL):
            (self.folder / patch[1]).write_text("".join(line[1:] for line in patch[2].splitlines(keepends=True)))
        else:
            environment = {**os.environ, "HOME": str(self.folder / "home")}
            ran = subprocess.run(
                ["bash", "-c", first], check=False, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True
            )
            return ran.stdout
        return ""

    def code(self) -> str | None:
        return self.file.read_text() if self.file.exists() else None


def loop(script: Script, agent: str, folder: Path) -> Loop:
    return Loop(scripted_agent(TASKS, script), TOOLS[agent], folder)


def by_turn(task: Any, turn: int) -> str | tuple[str, ...]:
    return SCRIPT[turn]


def in_chat() -> list[str | None]:
    """The code of a chat model at each turn."""
    act, messages, codes = scripted_agent(TASKS, by_turn), [], list[str | None]()
    for turn in range(len(SCRIPT)):
        messages.append({"role": "user", "content": "Rename it." if turn else TASK.prompt})
        reply = act(Call(0, "/v1/chat/completions", {}, {"messages": messages}))
        assert isinstance(reply, str)
        messages.append({"role": "assistant", "content": reply})
        fence = re.search(r"```python\n(.*)```", reply, re.DOTALL)
        codes.append(fence[1] if fence else None)
    return codes


@pytest.mark.parametrize("agent", TOOLS)
def test_an_agent_and_a_chat_model_have_the_same_code_at_each_turn(agent: str, tmp_path: Path) -> None:
    working, codes = loop(by_turn, agent, tmp_path), list[str | None]()
    for turn in range(len(SCRIPT)):
        assert working.turn("Rename it." if turn else TASK.prompt) == "The work is done."
        codes.append(working.code())
    assert codes == in_chat()
    marks = [re.findall(r"turn (\d)\n", code) if code else None for code in codes]
    assert marks == [["0"], ["1"], ["1"], ["3"], None, None, ["6"], ["7"]]
    assert TASK.reference is not None
    assert [code is not None and TASK.reference.strip() in code for code in codes] == [
        turn in (0, 3, 7) for turn in range(len(SCRIPT))
    ]
    assert (tmp_path / "other").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"home", "other", "solution.py"}


def test_the_code_is_run_and_the_tests_are_looked_for(tmp_path: Path) -> None:
    working = loop(lambda task, turn: ("solve", "asks_tests")[turn], "claude", tmp_path)
    file = str(working.file)
    working.turn(TASK.prompt)
    assert working.done[1:] == [("Write", file), ("Bash", "python3 solution.py")]
    working.turn("Rename it.")
    looks = [("Bash", look) for look in LOOKS]
    assert working.done[1:] == [*looks, ("Read", file), ("Write", file), ("Bash", "python3 solution.py")]


def test_it_may_never_end_and_goes_on_at_the_next_turn(tmp_path: Path) -> None:
    working = loop(lambda task, turn: ("forever", "solve")[turn], "mini", tmp_path)
    assert working.turn(TASK.prompt, most=5) is None
    assert [name for _, name in working.done][2:] == ["sleep 0.1"] * 3
    working.turn("Rename it.")
    assert (working.code() or "").startswith(f"# {TASK.task_id}, turn 1\n")


def test_an_unknown_task_is_refused_except_where_titles_are_asked_for() -> None:
    act, body = scripted_agent(TASKS, by_turn), {"messages": [{"role": "user", "content": "Find a title."}]}
    refused = act(Call(0, "/v1/chat/completions", {}, body))
    assert isinstance(refused, Fault) and refused.status == 400
    assert act(Call(0, "/v1/messages", {}, body)) == "Done."


def test_judges_get_their_verdict() -> None:
    asked = {"messages": [{"role": "user", "content": "VERDICT: ADHERED or VERDICT: VIOLATED"}]}
    verdict = scripted_agent(TASKS, by_turn)(Call(0, "/v1/chat/completions", {}, asked))
    assert isinstance(verdict, str) and verdict.endswith("VERDICT: VIOLATED")
