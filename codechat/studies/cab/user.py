"""The user's side: a model that knows the conditions replies to an answer, and says beside it whether it is satisfied.

Only the reply's text reaches the maintainer: neither the status, nor the reason, nor a condition in its own words.
"""

import re
from collections.abc import Iterable, Sequence
from typing import cast, get_args

from codechat.judging.deciding import lines_of
from codechat.studies.cab.config import USER
from codechat.studies.cab.references import Reference
from codechat.studies.cab.stage import Built, Exchange, Stage, Telling, after_label, bounded, only_word
from codechat.studies.cab.turns import Status, UserReply

STATUS, REASON = "SATISFACTION STATUS", "REASON"
STATUSES: tuple[Status, ...] = get_args(Status)
SHORTEST = 25
"""Characters from which on a condition in its own words is recognised: shorter ones are words that anybody may say."""
_MENTION = re.compile(r"SATISFACTION_STATUS|\b(?:FULLY|PARTIALLY|NOT)_SATISFIED\b", re.IGNORECASE)


async def ask_user(
    stage: Stage, turn: int, dialogue: Sequence[Exchange], built: Built, references: Sequence[Reference]
) -> UserReply:
    """The user's reply to the last answer of the dialogue; its status is None if no reply could be read.

    Then its text is what of the last reply the maintainer may see, which may be nothing.
    """
    conditions = stage.task.conditions
    prompt = user_prompt(stage, dialogue, built, references)
    found, said = await stage.ask_until_read(
        USER, turn, prompt, again=stage.config.prompts.reask_user, read=lambda text: read_user(text, conditions)
    )
    reply = found or UserReply(text=passable(said, conditions), status=None, reason="")
    return reply.model_copy(update={"references": [reference.id for reference in references]})


def user_prompt(stage: Stage, dialogue: Sequence[Exchange], built: Built, references: Sequence[Reference]) -> str:
    """What the user's model is asked after an answer."""
    telling = Telling()
    telling.conditions(stage.task)
    telling.dialogue("dialogue", stage.task, dialogue)
    telling.build(built)
    blocks = []
    for number, each in enumerate(references, 1):
        blocks += [(f"other_maintainer_{number}", each.maintainer), (f"other_user_{number}", each.user)]
    telling.show("references", *blocks)
    return telling.fill(stage.config.prompts.user)


def read_user(said: str, conditions: Sequence[str]) -> UserReply | None:
    """The text, then a line with the status, then the reason to the end; None if a reply is anything else.

    It cannot be read either if its text is empty without full satisfaction, names a status, or repeats a condition.
    """
    lines = said.splitlines()
    status = only_word(STATUS, STATUSES, lines)
    place = next((number for number, line in enumerate(lines) if after_label(STATUS, line) is not None), 0)
    behind = lines_of("\n".join(lines[place + 1 :]))
    reasons = [text for line in behind if (text := after_label(REASON, line)) is not None]
    if status is None or len(reasons) != 1 or after_label(REASON, behind[0]) is None:
        return None
    text = "\n".join(lines[:place]).strip()
    if passable(text, conditions) != text or not (text or status == "FULLY_SATISFIED"):
        return None
    reason = bounded(" ".join([reasons[0], *behind[1:]]))
    return UserReply(text=text, status=cast(Status, status), reason=reason) if reason else None


def passable(said: str, conditions: Iterable[str]) -> str:
    """What of a reply the maintainer may see: the lines before the first that has a label or names a status.

    Lines that repeat a condition word for word are left out; the whole text, if a condition is spread over lines.
    """
    hidden = [plain for text in conditions if len(plain := _plain(text)) >= SHORTEST]
    kept: list[str] = []
    for line in said.splitlines():
        if _MENTION.search(line) or any(after_label(label, line) is not None for label in (STATUS, REASON)):
            break
        if not any(condition in _plain(line) for condition in hidden):
            kept.append(line)
    text = "\n".join(kept).strip()
    return "" if any(condition in _plain(text) for condition in hidden) else text


def _plain(text: str) -> str:
    """A text as it is compared: letters and digits alone, in small letters."""
    return " ".join(re.findall(r"\w+", text.casefold()))
