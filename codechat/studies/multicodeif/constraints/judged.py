"""The types that a judge decides: the answers are free texts, or whole programs that keep the constraint."""

from codechat.studies.multicodeif.constraints import Answer, ConstraintType, register


def _read(raw: str) -> Answer:
    if not raw.strip():
        raise ValueError("the answer is empty: state the requirement")
    return Answer(raw)


def _register(described: str) -> None:
    """Register a type by its name, category, published category and type, the demand in words, and an example."""
    name, category, published, kind, meaning, *example = described.split("|")
    words = f"The code must keep what the task asks of {meaning}"
    stated = published in ("algorithm", "input_output", "code_convention", "syntax")  # others' answers are solutions
    register(
        ConstraintType(
            *(name, category, (published, kind), "judge", _read),
            lambda answer: f"{words}: {answer.raw.strip()}." if stated else f"{words}.",
            solved=not stated,
            form="the demand in words" if stated else "a program that keeps it, which no model under test sees",
            examples=tuple(example),
        )
    )


_register("parameter_range|interface_specification|input_output|input_range|the values of its parameters|0 to 100")
_register("return_range|interface_specification|input_output|output_range|the values that it returns|0 to 100")
_register("framework|environment|syntax|framework|the framework|Flask")
_register("algorithm_type|algorithm|algorithm|type|the algorithm|merge sort")
_register("time_complexity|algorithm|algorithm|time_complexity|its time|O(n log n)")
_register("space_complexity|algorithm|algorithm|space_complexity|its memory|O(1)")
_register("declaration_style|coding_style|code_convention|declaration_style|where variables are declared|at the head")
_register("code_quality|code_quality|non_functional_requirements|non_functional_requirements|its quality")
_register("scenario|scenario|situation|situation|its scenario")
_register("code_context|code_context|code_contextual|code_contextual|the code that it belongs to")
_register("exemplar|exemplar|example|example|the example")


def _words(answer: Answer) -> str:
    """The requirement itself, as one sentence."""
    text = " ".join(answer.raw.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


register(
    ConstraintType(
        *("requirement", "own", ("own", "requirement"), "judge", _read, _words),
        examples=("every function checks its arguments before it does anything else",),
    )
)
