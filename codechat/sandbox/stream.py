"""Turns a child's byte stream into frames, and refuses malformed streams."""

from collections.abc import Iterator

from codechat.sandbox.inside import wire

LONGEST = wire.DIGEST_OVER + 64 * 1024


class Malformed(ValueError):
    """The stream does not consist of frames."""


class Frames:
    """Collects bytes and yields whole frames. Holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.printed = 0  # bytes printed before the latest frame

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that `data` completes, as (kind, payload); raises `Malformed`."""
        self._data += data
        at = 0
        try:
            while len(self._data) - at >= wire.HEADER.size:
                kind, size, printed = wire.HEADER.unpack_from(self._data, at)
                if size > LONGEST:
                    raise Malformed(f"a frame of {size} bytes")
                end = at + wire.HEADER.size + size
                if end > len(self._data):
                    break
                payload = bytes(self._data[at + wire.HEADER.size : end])
                at = end
                self.printed = printed
                yield kind, payload
        finally:
            del self._data[:at]
