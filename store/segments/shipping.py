"""Ships a live log to a place in segments.

All that reads or carries happens on a thread of its own, with a reader of its own: the
event loop waits for neither disk nor network, and the writer notices nothing. The place
being away is no reason to stop: the run goes on, what waits grows, and that is said
once; only when more waits than may be lost with the machine does it come to an end.

Belongs to one thread and one connection, and knows no event loop. It begins where the
place's own listing ends: nothing is remembered elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar, cast

from store.clock import Clock
from store.database import UNION, LogReader, open_reader, read_transaction, unreadable
from store.errors import CorruptLog, PlaceAway, Unshipped
from store.log.writer import WriterThread
from store.segments.place import Place
from store.segments.segment import (
    FOLDER,
    ROLLED_BYTES,
    CompleteLog,
    LogPosition,
    Segment,
    SegmentOrigin,
    SegmentRange,
    commits_bytes,
    contiguous_end,
    contiguous_from,
    decode_segment,
    encode_segment,
    joined_commits,
)
from store.slices import Shard
from store.union.source import RANGE_BYTES, LocalLogSource

ROLL_UP_AFTER = 256
"""Small segments that become larger ones: ten hours make 7,200 every five seconds, and
file servers and listings are slow with many files."""


@dataclass(slots=True, kw_only=True)
class SentTotals:
    """What has been carried since the sending began."""

    segments: int = 0
    bytes: int = 0  #: as they were written


class SegmentSender:
    """Carries one log to one place."""

    def __init__(
        self,
        reader: LogReader,
        place: Place,
        *,
        shard: Shard | None,
        siftlog_version: str,
        now_us: Callable[[], int],
    ) -> None:
        """Find out how far the place has the log.

        Raises:
            PlaceAway: it cannot be looked at.
            CorruptLog: it holds events of the log which the log does not have.
        """
        self._reader = reader
        self._place = place
        self._now_us = now_us
        self._source = LocalLogSource(reader)
        self._origin = SegmentOrigin(
            log=self._source.identity,
            shard=shard,
            host=socket.gethostname(),
            pid=os.getpid(),
            siftlog_version=siftlog_version,
        )
        names = place.names(f"{FOLDER}/{self._source.identity.log.hex()}")
        spans = [span for span in map(SegmentRange.parse, names) if span is not None]
        rolled = [span for span in spans if span.is_rolled]
        self._small = [span for span in spans if not span.is_rolled]
        self._rolled_end = contiguous_end(contiguous_from(rolled, LogPosition()))
        led = contiguous_from(spans, LogPosition())
        self.mark = contiguous_end(led)
        self.sent = SentTotals()
        self._measured = self.mark
        self.unshipped_bytes = 0
        if led:
            self._check_end(led[-1])

    def _check_end(self, last: SegmentRange) -> None:
        """Refuse to go on from events that this log, put back in time, never had."""
        data = self._place.get(last.name)
        if (
            data is None
            or self._link_at(last.end.seq)
            != decode_segment(data, last, self._place.address).link
        ):
            raise CorruptLog(
                f"{self._reader.path} is not the log that was carried to "
                f"{self._place.address} up to event {last.end.seq}: it is an older "
                "copy; put it aside and start the shard anew"
            )

    def _link_at(self, seq: int) -> bytes | None:
        """Of the commit that ends with event *seq*; None: none does."""
        if seq == 0:
            return self._source.identity.genesis
        row = self._reader.execute(UNION["link_at"], (seq,)).fetchone()
        return None if row is None else bytes(row[0])

    def measure(self) -> int | None:
        """Look at how much waits to be carried.

        Returns:
            When the first event that waits was recorded; None: none does.
        """
        reader, seen = self._reader, self._measured.joined(self.mark)
        with read_transaction(reader):
            seq, of_rows = reader.execute(UNION["rows_weight"], (seen.seq,)).fetchone()
            parts, of_blobs = reader.execute(
                UNION["blobs_weight"], (seen.parts,)
            ).fetchone()
            since = reader.execute(UNION["next_event_us"], (self.mark.seq,)).fetchone()
        self._measured = LogPosition(seq, parts)
        self.unshipped_bytes += of_rows + of_blobs
        return None if since is None else int(since[0])

    def send(self) -> None:
        """Carry all that is committed, and roll small segments up if they are many.

        Raises:
            PlaceAway: the place refused; what it took is not carried again.
        """
        self._carry(self.mark, RANGE_BYTES, is_rolled=False)
        if len(self._small) >= ROLL_UP_AFTER:
            self._roll_up()

    def finish(self) -> CompleteLog:
        """Carry all there is, roll it up, and say that the log has come to its end.

        Raises:
            PlaceAway: the place refused.
        """
        self.send()
        self._roll_up()
        done = CompleteLog(
            log=self._source.identity.log.hex(),
            run_id=self._source.identity.run_id,
            shard=self._origin.shard,
            last_seq=self.mark.seq,
            link=(self._link_at(self.mark.seq) or b"").hex(),
        )
        self._place.put_new(done.name, done.encoded())
        return done

    def _carry(self, start: LogPosition, most: int, *, is_rolled: bool) -> None:
        link = self._link_at(start.seq) or b""
        ranges = self._source.commit_ranges(start.seq, start.parts)
        for commits in joined_commits(ranges, most):
            segment = Segment(
                origin=self._origin,
                made_us=self._now_us(),
                start=start,
                link_before=link,
                commits=commits,
            )
            span = segment.span(is_rolled=is_rolled)
            data = encode_segment(segment)
            self._place.put_new(span.name, data)
            self.sent.segments += 1
            self.sent.bytes += len(data)
            start, link = segment.end, segment.link
            if is_rolled:
                self._rolled_end = start
            else:
                self._small.append(span)
                waiting = self.unshipped_bytes - commits_bytes(commits)
                self.unshipped_bytes = max(0, waiting)
            self.mark = self.mark.joined(start)
        # the source went to the end of the log, past all that had been measured
        self._measured, self.unshipped_bytes = self.mark, 0

    def _roll_up(self) -> None:
        """Hold in a few segments what many hold; those go once these are there."""
        if len(self._small) > 1:
            self._carry(self._rolled_end, ROLLED_BYTES, is_rolled=True)
        remaining = []
        for span in self._small:
            if self._rolled_end.reaches(span.end):
                self._place.remove(span.name)
            else:
                remaining.append(span)
        self._small = remaining


EVERY_S = 5.0
"""Of what a machine recorded in this time half is paid for again, on average, if it is
lost; at 64 calls in flight of 10 s each that is 16 calls beside the 64."""

SEGMENT_BYTES = 1 << 20
"""What is carried without waiting for the next turn."""

MOST_BYTES = 1 << 30
"""What may wait while the place is away."""

POLL_S = 1.0
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
        sending: SegmentSender,
        *,
        clock: Clock,
        notify: Callable[[str], None],
        every_s: float,
        most_bytes: int,
    ) -> None:
        self._path = path
        self._place = place
        self._thread = thread
        self._sending = sending
        self._clock = clock
        self._notify = notify
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
        notify: Callable[[str], None],
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
            notify: hears when the place is away, and when it is back.
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
                lambda conn: SegmentSender(
                    cast("LogReader", conn),
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
                notify=notify,
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
            await self._clock.sleep_until(now + min(POLL_S, self._every_s or POLL_S))
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
        return await self._carried(SegmentSender.send)

    async def finish(self) -> bool:
        """Carry the last there is, and that it is the last; False: the place is away.

        To be asked of a log whose tasks are all final, once its last event is in it.
        """
        return await self._carried(SegmentSender.finish)

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

    async def _carried(self, carry: Callable[[SegmentSender], object]) -> bool:
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
                self._notify(f"{self._place.address} is back, and has all there was")
            return True

    async def _measure(self) -> None:
        self._since_us = await self._on_thread(SegmentSender.measure)

    async def _on_thread(
        self,
        function: Callable[Concatenate[SegmentSender, _P], _T],
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
            self._notify(f"{error}; the run goes on, and {self._waiting()}")

    def _waiting(self) -> str:
        mib = self._sending.unshipped_bytes / 2**20
        return f"{mib:.1f} MiB of {self._path} wait to be carried there"
