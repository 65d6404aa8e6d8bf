"""What of a log has been carried to a place, and the carrying of the rest.

Belongs to one thread and one connection, and knows no event loop. It begins where the
place's own listing ends: nothing is remembered elsewhere.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from store.connect import Reader
from store.errors import CorruptLog
from store.segments.done import Done
from store.segments.place import Place
from store.segments.segment import (
    Origin,
    Segment,
    decode,
    encode,
    joined,
    weight,
)
from store.segments.span import FOLDER, Mark, Span, end_of, leading_on
from store.shard import Shard
from store.traffic import one_moment
from store.union.source import STRETCH_BYTES, LogSource
from store.union.statements import UNION

ROLL_UP_AFTER = 256
"""Small segments that become larger ones: ten hours make 7,200 every five seconds, and
file servers and listings are slow with many files."""

ROLLED_BYTES = 16 << 20
"""What a larger one holds, before it is compressed: it is read whole."""


@dataclass(slots=True, kw_only=True)
class Sent:
    """What has been carried since the sending began."""

    segments: int = 0
    bytes: int = 0  #: as they were written


class Sending:
    """Carries one log to one place."""

    def __init__(
        self,
        reader: Reader,
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
        self._source = LogSource(reader)
        self._origin = Origin(
            log=self._source.identity,
            shard=shard,
            host=socket.gethostname(),
            pid=os.getpid(),
            siftlog_version=siftlog_version,
        )
        names = place.names(f"{FOLDER}/{self._source.identity.log.hex()}")
        spans = [span for span in map(Span.named, names) if span is not None]
        rolled = [span for span in spans if span.is_rolled]
        self._small = [span for span in spans if not span.is_rolled]
        self._rolled_upto = end_of(leading_on(rolled, Mark()))
        led = leading_on(spans, Mark())
        self.mark = end_of(led)
        self.sent = Sent()
        self._measured = self.mark
        self.unshipped_bytes = 0
        if led:
            self._check_end(led[-1])

    def _check_end(self, last: Span) -> None:
        """Refuse to go on from events that this log, put back in time, never had."""
        data = self._place.get(last.name)
        if (
            data is None
            or self._link_at(last.end.seq)
            != decode(data, last, self._place.address).link
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
        found = self._reader.execute(UNION["link_at"], (seq,)).fetchone()
        return None if found is None else bytes(found[0])

    def measure(self) -> int | None:
        """Look at how much waits to be carried.

        Returns:
            When the first event that waits was recorded; None: none does.
        """
        reader, seen = self._reader, self._measured.joined(self.mark)
        with one_moment(reader):
            seq, of_rows = reader.execute(UNION["rows_weight"], (seen.seq,)).fetchone()
            parts, of_blobs = reader.execute(
                UNION["blobs_weight"], (seen.parts,)
            ).fetchone()
            since = reader.execute(UNION["next_event_us"], (self.mark.seq,)).fetchone()
        self._measured = Mark(seq, parts)
        self.unshipped_bytes += of_rows + of_blobs
        return None if since is None else int(since[0])

    def send(self) -> None:
        """Carry all that is committed, and roll small segments up if they are many.

        Raises:
            PlaceAway: the place refused; what it took is not carried again.
        """
        self._carry(self.mark, STRETCH_BYTES, is_rolled=False)
        if len(self._small) >= ROLL_UP_AFTER:
            self._roll_up()

    def finish(self) -> Done:
        """Carry all there is, roll it up, and say that the log has come to its end.

        Raises:
            PlaceAway: the place refused.
        """
        self.send()
        self._roll_up()
        done = Done(
            log=self._source.identity.log.hex(),
            run_id=self._source.identity.run_id,
            shard=self._origin.shard,
            last_seq=self.mark.seq,
            link=(self._link_at(self.mark.seq) or b"").hex(),
        )
        self._place.put_new(done.name, done.encoded())
        return done

    def _carry(self, start: Mark, most: int, *, is_rolled: bool) -> None:
        link = self._link_at(start.seq) or b""
        found = self._source.stretches(start.seq, start.parts)
        for stretch in joined(found, most):
            segment = Segment(
                origin=self._origin,
                made_us=self._now_us(),
                start=start,
                link_before=link,
                stretch=stretch,
            )
            span = segment.span(is_rolled=is_rolled)
            data = encode(segment)
            self._place.put_new(span.name, data)
            self.sent.segments += 1
            self.sent.bytes += len(data)
            start, link = segment.end, segment.link
            if is_rolled:
                self._rolled_upto = start
            else:
                self._small.append(span)
                waiting = self.unshipped_bytes - weight(stretch)
                self.unshipped_bytes = max(0, waiting)
            self.mark = self.mark.joined(start)
        # the source went to the end of the log, past all that had been measured
        self._measured, self.unshipped_bytes = self.mark, 0

    def _roll_up(self) -> None:
        """Hold in a few segments what many hold; those go once these are there."""
        if len(self._small) > 1:
            self._carry(self._rolled_upto, ROLLED_BYTES, is_rolled=True)
        kept = []
        for span in self._small:
            if self._rolled_upto.reaches(span.end):
                self._place.remove(span.name)
            else:
                kept.append(span)
        self._small = kept
