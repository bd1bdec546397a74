"""A language with a grammar is one file, and the rules check its code; a type is another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_c", reason="needs codechat[constraints]")

ROOT = Path(__file__).parents[5]
LANGUAGE = '''
from codechat.sandbox.languages import register
from codechat.sandbox.languages import Coded
from codechat.sandbox.languages.grammar import Customs
from codechat.sandbox.languages.grammar import Grammar

QUESTIONS = """
(function_definition declarator: (function_declarator declarator: (identifier) @function.name
  parameters: (_) @function.parameters)) @function
(call_expression function: (identifier) @call)
(compound_statement) @block
"""
CUSTOMS = Customs(documents="//!", documentation="toydoc")
register(Coded(("toyc", "tc"), Grammar("tree_sitter_c", QUESTIONS, "c", customs=CUSTOMS)))
'''
KIND = """
from codechat.studies.multicodeif.constraints import ConstraintType, Finding, register
from codechat.studies.multicodeif.constraints import read_values

def rule(answer, code):
    functions = answer.tree(code).functions
    many = len(functions) > int(answer.values[0])
    line = functions[-1].name.line if functions else 0
    return Finding(not many, f"line {line} has the last of {len(functions)} functions")

register(ConstraintType("function_count", "coding_style", ("style", "functions"), "rule",
    lambda raw: read_values(raw, 1, "language;number"), lambda a: f"At most {a.values[0]} functions.", guarded=rule))
"""
USE = """
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.base.domain import Target
from codechat.sandbox.languages import extract

code = extract("```tc\\nint f(void) {\\n    g();\\n}\\nint h(void) { }\\n```", Target("toyc")).code
for kind, answer in (("function_count", "toyc;1"), ("invocation", "toyc;g"), ("brace", "TC;K&R"), ("comment", "toyc;toydoc")):
    constraint = Constraint(kind, constraint_type(kind).read(answer))
    found = constraint.check(code)
    print(found.met, found.reason)
    if kind == "function_count":
        assert constraint.check(code, "official") == found, "nothing was published of it"
"""


def test_a_language_and_a_type_are_a_file_each(tmp_path: Path) -> None:
    for name, group, text in (("toy_language", "language", LANGUAGE), ("toy_kind", "constraint", KIND)):
        (tmp_path / f"{name}.py").write_text(text)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[codechat.{group}]\n{name} = {name}\n")
    path = os.pathsep.join((str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "False line 4 has the last of 2 functions",
        "True line 2 calls g",
        "True all 2 blocks have their braces in the K&R style",
        "False line 1: f has no toydoc",
    ], done.stderr
