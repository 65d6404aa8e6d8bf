"""What a run has spent, and what it may spend, as its log knows it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from store.batch_view import sent_starts
from store.events import (
    AttemptStarted,
    CommandAccepted,
    CommandApplied,
    RunResumed,
    RunStarted,
)
from store.reading import recorded_rows
from store.statements import SQL
from store.task import pico, usd
from store.union.lost import lost_starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Money in whole pico-dollars, so that a budget goes on from it exactly."""

    spent_pico: int  #: known to be spent
    possible_pico: int  #: worst case of what may be billed and never arrived
    in_flight_pico: int  #: worst case of the calls without an outcome in the log
    cap_pico: int | None  #: for the whole run; None: no cap
    is_whole: bool  #: the price of every answer is known

    @property
    def spent_usd(self) -> float | None:
        """Dollars known to be spent; None: the price of an answer is unknown."""
        return usd(self.spent_pico) if self.is_whole else None

    @property
    def possible_usd(self) -> float:
        """Dollars that may be billed beyond that."""
        return usd(self.possible_pico)

    @property
    def in_flight_usd(self) -> float:
        """Dollars that calls may cost which are under way, or were when it ended."""
        return usd(self.in_flight_pico)

    @property
    def cap_usd(self) -> float | None:
        """Dollars that the run may cost; None: no cap."""
        return None if self.cap_pico is None else usd(self.cap_pico)


def spending(conn: sqlite3.Connection) -> Spending:
    """A run's money."""
    counters = dict(conn.execute(SQL["counters"]).fetchall())
    cap_pico = _cap_pico(conn)
    has_figures = cap_pico is not None or counters.get("attempts_answered", 0) > 0
    return Spending(
        spent_pico=counters.get("cost_pico", 0),
        possible_pico=counters.get("possible_pico", 0) + _worst(lost_starts(conn)),
        in_flight_pico=_worst(sent_starts(conn)),
        cap_pico=cap_pico,
        is_whole=has_figures and not counters.get("answers_unpriced"),
    )


def _worst(starts: Iterable[AttemptStarted]) -> int:
    """What calls reserved whose outcome is not recorded: there are few of them."""
    return sum(pico(start.worst_usd or 0.0) for start in starts)


def _cap_pico(conn: sqlite3.Connection) -> int | None:
    """The cap that the last start recorded, and what was added since.

    `siftlog budget RUN --add USD` is a command `budget` with `add_usd`. It counts from
    where it was applied: one that a crash left accepted is carried out by the next
    process, and must not count twice.
    """
    cap, since = None, 0
    for kind in ("run_started", "run_resumed"):
        for recorded in recorded_rows(conn, SQL["marked"], (kind, since, -1)):
            if isinstance(recorded.event, RunStarted | RunResumed):
                cap, since = recorded.event.budget_usd, recorded.seq
    if cap is None:
        return None
    asked = {
        recorded.event.command: json.loads(recorded.event.payload)["add_usd"]
        for recorded in recorded_rows(conn, SQL["marked"], ("command_accepted", 0, -1))
        if isinstance(recorded.event, CommandAccepted)
        and recorded.event.kind == "budget"
    }
    # every shard of a run records the same request
    applied = {
        recorded.event.command
        for recorded in recorded_rows(
            conn, SQL["marked"], ("command_applied", since, -1)
        )
        if isinstance(recorded.event, CommandApplied)
    }
    return pico(cap) + sum(pico(asked.get(command, 0)) for command in applied)


def dollars(amount: float | None) -> str:
    """Dollars for people, to a hundredth of a cent; what is unknown is never zero."""
    return "?" if amount is None else f"${amount:,.4f}"
