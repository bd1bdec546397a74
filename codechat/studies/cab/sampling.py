"""The sample of CodeAssistBench's paper (section 4.2.2), and what it goes by: cohorts, and turns of a thread.

Of every language and cohort 50 issues at most: up to five with a Dockerfile, then as many of each number of turns
(1, 2, 3, 4, 5 or more) as make ten with them; what a number lacks is drawn from the number before.
"""

from collections import defaultdict
from collections.abc import Sequence

from codechat.base.seeding import generator
from codechat.studies.cab.tasks import AssistTask

RECENT_SINCE = "2024-11"
"""Repositories made in this month or later are of the cohort `recent`."""
WITH_DOCKERFILE, EACH, LONG_THREAD = 5, 10, 5
"""Issues with a Dockerfile, issues of a number of turns, and the turns from which on threads are one group."""


def cohort_of(task: AssistTask) -> tuple[str, str]:
    """The cohort of an issue, `recent` or `all_time`, and by what it is known: the repository's date, or the issue's.

    An issue of a recent repository is recent; a recent issue may be of an older one.
    """
    date, known = (
        (task.repository_created_at, "repository") if task.repository_created_at else (task.created_at, "issue")
    )
    return "recent" if date >= RECENT_SINCE else "all_time", known


def thread_turns(task: AssistTask) -> int:
    """How often somebody else answers the author in the real thread: comments in a row are one turn."""
    turns, author = 0, True
    for comment in task.thread:
        own = comment.user == task.author
        turns += author and not own
        author = own
    return turns


def thread_replies(task: AssistTask) -> int:
    """How many comments of the real thread are somebody else's: each is one, in a row too."""
    return sum(comment.user != task.author for comment in task.thread)


def paper_sample(tasks: Sequence[AssistTask], seed: int) -> list[AssistTask]:
    """The sample, in the tasks' order; another for another seed."""
    groups: dict[tuple[str, str], list[AssistTask]] = defaultdict(list)
    for task in tasks:
        groups[cohort_of(task)[0], task.target.language].append(task)
    taken = {task.task_id for place, group in groups.items() for task in _of_language(group, seed, "/".join(place))}
    return [task for task in tasks if task.task_id in taken]


def _of_language(group: Sequence[AssistTask], seed: int, place: str) -> list[AssistTask]:
    order = sorted(group, key=lambda task: task.task_id)
    generator(seed, place, "sample").shuffle(order)
    taken = [task for task in order if task.needs_build][:WITH_DOCKERFILE]
    known = {task.task_id for task in taken}
    missing = 0
    for turns in range(LONG_THREAD, 0, -1):
        of_turns = [task for task in order if max(1, min(thread_turns(task), LONG_THREAD)) == turns]
        here = sum(task.task_id in known for task in of_turns)
        wanted = max(0, EACH + missing - here)
        more = [task for task in of_turns if task.task_id not in known][:wanted]
        taken, missing = [*taken, *more], EACH + missing - here - len(more)
    return taken
