"""The labelling page: one HTML file that loads nothing and runs only its own script."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codechat.audit.conditions import ConditionDecision
from codechat.audit.constraints import ConstraintDecision
from codechat.audit.diff import changes
from codechat.audit.labels import LABELS, Decision, LabelRow, row_of
from codechat.files import content_hash

_FOLDER = Path(__file__).parent
# The column of the first answer, and its question.
_APPLICABLE = ("applicable", "1. Does the instruction apply to this code?")
_MET = ("met", "Does this code keep the constraint? (Whether the code works does not matter.)")
_SATISFIED = ("satisfied", "Does the maintainer's answer meet this condition? (What the user said does not matter.)")


def labelling_page(decisions: Sequence[Decision]) -> str:
    """The page for a sample. Labels are kept by the browser under the sample's own name."""
    columns = list(type(row_of(decisions[0])).model_fields if decisions else LabelRow.model_fields)
    first, question = next(each for each in (_MET, _SATISFIED, _APPLICABLE) if each[0] in columns)
    script, style = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("label.js", "label.css"))
    data = {
        "sample": content_hash([one.key for one in decisions])[:16],
        "columns": columns,
        "labels": [name for name in LABELS if name in columns],
        "first": first,
        "question": question,
        "heading": "Answer" if first == _SATISFIED[0] else "Code",
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
    if isinstance(one, ConstraintDecision):
        return {**named, "prompt": one.prompt, "before": one.code}
    if isinstance(one, ConditionDecision):
        return {**named, "prompt": f"{one.question}\n\nThe real thread:\n\n{one.thread}", "before": one.answer}
    after = one.after or ""
    return {
        **named,
        "before": one.before,
        "after": after,
        "diff": changes(one.before.split("\n"), after.split("\n")) if one.after is not None else [],
    }


def _digest(source: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
