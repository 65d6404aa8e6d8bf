"""Places shards on the nodes of a Ray cluster (the extra `ray`).

Ray only places, waits and stops: one actor per shard, without restarts; only the
shard's specification is sent through it. Actors end with the process that placed them.

The shard is a separate process, not a thread of the actor: it needs the main thread for
its signals, and an environment without the options of others. When the actor dies, the
process dies with it at once, so a dead actor implies a dead shard.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from runner.errors import RunnerError, UsageError
from runner.shards.engines import (
    LOOPBACK,
    ExitKind,
    ShardExit,
    ShardHandle,
    ShardProcess,
    ShardSpec,
)

if TYPE_CHECKING:
    from types import ModuleType


class ShardHost:
    """An actor that runs one shard; `run` blocks, other methods do not wait for it."""

    def __init__(self) -> None:
        """Start without a process."""
        self._process: ShardProcess | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def node(self) -> str:
        """Return Ray's id of its node."""
        from ray import get_runtime_context  # noqa: PLC0415 - Ray is an extra

        return str(get_runtime_context().get_node_id())

    def run(
        self, spec: ShardSpec, passed_on: Mapping[str, str]
    ) -> tuple[ExitKind, int, str] | str:
        """Run the shard to its end; return a message if it could not start."""
        with self._lock:
            if self._is_stopped:
                return ExitKind.DIED, -signal.SIGTERM, "stopped before it started"
            try:
                self._process = ShardProcess(spec, passed_on, orphaned=signal.SIGKILL)
            except OSError as error:
                return f"{error}; check the folder on its node"
        return self._process.wait()

    def drain(self) -> None:
        """Tell the shard to finish its calls in flight and end."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.drain()


OLDEST: Final = (2, 60)
"""Tested version of Ray."""

CALLS: Final = 4
"""Concurrent methods of an actor: the shard, and requests to the actor."""

CONNECT_S: Final = 5.0
PLACED_S: Final = 5.0
"""Timeout for an actor to report its node when it is stopped; without a report it waits
for a node."""
STORE_BYTES: Final = 100 * 2**20
"""Object store of a Ray started here: near the minimum, as nothing is stored."""


def import_ray() -> ModuleType:
    """Import Ray, with its usage reports off.

    Raises:
        UsageError: it is missing or too old.
    """
    # on by default; must be set before the import
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise UsageError(
            "--engine ray needs Ray, which is not installed: pip install 'siftlog[ray]'"
        ) from error
    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST:
        raise UsageError(
            f"Ray {ray.__version__} is older than {'.'.join(map(str, OLDEST))}, with "
            "which siftlog was tried: pip install --upgrade 'siftlog[ray]'"
        )
    return ray


class _Placed:
    """An actor and the futures of its calls."""

    def __init__(self, actor: Any, node: Any, end: Any) -> None:  # noqa: ANN401 - Ray has no types for them
        self.actor = actor
        self.node = node
        self.end = end
        self.is_killed = False  #: killed on request, which is all that Ray reports


class RayEngine:
    """Starts every shard in a separate actor, spread over the nodes."""

    def __init__(
        self, environment: Mapping[str, str], *, shards: int, address: str | None
    ) -> None:
        """Join a cluster, or start Ray on this machine.

        Args:
            environment: values of the variables passed to shards.
            shards: maximum number of shards placed at a time.
            address: address of the cluster for `ray.init`; None: RAY_ADDRESS if set,
                else a local Ray that ends with the engine.

        Raises:
            UsageError: Ray is missing or too old.
            RunnerError: the cluster cannot be joined, or is too small.
        """
        self._ray = ray = import_ray()
        self._environment = environment
        self._numbers = count()
        self._placed: dict[ShardHandle, _Placed] = {}
        self._nodes: dict[ShardHandle, str | None] = {}
        self._doubted: set[str] = set()  #: nodes on which a shard was unreachable
        self._never_set = threading.Event()
        cluster_address = address or os.environ.get("RAY_ADDRESS")
        local_options = {
            "num_cpus": shards,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        }
        if cluster_address:
            _check_reachable(cluster_address)
        try:
            ray.init(
                address=cluster_address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                **({} if cluster_address else local_options),
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunnerError(
                f"The Ray cluster {cluster_address or 'of this machine'} cannot be "
                f"joined: {error}; check --address and ray status."
            ) from error
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if cpus < shards:
            ray.shutdown()
            raise RunnerError(
                f"The Ray cluster has {cpus} CPUs, and each shard takes one: add "
                f"nodes or use --shards {max(cpus, 1)}."
            )
        self._host = ray.remote(ShardHost)

    @property
    def host(self) -> str:
        """This node's address, or loopback if the cluster is only this machine."""
        if not self.is_spread:
            return LOOPBACK
        return str(import_module("ray.util").get_node_ip_address())

    @property
    def is_spread(self) -> bool:
        """Whether the cluster has other machines."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        return len({node["NodeManagerAddress"] for node in nodes}) > 1

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        """Start a shard; it waits if no node has a free CPU.

        Raises:
            RunnerError: the cluster is out of reach.
        """
        handle = ShardHandle(index=spec.index, number=next(self._numbers))
        passed_on = {name: self._environment[name] for name in spec.environment}
        with self._reached():
            actor = self._host.options(
                num_cpus=1,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=CALLS,
                scheduling_strategy=self._strategy(near),
            ).remote()
            self._placed[handle] = _Placed(
                actor, actor.node.remote(), actor.run.remote(spec, passed_on)
            )
        return handle

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn errors of an unreachable cluster into one message."""
        try:
            yield
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise RunnerError(
                f"The Ray cluster is out of reach: {_first_line(error)}; "
                "see ray status, then continue with siftlog resume."
            ) from error

    def _strategy(self, near: ShardHandle | None) -> Any:  # noqa: ANN401 - one of several classes
        """Choose the node of an earlier placement if it has room, else an emptier one.

        A frozen node counts as alive and empty for about a minute, so another node is
        named explicitly.
        """
        node = self._nodes.get(near) if near is not None else None
        if node is None and self._doubted:
            node = min(self._trusted(), key=self._load, default=None)
        if node is None:
            return "SPREAD"
        strategies = import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node, soft=True)

    def _trusted(self) -> list[str]:
        """Return nodes that take shards and were always reachable."""
        return [
            node["NodeID"]
            for node in self._ray.nodes()
            if node["Alive"]
            and node["Resources"].get("CPU")
            and node["NodeID"] not in self._doubted
        ]

    def _load(self, node: str) -> tuple[int, str]:
        """Return the number of shards on a node; ties are broken by its id."""
        placed = self._placed.values()
        return sum(self._node_of(shard) == node for shard in placed), node

    def wait_any(self, timeout_s: float) -> ShardExit | None:
        """Return the next end of an actor's shard; None on timeout.

        Raises:
            RunnerError: the cluster is out of reach.
        """
        by_end = {placed.end: handle for handle, placed in self._placed.items()}
        if not by_end:
            self._never_set.wait(timeout_s)
            return None
        with self._reached():
            ready, _ = self._ray.wait(list(by_end), num_returns=1, timeout=timeout_s)
        if not ready:
            return None
        handle = by_end[ready[0]]
        placed = self._placed.pop(handle)
        self._nodes[handle] = self._node_of(placed)
        ended = self._end(handle, placed)
        if ended.kind is ExitKind.UNAVAILABLE:
            self._doubt(placed)
        if ended.kind is not ExitKind.FINISHED:
            # whatever is left of it and reachable
            self._ray.kill(placed.actor)
        return ended

    def _node_of(self, placed: _Placed) -> str | None:
        """Return its node, if it was placed."""
        try:
            return str(self._ray.get(placed.node, timeout=0))
        except self._ray.exceptions.RayError:
            return None

    def _end(self, handle: ShardHandle, placed: _Placed) -> ShardExit:
        errors = self._ray.exceptions
        try:
            result = self._ray.get(placed.end)
        except errors.ActorDiedError as error:
            # Ray also reports this for a lost node, and for an actor once it is to be
            # killed: the shard may still run there
            is_seen = not placed.is_killed and self._nodes[handle] in self._live_nodes()
            kind = ExitKind.DIED if is_seen else ExitKind.UNAVAILABLE
            return ShardExit(handle=handle, kind=kind, last_line=_first_line(error))
        except errors.RayError as error:
            last_line = _first_line(error)
            return ShardExit(
                handle=handle, kind=ExitKind.UNAVAILABLE, last_line=last_line
            )
        if isinstance(result, str):
            return ShardExit(
                handle=handle, kind=ExitKind.FINISHED, code=1, last_line=result
            )
        kind, code, last_line = result
        return ShardExit(handle=handle, kind=kind, code=code, last_line=last_line)

    def _live_nodes(self) -> set[str]:
        return {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        """Tell an actor to drain its shard, or kill it with its shard."""
        placed = self._placed.get(handle)
        if placed is None:
            return
        if not at_once:
            # a shard may have started before its actor reported
            self._ray.wait([placed.node], timeout=PLACED_S)
        # an actor that waits for a node has nothing to finish and cannot be told
        if at_once or self._node_of(placed) is None:
            self._doubt(placed)
            placed.is_killed = True
            self._ray.kill(placed.actor)
        else:
            placed.actor.drain.remote()

    def _doubt(self, placed: _Placed) -> None:
        """Avoid a node on which a shard is unreachable, or has to be killed."""
        node = self._node_of(placed)
        if node is not None:
            self._doubted.add(node)

    def close(self) -> None:
        """Leave the cluster, or stop the local Ray, with all placed shards."""
        for placed in self._placed.values():
            self._ray.kill(placed.actor)
        self._placed.clear()
        self._ray.shutdown()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _check_reachable(address: str) -> None:
    """Raise `RunnerError` if no server answers: Ray would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return  # such as "auto", which Ray resolves
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise RunnerError(
            f"The Ray cluster {address} cannot be joined: {error}; check --address and "
            "ray status."
        ) from error
