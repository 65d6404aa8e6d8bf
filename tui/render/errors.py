"""Renders failures: by class, recent and total, and their outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from rich.cells import cell_len
from textual.content import Content

from store.document import plural
from store.fold_state import FailureOutcome
from tui.render.format import UNKNOWN, duration, tight
from tui.render.layout import (
    MUTED,
    PANEL_GAP,
    PanelColumn,
    Room,
    clip,
    lines_of,
    table_lines,
    wrapped,
    wrapped_lines,
)
from tui.render.models import names_of, term
from tui.sources.run_snapshot import LATELY, US_PER_MINUTE, RunSnapshot, once

_WORDS = {
    FailureOutcome.RETRIED: "retried",
    FailureOutcome.FINAL: "final",
    FailureOutcome.REASKED: "re-ask",
    FailureOutcome.UNPARSED: "kept",
}
"""Outcomes of a failure; an unparsed reply is kept unchanged."""
_MEASURE, _MOST_WRAPPED = 70, 4
"""Width for the height of a panel, and lines of a message that it asks for."""
LEAST = 5
"""Minimum lines for failures if there are findings too."""
_KEYS = {FailureOutcome.UNPARSED: "parse", FailureOutcome.REASKED: "reason"}


@dataclass(slots=True, kw_only=True)
class ErrorRow:
    """One class of failure, or one reason of refused or unparsed replies."""

    error: str
    all: int = 0
    outcomes: Counter[FailureOutcome] = field(
        default_factory=Counter
    )  #: in the whole run
    lately: int | None = None  #: in the last `LATELY` minutes; None: unknown
    a_minute: float | None = None
    task: int | None = None  #: an example
    models: Counter[str] = field(default_factory=Counter)  #: failed attempts by model

    @property
    def next(self) -> str:
        """Describe its outcomes, the most frequent first."""
        counts = [(outcome, n) for outcome, n in self.outcomes.most_common() if n]
        if not counts:
            return UNKNOWN
        (first, _), *others = counts
        rest = [f"{tight(n)} {_WORDS[outcome]}" for outcome, n in others]
        return ", ".join([_WORDS[first], *rest])

    @property
    def goal(self) -> str:
        """Return the filter that lists its tasks."""
        first = next(iter(self.outcomes.most_common(1)), (FailureOutcome.RETRIED, 0))[0]
        return term(_KEYS.get(first, "err"), self.error)


class _ErrorRows(dict[str, ErrorRow]):
    """Rows by class, made when they are first asked for."""

    def __missing__(self, error: str) -> ErrorRow:
        row = self[error] = ErrorRow(error=error)
        return row


@once
def error_rows(snapshot: RunSnapshot) -> list[ErrorRow]:
    """Return the classes, the most frequent recent ones first."""
    rows_by_error = _ErrorRows()
    row = rows_by_error.__getitem__

    for error in snapshot.facts.errors:
        of = row(error.error)
        of.all += error.n
        of.models[error.model] += error.n
        of.task = of.task or error.sample_task
        if error.final is not None:
            of.outcomes[FailureOutcome.FINAL] += error.final
            of.outcomes[FailureOutcome.RETRIED] += error.n - error.final
    for outcome, reasons in (
        (FailureOutcome.REASKED, snapshot.status.reasked),
        (FailureOutcome.UNPARSED, snapshot.status.parse_failures),
    ):
        for reason, n in reasons.items():
            row(reason).all += n
            row(reason).outcomes[outcome] += n
    lately = snapshot.lately
    if lately is not None:
        for error_row in rows_by_error.values():
            error_row.lately = 0
        for failure in lately:
            of = row(failure.error)
            of.lately = (of.lately or 0) + failure.n
            if failure.outcome in _KEYS:  # counted by attempt otherwise
                of.models[failure.model] += failure.n
            of.task = failure.last_task
        minutes = _minutes(snapshot)
        for error_row in rows_by_error.values():
            error_row.a_minute = (error_row.lately or 0) / minutes
    return sorted(
        rows_by_error.values(), key=lambda e: (-(e.lately or 0), -e.all, e.error)
    )


def _minutes(snapshot: RunSnapshot) -> float:
    """Return the minutes of work behind a recent rate, at least one.

    A run that is new, was resumed or was paused has worked for a part of them.
    """
    # the current, incomplete minute is one of them
    first = snapshot.now_us // US_PER_MINUTE - LATELY + 1
    begin_us = max(snapshot.created_us, first * US_PER_MINUTE)
    worked_s = snapshot.present.observed.active_s(begin_us, snapshot.now_us)
    return max(1.0, worked_s / 60)


def error_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row."""
    return [row.goal for row in error_rows(snapshot)]


PROBLEMS = "reason:* -state:skipped"
"""Tasks with an error or a rejected reply in any attempt."""


def problem_filter(snapshot: RunSnapshot) -> str:
    """Return the filter of the tasks that need a look first."""
    if error_rows(snapshot) or not snapshot.is_ended:
        return PROBLEMS
    return "outcome:wrong"


def errors_height(snapshot: RunSnapshot) -> int:
    """Return the lines that all classes, findings and the last failure take."""
    classes = {error.error for error in snapshot.facts.errors}
    classes.update(snapshot.status.reasked, snapshot.status.parse_failures)
    classes.update(row.error for row in snapshot.lately or ())
    last = [last_words(snapshot)] if snapshot.facts.last_failure is not None else []
    texts = [*last, *snapshot.status.findings]
    lines = sum(
        len(list(islice(wrapped(text, _MEASURE), _MOST_WRAPPED))) for text in texts
    )
    return 1 + max(1, len(classes)) + lines


def errors(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw a row for each class, then the last failure's message, and findings.

    Messages are wrapped into the lines that the classes leave.

    Findings are about received replies: their server and possible cost.
    """
    findings = list(snapshot.status.findings)
    rows = error_rows(snapshot)
    if not rows:
        return lines_of(["No attempt has failed.", *findings], room)
    last = last_words(snapshot)
    # a head, a row and the words
    texts = [last] if last and room.height >= 4 else []  # noqa: PLR2004
    below = findings[: max(0, room.height - LEAST)]
    if below and len(below) < len(findings):
        below[-1] = (
            f"{below[-1]}; and {plural(len(findings) - len(below), 'more finding')}"
        )
    texts += below
    if not texts:
        return _failures(rows, snapshot, room)
    most = max(len(texts), room.height - 1 - len(rows))
    tail = wrapped_lines(texts, room, most).stylize(MUTED)
    above = room.height - len(tail.split("\n"))
    table = _failures(rows, snapshot, replace(room, height=above))
    return Content.assemble(table, "\n", tail)


def _failures(
    failures: Sequence[ErrorRow], snapshot: RunSnapshot, room: Room
) -> Content:
    """Draw a row for each class."""
    figures = [PanelColumn("10 min", 6), PanelColumn("/min", 5), PanelColumn("all", 7)]
    used = sum(column.width + 2 for column in figures) + 2 + 9
    space = room.width - used - 2
    outcome = max(len("next"), *(len(row.next) for row in failures))
    longest = max(len("class"), *(cell_len(row.error) for row in failures))
    name = PanelColumn("class", max(8, min(longest, space - 8)), is_right=False)
    becomes = PanelColumn(
        "next", max(0, min(outcome, space - name.width)), is_right=False
    )
    columns = [name, *figures, becomes, PanelColumn("task", 9)]
    names = names_of(snapshot)
    by_model = [
        " · ".join(f"{names.get(m, m)} {tight(n)}" for m, n in row.models.most_common())
        for row in failures
    ]
    rest = space - name.width - becomes.width - len(PANEL_GAP)
    has_models = len(names) > 1 and rest >= max(map(len, by_model))
    if has_models:
        columns.append(PanelColumn("models", rest, is_right=False))
    rows: list[list[str | Content]] = [
        [
            Content.styled(clip(row.error, name.width), "$state-failed"),
            UNKNOWN if row.lately is None else tight(row.lately, 6),
            UNKNOWN if row.a_minute is None else tight(row.a_minute),
            tight(row.all, 7),
            row.next,
            UNKNOWN if row.task is None else str(row.task),
            *([words] if has_models else []),
        ]
        for row, words in zip(failures, by_model, strict=True)
    ]
    return table_lines(columns, rows, room)


def last_words(snapshot: RunSnapshot) -> str:
    """Describe the last failure with the endpoint's message and its repetitions."""
    failure = snapshot.facts.last_failure
    if failure is None:
        return ""
    age = duration(snapshot.age_s(failure.at_us))
    times = f", {failure.times:,} times the same" if failure.times > 1 else ""
    return f"last {age} ago{times}: {failure.message}"
