"""Made-up cells, issues and repositories of CodeAssistBench, and a bench for `protocol=assist`."""

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from codechat.base.domain import Build, Message, Output, Target, Usage
from codechat.base.records import TRACKED, SessionRecord, TurnRecord, write_sessions
from codechat.datasets.tasks import Workspace
from codechat.judging.deciding import quote
from codechat.models import MODELS
from codechat.report.metrics.measures import FIELD
from codechat.run.journal import Journal
from codechat.run.protocols import Kit
from codechat.run.protocols.services import Player, Services
from codechat.run.settings.compose import compose_values
from codechat.studies.cab.dataset import PUBLISHED
from codechat.studies.cab.environments import Environment, Worktree
from codechat.studies.cab.environments.checkout import CheckoutConfig
from codechat.studies.cab.metrics import ASSIST, assist_metrics
from codechat.studies.cab.protocol import Assist
from codechat.studies.cab.stage import AssistConfig, AssistPrompts, AssistRoles
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, BuildRecord, ExploredRecord, Status, UserReply
from codechat.testing import Call, Fault, OpenAIServer, Result
from support.benches import Words

LANGUAGES = ("c", "c++", "c#", "java", "javascript", "python", "typescript")
CREATED = {"recent": "2025-03-01T00:00:00Z", "all_time": "2019-03-01T00:00:00Z"}


@dataclass(frozen=True)
class Assisted:
    """One cell to be made: `issues` dialogues of each language and cohort, `good` how likely a condition is met.

    `dataset` is the kind of its dataset; every `undecided`-th dialogue has no judgement, none if it is 0.
    """

    model: str
    issues: int = 3
    good: float = 0.5
    cohorts: tuple[str, ...] = ("recent", "all_time")
    dataset: str = "cab"
    undecided: int = 0
    seed: int = 0
    words: tuple[str, ...] = ()
    """Words of a command whose protocol, environment and dataset's options the cell has."""


def write_assisted(made: Assisted, runs: Path) -> Path:
    """Write the cell's folder under `runs`; returns it."""
    folder = runs / f"{made.model}-{made.dataset}-{made.seed}"
    folder.mkdir(parents=True)
    sessions = list(sessions_of(made, folder.name))
    write_sessions(folder / "sessions.jsonl", sessions)
    metrics = assist_metrics(sessions, rounds=10, seed=0)
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: ASSIST.describe()}))
    named = {"benchmark": "cab", "kind": "all"} if made.dataset == "cab" else {"kind": made.dataset}
    config = {
        "model": {"kind": "openai"}, "dataset": named, "protocol": {"kind": "assist"},
        "seed": made.seed, "choices": {"model": made.model, "dataset": made.dataset, "protocol": "assist"},
    }  # fmt: skip
    if made.words:
        composed = compose_values(["protocol=assist", "dataset=cab", "dataset.path=x", *made.words])[0]
        config |= {name: composed[name] for name in ("protocol", "environment")}
        config["dataset"] = composed["dataset"]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if made.dataset == "cab":
        (folder / TRACKED).write_text(json.dumps({"dataset": {"content_hash": min(PUBLISHED)}}))
    return folder


def sessions_of(made: Assisted, cell: str) -> Iterator[SessionRecord]:
    """The sessions, in dataset order; the same for the same cell."""
    luck, number = random.Random(cell), 0
    for language in LANGUAGES:
        for cohort in made.cohorts:
            for _ in range(made.issues):
                number += 1
                decided = not made.undecided or number % made.undecided != 0
                turns = [*_turns(luck, made.good)]
                yield SessionRecord(
                    cell_id=cell, session_id=f"{cell}.{number}", task_id=f"own/tool#{number}", dataset=made.dataset,
                    model=made.model, protocol="assist", agenda=[], seed=made.seed, status="completed", turns=turns,
                    language=language,
                    judgement=_judgement(luck, made.good, turns, CREATED[cohort], decided).model_dump(),
                )  # fmt: skip


def _turns(luck: random.Random, good: float) -> Iterator[TurnRecord]:
    """Answers until the user is satisfied, ten at most."""
    for number in range(10):
        drawn = luck.random()
        status: Status = (
            "FULLY_SATISFIED" if drawn < good else "PARTIALLY_SATISFIED" if drawn < 0.8 else "NOT_SATISFIED"
        )
        own = AssistTurn(
            answer=f"Set the port, {number}.",
            explored=[ExploredRecord(command="=ls", status=0, ended="exit", cut=False, seconds_s=0.1)],
            steps=2,
            build=BuildRecord(ok=True, log="done") if number else None,
            user=UserReply(text="And then?", status=status, reason="It is open.", references=["a/b#1:2"]),
        )
        used = {"usage_by_role": {"user": {"input_tokens": 10, "output_tokens": 2}}}
        yield TurnRecord.of(number, (), None, usage=Usage(100, 20), **own.model_dump(), **used)
        if status == "FULLY_SATISFIED":
            return


def _judgement(
    luck: random.Random, good: float, turns: list[TurnRecord], created: str, decided: bool
) -> AssistJudgement:
    met = [luck.random() < good for _ in range(3)]
    verdict: Any = "CORRECT" if all(met) else "PARTIALLY_CORRECT" if any(met) else "INCORRECT"
    known: dict[str, Any] = {"verdict": None, "judged": None, "implied": None, "technical": None, "verbosity": None}
    if decided:
        known = dict.fromkeys(known, verdict) | {"verbosity": luck.choice(["APPROPRIATE", "VERBOSE", "CONCISE"])}
    user = AssistTurn.of(turns[-1]).user
    assert user is not None
    return AssistJudgement(
        **known,
        conditions=list(met) if decided else [None] * 3,
        conditions_met=sum(met) if decided else None,
        why=["It says so.", "", "It does not."] if decided else [],
        reason="seen" if decided else "no reply could be read",
        build=None,
        needs_build=False,
        unvalidated=False,
        rounds=len(turns),
        thread_turns=luck.randint(1, 6),
        satisfied=user.status,
        pull=False,
        created_at=created,
    )


GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
       (("NAME", "tests"), ("EMAIL", "tests@localhost"), ("DATE", "2025-01-01T00:00:00Z"))},
}  # fmt: skip
NOWHERE = "0123456789" * 4


def issue(**fields: Any) -> dict[str, Any]:
    """A row; `fields` replace its own."""
    return {
        "number": 4,
        "title": "It does not start",
        "created_at": "2025-01-02T03:04:05Z",
        "closed_at": "2025-01-03T03:04:05Z",
        "commit_id": NOWHERE,
        "labels": [],
        "url": "https://github.com/ann/shop/issues/4",
        "body": "Nothing happens when I start it.",
        "author": "user",
        "comments": [
            {"user": "ann", "created_at": "2025-01-02T04:00:00Z", "body": "Which version is it?"},
            {"user": "user", "created_at": "2025-01-02T05:00:00Z", "body": "1.2, from the archive."},
            {"user": "ann", "created_at": "2025-01-02T06:00:00Z", "body": "Set SHOP_HOME before you start it."},
        ],
        "satisfaction_conditions": ["Names the variable that must be set"],
        "_classification": {"category": "Does not need build environment", "timestamp": "2025-01-01"},
        "dockerfile": None,
        "language": "python",
        **fields,
    }


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """A task file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def git(folder: Path, *words: str, **variables: str) -> str:
    """What git prints in a folder."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**GIT, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str], *, bare: bool = False) -> str:
    """A repository with one commit of these files, whose id it returns; a bare one is a mirror."""
    work = folder.with_name(folder.name + ".work") if bare else folder
    work.mkdir(parents=True)
    git(work, "init", "-q")
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "files")
    if bare:
        git(work.parent, "clone", "-q", "--mirror", str(work), str(folder))
    return git(work, "rev-parse", "HEAD")


PROMPTS = AssistPrompts(
    opening="{{repository}} in {{language}}: {{question}} {{means}}",
    explore="explore in {{steps}}, {{commands}} each",
    blind="no commands",
    files="files; now: {{dockerfile}}",
    outputs="printed: {{outputs}}",
    unread="unread",
    more="more: {{left}}",
    answer="answer now",
    followup="user: {{reply}}",
    user="be the user: {{conditions}} {{dialogue}} {{build}} {{references}}",
    reask_user="user again",
    judge="judge: {{question}} {{thread}} {{conditions}} {{answer}} {{build}}\n{{form}}",
    reask_judge="judge again\n{{form}}",
)  # short ones, so that whole requests can be written down
CONDITIONS = ("The port of the proxy can be set by an option.", "It  is told\nwhy.")
ISSUE = AssistTask(
    "own/tool#4",
    "Which port?\n\nThe proxy takes 8080. How do I change that?",
    Target("python"),
    title="Which port?",
    body="The proxy takes 8080. How do I change that?",
    author="ann",
    url="https://github.com/own/tool/issues/4",
    conditions=CONDITIONS,
    thread=(Comment("max", "2025-02-01T00:00:00Z", "Use --proxy-port, since 8080 is a default."),
            Comment("ann", "2025-02-02T00:00:00Z", "That works."),
            Comment("max", "2025-02-03T00:00:00Z", "Good."), Comment("eva", "2025-02-04T00:00:00Z", "Fine.")),
    workspace=Workspace("/nowhere", "c" * 40),
    created_at="2025-01-31T00:00:00Z",
)  # fmt: skip
FORM = """TECHNICAL CORRECTNESS: CORRECT or PARTIALLY CORRECT or INCORRECT
CONDITION 1: TRUE or FALSE
CONDITION 2: TRUE or FALSE
VERBOSITY: CONCISE or APPROPRIATE or VERBOSE
VERDICT: CORRECT or PARTIALLY CORRECT or INCORRECT"""
NUMBERED = "1. The port of the proxy can be set by an option.\n2. It is told why."


def says(text: str, status: str = "NOT_SATISFIED", reason: str = "It is open.") -> str:
    """A readable reply of the user."""
    return f"{text}\n\nSATISFACTION_STATUS: {status}\nREASON: {reason}"


def judges(
    *met: bool, technical: str = "CORRECT", verbosity: str = "APPROPRIATE", verdict: str = "CORRECT", why: str = ""
) -> str:
    """A readable reply of the judge."""
    lines = [f"CONDITION {number}: {str(each).upper()}" for number, each in enumerate(met, 1)]
    reason = [f"REASON: {why}"] if why else []
    return "\n".join(
        [f"TECHNICAL CORRECTNESS: {technical}", *lines, f"VERBOSITY: {verbosity}", *reason, f"VERDICT: {verdict}"]
    )


@dataclass
class PrintingRoom:
    """Prints for every command what it is told; counts what it did."""

    prints: Mapping[str, Output]
    ran: list[str]
    built: list[tuple[dict[str, str], str | None]]
    works: Callable[[Mapping[str, str], str | None], Build]

    async def run(self, command: str) -> Output:
        self.ran.append(command)
        return self.prints.get(command, Output(f"<{command}>", 0))

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        self.built.append((dict(files), dockerfile))
        return self.works(files, dockerfile)

    async def aclose(self) -> None: ...


@dataclass
class Rooms:
    """An environment of such rooms."""

    commands: bool = True
    builds: bool = False
    prints: Mapping[str, Output] = field(default_factory=dict)
    works: Callable[[Mapping[str, str], str | None], Build] = lambda files, dockerfile: Build(True, "done")
    ran: list[str] = field(default_factory=list)
    built: list[tuple[dict[str, str], str | None]] = field(default_factory=list)
    opened: int = 0

    async def check(self) -> None: ...

    async def open(self, workspace: Workspace) -> Worktree:
        self.opened += 1
        return PrintingRoom(self.prints, self.ran, self.built, self.works)

    async def aclose(self) -> None: ...


@dataclass
class Held:
    """A dialogue that was held: its log, its turns, and the calls of the server by role."""

    kit: Kit
    turns: list[TurnRecord]
    asked: list[tuple[str, list[Message]]]

    @property
    def judgement(self) -> dict[str, Any]:
        found: dict[str, Any] = self.kit.log.judgement
        return found

    def requests(self, role: str) -> list[list[Message]]:
        return [messages for asked, messages in self.asked if asked == role]


def configured(server: OpenAIServer, **options: Any) -> AssistConfig:
    """The protocol's options with models of a server."""
    roles = {role: openai(server, role) for role in ("user", "judge")}
    fixed: dict[str, Any] = {"prompts": PROMPTS, "roles": AssistRoles(**roles), "references": 0, "judged": "answer"}
    return AssistConfig(**{**fixed, **options})


def openai(server: OpenAIServer, name: str) -> Any:
    return MODELS.validate(
        {"kind": "openai", "name": name, "base_url": server.base_url, "api_key_env": None, "max_retries": 0}
    )


async def hold(
    folder: Path,
    said: Mapping[str, list[str | Fault]],
    *,
    task: AssistTask = ISSUE,
    rooms: Environment | None = None,
    **options: Any,
) -> Held:
    """Hold one session: each role says what it is told, in order. More calls than replies are an error."""
    left = {role: iter(replies) for role, replies in said.items()}

    def answer(call: Call) -> Result:
        return next(left[call.body["model"]])

    with OpenAIServer(answer, models=list(left)) as server:
        config, journal = configured(server, **options), Journal(folder / "journal.db")
        models = {"model": openai(server, "model"), "user": config.roles.user, "judge": config.roles.judge}
        players = {role: Player.of(MODELS.build(model)) for role, model in models.items()}
        turns: list[TurnRecord] = []
        services = Services(players, journal, Words(), serving={"environment": rooms or Rooms()})
        kit = Kit(task, "session", 0, services, lambda turn, _: turns.append(turn))
        try:
            await Assist(config, CheckoutConfig()).run(task, kit)
        finally:
            await kit.aclose()
            for player in players.values():
                await player.model.aclose()
            await journal.settle()
            journal.close()
        asked = [
            (call.body["model"], [Message(each["role"], each["content"]) for each in call.messages])  # type: ignore[arg-type]
            for call in server.calls
        ]
    unsaid = {role: more for role, replies in left.items() if (more := list(replies))}
    assert not unsaid, f"nobody asked for {unsaid}"
    return Held(kit, turns, asked)


def user(text: str) -> Message:
    return Message("user", text)


def reply(text: str) -> Message:
    return Message("assistant", text)


def opening(means: str = "explore in 5 steps, 10 commands each") -> Message:
    """The maintainer's first message."""
    return user(quote(f"own/tool in python: {{{{question}}}} {means}", question=ISSUE.prompt))


def outputs(*pairs: tuple[str, str], left: str, more: str = "") -> Message:
    """What feeds outputs back, each told by its command and how it ended, and its text."""
    told = {f"c{number}": f"Command {number}: {command}" for number, (command, _) in enumerate(pairs, 1)}
    parts = {f"output_{number}": text for number, (_, text) in enumerate(pairs, 1)}
    blocks = [f"{{{{c{number}}}}}\n{{{{output_{number}}}}}" for number in range(1, len(pairs) + 1)]
    shown = quote("printed: " + "\n\n".join([*blocks, *([more] if more else [])]), told, **parts)
    return user(f"{shown}\n\n{left}")


def followed(text: str, left: str = "more: 5 steps") -> Message:
    """What passes the user's reply on."""
    return user(quote("user: {{reply}}", reply=text) + f"\n\n{left}")


def asks_user(*dialogue: str, build: str = "Nothing was built.", **parts: str) -> Message:
    """What the user is asked: `dialogue` has answers and replies in turn; `parts` are further blocks of the build."""
    names = [f"{'maintainer' if place % 2 == 0 else 'user'}_{place // 2 + 1}" for place in range(len(dialogue))]
    shown = {"conditions": NUMBERED, "user_0": ISSUE.prompt, **dict(zip(names, dialogue, strict=True)), **parts}
    places = "\n".join(f"{{{{{name}}}}}" for name in ("user_0", *names))
    built = "\n".join([build, *(f"{{{{{name}}}}}" for name in parts)])
    return user(quote(f"be the user: {{{{conditions}}}} {places} {built} (nothing)", **shown))


def asks_judge(answer: str, build: str = "Nothing was built.", **parts: str) -> Message:
    """What the judge is asked."""
    thread = {f"comment_{n}": f"{each.user}, {each.created_at}:\n{each.body}" for n, each in enumerate(ISSUE.thread, 1)}
    places = "\n".join(f"{{{{{name}}}}}" for name in thread)
    shown = {"question": ISSUE.prompt, **thread, "conditions": NUMBERED, "answer": answer, **parts}
    built = "\n".join([build, *(f"{{{{{name}}}}}" for name in parts)])
    return user(quote(f"judge: {{{{question}}}} {places} {{{{conditions}}}} {{{{answer}}}} {built}\n{FORM}", **shown))
