"""The user's and the judge's side: a simulated user replies to every answer, a judge decides once in the end.

The user's model knows the conditions and adds its status to its reply. Only the reply's text reaches the maintainer:
neither the status, nor the reason, nor a condition word for word. Replies of users in other issues, found by BM25, show
that model the tone. The judge decides on every condition; their number is counted here, never read from its words.
"""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast, get_args

from codechat.base.template import fill
from codechat.judging import deciding
from codechat.judging.deciding import lines_of
from codechat.studies.cab.stage import JUDGE, USER, Built, Exchange, Stage, Telling, after_label, bounded, only_word
from codechat.studies.cab.tasks import AssistTask, Reference, cohort_of, plain, thread_replies, thread_turns, words_of
from codechat.studies.cab.turns import AssistJudgement, Grade, Status, UserReply, Verbosity

K1, B = 1.5, 0.75
"""The saturation of repeated words and the weight of a document's length in BM25 (Robertson's usual values)."""


def references_for(task: AssistTask, answer: str, count: int) -> tuple[Reference, ...]:
    """The replies of other issues whose maintainers' texts are most like the answer, best first, at most `count`.

    Every word of the answer counts once. The issue itself is left out, also from the frequencies of words. Replies
    without a common word are left out; of equal scores the id decides.
    """
    scores = scores_of([reply for reply in task.replies if reply.url != task.url], answer) if count else {}
    return tuple(sorted(scores, key=lambda reply: (-scores[reply], reply.id))[:count])


def scores_of(replies: Sequence[Reference], answer: str) -> dict[Reference, float]:
    """The positive BM25 scores of the maintainers' texts for an answer, in time linear in both."""
    texts = [_counted(reply.maintainer) for reply in replies]
    lengths = [text.total() for text in texts]
    total, scores = sum(lengths), defaultdict[Reference, float](float)
    holders = defaultdict[str, list[int]](list)
    for number, text in enumerate(texts):
        for word in text:
            holders[word].append(number)
    for word in dict.fromkeys(words_of(answer)):
        documents = holders.get(word, [])
        weight = math.log(1 + (len(texts) - len(documents) + 0.5) / (len(documents) + 0.5))
        for number in documents:
            times, norm = texts[number][word], K1 * (1 - B + B * lengths[number] * len(texts) / total)
            scores[replies[number]] += weight * times * (K1 + 1) / (times + norm)
    return scores


@functools.lru_cache(maxsize=4096)
def _counted(text: str) -> Counter[str]:
    return Counter(words_of(text))


STATUS, REASON = "SATISFACTION STATUS", "REASON"
STATUSES: tuple[Status, ...] = get_args(Status)
SHORTEST = 25  # the least characters of a condition that is recognised: anyone may write shorter ones
_MENTION = re.compile(r"SATISFACTION_STATUS|\b(?:FULLY|PARTIALLY|NOT)_SATISFIED\b", re.IGNORECASE)


async def ask_user(
    stage: Stage, turn: int, dialogue: Sequence[Exchange], built: Built, references: Sequence[Reference]
) -> UserReply:
    """The user's reply to the last answer; without a status, with the `passable` text, if none could be read."""
    conditions = stage.task.conditions
    prompt = user_prompt(stage, dialogue, built, references)
    found, said = await stage.ask_until_read(
        USER, turn, prompt, again=stage.config.prompts.reask_user, read=lambda text: read_user(text, conditions)
    )
    reply = found or UserReply(text=passable(said, conditions), status=None, reason="")
    return reply.model_copy(update={"references": [reference.id for reference in references]})


def user_prompt(stage: Stage, dialogue: Sequence[Exchange], built: Built, references: Sequence[Reference]) -> str:
    """The prompt of the user's model after an answer."""
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
    """A text, then a line with the status, then the reason to the end; None for any other reply.

    Returns None too if the text is empty without full satisfaction, names a status, or repeats a condition.
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
    """The part of a reply that the maintainer may see: the lines before the first with a label or a status.

    Lines that repeat a condition word for word are left out; the whole text, if a condition is spread over lines.
    """
    hidden = [words for text in conditions if len(words := plain(text)) >= SHORTEST]
    kept: list[str] = []
    for line in said.splitlines():
        if _MENTION.search(line) or any(after_label(label, line) is not None for label in (STATUS, REASON)):
            break
        words = plain(line)
        if not any(condition in words for condition in hidden):
            kept.append(line)
    text = "\n".join(kept).strip()
    whole = plain(text)
    return "" if any(condition in whole for condition in hidden) else text


TECHNICAL, VERBOSITY, VERDICT = "TECHNICAL CORRECTNESS", "VERBOSITY", "VERDICT"
GRADES: tuple[Grade, ...] = get_args(Grade)
VERBOSITIES: tuple[Verbosity, ...] = get_args(Verbosity)
MET = ("TRUE", "FALSE")
UNDECIDED = "no reply of the judge could be read"
NO_ANSWER = "the maintainer gave no answer"
_ANY_CONDITION = re.compile(r"[\s>*_`#-]*CONDITION[ _]*\d+[\s*_`]*:", re.IGNORECASE)


class Parts(NamedTuple):
    """The parts of a judge's reply."""

    technical: Grade
    conditions: tuple[bool, ...]
    verbosity: Verbosity
    verdict: Grade
    why: tuple[str, ...]
    reason: str


class Ended(NamedTuple):
    """The end of a dialogue, for the judgement."""

    rounds: int
    satisfied: Status | None
    built: Built
    needs_build: bool
    unvalidated: bool
    environment: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the last image was not built, or fails the row's test."""
        return self.built.last is not None and not self.built.last.succeeded


async def judge(stage: Stage, turn: int, dialogue: Sequence[Exchange], ended: Ended) -> AssistJudgement:
    """The judgement. Without any answer nothing is met, and no judge is asked; undecided if no reply can be read."""
    task, prompts = stage.task, stage.config.prompts
    if not dialogue:
        return _judgement(task, ended, None, verdict="INCORRECT")
    count = len(task.conditions)
    prompt, again = judge_prompt(stage, dialogue, ended.built), fill(prompts.reask_judge, form=form(count))
    parts, _ = await stage.ask_until_read(JUDGE, turn, prompt, again=again, read=lambda said: read_judge(said, count))
    verdict: Grade | None = "INCORRECT" if ended.failed else None if parts is None else parts.verdict
    return _judgement(task, ended, parts, verdict=verdict, answered=True)


def judge_prompt(stage: Stage, dialogue: Sequence[Exchange], built: Built) -> str:
    """The prompt of the judge's model."""
    task, telling = stage.task, Telling()
    telling.show("question", ("question", task.prompt))
    telling.show(
        "thread",
        *(
            (f"comment_{number}", f"{each.user}, {each.created_at}:\n{each.body}")
            for number, each in enumerate(task.thread, 1)
        ),
    )
    telling.conditions(task)
    if stage.config.judged == "dialogue":
        telling.dialogue("answer", task, dialogue)
    else:
        telling.show("answer", ("answer", dialogue[-1].answer))
    telling.build(built)
    telling.fields["form"] = form(len(task.conditions))
    return telling.fill(stage.config.prompts.judge)


def form(conditions: int) -> str:
    """The lines that a judge's reply ends with."""

    def line(label: str, words: Sequence[str]) -> str:
        return f"{label}: {' or '.join(word.replace('_', ' ') for word in words)}"

    numbered = [line(f"CONDITION {number}", MET) for number in range(1, conditions + 1)]
    return "\n".join([line(TECHNICAL, GRADES), *numbered, line(VERBOSITY, VERBOSITIES), line(VERDICT, GRADES)])


def read_judge(said: str, conditions: int) -> Parts | None:
    """The parts of a reply, if each label stands once, with one of its words, and the verdict on the last line."""
    lines = lines_of(said)
    numbered = [only_word(f"CONDITION {number}", MET, lines) for number in range(1, conditions + 1)]
    technical, verbosity = only_word(TECHNICAL, GRADES, lines), only_word(VERBOSITY, VERBOSITIES, lines)
    verdict = deciding.only_word(VERDICT, GRADES, lines)
    if None in (technical, verbosity, verdict, *numbered) or after_label(VERDICT, lines[-1]) is None:
        return None
    if sum(bool(_ANY_CONDITION.match(line)) for line in lines) != conditions:
        return None
    why = [bounded(" ".join(_texts(f"WHY {number}", lines))) for number in range(1, conditions + 1)]
    return Parts(
        cast(Grade, technical),
        tuple(word == "TRUE" for word in numbered),
        cast(Verbosity, verbosity),
        cast(Grade, verdict),
        tuple(why),
        bounded(" ".join(_texts(REASON, lines)[-1:])),
    )


def implied(parts: Parts, *, failed: bool) -> Grade:
    """The verdict of the parts: INCORRECT after a failed build, if technically incorrect, or without any condition."""
    if failed or parts.technical == "INCORRECT" or not any(parts.conditions):
        return "INCORRECT"
    return "CORRECT" if parts.technical == "CORRECT" and all(parts.conditions) else "PARTIALLY_CORRECT"


def _texts(label: str, lines: Sequence[str]) -> list[str]:
    return [said for line in lines if (said := after_label(label, line)) is not None]


def _judgement(
    task: AssistTask, ended: Ended, parts: Parts | None, *, verdict: Grade | None, answered: bool = False
) -> AssistJudgement:
    """The record. Without parts, no condition is met if there was no answer, else none is decided."""
    build, last = ended.built.build, ended.built.last
    cohort, known = cohort_of(task)
    conditions = list(parts.conditions) if parts else [None if answered else False] * len(task.conditions)
    return AssistJudgement(
        verdict=verdict,
        judged=parts.verdict if parts else None,
        implied=implied(parts, failed=ended.failed) if parts else None if answered else verdict,
        technical=parts.technical if parts else None,
        conditions=conditions,
        conditions_met=None if None in conditions else sum(map(bool, conditions)),
        why=list(parts.why) if parts else [],
        verbosity=parts.verbosity if parts else None,
        reason=parts.reason if parts else UNDECIDED if answered else NO_ANSWER,
        build=None if build is None else build.ok,
        needs_build=ended.needs_build,
        unvalidated=ended.unvalidated,
        rounds=ended.rounds,
        thread_turns=thread_turns(task),
        satisfied=ended.satisfied,
        pull=task.pull,
        created_at=task.created_at,
        could_be_built=ended.built.own is not None,
        was_built=build is not None and build.ok,
        tested=last.succeeded if last is not None and last.ok and last.test is not None else None,
        environment=ended.environment,
        thread_replies=thread_replies(task),
        cohort=cohort,
        cohort_by=known,
    )
