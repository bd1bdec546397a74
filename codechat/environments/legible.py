"""What a command printed, as text that a model can read and a record can hold."""

import codecs

from codechat.texts import visible


def legible(head: bytes, tail: bytes, total: int, kept_kb: int) -> str:
    r"""The head and the tail of an output of `total` bytes, with what is left out stated between them.

    Bytes that are no UTF-8 and characters that are hidden, or that a terminal obeys, are shown by their codes
    (`\xff`, `\x1b`); a carriage return before a line end is left out.
    """
    left_out = total - len(head) - len(tail)
    if left_out <= 0:
        return _shown((head + tail).decode("utf-8", "backslashreplace"))
    first = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(head)  # without a character cut in two
    start = next((place for place in range(min(4, len(tail))) if tail[place] & 0xC0 != 0x80), 0)
    last = tail[start:].decode("utf-8", "backslashreplace")
    note = f"[{left_out:,} bytes left out: of an output the first and the last {kept_kb / 2:g} KiB are kept]"
    return f"{_shown(first)}\n{note}\n{_shown(last)}"


def _shown(text: str) -> str:
    return visible(text.replace("\r\n", "\n"))
