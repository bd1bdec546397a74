"""Which decisions an audit draws, and with which code."""

from collections import Counter
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.report.audit.kinds import Row
from codechat.studies.refine.audit import draw_apart, draw_sample
from support.refine_cells import AUDIT_POOL, CODE, of, session, turn, write_audit_cell

COSMETIC, STRUCTURAL, SEMANTIC = of("cosmetic", "add"), of("structural", "add"), of("semantic", "remove")

FIRST_DRAWN = [
    ("c1", "t/7", "structural-use-list-comprehension"),
    ("c2", "t/0", "cosmetic-add-more-comments"),
    ("c1", "t/6", "cosmetic-add-more-comments"),
    ("c2", "t/7", "semantic-avoid-recursion"),
]


def cell(folder: Path, name: str = "c1", sessions: int = 12) -> Path:
    """Of 8 decisions a session, 5 are cosmetic/add, 2 structural/add and 1 semantic/remove."""
    turns = [
        turn(1, COSMETIC[0], COSMETIC[1:4]),
        turn(2, STRUCTURAL[0], STRUCTURAL[1:2]),
        turn(3, COSMETIC[5]),
        turn(4, SEMANTIC[0]),
    ]
    return write_audit_cell(folder / name, [session(name, f"t/{number}", turns) for number in range(sessions)])


def strata(decisions: tuple[Row, ...]) -> Counter[str]:
    return Counter(f"{one['scope']}/{one['change']}" for one in decisions)


def test_every_stratum_has_its_share(tmp_path: Path) -> None:
    sample = draw_sample([cell(tmp_path)], 48, 0)
    assert len(sample.population.decisions) == 96
    assert strata(sample.rows) == {"cosmetic/add": 30, "structural/add": 12, "semantic/remove": 6}
    assert len({one["sample"] for one in sample.rows}) == 48
    odd = draw_sample([tmp_path], 7, 0).rows
    assert strata(odd) == {"cosmetic/add": 4, "structural/add": 2, "semantic/remove": 1}


def test_the_judge_is_a_stratum_too(tmp_path: Path) -> None:
    by_llm = turn(1, COSMETIC[0], candidates=[{"id": COSMETIC[0].id, "applicable": True, "by": "llm"}])
    by_rules = turn(2, COSMETIC[1])
    write_audit_cell(tmp_path / "c", [session("c", f"t/{n}", [by_llm] + [by_rules] * 3) for n in range(10)])
    drawn = draw_sample([tmp_path], 20, 0).rows
    assert Counter(one["judge"] for one in drawn) == {"llm": 5, "rules": 15}


def test_the_draw_depends_on_the_seed_alone(tmp_path: Path) -> None:
    one, two = cell(tmp_path, "c1"), cell(tmp_path, "c2")
    first = [each["sample"] for each in draw_sample([one, two], 30, 5).rows]
    assert first == [each["sample"] for each in draw_sample([two, one], 30, 5).rows]
    assert first == [each["sample"] for each in draw_sample([tmp_path], 30, 5).rows]
    assert first != [each["sample"] for each in draw_sample([tmp_path], 30, 6).rows]


def test_more_than_there_are_is_all(tmp_path: Path) -> None:
    assert len(draw_sample([cell(tmp_path)], 1000, 0).rows) == 96


def test_the_code_is_what_the_judge_saw(tmp_path: Path) -> None:
    turns = [
        turn(1, COSMETIC[0], code="first\n"),
        turn(2, COSMETIC[1], code=None, outcome="no_code", passed=False, passed_base=False,
             adherence={"verdict": "violated", "by": "rules", "reason": "no code"}),
        turn(3, COSMETIC[2], [COSMETIC[3]], code="third\n"),
        turn(4, COSMETIC[4], skipped=True, instruction=None, adherence=None, response=None, code="third\n"),
        turn(5, COSMETIC[5], code="fifth\n"),
    ]  # fmt: skip
    write_audit_cell(tmp_path / "c", [session("c", "t/0", turns)])
    drawn = {one["instruction_id"]: one for one in draw_sample([tmp_path], 100, 0).rows}
    seen = {name: (one["turn"], *one.texts.values(), one["judge_adherence"]) for name, one in drawn.items()}
    assert seen == {
        COSMETIC[0].id: ("1", CODE, "first\n", "adhered"),
        COSMETIC[1].id: ("2", "first\n", "", ""),  # a reply without code was judged by nobody
        COSMETIC[3].id: ("3", "first\n", "", ""),  # tried in vain: nothing was changed
        COSMETIC[2].id: ("3", "first\n", "third\n", "adhered"),
        COSMETIC[4].id: ("4", "third\n", "", ""),
        COSMETIC[5].id: ("5", "third\n", "fifth\n", "adhered"),
    }
    assert drawn[COSMETIC[3].id]["judge_applicable"] == "no"
    assert drawn[COSMETIC[3].id]["instruction"] == COSMETIC[3].text


def test_errored_sessions_and_unknown_instructions_are_left_out(tmp_path: Path) -> None:
    strange = turn(1, COSMETIC[0], candidates=[{"id": "gone", "applicable": None, "by": "llm"},
                                               {"id": COSMETIC[0].id, "applicable": True, "by": "rules"}])  # fmt: skip
    done, broken = session("c", "t/0", [strange]), session("c", "t/1", [strange], status="errored", error="down")
    write_audit_cell(tmp_path / "c", [done, broken])
    sample = draw_sample([tmp_path], 100, 0)
    assert (len(sample.rows), sample.population.unknown) == (1, 1)


def test_candidates_come_from_the_cells_own_pool(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("id,text,scope\nmine-1,Add a joke.,cosmetic\nmine-2,Remove the joke.,semantic\n")
    candidates = [{"id": "mine-1", "applicable": None, "by": "llm"}, {"id": "mine-2", "applicable": True, "by": "llm"}]
    chosen = {"id": "mine-2", "text": "Remove the joke.", "scope": "semantic", "change": "remove"}
    turns = [turn(1, AUDIT_POOL[0], candidates=candidates, instruction=chosen)]
    write_audit_cell(tmp_path / "c", [session("c", "t/0", turns)], instructions={"kind": "default", "path": str(path)})
    texts = {one["instruction"]: one["judge_applicable"] for one in draw_sample([tmp_path / "c"], 9, 0).rows}
    assert texts == {"Add a joke.": "undecided", "Remove the joke.": "yes"}
    path.unlink()
    gone = draw_sample([tmp_path / "c"], 9, 0)
    assert [one["instruction"] for one in gone.rows] == ["Remove the joke."]
    assert gone.population.unknown == 1


def test_nothing_to_draw_is_told(tmp_path: Path) -> None:
    write_audit_cell(tmp_path / "c", [session("c", "t/0", [])])
    with pytest.raises(UserError, match="no decision"):
        draw_sample([tmp_path], 10, 0)
    with pytest.raises(UserError, match="no folder"):
        draw_sample([tmp_path / "nowhere"], 10, 0)


def test_a_draw_for_both_questions_stays_what_it_was(tmp_path: Path) -> None:
    """The first of n=30 seed=5, as they were drawn before questions could be drawn apart."""
    drawn = draw_sample([cell(tmp_path, "c1"), cell(tmp_path, "c2")], 30, 5).rows
    assert [(one["cell_id"], one["task_id"], one["instruction_id"]) for one in drawn[:4]] == FIRST_DRAWN
    assert {one["counts_for"] for one in drawn} == {"both"}


def test_each_question_has_its_own_draw(tmp_path: Path) -> None:
    """Of 96 decisions 48 were followed by a judged change: 24 cosmetic, 12 structural, 12 semantic ones."""
    sample = draw_apart([cell(tmp_path)], 32, 24, 0)
    assert (len(sample.population.decisions), len(sample.population.judged)) == (96, 48)
    fits = tuple(one for one in sample.rows if one["counts_for"] in ("both", "applicability"))
    followed = tuple(one for one in sample.rows if one["counts_for"] in ("both", "adherence"))
    assert strata(fits) == {"cosmetic/add": 20, "structural/add": 8, "semantic/remove": 4}
    assert strata(followed) == {"cosmetic/add": 12, "structural/add": 6, "semantic/remove": 6}
    assert all(one["judge_adherence"] and one.texts["code_after"] for one in followed)
    alone = [one for one in sample.rows if one["counts_for"] == "applicability"]
    assert all(
        not one["judge_adherence"] and not one.texts["code_after"] and not one["adherence_reason"] for one in alone
    )
    assert len({(one["task_id"], one["instruction_id"]) for one in sample.rows}) == len(sample.rows)
    assert len(fits) + len(followed) - len(sample.rows) == sum(one["counts_for"] == "both" for one in fits) > 0


def test_the_draw_of_one_question_does_not_depend_on_the_other(tmp_path: Path) -> None:
    cell(tmp_path)

    def keys(found: tuple[Row, ...], question: str) -> set[tuple[str, str]]:
        return {(one["task_id"], one["instruction_id"]) for one in found if one["counts_for"] in ("both", question)}

    both, fits, followed = (draw_apart([tmp_path], *sizes, 3).rows for sizes in ((20, 20), (20, 0), (0, 20)))
    assert keys(both, "applicability") == keys(fits, "applicability") and len(fits) == 20
    assert keys(both, "adherence") == keys(followed, "adherence") and len(followed) == 20
    assert keys(fits, "applicability") == keys(draw_sample([tmp_path], 20, 3).rows, "both")


def test_the_judge_of_adherence_is_a_stratum_of_its_draw(tmp_path: Path) -> None:
    by_llm = turn(1, COSMETIC[0], adherence={"verdict": "violated", "by": "llm", "reason": ""})
    by_rules = [turn(number, COSMETIC[1]) for number in (2, 3, 4)]
    write_audit_cell(tmp_path / "c", [session("c", f"t/{n}", [by_llm, *by_rules]) for n in range(10)])
    drawn = draw_apart([tmp_path], 0, 20, 0).rows
    assert Counter(one["adherence_judge"] for one in drawn) == {"llm": 5, "rules": 15}


def test_changes_that_nobody_judged_cannot_be_drawn(tmp_path: Path) -> None:
    silent = turn(1, COSMETIC[0], code=None, outcome="no_code", passed=False, passed_base=False)
    write_audit_cell(tmp_path / "c", [session("c", "t/0", [silent])])
    assert len(draw_apart([tmp_path], 5, 0, 0).rows) == 1
    with pytest.raises(UserError, match="no judgement of adherence"):
        draw_apart([tmp_path], 5, 5, 0)
