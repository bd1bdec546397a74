"""A bench for `protocol=assist`: one session against the test server, a room that prints what it is told, one issue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.domain import Build, Message, Output, Target
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Workspace
from codechat.judging.deciding import quote
from codechat.models import MODELS
from codechat.run.journal import Journal
from codechat.run.protocols import Kit
from codechat.run.protocols.services import Player, Services
from codechat.studies.cab.environments import Environment, Worktree
from codechat.studies.cab.environments.checkout import CheckoutConfig
from codechat.studies.cab.protocol import Assist
from codechat.studies.cab.stage import AssistConfig, AssistPrompts, AssistRoles
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.testing import Call, Fault, OpenAIServer, Result
from support.conversing import Words

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
