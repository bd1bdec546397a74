"""Does an estimate come true? Six cells against a server that counts and caches as providers do, and their bills.

    python benchmarks/estimates.py [--tasks 30] [--pilot 10]

The server counts so many characters a token, thinks for a number of tokens that differs from call to call, wraps its
code in prose, and has cached what a request shares with earlier ones, in blocks of 128 tokens and from a least length
on. Each cell is estimated three times before its bill is known: by assumptions alone; by a pilot, which is a small cell
of the first tasks under another seed; and, afterwards, by its own replies. Shown is each estimate over the bill.
"""

import argparse
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat import compose, run
from codechat.testing import Answer, OpenAIServer, dataset_tasks, fading_solver

BLOCK = 128
PRICES = "{input: 1.25, output: 10, cached_input: 0.125}"


@dataclass(frozen=True)
class Case:
    """A cell and how its endpoint counts: tokens of reasoning in the mean, and the least length that is cached."""

    name: str
    words: tuple[str, ...]
    characters: float = 4.0
    reasoning: int = 0
    caches_from: int | None = None
    judged: bool = False


CASES = (
    Case("rules judge, no cache", ("seed=3",), characters=3.6),
    Case("reasoning, cached from 1,024", ("seed=3",), reasoning=900, caches_from=1024),
    Case("cached from 0, escalating", ("agenda=escalating",), characters=3.4, caches_from=0),
    Case("models judge", ("judge=llm",), characters=3.8, judged=True),
    Case("models judge and reason, cached", ("judge=llm",), reasoning=400, caches_from=1024, judged=True),
    Case("four turns, reasoning", ("agenda.turns=4", "seed=5"), characters=4.2, reasoning=1500, caches_from=1024),
)


class Endpoint:
    """Answers as the fading model and a judge do, and counts."""

    def __init__(self, case: Case) -> None:
        self._case, self._solve = case, fading_solver(dataset_tasks("starter"))
        self._known: set[str] = set()

    def __call__(self, call: Any) -> Any:
        reply, case = self._solve(call), self._case
        if not isinstance(reply, str):
            return reply
        luck = int(hashlib.sha256("".join(m["content"] for m in call.messages).encode()).hexdigest()[:8], 16) / 2**32
        text = "\n".join(f"{message['role']}: {message['content']}" for message in call.messages)
        sent = round(len(text) / case.characters)
        said = round(len(reply) / case.characters + case.reasoning * (0.4 + 1.2 * luck))
        step = round(BLOCK * case.characters)
        ends = [hashlib.sha256(text[:end].encode()).hexdigest() for end in range(step, len(text) + 1, step)]
        cached = BLOCK * next((at for at, end in enumerate(ends) if end not in self._known), len(ends))
        if case.caches_from is None or cached < case.caches_from:
            cached = 0
        whole = f"{text}\nassistant: {reply}"
        self._known |= {hashlib.sha256(whole[:end].encode()).hexdigest() for end in range(step, len(whole) + 1, step)}
        usage = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
        return Answer(reply, usage={**usage, "prompt_tokens_details": {"cached_tokens": cached}})


def dollars(costs: Any) -> float:
    """The sum over the payers."""
    return float(sum(each or 0.0 for each in costs.values()))


def measure(case: Case, tasks: int, pilot: int, place: Path) -> tuple[float, list[float]]:
    """The bill, and the three estimates."""
    with OpenAIServer(Endpoint(case), keep_calls=False) as server:
        address = [f"base_url={server.base_url}", f"prices={PRICES}", "cache=false"]
        words = ["tracking=none", "model=openai", "model.name=fading-12", *(f"model.{word}" for word in address)]
        if case.judged:
            for role in ("applicability", "adherence"):
                words += [f"model@judge.{role}=openai", f"judge.{role}.name=judge-0"]
                words += [f"judge.{role}.{word}" for word in address]
        words += [*case.words, f"dataset.limit={tasks}"]
        small = [*words, f"dataset.limit={pilot}", "seed=77", f"runs_dir={place / 'pilot'}"]
        piloted = run(compose(small)).folder
        dry = [*words, "dry_run=true", f"runs_dir={place / 'none'}"]
        before = [run(compose([*dry, *extra])).estimate for extra in ([], [f"pilot={piloted}"])]
        done = run(compose([*words, f"runs_dir={place / 'whole'}"]))
        before.append(run(compose([*dry, f"pilot={done.folder}"])).estimate)
    assert done.metrics is not None
    return dollars(done.metrics["spent_usd"]), [dollars(each.usd) for each in before if each is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--pilot", type=int, default=10)
    chosen = parser.parse_args()
    print("| cell | bill | assumptions alone | by a pilot | by its own replies |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for case in CASES:
        with tempfile.TemporaryDirectory() as place:
            bill, estimates = measure(case, chosen.tasks, chosen.pilot, Path(place))
        shares = " | ".join(f"{100 * (each / bill - 1):+.1f} %" for each in estimates)
        print(f"| {case.name} | ${bill:.3f} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
