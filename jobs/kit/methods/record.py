"""Reads what the methods text of a run is made from: its log, and a scorecard.

The same reading serves the text and its check, for a run, for a bundle, and for a run
as of an earlier event.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from runner.sent_requests import RequestExample, SentParameter, SentRequests
from store.events import RecordedEvent, RunStarted, ScoringRecorded
from store.labels.fold import LabelSet
from store.read.course import Course, course
from store.read.status import Status, run_started, scorings, stage_order, status
from store.read.tasks import events
from store.read.usage import ErrorCount, error_counts

INTERVENTIONS: Final = (
    *("run_resumed", "run_paused", "run_drained", "run_cancelled"),
    *("tasks_reopened", "attempts_abandoned", "command_accepted", "command_applied"),
    *("comparison_decided", "stage_added"),
)
"""Kinds of events by which the course of a run can leave its plan."""

NO_LABELS: Final = LabelSet(labels=(), adjudications=(), draws=())

_PAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as its log shows it, and the numbers of a scoring."""

    started: RunStarted
    status: Status
    stages: tuple[str, ...]  #: in the order of their first tasks
    course: Course
    interventions: tuple[RecordedEvent, ...]  #: of `INTERVENTIONS`, oldest first
    errors: tuple[ErrorCount, ...]
    prompts: tuple[RequestExample, ...]  #: a request of each form
    parameters: tuple[SentParameter, ...]
    scoring: ScoringRecorded | None  #: None: the run was not scored
    scorecard: Mapping[str, Any]  #: content of `scorecard.json`; empty: not scored
    labels: LabelSet  #: of people who labelled the run's items

    @property
    def models(self) -> tuple[str, ...]:
        """Models that have tasks, those under test first, of added stages last."""
        used = dict.fromkeys(queue.model for queue in self.status.queues)
        named = [name for names in self.started.models.values() for name in names]
        return tuple(dict.fromkeys([*(m for m in named if m in used), *used]))


def read_record(
    reader: sqlite3.Connection,
    scoring: ScoringRecorded | None,
    scorecard: bytes,
    labels: LabelSet = NO_LABELS,
) -> RunRecord:
    """Read a run.

    Args:
        reader: of the run's log, or of its beginning.
        scoring: the scoring of the scorecard.
        scorecard: content of `scorecard.json`, as it was recomputed; empty: none.
        labels: of the run, or those that it shares with others.
    """
    requests = SentRequests(reader).survey()
    return RunRecord(
        started=run_started(reader),
        status=status(reader),
        stages=tuple(stage_order(reader)),
        course=course(reader),
        interventions=tuple(_interventions(reader)),
        errors=tuple(error_counts(reader)),
        prompts=requests.examples,
        parameters=requests.parameters,
        scoring=scoring,
        scorecard=msgspec.json.decode(scorecard) if scorecard else {},
        labels=labels,
    )


def _interventions(reader: sqlite3.Connection) -> Sequence[RecordedEvent]:
    recorded: list[RecordedEvent] = []
    after = 0
    while page := events(reader, after=after, limit=_PAGE, kinds=INTERVENTIONS):
        recorded += page
        after = page[-1].seq
    return recorded


def scoring_numbered(
    reader: sqlite3.Connection, number: int | None
) -> ScoringRecorded | None:
    """Return a scoring by number, or the newest; None: there is none."""
    recorded = scorings(reader)
    if number is None:
        return recorded[-1] if recorded else None
    return next((scoring for scoring in recorded if scoring.number == number), None)
