"""Inquiries that do to the process that answers them what hostile code might."""

import os
from dataclasses import dataclass
from typing import Any

from codechat.base.errors import UserError
from codechat.studies.multicodeif.constraints import Finding


@dataclass(frozen=True)
class Spins:
    """Never ends."""

    reads_code = True

    @property
    def key(self) -> list[Any]:
        return []

    def find(self) -> Finding:
        while True:
            pass


class Ends(Spins):
    """Ends its process."""

    def find(self) -> Finding:
        os._exit(1)


class Hoards(Spins):
    """Wants more memory than there is for it."""

    def find(self) -> Finding:
        return Finding(True, str(len(bytearray(64 << 30))))


class Fails(Spins):
    """Raises what nobody foresaw."""

    def find(self) -> Finding:
        raise KeyError("surprise")


class Lacks(Spins):
    """Needs what is not installed."""

    def find(self) -> Finding:
        raise UserError("it is not there", "install it")
