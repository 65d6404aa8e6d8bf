"""Commands on a terminal of their own, which can be closed under them."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import SIFTLOG, environment


class Terminal:
    """A pseudo-terminal and the process that leads its session."""

    def __init__(self, process: int, master: int) -> None:
        self.process = process
        self._master: int | None = master
        self.shown = b""

    def read_until(self, text: bytes) -> bytes:
        """What was shown, up to *text* at least; all of it if it ends before."""
        while text not in self.shown and self._master is not None:
            try:
                more = os.read(self._master, 4096)
            except OSError:  # everybody has gone
                more = b""
            if not more:
                break
            self.shown += more
        return self.shown

    def hang_up(self) -> None:
        """Close the terminal, as a broken ssh connection does."""
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def wait(self) -> int:
        """The exit code of the session's leader."""
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@contextmanager
def on_terminal(words: Sequence[object], *, cwd: Path) -> Iterator[Terminal]:
    """Run a command line of the shell on a terminal; SIFTLOG stands for the command."""
    line = " ".join(map(str, words)).replace("SIFTLOG", str(SIFTLOG))
    process, master = pty.fork()
    if process == 0:
        os.chdir(cwd)
        shell = ["bash", "-c", line]
        os.execve("/bin/bash", shell, environment(None))  # noqa: S606 - it is the shell
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        terminal.hang_up()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(process, 9)
            os.waitpid(process, 0)
