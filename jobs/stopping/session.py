"""One person's session on a library until the target recall is proved.

It is a `LabelSession`, so every front end can show it. After each answer it reads the
events of others, updates the bound, and chooses the next question: the first unread
record in ranked order, or a random draw, recorded before the record is shown. The
display does not reveal which of the two it is.

Several people may work in parallel. A lock of the label folder is held while an answer
or a draw is recorded, so that each draw is from the records that are unread at that
time. In ranked order, records on another person's screen are skipped; a draw may choose
one, since it must choose from all.
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
"""Suffix of the file with the record on a session's screen."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a label folder; it is never held while a person decides."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class OpenRecords:
    """Records on people's screens, in a locked file per session.

    The lock ends with its process, so the file of a dead process is ignored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f".open-{uuid4().hex}{OPEN}"
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def hold(self, record: str) -> None:
        """Set the record on the screen; "" for none."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, record.encode("utf-8", "surrogatepass"), 0)

    def of_others(self) -> set[str]:
        """Return the records on all other screens."""
        paths = self._folder.glob(f".open-*{OPEN}")
        return {
            record
            for path in paths
            if path != self._path and (record := _held(path)) is not None
        }

    def close(self) -> None:
        """Release the lock and delete the file."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def _held(path: Path) -> str | None:
    """Return the record in a session's file; None if the session has ended."""
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
        """Read new events and return the fold."""
        if not self.folder.poll():
            return self.fold
        every = self.folder.entries
        new = in_order(entry for entry in every if entry.id not in self._seen)
        if new and self._last is not None and _place(new[0]) < self._last:
            # a clock was set back, or a log was added to the folder later
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
    """A session of one person; call `start` before the first question."""

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
            ranking: ranking of all records.
            state: state of the label folder, with a plan.
            clock: measures the seconds of an answer.
            is_assisted: whether replies are visible from the start.
            goes_on: whether to continue once the target is reached.
        """
        self._state = state
        self._writer = writer
        self._goes_on = goes_on
        self._folder = state.folder.path
        fold = state.refresh()
        # unlabelled draws come first, because later draws wait for them
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
        self._gone: set[str] = set(fold.relevance)  #: excluded from further questions
        self._skipped: set[str] = set()
        self._refitted = len(fold.relevance)
        self._open_records = OpenRecords(self._folder)

    @property
    def fold(self) -> ScreeningFold:
        """State of the screening."""
        return self._state.fold

    @property
    def question(self) -> Question | None:
        """The current question; None: stop, or all records are labelled."""
        return None if self.has_stopped else super().question

    @property
    def has_stopped(self) -> bool:
        """Whether the target is reached and this session does not go on."""
        status = self.fold.status
        return status is not None and status.should_stop and not self._goes_on

    @property
    def status(self) -> str:
        """Labelled, found, bound, target and forecast, in one line."""
        return status_line(self.fold)

    @property
    def ending(self) -> str:
        """Message that the target is reached, or that no records are left."""
        return "Stop: the target is reached." if self.has_stopped else super().ending

    async def start(self) -> None:
        """Choose the first question."""
        await self._choose()

    async def answer(self, value: str, *, reason: str = "") -> str:
        """Record the value of the current question; see `LabelSession.answer`."""
        with locked(self._folder):
            label = await super().answer(value, reason=reason)
        await self._choose()
        return label

    async def undo(self) -> bool:
        """Withdraw the last answer and ask its question again."""
        with locked(self._folder):
            is_undone = await super().undo()
            self._state.refresh()
        self._gone.discard(self._present)
        self._open_records.hold(self._present)
        return is_undone

    async def _choose(self) -> None:
        """Make the next record to read the current question."""
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
        """Record of the current question; "" without one."""
        question = self.question
        return "" if question is None else question.item.key

    def _refit(self) -> None:
        """Refit the ranking to the labels, at intervals."""
        relevance = self.fold.relevance
        if len(relevance) < self._refitted + REFIT:
            return
        self._refitted = len(relevance)
        order = self._ranking.refit(relevance)
        if order is not None:
            self._order = [key for key in order if key not in relevance]
            self.rearrange([ItemField(key, "") for key in self._order])

    def _avoid_others(self) -> None:
        """Go on to the first record that is on no other screen."""
        others = self._open_records.of_others()
        if self._present not in others:
            return
        busy = others | self._gone | self._skipped
        record = next((key for key in self._order if key not in busy), None)
        if record is not None:
            self.ask_next(ItemField(record, ""))

    def skip(self) -> None:
        """Postpone the current question; see `LabelSession.skip`."""
        self._skipped.add(self._present)
        super().skip()
        self._open_records.hold(self._present)

    def close(self) -> None:
        """Release the record on the screen for others."""
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
