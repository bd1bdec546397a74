"""The files of a construction: the same bytes for the same seeds and replies."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.base.domain import Usage
from codechat.base.files import write_atomically
from codechat.base.template import counted as counted_as
from codechat.models.roles import role_of
from codechat.report.metrics import Point
from codechat.report.metrics.spending import Tariff
from codechat.run.construct.engine import Calls, End, Made
from codechat.run.construct.interface import SEVERAL, Item
from codechat.run.construct.making import SEAL, STAGE, YIELD, Construction, seal_of
from codechat.run.journal import Journal

STAGE_HEADS = ("stage", "reached", "passed", "dropped", "waiting", "calls", "tokens", "US dollars")
ITEMS, DROPPED, QUESTIONS, CARD = "items.jsonl", "dropped.jsonl", "questions.jsonl", "card.md"


def write_output(made: Construction, found: Made, journal: Journal, tariff: Tariff) -> dict[str, Any]:
    """Write all files; returns the content of yield.json."""
    folder, digest = made.folder, hashlib.sha256()
    funnel = made.recipe.funnel() if made.recipe.funnel is not None else None

    def whole_of(end: End) -> End:
        whole = End.model_validate_json(journal.record(end.unit) or "")
        if funnel is not None:
            funnel.add(whole.data, end.stage if end.status == "dropped" else "", end.reason)
        return whole

    def items() -> Iterator[str]:
        for end in found.kept:
            line = _line(_row(made, whole_of(end)))
            digest.update(line.encode())
            yield line

    def dropped() -> Iterator[str]:
        for end in found.final:
            if end.status == "dropped":
                whole = whole_of(end)
                about = {
                    "id": end.id,
                    "seed": end.origin,
                    "stage": end.stage,
                    "reason": end.reason,
                    "detail": end.detail,
                }
                yield _line({**about, "data": whole.data, "provenance": whole.provenance})

    waiting = [end for end in found.final if end.question is not None]
    write_atomically(folder / ITEMS, items())
    write_atomically(folder / DROPPED, dropped())
    write_atomically(
        folder / QUESTIONS, "".join(_line({**(e.question or {}), "item": e.id, "stage": e.stage}) for e in waiting)
    )
    yields = _yields(made, found, digest.hexdigest(), tariff)
    if funnel is not None:
        yields["funnel"] = [[*row] for row in funnel.table(yields["all"]["calls"])]
    write_atomically(folder / YIELD, json.dumps(yields, indent=1, ensure_ascii=False) + "\n")
    with (folder / ITEMS).open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream] if made.recipe.distributions and not made.is_partial else []
    counted = made.recipe.distributions(rows) if made.recipe.distributions and rows else {}
    write_atomically(folder / CARD, _card(made, yields, counted))
    return yields


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _row(made: Construction, end: End) -> dict[str, Any]:
    """The line of a kept item; one to go on from, if `until` stopped before the last stage."""
    item = Item(end.id, end.data, end.provenance)
    if made.is_partial:
        noted = {**end.provenance, STAGE: end.upto}
        return {"id": end.id, "data": end.data, "provenance": {**noted, SEAL: seal_of(end.id, end.data, noted)}}
    provenance = {
        **end.provenance,
        "recipe": made.name,
        "seed": end.origin,
        "random_seed": made.config.seed,
        "roles": {role: model.name for role, model in sorted(made.roles.items())},
        "prompts": dict(made.prompts),
        **({"people": end.asked} if end.asked else {}),
    }
    return {**made.recipe.row(item), "provenance": provenance}


def _yields(made: Construction, found: Made, content: str, tariff: Tariff) -> dict[str, Any]:
    """Counts, calls, tokens and dollars: of all, by stage, by role, and per kept item.

    Tokens are those of the items as they are, whether a reply was paid now, earlier, or found in the response cache.
    """
    ends = [end for part in found.parts for end in part]
    status = Counter(end.status for end in found.final)
    kept = len(found.kept)
    calls = [each for end in ends for each in end.calls]
    whole = _spent(calls, tariff)
    return {
        "recipe": made.name,
        "id": made.id[:16],
        "seeds": found.begun,
        "kept": kept,
        "dropped": status["dropped"],
        "waiting": status["waits"],
        "errored": status["errored"],
        "held": sum(end.status == "kept" for end in found.final) - kept,
        "content": content,
        "stages": {
            stage.name: {
                **_passed(stage.name, ends),
                **_spent([each for each in calls if each.stage == stage.name], tariff),
            }
            for stage in made.stages
        },
        "roles": {
            role: {"model": model.name, **_spent([each for each in calls if each.role == role], tariff)}
            for role, model in sorted(made.roles.items())
        },
        "all": whole,
        "per_kept": {key: None if value is None or not kept else value / kept for key, value in whole.items()},
    }


def _passed(stage: str, ends: list[End]) -> dict[str, Any]:
    """How many items came to a stage, and what became of them there; those that it made count in place of theirs."""
    here = [end for end in ends if end.visited and end.visited[-1] == stage]
    ended = Counter(end.status for end in here)
    came = sum(stage in end.visited for end in ends) - ended["spread"] + sum(end.made for end in here)
    reasons = Counter(each for end in here if end.status == "dropped" for each in end.reason.split(SEVERAL))
    return {
        "reached": came,
        "passed": came - ended["dropped"] - ended["waits"] - ended["errored"],
        "dropped": dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        "waiting": ended["waits"],
        "errored": ended["errored"],
    }


def _spent(calls: list[Calls], tariff: Tariff) -> dict[str, Any]:
    """Calls, tokens, and their price; None for that if one is not known."""
    usage, costs, unknown = Usage(), list[float | None](), {role_of(place) for place in tariff.unpriced}
    for each in calls:
        usage += each.usage
        price = tariff.price(each.role)
        free = None if each.role in unknown else 0.0
        costs.append(free if price is None else price.cost(each.usage))
    known = [cost for cost in costs if cost is not None]
    usd = round(sum(known), 8) if len(known) == len(costs) else None
    return {"calls": sum(each.calls for each in calls), **usage.counts(), "usd": usd}


def _card(made: Construction, yields: Mapping[str, Any], counted: Mapping[str, Mapping[str, int]]) -> str:
    """The card in Markdown: how the tasks were made, by whom, how many came through, and their distributions."""
    funnel = [tuple(row) for row in yields.get("funnel", [[]])]
    lines = [
        f"# {counted_as(yields['kept'], 'task')} by recipe={made.name}",
        "",
        f"From {counted_as(yields['seeds'], 'seed')}; {yields['dropped']} items dropped, "
        f"{yields['waiting']} wait for people, {yields['errored']} errored, {yields['held']} held back by these.",
        f"Random seed {made.config.seed}; SHA-256 of {ITEMS}: `{yields['content']}`.",
        "",
        *_table(("role", "model"), [(role, model.name) for role, model in sorted(made.roles.items())]),
        *_table(STAGE_HEADS, stage_rows(yields)),
        *_table(("prompt", "SHA-256, first 16"), list(made.prompts.items())),
        *_table(funnel[0], funnel[1:]),
    ]
    for title, values in counted.items():
        lines += [f"## {title}", "", *_table((title, "tasks"), [(name, str(n)) for name, n in values.items()])]
    return "\n".join(lines).rstrip() + "\n"


def stage_rows(yields: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The table of stages: counts, drops by reason, calls, tokens in and out, dollars."""
    rows: list[tuple[str, ...]] = []
    for name, row in [*yields["stages"].items(), ("all", yields["all"]), ("per task kept", yields["per_kept"])]:
        dropped = SEVERAL.join(f"{count} {reason}" for reason, count in row.get("dropped", {}).items())
        counts = [str(row.get(key, "")) for key in ("reached", "passed")]
        used = [row["calls"], None if row["calls"] is None else row["input_tokens"] + row["output_tokens"]]
        shown = ("—" if each is None else f"{each:,.1f}" if isinstance(each, float) else f"{each:,}" for each in used)
        usd = "not known" if row["usd"] is None else f"{row['usd']:,.4f}"
        rows.append((name, *counts, dropped, str(row.get("waiting", "")), *shown, usd))
    return rows


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    cells = [
        [each.replace("|", "\\|").replace("\n", " ") for each in row]
        for row in (headers, ("---",) * len(headers), *rows)
    ]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def points_of(yields: Mapping[str, Any]) -> list[Point]:
    """The figures that a store shows."""
    points = [Point(f"final/{key}", float(yields[key])) for key in ("kept", "dropped", "waiting", "errored")]
    points += [Point("final/yield", yields["kept"] / yields["seeds"])]
    for name, row in yields["stages"].items():
        points += [Point(f"stage/{name}/{key}", float(row[key])) for key in ("reached", "passed", "calls")]
    for place in ("all", "per_kept"):
        points += [Point(f"cost/{place}/{key}", float(n)) for key, n in yields[place].items() if n is not None]
    return points


HEADLINE = {
    "final/kept": "tasks kept",
    "final/yield": "tasks kept per seed",
    "cost/per_kept/usd": "US dollars per task",
}
