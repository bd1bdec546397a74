"""An item of a construction as people read it."""

from codechat.report.audit.made import _text


def test_programs_inside_of_turns_are_shown_line_by_line() -> None:
    turns = [{"instruction": "Add.", "suite": {"tests": ["a = 1\nb = 2"], "one_file": True}}]
    assert _text({"id": "x", "turns": turns, "tags": ["a"]}) == (
        "## id\nx\n\n## turns 1 instruction\nAdd.\n\n## turns 1 suite tests 1\na = 1\nb = 2\n\n"
        '## turns 1 suite one_file\ntrue\n\n## tags\n[\n "a"\n]'
    )
