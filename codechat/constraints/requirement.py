"""A user's own requirement on code, in plain words: a judge decides it."""

from codechat.constraints import Answer, ConstraintType, register


def read(raw: str) -> Answer:
    if not raw.strip():
        raise ValueError("the answer is empty: state the requirement")
    return Answer(raw)


def words(answer: Answer) -> str:
    """The requirement itself, as one sentence."""
    text = " ".join(answer.raw.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


register(ConstraintType("requirement", "own", ("own", "requirement"), "judge", read, words))
