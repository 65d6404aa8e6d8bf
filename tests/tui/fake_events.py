"""A run's events out of thin air: as many as anybody likes, and more at any time."""

from __future__ import annotations

import asyncio

from store.errors import StoreError
from store.events import AttemptFailed, Event, RecordedEvent
from store.query import EventQuery
from store.read.history import EventMatches, SeqRange
from tests.store.samples import answered, completed, failed, started
from tui.sources.events import Tip
from tui.sources.tasks import Names

NOW_US = 1_767_225_600_000_000
#: The clock strikes midnight every so many events.
PER_DAY = 1_000
_US_PER_DAY = 86_400_000_000
SPAN = 20_000
_NAMES = ("attempt_started", "attempt_answered", "attempt_failed", "task_completed")


def event(seq: int, message: str = "too many requests") -> RecordedEvent:
    """The event of a number; one in ten thousand is a failure of another class."""
    task, what = divmod(seq, 4)
    if seq % 10_000 == 0:
        fact: Event = failed(task, message=message, error="RateLimited")
    else:
        fact = (
            started(task),
            answered(task, cost_usd=0.0021),
            failed(task, message=message),
            completed(task),
        )[what]
    return RecordedEvent(
        seq=seq,
        ts_us=NOW_US + seq * _US_PER_DAY // PER_DAY,
        epoch=1,
        event=fact,
        payload_bytes=99 if isinstance(fact, AttemptFailed) else 0,
    )


class FakeEvents:
    """A log of `seq` events; of filters it knows `kind:` and `err:` alone."""

    def __init__(self, seq: int = 1_000_000) -> None:
        self.seq = seq
        self.messages: dict[int, str] = {}
        self.phase = "run_started"
        self.is_alive = True
        self.trouble: StoreError | None = None
        self.is_closed = False
        self.found: list[SeqRange] = []  #: what was looked at, step by step
        self.answers_after = 0  #: searches that reach this event wait for ever

    @property
    def run_id(self) -> str:
        return "1120-a"

    def finish(self) -> None:
        """No process works on the run any more."""
        self.phase, self.is_alive = "run_finished", False

    async def tip(self) -> Tip:
        if self.trouble is not None:
            raise self.trouble
        return Tip(seq=self.seq, phase=self.phase, is_alive=self.is_alive)

    async def find(
        self, query: EventQuery, stretch: SeqRange, *, limit: int, is_backward: bool
    ) -> EventMatches:
        if self.trouble is not None:
            raise self.trouble
        if stretch.last <= self.answers_after:
            await asyncio.Event().wait()
        span = range(stretch.first, stretch.last + 1)
        part = span[-SPAN:] if is_backward else span[:SPAN]
        found: list[RecordedEvent] = []
        end = part[0] if is_backward else part[-1]
        for seq in reversed(part) if is_backward else part:
            if self._fits(query, seq):
                found.append(event(seq, self.messages.get(seq, "too many requests")))
                if len(found) == limit:
                    end = seq
                    break
        if is_backward:
            looked, rest = SeqRange(end, stretch.last), SeqRange(stretch.first, end - 1)
        else:
            looked, rest = SeqRange(stretch.first, end), SeqRange(end + 1, stretch.last)
        self.found.append(looked)
        return EventMatches(
            events=tuple(found[::-1] if is_backward else found), rest=rest
        )

    @staticmethod
    def _fits(query: EventQuery, seq: int) -> bool:
        what = "attempt_failed" if seq % 10_000 == 0 else _NAMES[seq % 4]
        for term in query.terms:
            if term.fragment == "event_kind" and what not in query.kinds:
                return False
            if term.fragment == "event_err":
                error = {0: "RateLimited"}.get(seq % 10_000, "Overloaded")
                if what != "attempt_failed" or term.parameters[0] != error:
                    return False
        return True

    async def names(self) -> Names:
        return Names(total=self.seq, errors=("RateLimited",))

    async def body(self, event: RecordedEvent) -> str:
        return f"The body of event {event.seq}."

    def close(self) -> None:
        self.is_closed = True
