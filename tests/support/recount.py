"""The figures of a refinement cell, counted again from sessions.jsonl by the contract's words.

It imports nothing of the package, so that a mistake would have to be made twice.
"""

import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

SCOPES, CHANGES = ("cosmetic", "structural", "semantic"), ("add", "remove", "modify")


def share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def change(first: float | None, last: float | None) -> float | None:
    return None if not first or last is None else (last / first - 1) * 100


def kendall(series: list[float | None]) -> tuple[int, float] | None:
    """S and the two-sided p of the normal test with continuity and tie correction."""
    x = [value for value in series if value is not None]
    n = len(x)
    if n < 2:
        return None
    s = sum((x[j] > x[i]) - (x[j] < x[i]) for i in range(n) for j in range(i + 1, n))
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(x).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    z = 0.0 if s == 0 else (s - math.copysign(1, s)) / math.sqrt(variance)
    return s, math.erfc(abs(z) / math.sqrt(2))


def recount(folder: Path) -> dict[str, Any]:
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    done = [s for s in sessions if s["status"] == "completed"]
    length = max(len(s["turns"]) for s in done)
    passes = [[t["passed"] for t in s["turns"]] for s in done]
    prefix = [[*row, False].index(False) for row in passes]
    follow = [
        (s["turns"][i - 1]["passed"], t, s["task_id"])
        for s in done
        for i, t in enumerate(s["turns"])
        if i and not t["skipped"] and not (s["ended"] == "context_overflow" and t["response"] is None)
    ]
    judged = [
        (t, t["adherence"]["verdict"])
        for _, t, _ in follow
        if t["adherence"] and t["adherence"]["verdict"] != "undecided"
    ]

    def rates(before: bool, key: str | None = None, value: str | None = None, turn: int | None = None) -> list[bool]:
        return [
            t["passed"] is not before
            for was, t, _ in follow
            if was is before
            and (key is None or key == "cell" or t["instruction"][key] == value)
            and (key != "cell" or f"{t['instruction']['scope']}/{t['instruction']['change']}" == value)
            and (turn is None or t["turn"] == turn)
        ]

    pass_at_1 = [share([row[i] for row in passes]) for i in range(length)]
    iar = [share([v == "adhered" for t, v in judged if t["turn"] == i]) for i in range(1, length)]
    square = Counter((t["passed"], v == "adhered") for t, v in judged)
    a, b, c, d = (square[key] for key in ((True, True), (True, False), (False, True), (False, False)))
    below = math.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    met: Counter[str] = Counter()
    broke: Counter[str] = Counter()
    for was, t, _ in follow:
        if was:
            met[t["instruction"]["id"]] += 1
            broke[t["instruction"]["id"]] += not t["passed"]
    return {
        "tasks": [s["task_id"] for s in done], "passes": passes, "prefix": prefix,
        "sessions": len(sessions), "completed": len(done), "errored": len(sessions) - len(done),
        "overflowed": sum(s["ended"] is not None for s in done),
        "skipped_turns": sum(t["skipped"] for s in done for t in s["turns"]),
        "undecided": sum(bool(t["adherence"]) and t["adherence"]["verdict"] == "undecided" for s in done for t in s["turns"]),
        "undecided_applicability": sum(k["applicable"] is None for s in done for t in s["turns"] for k in t["candidates"]),
        "outcomes": Counter(t["outcome"] for s in done for t in s["turns"] if not t["skipped"]),
        "pass_at_1": pass_at_1, "iar": iar,
        "iar_all": share([v == "adhered" for _, v in judged]),
        "mst": sum(prefix) / len(prefix),
        "mst_at": {cap: sum(min(p, cap) for p in prefix) / len(prefix) for cap in range(1, length + 1)},
        "delta_pct": change(pass_at_1[0], pass_at_1[-1]), "iar_delta_pct": change(iar[0], iar[-1]),
        "kendall": kendall(pass_at_1), "kendall_iar": kendall(iar),
        "surviving": [share([p > i for p in prefix]) for i in range(length)],
        "regression": share(rates(True)), "self_correction": share(rates(False)),
        "regression_by": {
            **{x: share(rates(True, "scope", x)) for x in SCOPES}, **{x: share(rates(True, "change", x)) for x in CHANGES},
            **{f"{x}/{y}": share(rates(True, "cell", f"{x}/{y}")) for x in SCOPES for y in CHANGES},
        },
        "self_correction_by": {
            **{x: share(rates(False, "scope", x)) for x in SCOPES}, **{x: share(rates(False, "change", x)) for x in CHANGES},
            **{f"{x}/{y}": share(rates(False, "cell", f"{x}/{y}")) for x in SCOPES for y in CHANGES},
        },
        "passed_before": len(rates(True)), "failed_before": len(rates(False)),
        "regression_at": [share(rates(True, turn=i)) for i in range(1, length)],
        "phi": (a * d - b * c) / below if below else None, "phi_counts": [a, b, c, d],
        "met": met, "broke": broke,
        "model_tokens": {
            key: sum(t["usage"][key] for s in done for t in s["turns"])
            for key in ("input_tokens", "output_tokens", "cached_input_tokens")
        },
    }  # fmt: skip


def near(found: Any, expected: Any) -> bool:
    """Whether a CSV field, text or nothing, is the number."""
    if expected is None:
        return found in ("", None)
    return math.isclose(float(found), expected, rel_tol=1e-9, abs_tol=1e-12)


def recount_samples(folders: list[Path]) -> dict[str, Any]:
    """Several seeds of a cell as samples of its tasks: what any and all of k samples reach, by listing the choices."""
    lines = [line for folder in folders for line in (folder / "sessions.jsonl").read_text().splitlines()]
    done = [s for s in map(json.loads, lines) if s["status"] == "completed"]
    rows: dict[str, list[list[bool]]] = {}
    for s in done:
        rows.setdefault(s["task_id"], []).append([t["passed"] for t in s["turns"]])
    turns, most = max(len(row) for own in rows.values() for row in own), max(map(len, rows.values()))

    def over_choices(k: int, value: Any) -> float:
        tasks = [own for own in rows.values() if len(own) >= k]
        choices = [[value(choice) for choice in combinations(own, k)] for own in tasks]
        return sum(sum(values) / len(values) for values in choices) / len(tasks)

    found: dict[str, Any] = {}
    for k in range(1, most + 1):
        for turn in range(turns):
            for name, now in (
                ("pass", lambda row, at=turn: row[at]),
                ("alive", lambda row, at=turn: all(row[: at + 1])),
            ):
                found[f"{name}_any", turn, k] = over_choices(k, lambda rows, now=now: any(map(now, rows)))
                found[f"{name}_all", turn, k] = over_choices(k, lambda rows, now=now: all(map(now, rows)))
        length = [lambda rows, end=end: end([*row, False].index(False) for row in rows) for end in (max, min)]
        found["longest", k], found["shortest", k] = (over_choices(k, value) for value in length)
    return {"rows": rows, "sessions": len(done), **found}
