"""Forks rooms out of one process that has loaded their code, since loading takes longer than all else of a room.

Whoever started it asks by one byte, with the handles of the room's control socket and of a file for its errors, and is
answered by a handle of the room's process. When it hangs up, this process ends. Each room ends when its own socket is
hung up: an engine that is killed leaves none.
"""

import contextlib
import gc
import os
import socket
from typing import NoReturn

from codechat.environments.inside import starter


def main() -> NoReturn:
    """Fork a room for each request at standard input."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    gc.disable()  # a collection would copy memory that rooms share with this process
    while True:
        asked, handles, _, _ = socket.recv_fds(control, 1, 2)
        if not asked:
            os._exit(0)
        _reap()
        child = os.fork()
        if child == 0:
            control.close()
            _become(*handles)
        ended = os.pidfd_open(child)  # not reaped before the next request, so it is still there
        socket.send_fds(control, [asked], [ended])
        for handle in (*handles, ended):
            os.close(handle)


def _become(room: int, errors: int) -> NoReturn:
    """Never returns: from here on this process is a room's."""
    try:
        os.dup2(errors, 2)
        os.close(errors)
        starter.furnish_and_serve(socket.socket(fileno=room))
    except BaseException:  # noqa: BLE001  nothing may run past this point
        import traceback

        traceback.print_exc()
        os._exit(1)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
