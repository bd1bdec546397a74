"""A probe: fresh inputs are the same on every run, valid and new; programs end within bounds; a planted defect is found."""

import asyncio
import json
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Task
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.calls import Calls
from codechat.studies.refine.probe.comparing import compared, differing, tolerance
from codechat.studies.refine.probe.inputs import FreshInputs, make_inputs
from codechat.studies.refine.probe.mutating import Shape, is_bounded, nudged, text_of, value_of
from codechat.studies.refine.probe.records import Comparison, read_probed
from codechat.studies.refine.probe.running import Result, Runner

ROOF = {
    "task_id": "roof",
    "prompt": "def roof(xs, n):\n",
    "entry_point": "roof",
    "canonical_solution": "    return [min(x, n) for x in xs]\n",
    "contract": "\n    assert n > 2, 'invalid inputs' # $_CONTRACT_$\n    assert all(x != 7 for x in xs)\n",
    "base_input": [[[1, 2, 9], 5], [[], 3], [[4], 4]],
    "plus_input": [[[-3, 8], 6]],
}


def task_of(folder: Path, **changed: Any) -> Task:
    path = folder / "tasks.jsonl"
    path.write_text(json.dumps({**ROOF, **changed}) + "\n")
    return load_rows("own", path).tasks[0]


def in_sandbox(work: Callable[[Sandbox], Any], **options: Any) -> Any:
    async def run() -> Any:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", **options}), workers=1)
        try:
            return await work(sandbox)
        finally:
            await sandbox.aclose()

    return asyncio.run(run())


def calls_of(task: Task) -> Calls:
    assert isinstance(task.suite, Calls)
    return task.suite


def fresh(task: Task, count: int = 60, seed: int = 0, source: str = "all") -> FreshInputs:
    async def make(sandbox: Sandbox) -> FreshInputs:
        return await make_inputs(task, Runner(sandbox, calls_of(task)), count=count, seed=seed, source=source)

    found: FreshInputs = in_sandbox(make)
    return found


def results(task: Task, program: str, inputs: Sequence[tuple[Any, ...]], **options: Any) -> list[Result]:
    async def run(sandbox: Sandbox) -> list[Result]:
        return await Runner(sandbox, calls_of(task)).run(program, inputs, sandbox.config.min_cpu_s)

    found: list[Result] = in_sandbox(run, **options)
    return found


def against_reference(task: Task, program: str, inputs: Sequence[tuple[Any, ...]]) -> Comparison:
    calls = calls_of(task)
    expected = results(task, calls.reference or "", inputs)
    actual = results(task, program, inputs)
    return compared(inputs, expected, actual, differing(calls, tolerance(calls, expected), inputs, expected, actual))


def test_a_contract_reaches_the_task_and_no_hash(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps({name: value for name, value in ROOF.items() if name != "contract"}) + "\n")
    without, with_contract = load_rows("own", path), task_of(tmp_path)
    assert load_rows("own", path).content_hash == without.content_hash
    assert calls_of(with_contract).key == calls_of(without.tasks[0]).key
    assert without.tasks[0].contract is None
    space: dict[str, Any] = {}
    exec(with_contract.contract or "", space)
    assert space["roof"]([1], 3) is None
    with pytest.raises(AssertionError):
        space["roof"]([1], 2)


def test_inputs_are_new_valid_and_each_once(tmp_path: Path) -> None:
    found = fresh(task_of(tmp_path))
    inputs = found.arguments()
    assert len(inputs) == 60
    assert found.refused > 0
    assert len(set(found.inputs)) == 60
    assert not set(found.inputs) & {text_of(each) for each in calls_of(task_of(tmp_path)).inputs}
    for xs, n in inputs:
        assert type(n) is int and n > 2
        assert isinstance(xs, list) and all(type(x) is int and x != 7 for x in xs)
    assert found.inputs == sorted(found.inputs, key=lambda text: (len(text), text))


def test_inputs_of_a_seed_are_equal_in_every_process(tmp_path: Path) -> None:
    names = {"task_id": "sets", "base_input": [[["b", "a", "a c"], 5], [["x"], 3]], "plus_input": [], "contract": ""}
    task = task_of(tmp_path, **names, canonical_solution="    return sorted(set(xs))[:n]\n")
    script = (
        "import random, sys; from pathlib import Path; from codechat.datasets.reading.rows import load_rows\n"
        "from codechat.studies.refine.probe.mutating import Mutator, text_of\n"
        "calls = [(set(xs), n) for xs, n in load_rows('own', Path(sys.argv[1])).tasks[0].suite.inputs]\n"
        "mutator = Mutator(calls, random.Random(3))\n"
        "print([text_of(mutator.draw()) for _ in range(200)])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "tasks.jsonl")],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(said) == 1
    assert fresh(task) == fresh(task) != fresh(task, seed=1)


def test_results_that_follow_the_hash_seed_are_no_inputs(tmp_path: Path) -> None:
    names = {"base_input": [[["b", "a", "cd"], 5], [["x", "y"], 3]], "plus_input": [], "contract": ""}
    found = fresh(task_of(tmp_path, **names, canonical_solution="    return list(set(xs))\n"))
    assert found.undefined > 20
    assert all(len(set(xs)) < 4 for xs, _ in found.arguments())  # few texts come in the same order by chance
    assert fresh(task_of(tmp_path, **names, canonical_solution="    return set(xs)\n")).undefined == 0


def test_inputs_on_which_rounding_decides_are_left_out(tmp_path: Path) -> None:
    floats = {"base_input": [[[1.25, 0.5, 1.5], 3], [[1.1, 2.2, 3.3], 2]], "plus_input": [], "contract": ""}
    tie = "    d = [b - a for a, b in zip(xs, xs[1:])]\n    return d.index(min(d)) if d else -1\n"
    found = fresh(task_of(tmp_path, **floats, canonical_solution=tie))
    assert found.inputs
    for xs, _ in found.arguments():
        gaps = [b - a for a, b in pairwise(xs)]
        near = [gap for gap in gaps if gap - min(gaps) < 1e-12]
        assert len(near) < 2 or all((4 * x).is_integer() for x in xs) or len(set(map(repr, xs))) < len(xs)
    assert nudged(([1.5, -2.0], 7, "1.1"), "a") == ([1.5, -2.0], 7, "1.1")
    one, other, far = nudged([1.1, 1.1, 2.2], "a")
    assert one == other != 1.1 and abs(far - 2.2) < 1e-9
    assert not is_bounded(([-0.0], 1))


def test_inputs_have_the_types_of_the_tests(tmp_path: Path) -> None:
    shape = Shape([(("a", 1), [[1, 2], [3, 4]]), (("b", 2), [[5, 6]])], contract=True)
    assert shape.fits((("c", 9), [[0, 0], [-1, 5], [2, 2]]))
    assert not shape.fits((("c", True), [[0, 0]]))
    assert not shape.fits((("c", 1.0), [[0, 0]]))
    assert not shape.fits(((1, "c"), [[0, 0]]))
    assert not shape.fits((("c", 1), [[0, 0], [1]]))
    assert not shape.fits((("c", 1),))
    assert Shape([(3,)], contract=True).fits((-3,))
    assert not Shape([(3,)], contract=False).fits((-3,))
    assert not Shape([(3,)] * 20, contract=True).fits((-3,))


@pytest.mark.parametrize(
    "value", [(), (1,), ([],), ({"b", "a"},), (set(),), ({"k": (1.5, None)}, True), ("'\"\n\ud800",), (1 + 2j,)]
)
def test_a_literal_reads_back(value: tuple[Any, ...]) -> None:
    assert value_of(text_of(value)) == value


def test_what_is_no_literal_is_a_mistake() -> None:
    row = {"task_id": "a", "count": 1, "seed": 0, "source": "all", "made": 1, "refused": 0, "undefined": 0}
    with pytest.raises(UserError, match="no literal"):
        FreshInputs(**row, inputs=["__import__('os')"]).arguments()


PLAIN = [([1], 3), ([2, 5], 4), ([3, 9], 4), ([5, 5, 5], 5)]


def body(text: str) -> str:
    return f"def roof(xs, n):\n    if xs == [3, 9]:\n        {text}\n    return [min(x, n) for x in xs]\n"


@pytest.mark.parametrize(
    ("text", "actual"),
    [
        ("return [9, 3]", "[9, 3]"),
        ("return (3, 4)", "(3, 4)"),
        ("raise ValueError(n)", "raises ValueError"),
        ("exit()", "raises SystemExit"),
        ("import os; os._exit(3)", "the process exits"),
        ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
        ("yield_ = (1 / 0 for _ in xs); return yield_", "raises ZeroDivisionError"),
        ("return 'x' * 400_000", "a value too long to be shown"),
    ],
)
def test_a_difference_on_one_input_is_one_difference(tmp_path: Path, text: str, actual: str) -> None:
    found = against_reference(task_of(tmp_path), body(text), PLAIN)
    assert (found.inputs, found.differs, found.undecided) == (4, 1, 0)
    assert found.smallest is not None
    assert (found.smallest.input, found.smallest.expected) == ("[3, 9], 4", "[3, 4]")
    assert found.smallest.actual == actual


@pytest.mark.parametrize(
    "text",
    [
        "while True: pass",
        "return [0] * (1 << 40)",
        "return roof(xs, n)",
        "import time; time.sleep(1e9)",
    ],
)
def test_a_limit_is_undecided_and_concerns_its_input_alone(tmp_path: Path, text: str) -> None:
    task = task_of(tmp_path)
    found = results(task, body(text), PLAIN, min_cpu_s=0.3, idle_s=0.5)
    assert [each.kind for each in found] == ["value", "value", "limit", "value"]


def test_a_program_that_never_ends_is_given_up(tmp_path: Path) -> None:
    task, many = task_of(tmp_path), [([number], 3) for number in range(200)]
    found = results(task, "def roof(xs, n):\n    while True: pass\n", many, min_cpu_s=0.05)
    assert found == [Result("limit")] * 200


def test_what_a_program_patches_stays_with_it(tmp_path: Path) -> None:
    patched = "import builtins, marshal\nmarshal.dumps = lambda *_: b''\nbuiltins.min = lambda *_: 0\n" + body("pass")
    found = against_reference(task_of(tmp_path), patched, PLAIN)
    assert found.differs > 0
    assert against_reference(task_of(tmp_path), body("pass"), PLAIN).differs == 0


def test_rounding_and_exceptions_on_both_sides_do_not_count(tmp_path: Path) -> None:
    calls = calls_of(task_of(tmp_path))

    def value(of: Any) -> Result:
        return Result("value", marshal.dumps(of, 2))

    nests = [value([[0.1 + 0.2], 3])]
    other = [value([[0.3], 3])]
    assert differing(calls, tolerance(calls, nests), [()], nests, other) == []
    assert differing(calls, 0.0, [()], [value(3)], [value(4)]) == [0]
    assert differing(calls, 1e-6, [()], [value(2.083183336924971e16)], [value(20831833369249714)]) == []
    assert differing(calls, 1e-6, [()], [value(2.5)], [value(3)]) == [0]
    raised = Result("raised", b"ValueError"), Result("raised", b"TypeError")
    assert differing(calls, 0.0, [()], raised[:1], raised[1:]) == []
    assert differing(calls, 0.0, [()], [value(1)], raised[1:]) == [0]


def cell(folder: Path, sessions: list[dict[str, Any]], **config: Any) -> Path:
    folder.mkdir(parents=True)
    config = {"protocol": {"kind": "refine"}, **config}
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "metrics.json").write_text("{}")
    common = {"schema": 1, "cell_id": "c", "dataset": "own", "protocol": "refine", "agenda": [], "seed": 0}
    lines = [json.dumps({**common, "model": "m", "status": "completed", **each}) for each in sessions]
    (folder / "sessions.jsonl").write_text("\n".join(lines) + "\n")
    return folder


RIGHT = "def roof(xs, n):\n    return [min(x, n) for x in xs]\n"
PLANTED = "def roof(xs, n):\n    return [min(x, n) for x in xs if x != 6]\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    task_of(tmp_path)
    codes = [(RIGHT, True, False), (RIGHT + "# same\n", True, False), (RIGHT + "# same\n", True, True)]
    codes += [(PLANTED, True, False), (RIGHT, False, False), (PLANTED + "#\n", True, False)]
    turns = [
        {"turn": turn, "code": code, "passed": passed, "skipped": skipped}
        for turn, (code, passed, skipped) in enumerate(codes)
    ]
    dataset = {"kind": "jsonl", "path": str(tmp_path / "tasks.jsonl")}
    return cell(tmp_path / "runs" / "a", [{"session_id": "s", "task_id": "roof", "turns": turns}], dataset=dataset)


def test_a_planted_difference_is_found_with_its_smallest_input(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["probe", f"runs={recorded.parent}", f"out={tmp_path / 'out'}"]
    assert main(words) == 0
    said = capfd.readouterr().out
    assert "a: 50.0 % of 4 passing turns differ" in said
    assert "hidden regressions: 50.0 % of 2 turns" in said
    found = list(read_probed(tmp_path / "out"))
    assert [(turn.turn, turn.of_turn) for turn in found] == [(0, None), (1, 0), (2, None), (3, 1), (5, None)]
    assert [turn.reference.differs > 0 for turn in found] == [False, False, False, True, True]
    assert [turn.before and turn.before.differs > 0 for turn in found] == [None, False, None, True, None]
    smallest = found[3].reference.smallest
    assert smallest is not None and found[3].before is not None and smallest == found[3].before.smallest
    (file,) = (tmp_path / "out" / "inputs").glob("tasks-*.jsonl")
    inputs = [value_of(text) for text in json.loads(file.read_text())["inputs"]]
    wanted = [text_of(each)[1:-1] for each in inputs if 6 in each[0]]
    assert len(wanted) == found[3].reference.differs
    assert smallest.input == min(wanted, key=len)


def test_a_probe_resumes_and_takes_given_inputs(recorded: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["probe", f"runs={recorded}", f"out={first}", "n=30"]) == 0
    whole = (first / "turns.jsonl").read_text()
    (file,) = (first / "inputs").glob("*.jsonl")
    given = file.read_text()
    assert main(["probe", f"runs={recorded}", f"out={second}", "n=30", "seed=4"]) == 0
    assert (second / "inputs" / file.name).read_text() != given
    assert main(["probe", f"runs={recorded}", f"out={second}", "seed=9", f"inputs={first / 'inputs'}"]) == 0
    assert (second / "inputs" / file.name).read_text() == given
    assert (second / "turns.jsonl").read_text() == whole
    assert main(["probe", f"runs={recorded}", f"out={first}", "n=30"]) == 0
    assert (first / "turns.jsonl").read_text() == whole
    assert not list(first.glob("*.partial"))


def test_the_code_before_is_the_code_that_stands_after_a_roll_back(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = {"tries": [], "accepted": False, "rolled_back": True}
    turns = [
        {"turn": 0, "code": RIGHT, "passed": True},
        {"turn": 1, "code": "def roof(xs, n):\n    return xs\n", "passed": False, "gate": gate},
        {"turn": 2, "code": PLANTED, "passed": True},
        {"turn": 3, "code": RIGHT, "passed": True, "gate": gate},  # passes since it was scored again
        {"turn": 4, "code": PLANTED + "#\n", "passed": True},
    ]
    dataset = {"kind": "jsonl", "path": str(tmp_path / "tasks.jsonl")}
    cell(tmp_path / "gated" / "b", [{"session_id": "s", "task_id": "roof", "turns": turns}], dataset=dataset)
    assert main(["probe", f"runs={tmp_path / 'gated'}", f"out={tmp_path / 'out'}", "n=60"]) == 0
    assert "hidden regressions: 50.0 % of 2 turns whose code before" in capfd.readouterr().out
    found = list(read_probed(tmp_path / "out"))
    assert [(turn.turn, turn.of_turn) for turn in found] == [(0, None), (2, 0), (3, 2), (4, 2)]
    assert [turn.before and turn.before.differs > 0 for turn in found] == [None, True, True, False]
    (figures,) = json.loads((tmp_path / "out" / "probe.json").read_text())["cells"]
    assert (figures["hidden_regression"]["overall"]["value"], figures["hidden_regression"]["overall"]["n"]) == (0.5, 2)


def test_cells_in_folders_of_one_name_have_a_row_each(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "others" / recorded.name
    shutil.copytree(recorded, other)
    words = ["probe", f"runs={recorded.parent},{other.parent}", f"out={tmp_path / 'out'}", "n=30"]
    assert main(words) == 2
    assert "hold the same cell" in capfd.readouterr().err
    text = (other / "sessions.jsonl").read_text()
    (other / "sessions.jsonl").write_text(text.replace('"cell_id": "c"', '"cell_id": "d"'))
    words[1] += f",{other}"  # given twice
    assert main(words) == 0
    cells = json.loads((tmp_path / "out" / "probe.json").read_text())["cells"]
    assert [(each["cells"], each["name"]) for each in cells] == [(["c"], str(recorded)), (["d"], str(other))]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["out=x"], "runs is required"),
        (["runs=x", "out=x", "n=0"], "cannot read n=0"),
        (["runs=x", "out=x", "from=plus"], "cannot read from=plus"),
        (["runs=x", "out=x", "inputs=nowhere"], "there is no folder nowhere"),
        (["runs=nowhere", "out=x"], "there is no folder nowhere"),
    ],
)
def test_mistakes(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", *words]) == 2
    assert said in capfd.readouterr().err


def test_other_protocols_are_left_out(recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = json.loads((recorded / "config.yaml").read_text())
    (recorded / "config.yaml").write_text(json.dumps({**config, "protocol": {"kind": "stepwise"}}))
    assert main(["probe", f"runs={recorded}", f"out={tmp_path / 'out'}"]) == 2
    said = capfd.readouterr().err
    assert "protocol=stepwise is not probed" in said
    assert "no turn of these cells can be probed" in said
