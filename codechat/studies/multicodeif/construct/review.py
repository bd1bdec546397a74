"""Stage review: what two people or more say of a task on the labels page (MultiCodeIF, section III-B, step 5)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from codechat.base.errors import UserError
from codechat.report.audit.kinds import Row, read_labels
from codechat.report.audit.made import MADE
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.construct.redundancy import Kept as Texts
from codechat.studies.multicodeif.construct.task import Made

PEOPLE = 2
"""So many must have labelled a task before it counts as reviewed."""
NEAREST = 3


class Reviews:
    """Labels by item. A label is on a text: if the task has changed since, it says nothing."""

    def __init__(self, files: Sequence[str]) -> None:
        """Raises `UserError` for a file that holds no labels of made tasks."""
        self._rows: Mapping[str, list[tuple[str, Row]]] = defaultdict(list)
        for path in files:
            for line, row in read_labels(Path(path).expanduser()).values():
                if row.kind is not MADE:
                    raise UserError(f"{path}:{line}: no label of a made task", "give what `audit export items=N` wrote")
                self._rows[row["task_id"]].append((row["annotator"].strip() or path, row))

    def edited(self, item: str, made: Made) -> Made:
        """The task with the prompt that people wrote for it; as it is if nobody did, or two differ."""
        seen = set[str]()
        while made.content not in seen:
            seen.add(made.content)
            edits = {row["edit"].strip() for _, row in self._on(item, made) if row["edit"].strip()}
            if len(edits) == 1:
                made = replace(made, prompt=edits.pop())
        return made

    def votes(self, item: str, made: Made) -> Mapping[str, tuple[bool, str]]:
        """By person, whether the task as it is now is sound, and a note. Who wrote its prompt finds it sound."""
        rows = self._rows.get(item, ())
        wrote = {who: (True, "") for who, row in rows if row["edit"].strip() == made.prompt}
        said = {who: (row["sound"] == "yes", row["note"]) for who, row in self._on(item, made) if row["sound"]}
        return {**wrote, **said}

    def _on(self, item: str, made: Made) -> Sequence[tuple[str, Row]]:
        return [(who, row) for who, row in self._rows.get(item, ()) if row["content"] == made.content]


class Review:
    """Marks what people accepted, and drops what they rejected; the nearest texts go along, for them to read."""

    def __init__(self, reviews: Reviews, published: Mapping[str, str]) -> None:
        self._reviews, self._published = reviews, published

    async def together(self, items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
        """The majority of at least two labels counts; without one a task stays unreviewed."""
        texts, prompts, chains = Texts(), dict(self._published), dict[str, set[str]]()
        for item in (*kit.kept, *items):
            made = Made.of(item)
            prompts[item.id] = made.prompt
            chains.setdefault(made.chain, set()).add(item.id)
        for name, prompt in prompts.items():
            texts.add(name, prompt)
        outcomes: list[Outcome] = []
        for item in items:
            made = Made.of(item)
            votes = self._reviews.votes(item.id, made)
            sound = sum(yes for yes, _ in votes.values())
            decided = len(votes) >= PEOPLE and 2 * sound != len(votes)
            if decided and 2 * sound < len(votes):
                notes = [f"{who}: {note or 'no reason given'}" for who, (yes, note) in sorted(votes.items()) if not yes]
                outcomes.append(Dropped("rejected by people", "; ".join(notes)))
                continue
            near = texts.neighbours(made.prompt, NEAREST, chains[made.chain])
            nearest = [{"id": each.id, "score": round(each.score, 3), "prompt": prompts[each.id]} for each in near]
            said = {who: yes for who, (yes, _) in sorted(votes.items())}
            reviewed = item.having(reviewed=decided, nearest=nearest).noting(content=made.content)
            outcomes.append(Kept(reviewed.noting(review=said) if said else reviewed))
        return outcomes
