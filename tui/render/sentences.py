"""Describes a run in words, for lines and screens.

Every state that may need the user's action has a sentence with the next step.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from store.document import plural
from store.fold_state import US_PER_S
from store.printable import printable
from store.read.forecast import (
    ForecastInterval,
    budget_text,
    rough_duration,
    time_left_text,
)
from tui.render.format import UNKNOWN, count, duration, money, utc
from tui.sources.run_snapshot import RunSnapshot


def age(snapshot: RunSnapshot, frozen: RunSnapshot | None) -> str:
    """Describe the age of the displayed data.

    Args:
        snapshot: the latest snapshot.
        frozen: the displayed snapshot if frozen; None: not frozen.
    """
    if frozen is None:
        seen = f"event {count(snapshot.status.last_seq)}"
        return f"{seen} · as of {utc(snapshot.now_us)[11:19]} UTC"
    seconds = (snapshot.now_us - frozen.now_us) / US_PER_S
    missed = snapshot.status.last_seq - frozen.status.last_seq
    return (
        f"FROZEN {duration(seconds)}, {plural(missed, 'event')} since: space continues"
    )


def sentence(snapshot: RunSnapshot) -> str:
    """Explain the run's state and the next step; empty if all is well."""
    return _SENTENCES.get(snapshot.state, _live)(snapshot)


def farewell(snapshot: RunSnapshot | None) -> str:
    """Describe that the run continues when the user leaves."""
    if snapshot is None or snapshot.is_ended:
        return ""
    return f"The monitor has quit; {printable(snapshot.status.run_id)} continues."


def eta(snapshot: RunSnapshot, to: str = " to ") -> str:
    """Format the time left with its interval; `-` if it is unknown.

    Args:
        snapshot: the run.
        to: separates the ends of the interval.
    """
    forecast = snapshot.forecast
    if forecast is None or forecast.seconds is None:
        return UNKNOWN
    return time_left_text(forecast.seconds, to, paused=forecast.paused_tasks)


def eta_unpaused(snapshot: RunSnapshot) -> str:
    """Format the time left of what is not paused; `-` if it is unknown."""
    forecast = snapshot.forecast
    if forecast is None or forecast.seconds is None:
        return UNKNOWN
    return time_left_text(forecast.seconds)


def ending(snapshot: RunSnapshot) -> str:
    """Describe the time left or the state of a run, short enough for a list."""
    instead = _ENDINGS.get(snapshot.state)
    if instead is not None:
        return instead(snapshot)
    forecast = snapshot.forecast
    if forecast is None or forecast.seconds is None:
        return UNKNOWN
    return between(forecast.seconds, rough_duration)


def _without_success(snapshot: RunSnapshot) -> str:
    signs = snapshot.status.signs
    return duration(snapshot.age_s(max(signs.success_us or 0, signs.phase_us)))


def _elapsed(snapshot: RunSnapshot) -> str:
    return f"took {duration(snapshot.facts.worked_s)}"


def _ended(snapshot: RunSnapshot) -> str:
    return f"ended {duration(snapshot.age_s(snapshot.status.signs.phase_us))} ago"


_ENDINGS: Mapping[str, Callable[[RunSnapshot], str]] = {
    "stalled": lambda seen: f"no success {_without_success(seen)}",
    "paused": lambda seen: f"paused by {seen.status.signs.paused_by}",
    "lost": lambda seen: f"silent {duration(seen.heartbeat_s)}",
    "finished": _elapsed,
    "drained": _ended,
    "budget_stop": _ended,
    "cancelled": _ended,
}


def span(
    value: ForecastInterval, format_value: Callable[[float], str], to: str = " to "
) -> str:
    """Format an estimate and its interval in brackets.

    >>> span(ForecastInterval(low=1020, expected=1140, high=1440), duration)
    '19 min (17 to 24 min)'
    >>> span(ForecastInterval(low=7500, expected=8400, high=None), duration)
    '2 h 20 (2 h 05 or more)'
    """
    return f"{format_value(value.expected)} ({between(value, format_value, to)})"


def between(
    value: ForecastInterval, format_value: Callable[[float], str], to: str = " to "
) -> str:
    """Format the ends of an interval; a unit that both share is written once."""
    low = format_value(value.low)
    if value.high is None:
        return f"{low} or more"
    high = format_value(value.high)
    if low == high:
        return low
    figure, _, unit = low.partition(" ")
    is_shared = unit.isalpha() and high.partition(" ")[2] == unit
    return f"{figure if is_shared else low}{to}{high}"


def spent(snapshot: RunSnapshot) -> str:
    """Format spending, and the budget if there is one."""
    budget = snapshot.status.budget_usd
    cost = money(snapshot.status.cost_usd)
    return cost if budget is None else f"{cost} of {money(budget)}"


def budget_stop(snapshot: RunSnapshot) -> str:
    """Describe when the budget stops the run; empty if it lasts until the end."""
    forecast = snapshot.forecast
    if forecast is None or forecast.budget_seconds is None:
        return ""
    return budget_text(forecast.budget_seconds)


def may_be_billed(snapshot: RunSnapshot) -> str:
    """Describe the most that may be billed beside the cost; empty if it is nothing.

    It is of calls in flight, and of calls without a recorded reply or usage.
    """
    status = snapshot.status
    most = (status.possible_usd or 0.0) + (status.in_flight_usd or 0.0)
    return f"up to {money(most)} may still be billed" if most else ""


def _live(snapshot: RunSnapshot) -> str:
    """Describe a healthy live run."""
    if not snapshot.status.tasks.planned:
        return "no tasks planned yet"
    if not snapshot.status.pauses:
        return ""
    return f"{pause_words(snapshot)} · 'siftlog resume {_run(snapshot)}' resumes it"


def _run(snapshot: RunSnapshot) -> str:
    return shlex.quote(snapshot.status.run_id)


def pause_words(snapshot: RunSnapshot) -> str:
    """Say what is paused, and by whom."""
    by = snapshot.status.signs.paused_by
    scope = " and ".join(map(str, snapshot.status.pauses)) or f"the run (by {by})"
    return f"paused: {scope}"


def _quiet(snapshot: RunSnapshot) -> str:
    silence = snapshot.heartbeat_s
    return "" if silence is None else f"no sign of life for {duration(silence)}"


def _stalled(snapshot: RunSnapshot) -> str:
    since = _without_success(snapshot)
    failure, errors = snapshot.facts.last_failure, snapshot.facts.errors
    if failure is None:
        reason = ""
    elif failure.times > 1:
        reason = f", {failure.error} {failure.times:,} times in a row"
    else:
        n = sum(error.n for error in errors if error.error == failure.error)
        reason = f", last failure {failure.error} ({n:,} so far)"
    return f"calls are made and none has succeeded for {since}{reason}"


def _lost(snapshot: RunSnapshot) -> str:
    silence = duration(snapshot.heartbeat_s)
    run = snapshot.status.run_id
    if snapshot.is_alive:
        return f"no heartbeat for {silence}, but its process is still running"
    heartbeat = snapshot.status.heartbeat
    if snapshot.is_alive is None and heartbeat is not None:
        return (
            f"no heartbeat for {silence}; it ran on {heartbeat.host}: "
            f"check there, or resume it here with 'siftlog resume {run}'"
        )
    return f"its process is gone: resume the run with 'siftlog resume {run}'"


def _paused(snapshot: RunSnapshot) -> str:
    lift = f"continue with 'siftlog resume {_run(snapshot)}'"
    return f"no calls start: {lift} · {pause_words(snapshot)}"


def _draining(snapshot: RunSnapshot) -> str:
    by = snapshot.status.signs.draining_by
    return f"stopping, requested by {by}: waiting for calls in flight"


def _drained(snapshot: RunSnapshot) -> str:
    reason = snapshot.status.why or "a stop was requested"
    command = f"siftlog resume {snapshot.status.run_id}"
    # most reasons say how to go on
    return reason if command in reason else f"continue with '{command}' · {reason}"


def _budget_stop(snapshot: RunSnapshot) -> str:
    run = snapshot.status.run_id
    return (
        f"the budget is reached: continue with a larger one: "
        f"'siftlog resume {run} --budget USD'"
    )


def _cancelled(snapshot: RunSnapshot) -> str:
    return f"cancelled by {snapshot.status.signs.phase_by}: open tasks were skipped"


def _finished(snapshot: RunSnapshot) -> str:
    n, run = snapshot.status.tasks.failed, snapshot.status.run_id
    failed = f"{plural(n, 'task')} failed"
    if snapshot.status.imported:
        return f"imported: the answers were made elsewhere, {failed} there"
    if not n:
        return "all tasks are done"
    return f"{failed}: retry with 'siftlog retry {run}'"


_SENTENCES: Mapping[str, Callable[[RunSnapshot], str]] = {
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
