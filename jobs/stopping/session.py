"""One person's pass over a library until the recall aimed at is proved.

It is a `LabelSession`, so every front end can show it. After each answer it reads what
others have recorded, moves the bound on, and chooses what to ask next: the first unread
record in ranked order, or a random draw, recorded before the record is shown. Nothing
shown says which of the two it was.

Several people may work at a time. A lock of the label folder is held while an answer or
a draw is recorded, so that each draw is from the records that are unread at that time.
In ranked order nobody is asked about a record that is on another's screen; a draw may
choose one, since it must choose from all.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from jobs.kit.labels.session import LabelSession, Question, SessionSource
from jobs.stopping.reading_order import REFIT, RecordRanking
from jobs.stopping.screening_fold import (
    DESIGN,
    ScreeningFold,
    drawn_record,
    in_order,
)
from jobs.stopping.status_text import status_line
from store.clock import Clock
from store.labels.events import ItemDrawn
from store.labels.fold import EventId, ItemField, LabelEntry, Statement, population_hash
from store.labels.folder import LabelFolder
from store.labels.writer import LabelWriter

LOCK: Final = ".screening.lock"
OPEN: Final = ".screening"
"""Suffix of the file that says what is on a session's screen."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a label folder; its holder never waits for a person."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class OpenRecords:
    """Which records are on people's screens: a locked file for each session.

    The lock goes with its process, so the file of one that died counts no more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f".open-{uuid4().hex}{OPEN}"
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def hold(self, record: str) -> None:
        """Say what is on the screen; "": nothing."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, record.encode("utf-8", "surrogatepass"), 0)

    def of_others(self) -> set[str]:
        """The records on all other screens."""
        paths = self._folder.glob(f".open-*{OPEN}")
        return {
            record
            for path in paths
            if path != self._path and (record := _held(path)) is not None
        }

    def close(self) -> None:
        """End the session."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def _held(path: Path) -> str | None:
    """The record in a session's file; None where the session has ended."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    else:
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)


class ScreeningState:
    """A fold that follows the label logs of a folder."""

    def __init__(self, folder: LabelFolder, run: str, texts: dict[str, str]) -> None:
        self.folder = folder
        self._run = run
        self._texts = texts
        self._seen: set[EventId] = set()
        self._last: tuple[int, EventId] | None = None
        self.fold = ScreeningFold(run, texts)

    def refresh(self) -> ScreeningFold:
        """Read what is new and return the fold."""
        if not self.folder.poll():
            return self.fold
        every = self.folder.entries
        new = in_order(entry for entry in every if entry.id not in self._seen)
        if new and self._last is not None and _place(new[0]) < self._last:
            # a clock that was set back, or a log that was put in the folder later
            self.fold = ScreeningFold(self._run, self._texts)
            new = in_order(every)
        self.fold.receive_all(new)
        self._seen.update(entry.id for entry in new)
        if new:
            self._last = _place(new[-1])
        return self.fold


def _place(entry: LabelEntry) -> tuple[int, EventId]:
    return entry.ts_us, entry.id


class ScreeningSession(LabelSession):
    """A session of one person; `start` it before the first question."""

    def __init__(
        self,
        source: SessionSource,
        writer: LabelWriter,
        ranking: RecordRanking,
        *,
        state: ScreeningState,
        clock: Clock,
        is_assisted: bool = False,
        goes_on: bool = False,
    ) -> None:
        """Prepare a session.

        Args:
            source: the records and replies.
            writer: records answers and draws.
            ranking: of all records.
            state: of the label folder; it has a plan.
            clock: measures the seconds of an answer.
            is_assisted: whether replies are visible from the start.
            goes_on: whether to ask on once the target is reached.
        """
        self._state = state
        self._writer = writer
        self._goes_on = goes_on
        self._folder = state.folder.path
        fold = state.refresh()
        # draws that nobody has labelled come first: later draws wait for them
        self._ranking = ranking
        order = ranking.refit(fold.relevance) or ranking.order
        every = dict.fromkeys([*fold.waiting, *order])
        left = [key for key in every if key not in fold.relevance]
        super().__init__(
            source,
            writer,
            [ItemField(key, "") for key in left],
            labels=state.folder.refresh(),
            clock=clock,
            is_assisted=is_assisted,
        )
        self._order = left
        self._gone: set[str] = set(fold.relevance)  #: not asked any more
        self._skipped: set[str] = set()
        self._refitted = len(fold.relevance)
        self._open_records = OpenRecords(self._folder)

    @property
    def fold(self) -> ScreeningFold:
        """Where the screening stands."""
        return self._state.fold

    @property
    def question(self) -> Question | None:
        """The present question; None: stop, or all records are labelled."""
        return None if self.has_stopped else super().question

    @property
    def has_stopped(self) -> bool:
        """Whether the target is reached and this session does not go on."""
        status = self.fold.status
        return status is not None and status.should_stop and not self._goes_on

    @property
    def status(self) -> str:
        """Labelled, found, bound, target and forecast, in a line."""
        return status_line(self.fold)

    @property
    def ending(self) -> str:
        """That the target is reached, or that nothing is left to read."""
        return "Stop: the target is reached." if self.has_stopped else super().ending

    async def start(self) -> None:
        """Choose the first question."""
        await self._choose()

    async def answer(self, value: str, *, reason: str = "") -> str:
        """Record the value of the present question; see `LabelSession.answer`."""
        with locked(self._folder):
            label = await super().answer(value, reason=reason)
        await self._choose()
        return label

    async def undo(self) -> bool:
        """Withdraw the last answer; its question is asked again."""
        with locked(self._folder):
            is_undone = await super().undo()
            self._state.refresh()
        self._gone.discard(self._present)
        self._open_records.hold(self._present)
        return is_undone

    async def _choose(self) -> None:
        """Make the record that is to be read next the present question."""
        with locked(self._folder):
            fold = self._state.refresh()
            for record in fold.relevance.keys() - self._gone:
                self._gone.add(record)
                self.leave_out(ItemField(record, ""))
            status, present = fold.status, self._present
            if not self.has_stopped and present not in fold.waiting:
                if status is not None and status.advice == "draw" and fold.unread:
                    await self._draw()
                else:
                    self._refit()
                    self._avoid_others()
            self._open_records.hold(self._present)

    @property
    def _present(self) -> str:
        """The record of the present question; "" without one."""
        question = self.question
        return "" if question is None else question.item.key

    def _refit(self) -> None:
        """Let the ranking learn from the labels, now and then."""
        relevance = self.fold.relevance
        if len(relevance) < self._refitted + REFIT:
            return
        self._refitted = len(relevance)
        order = self._ranking.refit(relevance)
        if order is not None:
            self._order = [key for key in order if key not in relevance]
            self.rearrange([ItemField(key, "") for key in self._order])

    def _avoid_others(self) -> None:
        """Go on to the first record that nobody else has on the screen."""
        others = self._open_records.of_others()
        if self._present not in others:
            return
        busy = others | self._gone | self._skipped
        record = next((key for key in self._order if key not in busy), None)
        if record is not None:
            self.ask_next(ItemField(record, ""))

    def skip(self) -> None:
        """Put the present question off; see `LabelSession.skip`."""
        self._skipped.add(self._present)
        super().skip()
        self._open_records.hold(self._present)

    def close(self) -> None:
        """Free the record on the screen for others."""
        self._open_records.close()

    async def _draw(self) -> None:
        fold = self.fold
        plan = fold.plan
        if plan is None:
            raise TypeError("a screening has a plan before it draws")
        position, unread = len(fold.draws) + 1, fold.unread
        record = drawn_record(plan.event.seed, position, unread)
        event = ItemDrawn(
            author=self.author,
            item=record,
            design=DESIGN,
            probability=1 / len(unread),
            seed=plan.event.seed,
            position=position,
            expected=1.0,
            population=len(unread),
            population_sha256=population_hash(unread),
            run=fold.run,
        )
        (name,) = await self._writer.drawn(event)
        self._state.refresh()
        self.ask_next(ItemField(record, ""), Statement(name, 0, event))
