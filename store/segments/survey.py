"""What a place tells of a run by itself: nothing is merged, and no database is opened.

For a look from where no log may lie, such as a login node. Of each log its listing, its
last segment and its last word are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from store.segments.done import finished
from store.segments.place import Place
from store.segments.source import SegmentSource, sources
from store.slices import ALL, Slices, left_by
from store.verify import silent

_ENDED: Final = "ended"
_STOPPED: Final[Mapping[str | None, str]] = {
    "run_drained": "drained",
    "run_cancelled": "cancelled",
}
"""By the last event: where nobody is at work, and something is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedLog:
    """One log, as far as it was carried."""

    log: str  #: its id, in hex
    run_id: str
    slices: Slices  #: what it plans
    events: int  #: that lead on from its beginning
    host: str  #: of who carried the last of them
    carried_us: int  #: when; microseconds since 1970 UTC
    state: str  #: as it was then: "ended", "drained", "cancelled", or else "open"

    @property
    def has_ended(self) -> bool:
        """Whether it has come to the end of what it plans."""
        return self.state == _ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The logs in a place."""

    logs: tuple[CarriedLog, ...]  #: by the first of their slices

    @property
    def missing(self) -> Slices:
        """What no log plans yet."""
        return left_by(each.slices for each in self.logs)

    @property
    def unfinished(self) -> Slices:
        """What none of the logs has come to the end of."""
        return left_by(each.slices for each in self.logs if each.has_ended)


def survey(place: Place, tell: Callable[[str], None] = silent) -> Survey:
    """Look at what a place holds.

    Args:
        place: where segments are kept.
        tell: hears a sentence on whatever cannot be read, and is passed over.

    Raises:
        PlaceAway: the place cannot be read.
    """
    ends = {done.log: done.last_seq for done in finished(place, tell)}
    logs = [_carried(source, ends) for source in sources(place, tell)]
    return Survey(
        logs=tuple(sorted(logs, key=lambda each: (each.slices.ranges, each.log)))
    )


def _carried(source: SegmentSource, ends: dict[str, int]) -> CarriedLog:
    log, events = source.identity.log.hex(), source.mark.seq
    # one that was gone on with since has not
    has_ended = ends.get(log) == events
    return CarriedLog(
        log=log,
        run_id=source.identity.run_id,
        slices=ALL if source.shard is None else Slices.parse(source.shard.slices),
        events=events,
        host=source.heartbeat.host,
        carried_us=source.heartbeat.at_us,
        state=_ENDED if has_ended else _STOPPED.get(source.last_kind, "open"),
    )
