"""Who else may be at work on a shard's slices, on a machine that nobody can ask.

What a place tells is no proof, since a process may have died a moment ago. So it is
said and not refused: whoever started both has to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from store.segments.source import SegmentSource
from store.slices import Shard, Slices

FRESH_S: Final = 30.0
"""Several times as long as what is recorded waits to be carried, and longer than the
clocks of two machines differ."""

_ENDS: Final = {"run_finished", "run_drained", "run_cancelled"}


def rivals(
    sources: Iterable[SegmentSource], shard: Shard, now_us: int
) -> Iterator[str]:
    """A sentence for each log that others were carrying a moment ago.

    Args:
        sources: logs with some of the slices, but for the shard's own.
        shard: what is about to begin.
        now_us: microseconds since 1970 UTC.
    """
    for source in sources:
        beat = source.heartbeat
        age_s = (now_us - beat.at_us) / 1e6
        if source.shard is None or source.last_kind in _ENDS or age_s > FRESH_S:
            continue
        both = Slices.parse(source.shard.slices) & Slices.parse(shard.slices)
        yield (
            f"Shard {source.shard} was carried from {beat.host} {max(0, age_s):.0f} "
            f"s ago, and has {len(both)} slices of Shard {shard}: if its process is "
            "still there, end one of the two, or both ask and pay for the same."
        )
