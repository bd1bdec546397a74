"""The files of a construction: the same bytes for the same seeds and replies."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codechat.base.domain import Usage
from codechat.base.files import write_atomically
from codechat.base.template import counted
from codechat.models.roles import role_of
from codechat.report.metrics import Point
from codechat.report.metrics.spending import Tariff
from codechat.run.construct.engine import Calls, ConstructionResult, ItemResult
from codechat.run.construct.interface import SEVERAL
from codechat.run.construct.making import STAGE, YIELD, Construction
from codechat.run.journal import Journal

STAGE_HEADS = ("stage", "reached", "passed", "dropped", "waiting", "calls", "tokens", "US dollars")
ITEMS, DROPPED, QUESTIONS, CARD = "items.jsonl", "dropped.jsonl", "questions.jsonl", "card.md"
HEADLINE = {
    "final/kept": "tasks kept",
    "final/yield": "tasks kept per seed",
    "cost/per_kept/usd": "US dollars per task",
}


def write_output(made: Construction, result: ConstructionResult, journal: Journal, tariff: Tariff) -> dict[str, Any]:
    """Write all files; returns the content of yield.json."""
    folder, digest = made.folder, hashlib.sha256()
    funnel = made.recipe.funnel() if made.recipe.funnel is not None else None

    def with_texts(end: ItemResult) -> ItemResult:
        whole = ItemResult.model_validate_json(journal.record(end.unit) or "")
        if funnel is not None:
            funnel.add(whole.data, end.stage if end.status == "dropped" else "", end.reason)
        return whole

    def items() -> Iterator[str]:
        for end in result.kept:
            line = _line(_row(made, with_texts(end)))
            digest.update(line.encode())
            yield line

    def dropped() -> Iterator[str]:
        for end in result.final:
            if end.status == "dropped":
                whole, about = with_texts(end), {"id": end.id, "seed": end.origin, "stage": end.stage}
                about |= {"reason": end.reason, "detail": end.detail}
                yield _line({**about, "data": whole.data, "provenance": whole.provenance})

    asked = [{**end.question, "item": end.id, "stage": end.stage} for end in result.final if end.question is not None]
    write_atomically(folder / ITEMS, items())
    write_atomically(folder / DROPPED, dropped())
    write_atomically(folder / QUESTIONS, "".join(map(_line, asked)))
    yields = _yields(made, result, digest.hexdigest(), tariff)
    if funnel is not None:
        yields["funnel"] = [[*row] for row in funnel.table(yields["all"]["calls"])]
    write_atomically(folder / YIELD, json.dumps(yields, indent=1, ensure_ascii=False) + "\n")
    distributions: Mapping[str, Mapping[str, int]] = {}
    if made.recipe.distributions and not made.is_partial and result.kept:
        with (folder / ITEMS).open(encoding="utf-8") as stream:
            distributions = made.recipe.distributions([json.loads(line) for line in stream])
    write_atomically(folder / CARD, _card(made, yields, distributions))
    return yields


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _row(made: Construction, end: ItemResult) -> dict[str, Any]:
    """The line of a kept item; one to continue from, if `until` stopped before the last stage."""
    if made.is_partial:
        return {"id": end.id, "data": end.data, "provenance": {**end.provenance, STAGE: end.upto}}
    provenance = {
        **end.provenance,
        "recipe": made.name,
        "seed": end.origin,
        "random_seed": made.config.seed,
        "roles": {role: model.name for role, model in sorted(made.roles.items())},
        "prompts": dict(made.prompts),
        **({"people": end.asked} if end.asked else {}),
    }
    return {**made.recipe.row(end.item), "provenance": provenance}


def _yields(made: Construction, result: ConstructionResult, content: str, tariff: Tariff) -> dict[str, Any]:
    """Counts, calls, tokens and dollars: of all, by stage, by role, and per kept item.

    Tokens count every reply, whether it was paid now or earlier, or came from the response cache.
    """
    ends = [end for part in result.parts for end in part]
    status, kept = Counter(end.status for end in result.final), len(result.kept)
    calls = [each for end in ends for each in end.calls]
    by_stage = {stage.name: [each for each in calls if each.stage == stage.name] for stage in made.stages}
    by_role = {role: [each for each in calls if each.role == role] for role in sorted(made.roles)}
    whole = _spent(calls, tariff)
    return {
        "recipe": made.name,
        "id": made.id[:16],
        "seeds": result.begun,
        "kept": kept,
        "dropped": status["dropped"],
        "waiting": status["waits"],
        "errored": status["errored"],
        "held": status["kept"] - kept,
        "content": content,
        "stages": {name: {**_passed(name, ends), **_spent(used, tariff)} for name, used in by_stage.items()},
        "roles": {role: {"model": made.roles[role].name, **_spent(used, tariff)} for role, used in by_role.items()},
        "all": whole,
        "per_kept": {key: None if value is None or not kept else value / kept for key, value in whole.items()},
    }


def _passed(stage: str, ends: list[ItemResult]) -> dict[str, Any]:
    """The numbers of items that reached a stage, and of their ends there; items that it made replace their origin."""
    here = [end for end in ends if end.stage == stage]
    ended = Counter(end.status for end in here)
    reached = sum(stage in end.visited for end in ends) - ended["spread"] + sum(end.made for end in here)
    reasons = Counter(each for end in here if end.status == "dropped" for each in end.reason.split(SEVERAL))
    return {
        "reached": reached,
        "passed": reached - ended["dropped"] - ended["waits"] - ended["errored"],
        "dropped": dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        "waiting": ended["waits"],
        "errored": ended["errored"],
    }


def _spent(calls: list[Calls], tariff: Tariff) -> dict[str, Any]:
    """Calls, tokens, and dollars; dollars are None if a price is not known."""
    usage, costs, unknown = Usage(), list[float | None](), {role_of(place) for place in tariff.unpriced}
    for each in calls:
        usage += each.usage
        price = tariff.price(each.role)
        costs.append((None if each.role in unknown else 0.0) if price is None else price.cost(each.usage))
    known = [cost for cost in costs if cost is not None]
    usd = round(sum(known), 8) if len(known) == len(costs) else None
    return {"calls": sum(each.calls for each in calls), **usage.counts(), "usd": usd}


def _card(made: Construction, yields: Mapping[str, Any], distributions: Mapping[str, Mapping[str, int]]) -> str:
    """The card in Markdown: how the tasks were made, by which models, how many came through, and distributions."""
    funnel = [tuple(row) for row in yields.get("funnel", [()])]
    lines = [
        f"# {counted(yields['kept'], 'task')} by recipe={made.name}",
        "",
        f"From {counted(yields['seeds'], 'seed')}; {yields['dropped']} items dropped, "
        f"{yields['waiting']} wait for people, {yields['errored']} errored, {yields['held']} held back by these.",
        f"Random seed {made.config.seed}; SHA-256 of {ITEMS}: `{yields['content']}`.",
        "",
        *_table(("role", "model"), [(role, model.name) for role, model in sorted(made.roles.items())]),
        *_table(STAGE_HEADS, stage_rows(yields)),
        *_table(("prompt", "SHA-256, first 16"), list(made.prompts.items())),
        *_table(funnel[0], funnel[1:]),
    ]
    for title, values in distributions.items():
        lines += [f"## {title}", "", *_table((title, "tasks"), [(name, str(n)) for name, n in values.items()])]
    return "\n".join(lines).rstrip() + "\n"


def stage_rows(yields: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The rows of the table of stages (`STAGE_HEADS`)."""
    rows: list[tuple[str, ...]] = []
    for name, row in [*yields["stages"].items(), ("all", yields["all"]), ("per task kept", yields["per_kept"])]:
        dropped = SEVERAL.join(f"{count} {reason}" for reason, count in row.get("dropped", {}).items())
        counts = [str(row.get(key, "")) for key in ("reached", "passed")]
        used = [row["calls"], None if row["calls"] is None else row["input_tokens"] + row["output_tokens"]]
        shown = ("—" if each is None else f"{each:,.1f}" if isinstance(each, float) else f"{each:,}" for each in used)
        usd = "not known" if row["usd"] is None else f"{row['usd']:,.4f}"
        rows.append((name, *counts, dropped, str(row.get("waiting", "")), *shown, usd))
    return rows


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    texts = [[text.replace("|", "\\|").replace("\n", " ") for text in row] for row in (headers, *rows)]
    return [*(f"| {' | '.join(row)} |" for row in [texts[0], ["---"] * len(headers), *texts[1:]]), ""]


def points_of(yields: Mapping[str, Any]) -> list[Point]:
    """The numbers that a store shows."""
    points = [Point(f"final/{key}", float(yields[key])) for key in ("kept", "dropped", "waiting", "errored")]
    points += [Point("final/yield", yields["kept"] / yields["seeds"])]
    for name, row in yields["stages"].items():
        points += [Point(f"stage/{name}/{key}", float(row[key])) for key in ("reached", "passed", "calls")]
    for place in ("all", "per_kept"):
        points += [Point(f"cost/{place}/{key}", float(n)) for key, n in yields[place].items() if n is not None]
    return points
