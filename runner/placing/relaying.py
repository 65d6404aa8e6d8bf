"""Hands on what people ask of a run while its shards are at work.

Requests stand in the `control.jsonl` of the run's folder. Shards that share the folder
read them there; those on other disks get each line through the broker. What concerns
the run as a whole, its limits and its money, is done by the broker, and no shard is
placed again once the run was told to end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from runner.control.standing import Refused, is_amount, limits_change
from runner.leasing.serving import Server
from runner.limits.limiter import Limits
from store.control import Command, CommandTail
from store.runs import RunFolder
from store.task import pico


class Relay:
    """Reads on in the requests to one run."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        server: Server,
        close: Callable[[], None],
        limits: Mapping[str, Limits],
    ) -> None:
        """Nothing is handed on yet.

        Args:
            folder: the run's.
            server: reaches the shards, and keeps limits and money.
            close: called when the run is told to end.
            limits: those that the server goes by, by model.
        """
        self._tail = CommandTail(folder.control)
        self._server = server
        self._close = close
        self._limits = dict(limits)

    def take_up(self, waiting: Collection[str]) -> None:
        """Hand on what stands there already; shards know what they have answered.

        Args:
            waiting: ids of the requests that nobody has answered for good.
        """
        for command in self._tail.read():
            # who was to end then has ended
            if command.id in waiting and command.kind in {"budget", "limits"}:
                self._obey(command)
            self._server.relay(msgspec.json.encode(command))

    def listen(self) -> None:
        """Hand on what came since the last time."""
        for command in self._tail.read():
            self._obey(command)
            self._server.relay(msgspec.json.encode(command))

    def _obey(self, command: Command) -> None:
        match command.kind:
            case "drain" | "cancel":
                self._close()
            case "budget":
                usd = command.payload.get("add_usd")
                if is_amount(usd):
                    self._server.add_budget(pico(usd))
            case "limits":
                self._set_limits(command)
            case _:
                pass  # each shard for itself

    def _set_limits(self, command: Command) -> None:
        try:
            change = limits_change(command.payload)
        except Refused:
            return  # every shard says so in its log
        for model in filter(change.concerns, self._limits):
            self._limits[model] = change.applied_to(self._limits[model])
            self._server.set_limits(model, self._limits[model])
