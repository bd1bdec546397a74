"""What the report page claims in words: it follows from the figures, and says how sure it is."""

from dataclasses import replace
from typing import Any

from page_input import MadeCell, made_cell

from codechat.report.page.overview import findings


def rival(model: str, mst: float, interval: tuple[float, float], **labels: Any) -> MadeCell:
    cell = made_cell(model, tasks=3)
    metrics = {**cell.metrics, "mst": mst, "ci": {**cell.metrics["ci"], "mst": list(interval)}}
    return replace(cell, metrics=metrics, **labels)


def test_the_headline_names_the_model_that_lasts() -> None:
    told = findings([rival("a", 5.0, (4.5, 5.5)), rival("b", 7.25, (7, 7.5))])
    assert told["title"] == "b keeps code alive longest: 7.25 of 10 turns"
    assert told["text"].endswith("Next is a with 5.00. The 95 % intervals of the two do not overlap.")


def test_the_headline_admits_what_it_does_not_know() -> None:
    told = findings([rival("a", 7.0, (6.5, 7.5)), rival("b", 7.25, (7, 7.5))])
    assert told["text"].endswith("The 95 % intervals of the two overlap on humaneval: their order may be chance.")
    assert findings([rival("a", 7.0, (6, 8)), rival("b", 7.0, (6, 8))])["title"].startswith(
        "a and b keep code alive equally"
    )
    assert findings([rival("a", 7.0, (6, 8))])["title"] == "a sustains 7.00 of 10 turns"
    assert findings([])["title"] == "Nothing to rank"


def test_models_are_compared_on_the_same_datasets_in_the_same_setting() -> None:
    both = [rival("a", 6.0, (5, 7)), rival("a", 8.0, (7, 9), dataset="mbpp")]
    half = [rival("b", 9.0, (8, 10))]
    other = [rival("c", 10.0, (10, 10), agenda="cosmetic")]
    assert findings([*both, *half, *other])["title"] == "a sustains 7.00 of 10 turns"


def test_baselines_are_no_rivals() -> None:
    echo = rival("echo", 10.0, (10, 10), config={"model": {"kind": "echo"}})
    model = rival("gpt", 4.0, (3, 5), config={"model": {"kind": "openai"}})
    assert findings([echo, model])["title"] == "gpt sustains 4.00 of 10 turns"
    assert findings([echo])["title"] == "echo sustains 10.00 of 10 turns"
