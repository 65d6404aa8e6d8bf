"""A run at a moment: what its log and the present say together.

The verb `status`, plain lines and the monitor all take their figures from here, so that
one number has one value wherever it is read.
"""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from store.estimates import liveness
from store.forecast import Forecast, Span, forecast, left_by_stage
from store.status import Heartbeat, Status, status
from store.sums import US_PER_MINUTE
from store.traffic import MinuteRow, minutes, one_moment
from store.union.standing import Standing, standing

HOUR = 60
"""Minutes that charts and the forecast look back on."""
RECENT = 5
"""Whole minutes that a rate of the present is taken over, at most: long enough to even
out waits and retries, short enough to show a change."""

AT_WORK = frozenset({"live", "quiet", "draining", "stalled"})
"""States in which calls are made, or should be."""
FORESEEN = frozenset({"live", "quiet"})
"""States whose end can be foretold: nothing holds the run back."""


@dataclass(frozen=True, kw_only=True)
class Present:
    """A run's figures of the present.

    Without slots, because what is reckoned from it is kept with it.
    """

    status: Status
    rows: Sequence[MinuteRow]  #: of the last hour, ascending
    now_us: int
    is_alive: bool | None  #: whether its process holds the log; None: not known
    parts: Standing | None = None  #: of a run that is split

    @cached_property
    def state(self) -> str:
        """The run's state in one word, of `store.estimates.STATES`."""
        return liveness(self.status.signs, self.now_us, is_alive=self.is_alive)

    @property
    def _since(self) -> int:
        """The first whole minute of the present work."""
        return self.status.signs.phase_us // US_PER_MINUTE + 1

    @cached_property
    def forecast(self) -> Forecast | None:
        """When it ends and what it costs; None where nothing moves, or is left."""
        if self.state not in FORESEEN or not self.status.tasks.open:
            return None
        if self.status.batches.count:
            return None  # they come all at once, and nobody knows when
        return forecast(
            self.rows,
            left_by_stage(self.status.lanes, self.status.first),
            since=self._since,
            until=self.now_us // US_PER_MINUTE,
        )

    @property
    def comes_to_usd(self) -> Span | None:
        """Dollars that the whole run will have cost; None: that cannot be said."""
        spent = self.status.cost_usd
        beyond = self.forecast.cost_usd if self.forecast else None
        if spent is None or beyond is None:
            return None
        return Span(
            low=spent + beyond.low,
            expected=spent + beyond.expected,
            high=None if beyond.high is None else spent + beyond.high,
        )

    @property
    def recent_minutes(self) -> int:
        """Whole minutes that rates of the present are taken over; 0 at first.

        What is not whole would make a run look slower than it is.
        """
        return max(0, min(RECENT, self.now_us // US_PER_MINUTE - self._since))

    @property
    def recent(self) -> list[MinuteRow]:
        """What happened in them."""
        now = self.now_us // US_PER_MINUTE
        first = now - self.recent_minutes
        return [row for row in self.rows if first <= row.t < now]

    @property
    def rate(self) -> float | None:
        """Tasks completed a minute, of late; None where nobody works, or not yet."""
        if self.state not in AT_WORK or not self.recent_minutes:
            return None
        return sum(row.succeeded for row in self.recent) / self.recent_minutes

    @property
    def cost_an_hour(self) -> float | None:
        """Dollars an hour, of late; None where nobody works, or a price is unknown."""
        if self.rate is None or self.status.cost_usd is None:
            return None
        return cost_of(self.recent) * 60 / self.recent_minutes


def cost_of(rows: Iterable[MinuteRow]) -> float:
    """Dollars that the answers of some minutes cost."""
    return sum(row.cost_usd for row in rows)


def present(conn: sqlite3.Connection, now_us: int, *, is_held: bool) -> Present:
    """A run at the moment *now_us*.

    Args:
        conn: a reader.
        now_us: microseconds since 1970 UTC.
        is_held: whether a process of this machine held the log, asked before; what a
            dying writer committed last is then not missed.

    Raises:
        NotALog: it never began.
    """
    with one_moment(conn):
        stand = status(conn)
        return Present(
            status=stand,
            rows=minutes(conn, now_us // US_PER_MINUTE - HOUR),
            now_us=now_us,
            is_alive=is_working(is_held, stand.heartbeat),
            parts=standing(conn),
        )


def is_working(is_held: bool, beat: Heartbeat | None) -> bool | None:
    """Whether the run's process is there; None where it is another machine's.

    A lock that is not held says nothing of a process elsewhere.
    """
    is_elsewhere = beat is not None and beat.host != socket.gethostname()
    return None if is_elsewhere and not is_held else is_held
