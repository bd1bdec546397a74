"""Tasks on strings."""

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[("password", 1), ("secret", 2), ("ab", 1), ("", 3)],
    plus=[
        ("abc", 1), ("abcd", 2), ("abcde", 2), ("abcdef", 3), ("abcdefg", 3), ("a", 1), ("a", 0), ("hello", 0),
        ("", 0), ("naïveté", 2), ("日本語テキスト", 1), ("two words", 2), ("*****", 1), ("aaaa", 5), ("x" * 30, 4),
        ("tab\there", 1), ("12345678", 4), ("123456789", 4),
    ],
)  # fmt: skip
def mask_middle(word: str, keep: int) -> str:
    """Hide the middle of a word: keep its first and last `keep` characters and replace every other one by '*'.

    A word with no more than 2 * keep characters is returned unchanged.

    >>> mask_middle("password", 1)
    'p******d'
    >>> mask_middle("secret", 2)
    'se**et'
    >>> mask_middle("abc", 2)
    'abc'
    """
    hidden = len(word) - 2 * keep
    if hidden <= 0:
        return word
    # a slice from -0 would be the whole word, so the tail is taken from the front
    return word[:keep] + "*" * hidden + word[keep + hidden :]


@topic.task(
    base=[("ada king lovelace",), ("Jean-Luc Picard",), ("",), ("plato",)],
    plus=[
        ("  many   spaces  here ",), ("-",), ("a-b-c",), ("émile zola",), ("A",), ("mary-ann o-brien smith",),
        ("x y z w",), ("--double dash",), ("trailing- dash",), ("one\ttwo\nthree",), ("ßeta max",), ("1st place",),
        (" ",), ("UPPER CASE",), ("Müller-lüdenscheidt",),
    ],
)  # fmt: skip
def name_initials(name: str) -> str:
    """Return the initials of a name in upper case, each followed by a period.

    Words are separated by white space. A word with hyphens gives one initial for each of its non-empty parts;
    those are joined by hyphens, and a single period ends the word. A word without any part gives nothing.

    >>> name_initials("ada king lovelace")
    'A.K.L.'
    >>> name_initials("Jean-Luc Picard")
    'J-L.P.'
    >>> name_initials("")
    ''
    """
    result = ""
    for word in name.split():
        letters = [part[0].upper() for part in word.split("-") if part]
        if letters:
            result += "-".join(letters) + "."
    return result


@topic.task(
    base=[("the quick brown fox", 10), ("a b c", 1), ("", 5), ("extraordinary day", 6)],
    plus=[
        ("aa bb cc", 5), ("aa bb cc", 4), ("aa bb cc", 8), ("aa bb cc", 7), ("   ", 3), ("one", 3), ("one", 2),
        ("one two", 7), ("one two", 6), ("spaces    between   words", 12), ("line\nbreaks count as spaces", 11),
        ("über größe straße", 10), ("x " * 20, 7), ("long longer longest", 100), ("tiny gigantically tiny", 4),
    ],
)  # fmt: skip
def wrap_words(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters, putting as many words on each line as fit.

    Words are separated by any white space and joined by single spaces. A word longer than `width` gets a line of
    its own and is not cut.

    >>> wrap_words("the quick brown fox", 10)
    ['the quick', 'brown fox']
    >>> wrap_words("extraordinary day", 6)
    ['extraordinary', 'day']
    >>> wrap_words("", 5)
    []
    """
    lines: list[str] = []
    current = ""
    for word in text.split():
        if not current:
            current = word
        elif len(current) + 1 + len(word) <= width:
            current = current + " " + word
        else:
            lines.append(current)
            current = word
    if current:
        lines.append(current)
    return lines


@topic.task(
    base=[("aaabccdddd", 2), ("aaa", 1), ("", 2), ("abc", 3)],
    plus=[
        ("aaa", 0), ("aaaa", 4), ("aaaa", 3), ("aabbaa", 1), ("  double  spaces  ", 1), ("ééé", 2), ("AaAa", 1),
        ("111222", 2), ("x" * 50, 7), ("\n\n\n", 1), ("abababab", 1), ("aab", 2), ("baa", 1), ("zzzyyyzzz", 2),
        ("a", 1),
    ],
)  # fmt: skip
def limit_repeats(text: str, limit: int) -> str:
    """Shorten every run of one repeated character to at most `limit` characters.

    Upper and lower case are different characters.

    >>> limit_repeats("aaabccdddd", 2)
    'aabccdd'
    >>> limit_repeats("  so   far", 1)
    ' so far'
    """
    kept: list[str] = []
    previous = None
    run = 0
    for character in text:
        run = run + 1 if character == previous else 1
        previous = character
        if run <= limit:
            kept.append(character)
    return "".join(kept)


@topic.task(
    base=[("red\ngreen", 1), ("only", 10), ("", 1), ("a\nb\nc", 9)],
    plus=[
        ("a\nb", 99), ("a\nb", 98), ("a\n\nb", 1), ("\n", 1), ("a\nb\nc", 0), ("x\n" * 10, 1), ("x\n" * 11, 1),
        ("a\nb", 999), ("  indented\n\ttab", 5), ("ünï\ncödé", 1), ("last line\n", 3), ("a\nb\nc\nd", 7), ("1\n2", 10),
    ],
)  # fmt: skip
def number_lines(text: str, start: int) -> str:
    """Put a line number and ': ' before each line of a text, counting up from `start`.

    The numbers are padded with spaces on the left to the width of the largest. Lines are separated by a newline
    character; an empty text is one empty line.

    >>> number_lines("red\\ngreen", 1)
    '1: red\\n2: green'
    >>> number_lines("a\\nb\\nc", 9)
    ' 9: a\\n10: b\\n11: c'
    """
    lines = text.split("\n")
    width = len(str(start + len(lines) - 1))
    return "\n".join(f"{number:>{width}}: {line}" for number, line in enumerate(lines, start))


@topic.task(
    base=[("abc", "12"), ("", "xyz"), ("same", ""), ("ab", "cd")],
    plus=[
        ("", ""), ("a", "b"), ("abc", "123"), ("a", "12345"), ("12345", "a"), ("éà", "ôû"), ("  ", "xx"), ("AB", "ab"),
        ("long string", "s"), ("😀😀", "ab"), ("x" * 20, "y" * 10), ("\n", "\t"), ("aa", "aaa"),
    ],
)  # fmt: skip
def interleave(first: str, second: str) -> str:
    """Take characters from two strings in turn, beginning with the first; what is left of the longer one follows.

    >>> interleave("abc", "12")
    'a1b2c'
    >>> interleave("", "xyz")
    'xyz'
    """
    mixed = ""
    position = 0
    while position < len(first) or position < len(second):
        if position < len(first):
            mixed += first[position]
        if position < len(second):
            mixed += second[position]
        position += 1
    return mixed
