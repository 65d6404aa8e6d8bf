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
    """Everything an engine needs to start one shard on any machine."""

    run_id: str
    index: int  #: counted from 0
    count: int
    words: tuple[str, ...]  #: arguments of `siftlog`, without `--config`
    config: str  #: the run's resolved configuration, TOML
    environment: tuple[str, ...] = ()
    """Names of variables passed on from the process that places the shard.

    All others, such as keys, come from the machine on which the shard runs.
    """
    runs_dir: Path  #: folder of the runs, if all machines share it
    local_dir: str | None = None
    """Folder of the runs on a disk of the shard's machine; `$NAME` in it is a variable
    of that machine."""

    @property
    def name(self) -> str:
        """Index and count, such as `0/4`."""
        return f"{self.index}/{self.count}"

    @property
    def local_runs_dir(self) -> Path | None:
        """`local_dir` with the variables of this machine.

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
        """The run's folder on this machine; diagnostics are written there."""
        return (self.local_runs_dir or self.runs_dir) / self.run_id

    @property
    def diagnostics(self) -> Path:
        """File with the stderr of all its processes."""
        return RunFolder(self.folder).shard(self.index, self.count).diagnostics

    @property
    def configuration(self) -> Path:
        """File to which its configuration is written before it starts."""
        return self.folder / f"run.{self.index}-{self.count}.toml"


EngineName: TypeAlias = Literal["processes", "ray"]
"""Name of an engine, as users type it."""

LOOPBACK: Final = "127.0.0.1"
"""Address for shards on the same machine."""


class ExitKind(Enum):
    """Ending of a placed shard."""

    FINISHED = "finished"  #: its process exited with a code
    DIED = "died"  #: its process has certainly ended
    UNAVAILABLE = "unavailable"  #: unknown; it may still run


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHandle:
    """One process of a shard, as its engine knows it."""

    index: int  #: of the shard
    number: int  #: number of the placement, unique in its engine


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardExit:
    """The end of one placed process."""

    handle: ShardHandle
    kind: ExitKind
    code: int | None = None  #: the exit code, negative for a signal; None: unknown
    last_line: str = ""  #: the last line of its output


class ShardEngine(Protocol):
    """Starts shards and reports their ends; calls may block."""

    @property
    def host(self) -> str:
        """Address of this machine for its shards."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether shards may be placed on other machines."""
        ...

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        """Start a shard.

        Args:
            spec: the shard.
            near: an ended placement whose machine is preferred, because it has the
                shard's log.

        Raises:
            RunnerError: it cannot be started.
        """
        ...

    def wait_any(self, timeout_s: float) -> ShardExit | None:
        """Return the next end of a placed shard, each once; None on timeout."""
        ...

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        """Let a shard finish its calls in flight and end, or kill it; returns at once.

        `wait_any` reports its end; a killed shard may be reported as unreachable. Does
        nothing if it has ended.
        """
        ...

    def close(self) -> None:
        """Release the engine's resources; kill all shards still placed."""
        ...


OPTION: Final = "SIFTLOG_"
"""Prefix of variables that set options; a shard's options are in its `config`."""

TAIL_BYTES: Final = 4096
"""Size of the tail of the diagnostics that is searched for the last line."""


class ShardProcess:
    """A running shard on this machine."""

    def __init__(
        self, spec: ShardSpec, passed_on: Mapping[str, str], *, orphaned: signal.Signals
    ) -> None:
        """Start it in a separate session: Ctrl-C in a terminal does not reach it.

        Args:
            spec: the shard.
            passed_on: values of the variables that `spec.environment` names.
            orphaned: signal that it gets when this process has ended.

        Raises:
            OSError: its folder cannot be written, or is unknown here.
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
        """Wait for its end; return the kind, the exit code and the last line."""
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        kind = ExitKind.FINISHED if code >= 0 else ExitKind.DIED
        return kind, code, self._last_line()

    def drain(self) -> None:
        """Tell it to finish its calls in flight and end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once, even while it is suspended."""
        self._process.kill()

    def _last_line(self) -> str:
        with self._spec.diagnostics.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class ProcessEngine:
    """Starts all shards on this machine; they drain if their starter dies."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start without placements.

        Args:
            environment: values of the variables passed to shards.
        """
        self._environment = environment
        self._numbers = count()
        self._placed: dict[ShardHandle, ShardProcess] = {}
        self._ends: queue.SimpleQueue[ShardExit] = queue.SimpleQueue()

    @property
    def host(self) -> str:
        """Loopback: other machines need no access."""
        return LOOPBACK

    @property
    def is_spread(self) -> bool:
        """Always False."""
        return False

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        """Start a shard; *near* has no effect.

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
        """Return the next end of a process; None on timeout."""
        try:
            ended = self._ends.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._placed.pop(ended.handle, None)
        return ended

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        """Signal a shard's process, and no other."""
        process = self._placed.get(handle)
        if process is None:
            return
        if at_once:
            process.kill()
        else:
            process.drain()

    def close(self) -> None:
        """Kill all running shards."""
        for process in self._placed.values():
            process.kill()
        self._placed.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Number of shards of a run, and their placement."""

    engine: EngineName
    shards: int
    address: str | None = None  #: of the engine's cluster
    ttl_s: float = TTL_S  #: how long a shard may be silent
    local_dir: str | None = None  #: on each shard's disk; may contain `$NAME`
    ship: str | None = None  #: place to which the shards ship their logs
    ship_every_s: float = 5.0  #: maximum delay of shipping
    accept_loss: bool = False  #: continue although events are missing

    @property
    def words(self) -> str:
        """The command line options that place the run in this way."""
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
    """Status of a placed run."""

    status: Status | None  #: from the union; None: no shard has written yet
    at_work: int  #: shards that are not silent
    shards: int
    restarts: int
    in_flight: int  #: calls


ShowPlacedRun: TypeAlias = Callable[
    [Callable[[], PlacedRunStatus]], AbstractAsyncContextManager[None]
]
"""Displays the status of a placed run, inside an async context."""
