"""How often the rules are right on labelled triples: a program, an instruction, the program after it.

    python benchmarks/rules.py LABELS [--second FILE] [--instructions POOL]

LABELS is a file or a folder of files, in either format that docs/audit.md describes, JSONL or YAML. It prints the share
of right decisions among those that are made, overall, by scope, by change and by what makes a triple hard to judge, the
number of undecided ones, and every wrong decision. `--second` is a CSV with a second reader's labels of the same
triples: it prints how far the rules, and the labels, agree with that reader (share and Cohen's kappa).
"""

import argparse
import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codechat.base.domain import CHANGES, SCOPES, Instruction
from codechat.base.files import from_yaml
from codechat.report.audit.scoring import kappa, share, show
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable

FITS = {True: "yes", False: "no", None: ""}
QUESTIONS = ("applicability", "adherence")


class Triple(NamedTuple):
    """A labelled triple; a label that is missing is None. `hard` says what makes it hard to judge, if anything."""

    place: str
    instruction: Instruction
    before: str
    after: str | None
    applicable: bool | None
    adherence: str | None
    hard: str | None

    @property
    def digest(self) -> str:
        """The triple's name in a second reader's file."""
        parts = (self.instruction.id, self.before, self.after or "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


class Decision(NamedTuple):
    """An answer of the rules ("" if undecided) beside the label and the second reader's, "" if there is none."""

    triple: Triple
    decided: str
    reason: str
    label: str
    second: str = ""

    @property
    def groups(self) -> Sequence[str]:
        one = self.triple
        hard = [] if one.after is None else ["hard", f"hard: {one.hard}"] if one.hard else ["the rest"]
        return ["overall", one.instruction.scope, one.instruction.change, *hard]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--second", type=Path)
    parser.add_argument("--instructions", type=Path, default=EMBEDDED, help="a pool of one's own")
    args = parser.parse_args()
    triples = list(read_triples(args.labels, {one.id: one for one in read_pool(args.instructions, {}).instructions}))
    decisions = decide(triples, {})
    print_shares(f"the rules on {len(triples)} labelled triples", decisions, "decided", "label")
    wrong = [one for each in decisions.values() for one in each if one.label and one.decided not in ("", one.label)]
    for one in wrong:
        print(f"{one.triple.place}: {one.triple.instruction.text}")
        print(f"    labelled {one.label}, the rule says {one.decided}: {one.reason}")
    if args.second:
        with args.second.open(encoding="utf-8", newline="") as file:
            rows = {row["triple"]: row for row in csv.DictReader(file)}
        if unknown := sorted(rows.keys() - {one.digest for one in triples}):
            raise SystemExit(f"{args.second}: no triple is named {', '.join(unknown)}")
        read = decide([one for one in {each.digest: each for each in triples}.values() if one.digest in rows], rows)
        for who, side in (("the rules", "decided"), ("the labels", "label")):
            print_shares(f"{who} beside the second reader of {len(rows)}", read, side, "second")


def read_triples(path: Path, pool: dict[str, Instruction]) -> Iterator[Triple]:
    """The triples of a file, or of a folder's files, in the formats of docs/audit.md."""
    files = [path] if path.is_file() else sorted(each for each in path.glob("*") if each.suffix in (".yaml", ".jsonl"))
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".yaml":
            yield from _of_yaml(file, from_yaml(text), pool)
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                row, place = json.loads(line), f"{file}:{number}"
                named = row["instruction"]
                one = pool[named] if isinstance(named, str) else Instruction(place, **named)
                labels = (row.get(name) for name in ("after", "applicable", "adherence", "hard"))
                yield Triple(place, one, row["before"], *labels)


def _of_yaml(file: Path, content: dict[str, Any], pool: dict[str, Instruction]) -> Iterator[Triple]:
    programs = content["programs"]
    for case in content["cases"]:
        instruction, place = pool[case["instruction"]], f"{file}: {case['instruction']}"
        fits = dict.fromkeys(case.get("fits", []), True) | dict.fromkeys(case.get("unfit", []), False)
        for name, label in fits.items():
            yield Triple(f"{place}: {name}", instruction, programs[name], None, label, None, None)
        for verdict in ("adhered", "violated"):
            for one in case.get(verdict, []):
                (name, *steps), hard = (one["revision"], one["hard"]) if isinstance(one, dict) else (one, None)
                after = programs[name]
                for old, new in zip(steps[::2], steps[1::2], strict=True):
                    after = new if old == "*" else after.replace(old, new)
                yield Triple(f"{place}: {name}", instruction, programs[name], after, fits.get(name), verdict, hard)


def decide(triples: Iterable[Triple], second: dict[str, dict[str, str]]) -> dict[str, list[Decision]]:
    """The rules' decisions by question; a program's applicability counts once, however many changes of it there are."""
    found: dict[str, dict[Any, Decision]] = {name: {} for name in QUESTIONS}
    for one in triples:
        row = second.get(one.digest, {})
        if one.applicable is not None or row.get("applicable"):
            fits = applicable(one.before, one.instruction)
            labels = (FITS[one.applicable], row.get("applicable", ""))
            key = (one.instruction.id, one.before, *labels, one.digest if row else "")
            place = one._replace(after=None)
            found["applicability"].setdefault(key, Decision(place, FITS[fits.applicable], fits.reason, *labels))
        if one.after is not None and (one.adherence or row.get("adherence")):
            done = adherence(one.before, one.after, one.instruction)
            verdict = "" if done.verdict == "undecided" else done.verdict
            change = (one.instruction.id, one.before, one.after, one.adherence)
            labels = (one.adherence or "", row.get("adherence", ""))
            found["adherence"].setdefault(change, Decision(one, verdict, done.reason, *labels))
    return {name: list(decisions.values()) for name, decisions in found.items()}


def print_shares(title: str, decisions: dict[str, list[Decision]], side: str, beside: str) -> None:
    """Print how often two sides of the decisions say the same, where both say anything."""
    print(f"\n{title}")
    hard = {one.triple.hard for one in decisions["adherence"] if one.triple.hard and beside == "label"}
    kinds = ("the rest", "hard", *(f"hard: {word}" for word in sorted(hard))) if hard else ()
    for group in ("overall", *SCOPES, *CHANGES, *kinds):
        cells = []
        for some in decisions.values():
            pairs = [(getattr(one, side), getattr(one, beside)) for one in some if group in one.groups]
            pairs = [pair for pair in pairs if all(pair)]
            same, agreed = show(share(sum(one == other for one, other in pairs), len(pairs))), kappa(pairs)
            cells.append(f"{same:40} kappa {agreed.value:.3f}" if agreed and beside == "second" else same)
        print(f"  {group:20} {cells[0]:54} {cells[1]}".rstrip())
    if side == "decided":
        undecided = (sum(not one.decided for one in some) for some in decisions.values())
        print("  {:20} {:<54} {}".format("undecided", *undecided))


if __name__ == "__main__":
    main()
