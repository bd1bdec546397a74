"""What every language must do, whether it is registered or only a tag."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.domain import Target
from codechat.sandbox.languages import Plain, extract, fence, language_of, languages, register, without_thinking

TAGS = [*(language.names[0] for language in languages()), "c++", "Objective-C"]
CODES = {
    "python": "def solve(x):\n    '''```\n    <think> is a word, and so is ````.'''\n    return x",
    "c++": "  // ```\nint solve(int x) {\n\treturn x; // <think>\n}\n#define A ````",
    "java": "// ``` and <think>\nclass solve {\n\tint f(int x) {\n\t\treturn x; // ````\n\t}\n}",
}
OTHER = "solve <- function(x) x # ``` and <think>"
PIECES = st.sampled_from(
    [
        *(
            "```",
            "````\n",
            "~~~",
            "\n```\n",
            "```python\n",
            "```c++\n",
            "- ```OBJECTIVE-C x=1\n",
            "```diff\n",
            "```md\n",
        ),
        *("<think>", "</think>\n", "`<think>`", "def solve(x): return x\n", "solve", "'''", "    ", "\t", "\r", "\0"),
        *("\ud800", "\u2028", "\ufeff", "(" * 300, "import a\n", ">>> solve(1)\n", "if x:\n"),
    ]
)
REPLIES = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=20).map("".join))
NAMES = st.one_of(st.sampled_from(["", "solve", "x"]), st.text(max_size=4))


def code_of(tag: str) -> str:
    return CODES.get(tag.lower(), OTHER)


@pytest.mark.parametrize("entry_point", ["", "solve"])
@pytest.mark.parametrize("tag", TAGS)
def test_fenced_code_comes_back(tag: str, entry_point: str) -> None:
    code, target = code_of(tag), Target(tag, entry_point)
    for reply in (fence(code, tag), f"So:\n{fence(code, tag)}That is all."):
        found = extract(reply, target)
        assert (found.code, found.problem) == (code, None), found
        assert found.program is not None
        assert found.program.rstrip("\n") == code


@pytest.mark.parametrize("tag", TAGS)
def test_every_name_is_a_tag_of_its_fences(tag: str) -> None:
    language = language_of(tag)
    for name in language.names:
        assert language_of(name.upper()) == language
        decoy = fence(f"{code_of(tag)}\n", "text").replace("solve", "other")
        assert extract(decoy + fence(code_of(tag), name.upper()), Target(tag, "solve")).code == code_of(tag)


@pytest.mark.parametrize("tag", TAGS)
def test_thoughts_are_no_code(tag: str) -> None:
    code, draft = code_of(tag), fence(code_of(tag).replace("x", "y"), tag)
    assert extract(f"<think>\n{draft}\n</think>\n{fence(code, tag)}", Target(tag, "solve")).code == code
    assert extract(f"{draft}\n</think>\n{fence(code, tag)}", Target(tag, "solve")).code == code
    for reply in (f"<think>\n{draft}", "", " \n"):
        found = extract(reply, Target(tag, "solve"))
        assert (found.code, found.program, found.problem) == (None, None, "no_code")


@pytest.mark.parametrize("tag", TAGS)
def test_a_missing_entry_point_is_named(tag: str) -> None:
    found = extract(fence(code_of(tag), tag), Target(tag, "absent"))
    assert found.problem == "no_code"
    assert "does not define" in found.reason
    assert "absent" in found.reason


@pytest.mark.parametrize("tag", TAGS)
def test_what_code_defines_is_said_or_unknown(tag: str) -> None:
    names = language_of(tag).defines(code_of(tag))
    assert names is None or "solve" in names


def test_what_python_defines() -> None:
    python = language_of("py")
    code = "import os.path as p\nfrom a import b\nx, (y, *z) = 1\nif x:\n    def f(): local = 1\nclass C:\n    def m(self): 0\n"
    assert python.defines(code) == {"p", "b", "x", "y", "z", "f", "C"}
    assert python.defines("def f(:") is None
    assert python.defines("") == frozenset()


@settings(max_examples=150)
@given(REPLIES, NAMES, st.sampled_from(TAGS))
def test_nothing_is_raised_for_any_text(reply: str, entry_point: str, tag: str) -> None:
    found = extract(reply, Target(tag, entry_point))
    assert found.reason
    assert len(found.reason.splitlines()) == 1
    assert (found.program is None) == (found.problem is not None)
    assert (found.code is None) == (found.problem == "no_code")
    language_of(tag).defines(reply)


@settings(max_examples=150)
@given(st.one_of(st.text(alphabet="`~\nab cé"), st.lists(PIECES, max_size=6).map("".join)))
def test_no_backticks_in_the_code_close_its_fence(text: str) -> None:
    code = text.rstrip()
    if code and "think" not in code and "\r" not in code:
        assert extract(fence(text, "c++"), Target("c++")).code == code


LONG = 200_000  # characters: what grows with their square takes minutes
HOSTILE: dict[str, Callable[[str], str]] = {
    "backticks alone": lambda tag: "`" * LONG,
    "lines of backticks": lambda tag: "```\n" * (LONG // 4),
    "fences alone": lambda tag: f"```{tag}\nx\n" * (LONG // (len(tag) + 6)),
    "spaces alone": lambda tag: f"```{tag}\n{' ' * LONG}x\n```",
    "closing tags alone": lambda tag: "</think>" * (LONG // 8),
    "a long dotted import": lambda tag: fence("import " + "a." * (LONG // 2) + "a", tag),
    "a dotted import on many lines": lambda tag: fence("import " + "a\u0301 . \\\n" * (LONG // 6) + "a", tag),
    "many dotted imports": lambda tag: fence(f"import {'a.' * 998}a\n" * 500, tag),
    "sentences alone": lambda tag: "This is a sentence. " * (LONG // 20),
    "a long chain of attributes": lambda tag: fence("x = " + "a." * 50_000 + "a", tag),
    "opened brackets": lambda tag: fence("x = " + "(" * 100_000, tag),
    "closed brackets": lambda tag: fence("x = " + "[" * 50_000 + "]" * 50_000, tag),
    "one long line": lambda tag: fence("x = 1; " * 15_000, tag),
    "a long tag": lambda tag: f"```{'a' * LONG}\nsolve\n```",
}


OTHER_TAGS = [pytest.param(tag, marks=pytest.mark.long) for tag in TAGS if tag not in ("python", "java")]


@pytest.mark.parametrize("entry_point", ["", "solve"])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("tag", ["python", "java", *OTHER_TAGS])
def test_a_hostile_reply_takes_a_bounded_time(tag: str, name: str, entry_point: str) -> None:
    reply = HOSTILE[name](tag)
    gc.freeze()  # the collector's walks over all that the test run holds are none of its time
    try:
        start = time.process_time()
        found = extract(reply, Target(tag, entry_point))
        language_of(tag).defines(found.code or reply)
        without_thinking(reply)
        assert time.process_time() - start < 2
    finally:
        gc.unfreeze()
    assert found.reason


def test_a_name_belongs_to_one_language() -> None:
    with pytest.raises(ValueError, match="'py' is registered twice"):
        register(Plain(("py",)))
    with pytest.raises(ValueError, match="'Nim'"):
        register(Plain(("Nim",)))
    assert language_of("nim").names == ("nim",)


PLUGIN = '''
from codechat.base.domain import Extraction
from codechat.sandbox.languages import Plain, register

class Shout:
    """Code is what is shouted."""
    names = ("shout", "yell")
    def extract(self, reply, target):
        code = "".join(character for character in reply if character.isupper())
        return Extraction(code, code, None, "shouted")
    def defines(self, code):
        return frozenset(code)

register(Shout())
register(Plain(("nim", "nimrod")))
'''
USE = """
from codechat.base.domain import Target
from codechat.sandbox.languages import extract, fence, language_of, languages
assert extract("say HELLO", Target("yell")).code == "HELLO"
assert language_of("Shout").defines("HI") == {"H", "I"}
assert extract(fence("no", "java") + fence("proc f() = 1", "nimrod"), Target("nim")).code == "proc f() = 1"
print(*(language.names[0] for language in languages()))
"""


def use(folder: Path, plugin: str) -> subprocess.CompletedProcess[str]:
    """Run `USE` in a process of its own, with a package that names the plugin as its entry point."""
    (folder / "toy_language.py").write_text(plugin)
    info = folder / "toy_language-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-language\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[codechat.language]\nshout = toy_language\n")
    path = os.pathsep.join((str(folder), str(Path(__file__).parents[2])))
    return subprocess.run(
        [sys.executable, "-c", USE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_language_is_one_file_of_another_package(tmp_path: Path) -> None:
    done = use(tmp_path, PLUGIN)
    assert done.returncode == 0, done.stderr
    assert {"kotlin", "nim", "python", "shout"} <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("plugin", "cause"),
    [
        ("raise ImportError('no voice')", "no voice"),
        ("from codechat.sandbox.languages import Plain, register\nregister(Plain(('py',)))", "registered twice"),
    ],
)
def test_a_broken_package_is_named(tmp_path: Path, plugin: str, cause: str) -> None:
    done = use(tmp_path, plugin)
    assert done.returncode == 1
    assert all(named in done.stderr for named in ("UserError", "'shout'", "toy-language", cause))
