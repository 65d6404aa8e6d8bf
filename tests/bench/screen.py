"""The monitor as a person has it: a process of its own on a terminal that is timed."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.processes import SIFTLOG, environment

QUIET_S = 0.15
"""No frame takes such a break; the next look comes later than that."""
PATIENCE_S = 30.0
LOOKS = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
COMPILED = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "siftlog-bench-compiled")),
}
"""Modules are read compiled, as those of an installed package are."""
_HZ = os.sysconf("SC_CLK_TCK")


class Screen:
    """What one process sends to its terminal, and when."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._began = time.perf_counter()
        self.bytes = 0
        self.last_s = 0.0  #: when something came last

    def now_s(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self._began

    def until(self, mark: bytes) -> float:
        """Seconds from the start until *mark* was there."""
        seen, end = b"", self.now_s() + PATIENCE_S
        while mark not in seen:
            if self.now_s() > end:
                raise RuntimeError(f"{mark!r} never came, but {seen[-2000:]!r}")
            seen += self._more(PATIENCE_S)
        return self.last_s

    def settled(self) -> float:
        """When the frame was whole: after it nothing came for a while."""
        while self._more(QUIET_S):
            pass
        return self.last_s

    def type(self, keys: str) -> float:
        """Press keys; when that was."""
        began = self.now_s()
        os.write(self._master, keys.encode())
        return began

    def keyed(self, key: str) -> float:
        """Milliseconds from a key to the last byte of what it brought about."""
        self.settled()
        began = self.type(key)
        if not self._more(PATIENCE_S):
            raise RuntimeError(f"{key!r} changed nothing")
        return (self.settled() - began) * 1000

    def drained(self) -> None:
        """From now on somebody else reads what it sends, and throws it away."""
        drain = threading.Thread(target=self._drain, daemon=True)
        drain.start()

    def _drain(self) -> None:
        while self._more(PATIENCE_S):
            pass

    def left(self) -> None:
        """Detach, and wait until the process is gone."""
        self.type("q")
        while self.process.poll() is None:
            self._more(QUIET_S)

    def watched(self, seconds: float) -> tuple[float, float]:
        """Share of a core and bytes a second, while it goes on like this."""
        began, before, cpu = self.now_s(), self.bytes, self.cpu_s()
        while (left := began + seconds - self.now_s()) > 0:
            self._more(left)
        took = self.now_s() - began
        return (self.cpu_s() - cpu) / took, (self.bytes - before) / took

    def cpu_s(self) -> float:
        """Seconds of processor that it has used."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text("ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / _HZ

    def rss_mib(self) -> float:
        """Memory that it has now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        (line,) = (row for row in status.splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def _more(self, patience_s: float) -> bytes:
        ready, _, _ = select.select([self._master], [], [], patience_s)
        if not ready:
            return b""
        try:
            more = os.read(self._master, 1 << 16)
        except OSError:  # the process has left it
            return b""
        self.bytes += len(more)
        self.last_s = self.now_s()
        return more


WATCH = (SIFTLOG, "watch")
TIMED = (sys.executable, "-m", "tests.bench.timed_watch")


@contextmanager
def screen(
    *words: object,
    command: Sequence[object] = WATCH,
    columns: int = 120,
    lines: int = 40,
) -> Iterator[Screen]:
    """The monitor with *words* on a terminal of that size."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (lines, columns))
    process = subprocess.Popen(
        [*map(str, command), *map(str, words)],
        env=environment(LOOKS | COMPILED),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Screen(process, master)
    finally:
        process.kill()
        process.wait(20)
        os.close(master)
