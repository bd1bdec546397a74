"""Replies of maintainer, user and judge as they are read: what counts, and what never does."""

import pytest

from codechat.studies.cab.judging import Parts, implied, passable, read_judge, read_user
from codechat.studies.cab.maintainer import Changes, read_changes, read_reply
from codechat.studies.cab.tasks import thread_turns
from support.cab import CONDITIONS, FORM, ISSUE, judges, says

# -- the maintainer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("EXPLORE: ls -la", "ls -la"),
        ("\t   EXPLORE:   ls", "ls"),
        ("> EXPLORE: ls", "ls"),
        ("- EXPLORE: ls", "ls"),
        ("3. **EXPLORE:** ls", "ls"),
        ("**EXPLORE**: ls", "ls"),
        ("### EXPLORE: ls", "ls"),
        ("`EXPLORE: ls | wc`", "ls | wc"),
        ("**EXPLORE: ls -la**", "ls -la"),
        ("- *EXPLORE: ls a_b*", "ls a_b"),
        ("**EXPLORE: ls *.py**", "ls *.py"),
        ("**EXPLORE:** ls **", "ls **"),
        ("EXPLORE: ls **", "ls **"),
        ("`EXPLORE:` ls | wc", "ls | wc"),
        ("`EXPLORE`: `ls`", "ls"),
        ("EXPLORE: `git log`", "git log"),
        ("EXPLORE: echo `date` `id`", "echo `date` `id`"),
        ("EXPLORE: a\x00b", "a\x00b"),
        ("EXPLORE: grep -rn 'ANSWER: x' .", "grep -rn 'ANSWER: x' ."),
    ],
)
def test_a_command_is_the_rest_of_its_line(line: str, command: str) -> None:
    for reply in (line, f"I look.\n```bash\n{line}\n```\nThen I see.", f"{line}\r\n"):
        said = read_reply(reply)
        assert (said.commands, said.answer) == ((command,), None)


@pytest.mark.parametrize(
    "line", ["explore: ls", "Explore: ls", "EXPLORE ls", "EXPLORE:", "EXPLORE:  ", "I EXPLORE: ls", ""]
)
def test_anything_else_is_no_command(line: str) -> None:
    assert read_reply(line).commands == ()


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("ANSWER: yes", "yes"),
        ("**ANSWER:**\n\nyes\n", "yes"),
        ("## ANSWER: a\nb", "a\nb"),
        ("**ANSWER: a**\nb", "a\nb"),
        ("`ANSWER:` `a` and `b`", "`a` and `b`"),
        ("Thoughts\nANSWER: a\nANSWER: b", "a\nANSWER: b"),
        ("ANSWER:", None),
        ("ANSWER: \n \n", None),
        ("The ANSWER: is b", None),
        ("answer: b", None),
    ],
)
def test_the_answer_is_all_behind_its_mark(reply: str, answer: str | None) -> None:
    assert read_reply(reply).answer == answer


def test_lines_behind_the_answer_are_no_commands() -> None:
    said = read_reply("EXPLORE: a\nANSWER: Run\nEXPLORE: b")
    assert (said.commands, said.answer) == (("a",), "Run\nEXPLORE: b")


def test_changes_of_an_answer() -> None:
    answer = (
        "Do this.\nCREATE_FILE[src/a b.py]:\nx = 1\n\nEND_FILE\n**CREATE_FILE[./c.txt]:**\n```text\n```inner\nEND\n```\n"
        "END_FILE\nMODIFY_DOCKERFILE:\nFROM debian\nRUN true\nEND_DOCKERFILE"
    )
    found = read_changes(answer)
    assert found.files == {"src/a b.py": "x = 1\n\n", "c.txt": "```inner\nEND\n"}
    assert (found.dockerfile, found.refused) == ("FROM debian\nRUN true\n", ())
    assert found.names == ["c.txt", "src/a b.py", "Dockerfile"]
    later = found.then(read_changes("CREATE_FILE[c.txt]:\nnew\nEND_FILE"))
    assert (later.files["c.txt"], later.dockerfile) == ("new\n", "FROM debian\nRUN true\n")
    assert read_changes("Nothing to change: CREATE_FILE[x]: in words.") == Changes()


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "~/.ssh/id", "", " ", ".", "a\\b", "a\x00b", "a\tb", ".git/hooks/pre-commit",
     "sub/.GIT/config", "x" * 1_001],
)  # fmt: skip
def test_a_path_out_of_the_build_context_is_refused(path: str) -> None:
    found = read_changes(f"CREATE_FILE[{path}]:\nx\nEND_FILE\nCREATE_FILE[fine]:\ny\nEND_FILE")
    assert found.files == {"fine": "y\n"} and len(found.refused) == 1 and len(found.refused[0]) < 300


def test_a_block_without_its_end_is_refused() -> None:
    for text in ("CREATE_FILE[a]:\nx", "CREATE_FILE[a]:\nx\nEND_DOCKERFILE", "MODIFY_DOCKERFILE:\nFROM x\nEND_FILE"):
        found = read_changes(text)
        assert not found.names and len(found.refused) == 1
    found = read_changes("CREATE_FILE[a]:\nx\nCREATE_FILE[b]:\ny\nEND_FILE")
    assert found.files == {"b": "y\n"} and found.refused == ("CREATE_FILE[a]: its end is missing",)


# -- the user ------------------------------------------------------------------------------------------------------


def test_a_reply_of_the_user_is_text_status_and_reason() -> None:
    found = read_user(
        "It runs.\n\n> but slowly\n\n**SATISFACTION_STATUS:** partially satisfied.\nREASON: speed\nis low", ()
    )
    assert found is not None
    assert (found.text, found.status, found.reason) == (
        "It runs.\n\n> but slowly",
        "PARTIALLY_SATISFIED",
        "speed is low",
    )
    assert read_user("SATISFACTION_STATUS: FULLY_SATISFIED\nREASON: all", ()) is not None, "no text is needed then"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Thanks!",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED",
        "Thanks!\nREASON: all\nSATISFACTION_STATUS: FULLY_SATISFIED",
        "Thanks!\nSATISFACTION_STATUS: not FULLY_SATISFIED\nREASON: all",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED or NOT_SATISFIED\nREASON: all",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED\nSATISFACTION_STATUS: NOT_SATISFIED\nREASON: all",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED\nREASON:",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED\nAll is told.\nREASON: all",
        "Thanks!\nSATISFACTION_STATUS: FULLY_SATISFIED\nREASON: a\nREASON: b",
        "Thanks!\nSATISFACTION_STATUS:\nFULLY_SATISFIED\nREASON: all",
        "Thanks!\nFULLY_SATISFIED\nREASON: all",
        "I am FULLY_SATISFIED.\nSATISFACTION_STATUS: FULLY_SATISFIED\nREASON: all",
        "REASON: none\nThanks!\nSATISFACTION_STATUS: FULLY_SATISFIED\nREASON: all",
        "SATISFACTION_STATUS: NOT_SATISFIED\nREASON: no text, and so nothing to pass on",
        f"I want this: {CONDITIONS[0]}\nSATISFACTION_STATUS: NOT_SATISFIED\nREASON: a condition in its own words",
        "the port of the\nproxy can be set by an OPTION\nSATISFACTION_STATUS: NOT_SATISFIED\nREASON: over two lines",
    ],
)
def test_any_other_reply_of_the_user_cannot_be_read(said: str) -> None:
    assert read_user(said, CONDITIONS) is None
    shown = passable(said, CONDITIONS)
    for hidden in ("SATISFIED", "STATUS", "REASON", "proxy can be set"):
        assert hidden.casefold() not in shown.casefold()


def test_the_reason_is_not_searched_for_a_status() -> None:
    found = read_user(says("Hm.", "NOT_SATISFIED", "not FULLY_SATISFIED"), CONDITIONS)
    assert found is not None and (found.status, found.reason) == ("NOT_SATISFIED", "not FULLY_SATISFIED")


# -- the judge -----------------------------------------------------------------------------------------------------


def test_every_part_of_a_judgement_is_read() -> None:
    said = (
        "```\nThe thread says --proxy-port.\n**Technical correctness: Partially correct**\nWHY 1: it names it\n"
        "CONDITION 1: true\nWHY 2: not told\n- CONDITION 2: FALSE\nVERBOSITY: Verbose.\nREASON: half of it\n"
        "VERDICT: partially-correct\n```\n"
    )
    assert read_judge(said, 2) == Parts(
        "PARTIALLY_CORRECT", (True, False), "VERBOSE", "PARTIALLY_CORRECT", ("it names it", "not told"), "half of it"
    )


GOOD = judges(True, False, verdict="INCORRECT")
MALFORMED = [
    "",
    "CORRECT",
    "VERDICT: CORRECT",
    FORM,
    GOOD.replace("VERDICT: INCORRECT", ""),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT:"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: CORRECT or INCORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: CORRECT / PARTIALLY CORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: mostly CORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: not CORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: PARTIAL"),
    GOOD.replace("VERDICT: INCORRECT", "The verdict is: INCORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT INCORRECT"),
    GOOD.replace("VERDICT: INCORRECT", "VERDICT: INCORRECT" + " " * 200 + "!"),
    f"{GOOD}\nKEY ISSUES:\n- none",
    f"{GOOD}\nVERDICT: CORRECT",
    f"VERDICT: CORRECT\n{GOOD}",
    f"VERDICT: I will tell in the end.\n{GOOD}",
    f"{GOOD}\n{GOOD}",
    GOOD.replace("CONDITION 2: FALSE", ""),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 2: PARTIALLY"),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 2: FALSE (it does not say why)"),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 2: [FALSE]"),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 2: FALSE\nCONDITION 2: TRUE"),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 2: FALSE\nCONDITION 3: TRUE"),
    GOOD.replace("CONDITION 2: FALSE", "CONDITION 02: FALSE"),
    GOOD.replace("CONDITION 1: TRUE\nCONDITION 2: FALSE", "ALIGNMENT SCORE: 1/2 CONDITIONS MET (50%)"),
    GOOD.replace("CONDITION 1: TRUE\nCONDITION 2: FALSE", "CONDITIONS 1, 2: TRUE, FALSE"),
    GOOD.replace("TECHNICAL CORRECTNESS: CORRECT", "TECHNICAL CORRECTNESS: YES"),
    GOOD.replace("TECHNICAL CORRECTNESS: CORRECT", "CORRECTNESS: CORRECT"),
    GOOD.replace("VERBOSITY: APPROPRIATE", "VERBOSITY: TERSE"),
    GOOD.replace("VERBOSITY: APPROPRIATE", "VERBOSITY ASSESSMENT: APPROPRIATE"),
    GOOD.replace("VERBOSITY: APPROPRIATE", "VERBOSITY: APPROPRIATE\nVERBOSITY: hard to say"),
    '{"technical": "CORRECT", "conditions": [true, false], "verbosity": "APPROPRIATE", "verdict": "INCORRECT"}',
    GOOD.replace("\n", " "),
    f"The answer says:\n```\n{GOOD}\n```",
    GOOD.replace("CONDITION 1", "> CONDITION 1"),
    GOOD.replace("VERDICT", "`VERDICT"),
    GOOD.replace("TECHNICAL", "    TECHNICAL"),
]


def test_a_good_reply_is_read_and_no_malformed_one() -> None:
    assert read_judge(GOOD, 2) is not None
    assert len(MALFORMED) >= 30
    for said in MALFORMED:
        assert read_judge(said, 2) is None, said


@pytest.mark.parametrize(
    ("technical", "met", "failed", "verdict"),
    [
        ("CORRECT", (True, True), False, "CORRECT"),
        ("CORRECT", (True, False), False, "PARTIALLY_CORRECT"),
        ("PARTIALLY_CORRECT", (True, True), False, "PARTIALLY_CORRECT"),
        ("CORRECT", (False, False), False, "INCORRECT"),
        ("INCORRECT", (True, True), False, "INCORRECT"),
        ("CORRECT", (True, True), True, "INCORRECT"),
    ],
)
def test_the_verdict_that_the_parts_imply(technical: str, met: tuple[bool, ...], failed: bool, verdict: str) -> None:
    parts = Parts(technical, met, "APPROPRIATE", "CORRECT", (), "")  # type: ignore[arg-type]
    assert implied(parts, failed=failed) == verdict


def test_turns_of_a_thread_are_runs_of_others_comments() -> None:
    assert thread_turns(ISSUE) == 2, "max, ann, max and eva"
