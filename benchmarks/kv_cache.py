"""How much of the prompts a vLLM's prefix cache serves, by the order in which dialogues take their turns.

    python benchmarks/kv_cache.py --dialogues 542 --turns 10

Simulated: a server that answers `--slots` requests at once and keeps blocks of 16 tokens, the least recently used of
which leave when its memory is full. Blocks of requests under way do not leave, and a request that does not fit waits.
Dialogues grow by `--turn-tokens` a turn from a prompt of `--prompt-tokens`, with a pause for tests and judges between a
reply and the next request. Both orders are the engine's own: as many sessions as `2 * (slots + workers)`, the default
for any endpoint, and as many as `ServerCapacity` of codechat.run.running.server_capacity lets begin for the memory that
the server tells.

Hit rate: cached tokens of prompts / tokens of prompts; at best that of a memory without end. Hours: by tokens that the
server reads a second in all (`--read-per-s`: many for a small model, few for a large one), and 40 written by a request.
"""

import argparse
import asyncio
import heapq
import itertools
import random
from collections import OrderedDict
from dataclasses import dataclass, field

from codechat.run.running.server_capacity import ServerCapacity

BLOCK, WORKERS = 16, 2
WRITE_PER_S = 40.0
"""Tokens a second that one request writes."""


@dataclass
class Memory:
    """Blocks by (dialogue, number): those in use, and those that may leave, the least recently used first."""

    size: int
    used: dict[int, int] = field(default_factory=dict)
    free: "OrderedDict[tuple[int, int], None]" = field(default_factory=OrderedDict)

    def fits(self, tokens: int) -> bool:
        """Whether a request can begin that will have so many tokens in the end: a vLLM lets it wait otherwise."""
        return not self.used or sum(self.used.values()) + tokens // BLOCK <= self.size

    def read(self, dialogue: int, tokens: int, in_the_end: int) -> int:
        """Begin a request: the tokens of its beginning that were there. Its blocks are then in use."""
        whole, found = tokens // BLOCK, 0
        while found < whole and (dialogue, found) in self.free:
            found += 1
        for number in range(whole):
            self.free.pop((dialogue, number), None)
        self.used[dialogue] = in_the_end // BLOCK
        self._shrink()
        return found * BLOCK

    def write(self, dialogue: int) -> None:
        """End a request: its conversation and reply are kept, the end leaving before the beginning."""
        for number in range(self.used.pop(dialogue) - 1, -1, -1):
            self.free[dialogue, number] = None
        self._shrink()

    def _shrink(self) -> None:
        for _ in range(min(len(self.free), len(self.free) + sum(self.used.values()) - self.size)):
            self.free.popitem(last=False)


@dataclass(frozen=True)
class Study:
    """The dialogues, and the server's slots."""

    dialogues: int
    turns: int
    prompt: int
    turn: int
    reply: int
    slots: int
    read_per_s: float
    seed: int = 0

    @property
    def longest(self) -> int:
        """Tokens of a whole dialogue."""
        return self.prompt + (self.turns - 1) * self.turn + self.turns * self.reply

    def run(self, memory_tokens: int, at_once: int) -> tuple[float, float]:
        """Hit rate and hours with so many dialogues at once."""
        luck, memory = random.Random(self.seed), Memory(memory_tokens // BLOCK)
        asked = cached = 0
        now, reading_free = 0.0, 0.0
        events: list[tuple[float, int, str, int, int]] = []  # time, order, kind, dialogue, turn
        order, queue, busy, begun = itertools.count(), list[tuple[int, int]](), 0, 0
        for begun in range(min(at_once, self.dialogues)):
            heapq.heappush(events, (0.0, next(order), "ask", begun, 0))
        begun = min(at_once, self.dialogues)
        while events:
            now, _, kind, dialogue, turn = heapq.heappop(events)
            if kind == "ask":
                queue.append((dialogue, turn))
            else:
                busy -= 1
                memory.write(dialogue)
                if turn + 1 < self.turns:
                    heapq.heappush(events, (now + luck.expovariate(1 / 3.0), next(order), "ask", dialogue, turn + 1))
                elif begun < self.dialogues:
                    heapq.heappush(events, (now, next(order), "ask", begun, 0))
                    begun += 1
            while queue and busy < self.slots and memory.fits(self._tokens(queue[0][1]) + self.reply):
                dialogue, turn = queue.pop(0)
                busy += 1
                tokens = self._tokens(turn)
                had = memory.read(dialogue, tokens, tokens + self.reply)
                asked, cached = asked + tokens, cached + had
                reading_free = max(now, reading_free) + (tokens - had) / self.read_per_s
                ends = reading_free + luck.gauss(1, 0.1) * self.reply / WRITE_PER_S
                heapq.heappush(events, (ends, next(order), "answered", dialogue, turn))
        return cached / asked, now / 3600

    def _tokens(self, turn: int) -> int:
        return self.prompt + turn * (self.turn + self.reply)


def depth_first(memory_tokens: int, tokens: int) -> int:
    """The sessions that the engine lets begin for such a memory."""

    async def look() -> float:
        capacity = ServerCapacity(tokens, lambda: memory_tokens)
        await capacity.update()
        return capacity.allowed

    return int(asyncio.run(look()))


def main() -> None:
    """Print a line for each memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {
        "dialogues": 542, "turns": 10, "prompt-tokens": 200, "turn-tokens": 40, "reply-tokens": 300, "slots": 64,
        "read-per-s": 10_000,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    study = Study(
        chosen.dialogues,
        chosen.turns,
        chosen.prompt_tokens,
        chosen.turn_tokens,
        chosen.reply_tokens,
        chosen.slots,
        chosen.read_per_s,
    )
    breadth = 2 * (study.slots + WORKERS)
    best, _ = study.run(10**9, breadth)
    print(f"{study.dialogues} dialogues of {study.longest:,} tokens; at best {best:.1%} of prompts are cached")
    print("memory (tokens)   breadth first         depth first")
    for share in (8, 16, 32, 64, 128, 256):
        memory = share * study.longest
        deep = min(depth_first(memory, study.longest), breadth)
        (one, hours), (other, deep_hours) = study.run(memory, breadth), study.run(memory, deep)
        print(
            f"{memory:>9,} ({share:>3} ×)  {one:6.1%} in {hours:5.2f} h ({breadth})  "
            f"{other:6.1%} in {deep_hours:5.2f} h ({deep})"
        )


if __name__ == "__main__":
    main()
