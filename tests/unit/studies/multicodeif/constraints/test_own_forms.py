"""A language's own forms of operations, names and sizes, as published replies have them."""

import pytest

from codechat.studies.multicodeif.constraints import Constraint, constraint_type

CHANNEL = "package a\nfunc f(ch chan int) int {\n\tch <- 1\n\treturn <-ch\n}"
WALK = (
    "package a\ntype s struct {\n\tc chan int\n\td []int\n}\nfunc f(s s) {\n\tfor v := range s.c {\n\t\t_ = v\n\t}\n}"
)
DELETES = 'package a\nimport "sync"\nvar s sync.Map\nfunc f(m map[int]int) {\n\ts.Store(1, 2)\n\tdelete(m, 1)\n}'
LINE = "package a\nfunc f() {\n\tm := make(map[int]int, 5); c := make(chan int, 100); a := [100]int{}\n\t_, _, _ = m, c, a\n}"
LENGTH = "package a\nfunc f(q []int) {\n\tm := map[int]int{}\n\tif len(m) > 5 && len(q) >= 100 {\n\t\treturn\n\t}\n}"
QUOTED = "class Tests {\n    fun `is empty`(`first value`: Int) = true\n    fun check() = `is empty`(1)\n}"
CASES = {
    "send and receive": ("data_structure_operation", "go;chan;['send', 'receive']", CHANNEL, True),
    "received by a walk": ("data_structure_operation", "go;chan;['receive']", WALK, True),
    "a walk over a slice": ("data_structure_operation", "go;chan;['receive']", WALK.replace("s.c {", "s.d {"), False),
    "nothing is sent": ("data_structure_operation", "go;chan;['send']", CHANNEL.replace("ch <- 1", "_ = ch"), False),
    "the method's name is a function's": ("data_structure_operation", "go;sync.Map;['delete']", DELETES, False),
    "the method": (
        "data_structure_operation",
        "go;sync.Map;['delete']",
        DELETES.replace("delete(m", "s.Delete(m"),
        True,
    ),
    "the function": ("data_structure_operation", "go;map;['delete']", DELETES, True),
    "a map's size": ("data_structure_size", "go;map;5", LINE, True),
    "another's size on the line": ("data_structure_size", "go;map;100", LINE, False),
    "the channel's size": ("data_structure_size", "go;chan;100", LINE, True),
    "another's length on the line": ("data_structure_size", "go;map;100", LENGTH, False),
    "its own length": ("data_structure_size", "go;map;5", LENGTH, True),
    "a name in backticks": ("invocation", "kotlin;is empty", QUOTED, True),
    "names in backticks": ("naming", "kotlin;function:camelCase", QUOTED.replace("is empty", "isEmpty"), True),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    kind, answer, code, met = CASES[name]
    found = Constraint(kind, constraint_type(kind).read(answer)).check(code)
    assert found.met is met, found
