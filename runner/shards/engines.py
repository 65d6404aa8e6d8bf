"""Places processes of shards: the engine interface and the local engine.

An engine places, waits and stops. It restarts nothing by itself: only the supervisor
knows when a shard may run again (`runner.shards.supervisor`).

A local process is tied to its parent by a pipe (`runner.shards.child`), so no orphans
remain.
"""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from itertools import count
from pathlib import Path
from string import Template
from typing import Final, Literal, Protocol, TypeAlias

from runner.errors import RunnerError
from runner.shards.lease_protocol import TTL_S
from store.read.status import Status
from store.runs import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSpec:
    """One shard of a run, as an engine starts it on some machine."""

    run_id: str
    index: int  #: counted from 0
    count: int
    words: tuple[str, ...]  #: what follows `siftlog`, but for `--config`
    config: str  #: the run's resolved configuration, TOML
    environment: tuple[str, ...] = ()
    """Names of variables that are passed on from the process that places.

    All others are those of the machine on which the shard runs, keys above all.
    """
    runs_dir: Path  #: folder of the runs, if all machines share it
    local_dir: str | None = None
    """Folder of the runs on a disk of the shard's machine; `$NAME` in it is a variable
    of that machine."""

    @property
    def name(self) -> str:
        """What people call it: its place among all, such as `0/4`."""
        return f"{self.index}/{self.count}"

    @property
    def local_runs_dir(self) -> Path | None:
        """What `local_dir` comes to on this machine.

        Raises:
            OSError: it names a variable that is not set here.
        """
        if self.local_dir is None:
            return None
        try:
            return Path(Template(self.local_dir).substitute(os.environ))
        except (KeyError, ValueError) as error:
            raise OSError(
                f"--local-dir {self.local_dir} names a variable that is not set"
            ) from error

    @property
    def folder(self) -> Path:
        """The run's, on this machine; what the shard says on stderr goes there."""
        return (self.local_runs_dir or self.runs_dir) / self.run_id

    @property
    def diagnostics(self) -> Path:
        """Where all of its processes have said what they said."""
        return RunFolder(self.folder).shard(self.index, self.count).diagnostics

    @property
    def configuration(self) -> Path:
        """Where its configuration is written before it starts."""
        return self.folder / f"run.{self.index}-{self.count}.toml"


EngineName: TypeAlias = Literal["processes", "ray"]
"""What people call an engine."""

LOOPBACK: Final = "127.0.0.1"
"""Where shards of one machine reach it."""


class ExitKind(Enum):
    """In which way a placed shard came to its end."""

    FINISHED = "finished"  #: its process ended by itself, with an exit code
    DIED = "died"  #: it is certain that its process is no more
    UNAVAILABLE = "unavailable"  #: nobody can say; it may still be at work


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHandle:
    """One process of a shard, as its engine knows it."""

    index: int  #: of the shard
    number: int  #: of the placement, unique in its engine


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardExit:
    """How one placed process ended."""

    handle: ShardHandle
    kind: ExitKind
    code: int | None = None  #: the exit code, negative for a signal; None: unknown
    last_line: str = ""  #: the last line that it said


class ShardEngine(Protocol):
    """Starts shards somewhere and knows when they end; calls may block."""

    @property
    def host(self) -> str:
        """The address of this machine under which its shards reach it."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether shards may come to lie on other machines than this one."""
        ...

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        """Start a shard.

        Args:
            spec: the shard.
            near: a placement that has ended, whose machine is preferred: the shard's
                log lies there.

        Raises:
            RunnerError: it cannot be started, in one sentence.
        """
        ...

    def wait_any(self, timeout_s: float) -> ShardExit | None:
        """The next end of a placed shard, each told once; None if none came in time."""
        ...

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        """Let a shard finish its calls in flight and end, or kill it; returns at once.

        Its end is told by `wait_any`, as always; of one that was killed perhaps only
        that it is out of reach. Nothing happens if it has ended.
        """
        ...

    def close(self) -> None:
        """Give up what the engine holds; whatever is still placed is killed."""
        ...


OPTION: Final = "SIFTLOG_"
"""Variables that set an option begin so; a shard's options stand in its `config`."""

TAIL_BYTES: Final = 4096
"""In which the last line of the diagnostics lies; sentences are shorter."""


class ShardProcess:
    """A shard at work on this machine."""

    def __init__(
        self, spec: ShardSpec, passed_on: Mapping[str, str], *, orphaned: signal.Signals
    ) -> None:
        """Start it, in a session of its own: no terminal's Ctrl-C reaches it.

        Args:
            spec: the shard.
            passed_on: values of the variables that `spec.environment` names.
            orphaned: what it is sent when the present process is no more.

        Raises:
            OSError: its folder cannot be written, or is not known here.
        """
        self._spec = spec
        spec.folder.mkdir(parents=True, exist_ok=True)
        spec.configuration.write_text(spec.config, "utf-8")
        local_runs_dir = spec.local_runs_dir
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(OPTION)}
        with spec.diagnostics.open("ab") as diagnostics:
            self._process = subprocess.Popen(  # noqa: S603 - the project's own command
                [
                    *(sys.executable, "-m", "runner.shards.child", orphaned.name),
                    *spec.words,
                    *(
                        []
                        if local_runs_dir is None
                        else [f"--local-dir={local_runs_dir}"]
                    ),
                    f"--config={spec.configuration}",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=diagnostics,
                env={**inherited, **passed_on},
                start_new_session=True,
            )

    def wait(self) -> tuple[ExitKind, int, str]:
        """Wait for its end: in which way, the code, and the last line it said."""
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        kind = ExitKind.FINISHED if code >= 0 else ExitKind.DIED
        return kind, code, self._last_line()

    def drain(self) -> None:
        """Ask it to finish its calls in flight and to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once, even while it is stopped."""
        self._process.kill()

    def _last_line(self) -> str:
        with self._spec.diagnostics.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class ProcessEngine:
    """Starts every shard here; one whose starter dies finishes its calls and ends."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Nothing is placed yet.

        Args:
            environment: has the values of the variables that shards are passed.
        """
        self._environment = environment
        self._numbers = count()
        self._placed: dict[ShardHandle, ShardProcess] = {}
        self._ends: queue.SimpleQueue[ShardExit] = queue.SimpleQueue()

    @property
    def host(self) -> str:
        """Loopback: nobody else is to reach this machine."""
        return LOOPBACK

    @property
    def is_spread(self) -> bool:
        """Never."""
        return False

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        """Start a shard; every place here is near.

        Raises:
            RunnerError: the run's folder cannot be written.
        """
        del near
        handle = ShardHandle(index=spec.index, number=next(self._numbers))
        passed_on = {name: self._environment[name] for name in spec.environment}
        try:
            process = ShardProcess(spec, passed_on, orphaned=signal.SIGTERM)
        except OSError as error:
            raise RunnerError(
                f"Shard {spec.name} cannot be started: {error}; check the folder."
            ) from error
        self._placed[handle] = process
        threading.Thread(target=self._await, args=(handle, process)).start()
        return handle

    def _await(self, handle: ShardHandle, process: ShardProcess) -> None:
        kind, code, last_line = process.wait()
        self._ends.put(
            ShardExit(handle=handle, kind=kind, code=code, last_line=last_line)
        )

    def wait_any(self, timeout_s: float) -> ShardExit | None:
        """The next end of a process; None if none came in time."""
        try:
            ended = self._ends.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._placed.pop(ended.handle, None)
        return ended

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        """Signal a shard's process, which it alone gets."""
        process = self._placed.get(handle)
        if process is None:
            return
        if at_once:
            process.kill()
        else:
            process.drain()

    def close(self) -> None:
        """Kill what is still at work."""
        for process in self._placed.values():
            process.kill()
        self._placed.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Into how many shards a run is split, and how these are placed."""

    engine: EngineName
    shards: int
    address: str | None = None  #: of the engine's cluster
    ttl_s: float = TTL_S  #: for how long a shard may be silent
    local_dir: str | None = None  #: of a disk of each shard's machine; may hold `$NAME`
    ship: str | None = None  #: where the shards carry their logs to
    ship_every_s: float = 5.0  #: how long what is recorded may wait for that
    accept_loss: bool = False  #: shards go on though acknowledged events are missing

    @property
    def words(self) -> str:
        """What is typed to place the run so once more."""
        all_options = {
            "engine": self.engine,
            "shards": self.shards,
            "address": self.address,
            "local-dir": self.local_dir,
            "ship": self.ship,
        }
        options = {
            name: value for name, value in all_options.items() if value is not None
        }
        return " ".join(
            f"--{name} {shlex.quote(str(value))}" for name, value in options.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRunStatus:
    """How a run that is placed gets on."""

    status: Status | None  #: of the union; None: no shard has written yet
    at_work: int  #: shards that were not silent of late
    shards: int
    restarts: int
    in_flight: int  #: calls


ShowPlacedRun: TypeAlias = Callable[
    [Callable[[], PlacedRunStatus]], AbstractAsyncContextManager[None]
]
"""Shows how a run stands, inside an async context."""
