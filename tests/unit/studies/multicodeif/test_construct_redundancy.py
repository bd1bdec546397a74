"""ROUGE-L as the reference library has it, and what is redundant beside what was kept."""

import json
import os
import random
import time
from itertools import combinations, groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.datasets.reading.lines import read_values
from codechat.studies.multicodeif.construct.review import Near, Texts, rouge_l, tokens_of

GOLDEN = Path(__file__).parents[3] / "golden" / "rouge_l.json"
PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "multicodeif_tasks.jsonl.gz"
LINE = "Write a function that sort_list the List 2 x1, naïve O(n) `stack` -- ÅK"


def pairs(count: int = 1000) -> list[tuple[str, str]]:
    """Texts drawn word by word; every other second text is the first with some words changed."""
    dice, words = random.Random(7), LINE.split()

    def text(length: int) -> list[str]:
        return [words[int(dice.random() * len(words))] for _ in range(length)]

    found = []
    for number in range(count):
        one = text(int(dice.random() * 90))
        other = text(int(dice.random() * 90)) if number % 2 else [text(1)[0] if dice.random() < 0.3 else w for w in one]
        found.append((" ".join(one), "\n".join(other)))
    return found


def test_scores_are_those_of_rouge_score() -> None:
    """The numbers are of rouge_score 0.1.2: `RougeScorer(["rougeL"]).score(*pair)["rougeL"].fmeasure`."""
    golden = json.loads(GOLDEN.read_text())
    assert len(golden) == 1000 and len(set(golden)) > 500
    assert max(abs(rouge_l(*pair) - score) for pair, score in zip(pairs(), golden, strict=True)) < 1e-12


def by_table(one: list[str], other: list[str]) -> float:
    """The score by the table that the definition gives."""
    above = [0] * (len(other) + 1)
    for token in one:
        row = [0]
        for place, against in enumerate(other, 1):
            row.append(above[place - 1] + 1 if token == against else max(above[place], row[-1]))
        above = row
    return 2 * above[-1] / (len(one) + len(other)) if one or other else 0.0


TEXTS = st.lists(st.sampled_from(["a", "b", "C", "d,e", "É", "0"]), max_size=80).map(" ".join)


@given(TEXTS, TEXTS)
def test_scores_are_those_of_the_table(one: str, other: str) -> None:
    score = rouge_l(one, other)
    assert score == by_table(tokens_of(one), tokens_of(other)) == rouge_l(other, one)


@given(st.lists(TEXTS, max_size=8), TEXTS, st.sampled_from([0.0, 0.5, 0.7, 1.0]))
def test_neighbours_are_those_of_all_scores(kept: list[str], text: str, least: float) -> None:
    """Pairs whose lengths or tokens cannot reach the bound are skipped; no other pair is."""
    texts = Texts()
    for number, each in enumerate(kept):
        texts.add(str(number), each)
    scores = [Near(str(number), rouge_l(each, text)) for number, each in enumerate(kept)]
    found = sorted((each for each in scores if each.score >= least), key=lambda near: -near.score)
    assert texts.neighbours(text, 3, least=least) == found[:3]


def test_the_threshold_itself_is_redundant() -> None:
    kept = Texts(0.7)
    kept.add("a", "one two three four five six seven x y z")
    assert kept.nearest("one two three four five six seven p q r") == Near("a", 0.7)
    assert kept.nearest("one two three four five six o p q r") is None


def test_the_first_of_equally_near_ones_is_named_and_some_are_skipped() -> None:
    kept = Texts()
    for name in ("a", "b", "c"):
        kept.add(name, "Sort a list.")
    assert kept.nearest("sort A list") == Near("a", 1.0)
    assert kept.nearest("sort A list", skip={"a"}) == Near("b", 1.0)
    assert kept.nearest("sort A list", skip={"a", "b", "c"}) is None
    assert kept.nearest("") is None


def dropped(texts: list[str]) -> int:
    """The number of texts that are redundant beside earlier ones."""
    kept, count = Texts(), 0
    for number, text in enumerate(texts):
        if kept.nearest(text):
            count += 1
        else:
            kept.add(str(number), text)
    return count


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
@pytest.mark.long
def test_the_published_prompts() -> None:
    """None is redundant within its file and level; across files 55 of the 1,526 are. A pair takes under 0.1 ms, all
    pairs of them, without those whose lengths cannot reach the threshold, under 60 s of one core."""
    rows = [row for _, row in read_values(PUBLISHED, lambda row: row, "")]
    place = lambda row: (row["file"], row["level"])  # noqa: E731
    counts = [dropped([row["prompt"] for row in own]) for _, own in groupby(sorted(rows, key=place), place)]
    assert counts == [0] * 31
    prompts = [row["prompt"] for row in rows if row["level"] == "single"]
    before = time.process_time()
    assert (len(prompts), dropped(prompts)) == (1526, 55)
    assert time.process_time() - before < 60
    some = list(combinations(prompts[::10], 2))
    before = time.process_time()
    for pair in some:
        rouge_l(*pair)
    assert (time.process_time() - before) / len(some) < 1e-4
