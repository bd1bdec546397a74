"""`plan`: the power of comparisons by hand, against simulated cells, and as a command."""

import json
import random
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from codechat.cli.app import main
from codechat.cli.commands.plan import run_plan
from codechat.errors import UserError
from codechat.metrics.outline import SessionOutline, TurnOutline
from codechat.metrics.power import Spread, parts_of, spread_of

Z = 1.959964 + 0.841621


def outline(task: str, letters: str, followed: str = "") -> SessionOutline:
    """A session from whether each turn passes (`p`, `f`) and each follow-up is followed (`a`, `v`)."""
    verdicts = [None, *({"a": "adhered", "v": "violated"}[letter] for letter in followed or "a" * (len(letters) - 1))]
    return SessionOutline(
        task,
        tuple(
            TurnOutline("pass" if letter == "p" else "fail", letter == "p", False, True, verdict, None)  # type: ignore[arg-type]
            for letter, verdict in zip(letters, verdicts, strict=True)
        ),
    )


def test_the_detectable_difference_by_hand() -> None:
    """Unpaired: 2 · (3 + 2/2) / 100 = 0.08; paired by tasks that share 2.5 of the 3: 2 · (0.5 + 1) / 100 = 0.03."""
    spread = Spread(task=3, within=2, shared=2.5)
    assert spread.detectable(100, 2, paired=False) == pytest.approx(Z * 0.08**0.5, rel=1e-5)
    assert spread.detectable(100, 2, paired=True) == pytest.approx(Z * 0.03**0.5, rel=1e-5)


def test_power_tasks_and_difference_agree() -> None:
    spread = Spread(task=3, within=2, shared=1)
    for paired in (True, False):
        difference = spread.detectable(80, 3, paired=paired)
        assert difference is not None
        assert spread.power(difference, 80, 3, paired=paired) == pytest.approx(0.8, abs=1e-4)
        assert spread.tasks_for(difference * 1.0001, 3, paired=paired) == 80
    assert spread.power(0, 80, 3, paired=True) == pytest.approx(0.05)


def test_one_sample_tells_nothing_of_more() -> None:
    spread = Spread(task=3, within=None, shared=0)
    assert spread.detectable(100, 1, paired=False) is not None
    assert spread.detectable(100, 2, paired=False) is None
    assert spread.tasks_for(1, 2, paired=False) is None


def test_the_parts_of_sessions_by_hand() -> None:
    """MST (3 + 1) / 2 = 2; Δ from 1 to ½; regression 1 of 3 turns after passing code; adherence 3 of 4."""
    parts = parts_of([outline("a", "ppp", "aa"), outline("b", "pff", "av")])
    assert parts["mst"] == {"a": [1], "b": [-1]}
    assert parts["delta"] == {"a": [pytest.approx(50)], "b": [pytest.approx(-50)]}
    # (0 − 2/3) and (1 − 1/3), by the 1.5 such turns that a session has on average
    assert parts["regression"] == {"a": [pytest.approx(-2 / 3 / 1.5)], "b": [pytest.approx(2 / 3 / 1.5)]}
    assert parts["adherence"] == {"a": [pytest.approx((2 - 1.5) / 2)], "b": [pytest.approx((1 - 1.5) / 2)]}


def drawn(luck: random.Random, hard: float) -> str:
    """A session whose code breaks with this chance at each of four turns, and stays broken."""
    letters = "p"
    for _ in range(4):
        letters += "p" if letters[-1] == "p" and luck.random() > hard else "f"
    return letters


@pytest.mark.parametrize(("tasks", "samples"), [(60, 1), (60, 3)])
def test_the_standard_error_is_that_of_simulated_differences(tasks: int, samples: int) -> None:
    """Two models over tasks that are hard for both: the spread of a pilot of three samples foretells that of studies."""
    luck = random.Random(samples)

    def hard(number: int) -> list[float]:
        return [luck.choice((0.05, 0.5)) for _ in range(number)]

    def mst(chances: list[float]) -> float:
        return fmean(drawn(luck, chance).count("p") for chance in chances for _ in range(samples))

    pilot = hard(300)
    cells = [[outline(f"{n}", drawn(luck, chance)) for n, chance in enumerate(pilot) for _ in range(3)] for _ in "ab"]
    spread = spread_of([parts_of(cell)["mst"] for cell in cells])
    assert spread is not None
    differences = [mst(chances) - mst(chances) for chances in (hard(tasks) for _ in range(400))]
    assert pstdev(differences) == pytest.approx(spread.standard_error(tasks, samples, paired=True), rel=0.12)
    alone = [mst(hard(tasks)) - mst(hard(tasks)) for _ in range(400)]
    assert pstdev(alone) == pytest.approx(spread.standard_error(tasks, samples, paired=False), rel=0.12)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["model=drifter", "dataset.limit=6", "agenda.turns=4", "tracking=none", "hardware.workers=1"]
    assert main(["samples=2", *words]) == 0
    capsys.readouterr()
    assert main(["plan", "runs=runs", "difference=0.8", "metric=mst", "out=planned"]) == 0
    told = capsys.readouterr()
    assert "pilot: drifter on starter, 2 samples of a task; up to 50 tasks" in told.out
    assert "with one model" in told.err
    for name in ("mst", "delta", "adherence", "regression"):
        assert any(line.startswith(name) and "50" in line for line in told.out.splitlines()), name
    assert "cheapest for a difference of 0.8 in mst" in told.out
    assert Path("planned/plan.png").stat().st_size > 5_000
    one = next(path for path in Path("runs").glob("*seed-1*"))
    assert json.loads((one / "metrics.json").read_text())["completed"] == 6
    assert main(["plan", f"runs={one}"]) == 0
    assert "run samples=2" in capsys.readouterr().err


def test_a_pilot_without_variance_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refactorer breaks nothing, so that any difference in MST would seem to be found with two tasks."""
    monkeypatch.chdir(tmp_path)
    words = ["model=refactorer", "dataset.limit=4", "agenda.turns=4", "tracking=none", "hardware.workers=1"]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["plan", "runs=runs"]) == 0
    told = capsys.readouterr()
    assert "alike in mst and delta and regression" in " ".join(told.err.split())
    assert "`paired` gains nothing" in told.err
    assert not any(line.startswith("mst") for line in told.out.splitlines())
    assert any(line.startswith("adherence") for line in told.out.splitlines())
    with pytest.raises(UserError, match="the pilot has no mst"):
        run_plan(["runs=runs", "metric=mst", "difference=0.5"])


def test_what_the_command_refuses(tmp_path: Path) -> None:
    for words, what in (
        (["runs=x", "metric=mst"], "metric and difference"),
        (["runs=x", "metric=speed", "difference=1"], "no metric"),
        (["runs=x", "metric=mst", "difference=none"], "cannot read difference"),
        (["runs=x", "metric=adherence", "difference=5"], "adherence is a share from 0 to 1"),
    ):
        with pytest.raises(UserError, match=what):
            run_plan(words)
