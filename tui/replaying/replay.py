"""A log read once more in its own time: what the screens of a replay look at.

A thread moves the past on as its time comes, in steps that are committed one by one, so
that whatever is shown is the run as it was after one of its events. Nothing of the run
is ever written: what is folded lies in temporary files.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from store.clock import Clock
from store.connect import Reader
from store.errors import NoSuchMoment, StoreError
from store.moment import Moment, moment_at, moment_named, moment_of
from store.runs import RunFolder
from store.sums import US_PER_S
from tui.replaying.playhead import Playhead
from tui.replaying.reel import Reel

_T = TypeVar("_T")


class Replay:
    """One run's log as it was, moving."""

    def __init__(
        self, folder: RunFolder, clock: Clock, speed: float, *, begin: str = "1"
    ) -> None:
        """A replay on its way to its beginning, from where it moves.

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
            self.reel = self._thread.submit(Reel, folder).result()
        except BaseException:
            self._thread.shutdown()
            raise
        self._work: Future[Moment | None] | None = None
        self._sought: Callable[[Reader], Moment] | None = None
        self._turn = self._turn_of_work = 0  # one more with each wish: others stop
        self._refusal = ""
        self.failure = ""  #: why it cannot go on
        span = self.reel.span
        self.playhead = Playhead(
            span=span, at_us=span.begin_us, since_s=clock.monotonic(), speed=speed
        )
        wanted = self._named(begin)
        try:
            first = self._thread.submit(self.reel.find, wanted).result()
        except BaseException:
            self.close()
            raise
        self.seek(lambda _: first)

    # What is looked at

    @property
    def run(self) -> PastRun:
        """The run as it is here and now; its other files are the run's own."""
        return PastRun(self._folder.path, reel=self.reel)

    @property
    def clock(self) -> LogClock:
        """Tells the time of the log."""
        return LogClock(self.reel, self._clock)

    @property
    def moment(self) -> Moment:
        """Where it has come to."""
        return self.reel.moment

    @property
    def is_seeking(self) -> bool:
        """Whether it is on its way to another place."""
        return self._sought is not None

    @property
    def is_over(self) -> bool:
        """Whether the last event has been reached."""
        return self.moment.seq >= self.reel.last

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
        self.seek(partial(moment_of, seq=max(1, min(seq, self.reel.last))))

    def seek_named(self, name: str) -> None:
        """To a moment as `moment_named` takes it; what is none is refused."""
        self.seek(self._named(name))

    def taken_refusal(self) -> str:
        """Why a moment could not be gone to, said once; empty: nothing was refused."""
        said, self._refusal = self._refusal, ""
        return said

    def seek(self, wanted: Callable[[Reader], Moment]) -> None:
        """To the moment that *wanted* finds in the whole log."""
        self._turn += 1
        self._sought = wanted
        self.drive()

    def _named(self, name: str) -> Callable[[Reader], Moment]:
        return partial(moment_named, name=name, now_us=self._clock.now_us())

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
            if self._turn_of_work == self._turn:
                self._refusal, self._sought = str(error), None
            return
        except StoreError as error:
            self.failure = str(error)
            return
        if found is not None and self._turn_of_work == self._turn:
            self.playhead = self.playhead.put(found.at_us, self._clock.monotonic())
            self._sought = None

    def _seek(self, wanted: Callable[[Reader], Moment], turn: int) -> Moment | None:
        goal = self.reel.find(wanted)
        return goal if self.reel.move_to(goal, self._wants(turn)) else None

    def _go_on(self, goal_us: int, turn: int) -> None:
        is_held = self._folder.is_alive()
        goal = self.reel.find(partial(moment_at, at_us=goal_us, is_held=is_held))
        self.reel.move_to(goal, self._wants(turn))

    def _wants(self, turn: int) -> Callable[[int], bool]:
        return lambda _: turn == self._turn

    def wait(self) -> None:
        """Wait until what is being read has been."""
        if self._work is not None:
            self._work.exception()

    def settle(self) -> None:
        """Wait until what was wished last has come true."""
        while self.is_seeking and not self.failure:
            self.wait()
            self.drive()

    def close(self) -> None:
        """Let go of the log, and remove the copies."""
        self._turn += 1
        self._thread.submit(self.reel.close).result()
        self._thread.shutdown()


@dataclass(frozen=True, slots=True)
class PastRun(RunFolder):
    """A run whose log is seen as it was."""

    reel: Reel = field(compare=False, repr=False, kw_only=True)

    def open_reader(self) -> Reader:
        """A connection that looks at its log."""
        return self.reel.open_reader()

    def is_alive(self) -> bool:
        """Whether a process was writing the log."""
        return self.reel.moment.is_alive


@dataclass(frozen=True, slots=True)
class LogClock:
    """A clock whose present is the log's; its seconds are ours."""

    reel: Reel
    ours: Clock

    def now_us(self) -> int:
        """The moment that is shown, in microseconds since 1970 UTC."""
        return self.reel.moment.at_us

    def monotonic(self) -> float:
        """Seconds of ours."""
        return self.ours.monotonic()

    async def sleep_until(self, when: float) -> None:
        """Sleep until *when*, in seconds of ours."""
        await self.ours.sleep_until(when)
