"""Formats the state of a screening in one line, with a forecast."""

from __future__ import annotations

from jobs.screening.stop_rule import StopStatus
from jobs.stopping.screening_fold import ScreeningFold
from store.document import floored


def status_line(fold: ScreeningFold) -> str:
    """Return labelled, found, bound, target, and the minimum of further records.

    >>> from jobs.stopping.screening_fold import ScreeningFold
    >>> status_line(ScreeningFold("r", {"a": "0"}))
    ''
    """
    status = fold.status
    if status is None or fold.plan is None:
        return ""
    return (
        f"{status.read:,} of {status.records:,} labelled, "
        f"{status.relevant:,} relevant; recall >= {floored(status.recall)}, "
        f"target {fold.plan.event.target:g}; "
        f"{forecast(status, fold)}"
    )


def forecast(status: StopStatus, fold: ScreeningFold) -> str:
    """Return the minimum number of records until a stop; "stop" once it is reached.

    Only a lower limit is known: each relevant record that a draw finds delays the stop.
    While ranked order still finds some, there is no basis for a forecast.
    """
    if status.should_stop:
        return "stop"
    left = status.records - status.read
    more = status.draws_needed + (fold.until_draws if status.advice != "draw" else 0)
    if more >= left and status.advice != "draw":
        return "no forecast yet"
    if len(fold.waiting) > 1:
        return f"{len(fold.waiting):,} drawn records wait for a label"
    return f"{min(more, left):,} more at least"
