"""Processes of the command without the seconds that its imports take.

The workers of pytest share a server that imports the product once, which takes seconds,
and forks a process for every command. Such a process is a real one: it has a pid, a
working directory, an environment and files; tests kill it, signal it and wait for it.
Two things differ. It cannot change what an interpreter reads at its start, so
`tests.processes` starts commands with such variables as new interpreters. At its end it
does not tear down the modules, which would copy all their memory.
"""

from __future__ import annotations

import atexit
import fcntl
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple, NoReturn

from jobs.property_extraction.values.unit_reader import pint_unit
from runner.clients.litellm_client import library
from runner.fingerprint import code_fingerprint
from runner.registry import job_names, load_job

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
_STANDING_IN = Path(__file__).with_name("forked_command.py")


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
    """Starts commands by forking a process that has imported the product.

    The first process of a session that asks for one starts the server, and it ends
    after the last one.
    """

    def __init__(self, session: str) -> None:
        self._address = address = f"{gettempdir()}/siftlog-forks-{session}"
        self._socket = socket.socket(socket.AF_UNIX)
        with _alone():
            try:
                self._socket.connect(address)
            except (ConnectionRefusedError, FileNotFoundError):
                _start_server(address)
                self._socket.connect(address)
        atexit.register(self._socket.close)

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

    def write_command(self, path: Path, name: str) -> None:
        """Write a shell script that starts the command *name* with its own words."""
        path.write_text(
            "#!/bin/sh\n"
            f'exec {sys.executable} -IS {_STANDING_IN} {self._address} {name} "$@"\n'
        )
        path.chmod(0o755)


@contextmanager
def _alone() -> Iterator[None]:
    """Nobody else connects to a server, or ends one, meanwhile."""
    with Path(gettempdir(), f"siftlog-forks-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start_server(address: str) -> None:
    Path(address).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", str(listener.fileno())],
            cwd=Path(__file__).resolve().parent.parent,
            # what a test installs there is for its own commands
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
        )
        server.returncode = 0  # it may outlive this process, which waits for it never


def serve(listener: socket.socket) -> None:
    """Fork a process for each request, until all sockets are closed at the other side.

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
    clients: list[socket.socket] = []
    while True:
        ready = select.select([listener, read, *clients], [], [])[0]
        if read in ready:
            os.read(read, 4096)
            _report(running)
        if listener in ready:
            clients.append(listener.accept()[0])
        for client in [client for client in clients if client in ready]:
            asked = _asked(client)
            if asked is None:
                clients.remove(client)
                client.close()
                if not clients:
                    _end(listener)
                continue
            request, fds = asked
            status = socket.socket(fileno=fds.pop())
            if pid := os.fork():
                running[pid] = status
                with suppress(BrokenPipeError):  # a test that ran out of time is gone
                    status.sendall(_NUMBER.pack(pid))
                for fd in fds:
                    os.close(fd)
                continue
            _leave(read, write, listener, *clients, status, *running.values())
            become(request, fds)
            return


def _asked(client: socket.socket) -> tuple[Request, list[int]] | None:
    """Return a request and its file descriptors; None where the other side is gone."""
    head, fds, _, _ = socket.recv_fds(client, _NUMBER.size, 4)
    if not head:
        return None
    return Request(*json.loads(_whole(client, _NUMBER.unpack(head)[0]))), fds


def _leave(read: int, write: int, *sockets: socket.socket) -> None:
    """Let go, in a new process, of what the server has."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for each in sockets:
        each.close()
    os.close(read)
    os.close(write)


def _end(listener: socket.socket) -> None:
    """End the server, unless somebody has just connected; commands that run stay."""
    with _alone():
        if not select.select([listener], [], [], 0)[0]:
            Path(listener.getsockname()).unlink()
            sys.exit(0)


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
    listener = socket.socket(fileno=int(sys.argv[1]))
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
    with suppress(ImportError):  # of an extra that is not installed
        pint_unit("m")  # loads the definitions of all units
    for name in job_names():  # commands look only whether these files have changed
        code_fingerprint(load_job(name))
    gc.collect()
    gc.freeze()
    serve(listener)
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
