"""Extraction for languages with a grammar: the guarded way, and the published one."""

import subprocess
import sys

import pytest

from codechat.base.domain import Target
from codechat.base.errors import UserError
from codechat.sandbox.languages import Coded, extract, parses
from codechat.sandbox.languages.grammar import Grammar
from codechat.studies.multicodeif.constraints.published import extracted

RUST = 'fn main() {\n    println!("hi");\n}'
CARGO = '```toml\n[dependencies]\nserde = "1"\n```\n'


@pytest.mark.parametrize(
    ("reply", "language", "code"),
    [
        (f"{CARGO}Then:\n```rust\n{RUST}\n```\n", "rust", RUST),
        (f"```bash\ncargo run\n```\n```rs\n{RUST}\n```", "rust", RUST),
        (f"Here it is:\n```rust\n{RUST}", "rust", RUST),
        (f"{CARGO}\n```\n{RUST}\n```", "rust", RUST),
        ("```python\nfn main() {}\n```", "rust", "fn main() {}"),
        (RUST, "rust", RUST),
        (f"Here is the code.\n\n{RUST}\n\nIt prints a word.", "rust", RUST),
        ("```c++\nint x;\n```", "cpp", "int x;"),
        ("```C#\nclass A { }\n```", "csharp", "class A { }"),
        ("public int f() {\n    return 1;\n}", "java", "public int f() {\n    return 1;\n}"),
    ],
)
def test_the_code_of_the_asked_language(reply: str, language: str, code: str) -> None:
    assert extract(reply, Target(language)).code == code


@pytest.mark.parametrize("reply", ["I cannot do that.", "Sorry.\n\nThis is not possible for me.", "", " \n"])
def test_prose_is_no_code(reply: str) -> None:
    assert extract(reply, Target("kotlin")).problem == "no_code"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (f"{CARGO}```rust\n{RUST}\n```", '[dependencies]\nserde = "1"'),
        ("```c++\nint x;\n```", "++\nint x;"),
        ("```c#\nint x;\n```", "#\nint x;"),
        ("So:\n```go\nx := 1", "So:\n```go\nx := 1"),
        ("  x = 1\n", "x = 1"),
    ],
)
def test_the_published_extraction_takes_the_first_fence(reply: str, code: str) -> None:
    assert extracted(reply) == code


def test_grammars_load_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with the languages nor with the constraints; a missing wheel is told with its remedy."""
    listed = "from codechat.studies.multicodeif.constraints import constraint_types; from codechat.sandbox.languages import languages"
    loaded = f"import sys; {listed}; constraint_types(), languages(); sys.exit('tree_sitter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], timeout=60, check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    with pytest.raises(UserError, match="which is not installed") as caught:
        Grammar("tree_sitter_nothing", "", "nothing").parse("x")
    assert "pip install 'codechat[constraints]'" in str(caught.value)


@pytest.mark.parametrize(
    ("language", "code", "whole"),
    [
        ("c++", "int main() { return 0; }", True),
        ("cpp", "int main() { return 0; ", False),
        ("Rust", "fn f() -> Vec<u8> { vec![1] } // é", True),
        ("python", "def f(:\n  pass", False),
        ("java", "class A { void f() { int x = ; } }", False),
        ("java", " \n", False),
        ("lua", "x = 1", None),
        ("", "x = 1", None),
        ("go", "(" * 600 + ")" * 600, None),
        ("go", "x" * 1_000_000, None),
    ],
)
def test_whether_a_code_parses(language: str, code: str, whole: bool | None) -> None:
    assert parses(language, code) is whole


def test_a_code_that_cannot_be_parsed_without_a_wheel_is_no_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    monkeypatch.setattr("codechat.sandbox.languages.language_of", lambda name: Coded((name,), Grammar("none", "", "")))
    with pytest.raises(UserError, match="which is not installed"):
        parses("go", "x")
