"""The labelling page: one HTML file that loads nothing and runs only its own script."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from codechat.base.files import content_hash
from codechat.report.audit.judged import kinds
from codechat.report.audit.labels import Decision, LabelRow, label_columns, row_of
from codechat.report.audit.sampling import AuditDecision

_FOLDER = Path(__file__).parent
_READ = {
    "prompt": "The task",
    "question": "The issue",
    "thread": "The thread that followed it",
    "conditions": "What satisfies the user, by the data",
}
"""The titles of the texts that a decision rests on, other than the judged one, by column."""


def labelling_page(decisions: Sequence[Decision]) -> str:
    """The labelling page for a sample. The browser stores the labels under the sample's own name."""
    columns = list(row_of(decisions[0]).model_dump() if decisions else LabelRow.model_fields)
    kind = next((each for each in kinds().values() if each.row.label in columns), None)
    script, style = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("label.js", "label.css"))
    data = {
        "sample": content_hash([one.key for one in decisions])[:16],
        "columns": columns,
        "labels": [name for name in label_columns() if name in columns],
        "first": kind.row.label if kind else "applicable",
        "question": kind.ask if kind else "1. Does the instruction apply to this code?",
        "heading": kind.heading if kind else "Code",
        "items": [_item(one) for one in decisions],
    }
    parts = {
        "policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src '{_digest(script)}'; style-src '{_digest(style)}'",
        "count": str(len(decisions)),
        "style": style,
        # in ASCII, so that no text can end the script element or open a comment, and UTF-8 can hold any
        "data": json.dumps(data).replace("<", "\\u003c"),
        "script": script,
    }
    skeleton = (_FOLDER / "label.html").read_text(encoding="utf-8")
    return re.sub("@@([a-z]+)@@", lambda match: parts[match.group(1)], skeleton)


def _item(one: Decision) -> dict[str, Any]:
    row = row_of(one)
    named = {"row": list(row.model_dump().values()), "kind": " / ".join(row.groups.values())}
    named["instruction"] = row.instruction
    if not isinstance(one, AuditDecision):
        *read, (_, judged) = one.texts.items()
        return {**named, "read": [(_READ[column], text) for column, text in read], "before": judged}
    after, diff = one.after or "", []
    if one.after is not None:  # lines that occur often hold nothing together (autojunk), so that no text takes long
        diff = SequenceMatcher(None, one.before.split("\n"), after.split("\n")).get_opcodes()
    return {**named, "read": [], "before": one.before, "after": after, "diff": diff}


def _digest(source: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
