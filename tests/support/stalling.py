"""Replies that are made to silence the event loop, and how long it is silent.

`python tests/support/stalling.py 500` makes as many attempts and prints the longest silence of each kind.
"""

import asyncio
import random
import sys
import time
from collections.abc import Iterator

from codechat.base.domain import Target
from codechat.sandbox.languages import extract, without_thinking
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.judge_rules import RulesConfig, rules

PARTS = (
    *"+-*/%<>=!&|^~?:.,;()[]{}@#\\'\"`\n a1$",
    *("->", "::", "=>", "==", "&&", "||", "++", "--", "<<", ">>", "/*", "*/", "//", "(a)", "[0]", "{a:", "${", "/a/"),
    *(
        "if",
        "for",
        "while",
        "def ",
        "class ",
        "lambda ",
        "return ",
        "new ",
        "not ",
        "else ",
        "try",
        "case ",
        "a<",
        "x=",
    ),
)
PROGRAMS = {
    "python": ("def f(x):\n    return x ", "\n"),
    "java": ("class A { int f(int x) { return x ", "; } }"),
    "javascript": ("function f(x) { return x ", "; }"),
}
LENGTHS = (5_000, 19_000, 60_000)
BEAT_S = 0.001


def attempts(seed: int, number: int) -> Iterator[tuple[str, str]]:
    """Languages with replies."""
    chosen = random.Random(seed)
    for _ in range(number):
        language, length = chosen.choice(list(PROGRAMS)), chosen.choice(LENGTHS)
        parts = chosen.sample(PARTS, chosen.randint(1, 5))
        mixed = chosen.random() < 0.5
        text = "".join(chosen.choices(parts, k=length) if mixed else parts * length)
        before, after = PROGRAMS[language] if chosen.random() < 0.7 else ("", "")
        code = before + text[: length - 100] + after
        yield language, f"```{language}\n{code}\n```" if chosen.random() < 0.8 else code


async def silence(language: str, reply: str) -> float:
    """The longest time in seconds without a beat of the loop, while the reply is read and judged by every rule."""
    beats = [time.perf_counter()]

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            beats.append(time.perf_counter())

    beating = asyncio.create_task(beat())
    judge = rules(RulesConfig())
    good = "".join(PROGRAMS[language])
    found = extract(reply, Target(language, "f"))
    without_thinking(reply)
    await asyncio.sleep(2 * BEAT_S)
    for instruction in read_pool(EMBEDDED, {}).of(language):
        await judge.applicable(found.code or reply, instruction)
        await asyncio.sleep(0)  # as the protocol, which waits for the journal
        await judge.adherence(good, found.code or reply, instruction)
        await asyncio.sleep(2 * BEAT_S)
    beating.cancel()
    beats.append(time.perf_counter())
    return max(later - earlier for earlier, later in zip(beats, beats[1:], strict=False))


if __name__ == "__main__":
    longest: dict[str, float] = {}
    seconds = list[float]()
    for language, reply in attempts(int((sys.argv[2:] or ["0"])[0]), int(sys.argv[1])):
        seconds.append(asyncio.run(silence(language, reply)))
        longest[language] = max(longest.get(language, 0), seconds[-1])
        if seconds[-1] > 1:
            print(f"{seconds[-1]:.2f} s: {language} {reply[:80]!r}", flush=True)
    over = sum(each > 2 for each in seconds)
    print(f"{len(seconds)} attempts, {over} over 2 s; longest:", {key: round(each, 2) for key, each in longest.items()})
