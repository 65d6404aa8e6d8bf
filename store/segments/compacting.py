"""Small segments of a log put together from the place alone, where its disk is gone.

A shard rolls its own segments up, from its log. One that died leaves up to 255 small
ones, and a run of many shards that were ended often has thousands in the end, which
file servers and listings are slow with.
"""

from __future__ import annotations

from typing import Final

from store.segments.place import Place
from store.segments.segment import Segment, decode, encode, joined
from store.segments.sending import ROLLED_BYTES
from store.segments.source import SegmentSource
from store.segments.span import Mark, Span, leading_on

FEWEST: Final = 2
"""Small segments that are worth it: one is no fewer when it is put anew."""


def compact(place: Place, source: SegmentSource) -> int:
    """Hold in a few segments what many hold; those go once these are there.

    Harmless beside readers, and beside a process that carries the log after all: any
    cut will do. What follows a gap, or cannot be read, is left alone.

    Returns:
        How many small ones were removed.

    Raises:
        PlaceAway: the place refused.
        CorruptLog: a large one is damaged, or the log went on in two ways; then none
            is removed.
    """
    small = [span for span in source.spans if not span.is_rolled]
    if len(small) < FEWEST:
        return 0
    start, link = Mark(), source.identity.genesis
    for span in leading_on((s for s in source.spans if s.is_rolled), start):
        start, link = start.joined(span.end), _kept(place, span).link
    for stretch in joined(source.stretches(start.seq, start.parts), ROLLED_BYTES):
        segment = Segment(
            origin=source.origin,
            made_us=source.heartbeat.at_us,
            start=start,
            link_before=link,
            stretch=stretch,
        )
        span, data = segment.span(is_rolled=True), encode(segment)
        # whether it follows on, before others are removed for it
        decode(data, span, place.address)
        place.put_new(span.name, data)
        start, link = segment.end, segment.link
    covered = [span for span in small if start.reaches(span.end)]
    for span in covered:
        place.remove(span.name)
    return len(covered)


def _kept(place: Place, span: Span) -> Segment:
    data = place.get(span.name)
    return decode(b"" if data is None else data, span, place.address)
