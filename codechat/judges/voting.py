"""Several votes of a judge on one question, as one decision."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from codechat.domain import Compliance, Spent
from codechat.judges.deciding import Decision


def majority(votes: Sequence[Decision], words: tuple[str, ...]) -> Compliance:
    """The decision of most votes that could be read, undecided in a tie; `words` has the one for yes first.

    The reason is the first one given for the decision, with the counts if there were several votes.
    """
    counts = Counter(vote.verdict for vote in votes if vote.verdict in words)
    spent = reduce(Spent.plus, votes, Spent(cached=True))
    yes, no = (counts[word] for word in words)
    met = None if yes == no else yes > no
    wanted = None if met is None else words[0] if met else words[1]
    reason = next(vote.reason for vote in votes if met is None or vote.verdict == wanted)
    if len(votes) > 1:
        reason = f"{yes} of {len(votes)} votes for, {no} against: {reason}"
    return Compliance(met, "llm", reason, **spent.fields())
