"""What the table of a task's attempts shows of each, and the words for its outcome."""

from __future__ import annotations

from store.events import AttemptAnswered, AttemptFailed
from store.sums import US_PER_S
from tui.drawing.format import UNKNOWN, count, duration, latency, money
from tui.drawing.tables.columns import Column
from tui.sources.task_detail import AttemptLine


def attempt_columns() -> tuple[Column[AttemptLine], ...]:
    """The columns of a task's attempts."""
    return (
        Column(title="try", width=3, text=lambda line: count(line.row.attempt)),
        Column(title="UTC", width=8, text=_started, drops=5),
        Column(title="waited", width=8, text=_waited, is_right=True, drops=4),
        Column(title="took", width=8, text=_took, is_right=True),
        Column(title="in / out", width=13, text=_tokens, is_right=True, drops=2),
        Column(title="finish", width=7, text=_finish, drops=3),
        Column(title="outcome", width=15, text=_outcome, tone=_outcome_tone),
        Column(title="cost", width=8, text=_cost, is_right=True, drops=1),
        Column(title="why next", width=16, text=why_next, grows=True),
    )


def time_of_day(at_us: int) -> str:
    """A moment to the second, in UTC.

    >>> time_of_day(1_767_225_661_000_000)
    '00:01:01'
    """
    seconds = at_us // US_PER_S
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def why_next(line: AttemptLine) -> str:
    """What led from an attempt to the next one, or why there is none."""
    match line.row.outcome:
        case AttemptAnswered(reask=str()):
            return _with_fault("re-ask", line)
        case AttemptAnswered() if line.row.unparsed is not None:
            return _with_fault("final, not asked again", line)
        case AttemptFailed() as failed:
            return " · ".join(_after_failure(failed))
        case None if line.is_lost:
            return "its process ended before an answer"
        case _:
            return ""


def _with_fault(what: str, line: AttemptLine) -> str:
    return " · ".join(filter(None, (what, line.row.fault)))


def _after_failure(failed: AttemptFailed) -> list[str]:
    """The status, what the endpoint asked for, what was decided, and its words."""
    said = [] if failed.status is None else [str(failed.status)]
    if failed.retry_after_s is not None:
        said.append(f"retry-after {duration(failed.retry_after_s)}")
    is_final = failed.retry_in_s is None
    said.append("final" if is_final else f"again after {duration(failed.retry_in_s)}")
    return [*said, failed.message]


def _started(line: AttemptLine) -> str:
    started_us = line.row.started_us
    return UNKNOWN if started_us is None else time_of_day(started_us)


def _waited(line: AttemptLine) -> str:
    return duration(line.waited_s)


def _took(line: AttemptLine) -> str:
    outcome = line.row.outcome
    return UNKNOWN if outcome is None else latency(outcome.latency_ms)


def _tokens(line: AttemptLine) -> str:
    match line.row.outcome:
        case AttemptAnswered(tokens_in=tokens_in, tokens_out=tokens_out):
            return f"{count(tokens_in)} / {count(tokens_out)}"
        case _:
            return f"{UNKNOWN} / {UNKNOWN}"


def _finish(line: AttemptLine) -> str:
    match line.row.outcome:
        case AttemptAnswered(finish_reason=reason):
            return reason
        case _:
            return UNKNOWN


def _outcome(line: AttemptLine) -> str:
    match line.row.outcome:
        case None:
            return "unknown" if line.is_lost else "none yet"
        case AttemptAnswered(reask=str() as reason):
            return reason
        case AttemptAnswered() if line.row.unparsed is not None:
            return line.row.unparsed
        case AttemptAnswered(cached=True):
            return "cached"
        case AttemptAnswered():
            return "answered"
        case AttemptFailed(error=error):
            return error


def _outcome_tone(line: AttemptLine) -> str:
    match line.row.outcome:
        case None:
            return "failed" if line.is_lost else "running"
        case AttemptAnswered(reask=None) if line.row.unparsed is None:
            return "done"
        case AttemptAnswered():
            return "waiting"
        case AttemptFailed():
            return "failed"


def _cost(line: AttemptLine) -> str:
    match line.row.outcome:
        case AttemptAnswered(cached=True):
            return money(0.0)
        case AttemptAnswered(cost_usd=usd):
            return money(usd)
        case _:
            return UNKNOWN
