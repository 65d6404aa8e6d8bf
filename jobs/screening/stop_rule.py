"""Decides from recorded events when screening a library may stop.

It needs two kinds of events: a record was drawn at random from the unread ones, and a
record got a label. The same events always give the same bound, so a stop can be checked
later from the log alone. No input, no output, no clock.

    rule = RecallStopRule(records=4000, target=0.95, alpha=0.05)
    rule.receive(RecordLabelled(record="7", is_relevant=True))   # in ranked order
    rule.receive(RecordDrawn(record="31", unread=3999))
    rule.receive(RecordLabelled(record="31", is_relevant=False))
    rule.status.should_stop

A record is read from its draw or first label on, and the order in which records are
read is fixed by the events. Labels may change later: the bound is then computed again
with the last label of each record. A draw counts once it and everything read before it
has a label; until then it and later draws wait. Leaving a draw unlabelled therefore
never helps to stop.

`recall_bound` has the derivation and its assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from jobs.kit.metrics.recall_bound import RelevantBound

Advice: TypeAlias = Literal["ranked", "draw", "stop"]

LEAST_PATIENCE: Final = 50
PATIENCE_SHARE: Final = 50
"""Records read in ranked order without a relevant one before draws are advised: at
least 50, and a fiftieth of a larger library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDrawn:
    """A record was drawn, uniformly from those that were not read."""

    record: str
    unread: int  #: number of records that it was drawn from


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLabelled:
    """A record got a label: its first, or another one that replaces it."""

    record: str
    is_relevant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnlabelled:
    """The label of a record was withdrawn; it counts as read, but not as labelled."""

    record: str


StopEvent: TypeAlias = RecordDrawn | RecordLabelled | RecordUnlabelled


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStatus:
    """The conclusions from the events so far."""

    records: int
    read: int  #: labelled records
    relevant: int  #: relevant records among them
    draws: int  #: random draws, labelled or not
    draws_counted: int  #: draws that are part of the bound
    most_relevant: int  #: upper bound on the relevant records of the library
    recall: float  #: lower bound on the share of relevant records that were labelled
    should_stop: bool  #: the bound reaches the target
    draws_needed: int  #: more draws that reach the target if none is relevant
    advice: Advice  #: on the next record; not part of the guarantee


class RecallStopRule:
    """Folds the events of a screening into a bound on its recall.

    Args:
        records: size of the library.
        target: recall to reach, such as 0.95.
        alpha: upper bound on the probability of ever stopping below it.

    Raises:
        ValueError: *target* or *alpha* is not between 0 and 1.
    """

    def __init__(self, *, records: int, target: float, alpha: float) -> None:
        self._records = records
        self._target = target
        self._alpha = alpha
        self._order: list[str] = []  # records in the order in which they were read
        self._drawn: set[str] = set()
        self._read: set[str] = set()
        self._labels: dict[str, bool] = {}
        self._relevant = 0
        self._dry = 0  # labels since the last relevant one
        self._fold = self._new_fold()

    def receive(self, event: StopEvent) -> None:
        """Receive the next event.

        Raises:
            ValueError: a draw of a record that was read, or from a wrong number of
                unread ones; more records than the library has.
        """
        match event:
            case RecordDrawn():
                self._draw(event)
            case RecordLabelled():
                self._label(event)
            case RecordUnlabelled(record=record):
                before = self._labels.pop(record, None)
                if before is not None:
                    self._relevant -= before
                    self._fold = self._new_fold()

    def receive_all(self, events: Iterable[StopEvent]) -> StopStatus:
        """Receive many events and return the status after them."""
        for event in events:
            self.receive(event)
        return self.status

    @property
    def status(self) -> StopStatus:
        """The bound after the events so far."""
        advice = self.advice
        bound = self._fold.bound
        relevant = self._relevant
        unread = self._records - len(self._labels)
        return StopStatus(
            records=self._records,
            read=len(self._labels),
            relevant=relevant,
            draws=len(self._drawn),
            draws_counted=self._fold.draws,
            most_relevant=bound.upper(relevant=relevant, unread=unread),
            recall=bound.recall(relevant=relevant, unread=unread),
            should_stop=advice == "stop",
            draws_needed=bound.draws_without_hit(relevant=relevant, unread=unread),
            advice=advice,
        )

    @property
    def advice(self) -> Advice:
        """Advice on the next record to read; cheaper to compute than `status`.

        Ranked order while it finds relevant records, then draws until one is relevant.
        """
        self._fold.advance(self._order, self._drawn, self._labels)
        if self._fold.bound.reaches_target(
            relevant=self._relevant, unread=self._records - len(self._labels)
        ):
            return "stop"
        patience = max(LEAST_PATIENCE, self._records // PATIENCE_SHARE)
        return "draw" if self._dry >= patience else "ranked"

    def _draw(self, event: RecordDrawn) -> None:
        if event.record in self._read:
            raise ValueError(f"Record {event.record} was drawn, but was read before.")
        unread = self._records - len(self._read)
        if event.unread != unread:
            raise ValueError(
                f"Record {event.record} was drawn from {event.unread} records, but "
                f"{unread} of {self._records} were unread."
            )
        self._drawn.add(event.record)
        self._add(event.record)

    def _label(self, event: RecordLabelled) -> None:
        if event.record not in self._read:
            self._add(event.record)
        before = self._labels.get(event.record)
        self._relevant += event.is_relevant - bool(before)
        self._labels[event.record] = event.is_relevant
        if before is None:
            self._dry = 0 if event.is_relevant else self._dry + 1
        elif before != event.is_relevant:
            self._fold = self._new_fold()

    def _add(self, record: str) -> None:
        if len(self._read) >= self._records:
            raise ValueError(
                f"Record {record} is one more than the library of {self._records} has."
            )
        self._read.add(record)
        self._order.append(record)

    def _new_fold(self) -> _Fold:
        return _Fold(
            bound=RelevantBound(
                records=self._records, target=self._target, alpha=self._alpha
            )
        )


@dataclass(slots=True, kw_only=True)
class _Fold:
    """The bound after the first records in reading order, all of them labelled."""

    bound: RelevantBound
    place: int = field(default=0)
    relevant: int = field(default=0)
    draws: int = field(default=0)

    def advance(
        self, order: list[str], drawn: set[str], labels: dict[str, bool]
    ) -> None:
        """Advance to the first record without a label."""
        while self.place < len(order) and order[self.place] in labels:
            record = order[self.place]
            if record in drawn:
                self.bound.draw(
                    is_relevant=labels[record],
                    relevant=self.relevant,
                    unread=self.bound.records - self.place,
                )
                self.draws += 1
            self.relevant += labels[record]
            self.place += 1
