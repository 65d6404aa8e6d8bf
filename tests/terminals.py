"""Commands on a terminal of their own, which can be closed under them."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.processes import SIFTLOG, environment

LEAD = """
import fcntl, os, signal, sys, termios
os.setsid()
for number in (signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv("/bin/bash", ["bash", "-c", sys.argv[1]])
"""
"""Makes the terminal its own before it becomes the shell; a fork of this process, with
whatever threads it has, is what `pty.fork` would be. Signals mean what they mean on a
new terminal, also where the suite was started by nohup."""

WATCH = "import sys, tui.watch as w; sys.exit(w.watch.main(standalone_mode=0))"
"""The verb watch alone, for `python -c`: it starts sooner than the command."""


class Terminal:
    """A pseudo-terminal and the process that leads its session."""

    def __init__(self, leader: subprocess.Popen[bytes], master: int) -> None:
        self.leader = leader
        self._master: int | None = master
        self.shown = b""

    def read_until(self, text: bytes, after: int = 0) -> bytes:
        """What was shown, up to *text* at least; all of it if it ends before.

        Of the first *after* bytes nothing is looked at.
        """
        while text not in self.shown[after:] and self._master is not None:
            try:
                more = os.read(self._master, 4096)
            except OSError:  # everybody has gone
                more = b""
            if not more:
                break
            self.shown += more
        return self.shown

    def type(self, text: bytes) -> None:
        """Press keys."""
        if self._master is not None:
            os.write(self._master, text)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size; whoever is in front is told by a signal."""
        if self._master is not None:
            size = struct.pack("HHHH", lines, columns, 0, 0)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def hang_up(self) -> None:
        """Close the terminal, as a broken ssh connection does."""
        if self._master is not None:
            os.close(self._master)
            self._master = None


@contextmanager
def on_terminal(words: Sequence[object], *, cwd: Path) -> Iterator[Terminal]:
    """Run a command line of the shell on a terminal; SIFTLOG stands for the command."""
    line = " ".join(map(str, words)).replace("SIFTLOG", str(SIFTLOG))
    master, slave = pty.openpty()
    leader = subprocess.Popen(
        [sys.executable, "-c", LEAD, line],
        cwd=cwd,
        env=environment(None),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    terminal = Terminal(leader, master)
    try:
        yield terminal
    finally:
        terminal.hang_up()
        leader.kill()
        leader.wait(20)
