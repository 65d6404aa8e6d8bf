"""What runs in a Ray actor: the process of one shard, on whichever node it came to be.

The shard is a process of its own, not a thread of the actor's: it needs the main thread
for its signals, and an environment without the options of others. When the actor dies,
the process dies with it at once, so that a dead actor is a dead shard.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping

from runner.placing.engine import How
from runner.placing.hosting import ShardProcess
from runner.placing.spec import ShardSpec


class ShardHost:
    """An actor that carries one shard; `run` blocks, the others answer meanwhile."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._process: ShardProcess | None = None
        self._asked = threading.Lock()
        self._is_stopped = False

    def node(self) -> str:
        """Ray's id of the node that it is on."""
        from ray import get_runtime_context  # noqa: PLC0415 - Ray is an extra

        return str(get_runtime_context().get_node_id())

    def run(
        self, spec: ShardSpec, passed_on: Mapping[str, str]
    ) -> tuple[How, int, str] | str:
        """Carry the shard to its end; a sentence, if it could not be started."""
        with self._asked:
            if self._is_stopped:
                return How.DIED, -signal.SIGTERM, "stopped before it began"
            try:
                self._process = ShardProcess(spec, passed_on, orphaned=signal.SIGKILL)
            except OSError as error:
                return f"{error}; check the folder on its node"
        return self._process.wait()

    def drain(self) -> None:
        """Ask the shard to finish its calls in flight and to end."""
        with self._asked:
            self._is_stopped = True
            if self._process is not None:
                self._process.drain()
