"""Tasks that read small languages."""

import re

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[("1h30m",), ("45s",), ("",), ("2d",), ("10m5",)],
    plus=[
        ("1d2h3m4s",), ("0s",), ("30m1h",), ("1h1h",), ("h",), ("90m",), ("1 h",), ("-5m",), ("1H",), ("100000s",),
        ("5",),
        ("1h30",), ("1d1s",), ("3m4s",), ("1h2s",), ("1.5h",), ("1m1d",), ("1s1s",), ("01m",), ("1hx",), ("4s3m",),
    ],
)  # fmt: skip
def parse_duration(text: str) -> int:
    """Return the number of seconds in a duration such as '1h30m', or -1 where the text is not one.

    A duration is a sequence of whole numbers with a unit after each: d, h, m or s (days, hours, minutes, seconds),
    larger units first, none twice. An empty text is not a duration.

    >>> parse_duration("1h30m")
    5400
    >>> parse_duration("45s")
    45
    >>> parse_duration("30m1h")
    -1
    """
    match = re.fullmatch(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if match is None or text == "":
        return -1
    days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@topic.task(
    base=[("3 4 +",), ("5 1 2 + 4 * + 3 -",), ("7",), ("+",), ("1 2",)],
    plus=[
        ("",), ("2 3 -",), ("3 2 -",), ("-4 2 *",), ("1 +",), ("1 2 + +",), ("1 2 3 + +",), ("x",), ("1 x +",),
        ("0 0 *",),
        ("10 2 8 * + 3 -",), ("1 2 /",), ("  6   7  *  ",), ("99999999999 99999999999 *",), ("--1",), ("1 1 1",),
        ("2 -3 +",),
        ("1 - 2",),
    ],
)  # fmt: skip
def evaluate_postfix(expression: str) -> int | None:
    """Evaluate an expression in postfix notation: whole numbers and the operators +, - and *, with spaces between.

    The result is None where a token is neither, an operator lacks operands, or not exactly one value is left.

    >>> evaluate_postfix("3 4 +")
    7
    >>> evaluate_postfix("2 3 -")
    -1
    >>> evaluate_postfix("1 2") is None
    True
    """
    stack: list[int] = []
    for token in expression.split():
        if token in ("+", "-", "*"):
            if len(stack) < 2:
                return None
            right = stack.pop()
            left = stack.pop()
            if token == "+":
                stack.append(left + right)
            elif token == "-":
                stack.append(left - right)
            else:
                stack.append(left * right)
        elif re.fullmatch(r"-?[0-9]+", token):
            stack.append(int(token))
        else:
            return None
    return stack[0] if len(stack) == 1 else None


@topic.task(
    base=[("a=1&b=2",), ("a=1&a=2",), ("",), ("q=two+words",)],
    plus=[
        ("a",), ("a=",), ("=1",), ("a=1=2",), ("&&a=1&",), ("a+b=c",), ("a=1&b=2&a=3",), ("é=ü",), ("a=+",),
        ("x&x&y=",),
        ("=",), ("&",), ("a=b+c+d&e=f",), ("A=1&a=2",), ("=&k=v",),
    ],
)  # fmt: skip
def parse_query(query: str) -> dict[str, list[str]]:
    """Read the query part of a web address, such as 'a=1&b=2', into a dictionary from a name to its values.

    Pairs are separated by '&'; a pair is split at its first '='; without one its value is an empty string. Every
    '+' stands for a space. Values keep their order; pairs with an empty name are ignored.

    >>> parse_query("a=1&b=2&a=3")
    {'a': ['1', '3'], 'b': ['2']}
    >>> parse_query("q=two+words")
    {'q': ['two words']}
    """
    values: dict[str, list[str]] = {}
    for pair in query.split("&"):
        name, _, value = pair.replace("+", " ").partition("=")
        if name:
            values.setdefault(name, []).append(value)
    return values


@topic.task(
    base=[("a,b,c",), ('"x,y",z',), ("",), ('"say ""hi""",1',)],
    plus=[
        (",",), (",,",), ('""',), ('"a"',), ('a"b"c,d',), ('"a""b"',), ("a, b ,c",), ('"",""',), ('"é,ü",ß',),
        ('"""",x',),
        ("one",), ('x,"1,2,3",y',), ('"a,b","c,d"',), ("trailing,",), (",leading",), ('""""""',), ('"a""",b',),
    ],
)  # fmt: skip
def split_csv_line(line: str) -> list[str]:
    """Split a line of comma-separated values into its fields.

    Double quotes switch quoting on and off and are dropped; a comma within quotes belongs to its field. Two double
    quotes in a row within quotes stand for one. Spaces are kept.

    >>> split_csv_line("a,b,c")
    ['a', 'b', 'c']
    >>> split_csv_line('"x,y",z')
    ['x,y', 'z']
    >>> split_csv_line('"a ""b"" c",1')
    ['a "b" c', '1']
    """
    fields = []
    field = ""
    quoted = False
    position = 0
    while position < len(line):
        character = line[position]
        if character == '"':
            if quoted and line[position + 1 : position + 2] == '"':
                field += '"'
                position += 1  # the second of the two
            else:
                quoted = not quoted
        elif character == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += character
        position += 1
    fields.append(field)
    return fields


@topic.task(
    base=[("1-3,7",), ("5",), ("",), ("4-2",)],
    plus=[
        ("1-1",), ("1-2,2-3",), ("9-8,1",), ("0",), ("0-3",), ("10-12",), ("1,,2",), (" 1 - 3 , 5 ",), ("7,7,7",),
        (",",),
        ("100-98,5-6",), ("3-1,1-3",), (" ",), ("20-25,24",), ("2-0",),
    ],
)  # fmt: skip
def expand_ranges(text: str) -> list[int]:
    """Expand a list of page ranges such as '1-3,7' into page numbers.

    Parts are separated by commas; a part is a number or two numbers with '-' between, both included, counted down
    where the second is smaller. White space does not matter; empty parts are ignored.

    >>> expand_ranges("1-3,7")
    [1, 2, 3, 7]
    >>> expand_ranges("4-2")
    [4, 3, 2]
    """
    pages: list[int] = []
    for part in text.split(","):
        if not part.strip():
            continue
        first, _, last = part.partition("-")
        begin = int(first)
        end = int(last) if last else begin
        step = 1 if begin <= end else -1
        pages.extend(range(begin, end + step, step))
    return pages


@topic.task(
    base=[("1.2.3", "1.2.4"), ("1.10", "1.9"), ("1.0", "1"), ("2.0-beta", "2.0")],
    plus=[
        ("1", "1"), ("0", "0.0.0"), ("1.0.1", "1"), ("1-alpha", "1-beta"), ("1-beta", "1-alpha"), ("1-rc", "1-rc"),
        ("1", "1-rc"), ("10", "9"), ("1.2", "1.2.0.1"), ("01.2", "1.2"), ("1.0-a", "1-a"), ("3.1-x", "3.0"),
        ("2.9", "3.0-a"),
        ("1.0-rc", "1.0.1-rc"), ("0.9", "0.10"),
    ],
)  # fmt: skip
def compare_versions(left: str, right: str) -> int:
    """Compare two version numbers: -1 where the left one is older, 1 where it is newer, 0 where they are equal.

    A version is whole numbers with dots between, compared one after the other as numbers; missing ones count as 0.
    A suffix after '-' marks a preview, which is older than the version without suffix; of two suffixes the one that
    comes first in the alphabet is older.

    >>> compare_versions("1.10", "1.9")
    1
    >>> compare_versions("2.0-beta", "2.0")
    -1
    >>> compare_versions("1.0", "1")
    0
    """

    def key(version: str) -> tuple[list[int], bool, str]:
        numbers, _, suffix = version.partition("-")
        parts = [int(part) for part in numbers.split(".")]
        while parts and parts[-1] == 0:
            parts.pop()
        return (parts, suffix == "", suffix)

    older, newer = key(left), key(right)
    if older == newer:
        return 0
    return -1 if older < newer else 1
