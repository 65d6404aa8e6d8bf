"""What the table of tasks shows of each."""

from __future__ import annotations

from collections.abc import Callable

from store.clock import Clock
from store.sums import US_PER_S
from store.task import TaskState
from store.views import Order, Score
from tui.drawing.format import UNKNOWN, count, duration, latency, money, task_name
from tui.drawing.glyphs import STATE_WORDS, Glyphs
from tui.drawing.tables.columns import Column
from tui.sources.task_lines import TaskLine

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
        Column(title="paper", width=14, text=lambda line: line.row.key, grows=True),
        Column(title="stage", width=8, text=lambda line: line.row.stage, drops=1),
        Column(title="model", width=11, text=lambda line: line.row.model, drops=6),
        Column(
            title="state",
            width=9,
            text=lambda line: state_words(line, glyphs),
            tone=tone,
        ),
        _figure("try", 3, lambda line: count(line.row.attempts), drops=4),
        _figure("latency", 8, lambda line: latency(line.row.latency_ms), drops=2),
        _figure("cost", 8, cost, drops=7),
        Column(
            title="score", width=6, text=score, tone=_score_tone, is_right=True, drops=3
        ),
        Column(title="error", width=10, text=_error, tone=_alarm, grows=True),
        _figure("when", 8, age, drops=5),
    )


def score(line: TaskLine) -> str:
    """How the latest scoring judged a task: a word, or how many of its verdicts."""
    match line.score:
        case None | Score(judged=0):
            return UNKNOWN
        case Score(judged=1, right=right):
            return "right" if right else "wrong"
        case Score(judged=judged, right=right):
            return f"{right}/{judged}"


def _score_tone(line: TaskLine) -> str:
    match line.score:
        case Score(judged=judged, right=right) if judged:
            return "done" if right == judged else "waiting"
        case _:
            return "dim"


def _error(line: TaskLine) -> str:
    """The class or the reason alone: of a task that is done, why it is unparsed."""
    return line.row.error or line.row.reason or ""


def _alarm(line: TaskLine) -> str:
    """The state's own colour; of a completed task an ailment is a warning."""
    state = line.row.state
    return "waiting" if state is TaskState.COMPLETED else _TONES[state]


def _figure(
    title: str, width: int, text: Callable[[TaskLine], str], *, drops: int
) -> Column[TaskLine]:
    return Column(title=title, width=width, text=text, is_right=True, drops=drops)
