"""`plan`: the power of comparisons by hand, against simulated cells, and as a command."""

import json
import random
from pathlib import Path
from statistics import fmean, pstdev, variance

import pytest

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.base.records import read_sessions
from codechat.cli.app import main
from codechat.cli.commands.plan import run_plan
from codechat.report.metrics.outline import SessionOutline, TurnOutline
from codechat.report.metrics.power import Spread, _differences, parts_of, spread_of
from support.mistakes import mistake

Z = 1.959964 + 0.841621


def outline(task: str, letters: str, followed: str = "") -> SessionOutline:
    """A session from whether each turn passes (`p`, `f`) and each follow-up is followed (`a`, `v`, not judged: `-`)."""
    words = {"a": "adhered", "v": "violated", "-": None}
    verdicts = [None, *(words[letter] for letter in followed or "a" * (len(letters) - 1))]
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
    # of the 2 between samples equal seeds share 1.5: 2 · (0.5 + 0.5/2) / 100 = 0.015
    seeded = Spread(task=3, within=2, shared=2.5, seeded=1.5)
    assert seeded.detectable(100, 2, paired=True) == pytest.approx(Z * 0.015**0.5, rel=1e-5)
    assert seeded.detectable(100, 2, paired=False) == spread.detectable(100, 2, paired=False)


def test_the_spread_is_that_of_paired_differences() -> None:
    """Sessions of equal seeds are as lucky in both cells, which no number of samples makes a property of the task.

    By task the differences are (1, 3), (0, 0) and (2, 0): between samples 4 / 3, between tasks 1 - (4 / 3) / 2 = 1/3.
    """
    a = {"x": {0: 9.0, 1: 5.0}, "y": {0: 4.0, 1: -8.0}, "z": {0: 7.0, 1: 1.0}}
    b = {"x": {1: 2.0, 0: 8.0}, "y": {1: -8.0, 0: 4.0}, "z": {1: 1.0, 0: 5.0}}
    spread = spread_of([a, b])
    assert spread is not None
    for samples, expected in ((1, 1 / 3 + 4 / 3), (2, 1 / 3 + 2 / 3), (10, 1 / 3 + 4 / 30)):
        error = spread.standard_error(3, samples, paired=True)
        assert error is not None and error**2 == pytest.approx(expected / 3)
    other = {task: {seed + 5: part for seed, part in reversed(own.items())} for task, own in b.items()}
    assert spread_of([a, other]) == pytest.approx(spread_of([a, b])), "without a common seed: in order"
    single = spread_of([{task: {0: own[0]} for task, own in cell.items()} for cell in (a, b)])
    assert single is not None and single.standard_error(3, 2, paired=True) is None
    error = single.standard_error(3, 1, paired=True)  # of the differences 1, 0 and 2
    assert error is not None and error**2 == pytest.approx(1 / 3)


def test_a_pilot_of_single_sessions_leaves_the_sum_of_what_others_tell_apart() -> None:
    """A third model's tasks were run once each, so that no variance within a task is known of all: 1/3 + 4/3 in sum."""
    a = {"x": {0: 9.0, 1: 5.0}, "y": {0: 4.0, 1: -8.0}, "z": {0: 7.0, 1: 1.0}}
    b = {"x": {1: 2.0, 0: 8.0}, "y": {1: -8.0, 0: 4.0}, "z": {1: 1.0, 0: 5.0}}
    spread = spread_of([a, b, {"u": {0: 1.0}, "v": {0: 5.0}}])
    assert spread is not None and spread.within is None
    error = spread.standard_error(3, 1, paired=True)
    assert error is not None and error**2 == pytest.approx((1 / 3 + 4 / 3) / 3)


def test_tasks_that_seem_to_differ_less_than_by_chance_take_away_half_at_most() -> None:
    """All task means are 0: between samples 2, between tasks 0 - 2 / 2. Cut at 0 the mean over pilots is too high."""
    a = {name: {0: 1.0, 1: -1.0} for name in "xyz"}
    spread = spread_of([a, {name: {0: 0.0, 1: 0.0} for name in "xyz"}])
    assert spread is not None
    for samples, expected in ((1, -1 + 2), (2, 2 / 2 / 2), (10, 2 / 10 / 2)):
        error = spread.standard_error(3, samples, paired=True)
        assert error is not None and error**2 == pytest.approx(expected / 3)


def test_nothing_is_promised_without_a_variance() -> None:
    """Models that differ equally in every session, and a greedy model alone: 0 would be found by two tasks."""
    a = {f"{task}": {seed: task + seed / 2 for seed in (0, 1)} for task in range(4)}
    alike = spread_of([a, {task: {seed: part - 1 for seed, part in own.items()} for task, own in a.items()}])
    greedy = spread_of([{f"{task}": {0: float(task), 1: float(task)} for task in range(4)}])
    for spread in (alike, greedy):
        assert spread is not None
        assert spread.detectable(100, 3, paired=True) is None is spread.tasks_for(0.5, 3, paired=True)
        assert spread.power(0.5, 100, 3, paired=True) is None
        assert (spread.detectable(100, 3, paired=False) or 0) > 0


def test_a_figure_without_a_value_is_left_out_alone() -> None:
    unjudged = parts_of({0: [outline("a", "ppp", "--"), outline("b", "pff", "--")]})
    assert list(unjudged) == ["mst", "regression", "delta"]
    assert list(parts_of({0: [outline("a", "fpp"), outline("b", "ffp")]})) == ["mst", "adherence", "regression"]
    assert list(parts_of({0: [outline("a", "fff"), outline("b", "fff")]})) == ["mst", "adherence"]


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
    parts = parts_of({0: [outline("a", "ppp", "aa"), outline("b", "pff", "av")]})
    assert parts["mst"] == {"a": {0: 1}, "b": {0: -1}}
    assert parts["delta"] == {"a": {0: pytest.approx(50)}, "b": {0: pytest.approx(-50)}}
    # (0 − 2/3) and (1 − 1/3), by the 1.5 such turns that a session has on average
    assert parts["regression"] == {"a": {0: pytest.approx(-2 / 3 / 1.5)}, "b": {0: pytest.approx(2 / 3 / 1.5)}}
    assert parts["adherence"] == {"a": {0: pytest.approx((2 - 1.5) / 2)}, "b": {0: pytest.approx((1 - 1.5) / 2)}}


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
    cells = [
        {seed: [outline(f"{n}", drawn(luck, chance)) for n, chance in enumerate(pilot)] for seed in range(3)}
        for _ in "ab"
    ]
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
    assert main(["plan", "runs=runs", "difference=0.8", "metric=mst"]) == 0
    told = capsys.readouterr()
    assert all(named in told.out for named in ("drifter on starter", "2 samples", "50 tasks"))
    assert "with one model" in told.err
    for name in ("mst", "delta", "adherence", "regression"):
        assert any(line.startswith(name) and "50" in line for line in told.out.splitlines()), name
    assert "difference of 0.8 in mst" in told.out
    assert "caution: " in told.out and "which has 6 tasks" in " ".join(told.out.split())
    one = next(path for path in Path("runs").glob("*seed-1*"))
    assert json.loads((one / "metrics.json").read_text())["completed"] == 6
    assert main(["plan", f"runs={one}"]) == 0
    assert "run samples=2" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_prints_what_paired_sessions_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two drifters under equal seeds: the differences of their sustained turns, session by session, by hand."""
    monkeypatch.chdir(tmp_path)
    words = ["model=drifter", "samples=3", "dataset.limit=12", "agenda.turns=6", "tracking=none", "hardware.workers=1"]
    for rate in ("0.1", "0.6"):
        assert main([*words, f"model.regression.semantic={rate}"]) == 0
    lasting: dict[str, dict[tuple[str, int], int]] = {}
    for cell in Path("runs").glob("*/"):
        rate = str(from_yaml((cell / "config.yaml").read_text())["model"]["regression"]["semantic"])
        for session in read_sessions(cell / "sessions.jsonl"):
            passed = [bool(turn.passed) for turn in session.turns]
            lasting.setdefault(rate, {})[session.task_id, session.seed] = [*passed, False].index(False)
    by_task: dict[str, list[float]] = {}
    for (task, seed), turns in lasting["0.1"].items():
        by_task.setdefault(task, []).append(turns - lasting["0.6"][task, seed])
    within = fmean(variance(own) for own in by_task.values())
    between = variance(map(fmean, by_task.values())) - within / 3
    assert len(by_task) == 12 and within > 0
    capsys.readouterr()
    assert main(["plan", "runs=runs"]) == 0
    printed = capsys.readouterr().out
    for tasks in (12, 25, 50):
        for samples in (1, 3, 5, 10):
            expected = Z * (max(between + within / samples, within / samples / 2) / tasks) ** 0.5
            (line,) = (
                each.split()
                for each in printed.splitlines()
                if each.split()[:4] == ["mst", "turns", str(tasks), str(samples)]
            )
            assert float(line[4]) == pytest.approx(expected, rel=0.01) and float(line[4]) > 0


def test_samples_of_one_seed_under_several_agendas_all_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same seed with two agendas is two samples; the same seed with another agenda is paired with neither."""
    monkeypatch.chdir(tmp_path)
    words = ["model=drifter", "dataset.limit=4", "agenda.turns=4", "tracking=none", "hardware.workers=1", "seed=3"]
    for agenda in (5, 6):
        assert main([*words, f"agenda.seed={agenda}", "runs_dir=a"]) == 0
    assert main([*words, "agenda.seed=7", "model.regression.semantic=0.6", "runs_dir=b"]) == 0
    capsys.readouterr()
    assert main(["plan", "runs=a"]) == 0
    told = capsys.readouterr()
    assert "2 samples" in told.out and "run samples=2" not in told.err
    shown = {tuple(line.split()[i] for i in (0, 2, 3)) for line in told.out.splitlines() if line.startswith("mst")}
    assert {("mst", "50", samples) for samples in "123"} <= shown
    assert main(["plan", "runs=a,b"]) == 0
    assert "no seed in common" in capsys.readouterr().err


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
    assert "mst and delta and regression" in " ".join(told.err.split())
    assert "`paired` gains nothing" in told.err
    assert not any(line.startswith("mst") for line in told.out.splitlines())
    assert any(line.startswith("adherence") for line in told.out.splitlines())
    with mistake("mst"):
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


def test_samples_without_a_common_seed_are_paired_in_order_as_far_as_they_go() -> None:
    assert _differences({"a": {0: 5.0, 1: 4.0, 2: 9.0}, "b": {0: 1.0}, "c": {0: 1.0}}, {"a": {7: 1.0, 8: 2.0}, "b": {7: 3.0}}) == [
        [4.0, 2.0], [-2.0]
    ]  # fmt: skip
    assert _differences({"a": {0: 5.0, 1: 4.0}, "b": {3: 1.0}}, {"a": {1: 1.0, 2: 2.0}, "b": {4: 3.0}}) == [[3.0], []]
