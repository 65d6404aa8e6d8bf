"""Replays a run's log in its own time, at a selected speed.

Time in which no process worked on the run is skipped: nothing happened in it, and a
night between two sessions would be an hour of a still picture.

Going back needs an earlier prefix: the nearest saved one, moved forward. Displays then
start again (`generation`), because their state is from the future.

A thread advances the past in steps that are committed one by one, so the display always
shows the run after one of its events. Nothing is written to the run: the projections
are in temporary files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from store.clock import Clock
from store.database import LogReader
from store.errors import NoSuchMoment, NotALog, StoreError
from store.events import UnknownEvent, kind_of
from store.fold_state import US_PER_S
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import last_seq
from store.time_travel import (
    LogPrefix,
    Moment,
    absences,
    moment_at,
    moment_named,
    moment_of,
)

SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, math.inf)
"""Speeds of the keys; the last is as fast as events can be read."""
MAX = "max"
STILL_S = 20.0
"""Displayed part of a time without a process: long enough to see that the process is
gone (`store.read.status.LOST_S`)."""

_SPEED = re.compile(r"(\d+(?:\.\d+)?|\.\d+)x?")


def parse_speed(name: str) -> float:
    """Parse a speed: 10x, 0.5x or max.

    Raises:
        ValueError: it is invalid.
    """
    if name == MAX:
        return math.inf
    match = _SPEED.fullmatch(name)
    speed = float(match[1]) if match else 0.0
    if not 0 < speed < math.inf:
        raise ValueError(
            f"{name!r} is not a speed: use one such as 1x, 10x, 0.5x or max"
        )
    return speed


def format_speed(speed: float) -> str:
    """Format a speed as typed.

    >>> format_speed(10.0), format_speed(math.inf)
    ('10x', 'max')
    """
    return MAX if math.isinf(speed) else f"{speed:g}x"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTimeSpan:
    """The time range of a log; all in microseconds since 1970 UTC."""

    begin_us: int
    end_us: int
    absences: tuple[tuple[int, int], ...] = ()  #: no process was at work, ascending

    @property
    def skipped(self) -> tuple[tuple[int, int], ...]:
        """The skipped ranges."""
        still_us = round(STILL_S * US_PER_S)
        return tuple(
            (since + still_us, until)
            for since, until in self.absences
            if until - since > still_us
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Playhead:
    """A position in a log's time at a real time, and its speed.

    Real time is in seconds of a monotonic clock.
    """

    span: LogTimeSpan
    at_us: int
    since_s: float  #: real time of that position
    speed: float  #: seconds of the log per real second
    is_paused: bool = False

    def us(self, now_s: float) -> int:
        """Return the position at *now_s*."""
        if self.is_paused:
            return self.at_us
        if math.isinf(self.speed):
            return self.span.end_us
        left_us = round((now_s - self.since_s) * self.speed * US_PER_S)
        at_us = self.at_us
        for since, until in self.span.skipped:
            if at_us + left_us < since:
                break
            if at_us < until:
                left_us -= max(0, since - at_us)
                at_us = until
        return min(at_us + left_us, self.span.end_us)

    def put(self, at_us: int, now_s: float) -> Playhead:
        """Move to another position, at the same speed."""
        span = self.span
        at_us = max(span.begin_us, min(at_us, span.end_us))
        return replace(self, at_us=at_us, since_s=now_s)

    def toggled(self, at_us: int, now_s: float) -> Playhead:
        """Pause or continue at a position."""
        return replace(self.put(at_us, now_s), is_paused=not self.is_paused)

    def at_speed(self, speed: float, at_us: int, now_s: float) -> Playhead:
        """Change the speed at a position."""
        return replace(self.put(at_us, now_s), speed=speed)

    def next_speed(self, by: int) -> float:
        """Return the next faster or slower of `SPEEDS`, or the same at the ends."""
        if by > 0:
            return next((speed for speed in SPEEDS if speed > self.speed), self.speed)
        slower = [speed for speed in SPEEDS if speed < self.speed]
        return slower[-1] if slower else self.speed


STEP = 20_000
"""Maximum events per commit: a tenth of a second or two."""
MAX_PREFIXES = 8
"""Prefixes kept of a long log, so that going back costs at most an eighth."""
SPARSE = 20_000
"""Minimum events between two of them: a tenth of a second or two."""
TURNS = (
    "run_resumed",
    "run_paused",
    "run_drained",
    "run_cancelled",
    "run_finished",
    "comparison_decided",
    "scoring_recorded",
)
"""Kinds of events that are offered as destinations."""
MOST_TURNS = 100


class ReplayedLog:
    """One run's log at a time that can be moved.

    It belongs to one thread, except for its attributes and `open_reader`.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Start at the first event; events after the current last one are ignored.

        Raises:
            StoreError: the log cannot be read, or there is no room for a copy.
        """
        with ExitStack() as opened:
            log = opened.enter_context(folder.open_reader())
            self.last = last_seq(log)  #: its last event
            if not self.last:
                raise NotALog(
                    "nothing has been recorded yet: use siftlog watch to follow the run"
                )
            self.moment = moment_of(log, 1)  #: the displayed moment
            self.span = LogTimeSpan(
                begin_us=self.moment.at_us,
                end_us=moment_of(log, self.last).at_us,
                absences=absences(log),
            )
            #: numbers, times and kinds of `TURNS` events
            self.turns = tuple(
                (row.seq, row.ts_us, kind_of(type(row.event)))
                for row in events(log, limit=MOST_TURNS, kinds=TURNS)
                if not isinstance(row.event, UnknownEvent)
            )
            self._prefix = opened.enter_context(LogPrefix(folder.log))
            self._prefix.move_to(self.moment)
            self._room = Path(opened.enter_context(_room()))
            self._opened = opened.pop_all()
        self._path = folder.log
        self._log = log
        self._spacing = max(SPARSE, self.last // MAX_PREFIXES)
        self._saved: dict[int, Path] = {}
        self._old: LogPrefix | None = None
        self.still = Lock()  #: while held, the log does not move
        self.generation = 0  #: incremented whenever time goes back

    def open_reader(self) -> LogReader:
        """Open a connection to the log at the displayed moment."""
        return self._prefix.open_reader()

    def find(self, find_moment: Callable[[LogReader], Moment]) -> Moment:
        """Find a moment in the whole log."""
        return find_moment(self._log)

    def move_to(self, goal: Moment, should_continue: Callable[[int], bool]) -> bool:
        """Move to another moment, passing those between on the way forward.

        Args:
            goal: the destination.
            should_continue: called at intervals; if False, this stops.

        Returns:
            Whether it arrived.

        Raises:
            CorruptLog: an event is damaged.
        """
        move = self._rewind if goal.seq < self._prefix.seq else self._go_on
        return move(goal, should_continue)

    def _go_on(self, goal: Moment, should_continue: Callable[[int], bool]) -> bool:
        while True:
            is_far = goal.seq - self._prefix.seq > STEP
            step = moment_of(self._log, self._prefix.seq + STEP) if is_far else goal
            if not self._prefix.move_to(
                step, should_continue=should_continue, commit_in=self._publishing(step)
            ):
                return False
            if step.seq - max(self._saved, default=0) >= self._spacing:
                file = self._saved[step.seq] = self._room / f"{step.seq}.db"
                self._prefix.save(file)
            if not is_far:
                return True

    def _rewind(self, goal: Moment, should_continue: Callable[[int], bool]) -> bool:
        """Switch to another prefix, once it is ready."""
        before = max((seq for seq in self._saved if seq <= goal.seq), default=None)
        saved = None if before is None else self._saved[before]
        prefix = LogPrefix(self._path, saved=saved)
        has_arrived = False
        try:
            has_arrived = prefix.move_to(goal, should_continue=should_continue)
        finally:
            if not has_arrived:
                prefix.close()
        if has_arrived:
            if self._old is not None:
                self._old.close()
            with self._publishing(goal):
                # screens may read the old one until they start again
                self._old, self._prefix = self._prefix, prefix
                self.generation += 1
        return has_arrived

    @contextmanager
    def _publishing(self, moment: Moment) -> Iterator[None]:
        """Publish changes and the moment together."""
        with self.still:
            yield
            self.moment = moment

    def close(self) -> None:
        """Close the log, and remove the copies."""
        for prefix in (self._prefix, self._old):
            if prefix is not None:
                prefix.close()
        self._opened.close()


def _room() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="siftlog-")


_T = TypeVar("_T")


class Replay:
    """One run's log in the past, moving in time."""

    def __init__(
        self, folder: RunFolder, clock: Clock, speed: float, *, begin: str = "1"
    ) -> None:
        """Start a replay that moves to its start and continues from there.

        Args:
            folder: the run's folder.
            clock: the real clock.
            speed: seconds of the log per real second; may be infinite.
            begin: the start, in the form of `moment_named`.

        Raises:
            NoSuchMoment: the run has no such moment.
            StoreError: the log is unreadable, or there is no disk space for a copy.
        """
        self._folder = folder
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        try:
            self.reel = self._thread.submit(ReplayedLog, folder).result()
        except BaseException:
            self._thread.shutdown()
            raise
        self._work: Future[Moment | None] | None = None
        self._find_moment: Callable[[LogReader], Moment] | None = None
        self._turn = self._turn_of_work = 0  # incremented by requests; stops older work
        self._refusal = ""
        self.failure = ""  #: why it cannot continue
        span = self.reel.span
        self.playhead = Playhead(
            span=span, at_us=span.begin_us, since_s=clock.monotonic(), speed=speed
        )
        find_moment = self._moment_finder(begin)
        try:
            first = self._thread.submit(self.reel.find, find_moment).result()
        except BaseException:
            self.close()
            raise
        self.seek(lambda _: first)

    # Data

    @property
    def run(self) -> PastRun:
        """The run at the displayed moment; other files are the run's."""
        return PastRun(self._folder.path, reel=self.reel)

    @property
    def clock(self) -> LogClock:
        """A clock with the log's time."""
        return LogClock(self.reel, self._clock)

    @property
    def moment(self) -> Moment:
        """The displayed moment."""
        return self.reel.moment

    @property
    def is_seeking(self) -> bool:
        """Whether it is moving to another position."""
        return self._find_moment is not None

    @property
    def is_over(self) -> bool:
        """Whether the last event was reached."""
        return self.moment.seq >= self.reel.last

    # User requests

    def pause(self) -> None:
        """Pause or continue."""
        self._change_playhead(self.playhead.toggled)

    def faster(self, by: int) -> None:
        """Select the next faster or slower speed."""
        self._change_playhead(
            partial(self.playhead.at_speed, self.playhead.next_speed(by))
        )

    def step(self, by: int) -> None:
        """Pause, and move by some events."""
        if not self.playhead.is_paused:
            self.pause()
        self.seek_event(self.moment.seq + by)

    def skip(self, seconds: float) -> None:
        """Move by seconds of the log."""
        span = self.playhead.span
        at_us = self.moment.at_us + round(seconds * US_PER_S)
        at_us = max(span.begin_us, min(at_us, span.end_us))
        self.seek(partial(moment_at, at_us=at_us))

    def seek_event(self, seq: int) -> None:
        """Move to an event, within limits."""
        self.seek(partial(moment_of, seq=max(1, min(seq, self.reel.last))))

    def seek_named(self, name: str) -> None:
        """Move to a moment in the form of `moment_named`; invalid ones are refused."""
        self.seek(self._moment_finder(name))

    def taken_refusal(self) -> str:
        """Return why a moment was refused, once; empty: none was."""
        refusal, self._refusal = self._refusal, ""
        return refusal

    def seek(self, find_moment: Callable[[LogReader], Moment]) -> None:
        """Move to the moment that *find_moment* returns for the whole log."""
        self._turn += 1
        self._find_moment = find_moment
        self.drive()

    def _moment_finder(self, name: str) -> Callable[[LogReader], Moment]:
        return partial(moment_named, name=name, now_us=self._clock.now_us())

    def _change_playhead(self, change: Callable[[int, float], Playhead]) -> None:
        self._turn += 1
        self.playhead = change(self.moment.at_us, self._clock.monotonic())

    # Movement

    def drive(self) -> None:
        """Read due events; must be called repeatedly."""
        if self._work is not None:
            if not self._work.done():
                return
            self._take(self._work)
        if self.failure:
            return
        goal_us = self.playhead.us(self._clock.monotonic())
        if self._find_moment is not None:
            self._submit(self._seek, self._find_moment)
        elif goal_us > self.moment.at_us:
            self._submit(self._go_on, goal_us)

    def _submit(self, work: Callable[[_T, int], Moment | None], goal: _T) -> None:
        self._turn_of_work = self._turn
        self._work = self._thread.submit(work, goal, self._turn)

    def _take(self, work: Future[Moment | None]) -> None:
        """Handle the result of finished work."""
        self._work = None
        try:
            moment = work.result()
        except NoSuchMoment as error:
            if self._turn_of_work == self._turn:
                self._refusal, self._find_moment = str(error), None
            return
        except StoreError as error:
            self.failure = str(error)
            return
        if moment is not None and self._turn_of_work == self._turn:
            self.playhead = self.playhead.put(moment.at_us, self._clock.monotonic())
            self._find_moment = None

    def _seek(
        self, find_moment: Callable[[LogReader], Moment], turn: int
    ) -> Moment | None:
        goal = self.reel.find(find_moment)
        return goal if self.reel.move_to(goal, self._wants(turn)) else None

    def _go_on(self, goal_us: int, turn: int) -> None:
        is_held = self._folder.is_alive()
        goal = self.reel.find(partial(moment_at, at_us=goal_us, is_held=is_held))
        self.reel.move_to(goal, self._wants(turn))

    def _wants(self, turn: int) -> Callable[[int], bool]:
        return lambda _: turn == self._turn

    def wait(self) -> None:
        """Wait for the current read."""
        if self._work is not None:
            self._work.exception()

    def settle(self) -> None:
        """Wait until the last request is done."""
        while self.is_seeking and not self.failure:
            self.wait()
            self.drive()

    def close(self) -> None:
        """Close the log, and remove the copies."""
        self._turn += 1
        self._thread.submit(self.reel.close).result()
        self._thread.shutdown()


@dataclass(frozen=True, slots=True)
class PastRun(RunFolder):
    """A run with its log at a past moment."""

    reel: ReplayedLog = field(compare=False, repr=False, kw_only=True)

    def open_reader(self) -> LogReader:
        """Open a connection to its log."""
        return self.reel.open_reader()

    def is_alive(self) -> bool:
        """Return whether a process was writing the log."""
        return self.reel.moment.is_alive


@dataclass(frozen=True, slots=True)
class LogClock:
    """A clock with the log's time; its monotonic seconds are real."""

    reel: ReplayedLog
    real_clock: Clock

    def now_us(self) -> int:
        """Return the displayed time, in microseconds since 1970 UTC."""
        return self.reel.moment.at_us

    def monotonic(self) -> float:
        """Return real seconds."""
        return self.real_clock.monotonic()

    async def sleep_until(self, when: float) -> None:
        """Sleep until *when*, in real seconds."""
        await self.real_clock.sleep_until(when)
