"""Cells in other languages than Python: tasks of one's own in Java, and a served model that refactors by the tree."""

import json
import re
from pathlib import Path

from codechat.base.domain import Instruction
from codechat.datasets.tasks import Task
from codechat.studies.refine.baselines.drifting import refactor_tree
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.testing import Call
from codechat.testing.server import Solver, reference_solver

COUNT = """import java.util.*;

class Solution {
    public int countEven(List<Integer> numbers) {
        int n = 0;
        for (int number : numbers) {
            if (number % 2 == 0) {
                n += 1;
            }
        }
        return n;
    }
}
"""
SHOUT = """class Solution {
    /** Every word in capitals. */
    public String shout(String text, int times) {
        StringBuilder made = new StringBuilder();
        for (int round = 0; round < times; round++) {
            made.append(text.toUpperCase()).append('!');
        }
        return made.toString();
    }
}
"""
JAVA = [
    {
        "task_id": "mine/count", "prompt": "Count the even numbers of a list: countEven.", "canonical_solution": COUNT,
        "entry_point": "countEven", "signature": "public int countEven(List<Integer> numbers)",
        "base_input": [[[1, 2, 4]], [[]]], "base_output": [2, 0], "plus_input": [[[3, 5]]], "plus_output": [0],
    },
    {
        "task_id": "mine/shout", "prompt": "Say a text so many times, in capitals: shout.", "canonical_solution": SHOUT,
        "entry_point": "shout", "signature": "public String shout(String text, int times)",
        "base_input": [["hey", 2], ["", 1], ["a b", 0]], "base_output": ["HEY!HEY!", "!", ""],
    },
]  # fmt: skip


def words_for(language: str, folder: Path) -> list[str]:
    """The settings of a small cell in a language, whose tasks are written into the folder if they are no dataset."""
    words = ["agenda.turns=3", "tracking=none", "hardware.workers=1", "protocol.prompts=neutral"]
    if language == "javascript":
        return [*words, "dataset=starter_javascript", "dataset.limit=3"]
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({**row, "language": "java"}) + "\n" for row in JAVA))
    return [*words, "dataset=jsonl", f"dataset.path={path}"]


def refactoring_solver(tasks: tuple[Task, ...]) -> Solver:
    """The reference first, then every change of the tree's drifter, without a defect: by the request alone."""
    first = reference_solver(tasks)
    language = tasks[0].target.language
    asked: dict[str, Instruction] = {one.text: one for one in read_pool(EMBEDDED, {}).of(language)}

    def answer(call: Call) -> object:
        said = [each["content"] for each in call.messages if each["role"] == "assistant"]
        if not said:
            return first(call)
        code = re.search(r"```\w+\n(.*?)```", said[-1], re.DOTALL)
        assert code is not None
        instruction = asked[call.messages[-1]["content"].split("\n")[0]]
        made = refactor_tree(code[1], instruction, language, "")
        return f"Done.\n```{language}\n{made}```\n"

    return answer  # type: ignore[return-value]
