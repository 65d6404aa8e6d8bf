"""What the broker is told of the shards' processes, and what it knows of them.

A process that has ended gives back by that what it was lent: its slices are free and
its money can be spent by others, as soon as its log says what it has spent itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from runner.leasing.broker import Seen
from runner.leasing.serving import Server
from runner.placing.spec import ShardSpec
from store.runs import RunFolder
from store.views import open_reader, spending


class Accounts:
    """One account a shard, from the beginning of a process of its to the end."""

    def __init__(
        self, server: Server, specs: Sequence[ShardSpec], *, longest_s: float
    ) -> None:
        """Nobody has spent anything.

        Args:
            server: of the broker.
            specs: the shards, by index.
            longest_s: after a silence of so long a process should be no more.
        """
        self._server = server
        self._specs = specs
        self._longest_s = longest_s
        self._before: dict[int, int] = {}  #: pico-dollars of earlier processes

    async def begin(self, index: int) -> None:
        """A process of a shard is about to be placed."""
        taken = await asyncio.to_thread(self._taken_pico, index)
        self._before[index] = taken or 0

    async def end(self, index: int) -> None:
        """The shard's process is certainly no more.

        Where its log lies elsewhere, the broker goes by the lease: what was lent may
        have been spent, and the slices are free once it has run out.
        """
        taken = await asyncio.to_thread(self._taken_pico, index)
        if taken is None:
            return
        for seen in self._of(index):
            self._server.ended(seen.writer, taken - self._before[index])

    def silent(self) -> list[int]:
        """The shards of which a process should have ended, so long it was silent."""
        return [
            index
            for index in range(len(self._specs))
            if any(seen.silent_s > self._longest_s for seen in self._of(index))
        ]

    def _of(self, index: int) -> list[Seen]:
        name = self._specs[index].name
        return [seen for seen in self._server.shards() if seen.shard == name]

    def _taken_pico(self, index: int) -> int | None:
        """What a shard has spent, or may have, by its log; None: it is not here."""
        spec = self._specs[index]
        log = RunFolder(spec.folder).shard(spec.index, spec.count).log
        if not log.exists():
            return None
        with open_reader(log) as reader:
            money = spending(reader)
        return money.spent_pico + money.possible_pico + money.in_flight_pico
