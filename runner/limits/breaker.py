"""Stops calls to an endpoint that fails in the same way every time.

Sans-IO. Closed: requests flow. Open: the last attempts all failed with the same class;
single probes are sent at growing intervals. Stopped: this process sends nothing more,
because the endpoint never worked, has not worked for an hour, or refuses the key.

A 429 shows that the endpoint works, and a prompt that is too long shows nothing about
it: such failures neither open the breaker nor close it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner import errors as e
from runner.engine.failure_policy import RETRY_RULES

FAILURES_TO_OPEN = 20
"""Consecutive failures of one class that open the breaker."""
FAILURES_TO_OPEN_AT_FIRST = 6
"""The same before the first reply: probably the address is wrong."""
FIRST_PROBE_S = 1.0
LAST_PROBE_S = 60.0
GIVE_UP_S = 3600.0
"""A longer outage needs the user."""
GIVE_UP_AT_FIRST_S = 10.0
"""The same before the first reply; a starting server needs seconds."""
NEUTRAL = (
    e.RateLimited,
    e.OutOfFiles,
    e.SchemaMismatch,
    e.Expired,
    e.FormRefused,
    e.Cancelled,
    e.ContentFault,
    e.ContentFiltered,
    e.ContextTooLong,
    e.NotServed,
    e.Unavailable,
    e.JobFault,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerStatistics:
    """State of a breaker."""

    is_open: bool
    consecutive: int
    error: str | None  #: class of the last failures
    stopped: str | None  #: why nothing more is sent


class Breaker:
    """The breaker of one endpoint."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._consecutive = 0
        self._class: type[e.AttemptError] | None = None
        self._opened_at: float | None = None
        self._probe_at = 0.0
        self._probe_gap = FIRST_PROBE_S
        self._worked = False
        self._statuses: set[int | None] = set()  #: of failures before the first reply
        self._stopped: str | None = None

    @property
    def stopped(self) -> str | None:
        """Return why nothing more is sent to the endpoint; None while it is in use."""
        return self._stopped

    @property
    def is_open(self) -> bool:
        """Whether only probes are sent."""
        return self._opened_at is not None

    def ready_at(self, now: float, in_flight: int) -> float | None:
        """Return when a request may start; None: after one in flight returns."""
        if self._stopped is not None:
            return None
        if self._opened_at is None:
            return now
        return None if in_flight else max(now, self._probe_at)

    def succeeded(self) -> None:
        """Record a reply."""
        self._worked = True
        self._consecutive = 0
        self._class = None
        self._opened_at = None
        self._probe_gap = FIRST_PROBE_S

    def failed(self, error: e.AttemptError, now: float) -> str | None:
        """Count a failure; return a message if the breaker changed its state."""
        if isinstance(error, NEUTRAL) or self._stopped is not None:
            return None
        if isinstance(error, e.BadRequest) and error.status is None:
            return None  # a gap in a recording, which no request can fill
        if RETRY_RULES[type(error)].stops_endpoint:
            return self.stop(self._sentence(error))
        if not self._worked:
            self._statuses.add(error.status)
        self._consecutive = self._consecutive + 1 if type(error) is self._class else 1
        self._class = type(error)
        if self._opened_at is not None:
            return self._probe_failed(error, now, self._opened_at)
        enough = FAILURES_TO_OPEN if self._worked else FAILURES_TO_OPEN_AT_FIRST
        if self._consecutive < enough:
            return None
        self._opened_at = now
        self._probe_at = now + self._probe_gap
        return (
            f"{self._name}: the last {enough} attempts all failed with "
            f"{type(error).__name__}; sending one probe at a time until it answers."
        )

    def _sentence(self, error: e.AttemptError) -> str:
        """Return why the endpoint is stopped."""
        match error:
            case e.AuthFailed():
                return f"{self._name} refused the key: {error}"
            case e.OptionRefused():
                return str(error)
            case _:
                return f"{self._name} is out: {error}"

    def _probe_failed(
        self, error: e.AttemptError, now: float, opened_at: float
    ) -> str | None:
        if now < self._probe_at:
            return None  # sent before the breaker opened; not a probe
        self._probe_at = now + self._probe_gap
        self._probe_gap = min(LAST_PROBE_S, self._probe_gap * 2)
        kind = type(error).__name__
        if not self._worked and now - opened_at > GIVE_UP_AT_FIRST_S:
            return self.stop(f"{self._name} {self._at_first()}: {kind}: {error}")
        if now - opened_at > GIVE_UP_S:
            return self.stop(f"{self._name} has failed for an hour: {kind}: {error}")
        return None

    def _at_first(self) -> str:
        """Describe the statuses of an endpoint that never worked."""
        statuses = sorted(status for status in self._statuses if status is not None)
        if not statuses:
            return "never answered"
        if self._statuses == {200}:
            return "answered every request with a reply that cannot be read"
        status_text = " or ".join(map(str, statuses))
        share = "some requests" if None in self._statuses else "every request"
        only = ", and the others not at all" if None in self._statuses else ""
        return f"answered {share} with {status_text}{only}"

    def stop(self, reason: str) -> str:
        """Send nothing more; return *reason*."""
        self._stopped = reason
        return reason

    def statistics(self) -> BreakerStatistics:
        """Return the breaker's state."""
        return BreakerStatistics(
            is_open=self.is_open,
            consecutive=self._consecutive,
            error=self._class.__name__ if self._class else None,
            stopped=self._stopped,
        )
