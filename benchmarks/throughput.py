"""What the engine costs beside a model call, with the bare typed `openai` client as the floor in the same run.

    python benchmarks/throughput.py --sessions 100 --latency 0.05 --concurrency 64

Both hold the same dialogues (ten turns, growing history) with the same local server, which answers after `latency`
seconds from a process of its own. The engine does everything but run candidate code: scheduling, extraction, rules,
journal, records. CPU is that of the client process, user and system, after its imports; `ideal` is the larger of the
critical path (turns x latency) and the capacity (calls x latency / concurrency).
"""

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

TURNS = 10


def serve(latency: float) -> None:
    """Serve until killed: every answer is the starter task's reference, `latency` seconds late.

    No two are the same text, so that nothing that was read before helps to read the next.
    """
    from codechat.testing import Call, OpenAIServer, dataset_tasks, reference_solver

    solve = reference_solver(dataset_tasks("starter"))

    async def late(call: Call) -> Any:
        await asyncio.sleep(latency)
        answer: Any = solve(call)
        return answer.replace("\n```\n", f"\n# version {call.number}\n```\n")

    with OpenAIServer(late, keep_calls=False) as server:
        print(server.base_url, flush=True)
        time.sleep(3600)


def floor(url: str, sessions: int, concurrency: int) -> dict[str, float]:
    """The typed client alone, holding the same dialogues."""
    from openai import AsyncOpenAI

    from codechat.testing import dataset_tasks

    tasks = dataset_tasks("starter")

    async def hold(client: Any, slots: asyncio.Semaphore, number: int) -> None:
        history: list[Any] = []
        for turn in range(TURNS):
            text = tasks[number % len(tasks)].prompt if turn == 0 else f"Change number {turn}."
            history.append({"role": "user", "content": text})
            async with slots:
                reply = await client.chat.completions.create(model="m", messages=history, temperature=0)
            history.append({"role": "assistant", "content": reply.choices[0].message.content})

    async def main() -> None:
        slots = asyncio.Semaphore(concurrency)
        async with AsyncOpenAI(base_url=url, api_key="none") as client:
            await asyncio.gather(*(hold(client, slots, number) for number in range(sessions)))

    return _timed(main)


def engine(url: str, sessions: int, concurrency: int) -> dict[str, float]:
    """A cell of the same size; its sandbox passes everything at once."""
    from instant import register

    from codechat.models.calls import Brake
    from codechat.report.metrics.spending import Tariff
    from codechat.run.cell import build_cell
    from codechat.run.cell.budget import Budget
    from codechat.run.journal import Journal
    from codechat.run.running.observer import Silent
    from codechat.run.running.sessions import run_missing_sessions
    from codechat.run.settings.compose import compose

    register([])
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "sandbox=instant", "tracking=none", "model=openai", "model.name=m", f"model.base_url={url}",
            f"model.max_concurrency={concurrency}", f"runs_dir={folder}", "model.cache=false",
        ]  # fmt: skip
        cell = build_cell(compose(words))
        many = [dataclasses.replace(cell.tasks[n % len(cell.tasks)], task_id=f"t/{n}") for n in range(sessions)]
        cell = dataclasses.replace(cell, tasks=tuple(many))
        import openai  # noqa: F401  imports are not counted

        import codechat.models.calls.transport  # noqa: F401

        journal = Journal(cell.folder / "journal.db")
        return _timed(lambda: run_missing_sessions(cell, journal, Silent(), Brake(), Budget(None, None, Tariff())))


def _timed(work: Any) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work())
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def main() -> None:
    """Run floor and engine against one server, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--role", choices=["serve", "floor", "engine"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role == "serve":
        serve(chosen.latency)
    elif chosen.role:
        print(
            json.dumps({"floor": floor, "engine": engine}[chosen.role](chosen.url, chosen.sessions, chosen.concurrency))
        )
    else:
        _compare(chosen.sessions, chosen.latency, chosen.concurrency)


def _compare(sessions: int, latency: float, concurrency: int) -> None:
    calls = sessions * TURNS
    ideal = max(TURNS * latency, calls * latency / concurrency)
    options = [f"--sessions={sessions}", f"--latency={latency}", f"--concurrency={concurrency}"]
    server = subprocess.Popen([sys.executable, __file__, "--role=serve", *options], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        found = {}
        for role in ("floor", "engine"):
            words = [sys.executable, __file__, f"--role={role}", f"--url={url}", *options]
            found[role] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
            milliseconds, ratio = 1000 * found[role]["cpu_s"] / calls, found[role]["wall_s"] / ideal
            print(
                f"{role:<7} {milliseconds:5.2f} ms CPU a call, wall {found[role]['wall_s']:.2f} s = {ratio:.2f} x ideal"
            )
        ratio = found["engine"]["cpu_s"] / found["floor"]["cpu_s"]
        print(f"engine / floor: {ratio:.2f} in CPU ({calls} calls, ideal {ideal:.2f} s)")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
