"""Says in a line where a screening stands, with a forecast that promises nothing."""

from __future__ import annotations

from jobs.screening.stop_rule import StopStatus
from jobs.stopping.screening_fold import ScreeningFold


def status_line(fold: ScreeningFold) -> str:
    """Labelled, found, bound, target, and how many more records there are at least.

    >>> from jobs.stopping.screening_fold import ScreeningFold
    >>> status_line(ScreeningFold("r", {"a": "0"}))
    ''
    """
    status = fold.status
    if status is None or fold.plan is None:
        return ""
    parts = [
        f"{status.read:,} of {status.records:,} labelled",
        f"{status.relevant:,} relevant",
        f"recall at least {floored(status.recall)} (target {fold.plan.event.target:g})",
        forecast(status, fold),
    ]
    return "; ".join(filter(None, parts))


def forecast(status: StopStatus, fold: ScreeningFold) -> str:
    """How many more records a stop takes at least; "" once it is reached.

    Only a lower end is known: each relevant record that a draw finds puts the stop off.
    """
    if status.should_stop:
        return "stop"
    more = status.draws_needed + (fold.until_draws if status.advice != "draw" else 0)
    left = status.records - status.read
    waiting = len(fold.waiting) - (1 if fold.waiting else 0)
    behind = f", {waiting:,} drawn wait for a label" if waiting else ""
    if more >= left:
        return f"{left:,} more, all that are left, as things stand{behind}"
    return f"about {more:,} more if none is relevant{behind}"


def floored(share: float) -> str:
    """A lower bound with three decimals, never rounded up.

    >>> floored(0.94999)
    '0.949'
    """
    return f"{int(share * 1000 + 1e-9) / 1000:.3f}"
