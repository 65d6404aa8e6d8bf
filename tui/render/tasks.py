"""Renders tasks: the columns of tasks and attempts, and the verdicts on a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from store.clock import Clock
from store.document import answer_words
from store.events import AttemptAnswered, AttemptFailed
from store.fold_state import US_PER_S
from store.read.tasks import TaskOrder
from store.task import TaskState
from store.verdicts import Score, StoredVerdict
from tui.render.format import UNKNOWN, count, duration, latency, money
from tui.render.glyphs import STATE_WORDS, Glyphs
from tui.render.layout import TableColumn
from tui.render.models import short_names
from tui.sources.task_texts import failure_of
from tui.sources.tasks import AttemptLine, TaskDetail, TaskLine, TaskScoring

_TONES = {
    TaskState.QUEUED: "queued",
    TaskState.RUNNING: "running",
    TaskState.WAITING: "waiting",
    TaskState.COMPLETED: "done",
    TaskState.FAILED: "failed",
    TaskState.SKIPPED: "queued",
}

TITLE_ORDERS = {
    "task": TaskOrder.NUMBER,
    "try": TaskOrder.MOST_TRIED,
    "latency": TaskOrder.SLOWEST,
    "cost": TaskOrder.DEAREST,
    "when": TaskOrder.NEWEST,
}
"""Sort orders of clickable column titles."""


def state_words(line: TaskLine, glyphs: Glyphs) -> str:
    """Format a task's state as glyph and word."""
    row = line.row
    word = "held" if row.is_held else STATE_WORDS[row.state]
    return f"{glyphs.states[row.state]} {word}"


def ailment(line: TaskLine) -> str:
    """Return a task's error or reason; empty if there is none."""
    row = line.row
    if row.state is TaskState.COMPLETED:
        return f"unparsed: {row.reason}" if row.reason else ""
    return row.error or row.reason or ""


def task_columns(
    glyphs: Glyphs,
    clock: Clock,
    *,
    models: Sequence[str] = (),
    has_replicates: bool = False,
    is_about_problems: bool = False,
) -> tuple[TableColumn[TaskLine], ...]:
    """Return the columns of tasks.

    Args:
        glyphs: the characters that the terminal supports.
        clock: gives ages.
        models: those of the run, which are shown without what their names share.
        has_replicates: whether an item has several tasks of a stage and model.
        is_about_problems: whether the list is of tasks that had a problem.
    """
    short = short_names(models)

    def age(line: TaskLine) -> str:
        if line.updated_us is None:
            return UNKNOWN
        return duration(max(0.0, (clock.now_us() - line.updated_us) / US_PER_S))

    def cost(line: TaskLine) -> str:
        return UNKNOWN if line.row.cost_usd is None else money(line.row.cost_usd)

    return (
        TableColumn(
            title="task",
            width=4,
            most=9,
            text=lambda line: str(line.row.task),
            is_right=True,
            grows=True,
        ),
        TableColumn(
            title="item",
            width=13,
            most=40,
            text=lambda line: line.row.key,
            grows=True,
            is_middle_cut=True,
        ),
        TableColumn(
            title="title",
            width=16,
            most=90,
            text=lambda line: line.title,
            grows=True,
            hides=True,
            drops=5,
        ),
        TableColumn(
            title="stage",
            width=8,
            most=16,
            text=lambda line: line.row.stage,
            grows=True,
            drops=4,
        ),
        TableColumn(
            title="model",
            width=9,
            most=24,
            text=lambda line: short.get(line.row.model, line.row.model),
            grows=True,
            is_middle_cut=True,
            drops=3,
        ),
        _figure(
            "rep",
            3,
            lambda line: str(line.row.replicate),
            drops=2 if has_replicates else 10,
        ),
        TableColumn(
            title="state",
            width=11,
            text=lambda line: state_words(line, glyphs),
            tone=_state_tone,
        ),
        _figure("try", 3, lambda line: count(line.row.attempts), drops=8),
        _figure("latency", 8, lambda line: latency(line.row.latency_ms), drops=6),
        _figure("cost", 8, cost, drops=9),
        TableColumn(
            title="value",
            width=9,
            most=60,
            text=value,
            tone=_dim_unknown(value),
            grows=True,
            drops=1,
        ),
        TableColumn(
            title="outcome",
            width=18 if is_about_problems else 9,
            most=40,
            text=problem if is_about_problems else outcome,
            tone=_outcome_of_task_tone,
            grows=True,
        ),
        _figure("when", 8, age, drops=7),
    )


_SIGNS_OF_JSON = str.maketrans("", "", '{}[]"')


def value(line: TaskLine) -> str:
    """Return what was read from a reply: by the latest scoring, else its beginning."""
    if line.score is not None and line.score.value:
        return answer_words(line.score.value)
    head = " ".join(line.head.translate(_SIGNS_OF_JSON).split())
    return head or UNKNOWN


def outcome(line: TaskLine) -> str:
    """Say what became of a task: right or wrong, or what went wrong."""
    row = line.row
    if row.state is TaskState.COMPLETED and row.reason:
        return f"unparsed: {row.reason}"
    if row.error or row.reason:
        return row.error or row.reason or UNKNOWN
    match line.score:
        case Score(judged=1, right=right):
            verdict = "right" if right else "wrong"
        case Score(judged=judged, right=right) if judged:
            verdict = f"{right}/{judged} right"
        case _:
            verdict = ""
    ungrounded = "ungrounded" if line.score and line.score.ungrounded else ""
    return ", ".join(filter(None, (verdict, ungrounded))) or UNKNOWN


def problem(line: TaskLine) -> str:
    """Say what went wrong with a task, or had before it was completed."""
    return f"{line.recovered}, recovered" if line.recovered else outcome(line)


def _outcome_of_task_tone(line: TaskLine) -> str:
    row = line.row
    if row.error or row.reason:
        return "waiting" if row.state is TaskState.COMPLETED else _state_tone(line)
    match line.score:
        case Score(judged=judged, right=right) if judged:
            return "done" if right == judged else "failed"
        case Score(ungrounded=n) if n:
            return "waiting"
        case _:
            return "dim"


def _state_tone(line: TaskLine) -> str:
    return _TONES[line.row.state]


def _dim_unknown(text: Callable[[TaskLine], str]) -> Callable[[TaskLine], str]:
    return lambda line: "dim" if text(line) in {"", UNKNOWN} else ""


def _figure(
    title: str, width: int, text: Callable[[TaskLine], str], *, drops: int = 0
) -> TableColumn[TaskLine]:
    return TableColumn(title=title, width=width, text=text, is_right=True, drops=drops)


def attempt_columns() -> tuple[TableColumn[AttemptLine], ...]:
    """Return the columns of a task's attempts."""
    return (
        TableColumn(title="try", width=3, text=lambda line: count(line.row.attempt)),
        TableColumn(title="UTC", width=8, text=_started, drops=5),
        TableColumn(title="waited", width=8, text=_waited, is_right=True, drops=4),
        TableColumn(title="took", width=8, text=_latency, is_right=True),
        TableColumn(
            title="tokens in/out", width=13, text=_tokens, is_right=True, drops=2
        ),
        TableColumn(title="finish", width=7, text=_finish, drops=3),
        TableColumn(title="outcome", width=15, text=_outcome, tone=_outcome_tone),
        TableColumn(title="cost", width=8, text=_cost, is_right=True, drops=1),
        TableColumn(title="what followed", width=16, text=next_reason, grows=True),
    )


def time_of_day(at_us: int) -> str:
    """Format a time to the second, in UTC.

    >>> time_of_day(1_767_225_661_000_000)
    '00:01:01'
    """
    seconds = at_us // US_PER_S
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def next_reason(line: AttemptLine) -> str:
    """Describe what led from an attempt to the next one, or why there is none."""
    match line.row.outcome:
        case AttemptAnswered(reask=str()):
            return _with_fault("re-ask", line)
        case AttemptAnswered() if line.row.unparsed is not None:
            return _with_fault("final, not retried", line)
        case AttemptFailed() as failed:
            return " · ".join(_after_failure(failed))
        case None if line.is_lost:
            return "its process ended before an answer"
        case _:
            return ""


def _with_fault(text: str, line: AttemptLine) -> str:
    return " · ".join(filter(None, (text, line.row.fault)))


def _after_failure(failed: AttemptFailed) -> list[str]:
    """Return status, requested wait, decision, and the endpoint's message."""
    parts = [] if failed.status is None else [str(failed.status)]
    if failed.retry_after_s is not None:
        parts.append(f"retry-after {duration(failed.retry_after_s)}")
    is_final = failed.retry_in_s is None
    parts.append("final" if is_final else f"again after {duration(failed.retry_in_s)}")
    return [*parts, failed.message]


def _started(line: AttemptLine) -> str:
    started_us = line.row.started_us
    return UNKNOWN if started_us is None else time_of_day(started_us)


def _waited(line: AttemptLine) -> str:
    return duration(line.waited_s)


def _latency(line: AttemptLine) -> str:
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


def no_reply(line: AttemptLine) -> str:
    """Say why an attempt has no reply; empty: a reply came."""
    match line.row.outcome:
        case None if line.is_lost:
            return (
                "No reply: the process ended while it waited for one. Whether the "
                "endpoint answered is unknown."
            )
        case None:
            return f"No reply yet: the request was sent at {_started(line)} UTC."
        case AttemptFailed(status=int() as status, message=message):
            return f"The answer with status {status} had no text: {message}"
        case AttemptFailed(error=error, message=message):
            return f"No reply came: {error}: {message}"
        case AttemptAnswered():
            return ""


def _outcome(line: AttemptLine) -> str:
    match line.row.outcome:
        case None:
            return "unknown" if line.is_lost else "none yet"
        case AttemptAnswered(cached=is_cached):
            return failure_of(line.row) or ("cached" if is_cached else "answered")
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


_CODE = 8
"""Displayed characters of the hash of a scorer's code."""
_WORDS = {True: "right", False: "wrong", None: "not judged"}


def score_text(detail: TaskDetail) -> str:
    """Describe the latest scoring's verdicts on a task, then older ones."""
    if not detail.scored:
        return "The run has not been scored: siftlog score does."
    lines: list[str] = []
    for number, scored in enumerate(detail.scored):
        if number == 1:
            lines += ["Older scorings", ""]
        lines += _scoring(scored)
    left = detail.scorings - len(detail.scored)
    return "\n".join([*lines, *([f"and {left:,} older ones"] if left else [])])


def _scoring(scored: TaskScoring) -> Iterator[str]:
    yield (
        f"Scoring {scored.number} · {scored.scorer} · code {scored.code[:_CODE]} · "
        f"the log up to event {scored.seq:,}"
    )
    if scored.verdicts is None:
        yield "  Its verdicts are gone: siftlog score makes new ones."
    elif not scored.verdicts:
        yield "  It has no verdict on this task."
    else:
        for verdict in scored.verdicts:
            yield from _verdict(verdict)
    yield ""


def _verdict(verdict: StoredVerdict) -> Iterator[str]:
    yield f"  {_WORDS[verdict.correct]}"
    yield f"    value      {answer_words(verdict.value)}"
    yield f"    reference  {answer_words(verdict.expected)}"
    yield f"    rule       {verdict.rule}"
