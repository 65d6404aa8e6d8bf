"""Processes of the command without the seconds that its imports take.

Each worker of pytest has a server that imports the product once and forks a process
for every command. Such a process is a real one: it has a pid, a working directory,
an environment and files; tests kill it, signal it and wait for it. Two things differ.
It cannot change what an interpreter reads at its start, so `tests.processes` starts
commands with such variables as new interpreters. At its end it does not tear down the
modules, which would copy all their memory.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, NoReturn

from runner.clients.litellm_client import library

LIBRARIES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "textual.app",
)
"""Slow imports that many commands need."""

PACKAGES = ("store", "runner", "jobs", "tui")


class Request(NamedTuple):
    """A command to run."""

    words: list[str]
    cwd: str
    environment: dict[str, str]


_NUMBER = struct.Struct("=i")


class ForkedProcess:
    """A started command: the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after *timeout* seconds.
        """
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if (
            self.returncode is None
            and select.select([self._status], [], [], timeout)[0]
        ):
            (self.returncode,) = _NUMBER.unpack(self._status.recv(_NUMBER.size))
            self._status.close()
        return self.returncode


class ForkServer:
    """Starts commands by forking a process that has imported the product."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
                cwd=Path(__file__).resolve().parent.parent,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def start(
        self, request: Request, *, stdin: int, stdout: int, stderr: int
    ) -> ForkedProcess:
        """Start a command with these file descriptors."""
        status, theirs = socket.socketpair()
        message = json.dumps(request).encode()
        with theirs:
            fds = [stdin, stdout, stderr, theirs.fileno()]
            socket.send_fds(self._socket, [_NUMBER.pack(len(message))], fds)
            self._socket.sendall(message)
        (pid,) = _NUMBER.unpack(status.recv(_NUMBER.size))
        return ForkedProcess(pid, status)

    def close(self) -> None:
        """End the server; commands that still run stay."""
        self._socket.close()
        self._process.wait()


def serve(control: socket.socket) -> None:
    """Fork a process for each request, until the other side closes its socket.

    In the new process this returns, so that it goes on with the command.
    """
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # a terminal sends it to the whole group: it is for the commands
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, read], [], [])
        if read in ready:
            os.read(read, 4096)
            _report(running)
        if control not in ready:
            continue
        head, fds, _, _ = socket.recv_fds(control, _NUMBER.size, 4)
        if not head:
            sys.exit(0)
        request = Request(*json.loads(_whole(control, _NUMBER.unpack(head)[0])))
        status = socket.socket(fileno=fds.pop())
        if pid := os.fork():
            running[pid] = status
            status.sendall(_NUMBER.pack(pid))
            for fd in fds:
                os.close(fd)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (control, status, *running.values()):
            each.close()
        os.close(read)
        os.close(write)
        become(request, fds)
        return


def _report(running: dict[int, socket.socket]) -> None:
    """Send the exit codes of all processes that have ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        # a test need not wait for its process
        with running.pop(pid) as to, suppress(BrokenPipeError):
            to.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _whole(control: socket.socket, size: int) -> bytes:
    """Read a message of that many bytes."""
    parts = bytearray()
    while len(parts) < size:
        parts += control.recv(size - len(parts))
    return bytes(parts)


def become(request: Request, fds: Sequence[int]) -> None:
    """Turn this new process into the requested command."""
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
    for fd in fds:
        if fd > 2:
            os.close(fd)
    environment = request.environment
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(request.cwd)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(
        2, "w", buffering=1, errors="backslashreplace", closefd=False
    )
    sys.argv = request.words
    # where a console script is, instead of the folder that the server started in
    sys.path[0] = str(Path(sys.executable).parent)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    random.seed()


def main() -> NoReturn:
    """Import the product, serve, and be the command in each new process."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in LIBRARIES:
        importlib.import_module(name)
    for top in PACKAGES:
        package = importlib.import_module(top)
        for module in pkgutil.walk_packages(package.__path__, f"{top}."):
            if not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except ImportError:  # of an extra that is not installed
                    continue
    (command,) = entry_points(group="console_scripts", name="siftlog")
    function = command.load()
    library()
    gc.collect()
    gc.freeze()
    serve(control)
    code = _run(function)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(function: Callable[[], object]) -> int:
    """Run a console script; return its exit code as an interpreter does."""
    try:
        function()
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    except BaseException:  # noqa: BLE001 - as an interpreter
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
