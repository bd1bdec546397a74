"""Requests in free words: most made-up ones get their type, few another, and other messages get none."""

import gzip
import json
import os
from pathlib import Path

import pytest

from codechat.studies.refine.agendas.recognising import Recogniser
from support.refine_cells import AUDIT_POOL

RECOGNISER = Recogniser(AUDIT_POOL)
SAID = {
    "cosmetic/add": """
        Nice. Now document the function with a proper docstring please
        Could you explain each step in a short comment?
        type annotations are missing, add them
        Also, insert a blank line before the return statement
        Could you add some comments explaining what's going on?
        please add docstrings to the functions
        Add type hints please.
        Can you annotate the parameters and the return type?
        put a comment above each loop so I know what it does
        Also document the time complexity in the docstring
        I'd like a usage example in the docstring, please include one
    """,
    "cosmetic/modify": """
        give the variables longer and more descriptive names
        Let's use four spaces for indentation instead of tabs
        Can you shorten the docstring to one line?
        please move the end-of-line comments to their own line
        Rename x and y, those names tell me nothing
        rename the variables to something more descriptive
        Use camelCase: rename the variables from snake_case to camelCase
        Change the indentation to 2 spaces
        convert double quotes to single quotes
        Reformat it so that no line is longer than 60 characters
        Make the docstring a single line
    """,
    "cosmetic/remove": """
        Strip out all those inline comments
        I don't want any type hints in there
        lose the docstring
        keep lines under 79 characters
        remove the comments
        Get rid of the type hints.
        drop the docstring, I don't need it
        Please delete the unused imports
        There are too many blank lines inside the function, remove them
        Please strip trailing whitespace
        no single letter variable names please
    """,
    "semantic/add": """
        Do it recursively
        Use memoization, functools.lru_cache would be fine
        Switch to a deque
        use a regular expression for that
        Can you use itertools for this?
        Add logging of the intermediate values
        use binary search from bisect
        use recursion
        Use a set for the membership test
        can you cache the results with lru_cache?
        Use Counter from collections
        Implement it with a generator function
        Use a dictionary as a lookup table
        add a try statement around the computation
        Use heapq for this
        log the intermediate values with the logging module
    """,
    "semantic/modify": """
        Make it iterative: replace the recursion with a loop
        implement your own sort instead of calling sorted
        convert the lists to sets for faster membership tests
        replace recursion with iteration
        Rewrite it: replace the loops by recursion
        Swap the list for a deque
        don't call sort, replace the built-in sort by your own sorting algorithm
    """,
    "semantic/remove": """
        Please avoid for and while loops
        Remove the assertions again
        don't use sorted() or list.sort()
        drop the try/except
        Don't use any dictionaries
        without imports please
        avoid recursion
        Remove the print statements
        Do it without any loops
        Please don't import anything
        get rid of the assertions
        Don't modify the argument in place
    """,
    "structural/add": """
        Pull the parsing into a helper function
        could we do this with a generator expression?
        use zip to iterate over both lists
        use a named tuple for the result
        Use the walrus operator here
        use a list comprehension
        Can you use a helper function for that part?
        Use enumerate here
        wrap this in a class and let the function delegate to it
        Introduce a constant at module level for the magic numbers
        I think a lambda would be nicer, use one
        use a dataclass for the values
        Use early return guard clauses
    """,
    "structural/modify": """
        Rewrite the loop as a list comprehension
        Replace the nested ifs with a single condition
        break this function up into smaller functions
        Change the while loop to a for loop
        Use f-strings rather than format()
        inline the temporary variable you return
        convert the for loop to a while loop
        Turn that loop into a comprehension
        replace the if/elif chain with a match statement
        Please use f-strings: replace the string formatting by f-strings
        split this function into smaller ones
        Merge the nested if statements into one condition
        Extract the nested function to module level
        simplify the comparison with True
    """,
    "structural/remove": """
        Avoid using lambda
        No list comprehensions, please.
        Please get rid of the nested loops' break statements
        Flatten it, I don't like deeply nested blocks
        Only one return statement please
        don't use list comprehensions
        avoid lambdas
        Get rid of the else branches
        Remove the nested function
        stop using break and continue
        reduce nesting, please: avoid control blocks nested so deep
    """,
    "-": """
        Great, can you also write unit tests for it?
        there is a bug when the list is empty
        Add support for floats
        How would I call this from the command line?
        Write the same in Rust
        rename the file to utils.py and push it
        Remove the item from the cart when quantity is zero
        Sort the result in descending order
        Use the API key from the environment
        convert the temperature to Fahrenheit before returning it
        Thanks, that looks great!
        It fails for negative numbers, can you fix it?
        What does the second line do?
        Why is it so slow?
        Now write a function that parses a CSV file and returns the mean of each column
        I get a TypeError when I call it with None
        Add a parameter for the currency and convert the result
        Extend it to remove all occurrences if a third parameter is given
        Your answer is wrong.
        ok
        Change the return value to a tuple of name and age
        Return None if the list is empty
        Make it support Unicode input
    """,
}
KINDS = [(kind, text.strip()) for kind, texts in SAID.items() for text in texts.splitlines() if text.strip()]


def test_most_requests_get_their_type_and_few_another() -> None:
    refinements = [(kind, RECOGNISER.kind_of(text)) for kind, text in KINDS if kind != "-"]
    typed = [(kind, found) for kind, found in refinements if found]
    assert len(refinements) > 100
    assert sum(kind == found for kind, found in typed) >= 0.95 * len(typed), "precision"
    assert sum(kind == found for kind, found in refinements) >= 0.75 * len(refinements), "recall"


def test_thanks_questions_and_other_behaviour_get_no_type() -> None:
    found = [RECOGNISER.kind_of(text) for kind, text in KINDS if kind == "-"]
    assert len(found) > 20 and not any(found)


def test_every_text_of_the_pool_gets_its_own_type_in_any_setting() -> None:
    for one in AUDIT_POOL:
        for text in (one.text, one.text.upper(), f"Great!\n{one.text}\nKeep the behaviour as it is."):
            assert RECOGNISER.kind_of(text) == one.kind, text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Do not use recursion.", "semantic/remove"),
        ("Could you please remove all the comments?", "cosmetic/remove"),
        ("Looks good. Rename the variables to descriptive names. Then use recursion.", "cosmetic/modify"),
        ("```python\n# remove all comments\n```\nWhat does this do?", None),
        ("Print 'remove all comments' at the end", None),
        ("", None),
        ("🙂", None),
    ],
)
def test_what_is_asked_counts_and_of_several_requests_the_first(text: str, kind: str | None) -> None:
    assert RECOGNISER.kind_of(text) == kind


@pytest.fixture
def data() -> Path:
    if not (folder := os.environ.get("CODECHAT_TEST_DATA")):
        pytest.skip("CODECHAT_TEST_DATA names the folder of published outputs")
    return Path(folder)


def test_requests_of_published_dialogues(data: Path) -> None:
    """Annotations are refinements of the pool's types, other requirements of CodeIF-Bench ask for other behaviour."""
    with gzip.open(data / "codeif_l1_tasks_v0_93b17ef.jsonl.gz", "rt") as stream:
        tasks = [json.loads(line)["requirements"] for line in stream]
    texts = [(kind, each["requirement"]) for task in tasks for kind, each in task.items()]
    annotated = [RECOGNISER.kind_of(text) for kind, text in texts if kind == "Annotation Coverage"]
    others = [RECOGNISER.kind_of(text) for kind, text in texts if kind != "Annotation Coverage"]
    assert len(annotated) > 40 and annotated.count("cosmetic/add") >= 0.9 * len(annotated)
    assert len(others) > 200 and sum(kind is not None for kind in others) <= 0.02 * len(others)
