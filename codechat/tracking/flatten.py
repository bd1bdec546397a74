"""A nested config as MLflow's params: flat, textual, short."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.files import content_hash
from codechat.tracking.address import without_password

# MLflow refuses more than 6,000 characters, older servers more than 500, and longer texts are not readable there.
LONGEST_VALUE = 250
LONGEST_KEY = 250
KEPT = 60
# Not allowed in a key: other characters, a dot at the start, and a slash that is not between two words.
REFUSED = re.compile(r"[^/\w.\- :]|^\.|(?<!\w)/|/(?!\w)")


def flat_params(config: Mapping[str, Any]) -> dict[str, str]:
    """Dotted keys and short texts.

    Values that are not text are written as JSON. A long one is cut and gets a hash that distinguishes it; the whole is
    in config.yaml. A password in a URI is blanked out. Characters that MLflow refuses in a key become underscores.
    """
    return {
        REFUSED.sub("_", key)[:LONGEST_KEY]: _short(value if isinstance(value, str) else json.dumps(value))
        for key, value in _leaves(config, "")
    }


def _leaves(config: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _short(text: str) -> str:
    text = without_password(text)
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:KEPT]}… [{len(text)} characters, sha256 {content_hash(text.encode('utf-8', 'replace'))[:12]}]"
