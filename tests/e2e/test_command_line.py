"""The command line as a user meets it: in a process of its own, in an empty folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.cli.sweep import SweepView
from codechat.run.launchers import Job
from codechat.run.settings.compose import compose
from support import processes

ROOT = Path(__file__).parents[2]


def codechat(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        return processes.codechat(folder, *arguments)


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: its environment is read at the start, and so are MLflow's libraries, with their warnings."""
    return subprocess.run(
        [sys.executable, "-m", "codechat", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"}, **environment},
    )


def bad_jsonl(folder: Path) -> str:
    task = {
        "task_id": "t", "prompt": "def f(x):\n    pass\n", "entry_point": "f",
        "canonical_solution": "    return x\n", "base_input": [[1]], "plus_input": [], "atol": 0,
    }  # fmt: skip
    lines = [json.dumps({**task, "task_id": f"t/{number}"}) for number in range(1, 20)]
    lines[16] = lines[16][:40]
    (folder / "tasks.jsonl").write_text("\n".join(lines))
    return "tasks.jsonl"


MISTAKES = [
    (("model=gpt6",), "gpt5"),
    (("agenda.turns=abc",), "agenda.turns"),
    (("agenda.turns=1",), "greater than or equal to 2"),
    (("agenda.trns=5",), "turns"),
    (("modle=echo",), "model"),
    (("dataset=jsonl", "dataset.path=nowhere.jsonl"), "nowhere.jsonl"),
    (("dataset=humaneval", "dataset.path=nowhere.jsonl"), "nowhere.jsonl"),
    (("dataset=jsonl",), "dataset.path"),
    (("dataset=jsonl", "dataset.path=tasks.jsonl"), "tasks.jsonl:17"),
    (("dataset.tasks=[starter/nothing]",), "starter/nothing"),
    (("model=gpt5",), "OPENAI_API_KEY"),
    (("model=openai", "model.name=x", "model.base_url=http://127.0.0.1:9/v1", "model.api_key_env=null"), "127.0.0.1:9"),
    (("model=openai",), "model.name"),
    (("agenda.distribution={cosmetik: 1}",), "cosmetik"),
    (("protocol.prompts.initial=hello",), "{{prompt}}"),
    (("instructions.path=nowhere.csv",), "nowhere.csv"),
    (("model=replay", "model.path=nowhere.jsonl"), "nowhere.jsonl"),
    (("sandbox=proces",), "process"),
    (("model=echo,gpt5",), "-m"),
    (("model=scripted", "model.replies=[x]", "sandbox=process", "tracking=none"), "bubblewrap"),
    (("verify", "dataset=starter", "samples=nowhere.jsonl", "out=v.jsonl"), "nowhere.jsonl"),
    (("verify", "dataset=starter", "out=v.jsonl"), "samples"),
    (("verify", "dataset=startr", "samples=x", "out=y"), "starter"),
    (("verify", "dataset=starter", "sampels=x"), "samples"),
    (("seed=[1",), "seed: [1"),
    (("lst",), "list"),
    (("runn",), "verify (settings are written key=value)"),
    (("sweep=smoke",), "-m +sweep=NAME"),
    (("-m", "sweep=smoke"), "-m +sweep=NAME"),
    (
        ("protocol=assist", "model=maintainer"),
        "works on issues of repositories, and starter has programming tasks",
    ),
    (("--helpp",), "--help"),
    (("-m", "+sweep=smok"), "smoke"),
    (("-m", "model=echo,gpt6"), "gpt5"),
    (("list", "modl"), "model"),
    (("hydra.run.dir=x",), "hydra.run.dir"),
    (("model@judge.applicability=gpt5",), "judge=llm"),
    (("judge=llm", "model@judge.applicability=echo"), "baseline"),
]


@pytest.mark.parametrize(
    ("arguments", "named"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_a_mistake_is_told_in_five_lines_with_status_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    bad_jsonl(tmp_path)
    assert main(list(arguments)) == 2
    said = capfd.readouterr().err
    assert "Traceback" not in said and named in said
    assert 1 <= len(said.strip().splitlines()) <= 5, said


@pytest.mark.long
def test_a_terminal_in_ascii_costs_only_the_characters_that_it_lacks(tmp_path: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = started(tmp_path, "model=echo", "dataset.limit=2", "agenda.turns=3", "tracking=none", **ascii_only)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "? 2 tasks, 6 turns ? runs/" in done.stdout
    (folder,) = (tmp_path / "runs").glob("echo-*")
    assert json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["completed"] == 2
    for words in (("--help",), ("-m", "model=echo,drifter", "dataset.limit=2", "agenda.turns=3", "tracking=none")):
        done = started(tmp_path, *words, **ascii_only)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    mistake = started(tmp_path, "model=mödel", LC_ALL="C.UTF-8", PYTHONIOENCODING="ascii")
    assert mistake.returncode == 2 and "m?del" in mistake.stderr


def test_an_interpreter_without_docstrings_is_refused_in_words(tmp_path: Path) -> None:
    done = started(tmp_path, "dataset.limit=1", PYTHONOPTIMIZE="2")
    assert done.returncode == 2 and "-OO" in done.stderr and "Traceback" not in done.stderr


def test_a_mistake_at_the_start_leaves_no_folder(tmp_path: Path) -> None:
    silent = ("model=openai", "model.name=x", "model.base_url=http://127.0.0.1:9/v1", "model.api_key_env=null")
    words = ("dataset.limit=1", "agenda.turns=2", "tracking=none")
    assert codechat(tmp_path, *silent, *words).returncode == 2
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_sweep_of_nothing_but_the_defaults_names_its_cell(capsys: pytest.CaptureFixture[str]) -> None:
    SweepView(1).begins(Job(0, compose([]), "adhoc", ()))
    assert capsys.readouterr().out == "\ncell 1 of 1: the defaults\n"


def test_the_folder_stands_apart_from_the_figures(tmp_path: Path) -> None:
    for model in ("model=echo", "model=scripted"):
        done = codechat(
            tmp_path, model, *(["model.replies=[x]"] if "scripted" in model else []), "dataset.limit=2",
            "agenda.turns=2", "tracking=none",
        )  # fmt: skip
        assert "\n\nrun folder  runs/" in done.stdout, done.stderr


def test_an_unwritable_runs_dir_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file, not a folder")
    done = codechat(tmp_path, "dataset.limit=1", "tracking=none")
    assert done.returncode == 2
    assert "runs" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5


def test_help_lists_every_group_with_its_options(tmp_path: Path) -> None:
    done = codechat(tmp_path, "--help")
    assert done.returncode == 0
    for word in ("model", "dataset", "instructions", "agenda", "protocol", "judge", "sandbox", "hardware", "tracking",
                 "echo", "gpt5", "humaneval", "mbpp", "starter", "balanced", "escalating", "refine", "rules", "paper",
                 "seed", "runs_dir", "max_errors"):  # fmt: skip
        assert word in done.stdout
    assert done.stderr == ""


def test_help_loads_no_heavy_library(tmp_path: Path) -> None:
    script = (
        "import sys; from codechat.cli.app import main; main(['--help']);"
        "print([m for m in ('mlflow','openai','pandas','numpy','scipy','evalplus','matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "group", ["model", "dataset", "instructions", "agenda", "protocol", "judge", "sandbox", "tracking"]
)
def test_list_describes_every_option_in_one_line(tmp_path: Path, group: str) -> None:
    from codechat.cli.commands.listing import options_of

    for name, text in options_of(group).items():
        assert len(text) > 10, f"{group}={name} has no description"
    assert codechat(tmp_path, "list", group).returncode == 0


@pytest.mark.usefixtures("rendered")
def test_a_small_cell_leaves_what_the_contract_says(tmp_path: Path) -> None:
    done = codechat(tmp_path, "model=echo", "dataset.limit=3", "tracking=none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No language model" in done.stdout and "model=echo" in done.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert {"config.yaml", "sessions.jsonl", "metrics.json", "tables", "figures"} <= {
        path.name for path in folder.iterdir()
    }
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["pass_at_1"] == [1.0] * 10
    assert metrics["mst"] == 10
    assert set(metrics["iar"]) == {0.0}
    assert metrics["skipped_turns"] == 0
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert [len(session["turns"]) for session in sessions] == [10, 10, 10]
    assert sessions[0]["turns"][1]["adherence"]["by"] == "rules"
    assert (folder / "figures" / "turns.png").read_bytes().startswith(b"\x89PNG")
    before = (folder / "sessions.jsonl").read_bytes()
    again = codechat(tmp_path, "model=echo", "dataset.limit=3", "tracking=none")
    assert again.returncode == 0
    assert (folder / "sessions.jsonl").read_bytes() == before


def test_verify_tests_samples_without_a_model(tmp_path: Path) -> None:
    from codechat.testing import dataset_tasks

    tasks = dataset_tasks("starter")[:3]
    programs = [tasks[0].reference, "def other(): ...", f"{tasks[2].target.signature}\n    return 'nonsense'\n"]
    rows = [{"task_id": t.task_id, "solution": p, "note": 1} for t, p in zip(tasks, programs, strict=True)]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = codechat(tmp_path, "verify", "dataset=starter", "samples=samples.jsonl", "out=verdicts.jsonl")
    assert done.returncode == 0, done.stderr
    assert "pass@1 0.333" in done.stdout
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in verdicts] == ["pass", "fail", "fail"]
    assert [row["passed"] for row in verdicts] == [True, False, False]
    assert [row["note"] for row in verdicts] == [1, 1, 1]
    assert {"task_id", "outcome", "passed", "passed_base", "failure", "cpu_s"} <= set(verdicts[0])
    assert "nonsense" in verdicts[2]["failure"]["actual"]


def test_the_default_shows_the_curves_people_come_for(tmp_path: Path) -> None:
    done = codechat(tmp_path, "dataset.limit=20", "tracking=none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No language model" in done.stdout and "model=drifter is a baseline" in done.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["pass_at_1"][0] == 1.0
    assert metrics["pass_at_1"][-1] < 0.9
    # A baseline leaves the code as it is where no transformation fits, so few turns of it are adhered to: not none.
    rates = [rate for rate in metrics["iar"] if rate is not None]
    assert len(rates) == 9
    assert min(rates) >= 0.1
    assert metrics["skipped_turns"] == 0


@pytest.mark.long
def test_a_store_that_is_down_never_loses_a_cell(tmp_path: Path) -> None:
    done = started(tmp_path, "dataset.limit=1", "agenda.turns=3", "tracking.uri=http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert "warning: not tracked" in done.stderr
    (cell,) = (tmp_path / "runs").iterdir()
    assert f"upload run=runs/{cell.name}" in done.stderr
    down = started(tmp_path, "upload", f"run={cell}", "tracking.uri=http://127.0.0.1:9")
    assert down.returncode == 2
    assert "not uploaded" in down.stderr
    later = started(tmp_path, "upload", f"run={cell}")
    assert later.returncode == 0, later.stderr
    assert "MLflow run" in later.stdout
    assert (tmp_path / "mlflow" / "store.db").exists()
    nothing = started(tmp_path, "upload", "run=runs")
    assert nothing.returncode == 2
    assert "no finished cell" in nothing.stderr


def test_a_second_process_on_the_same_cell_says_so(tmp_path: Path) -> None:
    from filelock import FileLock

    assert codechat(tmp_path, "dataset.limit=1", "tracking=none").returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    with FileLock(folder / ".lock"):
        done = started(tmp_path, "dataset.limit=1", "tracking=none")
    assert done.returncode == 2
    assert "in use" in done.stderr
