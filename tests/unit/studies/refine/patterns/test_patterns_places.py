"""Comments are found without reading every token, and are the same ones."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import codechat
from codechat.studies.refine.patterns import read
from codechat.studies.refine.patterns.reading.tree import children, walk

MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
SOURCES = sorted(Path(codechat.__file__).parent.rglob("*.py"))[::4]  # enough Python of many kinds
TRICKY = [
    "x = '#'  # one\n# two\n",
    "x = b'#'\ny = 1  # one\n",
    "x = '''\n# none\n'''  # one\n",
    "x = f'{1:#x}'  # one\n",
    "x = f'''\n{1} # none\n'''\n# one\n",
    "x = ('a'  # one # still one\n     'b')  # two\n",
    "if x:  # one\n\n    # two\n    pass\n\t# three",
    "#!shebang\n# type: ignore\n# one\n",
    "x = 1 \\\n    + 2  # one\n",
    "def f():\n    '''#'''\n    return 1  # one\n",
    "if __name__ == '__main__':\n    print('# none')  # one\n",
    "x = '\\x23'  # one\n",
    "x = 1\f# one\n",
]


@pytest.mark.parametrize("text", [*TRICKY, *(path.read_text() for path in SOURCES)])
def test_the_comments_are_those_of_the_token_stream(text: str) -> None:
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    spoken = [t for t in tokens if not re.match(r"#!|#\s*(type:|noqa|ruff:|fmt:|pragma:|-\*-)", t.string)]
    found = [(one.line, one.column, one.text) for one in read(text).comments]
    assert found == [(*t.start, t.string) for t in spoken]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_tree_is_walked_as_ast_walks_it_but_for_marks(path: Path) -> None:
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if not isinstance(node, MARKS)]
    assert walk(tree) == nodes
    for node in nodes:
        assert children(node) == [child for child in ast.iter_child_nodes(node) if not isinstance(child, MARKS)]
