"""Ships a live log to a place in segments.

Reads and uploads happen on a separate thread with a separate reader: the event loop
waits for neither disk nor network, and the writer is not affected. If the place is
unreachable, the run continues, the backlog grows and one message is shown; the run ends
only when the backlog exceeds its limit.

Belongs to one thread and one connection, and knows no event loop. The upload starts
after the last segment in the place's listing: no other state is stored.
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
from store.log.committer import WriterThread
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
    """Amounts uploaded since the start."""

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
        """Find where the log ends in the place.

        Raises:
            PlaceAway: it cannot be read.
            CorruptLog: it holds events that the log does not have.
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
        """Refuse to continue from events that this log, restored from a copy, lacks."""
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
        """Return the link of the commit that ends with event *seq*; None: none does."""
        if seq == 0:
            return self._source.identity.genesis
        row = self._reader.execute(UNION["link_at"], (seq,)).fetchone()
        return None if row is None else bytes(row[0])

    def measure(self) -> int | None:
        """Measure the backlog.

        Returns:
            The time of the first waiting event; None if none waits.
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
        """Upload everything committed, and combine small segments if there are many.

        Raises:
            PlaceAway: the place refused; segments already stored are not uploaded
                again.
        """
        self._carry(self.mark, RANGE_BYTES, is_rolled=False)
        if len(self._small) >= ROLL_UP_AFTER:
            self._roll_up()

    def finish(self) -> CompleteLog:
        """Upload everything, combine small segments, and record the log's end.

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
                stretch=commits,
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
        """Combine many segments into a few; delete the small ones afterwards."""
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
"""If the machine is lost, half of what it recorded in this time is paid for again on
average; with 64 calls in flight of 10 s each, that is 16 calls in addition to the
64."""

SEGMENT_BYTES = 1 << 20
"""Backlog that is uploaded without waiting for the next interval."""

MOST_BYTES = 1 << 30
"""Limit of the backlog while the place is unreachable."""

POLL_S = 1.0
"""Interval for measuring the backlog; two short queries."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingStatistics:
    """Upload progress of a log."""

    shipped_seq: int  #: the last event that is in the place
    unshipped_bytes: int  #: waiting facts, bodies and parts at the last measurement
    unshipped_since_us: int | None  #: when the first of them was recorded
    segments: int  #: carried by this process
    segment_bytes: int
    is_away: bool  #: the place stored nothing at the last attempt


class Shipper:
    """Uploads a log that this process writes; created by `following`.

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
        """Create the shipper of the log at *path*.

        The end of the block uploads the rest, if the place is reachable. Enter the
        block after the log is opened for writing, and leave it before the log is
        closed.

        Args:
            path: a log that has been opened for writing.
            place: destination of its segments.
            clock: the clock.
            notify: called when the place becomes unreachable or reachable.
            siftlog_version: written into each segment.
            shard: slices planned by the log; None: a whole run.
            every_s: interval between segments.
            most_bytes: backlog at which `run` gives up.

        Raises:
            PlaceAway: the place cannot be read.
            CorruptLog: it holds events that the log does not have.
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
        """Upload committed events periodically until cancelled.

        Raises:
            Unshipped: the backlog exceeds its limit.
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
                    f"check {self._place.address}, then resume the run"
                )

    async def flush(self) -> bool:
        """Upload everything committed now; return False if the place takes nothing."""
        return await self._carried(SegmentSender.send)

    async def finish(self) -> bool:
        """Upload the rest and the end record; return False if the place is unreachable.

        Call it once all tasks of the log are final and its last event is recorded.
        """
        return await self._carried(SegmentSender.finish)

    def statistics(self) -> ShippingStatistics:
        """Return the upload progress."""
        return ShippingStatistics(
            shipped_seq=self._sending.mark.seq,
            unshipped_bytes=self._sending.unshipped_bytes,
            unshipped_since_us=self._since_us,
            segments=self._sending.sent.segments,
            segment_bytes=self._sending.sent.bytes,
            is_away=self._is_away,
        )

    async def _carried(self, carry: Callable[[SegmentSender], object]) -> bool:
        """Record whether the place is reachable; show a message on a change."""
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
