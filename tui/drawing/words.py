"""What the monitor says of a run in words, on a line as on a screen.

Every state that a person may have to act upon has a sentence with the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from store.estimates import US_PER_S
from store.forecast import Span
from store.printable import printable
from tui.drawing.format import UNKNOWN, duration, money
from tui.sources.run import Snapshot


def utc(at_us: int) -> str:
    """A moment to the second, in UTC.

    >>> utc(1_767_225_600_000_000)
    '2026-01-01T00:00:00Z'
    """
    moment = datetime.fromtimestamp(at_us // US_PER_S, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def sentence(snapshot: Snapshot) -> str:
    """What the run's state means and what to do about it; empty where all is well."""
    return _SENTENCES.get(snapshot.state, _nothing)(snapshot)


def farewell(snapshot: Snapshot | None) -> str:
    """What is said to somebody who leaves: that the run does not."""
    if snapshot is None or snapshot.is_ended:
        return ""
    return f"Detached; {printable(snapshot.status.run_id)} goes on."


def eta(snapshot: Snapshot, to: str = "–") -> str:
    """When the run ends, with its interval, or why that cannot be said.

    Args:
        snapshot: the run.
        to: stands between the ends of the interval.
    """
    forecast = snapshot.forecast
    if forecast is None:
        return UNKNOWN
    if forecast.seconds is None:
        return f"needs {forecast.needs:,} more" if forecast.needs else UNKNOWN
    so_far = "" if snapshot.status.planning_exhausted else ", of what is planned"
    return f"{span(forecast.seconds, duration, to)}{so_far}"


def span(value: Span, shown: Callable[[float], str], to: str = "–") -> str:
    """An estimate and, in brackets, its interval."""
    high = "?" if value.high is None else shown(value.high)
    return f"{shown(value.expected)} ({shown(value.low)}{to}{high})"


def spent(snapshot: Snapshot) -> str:
    """What was spent, of what may be."""
    budget = snapshot.status.budget_usd
    said = money(snapshot.status.cost_usd)
    return said if budget is None else f"{said} of {money(budget)}"


def _nothing(snapshot: Snapshot) -> str:
    """Of a run that goes on as it should."""
    if snapshot.status.tasks.planned:
        return ""
    return "nothing is planned yet"


def _quiet(snapshot: Snapshot) -> str:
    silence = snapshot.heartbeat_s
    return "" if silence is None else f"no sign of life for {duration(silence)}"


def _stalled(snapshot: Snapshot) -> str:
    signs = snapshot.status.signs
    since = snapshot.age_s(max(signs.success_us or 0, signs.phase_us))
    failure = snapshot.facts.last_failure
    why = "" if failure is None else f", last failure {failure.error}"
    return f"calls are made and none has succeeded for {duration(since)}{why}"


def _lost(snapshot: Snapshot) -> str:
    silence = duration(snapshot.heartbeat_s)
    run = snapshot.status.run_id
    if snapshot.is_alive:
        return f"its process has not been heard of for {silence}, and is still there"
    return f"its process is gone: take the run up again with 'siftlog resume {run}'"


def _paused(snapshot: Snapshot) -> str:
    by, run = snapshot.status.signs.paused_by, snapshot.status.run_id
    return f"paused by {by}, nothing is started: go on with 'siftlog resume {run}'"


def _draining(snapshot: Snapshot) -> str:
    by = snapshot.status.signs.draining_by
    return f"asked to end by {by}: calls under way are waited for"


def _drained(snapshot: Snapshot) -> str:
    why = snapshot.status.why or "it was asked to end"
    return f"{why}: go on with 'siftlog resume {snapshot.status.run_id}'"


def _budget_stop(snapshot: Snapshot) -> str:
    run = snapshot.status.run_id
    return (
        f"the budget is reached: raise it with 'siftlog budget {run} --add USD', then "
        f"'siftlog resume {run}'"
    )


def _cancelled(snapshot: Snapshot) -> str:
    return f"cancelled by {snapshot.status.signs.phase_by}: open tasks were skipped"


def _finished(snapshot: Snapshot) -> str:
    failed, run = snapshot.status.tasks.failed, snapshot.status.run_id
    if not failed:
        return "all tasks have ended"
    return f"{failed:,} tasks failed: ask them again with 'siftlog retry {run}'"


_SENTENCES: Mapping[str, Callable[[Snapshot], str]] = {
    "quiet": _quiet,
    "stalled": _stalled,
    "lost": _lost,
    "paused": _paused,
    "draining": _draining,
    "drained": _drained,
    "budget_stop": _budget_stop,
    "cancelled": _cancelled,
    "finished": _finished,
}
