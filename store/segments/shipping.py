"""A live log carried to a place, beside the work that writes it.

All that reads or carries happens on a thread of its own, with a reader of its own: the
event loop waits for neither disk nor network, and the writer notices nothing. The place
being away is no reason to stop: the run goes on, what waits grows, and that is said
once; only when more waits than may be lost with the machine does it come to an end.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar, cast

from store.clock import Clock
from store.committer import WriterThread
from store.connect import Reader, open_reader, unreadable
from store.errors import PlaceAway, Unshipped
from store.segments.place import Place
from store.segments.sending import Sending
from store.shard import Shard

EVERY_S = 5.0
"""Of what a machine recorded in this time half is paid for again, on average, if it is
lost; at 64 calls in flight of 10 s each that is 16 calls beside the 64."""

SEGMENT_BYTES = 1 << 20
"""What is carried without waiting for the next turn."""

MOST_BYTES = 1 << 30
"""What may wait while the place is away."""

LOOK_S = 1.0
"""How often it is seen how much waits; two short queries."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingStatistics:
    """How far a log has been carried."""

    shipped_seq: int  #: the last event that is in the place
    unshipped_bytes: int  #: facts, bodies and parts that wait, as last seen
    unshipped_since_us: int | None  #: when the first of them was recorded
    segments: int  #: carried by this process
    segment_bytes: int
    is_away: bool  #: the place took nothing when it was last tried


class Shipper:
    """Carries a log that this process writes; made by `following`.

    async with Shipper.following(path, place, ...) as shipper:
        async with beside(shipper.run()):
            ...  # the run; every way it ends, what is left is carried
        await shipper.finish()  # if it is finished
    """

    def __init__(
        self,
        path: Path,
        place: Place,
        thread: WriterThread,
        sending: Sending,
        *,
        clock: Clock,
        tell: Callable[[str], None],
        every_s: float,
        most_bytes: int,
    ) -> None:
        self._path = path
        self._place = place
        self._thread = thread
        self._sending = sending
        self._clock = clock
        self._tell = tell
        self._every_s = every_s
        self._most_bytes = most_bytes
        self._turn = asyncio.Lock()
        self._since_us: int | None = None
        self._is_away = False

    @classmethod
    @asynccontextmanager
    async def following(
        cls,
        path: Path,
        place: Place,
        *,
        clock: Clock,
        tell: Callable[[str], None],
        siftlog_version: str,
        shard: Shard | None = None,
        every_s: float = EVERY_S,
        most_bytes: int = MOST_BYTES,
    ) -> AsyncIterator[Self]:
        """The shipper of the log at *path*, from where the place has it.

        The end of the block carries what is left, if the place takes it; enter it
        after the log was opened for writing, and leave it before it is closed.

        Args:
            path: a log that has been opened for writing.
            place: where its segments go.
            clock: says when.
            tell: hears when the place is away, and when it is back.
            siftlog_version: written into each segment.
            shard: what the log plans; None: a whole run.
            every_s: how often segments are made.
            most_bytes: what may wait before `run` gives up.

        Raises:
            PlaceAway: the place cannot be looked at.
            CorruptLog: it holds events of the log which the log does not have.
        """
        thread = WriterThread(lambda: open_reader(path))
        try:
            await thread
            sending = await thread.run(
                lambda conn: Sending(
                    cast("Reader", conn),
                    place,
                    shard=shard,
                    siftlog_version=siftlog_version,
                    now_us=clock.now_us,
                )
            )
            shipper = cls(
                path,
                place,
                thread,
                sending,
                clock=clock,
                tell=tell,
                every_s=every_s,
                most_bytes=most_bytes,
            )
            try:
                yield shipper
            finally:
                await shipper.flush()
        finally:
            await thread.close()

    async def run(self) -> None:
        """Carry what is committed, every so often, until this is cancelled.

        Raises:
            Unshipped: more waits than may.
            CorruptLog: the log cannot be read.
        """
        due = self._clock.monotonic() + self._every_s
        while True:
            now = self._clock.monotonic()
            await self._clock.sleep_until(now + min(LOOK_S, self._every_s or LOOK_S))
            await self._measure()
            waiting = self._sending.unshipped_bytes
            is_full = waiting >= SEGMENT_BYTES and not self._is_away
            if is_full or self._clock.monotonic() >= due:
                await self.flush()
                due = self._clock.monotonic() + self._every_s
            if self._sending.unshipped_bytes > self._most_bytes:
                raise Unshipped(
                    f"{self._waiting()} and more may not be lost with this machine: "
                    f"see to {self._place.address}, then go on with the run"
                )

    async def flush(self) -> bool:
        """Carry all that is committed now; False: the place takes nothing."""
        return await self._carried(Sending.send)

    async def finish(self) -> bool:
        """Carry the last there is, and that it is the last; False: the place is away.

        To be asked of a log whose tasks are all final, once its last event is in it.
        """
        return await self._carried(Sending.finish)

    def statistics(self) -> ShippingStatistics:
        """How far the log has been carried."""
        return ShippingStatistics(
            shipped_seq=self._sending.mark.seq,
            unshipped_bytes=self._sending.unshipped_bytes,
            unshipped_since_us=self._since_us,
            segments=self._sending.sent.segments,
            segment_bytes=self._sending.sent.bytes,
            is_away=self._is_away,
        )

    async def _carried(self, carry: Callable[[Sending], object]) -> bool:
        """Whether the place took what it was to take; says when that changes."""
        async with self._turn:
            try:
                await self._on_thread(carry)
            except PlaceAway as error:
                await self._measure()
                self._say_away(error)
                return False
            await self._measure()
            if self._is_away:
                self._is_away = False
                self._tell(f"{self._place.address} is back, and has all there was")
            return True

    async def _measure(self) -> None:
        self._since_us = await self._on_thread(Sending.measure)

    async def _on_thread(
        self,
        function: Callable[Concatenate[Sending, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        try:
            return await self._thread.run(
                lambda _conn: function(self._sending, *args, **kwargs)
            )
        except sqlite3.DatabaseError as error:
            raise unreadable(self._path, error) from error

    def _say_away(self, error: PlaceAway) -> None:
        if not self._is_away:
            self._is_away = True
            self._tell(f"{error}; the run goes on, and {self._waiting()}")

    def _waiting(self) -> str:
        mib = self._sending.unshipped_bytes / 2**20
        return f"{mib:.1f} MiB of {self._path} wait to be carried there"
