"""`codechat list constraints`: the form of an answer, examples, and what decides a type in which languages."""

from collections.abc import Mapping
from typing import Any

from codechat.run.extensions import Listing, Section, add_topic
from codechat.sandbox.languages import languages
from codechat.studies.multicodeif.constraints import constraint_types


def list_constraints(values: Mapping[str, Any] | None) -> Listing:
    """The types of constraints."""
    sections = []
    for kind in constraint_types():
        read = [language.names[0] for language in languages() if kind.reads(language.names[0])]
        decider = "judge=llm, in any language" if kind.by == "judge" else f"a {kind.by}, for {', '.join(read)}"
        rows = (("answer", kind.form), ("example", " or ".join(kind.examples)), ("decided by", decider))
        sections.append(Section(kind.name, f"({kind.category})", rows=[row for row in rows if row[1]]))
    return Listing(sections)


add_topic("constraints", list_constraints)
