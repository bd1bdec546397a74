"""What every type of constraint must do, whoever wrote it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.studies.multicodeif.constraints import (
    Constraint,
    ConstraintType,
    Harness,
    constraint_type,
    constraint_types,
    register,
)
from support.mistakes import mistake

pytest.importorskip("tree_sitter_rust", reason="needs codechat[constraints]")

# For each type that rules decide: an answer, a code that keeps it, and one that does not.
PAIRS: dict[str, tuple[str, str, str]] = {
    "advanced_syntax": ("rust;Closures", "fn f() { let g = |x: u8| x; }", "fn f() { let g = 1; }"),
    "brace": ("java;K&R", "class A {\n  int f() {\n    return 1;\n  }\n}", "class A\n{\n  int a;\n}"),
    "comment": ("c;Single-line comment", "int a; // the first\n", "int a; /* the first */\n"),
    "data_structure_operation": (
        "cpp;vector;['push_back']",
        "void f() { std::vector<int> v; v.push_back(1); }",
        "void f() { std::vector<int> v; v.pop_back(); }",
    ),
    "data_structure_size": ("java;HashMap;100", "HashMap<A, B> m = new HashMap<>(100);", "HashMap<A, B> m;"),
    "data_structure_type": ("java;HashMap", "class A { Map<B, C> m = new HashMap<>(); }", "class A { int b; }"),
    "indentation": ("go;tabs;spacing", "func f() {\n\tx := 1 + 2\n}\n", "func f() {\n    x := 1 + 2\n}\n"),
    "invocation": ("javascript;Math.random", "const a = Math.random();", "const a = Math.floor(random);"),
    "library": ("go;sync", 'package a\nimport (\n\t"sync"\n)\n', 'package a\nimport "fmt"\n'),
    "naming": (
        "python;function:snake_case",
        "def add_all(numbers):\n    return sum(numbers)\n",
        "def addAll(numbers):\n    return sum(numbers)\n",
    ),
    "parameter_signature": ("Rust;f;[List,Integer]", "fn f(a: Vec<u8>, b: i32) {}", "fn f(b: i32, a: Vec<u8>) {}"),
    "parameter_type": ("cpp;f;String", "void f(const std::string& a) {}", "void f(int a) {}"),
    "return_cardinality": ("go;f;[int,error]", "func f() (int, error) { return 1, nil }", "func f() int { return 1 }"),
    "return_type": ("java;f;List", "class A { List<B> f() { return c; } }", "class A { int f() { return 1; } }"),
}
RULES = [kind for kind in constraint_types() if kind.by == "rule"]
HARNESSES: list[Harness] = ["official", "guarded"]


def constraint(kind: ConstraintType, answer: str) -> Constraint:
    return Constraint(kind.name, kind.read(answer))


def test_the_types_of_the_paper() -> None:
    kinds = [kind for kind in constraint_types() if kind.category != "own"]
    assert len(kinds) == 27 and len({kind.published for kind in kinds}) == 27
    assert {kind.name for kind in RULES} == set(PAIRS)
    assert len({kind.category for kind in kinds}) == len({kind.published[0] for kind in kinds}) == 9
    assert [kind.name for kind in kinds if kind.by in ("classifier", "compiler")] == [
        "language_type",
        "language_version",
    ]


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("name", PAIRS)
def test_right_code_passes_and_wrong_code_fails(name: str, harness: Harness) -> None:
    answer, right, wrong = PAIRS[name]
    asked = constraint(constraint_type(name), answer)
    for code, met in ((right, True), (wrong, False)):
        found = asked.check(code, harness)
        assert found.met is met, found.reason
        assert found.reason and len(found.reason.splitlines()) == 1
    assert re.search(r"line \d|all \d", asked.check(right).reason)


@pytest.mark.parametrize("kind", constraint_types(), ids=lambda kind: kind.name)
def test_words_and_wrong_answers(kind: ConstraintType) -> None:
    with pytest.raises(ValueError, match="answer"):
        kind.read("" if kind.by in ("judge", "classifier") else "nothing like it")
    answer = PAIRS[kind.name][0] if kind.by == "rule" else "python;3.10" if kind.by == "compiler" else "python"
    asked = constraint(kind, answer)
    assert asked.words.endswith(".") and len(asked.words.splitlines()) == 1 and ";" not in asked.words
    if kind.by != "rule":
        assert asked.check("x").met is None


@pytest.mark.parametrize("name", ["code_quality", "scenario", "code_context", "exemplar"])
def test_no_word_of_a_solution_is_told(name: str) -> None:
    assert "secret" not in constraint(constraint_type(name), "def secret(): return 1").words


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_no_code_keeps_nothing(kind: ConstraintType) -> None:
    for code in (None, "", " \n"):
        assert constraint(kind, PAIRS[kind.name][0]).check(code).met is False


PIECES = st.sampled_from(
    [
        *(
            "class A {",
            "}",
            "{",
            "(",
            ")",
            "[",
            "]",
            "fn f(",
            "def f(a: int) -> (int, str):\n",
            "    ",
            "\t",
            "\n",
            "é",
            "\0",
        ),
        *(
            "'",
            '"',
            '"""',
            "/*",
            "*/",
            "//",
            "///",
            "#",
            "|x| x",
            "import a",
            "use a::b;",
            "->",
            "=>",
            "::<",
            "<<",
            ">>>",
        ),
        *(
            "\ud800",
            "\u2028",
            "\r",
            "int f(int a[3]) {",
            "func (s *S) f(a, b int) (int, error) {",
            "100",
            "`",
            "$",
            "\\",
        ),
    ]
)
CODES = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=25).map("".join))
ANSWERS = [(kind.name, answer) for kind in RULES for answer in (PAIRS[kind.name][0],)] + [
    *(
        ("naming", f"{language};class:PascalCase,function:camelCase,variable:kebab-case")
        for language in ("zig", "haskell")
    ),
    *(("naming", f"{language};class:snake_case,function:camelCase") for language in ("kotlin", "csharp", "go", "cpp")),
    *(
        ("comment", answer)
        for answer in ("go;GoDoc", "python;Python docstring", "rust;Rustdoc", "kotlin;Inline comment")
    ),
    *(("return_cardinality", answer) for answer in ("python;f;[int,str]", "rust;f;[Vec,bool]")),
    *(("parameter_signature", answer) for answer in ("python;f;[graph,node,none]", "java;f;[Matrix,Tuple]")),
    *(("parameter_type", answer) for answer in ("java;f;Graph", "python;f;Struct: A", "rust;f;Matrix")),
    *(("library", answer) for answer in ("typescript;zod", "python;os", "rust;async-std")),
    *(("data_structure_operation", answer) for answer in ("go;map;['assign']", "python;dict;['insert']")),
    *(("indentation", "cpp;spaces:2;no spacing"), ("brace", "rust;Allman"), ("data_structure_size", "go;sync.Map;5")),
]


@settings(max_examples=300)
@given(CODES, st.sampled_from(ANSWERS), st.sampled_from(HARNESSES))
def test_no_exception_leaves_a_rule(code: str, asked: tuple[str, str], harness: Harness) -> None:
    found = constraint(constraint_type(asked[0]), asked[1]).check(code, harness)
    assert found.met in (True, False, None) and len(found.reason.splitlines()) == 1


HOSTILE = {
    "brackets": "(" * 50_000 + ")" * 50_000,
    "braces": "{" * 50_000 + "}" * 50_000,
    "one long line": "x = 1; " * 3_000,
    "one long word": "a" * 50_000,
    "one long comment": "/*" + " *" * 20_000,
    "one long type": "fn f(a: " + "Vec<" * 20_000 + "u8" + ">" * 20_000 + ") {}",
    "a megabyte": "x" * 1_000_000,
    "many comments": "# a\n" * 3_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long
def test_hostile_code_is_decided_or_not_but_raises_nothing(name: str) -> None:
    for kind, answer in ANSWERS:
        for harness in HARNESSES:
            assert constraint(constraint_type(kind), answer).check(HOSTILE[name], harness).reason


def test_a_name_belongs_to_one_type() -> None:
    kind = constraint_type("brace")
    with pytest.raises(ValueError, match="'brace' is registered twice"):
        register(ConstraintType("brace", "a", ("a", "b"), "judge", kind.read, kind.words))
    with pytest.raises(ValueError, match="needs the rule guarded"):
        register(ConstraintType("half", "a", ("a", "b"), "rule", kind.read, kind.words, kind.official))
    with mistake("'braces'"):
        constraint_type("braces")


PLUGIN = """
from codechat.studies.multicodeif.constraints import ConstraintType, Finding, register
from codechat.studies.multicodeif.constraints import Answer

def rule(answer, code):
    lines = [number for number, line in enumerate(code.split("\\n"), 1) if len(line) > int(answer.raw)]
    return Finding(not lines, f"line {lines[0]} is too long" if lines else "no line is too long")

register(ConstraintType("line_length", "coding_style", ("style", "length"), "rule", Answer,
    lambda answer: f"No line may be longer than {answer.raw}.", rule, rule))
"""
USE = """
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
kind = constraint_type("line_length")
print(Constraint("line_length", kind.read("5")).check("short\\nlonger").reason)
"""


def test_a_type_is_one_file_of_another_package(tmp_path: Path) -> None:
    (tmp_path / "toy_constraint.py").write_text(PLUGIN)
    info = tmp_path / "toy_constraint-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-constraint\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[codechat.constraint]\nlength = toy_constraint\n")
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "line 2 is too long", done.stderr
