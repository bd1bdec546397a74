"""A reply is an attempt only if its code has the entry point's name; a stray closing fence hides no code."""

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract

NAMED = "def f(x):\n    return x"


def fenced(code: str, tag: str = "python") -> str:
    return f"```{tag}\n{code}\n```"


@pytest.mark.parametrize(
    "reply",
    [
        fenced("def f(x:\n    return x"), fenced("async def f(x:\n    return x"),
        fenced("class Solution:\n    def f(self, x:\n        return x"),
        fenced("f = lambda x: (x + 1"), fenced("f: Callable[[int], int] = lambda x: (x + 1"),
        fenced("g = f = lambda x: (x + 1"), "def f(x:\n    return x\n",
        "f = lambda x: (x\n", "f = lambda x: (x\n```", "Here it is:\n\ndef f(x:\n    return x\n\nThis works.", fenced("def f(x:\n    return x", "text"),
        fenced(">>> def f(x:\n...     return x"), fenced("def f(x):\n    print x"),
        "```python\ndef f(x):\n    return [x",
        fenced("def g(x):\n    return x") + "\n" + fenced("def f(x:\n    return x"),
        fenced("def f(x:\n    return x") + "\n" + fenced("print(f(3))"),
        "def f(x:\n    return x\n\n" + fenced("print(f(3))"),
        fenced('def g(x):\n    """Never closed\n    return x\n\ndef f(x):\n    """Doc."""\n    return g(x)'),
    ],
)  # fmt: skip
def test_broken_code_with_a_definition_of_the_name_is_an_attempt(reply: str) -> None:
    found = extract(reply, Target(entry_point="f"))
    assert (found.problem, found.program, found.lacks_name) == ("syntax_error", None, False), found.reason
    assert found.code is not None


@pytest.mark.parametrize(
    "code",
    [
        "def g(x):\n    return [x", "# def f(x): the function\ndef g(x:\n    return x",
        "def g(x: # then def f(x)\n    return x", "def g(x:\n    return x\nprint(f(3))",
        "def g(x:\n    return x\nf == 3", "def g(x:\n    f = 3\n    return f", "def f_helper(x:\n    return x",
        'def g(x:\n    """Like this:\n\n    def f(x):\n        return x\n    """\n    return x',
        "def g(x:\n    return h(\n        f=3,",
        "def g(x):\n    return f(x)", "print(f(3))", "class F:\n    pass",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["fence", "unclosed", "bare", "stray"])
def test_code_without_a_definition_of_the_name_is_none_parsed_or_not(code: str, form: str) -> None:
    reply = {"fence": fenced(code), "unclosed": f"```python\n{code}", "bare": code, "stray": f"{code}\n```"}[form]
    found = extract(reply, Target(entry_point="f"))
    assert (found.code, found.program, found.problem) == (None, None, "no_code"), found.reason
    assert found.lacks_name or not ("def " in code or "class " in code)


@pytest.mark.parametrize(
    "reply", ["", "I cannot do that.", "Use f(x).", fenced("", "python"), fenced("int f;", "java")]
)
def test_no_code_at_all_is_not_code_that_lacks_the_name(reply: str) -> None:
    found = extract(reply, Target(entry_point="f"))
    assert (found.problem, found.lacks_name) == ("no_code", False), found.reason


@pytest.mark.parametrize("tag", ["ruby", "javascript"])
def test_heads_of_other_languages_are_no_python(tag: str) -> None:
    code = {"ruby": "def f(x)\n  x\nend", "javascript": "class f {\n}"}[tag]
    assert extract(fenced(code, tag), Target(entry_point="f")).problem == "no_code"


AFTER = [
    "",
    "\nThis `f(x)` gives x = 3. Enjoy!",
    "\nUsage:\n```python\nprint(f(3))\n```",
    "\nIt prints:\n```\nDone.\n```",
]


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "```python", "   ```"])
@pytest.mark.parametrize("after", AFTER)
def test_a_stray_fence_behind_code_hides_nothing(fence: str, after: str) -> None:
    if fence in ("~~~", "````") and "```" in after:
        after = ""  # the first fence would hold the second
    code = "LIMIT = 7\n\ndef f(x):\n    return x % LIMIT"
    found = extract(f"{code}\n{fence}{after}", Target(entry_point="f"))
    assert found.problem is None and found.program is not None, found.reason
    assert "LIMIT = 7" in found.program
    if "```" not in after:
        assert found.code == code


def test_a_stray_fence_behind_prose_or_on_the_last_line() -> None:
    assert extract("f = lambda x: x\n```", Target(entry_point="f")).code == "f = lambda x: x"
    for reply in (f"Sure!\n\n{NAMED}\n\nThis returns x.\n```\n", f"{NAMED}```", f"{NAMED}```\nThat is all."):
        assert extract(reply, Target(entry_point="f")).code == NAMED


def test_a_stray_fence_behind_broken_code_leaves_the_code_alone() -> None:
    for reply in ('def f(x):\n    """Cut off\n    here\n```', "def f(x):\n    return (x\n~~~\nThe end."):
        found = extract(reply, Target(entry_point="f"))
        assert found.problem == "syntax_error" and found.code is not None
        assert "```" not in found.code and "~~~" not in found.code and "The end" not in found.code


def test_without_an_entry_point_a_stray_fence_is_none_either_and_output_stays_output() -> None:
    assert extract(f"LIMIT = 7\n{NAMED}\n```", Target()).code == f"LIMIT = 7\n{NAMED}"
    assert extract("def f(x:\n    return\n", Target()).problem == "syntax_error", "no name is asked for"


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("javascript", "function f(x) { return x; }"), ("javascript", "const f = x => x;"),
        ("javascript", "function f(x) { return (x; "), ("javascript", "const { f } = lib;"),
        ("javascript", "class Solution { f(x) { return x; } }"), ("typescript", "export const f = (x: number) => x"),
        ("java", "class Main { static int f(int x) { return x; } }"), ("java", "class A { static int f(int x"),
        ("c", "int f(x) int x; { return x; }"), ("c", "#define f(x) ((x)+1)"), ("haskell", "f (x:xs) = x"),
        ("prolog", "f(1, 2)."), ("prolog", "f(X) :- g(X)."), ("julia", "f(x) = x + 1"), ("scheme", "(define (f x) x)"),
        ("csharp", "class A { static int f(int x) => x; }"), ("ocaml", "let rec f (x : int) = x"),
    ],
)  # fmt: skip
def test_definitions_in_other_languages_are_attempts(tag: str, code: str) -> None:
    assert extract(fenced(code, tag), Target(tag, "f")).problem is None


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("javascript", "console.log(f(3));"), ("javascript", "// f does it\nfunction g(x) { return x; }"),
        ("javascript", "function g(x) { return f(x - 1); }"), ("javascript", 'console.log("f(3) =", f(3));'),
        ("javascript", "/**\n * f of x\n */\nfunction g(x) {}"), ("javascript", "function g(x) { return (x; "),
        ("java", "class Main { void m() { System.out.println(f(3)); } }"), ("java", "class Main { // f\n }"),
        ("c", 'int main() { printf("%d", f(3)); }'), ("rust", 'fn main() { println!("{}", f(3)); }'),
        ("go", "func main() { fmt.Println(f(3)) }"), ("kotlin", "fun main() { println(f(3)) }"),
    ],
)  # fmt: skip
def test_mentions_in_other_languages_are_none(tag: str, code: str) -> None:
    found = extract(fenced(code, tag), Target(tag, "f"))
    assert (found.code, found.problem, found.lacks_name) == (None, "no_code", True)


@pytest.mark.parametrize("after", ["", "\nThis function returns its argument.\n"])
@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("javascript", "function f(x) { return x; }"),
        ("java", "class f { int x; }"),
        ("rust", "fn f(x: i32) -> i32 { x }"),
    ],
)
def test_a_stray_fence_hides_no_code_of_another_language(tag: str, code: str, after: str) -> None:
    assert extract(f"{code}\n```{after}", Target(tag, "f")).code == code
