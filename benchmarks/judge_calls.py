"""What `judge.batch` and rules save: the questions about applicability that recorded sessions took, asked otherwise.

    python benchmarks/judge_calls.py runs=FOLDER[,FOLDER]     # cells of protocol=refine
    python benchmarks/judge_calls.py                          # a cell of the drifter over the starter tasks

Every candidate that the records hold is counted as a question to a model (`judge=llm`), with the few-shot prompt, four
characters a token: first one by one, then with so many together, which also asks about those behind the one that was
chosen. *Rules first*: only those that the recorded judge's rules could not decide. *Equal*: questions about an equal
code and instruction, which the response cache answers if the judge is greedy. Words of answers are not counted.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from codechat import compose, run
from codechat.base.records import SessionRecord, read_sessions
from codechat.judging.llm import TOGETHER

CHARACTERS = 4


class Asked(NamedTuple):
    """What is known of one choice: the code, the candidates up to the chosen one, and how many rules could decide."""

    code: str
    candidates: tuple[str, ...]
    undecided: int


def choices(session: SessionRecord) -> Iterator[Asked]:
    """The choices of a session."""
    code = ""
    for turn in session.turns:
        if turn.candidates and code:
            by_rules = sum(each.by == "rules" and each.applicable is not None for each in turn.candidates)
            yield Asked(code, tuple(each.id for each in turn.candidates), len(turn.candidates) - by_rules)
        code = turn.code or code


def main() -> None:
    words = [word.removeprefix("runs=") for word in sys.argv[1:] if word.startswith("runs=")]
    config = compose(["judge=llm", "instructions=default"]).config
    single, together = len(config.judge.prompts.applicability), len(TOGETHER)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(each) for word in words for each in word.split(",")]
        folders = folders or [run(compose(["tracking=none", f"runs_dir={place}"])).folder]
        found = [each for path in folders for session in read_sessions(path / "sessions.jsonl")
                 for each in choices(session)]  # fmt: skip
    sizes = [len(each.candidates) for each in found]
    every = [(each.code, name) for each in found for name in each.candidates]
    print(f"{len(found)} choices, {sum(sizes)} candidates; equal: {len(every) - len({*every})}; "
          f"rules first: {sum(each.undecided for each in found)}\n")  # fmt: skip
    print("| together | calls | input tokens |\n| ---: | ---: | ---: |")
    for batch in (1, 2, 3, 5, 8):
        calls = tokens = 0
        for each in found:
            groups = -(-len(each.candidates) // batch)
            calls += groups
            head = single if batch == 1 else together
            tokens += groups * (head + len(each.code) + 60 * batch) // CHARACTERS  # an instruction is some 60 letters
        print(f"| {batch} | {calls:,} | {tokens:,} |")


if __name__ == "__main__":
    main()
