"""What tables show of tasks and of their attempts."""

from __future__ import annotations

from collections.abc import Callable

from store.clock import Clock
from store.estimates import US_PER_S
from store.events import AttemptAnswered, AttemptFailed
from store.task import TaskState
from store.views import AttemptRow, Order
from tui.drawing.format import UNKNOWN, count, duration, latency, money
from tui.drawing.glyphs import STATE_WORDS, Glyphs
from tui.sources.tasks import TaskLine
from tui.widgets.columns import Column

_TONES = {
    TaskState.QUEUED: "queued",
    TaskState.RUNNING: "running",
    TaskState.WAITING: "waiting",
    TaskState.COMPLETED: "done",
    TaskState.FAILED: "failed",
    TaskState.SKIPPED: "queued",
}

TITLE_ORDERS = {
    "task": Order.NUMBER,
    "try": Order.MOST_TRIED,
    "latency": Order.SLOWEST,
    "cost": Order.DEAREST,
    "when": Order.NEWEST,
}
"""How a click on a title sorts, where there is an order for it."""


def task_name(task: int) -> str:
    """How a task is called; filters and retries understand it.

    >>> task_name(41_882)
    'T-0041882'
    """
    return f"T-{task:07}"


def state_words(line: TaskLine, glyphs: Glyphs) -> str:
    """A task's state as a sign and a word."""
    row = line.row
    word = "held" if row.is_held else STATE_WORDS[row.state]
    return f"{glyphs.states[row.state]} {word}"


def ailment(line: TaskLine) -> str:
    """What is wrong with a task, as its error or its reason; empty if nothing is."""
    row = line.row
    if row.state is TaskState.COMPLETED:
        return f"unparsed: {row.reason}" if row.reason else ""
    return row.error or row.reason or ""


def task_columns(glyphs: Glyphs, clock: Clock) -> tuple[Column[TaskLine], ...]:
    """The columns of the tasks."""

    def age(line: TaskLine) -> str:
        if line.updated_us is None:
            return UNKNOWN
        return duration(max(0.0, (clock.now_us() - line.updated_us) / US_PER_S))

    def tone(line: TaskLine) -> str:
        return _TONES[line.row.state]

    def cost(line: TaskLine) -> str:
        return UNKNOWN if line.row.cost_usd is None else money(line.row.cost_usd)

    return (
        Column(title="task", width=9, text=lambda line: task_name(line.row.task)),
        Column(title="paper", width=20, text=lambda line: line.row.key, grows=True),
        Column(title="stage", width=10, text=lambda line: line.row.stage, drops=1),
        Column(title="model", width=16, text=lambda line: line.row.model, drops=4),
        Column(
            title="state",
            width=9,
            text=lambda line: state_words(line, glyphs),
            tone=tone,
        ),
        _figure("try", 3, lambda line: count(line.row.attempts), drops=3),
        _figure("latency", 8, lambda line: latency(line.row.latency_ms), drops=2),
        _figure("cost", 9, cost, drops=5),
        Column(title="error", width=14, text=ailment, tone=_alarm, grows=True),
        _figure("when", 8, age, drops=6),
    )


def _alarm(line: TaskLine) -> str:
    """The state's own colour; of a completed task an ailment is a warning."""
    state = line.row.state
    return "waiting" if state is TaskState.COMPLETED else _TONES[state]


def _figure(
    title: str, width: int, text: Callable[[TaskLine], str], *, drops: int
) -> Column[TaskLine]:
    return Column(title=title, width=width, text=text, is_right=True, drops=drops)


def attempt_columns() -> tuple[Column[AttemptRow], ...]:
    """The columns of a task's attempts."""
    return (
        Column(title="try", width=3, text=lambda row: count(row.attempt)),
        Column(title="UTC", width=8, text=_started),
        Column(title="took", width=8, text=_took, is_right=True),
        Column(title="in / out", width=15, text=_tokens, is_right=True, drops=3),
        Column(title="finish", width=8, text=_finish, drops=4),
        Column(title="outcome", width=14, text=_outcome, tone=_outcome_tone),
        Column(title="cost", width=9, text=_cost, is_right=True, drops=2),
        Column(title="why next", width=10, text=_why, grows=True, drops=1),
    )


def time_of_day(at_us: int) -> str:
    """A moment to the second, in UTC.

    >>> time_of_day(1_767_225_661_000_000)
    '00:01:01'
    """
    seconds = at_us // US_PER_S
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _started(row: AttemptRow) -> str:
    return UNKNOWN if row.started_us is None else time_of_day(row.started_us)


def _took(row: AttemptRow) -> str:
    return UNKNOWN if row.outcome is None else latency(row.outcome.latency_ms)


def _tokens(row: AttemptRow) -> str:
    match row.outcome:
        case AttemptAnswered(tokens_in=tokens_in, tokens_out=tokens_out):
            return f"{count(tokens_in)} / {count(tokens_out)}"
        case _:
            return f"{UNKNOWN} / {UNKNOWN}"


def _finish(row: AttemptRow) -> str:
    match row.outcome:
        case AttemptAnswered(finish_reason=reason):
            return reason
        case _:
            return UNKNOWN


def _outcome(row: AttemptRow) -> str:
    match row.outcome:
        case None:
            return "none yet" if row.ended_seq is None else UNKNOWN
        case AttemptAnswered(reask=None, cached=True):
            return "cached"
        case AttemptAnswered(reask=None):
            return "answered"
        case AttemptAnswered(reask=reason):
            return f"refused: {reason}"
        case AttemptFailed(error=error):
            return error


def _outcome_tone(row: AttemptRow) -> str:
    match row.outcome:
        case None:
            return "running"
        case AttemptAnswered(reask=None):
            return "done"
        case AttemptAnswered():
            return "waiting"
        case AttemptFailed():
            return "failed"


def _cost(row: AttemptRow) -> str:
    match row.outcome:
        case AttemptAnswered(cost_usd=float() as usd):
            return money(usd)
        case _:
            return UNKNOWN


def _why(row: AttemptRow) -> str:
    match row.outcome:
        case AttemptAnswered(reask=str()):
            return "asked again"
        case AttemptFailed(retry_in_s=None, message=message):
            return f"final: {message}"
        case AttemptFailed(retry_in_s=float() as wait_s, message=message):
            return f"again after {duration(wait_s)}: {message}"
        case _:
            return ""
