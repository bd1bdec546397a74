"""Operations of a data structure that code must use: `language;name;['operation', …]`."""

from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import listed, read_values
from codechat.constraints.published import without_comments
from codechat.constraints.published_structures import operations_seen, structures_seen
from codechat.constraints.structures import operation_of, use_of


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;structure;['operation', …]")
    return replace(answer, values=(answer.values[0], *listed(answer.values[1])))


def words(answer: Answer) -> str:
    name, *operations = answer.values
    listed_words = " and ".join(operations)
    return f"The code must use the data structure {name} of {answer.language} with its operations {listed_words}."


def official(answer: Answer, code: str) -> Finding:
    """A name without its package, such as `deque`, is never one of Python's, which are seen with theirs."""
    name, *operations = answer.values
    used = name.lower() in structures_seen(without_comments(code, answer.language), answer.language)
    called = operations_seen(code, answer.language, operations)
    return Finding(used and called, f"the published harness sees {name}: {used}, all its operations: {called}")


def guarded(answer: Answer, code: str) -> Finding:
    name, *operations = answer.values
    use = use_of(name, answer, code)
    if use is None:
        return Finding(False, f"nothing in the code uses {name}")
    lines = {operation: operation_of(operation, answer, code) for operation in operations}
    missing = [operation for operation, line in lines.items() if line is None]
    if missing:
        return Finding(False, f"line {use.line} uses {name}, but nothing calls {' or '.join(missing)}")
    done = ", ".join(f"{operation} in line {line}" for operation, line in lines.items())
    return Finding(True, f"line {use.line} uses {name}: {done}")


register(
    ConstraintType(
        "data_structure_operation",
        "data_structure",
        ("data_structure", "operation"),
        "rule",
        read,
        words,
        official,
        guarded,
    )
)
