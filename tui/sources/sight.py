"""What is seen of one run: its log's facts, the present, or why there is nothing.

Values only; `tui.sources.run` reads them, and tests make them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from store.forecast import Forecast, Span
from store.present import HOUR, RECENT, Present
from store.sums import US_PER_S
from store.views import (
    Answers,
    ErrorCount,
    FailureRow,
    InFlight,
    Latencies,
    MinuteRow,
    Status,
)

US_PER_MINUTE = 60 * US_PER_S
LATELY = 10
"""Minutes, the present one among them, over which failures are counted."""

ENDED = frozenset({"finished", "cancelled", "drained", "budget_stop"})
"""States in which no process works on the run, as it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    """The failed attempt that was recorded last."""

    at_us: int
    task: int
    error: str
    message: str  #: as the endpoint said it: make it printable before it is shown
    times: int  #: it came so often in a row with the same words, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A run as its log has it, all at the same event."""

    status: Status
    minutes: tuple[MinuteRow, ...]  #: of the last hour
    oldest: tuple[InFlight, ...]
    errors: tuple[ErrorCount, ...]  #: most frequent first
    last_failure: LastFailure | None
    #: tasks completed a minute, in the run's best 10 minutes; None: not that long yet
    best: float | None = None
    latencies: tuple[Latencies, ...] = ()  #: of the whole run
    answers: Answers | None = None  #: the latest ones; None: not looked at
    #: when the next retry is due, by stage and model
    retries: Mapping[tuple[str, str], int] = field(default_factory=dict)
    failures: tuple[FailureRow, ...] | None = None  #: of `LATELY`; None: not known


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run at a moment: the log's facts, and what only the present can tell.

    Without slots, because what is reckoned from it is kept with it.
    """

    facts: Facts
    now_us: int
    is_alive: bool | None  #: a process holds the log; None: it ran on another machine

    @property
    def status(self) -> Status:
        """Counts, money, limits."""
        return self.facts.status

    @cached_property
    def present(self) -> Present:
        """What is reckoned from both, the same for every reader."""
        return Present(
            status=self.status,
            rows=self.facts.minutes,
            now_us=self.now_us,
            is_alive=self.is_alive,
        )

    @property
    def state(self) -> str:
        """The run's state in one word, of `store.estimates.STATES`."""
        return self.present.state

    def is_told_as(self, other: Snapshot) -> bool:
        """Whether nothing to be shown differs: what moves alone is told in seconds."""
        return (
            self.facts is other.facts
            and self.is_alive == other.is_alive
            and self.now_us // US_PER_S == other.now_us // US_PER_S
        )

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will come unless a person resumes the run."""
        return self.state in ENDED or (self.state == "lost" and not self.is_alive)

    @property
    def heartbeat_s(self) -> float | None:
        """Age of the last sign of life."""
        beat = self.status.heartbeat
        return None if beat is None else self.age_s(beat.at_us)

    def age_s(self, at_us: int) -> float:
        """How long ago that was; never negative, whatever the clocks say."""
        return max(0.0, (self.now_us - at_us) / US_PER_S)

    @property
    def ended(self) -> int:
        """Tasks that came to an end."""
        tasks = self.status.tasks
        return tasks.completed + tasks.failed

    @property
    def asked(self) -> int:
        """Tasks that are or were to be asked, as far as they are planned."""
        return self.status.tasks.planned - self.status.tasks.skipped

    @property
    def forecast(self) -> Forecast | None:
        """When it ends and what it costs; None where nothing moves, or is left."""
        return self.present.forecast

    @property
    def comes_to_usd(self) -> Span | None:
        """Dollars that the whole run will have cost; None: that cannot be said."""
        return self.present.comes_to_usd

    @property
    def recent_minutes(self) -> int:
        """Whole minutes that rates of the present are taken over; 0 at first."""
        return self.present.recent_minutes

    @property
    def recent(self) -> list[MinuteRow]:
        """What happened in them."""
        return self.present.recent

    @property
    def rate(self) -> float | None:
        """Tasks completed a minute, of late; None where nobody works, or not yet."""
        return self.present.rate

    @property
    def of_best(self) -> float | None:
        """That rate as a share of the best 10 minutes; None before it is steady.

        Where the last minutes are the best so far, they are all of it.
        """
        best = self.facts.best
        if self.rate is None or not best or self.recent_minutes < RECENT:
            return None
        return min(1.0, self.rate / best)

    @property
    def course(self) -> list[float | None]:
        """Tasks completed in each of the last 60 minutes; None: before the run."""
        now, first = (us // US_PER_MINUTE for us in (self.now_us, self.created_us))
        counted = dict.fromkeys(range(now - HOUR, now), 0)
        for row in self.facts.minutes:
            if row.t in counted:
                counted[row.t] += row.succeeded
        return [n if t >= first else None for t, n in counted.items()]

    @property
    def lately(self) -> list[FailureRow] | None:
        """What went wrong in the last `LATELY` minutes; None: not known."""
        first = self.now_us // US_PER_MINUTE - LATELY + 1
        found = self.facts.failures
        return None if found is None else [row for row in found if row.t >= first]

    @property
    def created_us(self) -> int:
        """When the run began, microseconds since 1970 UTC."""
        return self.status.created_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why there is nothing to show, as a sentence with the next step."""

    sentence: str


Sight: TypeAlias = Snapshot | Trouble
