"""`codechat construct` by a recipe of another package, found by its entry point: people, refusals, labels."""

import csv
import json
from pathlib import Path

import pytest

from codechat.testing import Call, OpenAIServer
from support.plugins import codechat, install, several

pytestmark = pytest.mark.long


def answer(call: Call) -> str:
    text = call.messages[-1]["content"]
    if not text.startswith("Write one"):
        return "3" if text.startswith("How many") else "still none"
    number = int(text.split("thing ")[1].split(",")[0])
    line = {1: "no json", 2: "a doubtful line", 3: "short"}.get(number, f"all about {number}")
    return line if number == 1 else json.dumps({"line": line, "about": f"thing {number}"})


def words_of(server: OpenAIServer | None, *more: str) -> list[str]:
    url = server.base_url if server else "http://127.0.0.1:9/v1"
    poet = "construct.roles.poet"
    words = ["construct", "recipe=couplets", "out=o", "seeds=seeds.jsonl", "tracking=none", f"{poet}.cache=false"]
    return [*words, f"{poet}.base_url={url}", f"{poet}.name=x", f"{poet}.api_key_env=null", *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    install(tmp_path, "couplets", ("construct",))
    lines = (json.dumps({"id": f"s{number}", "subject": f"thing {number}"}) for number in range(6))
    (tmp_path / "seeds.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_from_seeds_to_labels(folder: Path) -> None:
    with OpenAIServer(answer) as server:
        status, text = codechat(folder, *words_of(server, "dry_run=true"))
        assert status == 0 and "6 items of 6 seeds" in text and not server.calls
        assert "judges" not in text and "session" not in text, "what a cell has, and a construction has not"
        status, text = codechat(folder, *words_of(server))
        assert status == 0, text
        assert "3 tasks kept of 6 seeds" in text and "answers=FILE" in text
        (question,) = [json.loads(line) for line in (folder / "o" / "questions.jsonl").read_text().splitlines()]
        assert question["item"] == "s2" and question["suggestion"] == "a certain line"
        (folder / "answers").write_text(json.dumps({"question": question["id"], "answer": "a very sure line"}) + "\n")
        asked = len(server.calls)
        status, text = codechat(folder, *words_of(server, "answers=answers"))
        assert status == 0 and "4 tasks kept of 6 seeds" in text
        assert len(server.calls) == asked + 1, "only what came after the question"
        status, text = codechat(folder, *words_of(server))
        assert status == 0 and "4 tasks kept" in text and len(server.calls) == asked + 1, "the answer stays"
    items = [json.loads(line) for line in (folder / "o" / "items.jsonl").read_text().splitlines()]
    assert [item["line"] for item in items] == ["all about 0", "a very sure line", "all about 4", "all about 5"]
    assert items[1]["provenance"]["people"] == [{"question": question["id"], "stage": "review", "by": "people"}]
    assert "| 3 | 3 |" in (folder / "o" / "card.md").read_text(), "the distribution of words"

    status, text = codechat(folder, "audit", "export", "items=6", "runs=o", "out=audit")
    assert status == 0, text
    rows = list(csv.DictReader((folder / "audit" / "sample.csv").read_text().splitlines()))
    assert {row["task_id"]: row["judge_sound"] for row in rows} == {
        "s0": "yes", "s1": "no", "s2": "yes", "s3": "no", "s4": "yes", "s5": "yes"
    }  # fmt: skip
    assert "all about 4" in (folder / "audit" / "label.html").read_text()
    for name, wrong in (("one", "s1"), ("two", "s3")):
        labelled = [{**row, "sound": "yes" if row["task_id"] == wrong else row["judge_sound"]} for row in rows]
        with (folder / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(labelled)
    status, text = codechat(folder, "audit", "score", "labels=one,two", "out=scored")
    assert status == 0, text
    assert "kappa" in text.lower()


def test_what_cannot_be_is_told_before_any_call(folder: Path) -> None:
    (folder / "other.jsonl").write_text('{"id": "t", "subject": "thing 9"}\n')
    (folder / "torn.jsonl").write_text('{"id": "t", "subject": "thing 9"}\n{"id": "u", "subj')
    (folder / "strange").mkdir()
    (folder / "strange" / "letter.txt").write_text("mine")
    status, text = codechat(folder, *words_of(None, "seeds=other.jsonl"))
    assert status == 2 and "nothing answers" in text
    with OpenAIServer(answer) as server:
        assert codechat(folder, *words_of(server))[0] == 0, "what never began keeps no folder"
        asked = len(server.calls)
        mistakes = [
            (words_of(server, "seeds=other.jsonl"), "other seeds"),
            (words_of(server, "seed=1"), "seed"),
            (words_of(server, "out=p", "until=weigh"), "measure"),
            (words_of(server, "out=p", "skip=[weigh]"), "skip"),
            (words_of(server, "out=strange"), "something else"),
            (words_of(server, "out=p", "seeds=torn.jsonl"), "torn.jsonl:2"),
            (words_of(server, "out=p", "answers=seeds.jsonl"), "seeds.jsonl:1"),
            (words_of(server, "out=p", "construct.roles.poet.api_key_env=NO_SUCH_KEY"), "NO_SUCH_KEY"),
            (words_of(server, "out=p", "model@construct.roles.critic=gpt5"), "construct.roles.poet"),
            (words_of(server, "recipe=couplet", "out=p"), "couplets"),
            (words_of(server, "recipe=[couplets]", "out=p"), "couplets"),
            (words_of(server, "out=p", "construct"), "key=value"),
            (words_of(server, "out=p", "roles=3"), "construct.roles"),
            (words_of(server, "out=p", "onquestion=drop"), "on_question"),
            (["construct", "recipe=couplets"], "out="),
            (["construct", "out=p"], "couplets"),
        ]
        ends = several(folder, *(words for words, _ in mistakes))
        for (words, said), (status, text) in zip(mistakes, ends, strict=True):
            assert status == 2, (words, text)
            assert said in text and "Traceback" not in text, (words, text)
        assert not (folder / "p" / "items.jsonl").exists()
        assert len(server.calls) == asked
