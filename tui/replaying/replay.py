"""A log read once more in its own time: what the screens of a replay look at.

A thread folds the log's prefix on as its time comes, in steps that are committed one by
one, so that whatever is shown is the run as it was after one of its events. Nothing of
the run is ever written: the prefix lives in a temporary file of its own.

Going back needs an earlier prefix: the nearest of some that were kept on the way, moved
on from there. Whoever shows something then begins anew (`generation`), since what was
seen is not the past any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple, TypeVar

from store.clock import Clock
from store.connect import Reader
from store.errors import NoSuchMoment, NotALog, StoreError
from store.events import Unknown, kind_of
from store.moment import Moment, absences, moment_at, moment_named, moment_of
from store.prefix import Prefix
from store.runs import RunFolder
from store.sums import US_PER_S
from store.views import events, last_seq
from tui.replaying.playhead import Playhead, Span

_T = TypeVar("_T")

STEP = 20_000
"""Events folded in one commit at most: a tenth of a second or two."""
KEPT = 8
"""Prefixes kept of a long log, so that going back costs an eighth of all at most."""
TURNS = (
    "run_resumed",
    "run_paused",
    "run_drained",
    "run_cancelled",
    "run_finished",
    "scoring_recorded",
)
"""Kinds of events that one may want to see a run at."""
MOST_TURNS = 100
SPARSE = 20_000
"""Events between two of them at least: a tenth of a second or two to fold."""


class Replay:
    """One run's log as it was, moving."""

    def __init__(
        self, folder: RunFolder, clock: Clock, speed: float, *, begin: str = "1"
    ) -> None:
        """A replay that stands at its beginning and moves from now on.

        Args:
            folder: the run's.
            clock: ours.
            speed: seconds of the log in one of ours; infinite: as fast as it goes.
            begin: the moment to begin with, as `moment_named` takes it.

        Raises:
            NoSuchMoment: the run has no such moment.
            StoreError: the log cannot be read, or there is no room for a copy.
        """
        self._folder = folder
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        try:
            opened = self._thread.submit(_open, folder, begin, clock.now_us()).result()
        except BaseException:
            self._thread.shutdown()
            raise
        self._log, self._prefix, self.moment = opened.log, opened.prefix, opened.moment
        self._spacing = max(SPARSE, opened.last // KEPT)
        self.last = opened.last  #: event that it ends with
        self.turns = opened.turns  #: numbers, times and kinds of some events
        self._room = TemporaryDirectory(prefix="siftlog-")
        self._saved: dict[int, Path] = {}
        self._old: Prefix | None = None
        self._work: Future[Moment | None] | None = None
        self._sought: Callable[[Reader], Moment] | None = None
        self._turn = self._turn_of_work = 0  # one more with each wish: others stop
        self.still = Lock()  #: while it is held, log and clock stay as they are
        self.generation = 0  #: one more whenever time has gone back
        self._refusal = ""
        self.failure = ""  #: why it cannot go on
        self.playhead = Playhead(
            span=opened.span,
            at_us=opened.span.begin_us,
            since_s=clock.monotonic(),
            speed=speed,
        )
        self.seek(lambda _: opened.first)

    # What is looked at

    @property
    def run(self) -> PastRun:
        """The run as it is here and now; its other files are the run's own."""
        return PastRun(self._folder.path, self)

    @property
    def clock(self) -> LogClock:
        """Tells the time of the log."""
        return LogClock(self, self._clock)

    @property
    def is_seeking(self) -> bool:
        """Whether it is on its way to another place."""
        return self._sought is not None

    @property
    def is_over(self) -> bool:
        """Whether the last event has been reached."""
        return self.moment.seq >= self.last

    def open_reader(self) -> Reader:
        """A connection that sees the log as it was at the present moment."""
        return self._prefix.open_reader()

    # What a person wishes

    def pause(self) -> None:
        """Stand still, or go on."""
        self._wish(self.playhead.toggled)

    def faster(self, by: int) -> None:
        """At the next speed, or the one below."""
        self._wish(partial(self.playhead.at_speed, self.playhead.next_speed(by)))

    def step(self, by: int) -> None:
        """Stand still, so many events on or back."""
        if not self.playhead.is_paused:
            self.pause()
        self.seek_event(self.moment.seq + by)

    def skip(self, seconds: float) -> None:
        """So many seconds of the log on or back."""
        span = self.playhead.span
        at_us = self.moment.at_us + round(seconds * US_PER_S)
        at_us = max(span.begin_us, min(at_us, span.end_us))
        self.seek(partial(moment_at, at_us=at_us))

    def seek_event(self, seq: int) -> None:
        """To an event, or the end that is nearest to it."""
        self.seek(partial(moment_of, seq=max(1, min(seq, self.last))))

    def seek_named(self, name: str) -> None:
        """To a moment as `moment_named` takes it; what is none is refused."""
        now_us = self._clock.now_us()
        self.seek(partial(moment_named, name=name, now_us=now_us))

    def taken_refusal(self) -> str:
        """Why a moment could not be gone to, said once; empty: nothing was refused."""
        said, self._refusal = self._refusal, ""
        return said

    def seek(self, wanted: Callable[[Reader], Moment]) -> None:
        """To the moment that *wanted* finds in the whole log."""
        self._turn += 1
        self._sought = wanted
        self.drive()

    def _wish(self, change: Callable[[int, float], Playhead]) -> None:
        self._turn += 1
        self.playhead = change(self.moment.at_us, self._clock.monotonic())

    # How it moves

    def drive(self) -> None:
        """Have read what the time has come for; to be called over and over."""
        if self._work is not None:
            if not self._work.done():
                return
            self._take(self._work)
        if self.failure:
            return
        goal_us = self.playhead.us(self._clock.monotonic())
        if self._sought is not None:
            self._submit(self._seek, self._sought)
        elif goal_us > self.moment.at_us:
            self._submit(self._go_on, goal_us)

    def _submit(self, work: Callable[[_T, int], Moment | None], goal: _T) -> None:
        self._turn_of_work = self._turn
        self._work = self._thread.submit(work, goal, self._turn)

    def _take(self, work: Future[Moment | None]) -> None:
        """What a work has come to."""
        self._work = None
        try:
            found = work.result()
        except NoSuchMoment as error:
            self._refusal, self._sought = str(error), None
            return
        except StoreError as error:
            self.failure = str(error)
            return
        if found is not None and self._turn_of_work == self._turn:
            self.playhead = self.playhead.put(found.at_us, self._clock.monotonic())
            self._sought = None

    def settle(self) -> None:
        """Wait until what was wished last has come true."""
        while self.is_seeking and not self.failure:
            self.wait()
            self.drive()

    def wait(self) -> None:
        """Wait until what is being read has been."""
        if self._work is not None:
            self._work.exception()

    def close(self) -> None:
        """Let go of the log, and remove the copies."""
        self._turn += 1
        self._thread.submit(self._close).result()
        self._thread.shutdown()
        self._room.cleanup()

    # In the thread

    def _go_on(self, goal_us: int, turn: int) -> None:
        is_held = self._folder.is_alive()
        self._fold(moment_at(self._log, goal_us, is_held=is_held), turn)

    def _seek(self, wanted: Callable[[Reader], Moment], turn: int) -> Moment | None:
        goal = wanted(self._log)
        move = self._rewind if goal.seq < self._prefix.seq else self._fold
        return goal if move(goal, turn) else None

    def _fold(self, goal: Moment, turn: int) -> bool:
        """Move the prefix on, shown at every step of the way."""
        while True:
            is_far = goal.seq - self._prefix.seq > STEP
            step = moment_of(self._log, self._prefix.seq + STEP) if is_far else goal
            if not self._prefix.move_to(
                step, is_wanted=self._wants(turn), commit_in=self._published(step)
            ):
                return False
            if step.seq - max(self._saved, default=0) >= self._spacing:
                file = self._saved[step.seq] = Path(self._room.name, f"{step.seq}.db")
                self._prefix.save(file)
            if not is_far:
                return True

    def _rewind(self, goal: Moment, turn: int) -> bool:
        """Take another prefix, once it is there."""
        before = max((seq for seq in self._saved if seq <= goal.seq), default=None)
        saved = None if before is None else self._saved[before]
        prefix = Prefix(self._folder.log, saved=saved)
        if not prefix.move_to(goal, is_wanted=self._wants(turn)):
            prefix.close()
            return False
        if self._old is not None:
            self._old.close()
        # screens may look at the one before until they begin anew
        with self._published(goal):
            self._old, self._prefix = self._prefix, prefix
            self.generation += 1
        return True

    @contextmanager
    def _published(self, moment: Moment) -> Iterator[None]:
        """What is done inside and the moment are seen together, or neither is."""
        with self.still:
            yield
            self.moment = moment

    def _wants(self, turn: int) -> Callable[[int], bool]:
        return lambda _: turn == self._turn

    def _close(self) -> None:
        for each in (self._prefix, self._old):
            if each is not None:
                each.close()
        self._log.close()


class _Opened(NamedTuple):
    log: Reader
    prefix: Prefix
    moment: Moment  #: that the prefix is of
    first: Moment  #: to begin with
    last: int
    turns: tuple[tuple[int, int, str], ...]
    span: Span


def _open(folder: RunFolder, begin: str, now_us: int) -> _Opened:
    with ExitStack() as opened:
        log = opened.enter_context(folder.open_reader())
        last = last_seq(log)
        if not last:
            raise NotALog(
                "nothing was recorded yet: there is nothing to replay, but siftlog "
                "watch shows what comes"
            )
        start, end = moment_of(log, 1), moment_of(log, last)
        first = moment_named(log, begin, now_us)
        turns = tuple(
            (row.seq, row.ts_us, kind_of(type(row.event)))
            for row in events(log, limit=MOST_TURNS, kinds=TURNS)
            if not isinstance(row.event, Unknown)
        )
        prefix = opened.enter_context(Prefix(folder.log))
        prefix.move_to(start)
        opened.pop_all()
    span = Span(begin_us=start.at_us, end_us=end.at_us, absences=absences(log))
    return _Opened(log, prefix, start, first, last, turns, span)


@dataclass(frozen=True, slots=True)
class PastRun(RunFolder):
    """A run whose log is seen as it was."""

    replay: Replay = field(compare=False, repr=False)

    def open_reader(self) -> Reader:
        """A connection that looks at its log."""
        return self.replay.open_reader()

    def is_alive(self) -> bool:
        """Whether a process was writing the log."""
        return self.replay.moment.is_alive


class LogClock:
    """A clock whose present is the log's; its seconds are ours."""

    def __init__(self, replay: Replay, clock: Clock) -> None:
        self._replay = replay
        self._clock = clock

    def now_us(self) -> int:
        """The moment that the replay has come to, in microseconds since 1970 UTC."""
        return self._replay.moment.at_us

    def monotonic(self) -> float:
        """Seconds of ours."""
        return self._clock.monotonic()

    async def sleep_until(self, when: float) -> None:
        """Sleep until *when*, in seconds of ours."""
        await self._clock.sleep_until(when)
