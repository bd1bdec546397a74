"""Each known fault of the published harness, and that the guarded rules do not have it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.studies.multicodeif.constraints import Constraint, constraint_type

pytest.importorskip("tree_sitter_rust", reason="needs codechat[constraints]")

ROOT = Path(__file__).parents[5]
DATA = Path(os.environ.get("CODECHAT_TEST_DATA", ""))
RUST_MAP = "fn f() { let m: HashMap<u8, u8> = HashMap::with_capacity(100); }"
GO_MAP = "package a\nvar m map[string]int\nvar s sync.Map\nfunc f() { m[k] = 1 }\n"
DEQUE = "from collections import deque\nq = deque()\nq.append(1)\nq.popleft()\n"

# type, answer, code, then whether official and guarded rules find it kept
FAULTS = [
    # a size is a piece of a text
    ("data_structure_size", "java;HashMap;10", "HashMap<A, B> m = f(2100);", True, False),
    ("data_structure_size", "java;HashMap;10", 'HashMap<A, B> m = f("10");', True, False),
    ("data_structure_size", "java;HashMap;10000", "HashMap<A, B> m = new HashMap<>(10_000);", False, True),
    # Rust's and Go's names are compared with lower-case ones
    ("data_structure_size", "rust;HashMap;100", RUST_MAP, False, True),
    ("data_structure_type", "rust;HashMap", RUST_MAP, True, True),
    # names with a package, and Go's own structures, are no type names
    ("data_structure_type", "go;sync.Map", GO_MAP, False, True),
    ("data_structure_type", "go;map", GO_MAP.replace("var s sync.Map\n", ""), False, True),
    ("data_structure_type", "go;map", "package a\nvar s sync.Map\n", True, False),
    ("data_structure_operation", "go;map;['assign']", GO_MAP, False, True),
    ("data_structure_operation", "python;deque;['append','popleft']", DEQUE, False, True),
    ("data_structure_operation", "java;LinkedList;['addfirst']", "LinkedList<A> a; { a.addFirst(1); }", False, True),
    # Python's literals and annotations are not seen, an import alone is
    ("data_structure_type", "python;dict", "a = {}\n", False, True),
    ("data_structure_type", "python;list", "def f(a: list[int]): pass\n", False, True),
    ("data_structure_type", "python;collections.deque", "from collections import deque\n", True, False),
    # offsets in bytes cut the text
    ("invocation", "javascript;foo", "const s = 'éé';\nfoo();\n", False, True),
    ("parameter_type", "rust;f;Integer", 'const S: &str = "éééé";\nfn f(a: i32) {}\n', False, True),
    ("return_type", "java;f;List", 'class A { String s = "é"; List<B> f() { return c; } }', False, True),
    # names that are not looked at
    ("naming", "python;variable:snake_case", "aB = 1\n", True, False),
    ("naming", "python;variable:snake_case", "_someName = 1\n", True, False),
    ("naming", "python;variable:snake_case", "TOTAL = 1\n", True, False),
    ("naming", "rust;struct:snake_case", "struct MyType { a: u8 }", True, False),
    ("naming", "go;function:camelCase", "package a\nfunc (t *Tree) size() int { return 1 }\n", False, True),
    # nothing to check is no success
    ("comment", "c;Inline comment", "int a;\n", True, False),
    ("comment", "python;Python docstring", "a = 1\n", True, False),
    ("comment", "go;GoDoc", "package a\n", True, False),
    (
        "comment",
        "go;GoDoc",
        "package a\n\n// Size says more\n// in two lines.\nfunc Size() int { return 1 }\n",
        False,
        True,
    ),
    ("comment", "java;Javadoc", "/** A. */\nclass A {\n  int f() { return 1; }\n}\n", True, False),
    # Python has no braces; a brace in a text is none of a block
    ("brace", "python;Allman", "a = 1\n", True, None),
    ("brace", "java;K&R", 'class A {\n  String s = "{";\n}\n', False, True),
    ("brace", "javascript;K&R", "function f() {\n  return {};\n}\nconst a = [{}];\n", False, True),
    # aligned lines and templates are as they should be
    ("indentation", "python;spaces:4;spacing", "def f(a,\n      b):\n    return a + b\n", False, True),
    ("indentation", "cpp;spaces:2;spacing", "int f() {\n  vector<int> v;\n}\n", False, True),
    # only parts of types, calls and imports are compared
    ("parameter_type", "cpp;f;Integer", "void f(Point p) {}", True, False),
    ("parameter_type", "cpp;f;Struct: Point", "void f(const Point& p) {}", False, True),
    ("parameter_signature", "java;f;[Matrix]", "class A { int f(int[][] m) { return 1; } }", False, True),
    ("return_type", "cpp;f;List", "std::vector<int>& f() { return v; }", False, True),
    ("return_cardinality", "rust;f;[HashMap,bool]", "fn f() -> Result<(HashMap<A, B>, bool), E> { x }", False, True),
    ("return_cardinality", "python;f;[str,int]", "def f() -> list[str, int]:\n    return x\n", True, False),
    ("invocation", "java;add", "class A { void f() { add.run(); } }", True, False),
    ("invocation", "go;go", "package a\nfunc f() { go g() }\n", False, True),
    ("invocation", "C#;await", "class A { async Task f() { await g(); } }", False, True),
    ("library", "python;matplotlib", "import matplotlib.pyplot as plt\n", False, True),
    ("library", "rust;async-std", "use async_std::task;\n", False, True),
    ("library", "go;ent", 'package a\nimport "example.org/content"\n', True, False),
    ("library", "go;Gin", 'package a\nimport "github.com/gin-gonic/gin"\n', False, True),
    ("advanced_syntax", "javascript;Spread Operator", "function f(...a) { return a; }", True, False),
    ("advanced_syntax", "go;Goroutine and Channel", "package a\nfunc f(c chan int) { go g(c); <-c }\n", True, True),
    # a call of another structure, and the size of another one
    (
        "data_structure_operation",
        "java;LinkedList;['offer']",
        "class A { LinkedList<A> l; Queue<A> q = new PriorityQueue<>(); void f() { q.offer(a); } }",
        True,
        False,
    ),
    (
        "data_structure_size",
        "java;Stack;10",
        "class A { Stack<A> s; void f() { ArrayList<A> l = new ArrayList<>(10); } }",
        True,
        False,
    ),
    # what a Python function takes or returns without an annotation
    ("return_cardinality", "python;f;[str,int]", "def f():\n    return 'a', 1\n", False, True),
    ("return_cardinality", "python;f;[str,int]", "def f(a, b):\n    return a, b\n", False, None),
    ("return_type", "python;f;List", "def f(a):\n    return sorted(a)\n", False, True),
    ("parameter_type", "python;f;Integer", "def f(a):\n    return a\n", False, None),
    # levels are counted, not only divided; operators are all looked at
    ("indentation", "rust;spaces:2;spacing", "fn f() {\n    g();\n}\n", True, False),
    ("indentation", "go;tabs;spacing", "package a\n\nvar b = c|d\n", True, False),
    # scripts of a page, names that no grammar reads, code that breaks off
    ("library", "javascript;axios", '<!DOCTYPE html>\n<script src="/npm/axios.min.js"></script>\n', False, True),
    (
        "naming",
        "kotlin;function:camelCase,variable:kebab-case",
        "fun f(user-name: UserMap): Int {\n    return 1\n}\n",
        False,
        True,
    ),
    ("parameter_type", "cpp;f;Integer", "namespace a {\nint f(int b) {\n    if (b) {\n", False, True),
]


@pytest.mark.parametrize(("kind", "answer", "code", "official", "guarded"), FAULTS)
def test_a_fault_is_kept_and_mended(kind: str, answer: str, code: str, official: bool, guarded: bool | None) -> None:
    constraint = Constraint(kind, constraint_type(kind).read(answer))
    assert constraint.check(code, "official").met is official, constraint.check(code, "official").reason
    assert constraint.check(code, "guarded").met is guarded, constraint.check(code, "guarded").reason


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("HashMap", 100),
        ("BTreeMap", 50),
        ("HashSet", 10),
        ("Vec", 1000),
        ("VecDeque", 5),
        ("ArrayVec", 1),
        ("LinkedList", 7),
    ],
)
def test_no_size_of_rust_can_pass(name: str, size: int) -> None:
    constraint = Constraint("data_structure_size", constraint_type("data_structure_size").read(f"rust;{name};{size}"))
    code = f"fn f(m: {name}<u8>) {{ if m.len() < {size} {{ g(m); }} }}"
    assert constraint.check(code, "official").met is False
    assert constraint.check(code, "guarded").met is True


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "multicodeif_tasks.jsonl.gz").is_file(), reason="CODECHAT_TEST_DATA is unset")
def test_the_published_verdicts() -> None:
    """At least 99 % of each type's verdicts and 99.9 % of all 9,229, or the command's status is not 0."""
    command = [sys.executable, str(ROOT / "benchmarks" / "multicodeif.py"), str(DATA)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(line.split()[:1] == ["all"] and line.split()[2] == "9229" for line in done.stdout.splitlines())
