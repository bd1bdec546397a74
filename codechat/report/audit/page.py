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
from codechat.report.audit.kinds import Row

_READ = {
    "prompt": "The task",
    "question": "The issue",
    "thread": "The thread that followed it",
    "conditions": "What satisfies the user, by the data",
}
"""The titles of the texts to read before the judged text, by column."""


def labelling_page(rows: Sequence[Row]) -> str:
    """The labelling page for a sample. The browser stores the labels under the sample's name."""
    kind, names = rows[0].kind, ("label.js", "label.css", "label.html")
    script, style, skeleton = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)
    data = {
        "sample": content_hash([row["sample"] for row in rows])[:16],
        "columns": kind.columns,
        "labels": kind.labels,
        "first": kind.questions[0].label,
        "question": kind.ask,
        "heading": kind.heading,
        "items": [_item(row) for row in rows],
    }
    parts = {
        "policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src '{_digest(script)}'; style-src '{_digest(style)}'",
        "count": str(len(rows)),
        "style": style,
        # in ASCII, so that no text can end the script element or open a comment, and UTF-8 can hold any
        "data": json.dumps(data).replace("<", "\\u003c"),
        "script": script,
    }
    return re.sub("@@([a-z]+)@@", lambda match: parts[match.group(1)], skeleton)


def _item(row: Row) -> dict[str, Any]:
    named = {"row": list(row.columns.values()), "kind": " / ".join(row.groups.values())}
    named["instruction"] = row[row.kind.wording]
    if len(row.kind.questions) == 1:
        *read, (_, judged) = row.texts.items()
        return {**named, "read": [(_READ[column], text) for column, text in read], "before": judged}
    (before, after), diff = row.texts.values(), []
    if row[row.kind.questions[1].judged]:  # lines that occur often hold nothing together (autojunk): no text takes long
        diff = SequenceMatcher(None, before.split("\n"), after.split("\n")).get_opcodes()
    return {**named, "read": [], "before": before, "after": after, "diff": diff}


def _digest(source: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
