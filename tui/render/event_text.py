"""Describes an event in one line: figures and words, never JSON.

Money, tokens, errors and messages come first, since a line is cut at its end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    BatchCancelled,
    BatchCreated,
    BatchEnded,
    BatchEventBase,
    BatchPolled,
    BatchPrepared,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    LimitObserved,
    ParameterRefused,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ScoringRecorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
    UnknownEvent,
    fields_of,
)
from store.json_text import readable
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelEventBase,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.lineage import StageAdded
from store.results import ComparisonDecided
from tui.render.format import (
    UNKNOWN,
    amount,
    count,
    duration,
    latency,
    money,
    task_name,
)

DECIDED = {"better": "better than", "worse": "worse than", "close": "as good as"}
"""Verdicts of a comparison in a sentence."""
MAX_NAMED_TASKS = 5
"""Maximum tasks that are named; more are counted."""


def event_line(event: Event | UnknownEvent) -> str:  # noqa: C901, PLR0911, PLR0912 - one for a kind
    """Describe an event in one line; it may contain anything from outside."""
    match event:
        case RunStarted():
            models = ", ".join(dict.fromkeys(chain(*event.models.values())))
            budget = _budget(event.budget_usd)
            return _joined(
                f"{event.job} {event.job_version} asks {models}",
                "imported" if event.imported else "",
                budget,
                f"siftlog {event.siftlog_version}",
            )
        case RunResumed():
            return _joined(
                "resumed",
                f"{_attempts(event.unknown)} of unknown outcome"
                if event.unknown
                else "",
                _budget(event.budget_usd),
            )
        case RunPaused():
            scope = ", ".join(filter(None, (event.stage, event.model))) or "the run"
            done = "paused" if event.paused else "goes on"
            return f"{scope} {done}, by {event.by}"
        case RunDrained():
            return _joined(event.why, f"by {event.by}", f"{count(event.open)} open")
        case RunCancelled():
            return f"by {event.by}"
        case RunFinished():
            return (
                f"{count(event.completed)} done, {count(event.failed)} failed, "
                f"{count(event.skipped)} skipped"
            )
        case TasksPlanned():
            return _joined(
                _planned(event), "the plan is whole" if event.exhausted else ""
            )
        case TasksReopened():
            return f"reopened by {event.by}: {_tasks(event.tasks)}"
        case TaskSkipped():
            return event.reason
        case TaskCompleted():
            return "parsed" if event.unparsed is None else f"unparsed: {event.unparsed}"
        case TaskFailed():
            return f"{event.error} in attempt {event.attempt}, the last"
        case AttemptStarted():
            return _joined(
                f"attempt {event.attempt}",
                "" if event.worst_usd is None else f"at most {money(event.worst_usd)}",
            )
        case AttemptAnswered():
            return _answered(event)
        case AttemptFailed():
            return _failed(event)
        case AttemptsAbandoned():
            tasks = [task for task, _ in event.attempts]
            return _joined(
                f"{_attempts(len(tasks))} of unknown outcome",
                _possible(event.possible_usd),
                "held for the user" if event.hold else "",
                _tasks(tasks),
            )
        case LimitObserved():
            return _joined(
                f"{event.model}: {count(event.concurrency)} calls at a time",
                "" if event.rpm is None else f"{amount(event.rpm)} requests/min",
                "" if event.tpm is None else f"{amount(event.tpm)} tokens/min",
                "" if event.paused_until_us is None else "held back by the endpoint",
            )
        case ParameterRefused():
            return _joined(
                f"{event.model}: {event.name} {event.how}",
                f"sends {event.instead or 'nothing'} instead",
                event.words,
            )
        case CommandAccepted():
            return _joined(f"{event.kind} by {event.author}", event.payload)
        case CommandRejected():
            return _joined(event.reason, f"{event.kind} by {event.author}")
        case CommandApplied():
            return event.effect
        case ScoringRecorded():
            return _joined(
                f"scoring {event.number} of events up to {count(event.seq)}",
                f"job version {event.job_version}",
            )
        case ComparisonDecided():
            return _joined(
                f"{event.b} is {DECIDED[event.verdict]} {event.a}",
                f"{event.stopping.metric} {event.difference:+.3g} "
                f"[{event.lo:.3g}, {event.hi:.3g}]",
                f"after {count(event.clusters)} {event.cluster}s",
            )
        case StageAdded():
            return _joined(
                f"stage {event.stage}",
                event.model,
                _budget(event.budget_usd),
                event.file,
            )
        case BatchEventBase():
            return _batch(event)
        case LabelEventBase():
            return _label(event)
        case UnknownEvent():
            facts = event.facts.decode(errors="replace")
            return f"version {event.version} is not known to this siftlog: {facts}"


def _batch(event: BatchEventBase) -> str:
    """Describe a batch event."""
    match event:
        case BatchPrepared():
            summary = (
                f"{count(event.requests)} requests of {event.model} are to be sent"
            )
        case BatchCreated():
            summary = f"{'found' if event.found else 'created'} as {event.id}"
        case BatchPolled() | BatchEnded():
            summary = event.outcome if isinstance(event, BatchEnded) else event.status
            summary += f", {count(event.done)} done, {count(event.failed)} failed"
        case BatchCancelled():
            summary = f"cancelled by {event.by}"
        case _:
            summary = ""
    return _joined(f"batch {event.batch}: {summary}", getattr(event, "why", None) or "")


def _label(event: LabelEventBase) -> str:
    """Describe an event of a label log."""
    match event:
        case LabelsStarted():
            summary = f"label log, siftlog {event.siftlog_version}"
        case ItemDrawn():
            summary = f"{event.item} drawn: {event.design}, p {event.probability:.3g}"
        case LabelRecorded() | Adjudicated():
            about = " ".join(filter(None, (event.item, event.field)))
            verb = "adjudicated" if isinstance(event, Adjudicated) else "labelled"
            summary = f"{about} {verb} {event.value}"
        case LabelWithdrawn():
            summary = f"{event.label} withdrawn"
        case ScreeningPlanned():
            summary = f"screening to recall {event.target:g}, alpha {event.alpha:g}"
        case ScreeningStopped():
            summary = f"screening stopped: recall at least {event.recall:.3f}"
        case _:
            summary = ""
    return _joined(summary, f"by {event.author}", getattr(event, "reason", ""))


def _answered(event: AttemptAnswered) -> str:
    return _joined(
        "" if event.reask is None else f"refused: {event.reask}",
        "cached" if event.cached else money(event.cost_usd),
        _tokens(event),
        latency(event.latency_ms),
        event.finish_reason,
        _possible(event.possible_usd or 0.0),
        f"attempt {event.attempt}" if event.attempt > 1 else "",
    )


def _tokens(event: AttemptAnswered) -> str:
    if event.tokens_in is None and event.tokens_out is None:
        return ""
    cached = f", {count(event.tokens_cached)} cached" if event.tokens_cached else ""
    return f"{count(event.tokens_in)} in, {count(event.tokens_out)} out{cached}"


def _failed(event: AttemptFailed) -> str:
    is_final = event.retry_in_s is None
    return _joined(
        f"{event.error}: {event.message}",
        "final" if is_final else f"again after {duration(event.retry_in_s)}",
        "" if event.status is None else f"status {event.status}",
        f"attempt {event.attempt}",
        f"after {latency(event.latency_ms)}",
        _possible(event.possible_usd),
    )


def _planned(event: TasksPlanned) -> str:
    if not event.count:
        return "no more tasks"
    if event.count == 1:
        return f"1 task: {event.first}"
    last = event.first + event.count - 1
    return f"{count(event.count)} tasks: {event.first} to {last}"


def _tasks(tasks: Sequence[int]) -> str:
    if len(tasks) == 1:
        return task_name(tasks[0])
    names = f"tasks {', '.join(map(str, tasks[:MAX_NAMED_TASKS]))}"
    more = len(tasks) - MAX_NAMED_TASKS
    return f"{names} and {count(more)} more" if more > 0 else names


def _attempts(number: int) -> str:
    return f"{count(number)} attempt" + ("" if number == 1 else "s")


def _budget(usd: float | None) -> str:
    return "" if usd is None else f"budget {money(usd)}"


def _possible(usd: float) -> str:
    return f"{money(usd)} may be billed" if usd else ""


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))


def facts_text(event: Event | UnknownEvent) -> str:
    """Return every field of an event under its stored name."""
    if isinstance(event, UnknownEvent):
        return readable(event.facts)
    facts = {name: _display_value(value) for name, value in fields_of(event).items()}
    return readable(json.dumps(facts).encode())


def _display_value(value: object) -> object:
    """Return a field's value, with nested JSON decoded and `-` for null."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
