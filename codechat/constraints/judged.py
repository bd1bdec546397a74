"""The types that a judge decides: their answers are free texts, or whole programs that keep them."""

from codechat.constraints import Answer, ConstraintType, register


def read(raw: str) -> Answer:
    if not raw.strip():
        raise ValueError("the answer is empty")
    return Answer(raw)


def said(what: str) -> None:
    """Register a type: its name, category, published category and type, and what the answer bounds."""
    name, category, published, kind, meaning = what.split("|")
    words = f"The code must keep what the task asks of {meaning}"
    told = published in ("algorithm", "input_output", "code_convention", "syntax")  # others' answers are solutions
    register(
        ConstraintType(
            name,
            category,
            (published, kind),
            "judge",
            read,
            lambda answer: f"{words}: {answer.raw.strip()}." if told else f"{words}.",
            solved=not told,
        )
    )


said("parameter_range|interface_specification|input_output|input_range|the values of its parameters")
said("return_range|interface_specification|input_output|output_range|the values that it returns")
said("framework|environment|syntax|framework|the framework")
said("algorithm_type|algorithm|algorithm|type|the algorithm")
said("time_complexity|algorithm|algorithm|time_complexity|its time")
said("space_complexity|algorithm|algorithm|space_complexity|its memory")
said("declaration_style|coding_style|code_convention|declaration_style|where variables are declared")
said("code_quality|code_quality|non_functional_requirements|non_functional_requirements|its quality")
said("scenario|scenario|situation|situation|its scenario")
said("code_context|code_context|code_contextual|code_contextual|the code that it belongs to")
said("exemplar|exemplar|example|example|the example")
