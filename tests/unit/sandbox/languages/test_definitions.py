"""Of a reply's blocks the last that defines the entry point is the answer; tags and blanks in odd places are no code."""

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract
from codechat.sandbox.languages.definitions import FULL, METHOD, NONE, WEAK, definition


def fenced(*blocks: str) -> str:
    return "\n\nThen:\n\n".join(f"```{block}\n```" for block in blocks)


@pytest.mark.parametrize(
    ("language", "usage", "definition"),
    [
        ("javascript", "console.log(add(1, 2));", "const add = (a, b) => a + b;"),
        (
            "javascript",
            "const { add } = require('./add');\nadd(1, 2);",
            "module.exports.add = function (a, b) { return a; };",
        ),
        ("typescript", "let x = add(1, 2);", "export async function add<T>(a: T): Promise<T> {\n  return a;\n}"),
        ("typescript", "declare function add(a: number): number;", "function add(a: number): number { return a; }"),
        ("go", "x := add(1)\nfor add(x) {\n}", "func (s *Sum) add(a int) int {\n\treturn a\n}"),
        ("rust", 'if add(1) == 2 {\n    println!("yes");\n}', "pub fn add<'a>(x: &'a i32) -> i32 { *x }"),
        ("cpp", "int main() { return add(1); }", "std::vector<int> Sum::add(int a) const {\n  return {a};\n}"),
        ("c", "int add(int a);", "static int *add(int a)\n{\n    return 0;\n}"),
        ("java", "System.out.println(add(1));", "class Sum {\n  static int add(int a) {\n    return a;\n  }\n}"),
        ("kotlin", "add(1) {\n  it\n}", "fun Int.add(b: Int) = this + b"),
        ("csharp", "var x = add(1);", "public int add(int a) => a;"),
        ("haskell", "main = print (add 1 2)", "add :: Int -> Int -> Int\nadd a b = a + b"),
        ("lua", "print(add(1, 2))", "function M.add(a, b)\n  return a + b\nend"),
    ],
)
def test_the_block_that_defines_the_entry_point_is_taken(language: str, usage: str, definition: str) -> None:
    orders = [(usage, definition), (definition, usage), (usage, definition, usage)]
    for blocks in orders:
        reply = fenced(*(f"{language}\n{block}" for block in blocks))
        assert extract(reply, Target(language, "add")).code == definition
    untagged = f"```{language}\n{usage}\n```\n```\n{definition}\n```"
    assert extract(untagged, Target(language, "add")).code == definition


@pytest.mark.parametrize("language", ["javascript", "java", "rust", "python"])
def test_the_last_of_two_definitions_is_taken(language: str) -> None:
    texts = {
        "javascript": "function f(x) {{ return {}; }}",
        "java": "class f {{ int x = {}; }}",
        "rust": "fn f() -> i32 {{ {} }}",
        "python": "def f(x):\n    return {}",
    }
    first, second = (texts[language].format(number) for number in (1, 2))
    found = extract(fenced(f"{language}\n{first}", f"{language}\n{second}"), Target(language, "f"))
    assert found.code == second


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("function f(x) { /* your code */ }", WEAK),
        ("fn f() -> i32;", WEAK),
        ("class A {\n  f(x) { return x; }\n}", METHOD),
        ("const o = { f: (x) => x };", FULL),
        ("// function f(x) { return x; }", NONE),
        ("while (f(x)) { g(); }", NONE),
        ("return f(x)", NONE),
        ("let f$ = 1;", NONE),
        ("f(" * 20_000, NONE),
    ],
)
def test_how_well_a_code_defines_a_name(code: str, expected: int) -> None:
    assert definition(code, "f") == expected


@pytest.mark.parametrize("head", ["```\nrust\n", "```rust\nrust\n", "~~~\n\nRust:\n", "  ```\nrust Copy code\n"])
def test_a_tag_on_a_line_of_its_own_is_no_code(head: str) -> None:
    fence = head.strip()[:3]
    assert extract(f"{head}fn f() {{ g() }}\n{fence}", Target("rust", "f")).code == "fn f() { g() }"


@pytest.mark.parametrize(
    "reply",
    [
        "```\npython3\ndef f(x):\n    return x\n```",
        "```python\nPython\ndef f(x):\n    return x\n```",
        "python\nCopy code\ndef f(x):\n    return x",
        "Here:\n\n~~~\npy\ndef f(x):\n    return x\n~~~",
        "```python{1,3}\ndef f(x):\n    return x\n```",
        '```Python title="f.py"\ndef f(x):\n    return x\n```',
        "```python=\ndef f(x):\n    return x\n```",
    ],
)
def test_tags_of_python_in_odd_places_are_no_statements(reply: str) -> None:
    found = extract(reply, Target("python", "f"))
    assert found.program is not None and found.program.strip() == "def f(x):\n    return x"


@pytest.mark.parametrize("before", ["", "The answer:\n\n"])
def test_a_blank_before_the_first_line_loses_no_helper(before: str) -> None:
    reply = f"{before} def f(x):\n     return g(x)\n\ndef g(x):\n    if x:\n        return 1\n    return 0\n"
    program = extract(reply, Target("python", "f")).program or ""
    names: dict[str, object] = {}
    exec(program, names)
    assert callable(names["g"]) and names["f"](1) == 1  # type: ignore[operator]
