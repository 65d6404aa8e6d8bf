"""Shards as processes of this machine."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Mapping
from itertools import count

from runner.errors import RunnerError
from runner.placing.engine import LOOPBACK, Exit, Handle
from runner.placing.hosting import ShardProcess
from runner.placing.spec import ShardSpec


class ProcessEngine:
    """Starts every shard here; one whose starter dies finishes its calls and ends."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Nothing is placed yet.

        Args:
            environment: has the values of the variables that shards are passed.
        """
        self._environment = environment
        self._numbers = count()
        self._placed: dict[Handle, ShardProcess] = {}
        self._ends: queue.SimpleQueue[Exit] = queue.SimpleQueue()

    @property
    def host(self) -> str:
        """Loopback: nobody else is to reach this machine."""
        return LOOPBACK

    @property
    def is_spread(self) -> bool:
        """Never."""
        return False

    def place(self, spec: ShardSpec, *, near: Handle | None = None) -> Handle:
        """Start a shard; every place here is near.

        Raises:
            RunnerError: the run's folder cannot be written.
        """
        del near
        handle = Handle(index=spec.index, number=next(self._numbers))
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

    def _await(self, handle: Handle, process: ShardProcess) -> None:
        how, code, said = process.wait()
        self._ends.put(Exit(handle=handle, how=how, code=code, said=said))

    def wait_any(self, timeout_s: float) -> Exit | None:
        """The next end of a process; None if none came in time."""
        try:
            ended = self._ends.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._placed.pop(ended.handle, None)
        return ended

    def stop(self, handle: Handle, *, at_once: bool) -> None:
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
