"""The recipe `steps`: from seeds to tasks that a cell runs, with agents behind a server."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.base.domain import Program, Verdict
from codechat.cli.app import main
from codechat.run.construct import Item, Kit
from codechat.run.construct.recipe import compose_construction
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.sreval.construct import Steps, StepsConfig, StepsRoles
from codechat.testing import Call, OpenAIServer
from support.construction import read, write
from support.machine import needs_java

QUOTED = re.compile(r"<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)
SEED = re.compile(r"\bs\d+\b")
ROLES = ("converter", "decomposer", "evaluator", "analyzer", "coder", "alignment")
MARKS = {"testability": "pass", "completeness": "pass", "distinctiveness": "pass", "authenticity": "pass"}
PLAIN = {"naming": "pass", "message": "pass", "decision": "RETAIN"}


def parts_of(call: Call) -> dict[str, str]:
    """What a prompt quotes, by name; without re-asks."""
    return {name.lower(): text for name, _, text in QUOTED.findall(call.messages[0]["content"])}


def steps_of(seed: str, count: int) -> list[str]:
    return [f"Let f add {number} to its argument ({seed})." for number in range(1, count + 1)]


def program(number: int) -> str:
    return f"def f(x):\n    return x + {number}\n"


def checks_of(number: int, body: str = "") -> str:
    body = body or f"self.assertEqual(f(1), {1 + number})"
    return f"import unittest\n\n\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        {body}\n"


def blocks(*texts: str) -> str:
    return "First the program, then its tests.\n\n" + "\n".join(f"```python\n{text}```\n" for text in texts)


@dataclass
class Agents:
    """Agents that make of every seed `count` steps; a test replaces whom it wants to answer otherwise."""

    count: int = 2
    others: dict[str, Callable[[dict[str, str], int], str]] = field(default_factory=dict)
    delay_s: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)  # by seed: the first call, the last answer

    async def __call__(self, call: Call) -> str:
        role, parts = call.body["model"], parts_of(call)
        self.asked[role] += 1
        seed, began = next(iter(SEED.findall(" ".join(parts.values()))), ""), time.monotonic()
        await asyncio.sleep(self.delay_s)
        self.spans[seed] = (self.spans.get(seed, (began, 0))[0], time.monotonic())
        if role in self.others:
            return self.others[role](parts, self.asked[role])
        return self.answer(role, parts)

    def answer(self, role: str, parts: dict[str, str]) -> str:
        if role == "decomposer":
            return json.dumps({"instructions": steps_of(parts["instruction"], self.count)})
        if role == "evaluator":
            return json.dumps({**MARKS, "decision": "RETAIN"})
        if role == "analyzer":
            return json.dumps({"edges": [[step, step + 1] for step in range(1, self.count)]})
        if role == "alignment":
            return json.dumps(PLAIN)
        number = int(re.findall(r"add (\d+)", parts["requirement"])[0])
        return blocks(program(number), checks_of(number))


def seeds(count: int) -> list[dict[str, Any]]:
    whole = {"solution": program(2), "tests": "assert f(1) == 3", "language": "python"}
    return [{"id": f"s{number}", "instruction": f"s{number}", **whole} for number in range(count)]


Construct = Callable[..., int]


@pytest.fixture
def construct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Construct]:
    """Runs the command with agents; `OUT` is its folder."""
    monkeypatch.chdir(tmp_path)

    def command(agents: Agents, rows: Sequence[dict[str, Any]], *words: str, out: str = "out") -> int:
        write(tmp_path / "seeds.jsonl", rows)
        with OpenAIServer(agents, models=ROLES) as server:
            place = "construct.roles"
            models = [f"model@{place}.{role}=openai" for role in ROLES]
            named = [f"{place}.{role}.name={role}" for role in ROLES]
            at = [
                f"{place}.{role}.{key}" for role in ROLES for key in (f"base_url={server.base_url}", "api_key_env=null")
            ]
            given = ["recipe=steps", "seeds=seeds.jsonl", f"out={out}", "tracking=none"]
            return main(["construct", *given, *models, *named, *at, *words])

    yield command


def test_tasks_load_as_they_are_and_their_references_pass(construct: Construct, tmp_path: Path) -> None:
    assert construct(Agents(), seeds(2)) == 0
    items = read(tmp_path / "out" / "items.jsonl")
    assert [item["task_id"] for item in items] == ["s0", "s1"]
    assert items[0]["provenance"]["attempts"] == [1, 1] and items[0]["provenance"]["told_by"] == [None, "fails"]
    cell = ["model=reference", "protocol=stepwise", "dataset=jsonl", "dataset.path=out/items.jsonl", "tracking=none"]
    outcome = run(compose(cell))
    assert outcome.status == 0 and outcome.metrics is not None and outcome.metrics["complete_rate"] == 1.0
    before = run(compose([*cell, "model=previous"]))
    assert before.metrics is not None and before.metrics["acc"] == [1.0, 0.0]


def test_a_refused_decomposition_sees_itself_and_the_feedback(construct: Construct, tmp_path: Path) -> None:
    heard: list[dict[str, str]] = []

    def decomposer(parts: dict[str, str], number: int) -> str:
        heard.append(parts)
        return Agents().answer("decomposer", parts)

    def evaluator(parts: dict[str, str], number: int) -> str:
        retained = json.dumps({**MARKS, "decision": "RETAIN"})
        refused = json.dumps({**MARKS, "testability": "fail", "decision": "REJECT", "feedback": "say the value"})
        return retained if number > 1 else refused

    assert construct(Agents(others={"decomposer": decomposer, "evaluator": evaluator}), seeds(1)) == 0
    assert (
        "attempt" not in heard[0]
        and heard[1]["feedback"] == "say the value"
        and "1. Let f add 1" in heard[1]["attempt"]
    )
    assert read(tmp_path / "out" / "items.jsonl")[0]["provenance"]["rounds"] == 2


def test_after_the_last_round_people_give_the_steps(construct: Construct, tmp_path: Path) -> None:
    refused = json.dumps({**MARKS, "testability": "fail", "decision": "REJECT", "feedback": "vague"})
    agents = Agents(others={"evaluator": lambda parts, number: refused})
    assert construct(agents, seeds(1), "construct.rounds=2") == 0
    assert agents.asked["decomposer"] == 2 and not read(tmp_path / "out" / "items.jsonl")
    (question,) = read(tmp_path / "out" / "questions.jsonl")
    assert question["item"] == "s0" and "refused 2 times" in question["question"]
    write(tmp_path / "answers.jsonl", [{"question": question["id"], "answer": "add 1 first\n\nadd 2 then"}])
    assert construct(agents, seeds(1), "construct.rounds=2", "answers=answers.jsonl") == 0
    assert agents.asked["decomposer"] == 2  # no reply is paid twice
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert [turn["instruction"] for turn in item["turns"]] == ["add 1 first", "add 2 then"]


def test_a_retain_with_a_failing_mark_and_six_steps_go_to_people(construct: Construct, tmp_path: Path) -> None:
    torn = json.dumps({**MARKS, "completeness": "fail", "decision": "RETAIN", "feedback": "None is left out"})

    def evaluator(parts: dict[str, str], number: int) -> str:
        return torn if "(s0)" in parts["steps"] else Agents().answer("evaluator", parts)

    def decomposer(parts: dict[str, str], number: int) -> str:
        many = 6 if "feedback" not in parts or "s2" in parts["instruction"] else 2
        return json.dumps({"instructions": steps_of(parts["instruction"], 2 if parts["instruction"] == "s0" else many)})

    agents = Agents(others={"evaluator": evaluator, "decomposer": decomposer})
    assert construct(agents, seeds(3), "construct.rounds=2") == 0
    questions = {each["item"]: each for each in read(tmp_path / "out" / "questions.jsonl")}
    assert {*questions} == {"s0", "s2"} and not read(tmp_path / "out" / "dropped.jsonl")
    assert "completeness fails" in questions["s0"]["question"] and "None is left out" in questions["s0"]["question"]
    assert "6 instructions" in questions["s2"]["question"] and questions["s2"]["suggestion"].count("\n") == 5
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert item["task_id"] == "s1" and item["provenance"]["rounds"] == 2  # six steps were one refusal
    answers = [
        {"question": questions["s0"]["id"], "do": "suggestion"},
        {"question": questions["s2"]["id"], "do": "drop"},
    ]
    write(tmp_path / "answers.jsonl", answers)
    assert construct(agents, seeds(3), "construct.rounds=2", "answers=answers.jsonl") == 0
    assert [row["task_id"] for row in read(tmp_path / "out" / "items.jsonl")] == ["s0", "s1"]


def test_the_last_program_must_pass_the_seeds_own_tests(construct: Construct, tmp_path: Path) -> None:
    """Of four seeds with the same steps two ask for more than these give, one has no tests."""
    more = "\n\nassert f(None) is None"
    deaf = "def f(x):\n    return None if x is None else x + 2\n"
    rows = seeds(4)
    rows[1] |= {"solution": deaf, "tests": rows[1]["tests"] + more}
    rows[2] |= {"solution": deaf, "tests": ["assert f(1) == 3", "import unittest\n\n\nclass T(unittest.TestCase):\n"
                "    def test_none(self):\n        self.assertIsNone(f(None))\n"]}  # fmt: skip
    del rows[3]["tests"]
    assert construct(Agents(), rows) == 0
    items = {row["task_id"]: row["provenance"]["complete"] for row in read(tmp_path / "out" / "items.jsonl")}
    assert items == {"s0": True, "s3": None}
    dropped = {row["id"]: row for row in read(tmp_path / "out" / "dropped.jsonl")}
    assert {(row["stage"], row["reason"]) for row in dropped.values()} == {("completeness", "incomplete")}
    assert {*dropped} == {"s1", "s2"} and "NoneType" in dropped["s1"]["detail"]
    assert construct(Agents(), rows, "skip=[completeness]", out="ablation") == 0
    assert len(read(tmp_path / "ablation" / "items.jsonl")) == 4


def test_an_invalid_graph_goes_back_once_and_then_drops_the_seed(construct: Construct, tmp_path: Path) -> None:
    heard: list[dict[str, str]] = []

    def analyzer(parts: dict[str, str], number: int) -> str:
        heard.append(parts)
        good = "s0" in parts["steps"] and "feedback" in parts
        return json.dumps({"edges": [[1, 2]] if good else [[2, 2]], "order": [2, 1]})

    agents = Agents(others={"analyzer": analyzer})
    assert construct(agents, seeds(2), "hardware.workers=1") == 0
    assert agents.asked["analyzer"] == 4
    assert "cycle" in next(parts["feedback"] for parts in heard if "feedback" in parts)
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert item["provenance"]["order"] == [1, 2]  # the proposed order was none
    (dropped,) = read(tmp_path / "out" / "dropped.jsonl")
    assert (dropped["id"], dropped["stage"], dropped["reason"]) == ("s1", "decompose", "no graph")


def test_the_coder_sees_nothing_of_a_seed_that_stands_alone(construct: Construct) -> None:
    heard: list[dict[str, str]] = []

    def coder(parts: dict[str, str], number: int) -> str:
        heard.append(parts)
        return "I cannot." if number == 1 else Agents().answer("coder", parts)

    assert construct(Agents(others={"coder": coder}), seeds(1)) == 0
    assert [sorted(parts) for parts in heard] == [["requirement"], ["requirement"], ["previous", "requirement"]]
    assert heard[2]["previous"].strip() == program(1).strip()


def test_a_question_about_a_requirement_waits_and_is_answered(construct: Construct, tmp_path: Path) -> None:
    unclear = {**PLAIN, "naming": "fail", "naming_reason": "which f?", "decision": "QUESTION_REFINE"}

    def alignment(parts: dict[str, str], number: int) -> str:
        clear = "clearly" in parts["requirement"] or "add 1" in parts["requirement"]
        return json.dumps(PLAIN if clear else {**unclear, "instruction": "Let f clearly add 2."})

    agents = Agents(others={"alignment": alignment})
    assert construct(agents, seeds(2)) == 0
    questions = read(tmp_path / "out" / "questions.jsonl")
    assert [each["item"] for each in questions] == ["s0", "s1"] and "which f?" in questions[0]["question"]
    assert {each["suggestion"] for each in questions} == {"Let f clearly add 2."}
    answers = [{"question": questions[0]["id"], "do": "suggestion"}, {"question": questions[1]["id"], "do": "drop"}]
    write(tmp_path / "answers.jsonl", answers)
    assert construct(agents, seeds(2), "answers=answers.jsonl") == 0
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert item["turns"][1]["instruction"] == "Let f clearly add 2."
    assert [each["id"] for each in read(tmp_path / "out" / "dropped.jsonl")] == ["s1"]


SHARE, MANY = 5, 20  # every fifth seed has one kind of defect, every fifth the other


class Planted:
    """A coder with defects: at the last turn tests that any code passes, or that ask for a message nobody spoke of."""

    def __init__(self) -> None:
        self.agents = Agents(others={"coder": self.coder, "alignment": self.alignment})

    def coder(self, parts: dict[str, str], number: int) -> str:
        seed, step = (
            int(re.findall(r"\(s(\d+)\)", parts["requirement"])[0]),
            int(re.findall(r"add (\d)", parts["requirement"])[0]),
        )
        if step == 1:
            return Agents().answer("coder", parts)
        if seed % SHARE == 0:
            return blocks(program(step), checks_of(step, "self.assertIsInstance(f(1), int)"))
        if seed % SHARE == 1:
            shouts = "def f(x):\n    if x is None:\n        raise ValueError('nothing to add')\n    return x + 2\n"
            return blocks(shouts, checks_of(step, "self.assertRaisesRegex(ValueError, 'nothing to add', f, None)"))
        return Agents().answer("coder", parts)

    def alignment(self, parts: dict[str, str], number: int) -> str:
        refine = {**PLAIN, "message": "fail", "message_reason": "no words were asked for", "decision": "TEST_REFINE"}
        return json.dumps(refine if "nothing to add" in parts["tests"] else PLAIN)


@pytest.mark.long
@pytest.mark.parametrize(
    ("skip", "lets_through"),
    [("[]", set()), ("[alignment]", {1}), ("[distinctiveness]", {0}), ("[alignment,distinctiveness]", {0, 1})],
)
def test_each_check_stops_its_own_kind_of_defect(
    construct: Construct, tmp_path: Path, skip: str, lets_through: set[int]
) -> None:
    planted = Planted()
    assert construct(planted.agents, seeds(MANY), f"skip={skip}", "construct.attempts=2") == 0
    kept = {int(item["task_id"][1:]) for item in read(tmp_path / "out" / "items.jsonl")}
    stopped = {0, 1} - lets_through
    assert kept == {seed for seed in range(MANY) if seed % SHARE not in stopped}
    assert planted.agents.asked["alignment"] == 0 if "alignment" in skip else planted.agents.asked["alignment"] > 0


TILL = '''RATE = 2


class Till:
    def __init__(self):
        self.seen = []

    def total(self, prices):
        """The sum of prices."""
        self.seen.append(prices)
{body}
        return result * RATE
'''
BODY = "self.seen.append(prices)\n" + "result = 0\n" * 8 + "result += sum(prices)\nreturn result * RATE"
METHOD = "def total(self, prices):\n    return sum(prices){more} * 2\n"
SEED_TEST = "def test_total():\n    assert Till().total([1, 2]) == 6\n"


def repository(root: Path, body: str) -> dict[str, Any]:
    (root / "shop").mkdir()
    (root / "tests").mkdir()
    code = TILL.format(body="        result = 0\n" * 8 + "        result += sum(prices)")
    (root / "shop" / "till.py").write_text(code)
    (root / "shop" / "__init__.py").write_text("")
    (root / "tests" / "test_till.py").write_text(f"from shop.till import Till\n\n\n{SEED_TEST}")
    where = {"project": "shop", "folder": str(root), "file": "shop/till.py", "beside": "tests/test_till.py::test_total"}
    place = {"kind": "inserted", **where, "function": "total", "lines": [8, code.count("\n")]}
    head = {"signature": "def total(self, prices):", "docstring": "The sum of prices."}
    return {"id": "shop/total", **head, "body": body, "tests": SEED_TEST, "place": place}


def shop_agents(recall: str) -> Agents:
    def decomposer(parts: dict[str, str], number: int) -> str:
        return json.dumps({"instructions": ["Sum the prices.", "Double the sum."]})

    def coder(parts: dict[str, str], number: int) -> str:
        second = "Double" in parts["requirement"]
        total = 6 if second else 3
        code = METHOD.format(more="") if second else "def total(self, prices):\n    return sum(prices)\n"
        return blocks(code, f"def test_new():\n    assert Till().total([1, 2]) == {total}\n")

    def convert(parts: dict[str, str], number: int) -> str:
        assert parts["signature"] == "def total(self, prices):" and "RATE" in parts["body"]
        return json.dumps({"instruction": "Write total(self, prices)."})

    others = {"decomposer": decomposer, "coder": coder, "converter": convert}
    return Agents(others={**others, "recall": lambda parts, number: f"```python\n{recall}```"})


@pytest.mark.long
def test_a_function_of_a_repository_is_made_in_place(construct: Construct, tmp_path: Path) -> None:
    seed = repository(tmp_path, BODY)
    heard: list[dict[str, str]] = []
    agents = shop_agents("")
    coder = agents.others["coder"]
    agents.others["coder"] = lambda parts, number: heard.append(parts) or coder(parts, number)  # type: ignore[func-returns-value]
    assert construct(agents, [seed]) == 0
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert [turn["suite"]["kind"] for turn in item["turns"]] == ["inserted", "inserted"]
    assert item["provenance"]["told_by"] == [None, "fails"] and agents.asked["converter"] == 1
    assert "RATE" in heard[0]["reference"] and "test_total" in heard[0]["tests"]  # Algorithm 1, line 8
    cell = ["model=reference", "protocol=stepwise", "dataset=jsonl", "dataset.path=out/items.jsonl", "tracking=none"]
    outcome = run(compose(cell))
    assert outcome.metrics is not None and outcome.metrics["complete_rate"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "recall", "end"),
    [
        (BODY.replace("sum(prices)", "0"), "", ("filter", "fails in place")),
        ("self.seen.append(prices)\nreturn sum(prices) * RATE", "", ("filter", "short body")),
        (BODY, METHOD.format(more=""), ("recall", "contaminated")),
    ],
)
def test_a_repositorys_function_may_be_dropped_before(
    construct: Construct, tmp_path: Path, body: str, recall: str, end: tuple[str, str]
) -> None:
    role = "construct.roles.recall_1"
    with OpenAIServer(shop_agents(recall), models=["recall"]) as server:
        asked = [
            f"model@{role}=openai",
            f"{role}.name=recall",
            f"{role}.base_url={server.base_url}",
            f"{role}.api_key_env=null",
        ]
        assert construct(shop_agents(recall), [repository(tmp_path, body)], *asked) == 0
    (dropped,) = read(tmp_path / "out" / "dropped.jsonl")
    assert (dropped["stage"], dropped["reason"]) == end


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ([{**seeds(1)[0], "tests": "assert f(1) == 11"}], [], "s0"),
        ([{**seeds(1)[0], "solution": "x = 1\n"}], [], "no function"),
        ([{**seeds(1)[0], "solution": "import no_such_library\n\n\ndef f(x):\n    return 10\n"}], [], "s0"),
        (seeds(1), ["construct.roles.coder=null"], "construct.roles.coder"),
        (seeds(1), ["skip=[aligment]"], "alignment"),
    ],
)
def test_bad_input_is_said_before_the_first_paid_call(
    construct: Construct, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], words: list[str], said: str
) -> None:
    agents = Agents()
    assert construct(agents, rows, *words) == 2
    assert said in capsys.readouterr().err and not agents.asked


def test_a_seed_that_fails_stops_no_other(construct: Construct, tmp_path: Path) -> None:
    agents = Agents(
        others={
            "decomposer": lambda parts, number: (
                "no" if parts["instruction"] == "s0" else Agents().answer("decomposer", parts)
            )
        }
    )
    assert construct(agents, seeds(2)) == 0
    assert [item["task_id"] for item in read(tmp_path / "out" / "items.jsonl")] == ["s1"]
    assert [item["reason"] for item in read(tmp_path / "out" / "dropped.jsonl")] == ["no readable answer"]


def test_an_average_seed_is_estimated_as_the_paper_measured() -> None:
    """The yardstick: 27 interactions, 7,800 tokens to decompose and 32,200 for code and tests; a quarter off at most."""
    config = StepsConfig.model_construct(kind="steps", rows="x", skip=[], roles=StepsRoles.model_construct())
    asks = list(Steps(config).asks(Item("a", {"instruction": "x" * 940, "solution": "x" * 1640})))
    tokens = {each.role: each.times * (each.characters + (each.answer or 0)) / 4 for each in asks}
    assert sum(each.times for each in asks) == 27
    assert abs(sum(tokens[role] for role in ("decomposer", "evaluator", "analyzer")) - 7800) < 7800 / 4
    assert abs(tokens["coder"] + tokens["alignment"] - 32200) < 32200 / 4


@pytest.mark.long
def test_forty_seeds_take_little_longer_than_one(construct: Construct, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server at 50 ms: 11 calls follow each other in a seed of four steps. The sandbox is left out.

    From the first call to the last answer: a busy machine slows the longest seed as much as all of them.
    """

    async def verdict(kit: Kit, tested: Program, suite: Suite, *, again: int = 0) -> Verdict:
        assert isinstance(suite, Assertions)
        (test,) = suite.snippets
        found = re.findall(r"(?:return x \+|assertEqual\(f\(1\),) (\d+)", tested.source + test)
        passes = len(found) < 2 or int(found[0]) + 1 == int(found[1])
        return Verdict("pass", True) if passes and "NotImplemented" not in tested.source else Verdict("fail", False)

    monkeypatch.setattr(Kit, "check", verdict)
    concurrency = [f"construct.roles.{role}.max_concurrency=40" for role in ROLES]

    agents = Agents(count=4, delay_s=0.05)
    assert construct(agents, seeds(40), *concurrency) == 0
    assert len(agents.spans) == 40 and agents.asked.total() == 11 * 40
    whole = max(end for _, end in agents.spans.values()) - min(begin for begin, _ in agents.spans.values())
    assert whole < 1.5 * max(end - begin for begin, end in agents.spans.values())


def test_the_papers_models_are_the_preset() -> None:
    words = ["recipe=steps", "out=made", "seeds=seeds.jsonl", "model@construct.roles.recall_2=deepseek_v31"]
    recipe = compose_construction(words)[0].recipe
    assert isinstance(recipe, StepsConfig)
    roles = recipe.roles
    agents = (roles.converter, roles.decomposer, roles.evaluator, roles.analyzer, roles.alignment)
    assert {(role.name, role.temperature) for role in agents} == {("Qwen/Qwen3-235B-A22B-Instruct-2507", 0.5)}
    assert (roles.coder.name, roles.coder.temperature) == ("claude-sonnet-4-20250514", 0)
    assert roles.recall_1 is None and roles.recall_2 is not None and "V3.1" in roles.recall_2.name
    assert (recipe.rounds, recipe.attempts) == (6, 10)


@needs_java
@pytest.mark.long
def test_a_task_in_java_is_made_and_loads(construct: Construct, tmp_path: Path) -> None:
    def coder(parts: dict[str, str], number: int) -> str:
        step = int(re.findall(r"add (\d+)", parts["requirement"])[0])
        code = f"class Adder {{\n    int f{step}(int x) {{ return x + {step}; }}\n}}\n"
        check = f"Assertions.assertEquals({step}, new Adder().f{step}(0));"
        test = f"import org.junit.jupiter.api.*;\nclass AdderTest {{\n    @Test void adds() {{ {check} }}\n}}\n"
        return blocks(code, test).replace("```python", "```java")

    seed = {"id": "s0", "instruction": "s0", "language": "java", "solution": "class Adder { }\n"}
    assert construct(Agents(others={"coder": coder}), [seed]) == 0
    (item,) = read(tmp_path / "out" / "items.jsonl")
    assert item["provenance"]["told_by"] == [None, "unfit"] and item["turns"][0]["suite"]["declares"] == ["Adder"]
    cell = ["model=reference", "protocol=stepwise", "dataset=jsonl", "dataset.path=out/items.jsonl", "tracking=none"]
    outcome = run(compose(cell))
    assert outcome.metrics is not None and outcome.metrics["complete_rate"] == 1.0
