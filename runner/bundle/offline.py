"""Takes the network away from this process, for good.

An audit hook (PEP 578) is asked before Python makes a socket, resolves a name, or
starts another program, and cannot be taken out again. It is no prison for hostile code:
what runs here is installed code, which is to be seen needing no network.
"""

from __future__ import annotations

import errno
import sys

_PROGRAMS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
"""Whoever starts a program might have that one open a socket."""


def go_offline() -> None:
    """From now on every socket and every program is refused with a PermissionError."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    del arguments
    if event.startswith("socket.") or event in _PROGRAMS:
        raise PermissionError(errno.EPERM, f"{event} while a scorecard is made again")
