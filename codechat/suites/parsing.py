"""Whether a test is Python at all."""

import warnings


def syntax_problem(text: str) -> str:
    """The reason, with the line, if a text is no Python program; else empty. Nothing of the text is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the interpreter's opinion of an escape sequence is no error
            compile(text, "<test>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""
