"""Folds label events into the state of screening a library to a stop.

The fold is pure and receives events in the order of a union (time, writer, seq), so the
same label logs give the same bound on any machine. It feeds `RecallStopRule`, which has
the statistics:

- The relevance of a record is that of its gold value: the latest adjudication, else the
  value on which all people agree. "unclear" counts as relevant, since the record passes
  on to the next stage. A disputed record has no label until it is adjudicated.
- A random draw counts if it is the one that the plan's seed determines: at its position
  among the draws, from the records that were unread by then. Any other draw is listed
  as irregular, and its record counts as read in ranked order. That is decided before
  its label is known, so the bound stays valid.
- Labels of another text than the library's, and events about other items, are ignored.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.screening.labelling import EXCLUDE
from jobs.screening.stop_rule import (
    LEAST_PATIENCE,
    PATIENCE_SHARE,
    RecallStopRule,
    RecordDrawn,
    RecordLabelled,
    RecordUnlabelled,
    StopEvent,
    StopStatus,
)
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.labels.fold import LabelEntry

DESIGN: Final = "unread"
"""`ItemDrawn.design` of a draw from the unread records."""


def drawn_record(seed: int, position: int, unread: Sequence[str]) -> str:
    """Return the record that a plan's draw chooses: uniform and deterministic.

    Args:
        seed: seed of the plan.
        position: position of the draw among all draws, from 1.
        unread: keys of the unread records, ascending.
    """
    chance = random.Random(f"siftlog screen/{seed}/{position}")  # noqa: S311 - no secret
    return unread[chance.randrange(len(unread))]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedDraw:
    """A draw that counts, with the current label of its record."""

    id: str  #: id of its event
    record: str
    unread: int  #: number of records that it was drawn from
    is_relevant: bool | None  #: None: no label


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """The recorded plan of a screening."""

    id: str
    ts_us: int
    event: ScreeningPlanned


@dataclass(slots=True)
class _Value:
    """A current label or adjudication of a record."""

    id: str
    author: str
    value: str


class ScreeningFold:
    """The state of a screening after some events."""

    def __init__(self, run: str, texts: Mapping[str, str]) -> None:
        """Start without events.

        Args:
            run: id of the run that ranks the records.
            texts: SHA-256 of the text of every record of the library, in hex, by key.
        """
        self.run = run
        self.plan: RecordedPlan | None = None
        self.stops: list[ScreeningStopped] = []
        self.irregular: list[str] = []  #: ids of draws that do not count
        self.other_plans = 0  #: number of plans after the first, which have no effect
        self.authors: set[str] = set()  #: of labels that have counted at any time
        self.last_us = 0  #: time of the last event
        self.order: list[str] = []  #: records in the order in which they were read
        self.steps: list[StopEvent] = []  #: all that the stop rule received
        self.texts = texts
        self._unread = sorted(texts)
        self._read: set[str] = set()
        self._draws: list[CountedDraw] = []
        self._labels: defaultdict[str, list[_Value]] = defaultdict(list)
        self._adjudications: defaultdict[str, list[_Value]] = defaultdict(list)
        self._about: dict[str, str] = {}  # record by id of a statement
        self._withdrawn: set[tuple[str, str]] = set()
        self._relevance: dict[str, bool] = {}
        self._rule: RecallStopRule | None = None
        self._dry = 0

    def receive_all(self, entries: Iterable[LabelEntry]) -> ScreeningFold:
        """Receive events in the order of a union, and return this fold."""
        for entry in entries:
            self.receive(entry)
        return self

    def receive(self, entry: LabelEntry) -> None:
        """Receive the next event."""
        self.last_us = max(self.last_us, entry.ts_us)
        name, event = str(entry.id), entry.event
        match event:
            case ScreeningPlanned() if event.run == self.run:
                self._plan(RecordedPlan(name, entry.ts_us, event))
            case ScreeningStopped() if event.run == self.run:
                self.stops.append(event)
            case ItemDrawn() if event.run == self.run and event.design == DESIGN:
                self._draw(name, event)
            case LabelRecorded() if self._is_about_record(event):
                self._state(name, event, self._labels[event.item])
            case Adjudicated() if self._is_about_record(event):
                self._state(name, event, self._adjudications[event.item])
            case LabelWithdrawn():
                self._withdraw(event)
            case _:
                pass

    @property
    def status(self) -> StopStatus | None:
        """The bound so far; None before a plan."""
        return None if self._rule is None else self._rule.status

    @property
    def draws(self) -> list[CountedDraw]:
        """All draws that count, with the current labels of their records."""
        return [
            CountedDraw(
                id=draw.id,
                record=draw.record,
                unread=draw.unread,
                is_relevant=self._relevance.get(draw.record),
            )
            for draw in self._draws
        ]

    @property
    def relevance(self) -> Mapping[str, bool]:
        """Whether each labelled record is relevant."""
        return self._relevance

    @property
    def unread(self) -> Sequence[str]:
        """Keys of the records that were neither labelled nor drawn, ascending."""
        return self._unread

    @property
    def waiting(self) -> list[str]:
        """Drawn records without a label, for which later draws wait."""
        return [d.record for d in self._draws if d.record not in self._relevance]

    @property
    def disputed(self) -> list[str]:
        """Records on which people disagree and that are not adjudicated."""
        return sorted(
            record
            for record, values in self._labels.items()
            if record not in self._relevance and len(_by_author(values)) > 1
        )

    @property
    def until_draws(self) -> int:
        """Number of records in ranked order before draws begin, if none is relevant."""
        patience = max(LEAST_PATIENCE, len(self.texts) // PATIENCE_SHARE)
        return max(0, patience - self._dry)

    def _is_about_record(self, event: LabelRecorded | Adjudicated) -> bool:
        text = self.texts.get(event.item)
        return text is not None and not event.field and event.text_sha256 in {"", text}

    def _plan(self, plan: RecordedPlan) -> None:
        if self.plan is not None:
            self.other_plans += 1
            return
        self.plan = plan
        self._rule = RecallStopRule(
            records=len(self.texts), target=plan.event.target, alpha=plan.event.alpha
        )
        for event in self.steps:
            self._rule.receive(event)

    def _draw(self, name: str, event: ItemDrawn) -> None:
        position = len(self._draws) + 1
        if (
            self.plan is None
            or not self._unread
            or (event.seed, event.position, event.population)
            != (self.plan.event.seed, position, len(self._unread))
            or event.item != drawn_record(event.seed, position, self._unread)
        ):
            self.irregular.append(name)
            return
        unread = len(self._unread)
        self._draws.append(
            CountedDraw(id=name, record=event.item, unread=unread, is_relevant=None)
        )
        self._mark_read(event.item)
        self._feed(RecordDrawn(record=event.item, unread=unread))

    def _state(
        self, name: str, event: LabelRecorded | Adjudicated, values: list[_Value]
    ) -> None:
        if (name, event.author) in self._withdrawn:
            return
        self.authors.add(event.author)
        self._about[name] = event.item
        values.append(_Value(name, event.author, event.value))
        self._settle(event.item)

    def _withdraw(self, event: LabelWithdrawn) -> None:
        self._withdrawn.add((event.label, event.author))
        record = self._about.get(event.label)
        if record is None:
            return
        for values in (self._labels[record], self._adjudications[record]):
            values[:] = [
                one
                for one in values
                if (one.id, one.author) != (event.label, event.author)
            ]
        self._settle(record)

    def _settle(self, record: str) -> None:
        """Send the label of a record to the rule, if it has changed."""
        adjudications = self._adjudications[record]
        values = (
            {adjudications[-1].value}
            if adjudications
            else set(_by_author(self._labels[record]).values())
        )
        before = self._relevance.get(record)
        now = values.pop() != EXCLUDE if len(values) == 1 else None
        if now == before:
            return
        if now is None:
            del self._relevance[record]
            self._feed(RecordUnlabelled(record=record))
            return
        self._relevance[record] = now
        if before is None:
            self._dry = 0 if now else self._dry + 1
        self._mark_read(record)
        self._feed(RecordLabelled(record=record, is_relevant=now))

    def _mark_read(self, record: str) -> None:
        if record not in self._read:
            self._read.add(record)
            self.order.append(record)
            del self._unread[bisect_left(self._unread, record)]

    def _feed(self, event: StopEvent) -> None:
        self.steps.append(event)
        if self._rule is not None:
            self._rule.receive(event)


def _by_author(values: Iterable[_Value]) -> dict[str, str]:
    """Return the latest value of each author."""
    return {one.author: one.value for one in values}


def in_order(entries: Iterable[LabelEntry]) -> list[LabelEntry]:
    """Sort events in the order of a union."""
    return sorted(entries, key=lambda entry: (entry.ts_us, entry.id))
