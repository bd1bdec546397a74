"""The model of a coding agent, scripted by task and turn: it works by the tools that the agent offers.

An agent may remember nothing but its folder, so the code says in its first line which task and turn it is of. A chat
model, which is offered no tools, gets the same code in a fence.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat
from typing import Final

from codechat.datasets.tasks import Task
from codechat.testing.apis import Answer, Call, ToolCall, used
from codechat.testing.server import Result, Solver, broken, error, finder, reference_solver

Script = Callable[[Task, int], str | tuple[str, ...]]
"""What is done at a turn, the number of a request from 0. One or several of

- `solve`, `break`: writes the right code, or the same names with wrong results, and runs it;
- `asks_tests`: looks for the tests, then does as `solve`;
- `delete`: deletes the file;
- `nothing`: only answers;
- `forever`: calls tools without end;
- any other text: runs it as a shell command.
"""

SHELLS: Final = {"Bash": "command", "bash": "command", "exec_command": "cmd"}
"""By the name of a shell tool, its argument: Claude Code, mini-swe-agent, Codex."""
LOOKS = ("ls -la . .. /", "find / -maxdepth 3 -name '*test*' 2>/dev/null | head -n 20", "env")
"""The commands that look for tests."""
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent ends where a command prints it
_NOTE = "~/.scripted_turn"  # names a turn that writes no code
_MARK = re.compile(r"(?:#|//) (\S+), turn (\d+)")
_FILE = re.compile(r"stands in the file (\S+)")


def scripted_agent(tasks: Iterable[Task], script: Script) -> Solver:
    """Follows a script. Half of the tokens sent by an agent count as cached.

    Judges are answered as by `reference_solver`, side requests of Claude Code in a word; others about an unknown task
    are refused with 400.
    """
    known = {task.task_id: task for task in tasks if task.reference is not None}
    find, judged = finder(known.values()), reference_solver(())

    def turn_of(texts: Iterable[str], asked: str) -> "_Turn | None":
        """The turn after the last one that is marked in the texts; the first of the task asked for if none is."""
        marks = [(int(turn), name) for text in texts for name, turn in _MARK.findall(text) if name in known]
        if not marks:
            return None if (task := find(asked)) is None else _Turn(task, 0, script)
        turn, name = max(marks)
        return _Turn(known[name], turn + 1, script)

    def act(call: Call) -> Result:
        messages = call.messages
        if "VERDICT:" in messages[0]["content"]:
            return judged(call)
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        asked = "\n".join(message["content"] for message in messages if message["role"] == "user")
        outputs = [message["content"] for message in messages[last:] if message["role"] == "tool"]
        if not SHELLS.keys() & call.tools:
            turn = turn_of((message["content"] for message in messages if message["role"] == "assistant"), asked)
            if turn is not None:
                return turn.fenced()
        elif (turn := turn_of(outputs[:1], asked)) is not None or not outputs:
            return _worked(call, _steps(call.tools, messages[last]["content"], outputs, turn), len(outputs))
        return "Done." if call.api == "messages" else error(400, "this server knows no task with this statement")

    return act


@dataclass(frozen=True)
class _Turn:
    task: Task
    number: int
    script: Script

    @property
    def mark(self) -> str:
        return f"{'#' if self.task.target.language == 'python' else '//'} {self.task.task_id}, turn {self.number}"

    @property
    def deeds(self) -> list[str]:
        asked = self.script(self.task, self.number)
        deeds = (asked,) if isinstance(asked, str) else asked
        return [part for deed in deeds for part in ((*LOOKS, "solve") if deed == "asks_tests" else (deed,))]

    def code(self, deed: str) -> str:
        reference = self.task.reference or ""
        return f"{self.mark}\n{(broken(reference) if deed == 'break' else reference).rstrip()}\n"

    def fenced(self) -> str:
        """The reply of a chat model: the code as this turn leaves it."""
        for number in range(self.number, -1, -1):
            turn = replace(self, number=number)
            last = next((deed for deed in reversed(turn.deeds) if deed in ("solve", "break", "delete")), None)
            if last == "delete":
                break
            if last is not None:
                return f"{self.mark}\n\n```{self.task.target.language}\n{turn.code(last)}```\n"
        return f"{self.mark}\n\nThere is no code.\n"


def _worked(call: Call, steps: Iterator[ToolCall], done: int) -> Answer:
    """The answer with the next step, or with none."""
    tools = tuple(islice(steps, done, done + 1))
    ends = not tools or _SUBMIT in str(tools[0])
    answer = Answer("The work is done." if ends else f"Step {done}.", tools=tools)
    usage = used(call, answer)
    return replace(answer, usage=replace(usage, cached_input_tokens=usage.input_tokens // 2))


def _steps(tools: set[str], request: str, outputs: list[str], turn: _Turn | None) -> Iterator[ToolCall]:
    """All that an agent does at a turn, which is known from the output of the first step."""
    file = named[1] if (named := _FILE.search(request)) else "solution.py"
    shell = next(name for name in SHELLS if name in tools)

    def run(command: str) -> ToolCall:
        return ToolCall(shell, {SHELLS[shell]: command})

    yield run(f"(pwd; ls {file}; cat {file} {_NOTE}) 2>/dev/null; true")
    assert turn is not None
    if not {"solve", "break"} & set(turn.deeds):
        yield run(f"echo '{turn.mark}' > {_NOTE}")
    for deed in turn.deeds:
        if deed in ("solve", "break"):
            code = turn.code(deed)
            if "Write" in tools:
                folder, *rest = outputs[0].split("\n")
                path = {"file_path": f"{folder}/{file}"}
                if file in rest:  # must be read before it is written
                    yield ToolCall("Read", path)
                yield ToolCall("Write", path | {"content": code})
            elif shell == "exec_command":
                lines = code.rstrip("\n").replace("\n", "\n+")
                yield run(f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {file}\n+{lines}\n*** End Patch\nEOF")
            else:
                yield run(f"cat > {file} <<'EOF'\n{code}EOF")
            if file.endswith(".py"):
                yield run(f"python3 {file}")
        elif deed == "forever":
            yield from repeat(run("sleep 0.1"))
        elif deed != "nothing":
            yield run(f"rm {file}" if deed == "delete" else deed)
    if _SUBMIT in request:
        yield run(f"echo {_SUBMIT}")
